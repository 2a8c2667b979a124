// SPDX-License-Identifier: GPL-2.0
/*
 * Print the frequency of this machine's time stamp counter in kHz.
 *
 * An emulated guest reads the same counter. On a busy machine the guest's kernel may measure a
 * wrong frequency, so that its time runs several times too fast. So it gets the frequency as an
 * argument.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

#define SAMPLES	9

static long long now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_RAW, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* The frequency in kHz, measured in about 20 ms. It is wrong if either end is interrupted. */
static long long sample(void)
{
	long long start = now_ns(), end;
	long long ticks = __rdtsc();

	do {
		end = now_ns();
	} while (end - start < 20000000);
	return ((long long)__rdtsc() - ticks) * 1000000 / (end - start);
}

static int compare(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	long long khz[SAMPLES];
	int i;

	for (i = 0; i < SAMPLES; i++)
		khz[i] = sample();
	qsort(khz, SAMPLES, sizeof(khz[0]), compare);
	printf("%lld\n", khz[SAMPLES / 2]);
	return 0;
}
