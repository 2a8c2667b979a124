// SPDX-License-Identifier: GPL-2.0
/*
 * The code of the module that a thread's calls reached. Needs a kernel with KCOV, and the module
 * built with it (KCOV_INSTRUMENT=y). Without them all functions do nothing.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/kcov.h>

#include "fuzz.h"

#define KCOV		"/sys/kernel/debug/kcov"
#define AREA_WORDS	(256UL << 10)
#define TEXT		"/sys/module/timerwheel/sections/.text"

bool cover_wanted = true;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __u8 all[COVER_BITS / 8];
static unsigned int total;

/* Where the module's code begins; 0: unknown. */
static unsigned long text_start(void)
{
	unsigned long start = 0;
	FILE *file = fopen(TEXT, "r");

	if (!file)
		return 0;
	if (fscanf(file, "%lx", &start) != 1)
		start = 0;
	fclose(file);
	return start;
}

static unsigned long text;

void cover_open(struct cover *cover)
{
	void *area;

	cover->area = NULL;
	if (!cover_wanted)
		return;
	pthread_mutex_lock(&lock);
	if (!text)
		text = text_start();
	pthread_mutex_unlock(&lock);
	cover->fd = text ? open(KCOV, O_RDWR | O_CLOEXEC) : -1;
	if (cover->fd < 0)
		return;
	if (!ioctl(cover->fd, KCOV_INIT_TRACE, AREA_WORDS)) {
		area = mmap(NULL, AREA_WORDS * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED,
			    cover->fd, 0);
		if (area != MAP_FAILED && !ioctl(cover->fd, KCOV_ENABLE, KCOV_TRACE_PC)) {
			cover->area = area;
			return;
		}
		if (area != MAP_FAILED)
			munmap(area, AREA_WORDS * sizeof(long));
	}
	close(cover->fd);
}

void cover_close(struct cover *cover)
{
	if (!cover->area)
		return;
	ioctl(cover->fd, KCOV_DISABLE, 0);
	munmap(cover->area, AREA_WORDS * sizeof(long));
	close(cover->fd);
	cover->area = NULL;
}

void cover_begin(struct cover *cover)
{
	if (cover->area)
		__atomic_store_n(&cover->area[0], 0, __ATOMIC_RELAXED);
}

static bool mark(__u8 *bits, unsigned long bit)
{
	__u8 mask = 1 << bit % 8;
	bool fresh = !(bits[bit / 8] & mask);

	bits[bit / 8] |= mask;
	return fresh;
}

bool cover_end(struct cover *cover)
{
	unsigned long n, i, pc, last = 0;
	bool fresh = false;

	if (!cover->area)
		return false;
	n = __atomic_load_n(&cover->area[0], __ATOMIC_RELAXED);
	/* From here on nothing must be traced over it. (User space is not traced anyway.) */
	for (i = 1; i <= n && i < AREA_WORDS; i++) {
		pc = cover->area[i] - text;
		if (pc >= COVER_BITS)
			continue;
		if (mark(cover->pcs, pc)) {
			cover->reached++;
			fresh = true;
			pthread_mutex_lock(&lock);
			total += mark(all, pc);
			pthread_mutex_unlock(&lock);
		}
		fresh |= mark(cover->edges, (pc ^ last * 31) % COVER_BITS);
		last = pc;
	}
	return fresh;
}

unsigned int cover_total(void)
{
	return total;
}
