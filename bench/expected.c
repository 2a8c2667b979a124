// SPDX-License-Identifier: GPL-2.0
/* Expected and delivered timers. See facility.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "bench.h"

struct expected expected;

void expected_wrong(__u32 id)
{
	if (id >= expected.capacity)
		die("timer %u, which does not exist, was delivered: this is not a measurement", id);
	die("timer %u, which is not pending, was delivered: this is not a measurement", id);
}

void expected_late(__u32 id)
{
	__u32 i = __atomic_fetch_add(&expected.lates, 1, __ATOMIC_RELAXED);

	if (i < expected.capacity)
		expected.late[i] = now_ns() - expected.deadline[id];
}

/* With leases one process records expected timers, and the other process delivered timers. */
static void *shared_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	return memory;
}

void expected_open(__u32 capacity)
{
	expected = (struct expected) {
		.capacity = capacity,
		.deadline = shared_memory(capacity * sizeof(*expected.deadline)),
		.late = xcalloc(capacity, sizeof(*expected.late)),
	};
	/* touch this memory now, so that its pages are not counted as the facility's */
	memset(expected.deadline, 0xff, capacity * sizeof(*expected.deadline));
	memset(expected.deadline, 0, capacity * sizeof(*expected.deadline));
	memset(expected.late, 0xff, capacity * sizeof(*expected.late));
}

static void give_up(int sig)
{
	static const char text[] =
		"bench: due timers were not delivered: this is not a measurement\n";

	(void)sig;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(EXIT_FAILURE);
	_exit(EXIT_FAILURE);
}

void expected_come(__u32 want, __u64 until)
{
	__u64 now = now_ns(), seconds = (until > now ? until - now : 0) / NSEC_PER_SEC + 600;

	expected.want = want;
	signal(SIGALRM, give_up);
	alarm(seconds);
	run_until(NEVER);
	alarm(0);
	if (expected.delivered != want)
		die("%u timers were delivered, not %u: this is not a measurement",
		    expected.delivered, want);
}

void expected_none_overdue(__u64 before)
{
	__u32 id;

	for (id = 0; id < expected.capacity; id++) {
		if (expected.deadline[id] && expected.deadline[id] < before)
			die("timer %u is overdue: this is not a measurement", id);
	}
}

void expected_close(void)
{
	munmap(expected.deadline, expected.capacity * sizeof(*expected.deadline));
	free(expected.late);
	expected = (struct expected) { };
}
