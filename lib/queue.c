// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Operations gathered during one iteration of an event loop.
 *
 * Operations are stored by kind, so that a flush makes one call per kind. Operations of the same
 * kind stay in order. Invariant: there is an order of the three kinds in which the operations on
 * each key are performed in the order in which they were queued. To maintain it, a note for each
 * key records the kinds that are queued for it. If another kind follows, the recorded kinds must be
 * flushed before it (@after). An operation that would make this relation cyclic flushes the queue
 * first.
 *
 * A flush makes calls, or returns commands for the program's own io_uring. For commands, the
 * operations move to a second queue (@submitted) until all results have arrived, and the first
 * queue gathers new operations.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "keyhash.h"

#define LTW_ROOM	256U	/* the default */
#define LTW_KINDS	3U	/* LTW_ADD, LTW_MOVE, LTW_REMOVE */

/**
 * struct ltw_note - the kinds of operations that are queued for a key
 * @key: the key
 * @turn: the note is free unless this is timerwheel_queue.turn
 * @kinds: a bit for each kind
 */
struct ltw_note {
	uint64_t key;
	uint64_t turn;
	unsigned int kinds;
};

/**
 * struct timerwheel_queue - a queue
 * @wheel: the wheel
 * @failed: called for each operation that failed; may be NULL
 * @arg: argument of @failed
 * @room: maximum number of operations of each kind
 * @elems: the operations, by kind
 * @count: their number, by kind
 * @after: by kind: a bit for each kind that must be flushed before it
 * @note: hash table of notes, by key
 * @notes: its length, a power of two and at least twice the maximum number of operations
 * @turn: incremented to free all notes without clearing them; never 0
 * @seed: seed of the hash
 * @submitted: a separate queue with the operations of timerwheel_queue_commands(); NULL: that
 *	function was never called
 * @kind: the kind of each of these commands
 * @commands: their number; 0: all results have arrived
 */
struct timerwheel_queue {
	struct timerwheel *wheel;
	timerwheel_queue_failed_fn failed;
	void *arg;
	unsigned int room;
	void *elems[LTW_KINDS];
	unsigned int count[LTW_KINDS];
	unsigned int after[LTW_KINDS];
	struct ltw_note *note;
	uint32_t notes;
	uint64_t turn;
	uint64_t seed;
	struct timerwheel_queue *submitted;
	unsigned int kind[LTW_KINDS];
	unsigned int commands;
};

static const struct {
	unsigned long op;
	size_t size;
	size_t result;
} ltw_kinds[LTW_KINDS] = {
	[LTW_ADD] = { TIMERWHEEL_IOC_ADD, sizeof(struct timerwheel_add),
		     offsetof(struct timerwheel_add, result) },
	[LTW_MOVE] = { TIMERWHEEL_IOC_MOVE, sizeof(struct timerwheel_move),
		      offsetof(struct timerwheel_move, result) },
	[LTW_REMOVE] = { TIMERWHEEL_IOC_REMOVE, sizeof(struct timerwheel_remove),
			offsetof(struct timerwheel_remove, result) },
};

static void ltw_queue_release(struct timerwheel_queue *queue)
{
	unsigned int kind;

	if (queue->submitted)
		ltw_queue_release(queue->submitted);
	for (kind = 0; kind < LTW_KINDS; kind++)
		free(queue->elems[kind]);
	free(queue->note);
	free(queue);
}

/* Allocate memory for the maximum number of operations. Returns 0 or -ENOMEM. */
static int ltw_queue_allocate(struct timerwheel_queue *queue)
{
	unsigned int kind;

	for (kind = 0; kind < LTW_KINDS; kind++) {
		queue->elems[kind] = calloc(queue->room, ltw_kinds[kind].size);
		if (!queue->elems[kind])
			return -ENOMEM;
	}
	for (queue->notes = 1; queue->notes < 2 * LTW_KINDS * queue->room; queue->notes *= 2)
		;
	queue->note = calloc(queue->notes, sizeof(*queue->note));
	return queue->note ? 0 : -ENOMEM;
}

