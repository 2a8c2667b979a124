// SPDX-License-Identifier: GPL-2.0
/*
 * example: a program of a user of libtimerwheel. The tests of the packages build it with the flags
 * from pkg-config. It arms a timer, waits for it, and prints the back end.
 */
#include <stdio.h>
#include <timerwheel.h>

int main(void)
{
	struct timerwheel_add timer = { .key = 1, .value = 42, .deadline = 20000000 };
	struct timerwheel_event event = { 0 };
	struct timerwheel *wheel;
	long n;

	n = timerwheel_open(&wheel, NULL);
	if (n < 0) {
		fprintf(stderr, "example: no wheel: %s\n", timerwheel_strerror(n));
		return 1;
	}
	n = timerwheel_add(wheel, &timer, 1);
	if (n != 1 || timer.result < 0) {
		fprintf(stderr, "example: no timer: %s\n",
			timerwheel_strerror(n < 0 ? n : timer.result));
		return 1;
	}
	n = timerwheel_wait(wheel, &event, 1, 5000000000);
	if (n != 1 || event.value != 42 || event.fired < event.deadline) {
		fprintf(stderr, "example: no event: %s\n", timerwheel_strerror(n));
		return 1;
	}
	puts(timerwheel_backend(wheel) == TIMERWHEEL_BACKEND_DEVICE ? "device" : "process");
	timerwheel_close(wheel);
	return 0;
}
