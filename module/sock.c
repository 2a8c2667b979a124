// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers that watch a TCP connection, and abort it.
 *
 * A timer of ADD_SOCKET has a struct tw_sock. A packet needs no work: the connection keeps the
 * times of the latest data anyway. tw_sock_visit() reads them when the timer's slot comes up. If
 * the connection was used meanwhile, the timer is only queued again.
 *
 * Otherwise the timer is PARKED and handed to a worker. The worker may run much later, so it
 * decides again with the same locks (tw_sock_decide()):
 *
 *	used meanwhile		PENDING, with a later deadline
 *	closed			DUE, with EVENT_GONE
 *	nothing to be aborted	DUE
 *	a grace begins		PENDING, for the grace; its warning is put on the due list
 *	else			abort the connection; DUE, with EVENT_ABORTED
 *
 * The worker needs the lock of the socket to abort a connection, and may sleep. A task can hold
 * that lock for any time, so the worker does not wait for the lock, but tries again later
 * (tw_tcp_abort()). It holds no lock of the module then, so a call may move or remove the timer.
 * The worker then finds that the timer is no longer PARKED or has another connection, and leaves
 * the timer alone. The connection is aborted in any case.
 *
 * Held sockets
 * ------------
 * While a task holds the lock of a socket, the timers that are to abort the connection stay PARKED.
 * They are in a tree of their user, ordered by socket (struct tw_held). The worker tries them in
 * rounds. The pause between rounds doubles each time, up to a second. In a round the worker tries
 * each socket once, however many timers wait for it. To limit its CPU time it tries one timer in
 * TW_SOCK_HELD_NS, on average.
 *
 * The warning must be on the due list while the timer is in the wheel. So the warning has its own
 * timer, which belongs to the tw_sock from ADD on and is in no hash chain. It is always TW_CLAIMED,
 * so lookups by index skip it. A call that finds the timer itself also withdraws the warning.
 *
 * Closed sockets
 * --------------
 * A timer keeps a reference to the struct sock, which keeps its network namespace. The program may
 * close the socket, or exit, long before the deadline. So once a minute (TW_SOCK_SWEEP) the worker
 * walks the file's timers and drops the references to closed sockets. The timers stay: each ends at
 * its deadline with EVENT_GONE, as if the socket were still there.
 *
 * Lifetimes
 * ---------
 * The timer keeps a reference to the struct sock, but none to the file, so the program can close
 * the file. tw_sock_end() takes the tw_sock from its timer. The worker then drops the reference,
 * which may sleep, and frees the tw_sock; only the worker does this while the file is open. A
 * tw_sock is in the file's list at most once (TW_SOCK_QUEUED). One atomic operation both ends and
 * queues it. Another atomic operation takes it off the list and reads whether it has ended. So
 * either the worker that takes it off sees that it has ended, or it is queued again.
 *
 * Each user has one worker, which serves the user's files in turn, a few connections at a time. So
 * a user who aborts a million connections does not delay other users. Before a closed file is
 * freed, tw_sock_quiesce() takes it off the worker's lists and its connections out of the tree.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/jiffies.h>
#include <linux/net.h>
#include <linux/rbtree.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "clock.h"
#include "cover.h"
#include "internal.h"
#include "memory.h"
#include "ops.h"
#include "run.h"
#include "sock.h"
#include "tcp.h"
#include "user.h"

/* tw_sock.flags: it is in tw_socks.todo; its timer has released it */
#define TW_SOCK_QUEUED	1
#define TW_SOCK_ENDED	2

/* Connections of a file that the worker handles before it turns to the user's next file. */
#define TW_SOCK_TURN	32U

/* Interval between scans for closed sockets, in jiffies; timers that the worker scans in a turn. */
#define TW_SOCK_SWEEP		(60 * HZ)
#define TW_SOCK_SWEPT		256U

/* Number of attempts by ADD to get the two timers that it may need. */
#define TW_SOCK_TRIES	8U

/* The longest pause between two rounds of tries at held sockets, in jiffies */
#define TW_SOCK_HELD_MAX	HZ

/* Average time between two tries at held sockets. A try takes about 5 us. */
#define TW_SOCK_HELD_NS		(200 * NSEC_PER_USEC)

static_assert(sizeof(struct timerwheel_add_socket) == 72);
static_assert(TIMERWHEEL_SOCKET_TIME_MAX / NSEC_PER_SEC * HZ < S32_MAX);

static struct workqueue_struct *tw_socks_wq;

/**
 * tw_sock_init - create the workqueue
 *
 * alarm.c describes why it is freezable.
 *
 * Return: 0 or -ENOMEM.
 */
int __init tw_sock_init(void)
{
	tw_socks_wq = alloc_workqueue("timerwheel-sock", WQ_UNBOUND | WQ_FREEZABLE, 0);
	return tw_socks_wq ? 0 : -ENOMEM;
}

