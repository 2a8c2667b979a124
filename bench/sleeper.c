// SPDX-License-Identifier: GPL-2.0
/*
 * A process that sleeps for short times and records its greatest lateness. The times are random, so
 * that it does not run in step with the observed work. An ordinary task shows the effect on other
 * programs. A real-time task preempts all others, so only the kernel makes it late: it shows the
 * longest time that interrupts held the CPU.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

struct sleeper {
	pid_t pid;
	__u32 watching;
	__u64 worst;
};

static void sleep_and_watch(struct sleeper *s, __u64 period)
{
	for (;;) {
		__u32 watching = __atomic_load_n(&s->watching, __ATOMIC_RELAXED);
		__u64 length = period / 2 + random_below(&seed, period);
		__u64 wanted = now_ns() + (watching ? length : 5 * NSEC_PER_MSEC), late;

		sleep_until(wanted);
		late = now_ns() - wanted;
		if (watching && late > s->worst)
			s->worst = late;
	}
}

struct sleeper *sleeper_start(bool realtime)
{
	const struct sched_param param = { .sched_priority = 50 };
	struct sleeper *s;
	pid_t pid;

	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid) {
		/* written only here, because the memory is shared with the child */
		s->pid = pid;
		return s;
	}
	/* ordinary tasks have a timer slack of 50 us by default */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1);
	if (realtime && sched_setscheduler(0, SCHED_FIFO, &param))
		die("no real-time priority: %s (this needs root)", strerror(errno));
	sleep_and_watch(s, realtime ? 100 * NSEC_PER_USEC : NSEC_PER_MSEC);
	exit(EXIT_FAILURE);
}

void sleeper_watch(struct sleeper *s)
{
	__atomic_store_n(&s->watching, 1, __ATOMIC_RELAXED);
}

__u64 sleeper_worst(struct sleeper *s)
{
	__atomic_store_n(&s->watching, 0, __ATOMIC_RELAXED);
	if (!s->worst)
		die("the sleeping task never woke: this is not a measurement");
	return s->worst;
}

void sleeper_stop(struct sleeper *s)
{
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	munmap(s, sizeof(*s));
}