int timerwheel_queue_new(struct timerwheel_queue **queue, struct timerwheel *wheel,
			 unsigned int room, timerwheel_queue_failed_fn failed, void *arg)
{
	int saved = errno, err;
	struct timerwheel_queue *q;

	if (room > TIMERWHEEL_BATCH_MAX)
		return -EINVAL;
	q = calloc(1, sizeof(*q));
	if (!q) {
		errno = saved;
		return -ENOMEM;
	}
	q->wheel = wheel;
	q->failed = failed;
	q->arg = arg;
	q->room = room ? room : LTW_ROOM;
	q->turn = 1;
	q->seed = ltw_keyhash_seed(q);
	err = ltw_queue_allocate(q);
	if (err)
		ltw_queue_release(q);
	else
		*queue = q;
	errno = saved;
	return err;
}

void timerwheel_queue_free(struct timerwheel_queue *queue)
{
	int saved = errno;

	if (!queue)
		return;
	/* Continue after signals, because the rest could not be flushed later. */
	while (timerwheel_queue_flush(queue) == -EINTR)
		;
	ltw_queue_release(queue);
	errno = saved;
}

/* The note of a key, or a free note for it. At least half of the notes are free. */
static struct ltw_note *ltw_note(const struct timerwheel_queue *queue, uint64_t key)
{
	uint32_t mask = queue->notes - 1;
	uint32_t place = ltw_keyhash(key, queue->seed) & mask;

	while (queue->note[place].turn == queue->turn && queue->note[place].key != key)
		place = (place + 1) & mask;
	return &queue->note[place];
}

/* Record that an operation of this kind is queued for the key. */
static void ltw_note_kind(struct timerwheel_queue *queue, uint64_t key, unsigned int kind)
{
	struct ltw_note *note = ltw_note(queue, key);

	if (note->turn != queue->turn)
		*note = (struct ltw_note){ .key = key, .turn = queue->turn };
	note->kinds |= 1U << kind;
}

/* All kinds that must be flushed before @kind, directly or indirectly. */
static unsigned int ltw_before(const struct timerwheel_queue *queue, unsigned int kind)
{
	unsigned int before = queue->after[kind], other;

	for (other = 0; other < LTW_KINDS; other++)
		if (before & 1U << other)
			before |= queue->after[other];
	/* One step is enough: with three kinds, a path has at most two steps. */
	return before;
}

/* May an operation of @kind be flushed after @kinds without making the order cyclic? */
static bool ltw_fits(const struct timerwheel_queue *queue, unsigned int kind, unsigned int kinds)
{
	unsigned int other;

	for (other = 0; other < LTW_KINDS; other++)
		if (kinds & 1U << other && ltw_before(queue, other) & 1U << kind)
			return false;
	return true;
}

/* The kinds other than @kind that are queued for a key. */
static unsigned int ltw_others(const struct timerwheel_queue *queue, uint64_t key,
			       unsigned int kind)
{
	const struct ltw_note *note = ltw_note(queue, key);

	return note->turn == queue->turn ? note->kinds & ~(1U << kind) : 0;
}

static int ltw_queue_put(struct timerwheel_queue *queue, unsigned int kind, const void *elem,
			 uint64_t key)
{
	size_t size = ltw_kinds[kind].size;
	int err;

	if (queue->count[kind] == queue->room ||
	    !ltw_fits(queue, kind, ltw_others(queue, key, kind))) {
		err = timerwheel_queue_flush(queue);
		if (err)
			return err;
	}
	queue->after[kind] |= ltw_others(queue, key, kind);
	ltw_note_kind(queue, key, kind);
	memcpy((char *)queue->elems[kind] + queue->count[kind]++ * size, elem, size);
	return 0;
}

int timerwheel_queue_add(struct timerwheel_queue *queue, const struct timerwheel_add *elem)
{
	return ltw_queue_put(queue, LTW_ADD, elem, elem->key);
}

int timerwheel_queue_move(struct timerwheel_queue *queue, const struct timerwheel_move *elem)
{
	return ltw_queue_put(queue, LTW_MOVE, elem, elem->key);
}

int timerwheel_queue_remove(struct timerwheel_queue *queue, const struct timerwheel_remove *elem)
{
	return ltw_queue_put(queue, LTW_REMOVE, elem, elem->key);
}

static long ltw_queue_call(const struct timerwheel_queue *queue, unsigned int kind, void *elems,
			   size_t count)
{
	switch (kind) {
	case LTW_ADD:
		return timerwheel_add(queue->wheel, elems, count);
	case LTW_MOVE:
		return timerwheel_move(queue->wheel, elems, count);
	default:
		return timerwheel_remove(queue->wheel, elems, count);
	}
}

