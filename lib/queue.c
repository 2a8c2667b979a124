// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Operations gathered during a turn of an event loop.
 *
 * They are kept by kind, so that a flush is one call for each kind. Within a kind they stay in
 * order; what is left is the order of the kinds. For each key there is a note which kinds are
 * queued for it: when another kind follows, these kinds have to be flushed before that one
 * (`after'). As long as no kind has to come before itself there is an order of the three that suits
 * all keys; an operation that would change that makes the queue flush first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "keyhash.h"

#define LTW_ROOM	256U	/* of a queue that does not say */
#define LTW_KINDS	3U	/* LTW_ADD, LTW_MOVE, LTW_REMOVE */

/**
 * struct ltw_note - which kinds are queued for a key
 * @key: the key
 * @turn: timerwheel_queue.turn, or the note is an old one, of nobody
 * @kinds: a bit for each
 */
struct ltw_note {
	uint64_t key;
	uint64_t turn;
	unsigned int kinds;
};

/**
 * struct timerwheel_queue - a queue
 * @wheel: whose operations
 * @failed: is told of failures, NULL: nobody is
 * @arg: for @failed
 * @room: operations of each kind that there is room for
 * @elems: the operations, by kind
 * @count: how many, by kind
 * @after: by kind: a bit for each kind that has to be flushed before it
 * @note: hash table by key
 * @notes: its length, a power of two and at least twice the number of all operations
 * @turn: grows when all notes are to be of nobody, so that none has to be cleared; never 0
 * @seed: of the hash
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

	for (kind = 0; kind < LTW_KINDS; kind++)
		free(queue->elems[kind]);
	free(queue->note);
	free(queue);
}

/* Get the memory for all that it may hold. Returns 0 or -ENOMEM. */
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
	/* There is no later for what a signal has kept from being done. */
	while (timerwheel_queue_flush(queue) == -EINTR)
		;
	ltw_queue_release(queue);
	errno = saved;
}

/* The note of a key, or the place for it: there always is one */
static struct ltw_note *ltw_note(const struct timerwheel_queue *queue, uint64_t key)
{
	uint32_t mask = queue->notes - 1;
	uint32_t place = ltw_keyhash(key, queue->seed) & mask;

	while (queue->note[place].turn == queue->turn && queue->note[place].key != key)
		place = (place + 1) & mask;
	return &queue->note[place];
}

/* An operation of a kind on a key is queued. */
static void ltw_note_kind(struct timerwheel_queue *queue, uint64_t key, unsigned int kind)
{
	struct ltw_note *note = ltw_note(queue, key);

	if (note->turn != queue->turn)
		*note = (struct ltw_note){ .key = key, .turn = queue->turn };
	note->kinds |= 1U << kind;
}

/* All kinds that have to be flushed before a kind, directly or because of others */
static unsigned int ltw_before(const struct timerwheel_queue *queue, unsigned int kind)
{
	unsigned int before = queue->after[kind], other;

	for (other = 0; other < LTW_KINDS; other++)
		if (before & 1U << other)
			before |= queue->after[other];
	/* With three kinds the way has two steps at most. */
	return before;
}

/* Can an operation of a kind be flushed after these kinds, whatever else is queued? */
static bool ltw_fits(const struct timerwheel_queue *queue, unsigned int kind, unsigned int kinds)
{
	unsigned int other;

	for (other = 0; other < LTW_KINDS; other++)
		if (kinds & 1U << other && ltw_before(queue, other) & 1U << kind)
			return false;
	return true;
}

/* Which kinds of operations on a key are queued, other than this one */
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

static void ltw_queue_tell(const struct timerwheel_queue *queue, unsigned int kind,
			   const char *elem, long count)
{
	const size_t size = ltw_kinds[kind].size;

	if (!queue->failed)
		return;
	for (; count; count--, elem += size)
		if (*(const __s32 *)(elem + ltw_kinds[kind].result) < 0)
			queue->failed(queue->arg, ltw_kinds[kind].op, elem);
}

/* Do all operations of a kind. Returns 0, or an error: the rest stays, in order. */
static int ltw_queue_flush_kind(struct timerwheel_queue *queue, unsigned int kind)
{
	size_t size = ltw_kinds[kind].size, count = queue->count[kind], done = 0;
	char *elems = queue->elems[kind];
	long n = 0;

	while (done < count) {
		n = ltw_queue_call(queue, kind, elems + done * size, count - done);
		if (n < 0)
			break;
		ltw_queue_tell(queue, kind, elems + done * size, n);
		done += n;
	}
	queue->count[kind] = count - done;
	memmove(elems, elems + done * size, (count - done) * size);
	return n < 0 ? n : 0;
}

/*
 * Some were flushed and others could not be: note only what is left, for there is no place for
 * notes of more than that. What has to come before what stays as it is.
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

int timerwheel_queue_flush(struct timerwheel_queue *queue)
{
	unsigned int done = 0, kind, all = (1U << LTW_KINDS) - 1;
	int err;

	/* Each time round there is one at least that waits for no other. */
	while (done != all) {
		for (kind = 0; kind < LTW_KINDS; kind++) {
			if (done & 1U << kind || queue->after[kind] & ~done)
				continue;
			err = ltw_queue_flush_kind(queue, kind);
			if (err) {
				ltw_queue_note_rest(queue);
				return err;
			}
			done |= 1U << kind;
		}
	}
	memset(queue->after, 0, sizeof(queue->after));
	queue->turn++;
	return 0;
}
