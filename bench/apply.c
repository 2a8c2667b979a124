// SPDX-License-Identifier: GPL-2.0
/* Timed operations on many timers; by two threads if the facility has two */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "bench.h"

struct change changes[CHANGES];
__u64 seed = 1;

static __u64 memory_before;

struct job {
	void (*function)(const struct change *changes, __u32 n);	/* NULL: facility->run() */
	const struct change *changes;
	__u32 n;
	__u32 batch;
	__u64 until;
	__u64 ns;
};

static struct {
	pthread_t thread;
	pthread_barrier_t begin, end;
	struct job job;
	bool quit;
} helper;

static void do_job(void *arg)
{
	struct job *job = arg;
	__u64 start = now_ns();
	__u32 i, n;

	if (!job->function)
		facility->run(job->until);
	for (i = 0; i < job->n; i += n) {
		n = job->n - i < job->batch ? job->n - i : job->batch;
		job->function(job->changes + i, n);
	}
	job->ns = now_ns() - start;
}

static void *help(void *arg)
{
	for (;;) {
		pthread_barrier_wait(&helper.begin);
		if (helper.quit)
			return arg;
		do_job(&helper.job);
		pthread_barrier_wait(&helper.end);
	}
}

static void helper_start(void)
{
	int error;

	helper.quit = false;
	pthread_barrier_init(&helper.begin, NULL, 2);
	pthread_barrier_init(&helper.end, NULL, 2);
	error = pthread_create(&helper.thread, NULL, help, NULL);
	if (error)
		die("no second thread: %s", strerror(error));
}

static void helper_stop(void)
{
	helper.quit = true;
	pthread_barrier_wait(&helper.begin);
	pthread_join(helper.thread, NULL);
	pthread_barrier_destroy(&helper.begin);
	pthread_barrier_destroy(&helper.end);
}

/* Each thread does one half of the changes. */
static __u64 together(struct job *job)
{
	__u64 start = now_ns();
	__u32 half = job->n / 2;

	helper.job = *job;
	helper.job.changes = job->changes + half;
	helper.job.n -= half;
	job->n = half;
	pthread_barrier_wait(&helper.begin);
	do_job(job);
	pthread_barrier_wait(&helper.end);
	return now_ns() - start;
}

static __u64 alone(struct job *job)
{
	if (facility->inside)
		facility->inside(do_job, job);
	else
		do_job(job);
	return job->ns;
}

static void expect(enum op op, const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		expected.deadline[c[i].id] = op == CANCEL ? 0 : c[i].deadline;
}

__u64 apply(enum op op, const struct change *c, __u32 n, __u32 batch)
{
	void (* const functions[])(const struct change *changes, __u32 n) = {
		[ARM] = facility->arm,
		[MOVE] = facility->move,
		[REFRESH] = facility->refresh,
		[CANCEL] = facility->cancel,
	};
	struct job job = {
		.function = functions[op],
		.changes = c,
		.n = n,
		/* without batches a single call is made, so that the bench adds no cost */
		.batch = facility->batches ? batch : n,
	};
	__u64 start = now_ns();

	expect(op, c, n);
	own_ns += now_ns() - start;
	return facility->threads > 1 ? together(&job) : alone(&job);
}

void run_until(__u64 until)
{
	struct job job = { .until = until };

	if (facility->threads > 1)
		together(&job);
	else
		facility->run(until);
}

__u64 arm_all(__u32 n, __u64 from, __u64 range)
{
	__u32 done, count, i;
	__u64 ns = 0, start;

	for (done = 0; done < n; done += count) {
		start = now_ns();
		count = n - done < CHANGES ? n - done : CHANGES;
		for (i = 0; i < count; i++) {
			changes[i].id = done + i;
			changes[i].deadline = from + random_below(&seed, range);
		}
		own_ns += now_ns() - start;
		ns += apply(ARM, changes, count, usual_batch());
	}
	return ns;
}

void facility_open(__u32 capacity, __u64 timeout)
{
	expected_open(capacity);
	if (facility->threads > 1)
		helper_start();
	/* wait until memory of the previous wheel, which is freed with delay, is free */
	sleep_until(now_ns() + NSEC_PER_SEC);
	memory_before = mem_free();
	facility->open(capacity, timeout);
}

__u64 facility_memory(void)
{
	return mem_taken(memory_before);
}

void facility_close(void)
{
	facility->close();
	if (facility->threads > 1)
		helper_stop();
	expected_close();
}