/**
 * tw_sock_exit - destroy the workqueue
 *
 * Context: process, may sleep; all files were freed.
 */
void tw_sock_exit(void)
{
	destroy_workqueue(tw_socks_wq);
}

/* The age of @stamp in jiffies. Another CPU may have set it after @now was read. */
static u32 tw_sock_age(u32 now, u32 stamp)
{
	u32 age = now - stamp;

	return age > U32_MAX - HZ ? 0 : age;
}

/*
 * Time left until the timeout, in ns; 0 or negative if it has expired. A stamp is the jiffy in
 * which data came, so it is up to a jiffy older than the data.
 */
static s64 tw_sock_left(struct tw_sock *ts)
{
	u32 now = tw_tcp_now(), age = tw_sock_age(now, ts->since), acked;

	switch (ts->kind) {
	case TIMERWHEEL_SOCKET_LIFETIME:
		return 0;
	case TIMERWHEEL_SOCKET_HALF_CLOSED:
		/*
		 * The time begins at the first visit that finds the connection half-closed. It
		 * begins again when a visit finds that the peer has acknowledged more: TCP does not
		 * record when, and it may happen long after all data was sent.
		 */
		acked = tw_tcp_acked(ts->sk);
		if (!ts->half_closed || !tw_tcp_half_closed(ts->sk) || acked != ts->acked) {
			ts->half_closed = tw_tcp_half_closed(ts->sk);
			ts->acked = acked;
			age = 0;
		}
		fallthrough;
	case TIMERWHEEL_SOCKET_IDLE:
		age = min(age, tw_sock_age(now, tw_tcp_sent(ts->sk)));
		fallthrough;
	case TIMERWHEEL_SOCKET_IDLE_RECEIVE:
		age = min(age, tw_sock_age(now, tw_tcp_received(ts->sk)));
		break;
	case TIMERWHEEL_SOCKET_IDLE_SEND:
		age = min(age, tw_sock_age(now, tw_tcp_sent(ts->sk)));
		break;
	}
	/* This prevents the age from wrapping around. */
	ts->since = now - age;
	return ts->timeout - (age ? age - 1 : 0) * (u64)TICK_NSEC;
}

/* Has the connection ended, or was its socket let go? */
static bool tw_sock_gone(const struct tw_sock *ts)
{
	return !ts->sk || tw_tcp_gone(ts->sk);
}

/* Hand it to the worker, with @flag. The caller must start the worker. */
static void tw_sock_queue(struct tw_sock *ts, int flag)
{
	/* Pairs with tw_sock_handle(), which takes it off the list; litmus sock-end. */
	if (!(atomic_fetch_or(TW_SOCK_QUEUED | flag, &ts->flags) & TW_SOCK_QUEUED))
		llist_add(&ts->node, &ts->file->socks->todo);
}

/**
 * tw_sock_visit - a timer that watches a connection is visited, and its deadline has passed
 * @t: the timer, PENDING; its base is locked
 * @now: the time, in ns
 *
 * Return: true if the connection was used and the timer has a later deadline; false if the caller
 * must park the timer for the worker to decide.
 */
bool tw_sock_visit(struct tw_timer *t, u64 now)
{
	struct tw_sock *ts = t->sock;
	s64 left;

	if (!ts->grace_end && !tw_sock_gone(ts)) {
		left = tw_sock_left(ts);
		if (left > 0) {
			t->deadline = min(now + left, TIMERWHEEL_TIME_MAX);
			return true;
		}
		/* Signed: the result may be before the clock's beginning. */
		if (ts->timeout)
			t->deadline = max_t(s64, t->deadline, now + left);
	}
	t->fired = now;
	tw_sock_queue(ts, 0);
	return false;
}

/* The timer of the warning */
static struct tw_timer *tw_sock_warning(const struct tw_file *file, const struct tw_sock *ts)
{
	return tw_timer_at(&file->table.pool, ts->warning);
}

/* Put the warning of a timer on the due list. */
static void tw_sock_warn(struct tw_ctx *ctx, const struct tw_timer *t, struct tw_sock *ts)
{
	struct tw_due_list due = { .first = ts->warning, .last = ts->warning, .count = 1 };
	struct tw_timer *warning = tw_sock_warning(ctx->file, ts);

	WRITE_ONCE(warning->key, t->key);
	warning->value = t->value;
	/* The clock may have been set back since the visit. */
	warning->deadline = min(t->deadline, ctx->now);
	warning->fired = ctx->now;
	warning->next = 0;
	warning->prev = 0;
	tw_events_lock(ctx->file);
	ts->warned = true;
	ctx->file->events.warnings++;
	tw_events_unlock(ctx->file);
	ctx->wake_readers |= tw_events_add(ctx->cpu, &due, ctx->now);
	if (tw_has_ring(ctx->file))
		ctx->flow++;
}

