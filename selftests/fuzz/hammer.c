// SPDX-License-Identifier: GPL-2.0
/*
 * A thread that writes valid and garbage values to the deadline tables of resident wheels during
 * the calls of other threads. It needs neither calls nor locks. The kernel must tolerate all of it:
 * the checks of threads.c still hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#define ENTRIES		64	/* mostly these; the table has a page of them at least */
#define BURST		3000	/* times that an entry is hammered */

/* The tables. There is one thread. */
static struct table {
	__u64 *entry;
	__u64 mask;
	__u64 tick;
	__u32 clock;
} tables[2];

static __u64 time_of(const struct table *t, __u64 old, __u64 *random)
{
	__u64 now = t->clock == TIMERWHEEL_CLOCK_MONOTONIC ? now_ns(CLOCK_MONOTONIC) :
							     old & ~t->mask;

	return now + rnd_to(random, 40) * t->tick;
}

/* As a program may: arm, refresh or cancel, with the generation that is there */
static void valid(const struct table *t, __u64 *p, __u64 *random)
{
	__u64 old = __atomic_load_n(p, __ATOMIC_RELAXED), want;

	if (old & 2 || !(old & t->mask & ~3ULL))
		return;
	if (one_in(random, 3)) {
		want = old & ~(__u64)TIMERWHEEL_TABLE_ARMED;
	} else {
		want = ((time_of(t, old, random) + t->mask) & ~t->mask) |
		       (old & t->mask) | TIMERWHEEL_TABLE_ARMED;
		if (want < old)
			return;
	}
	__atomic_compare_exchange_n(p, &old, want, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* As a faulty program does: any state, deadline or generation, by a plain store */
static void nonsense(const struct table *t, __u64 *p, __u64 *random)
{
	__u64 old = __atomic_load_n(p, __ATOMIC_RELAXED), word = rnd(random);

	switch (rnd_to(random, 6)) {
	case 0:		/* whatever */
		break;
	case 1:		/* another state */
		word = (old & ~3ULL) | (word & 3);
		break;
	case 2:		/* another deadline, of the same owner */
		word = (word & ~t->mask) | (old & t->mask);
		break;
	case 3:		/* an earlier one, or one that wraps around */
		word = old - (word & 1023) * (t->mask + 1);
		break;
	case 4:		/* another generation */
		word = old ^ (word & t->mask & ~3ULL);
		break;
	default:
		word = word & 1 ? ~0ULL : 0;
	}
	__atomic_store_n(p, word, __ATOMIC_RELAXED);
}

/* One entry, as fast as possible */
static void burst(const struct table *t, __u64 *p, __u64 *random)
{
	__u64 old = __atomic_load_n(p, __ATOMIC_RELAXED), two[2] = { old, old };
	unsigned int i, n = rnd_to(random, BURST);

	two[1] = one_in(random, 2) ? old ^ TIMERWHEEL_TABLE_ARMED :
				     old + (t->mask + 1) * rnd_to(random, 3);
	for (i = 0; i < n; i++)
		__atomic_store_n(p, two[i & 1], __ATOMIC_RELAXED);
}

static bool table_map(struct table *t, const struct hammer *h, unsigned int i)
{
	struct timerwheel_info info = { .size = sizeof(info) };

	*t = (struct table){ .tick = h->tick[i], .clock = h->clock[i] };
	if (ioctl(h->fd[i], TIMERWHEEL_IOC_INFO, &info))
		return false;
	t->mask = (1ULL << info.generation_bits) - 1;
	t->entry = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, h->fd[i],
			TIMERWHEEL_MMAP_DEADLINES);
	return t->entry != MAP_FAILED;
}

static void *hammer_main(void *arg)
{
	struct hammer *h = arg;
	__u64 *random = &h->random, *p;
	const struct table *t;

	while (!__atomic_load_n(&h->over, __ATOMIC_RELAXED)) {
		t = &tables[rnd_to(random, h->n)];
		p = t->entry + (one_in(random, 20) ? rnd_to(random, getpagesize() / sizeof(*p)) :
						     1 + rnd_to(random, ENTRIES));
		switch (rnd_to(random, 40)) {
		case 0:
			burst(t, p, random);
			break;
		case 1 ... 4:
			nonsense(t, p, random);
			break;
		case 5:
			/* the others have work to do */
			usleep(rnd_to(random, 100));
			break;
		default:
			valid(t, p, random);
		}
	}
	return NULL;
}

/**
 * hammer_start - map the tables and start the thread
 * @h: its wheels, which stay open until hammer_stop(); there may be none
 */
void hammer_start(struct hammer *h)
{
	unsigned int i;

	for (i = 0; i < h->n; i++)
		if (!table_map(&tables[i], h, i))
			abort();
	if (h->n && pthread_create(&h->thread, NULL, hammer_main, h))
		abort();
}

/**
 * hammer_stop - end the thread
 * @h: of hammer_start()
 */
void hammer_stop(struct hammer *h)
{
	unsigned int i;

	__atomic_store_n(&h->over, true, __ATOMIC_RELAXED);
	if (h->n)
		pthread_join(h->thread, NULL);
	for (i = 0; i < h->n; i++)
		munmap(tables[i].entry, getpagesize());
}