static void ltw_queue_report(const struct timerwheel_queue *queue, unsigned int kind,
			     const char *elem, long count)
{
	const size_t size = ltw_kinds[kind].size;

	if (!queue->failed)
		return;
	for (; count; count--, elem += size)
		if (*(const __s32 *)(elem + ltw_kinds[kind].result) < 0)
			queue->failed(queue->arg, ltw_kinds[kind].op, elem);
}

/* Remove the first @done operations of a kind, which were performed, and report failures. */
static void ltw_queue_done(struct timerwheel_queue *queue, unsigned int kind, size_t done)
{
	size_t size = ltw_kinds[kind].size;
	char *elems = queue->elems[kind];

	ltw_queue_report(queue, kind, elems, done);
	queue->count[kind] -= done;
	memmove(elems, elems + done * size, queue->count[kind] * size);
}

/* Perform all operations of a kind. Returns 0, or an error: the rest stays queued, in order. */
static int ltw_queue_flush_kind(struct timerwheel_queue *queue, unsigned int kind)
{
	long n;

	while (queue->count[kind]) {
		n = ltw_queue_call(queue, kind, queue->elems[kind], queue->count[kind]);
		if (n < 0)
			return n;
		ltw_queue_done(queue, kind, n);
	}
	return 0;
}

/*
 * After a flush that failed, rebuild the notes from the remaining operations, because the table has
 * no room for notes of other operations. The order of the kinds (@after) does not change.
 */
static void ltw_queue_note_rest(struct timerwheel_queue *queue)
{
	const char *elem;
	unsigned int kind, i;

	queue->turn++;
	for (kind = 0; kind < LTW_KINDS; kind++) {
		elem = queue->elems[kind];
		/* All elements begin with their key. */
		for (i = 0; i < queue->count[kind]; i++, elem += ltw_kinds[kind].size)
			ltw_note_kind(queue, *(const __u64 *)elem, kind);
	}
}

/* The kinds in an order in which they may be flushed. */
static void ltw_queue_order(const struct timerwheel_queue *queue, unsigned int *order)
{
	unsigned int done = 0, kind, n = 0;

	/* The order is not cyclic, so each iteration finds at least one kind. */
	while (n < LTW_KINDS) {
		for (kind = 0; kind < LTW_KINDS; kind++) {
			if (done & 1U << kind || queue->after[kind] & ~done)
				continue;
			order[n++] = kind;
			done |= 1U << kind;
		}
	}
}

/* Empty the queue. Its operations were performed, or now belong to another queue. */
static void ltw_queue_empty(struct timerwheel_queue *queue)
{
	memset(queue->after, 0, sizeof(queue->after));
	queue->turn++;
}

int timerwheel_queue_flush(struct timerwheel_queue *queue)
{
	unsigned int order[LTW_KINDS], i;
	int err;

	if (queue->commands)
		return -EBUSY;
	ltw_queue_order(queue, order);
	for (i = 0; i < LTW_KINDS; i++) {
		err = ltw_queue_flush_kind(queue, order[i]);
		if (err) {
			ltw_queue_note_rest(queue);
			return err;
		}
	}
	ltw_queue_empty(queue);
	return 0;
}

/* Create the queue of operations that were submitted. Returns 0 or an error. */
static int ltw_queue_submitted_new(struct timerwheel_queue *queue)
{
	struct timerwheel_info info;
	int err;

	if (queue->wheel->ops->backend != TIMERWHEEL_BACKEND_DEVICE)
		return -EOPNOTSUPP;
	err = timerwheel_info(queue->wheel, &info);
	if (err)
		return err;
	if (!(info.features & TIMERWHEEL_FEATURE_URING))
		return -EOPNOTSUPP;
	return timerwheel_queue_new(&queue->submitted, queue->wheel, queue->room, queue->failed,
				    queue->arg);
}

/* Exchange the operations of two queues. */
static void ltw_queue_swap(struct timerwheel_queue *a, struct timerwheel_queue *b)
{
	struct timerwheel_queue was = *a;

	memcpy(a->elems, b->elems, sizeof(a->elems));
	memcpy(a->count, b->count, sizeof(a->count));
	memcpy(a->after, b->after, sizeof(a->after));
	a->note = b->note;
	a->turn = b->turn;
	a->seed = b->seed;
	memcpy(b->elems, was.elems, sizeof(b->elems));
	memcpy(b->count, was.count, sizeof(b->count));
	memcpy(b->after, was.after, sizeof(b->after));
	b->note = was.note;
	b->turn = was.turn;
	b->seed = was.seed;
}