/* The grace of a timer ends without an abort: withdraw its warning. */
static void tw_sock_calm(struct tw_ctx *ctx, struct tw_sock *ts)
{
	ts->grace_end = 0;
	if (!ts->warning)
		return;
	tw_events_lock(ctx->file);
	if (ts->warned) {
		tw_events_unlink(ctx, tw_sock_warning(ctx->file, ts));
		ts->warned = false;
		ctx->file->events.warnings--;
	}
	tw_events_unlock(ctx->file);
}

/**
 * tw_sock_move - a call gives a timer that watches a connection a new deadline
 * @ctx: the batch context
 * @t: the timer; its base or its bucket is locked
 * @deadline: the deadline
 *
 * Return: the deadline, or a later one, since the worker must decide before the timer is due.
 */
u64 tw_sock_move(struct tw_ctx *ctx, struct tw_timer *t, u64 deadline)
{
	struct tw_sock *ts = t->sock;

	ts->half_closed = false;
	ts->event = 0;
	tw_sock_calm(ctx, ts);
	return max(deadline, ctx->now + 1);
}

/* Free the timer of the warning, if there is one. */
static void tw_sock_free_warning(struct tw_ctx *ctx, struct tw_sock *ts)
{
	struct tw_timer *warning = tw_sock_warning(ctx->file, ts);

	if (!ts->warning)
		return;
	WRITE_ONCE(warning->state, TW_FREE);
	tw_cpu_free(ctx->cpu, ts->warning, warning);
	ts->warning = 0;
}

/**
 * tw_sock_end - release the connection that a timer watches
 * @ctx: the batch context
 * @t: the timer, in no list, or PENDING in a base that is locked; it ends or is reused
 */
void tw_sock_end(struct tw_ctx *ctx, struct tw_timer *t)
{
	struct tw_sock *ts = t->sock;

	tw_sock_calm(ctx, ts);
	tw_sock_free_warning(ctx, ts);
	t->stay = TW_ENDS;
	atomic_dec(&ctx->file->socks->count);
	tw_sock_queue(ts, TW_SOCK_ENDED);
	ctx->socks = true;
}

/**
 * tw_sock_free - free a timer whose connection has ended, after its last event was delivered
 * @ctx: the batch context
 * @t: the timer, TW_CLAIMED
 * @index: its index
 */
void tw_sock_free(struct tw_ctx *ctx, struct tw_timer *t, u32 index)
{
	struct tw_table *table = &ctx->file->table;
	struct tw_hint hint = tw_hint_of(ctx, t->key);
	struct tw_bucket *bucket = tw_table_lock(table, t->key, hint.buckets, &hint.chain);

	tw_sock_end(ctx, t);
	tw_table_set_link(tw_table_link_to(table, hint.chain, index), t->hash_next);
	WRITE_ONCE(t->state, TW_FREE);
	tw_bucket_unlock(table, bucket);
	tw_cpu_free(ctx->cpu, index, t);
}

/* Queue a PARKED timer again, for @deadline, or make it due if that has passed. */
static void tw_sock_enqueue(struct tw_ctx *ctx, struct tw_timer *t, struct tw_sock *ts,
			    u64 deadline)
{
	ctx->cpu->wheel.parked--;
	t->deadline = deadline;
	tw_enqueue(ctx, ts->index, t);
}

/* End the timer of a connection with an event. */
static void tw_sock_due(struct tw_ctx *ctx, struct tw_timer *t, struct tw_sock *ts, u32 event)
{
	ts->event = event;
	tw_sock_enqueue(ctx, t, ts, min(t->deadline, ctx->now));
}

/* Decide about a PARKED timer. Returns true if the connection is to be aborted. */
static bool tw_sock_decide(struct tw_ctx *ctx, struct tw_timer *t, struct tw_sock *ts)
{
	u64 now = ctx->now;
	s64 left;

	if (tw_sock_gone(ts)) {
		tw_sock_due(ctx, t, ts, TIMERWHEEL_EVENT_GONE);
		return false;
	}
	left = tw_sock_left(ts);
	/* The connection was used in its grace. */
	if (ts->grace_end && (left > 0 || ts->since != ts->warned_at))
		tw_sock_calm(ctx, ts);
	if (left > 0) {
		tw_sock_enqueue(ctx, t, ts, min(now + left, TIMERWHEEL_TIME_MAX));
	} else if (!ts->abort) {
		tw_sock_due(ctx, t, ts, 0);
	} else if (ts->grace && !ts->grace_end) {
		tw_sock_warn(ctx, t, ts);
		ts->warned_at = ts->since;
		ts->grace_end = min(now + ts->grace, TIMERWHEEL_TIME_MAX);
		tw_sock_enqueue(ctx, t, ts, ts->grace_end);
	} else {
		return true;
	}
	return false;
}

