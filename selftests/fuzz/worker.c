// SPDX-License-Identifier: GPL-2.0
/* A fuzzing thread: its memory, corpus, digest and failure reports. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

__u64 fuzz_seed;

__u64 now_ns(int clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

bool limits_reached(const struct limits *limits, const struct worker *w)
{
	return (limits->programs && w->programs >= limits->programs) ||
	       (limits->until && now_ns(CLOCK_MONOTONIC) >= limits->until);
}

/**
 * worker_init - initialize a worker
 * @w: the worker
 * @number: its number
 * @seed: determines, with the number, all that it does
 * @threads: it is one of several
 */
void worker_init(struct worker *w, unsigned int number, __u64 seed, bool threads)
{
	memset(w, 0, sizeof(*w));
	w->number = number;
	w->random = seed + number;
	w->random = rnd(&w->random);
	w->io.elems = malloc(ELEM_ROOM);
	w->corpus = calloc(CORPUS_MAX, sizeof(*w->corpus));
	if (!w->io.elems || !w->corpus)
		abort();
	arena_init(&w->arena, getpagesize() + ARG_MORE, threads);
	arena_init(&w->elems_arena, ELEM_ROOM, threads);
	/* io_uring runs its work as task work, which ends a batch early as signals do. */
	if (threads)
		ring_open(w);
}

void worker_free(struct worker *w)
{
	ring_close(w);
	arena_free(&w->arena);
	arena_free(&w->elems_arena);
	free(w->corpus);
	free(w->io.elems);
}

/* Choose the next program: a new one, or a mutant of one in the corpus. */
void worker_next(struct worker *w, bool threads)
{
	w->fresh = false;
	if (!w->in_corpus || one_in(&w->random, 4)) {
		program_make(&w->program, &w->random, threads);
		return;
	}
	w->program = w->corpus[rnd_to(&w->random, w->in_corpus)];
	program_mutate(&w->program, &w->corpus[rnd_to(&w->random, w->in_corpus)], &w->random,
		       threads);
}

/* Keep a program that reached something new. */
void worker_keep(struct worker *w)
{
	unsigned int at = w->in_corpus;

	if (!w->fresh)
		return;
	if (at == CORPUS_MAX)
		at = rnd_to(&w->random, CORPUS_MAX);
	else
		w->in_corpus++;
	w->corpus[at] = w->program;
}

/* FNV-1a, 8 bytes at a time where possible */
void digest(struct worker *w, const void *data, size_t len)
{
	const __u8 *p = data;
	__u64 word;

	for (; len; len -= len < 8 ? len : 8, p += 8) {
		word = len;
		memcpy(&word, p, len < 8 ? len : 8);
		w->digest = (w->digest ^ word) * 0x100000001b3ULL;
		w->digest ^= w->digest >> 29;
	}
}

void wrong(struct worker *w, const char *format, ...)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	va_list args;
	char text[512];

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* Not through stdio: this may be the child of a multithreaded process. */
	pthread_mutex_lock(&lock);
	dprintf(1, "# WRONG: worker %u, call %u (%s): %s\n", w->number, w->at,
		w->at < w->program.n ? op_names[w->program.call[w->at].op] : "the end", text);
	if (!w->failed) {
		program_print(&w->program, w->at + 1);
		dprintf(1, "# the same run again: --seed %#llx\n", fuzz_seed);
		dprintf(1, "# these calls alone, in one thread: --program FILE with these lines\n");
	}
	w->failed = true;
	pthread_mutex_unlock(&lock);
}