int timerwheel_queue_commands(struct timerwheel_queue *queue, struct timerwheel_command *commands)
{
	unsigned int order[LTW_KINDS], i, kind, n = 0;
	struct timerwheel_uring arg = { 0 };
	int err = 0;

	if (queue->commands)
		return -EBUSY;
	if (!queue->submitted)
		err = ltw_queue_submitted_new(queue);
	if (err)
		return err;
	ltw_queue_order(queue, order);
	ltw_queue_swap(queue, queue->submitted);
	for (i = 0; i < LTW_KINDS; i++) {
		kind = order[i];
		if (!queue->submitted->count[kind])
			continue;
		arg.elems = (uintptr_t)queue->submitted->elems[kind];
		arg.count = queue->submitted->count[kind];
		arg.elem_size = ltw_kinds[kind].size;
		commands[n].fd = queue->wheel->fd;
		commands[n].op = ltw_kinds[kind].op;
		memcpy(commands[n].bytes, &arg, sizeof(arg));
		queue->kind[n++] = kind;
	}
	queue->commands = n;
	return n;
}

int timerwheel_queue_completed(struct timerwheel_queue *queue, unsigned int command, int res)
{
	struct timerwheel_queue *submitted = queue->submitted;
	unsigned int kind, i;
	int err = 0;

	if (command >= queue->commands)
		return -EINVAL;
	kind = queue->kind[command];
	if (res > 0)
		ltw_queue_done(submitted, kind,
			       (unsigned int)res < submitted->count[kind] ?
			       (unsigned int)res : submitted->count[kind]);
	if (submitted->count[kind])
		err = ltw_queue_flush_kind(submitted, kind);
	for (i = 0; i < queue->commands; i++)
		if (submitted->count[queue->kind[i]])
			return err;
	ltw_queue_empty(submitted);
	queue->commands = 0;
	return err;
}

/* Are operations on a key queued, or submitted without a result so far? */
static bool ltw_queued(const struct timerwheel_queue *queue, uint64_t key)
{
	return ltw_others(queue, key, LTW_KINDS) ||
	       (queue->commands && ltw_others(queue->submitted, key, LTW_KINDS));
}

static int ltw_queue_deadline(struct timerwheel_queue *queue, uint64_t key, uint64_t deadline)
{
	struct timerwheel_move move = {
		.key = key,
		.deadline = deadline,
		.flags = TIMERWHEEL_ABS,
	};
	int err;

	err = timerwheel_queue_move(queue, &move);
	return err ? err : TIMERWHEEL_NEEDS_CALL;
}

int timerwheel_queue_arm(struct timerwheel_queue *queue, uint64_t key, uint32_t index,
			 uint32_t generation, uint64_t deadline)
{
	int answer = TIMERWHEEL_NEEDS_CALL;

	if (!queue->wheel->table.entries)
		return -EINVAL;
	/* A MOVE to another deadline may be queued. */
	if (!ltw_queued(queue, key))
		answer = timerwheel_table_arm(&queue->wheel->table, index, generation, deadline);
	if (answer != TIMERWHEEL_NEEDS_CALL)
		return answer;
	return ltw_queue_deadline(queue, key, deadline);
}

/* Flush queued operations on a key before its entry in the deadline table changes. */
static int ltw_queue_settle(struct timerwheel_queue *queue, uint64_t key)
{
	if (!queue->wheel->table.entries)
		return -EINVAL;
	return ltw_queued(queue, key) ? timerwheel_queue_flush(queue) : 0;
}

int timerwheel_queue_refresh(struct timerwheel_queue *queue, uint64_t key, uint32_t index,
			     uint32_t generation, uint64_t deadline)
{
	int err, answer;

	err = ltw_queue_settle(queue, key);
	if (err)
		return err;
	answer = timerwheel_table_refresh(&queue->wheel->table, index, generation, deadline);
	if (answer != TIMERWHEEL_NEEDS_CALL)
		return answer;
	return ltw_queue_deadline(queue, key, deadline);
}

int timerwheel_queue_cancel(struct timerwheel_queue *queue, uint64_t key, uint32_t index,
			    uint32_t generation)
{
	int err;

	err = ltw_queue_settle(queue, key);
	if (err)
		return err;
	return timerwheel_table_cancel(&queue->wheel->table, index, generation);
}