/*
 * Begin a batch for the timer with this index. Returns the timer, with its base and its bucket
 * locked; NULL if there is no timer, and the batch has ended. If another base has the timer, a
 * second batch locks that base. If the timer is then in a third base, a call has armed it again, so
 * it is left alone.
 */
static struct tw_timer *tw_sock_begin(struct tw_ctx *ctx, struct tw_file *file, u32 index,
				      struct tw_lookup *lookup)
{
	u32 other = TW_NO_CPU;
	struct tw_timer *t;

	for (;;) {
		/* At least the base of the ADD exists, so this needs no memory. */
		if (WARN_ON_ONCE(__tw_cpu_begin(ctx, file, 0, true, other)))
			return NULL;
		t = tw_lookup_index(ctx, index, lookup);
		if (!IS_ERR_OR_NULL(t))
			return t;
		tw_cpu_end(ctx);
		if (!t || other != TW_NO_CPU)
			return NULL;
		other = ctx->wants;
	}
}

static void tw_sock_unlock(struct tw_ctx *ctx, const struct tw_lookup *lookup)
{
	tw_lookup_unlock(ctx, lookup);
	tw_cpu_end(ctx);
}

/*
 * Decide about the timer of a connection; @err: NULL, or the result of tw_tcp_abort(). Returns true
 * if the connection must be aborted.
 *
 * The visit that handed the connection over parks the timer a little later, with its base locked.
 * So tw_sock_begin() finds the timer PARKED, or a call has armed it again. In the second case the
 * next visit hands the connection over again.
 */
static bool tw_sock_settle(struct tw_file *file, struct tw_sock *ts, const int *err)
{
	struct tw_lookup lookup __uninitialized;
	struct tw_ctx ctx __uninitialized;
	struct tw_timer *t = tw_sock_begin(&ctx, file, ts->index, &lookup);
	bool abort = false;

	if (!t)
		return false;
	if (lookup.state == TW_PARKED && tw_timer_has_sock(t) && t->sock == ts) {
		if (!err)
			abort = tw_sock_decide(&ctx, t, ts);
		else
			tw_sock_due(&ctx, t, ts,
				    *err ? TIMERWHEEL_EVENT_GONE : TIMERWHEEL_EVENT_ABORTED);
	}
	tw_sock_unlock(&ctx, &lookup);
	return abort;
}

static struct tw_sock *tw_held_at(struct rb_node *node)
{
	return rb_entry_safe(node, struct tw_sock, held);
}

static bool tw_sock_is_held(const struct tw_sock *ts)
{
	return !RB_EMPTY_NODE(&ts->held);
}

/* The first connection in the tree whose socket has an address of at least @from. */
static struct tw_sock *tw_held_from(const struct tw_held *held, unsigned long from)
{
	struct rb_node *node = held->tree.rb_node, *found = NULL;

	while (node) {
		if ((unsigned long)tw_held_at(node)->sk >= from) {
			found = node;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return tw_held_at(found);
}

/* The lock of a connection's socket is held: let the timer wait, if it does not wait already. */
static void tw_held_add(struct tw_held *held, struct tw_sock *ts)
{
	struct rb_node **link = &held->tree.rb_node, *parent = NULL;

	if (tw_sock_is_held(ts))
		return;
	if (RB_EMPTY_ROOT(&held->tree))
		held->from = 0;
	/* Try a new connection soon, however long the others have waited. */
	held->delay = 1;
	if (RB_EMPTY_ROOT(&held->tree) || (!held->from && time_after(held->at, jiffies + 1)))
		held->at = jiffies + 1;
	while (*link) {
		parent = *link;
		link = ts->sk < tw_held_at(parent)->sk ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&ts->held, parent, link);
	rb_insert_color(&ts->held, &held->tree);
}

static void tw_held_remove(struct tw_held *held, struct tw_sock *ts)
{
	if (!tw_sock_is_held(ts))
		return;
	rb_erase(&ts->held, &held->tree);
	RB_CLEAR_NODE(&ts->held);
}

/* Take the connections of closed files out of the tree. */
static void tw_held_purge(struct tw_held *held)
{
	struct tw_sock *ts = tw_held_at(rb_first(&held->tree)), *next;

	for (; ts; ts = next) {
		next = tw_held_at(rb_next(&ts->held));
		if (READ_ONCE(ts->file->socks->closed))
			tw_held_remove(held, ts);
		cond_resched();
	}
}

static void tw_sock_uncharge(struct tw_file *file, u32 bytes)
{
	atomic_long_sub(bytes, &file->socks->memory);
	tw_user_uncharge(file->user, bytes);
}

/* Drop the reference to the socket, and free a tw_sock that no timer refers to. */
static void tw_sock_drop(struct tw_sock *ts)
{
	struct tw_file *file = ts->file;
	u32 bytes = ts->bytes;

	WARN_ON_ONCE(tw_sock_is_held(ts));
	if (ts->sk)
		tw_tcp_put(ts->sk);
	tw_free(ts, sizeof(*ts));
	tw_sock_uncharge(file, bytes);
}

/* If the program has closed the socket that a timer watches, drop the reference to the socket. */
static void tw_sock_let_go(struct tw_file *file, u32 index)
{
	u32 kept = tw_alloc_size(sizeof(struct tw_sock)), bytes = 0;
	struct tw_lookup lookup __uninitialized;
	struct tw_ctx ctx __uninitialized;
	struct sock *sk = NULL;
	struct tw_timer *t;

	/* Without a lock: most timers watch no connection. A later walk finds what it misses. */
	if (!data_race(tw_timer_has_sock(tw_timer_at(&file->table.pool, index))))
		return;
	t = tw_sock_begin(&ctx, file, index, &lookup);
	if (!t)
		return;
	/* Keep the socket while the tree is ordered by it. The timer ends soon anyway. */
	if (tw_timer_has_sock(t) && t->sock->sk && tw_tcp_closed(t->sock->sk) &&
	    !tw_sock_is_held(t->sock)) {
		swap(sk, t->sock->sk);
		bytes = t->sock->bytes - kept;
		t->sock->bytes = kept;
	}
	tw_sock_unlock(&ctx, &lookup);
	if (!sk)
		return;
	tw_tcp_put(sk);
	tw_sock_uncharge(file, bytes);
}

/* Scan TW_SOCK_SWEPT timers for closed sockets, if a scan is due. Returns true if any are left. */
static bool tw_sock_sweep(struct tw_socks *socks)
{
	u32 index = READ_ONCE(socks->sweep), n;

	if (!index)
		return false;
	for (n = 0; index && n < TW_SOCK_SWEPT; n++) {
		if (index > tw_index_max(&socks->file->table)) {
			index = 0;
		} else {
			tw_sock_let_go(socks->file, index++);
			cond_resched();
		}
	}
	WRITE_ONCE(socks->sweep, index);
	return index;
}

/* Decide about a connection, and abort it if necessary. Returns false if its socket is held. */
static bool tw_sock_try(struct tw_sock *ts, bool held)
{
	struct tw_file *file = ts->file;
	int err;

	if (!tw_sock_settle(file, ts, NULL))
		return true;
	err = held ? -EBUSY : tw_tcp_abort(ts->sk);
	if (err == -EBUSY)
		return false;
	if (!err)
		atomic64_inc(&file->socks->aborted);
	tw_sock_settle(file, ts, &err);
	return true;
}

/* Handle a connection that was taken off the list. */
static void tw_sock_handle(struct tw_sock *ts)
{
	struct tw_held *held = &ts->file->user->held;
	struct tw_sock *other;

	/* Pairs with tw_sock_queue(); litmus sock-end. */
	if (atomic_fetch_andnot(TW_SOCK_QUEUED, &ts->flags) & TW_SOCK_ENDED) {
		tw_held_remove(held, ts);
		tw_sock_drop(ts);
		return;
	}
	other = tw_held_from(held, (unsigned long)ts->sk);
	if (!tw_sock_try(ts, other && other->sk == ts->sk))
		tw_held_add(held, ts);
}

/* Continue a round of tries at held sockets. */
static void tw_held_round(struct tw_held *held)
{
	u64 now = ktime_get_ns(), saved = TW_SOCK_TURN * TW_SOCK_HELD_NS;
	struct tw_sock *ts;
	unsigned int n;

	held->next = max(held->next, now - min(now, saved));
	for (n = 0; n < TW_SOCK_TURN; n++) {
		ts = tw_held_from(held, held->from);
		if (!ts) {
			held->from = 0;
			held->at = jiffies + held->delay;
			held->delay = min_t(unsigned long, 2 * held->delay, TW_SOCK_HELD_MAX);
			return;
		}
		if (held->next > now) {
			held->at = jiffies + nsecs_to_jiffies(held->next - now) + 1;
			return;
		}
		held->next += TW_SOCK_HELD_NS;
		held->from = (unsigned long)ts->sk;
		if (tw_sock_try(ts, false))
			tw_held_remove(held, ts);
		else
			held->from++;
		cond_resched();
	}
}

/* Handle connections of a file for one turn. Returns true if there are more. */
static bool tw_sock_turn(struct tw_socks *socks)
{
	struct llist_node *node;
	unsigned int n;

	for (n = 0; n < TW_SOCK_TURN; n++) {
		/* The order does not matter, and reversing a list of a million takes too long. */
		if (!socks->taken)
			socks->taken = llist_del_all(&socks->todo);
		node = socks->taken;
		if (!node)
			return false;
		socks->taken = node->next;
		tw_sock_handle(llist_entry(node, struct tw_sock, node));
		cond_resched();
	}
	return socks->taken || !llist_empty(&socks->todo);
}

/**
 * tw_sock_kick - make the worker handle the connections that were handed to it
 * @file: the file
 *
 * Context: any, no raw lock held.
 */
void tw_sock_kick(struct tw_file *file)
{
	struct tw_socks *socks = tw_file_socks(file);

	/* Pairs with the xchg() in tw_sock_work(); litmus sock-kick. */
	if (!xchg(&socks->kicked, true)) {
		llist_add(&socks->node, &file->user->sock_files);
		mod_delayed_work(tw_socks_wq, &file->user->sock_work, 0);
	}
}

/* tw_socks.sweeper: make the worker scan for closed sockets. */
static void tw_sock_sweep_begin(struct work_struct *work)
{
	struct tw_socks *socks = container_of(to_delayed_work(work), struct tw_socks, sweeper);

	/* A scan that takes longer than a minute continues to its end. */
	if (!READ_ONCE(socks->sweep))
		WRITE_ONCE(socks->sweep, 1);
	tw_sock_kick(socks->file);
	/* An ADD that is missed here queues the work again. */
	if (atomic_read(&socks->count))
		queue_delayed_work(tw_socks_wq, &socks->sweeper, TW_SOCK_SWEEP);
}

/**
 * tw_sock_waiting - will the worker handle connections of a file?
 * @file: the file
 *
 * Context: any.
 * Return: true if so. Without a lock the answer may be stale at once.
 */
bool tw_sock_waiting(struct tw_file *file)
{
	struct tw_socks *socks = tw_file_socks(file);

	return socks && (READ_ONCE(socks->kicked) || READ_ONCE(file->user->held.tree.rb_node));
}

/**
 * tw_sock_work - handle the connections of a user, a turn for each file
 * @work: tw_user.sock_work
 */
void tw_sock_work(struct work_struct *work)
{
	struct tw_user *user = container_of(to_delayed_work(work), struct tw_user, sock_work);
	struct llist_node *files = llist_del_all(&user->sock_files);
	struct tw_held *held = &user->held;
	struct tw_socks *socks, *next;
	bool cover;

	llist_for_each_entry_safe(socks, next, files, node) {
		/* Before the list is read: additions after that kick again; litmus sock-kick. */
		xchg(&socks->kicked, false);
		cover = tw_cover_begin(socks->file);
		/* A closed file is not put back: see tw_sock_quiesce(). */
		if (!READ_ONCE(socks->closed) && (tw_sock_turn(socks) | tw_sock_sweep(socks)))
			tw_sock_kick(socks->file);
		tw_cover_end(cover);
	}
	/* A closed file gets no further turn, so no code puts its connections back. */
	if (READ_ONCE(held->purge)) {
		WRITE_ONCE(held->purge, false);
		tw_held_purge(held);
	}
	if (RB_EMPTY_ROOT(&held->tree))
		return;
	if (time_after_eq(jiffies, held->at))
		tw_held_round(held);
	/* A kick runs it earlier. */
	queue_delayed_work(tw_socks_wq, &user->sock_work,
			   time_before(jiffies, held->at) ? held->at - jiffies : 0);
}

/**
 * tw_sock_close - the file is closed: stop the worker from handling it
 * @file: the file
 *
 * Context: process, may sleep.
 */
void tw_sock_close(struct tw_file *file)
{
	if (!file->socks)
		return;
	WRITE_ONCE(file->socks->closed, true);
	cancel_delayed_work_sync(&file->socks->sweeper);
}

/**
 * tw_sock_quiesce - take all closed files of a user from the worker
 * @user: the user
 *
 * The worker runs once more. It takes all files off its list and does not put closed files back.
 * Then it takes their connections out of the tree. Cancelling the worker and searching the list for
 * the files would not suffice: the worker may be started for another file of the user at any time,
 * and may then find the closed files first.
 *
 * Context: process, may sleep. A grace period has passed since the files were taken out of their
 * engines, so only the worker itself kicks it for them.
 */
void tw_sock_quiesce(struct tw_user *user)
{
	/* Only the one task that frees the user's wheels gets here. */
	WRITE_ONCE(user->held.purge, true);
	mod_delayed_work(tw_socks_wq, &user->sock_work, 0);
	flush_delayed_work(&user->sock_work);
}

/* Free the connections that have ended on a list. The timers lead to the others. */
static void tw_socks_free_list(struct llist_node *node)
{
	struct tw_sock *ts;

	while (node) {
		ts = llist_entry(node, struct tw_sock, node);
		node = node->next;
		if (atomic_read(&ts->flags) & TW_SOCK_ENDED)
			tw_sock_drop(ts);
		cond_resched();
	}
}

/**
 * tw_sock_free_all - release all connections of a file
 * @file: the file, which nothing else uses any more
 *
 * Context: process, may sleep.
 */
void tw_sock_free_all(struct tw_file *file)
{
	struct tw_socks *socks = file->socks;
	struct tw_timer *t;
	u32 i;

	if (!socks)
		return;
	tw_socks_free_list(socks->taken);
	tw_socks_free_list(llist_del_all(&socks->todo));
	for (i = 1; i <= file->table.made && atomic_read(&socks->count); i++) {
		t = tw_timer_at(&file->table.pool, i);
		if (t->state != TW_FREE && tw_timer_has_sock(t)) {
			atomic_dec(&socks->count);
			tw_sock_drop(t->sock);
		}
		cond_resched();
	}
	WARN_ON_ONCE(atomic_read(&socks->count) || atomic_long_read(&socks->memory));
	tw_free(socks, sizeof(*socks));
}

/* Has an ADD_SOCKET invalid fields or flags? */
static bool tw_sock_invalid(const struct tw_file *file, const struct timerwheel_add_socket *arg)
{
	const u32 known = TIMERWHEEL_ABS | TIMERWHEEL_EXCL | TIMERWHEEL_MATCH | TIMERWHEEL_SLACK |
			  TIMERWHEEL_SOCKET_ABORT;

	return arg->flags & ~known || arg->kind > TIMERWHEEL_SOCKET_HALF_CLOSED ||
	       arg->grace > TIMERWHEEL_SOCKET_TIME_MAX ||
	       (arg->grace && !(arg->flags & TIMERWHEEL_SOCKET_ABORT)) ||
	       (arg->kind != TIMERWHEEL_SOCKET_LIFETIME &&
		(arg->flags & TIMERWHEEL_ABS || arg->deadline - 1 >= TIMERWHEEL_SOCKET_TIME_MAX));
}

static struct tw_sock *__tw_sock_make(struct tw_file *file, struct sock *sk,
				      const struct timerwheel_add_socket *arg)
{
	/* The reference keeps the memory of a closed socket. */
	u32 bytes = tw_alloc_size(sizeof(struct tw_sock)) + tw_tcp_size(sk);
	struct tw_sock *ts;
	int err;

	err = tw_tcp_check(sk);
	if (!err)
		err = tw_user_charge(file->user, bytes);
	if (err)
		return ERR_PTR(err);
	ts = tw_alloc(sizeof(*ts));
	if (!ts) {
		tw_user_uncharge(file->user, bytes);
		return ERR_PTR(-ENOMEM);
	}
	atomic_long_add(bytes, &file->socks->memory);
	tw_tcp_hold(sk);
	RB_CLEAR_NODE(&ts->held);
	ts->sk = sk;
	ts->file = file;
	ts->bytes = bytes;
	ts->kind = arg->kind;
	ts->abort = arg->flags & TIMERWHEEL_SOCKET_ABORT;
	ts->grace = arg->grace;
	if (arg->kind != TIMERWHEEL_SOCKET_LIFETIME)
		ts->timeout = arg->deadline;
	return ts;
}

static struct tw_sock *tw_sock_make(struct tw_file *file, const struct timerwheel_add_socket *arg)
{
	struct socket *socket;
	struct tw_sock *ts;
	int err;

	if (!tw_tcp_supported())
		return ERR_PTR(-EOPNOTSUPP);
	socket = sockfd_lookup(arg->fd, &err);
	if (!socket)
		return ERR_PTR(err);
	ts = __tw_sock_make(file, socket->sk, arg);
	sockfd_put(socket);
	return ts;
}

/* Take a timer for the warning. Returns false if no free timer is at hand. */
static bool tw_sock_take_warning(struct tw_ctx *ctx, struct tw_sock *ts)
{
	struct tw_timer *warning = tw_cpu_alloc(ctx->cpu, &ts->warning);

	if (!warning)
		return false;
	warning->stay = TW_WARNING;
	warning->sock = ts;
	WRITE_ONCE(warning->state, TW_CLAIMED);
	return true;
}

/* Arm a timer in a batch. Returns TIMERWHEEL_WAS_*, a documented error, or -EAGAIN as tw_add(). */
static int tw_sock_arm(struct tw_ctx *ctx, struct timerwheel_add_socket *arg, struct tw_sock *ts)
{
	u64 deadline = ts->timeout ? ctx->now + ts->timeout :
		       tw_clock_deadline(arg->deadline, arg->flags & TIMERWHEEL_ABS, ctx->now,
					 ctx->offset);
	struct timerwheel_add add = {
		.key = arg->key,
		.value = arg->value,
		/* Not due at once: the worker must decide first. */
		.deadline = max(deadline, ctx->now + 1),
		.slack = arg->slack,
		.match = arg->match,
		.flags = (arg->flags & ~TIMERWHEEL_SOCKET_ABORT) | TIMERWHEEL_ABS,
	};
	const struct tw_setup *setup = &ctx->file->setup;
	int was;

	if (setup->table || setup->clock == TIMERWHEEL_CLOCK_MANUAL)
		return -EINVAL;
	if (ts->grace && !tw_sock_take_warning(ctx, ts))
		return -EAGAIN;
	ts->since = tw_tcp_now();
	/* The deadline is on the file's clock already. */
	ctx->offset = 0;
	was = tw_add_any(ctx, &add, tw_hint_of(ctx, arg->key), ts);
	if (was < 0) {
		tw_sock_free_warning(ctx, ts);
		return was;
	}
	/* The base is still locked, so no other code reads the index before. */
	ts->index = add.index;
	atomic_inc(&ctx->file->socks->count);
	arg->index = add.index;
	arg->generation = add.generation;
	return was;
}

/* Prepare a file for connections. Returns 0, -EDQUOT or -ENOMEM. */
static int tw_socks_make(struct tw_file *file)
{
	size_t bytes = tw_alloc_size(sizeof(struct tw_socks));
	struct tw_socks *socks;
	int err = 0;

	if (likely(tw_file_socks(file)))
		return 0;
	mutex_lock(&file->mutex);
	if (file->socks)
		goto unlock;
	err = tw_charge(file, bytes);
	if (err)
		goto unlock;
	socks = tw_alloc(sizeof(*socks));
	if (!socks) {
		tw_uncharge(file, bytes);
		err = -ENOMEM;
		goto unlock;
	}
	socks->file = file;
	/* It does not wake an idle CPU. */
	INIT_DEFERRABLE_WORK(&socks->sweeper, tw_sock_sweep_begin);
	/* Pairs with the address dependency in tw_file_socks(); litmus dependency. */
	smp_store_release(&file->socks, socks);
unlock:
	mutex_unlock(&file->mutex);
	return err;
}

/* ADD_SOCKET of one timer. Returns TIMERWHEEL_WAS_* or a documented error. */
static int tw_sock_add_one(struct tw_file *file, struct timerwheel_add_socket *arg, u64 offset)
{
	unsigned int tries = TW_SOCK_TRIES;
	struct tw_ctx ctx __uninitialized;
	u32 other = TW_NO_CPU;
	struct tw_sock *ts;
	int was;

	if (tw_sock_invalid(file, arg))
		return -EINVAL;
	was = tw_socks_make(file);
	if (was)
		return was;
	ts = tw_sock_make(file, arg);
	if (IS_ERR(ts))
		return PTR_ERR(ts);
	do {
		was = tw_cpu_begin_with(&ctx, file, offset, other);
		if (!was) {
			was = tw_sock_arm(&ctx, arg, ts);
			tw_cpu_end(&ctx);
		}
		if (was != -EAGAIN)
			break;
		other = ctx.wants;
		was = 0;
		if (other == TW_NO_CPU) {
			was = tw_table_grow(file);
			/* A single free timer is not enough for a timer and its warning. */
			if (!was && !--tries)
				was = -ENOSPC;
		} else if (!tw_cpu_again()) {
			was = -EINTR;
		}
	} while (!was);
	if (was < 0)
		tw_sock_drop(ts);
	else
		queue_delayed_work(tw_socks_wq, &file->socks->sweeper, TW_SOCK_SWEEP);
	return was;
}

/**
 * tw_sock_add - TIMERWHEEL_IOC_ADD_SOCKET
 * @file: the file
 * @batch: the call, its fields checked
 *
 * Context: process, may sleep.
 * Return: elements done, or an error if there are none.
 */
long tw_sock_add(struct tw_file *file, const struct timerwheel_batch *batch)
{
	const size_t out = offsetof(struct timerwheel_add_socket, flags);
	struct timerwheel_add_socket __user *user = u64_to_user_ptr(batch->elems);
	u64 offset = tw_clock_offset(READ_ONCE(file->setup.clock));
	struct timerwheel_add_socket arg;
	long done = 0;		/* signed, as errors are */

	while (done < batch->count) {
		/* An element whose result cannot be copied out is not begun. */
		if (copy_from_user(&arg, user, sizeof(arg)) ||
		    copy_to_user(&user->flags, &arg.flags, sizeof(arg) - out))
			return done ? done : -EFAULT;
		arg.result = tw_sock_add_one(file, &arg, offset);
		done++;
		/* The operation took effect, so a failed copy-out is not an error. */
		if (copy_to_user(&user->flags, &arg.flags, sizeof(arg) - out))
			break;
		user++;
		if (done == batch->count || signal_pending(current))
			break;
		cond_resched();
	}
	return done;
}
