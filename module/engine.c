// SPDX-License-Identifier: GPL-2.0-only
/*
 * The expiry engine: one per CPU, for the bases of all wheels.
 *
 * A base (struct tw_cpu) knows when it has work next. The engine of its CPU keeps the bases in
 * order and starts one hrtimer per clock, for the earliest base. When the hrtimer fires, the engine
 * runs the bases that have work. So wheels whose timers fall into the same tick share an interrupt,
 * and one place limits the CPU time of all of them together.
 *
 * Turns
 * -----
 * A turn is one expiry batch of one base. The bases of a user on a CPU and clock form a queue.
 * Queues take turns, and within a queue its bases take turns. A base or queue that has work now is
 * on a list, in the order of turns. A base or queue that will have work later is in a tree, ordered
 * by time. Before each turn at most TW_DUE_MAX entries whose time has come move from the tree to
 * the end of the list. A turn takes one entry off the list, so the tree cannot fall behind, and the
 * lock is not held for long. Hence a burst of one wheel delays another wheel of the same user by
 * the turns of that user's wheels, and a wheel of another user by one turn for each user and clock.
 *
 * A container can have any number of users. Their queues are in a queue of the container, which
 * takes turns with the queues of other users and has the share of one user.
 *
 * Budget
 * ------
 * All turns on a CPU together may take TW_SHARE percent of its time, so that ordinary tasks keep
 * more than half. Unused time is saved, up to TW_SAVED_NS (struct tw_pace, a generic cell rate
 * algorithm), so a wheel with little work never waits for its share.
 *
 * A firing is one run of the hrtimer's handler, in soft interrupt context, which the scheduler does
 * not control. It lasts at most TW_BUDGET_NS, and the next firing begins only after the same time
 * has passed again. If a queue has taken TW_QUANTUM_NS in a firing and still has work, it is
 * deferred: its turns continue in the engine's thread (timerwheel/N) until it has no more work. The
 * thread has the lowest real-time priority. Ordinary tasks do not delay the thread, since it leaves
 * them their share, and it does not delay real-time tasks. While no other task wants the CPU the
 * thread seldom pauses (TW_ALONE_NS). It leaves TW_RESERVE_NS of the saved time to firings, so that
 * one user's burst does not delay the wheels of others.
 *
 * Limits of a user
 * ----------------
 * Soft interrupts and the thread belong to no control group, so a limit of the group such as
 * cpu.max does not apply to the turns. The engine limits them itself. While other tasks want the
 * CPU, all turns of a user there may take TW_USER_SHARE percent of its time (struct tw_share).
 * Unused time is saved up to TW_USER_SAVED_NS, so a burst of about ten thousand timers does not use
 * up the share. The first turn of a firing is also charged with the interrupt.
 *
 * The queues of a user who has used up the share are deferred. When the thread comes to such a
 * queue and another task wants the CPU, the queue pauses: whatever its own clock, it is in the tree
 * of CLOCK_MONOTONIC until TW_USER_RESUME_NS have been earned. Neither starting nor closing a base
 * ends the pause. If a firing then finds that it has interrupted the idle task, the user gets
 * TW_USER_IDLE_NS. Without this rule the user's own readers, which also want the CPU, would slow
 * down the user's timers on a CPU that is idle most of the time.
 *
 * While the thread is parked no queue pauses, and the budget alone limits all turns.
 *
 * Locks and lifetimes
 * -------------------
 * tw_engine.lock is taken inside a base's lock (tw_engine_start()), so it is released for each
 * turn. During the turn the base is TW_NOWHERE. No work is lost:
 *
 * - A base with no more work now is started under its own lock, at the end of its turn.
 * - The code that ran a base with more work puts it on the list. Until then the base counts as
 *   started for the earliest time possible (tw_cpu.programmed), so no other code starts it.
 *
 * Turns run with bottom halves off, hence as RCU readers. Bases, files and users are freed after a
 * grace period, and a base that was removed is never put back (TW_REMOVED). So a turn needs no
 * reference.
 *
 * CPU hotplug
 * -----------
 * When a CPU goes offline the kernel moves the hrtimers of its engine to another CPU. The engine
 * continues there, within the pace of that CPU. First the thread is parked: it hands the deferred
 * queues back to the soft interrupt, and no queue is deferred until it is unparked. When the CPU is
 * online again the thread starts the hrtimers there.
 *
 * Setting the clock
 * -----------------
 * When CLOCK_REALTIME is set forwards the kernel fires its hrtimers. Setting it back does not
 * affect entries on lists. A base in a tree is started again when its wheel notices the change
 * (tw_cpu_clock_set_back()). Until then its timers are late on that clock.
 */
#include <linux/hrtimer.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/stat.h>
#include <linux/slab.h>
#include <linux/smpboot.h>

#include "clock.h"
#include "cover.h"
#include "cpu.h"
#include "engine.h"
#include "internal.h"
#include "memory.h"

/* Entities that move from a tree to a list before a turn: two, because a turn takes one off. */
#define TW_DUE_MAX	2U

/* Longest firing; its last turn is completed even if that takes longer. */
#define TW_BUDGET_NS	(50 * NSEC_PER_USEC)

/* A firing begins only if at least this much time is saved. */
#define TW_BUDGET_MIN_NS	(10 * NSEC_PER_USEC)

/* A queue with more work is deferred after this long, or a quarter of the budget if less. */
#define TW_QUANTUM_NS	(25 * NSEC_PER_USEC)

/* A turn or firing is charged at most this. */
#define TW_DEBT_NS	(IS_ENABLED(CONFIG_PREEMPT_RT) ? TW_SAVED_NS : 10 * NSEC_PER_MSEC)

/*
 * While the thread is alone on the CPU, it runs for this long and then sleeps for half of that
 * time. Otherwise the kernel would throttle all real-time tasks for leaving too little time to
 * others.
 */
#define TW_ALONE_NS	(5 * NSEC_PER_MSEC)

/* CPU time of an interrupt, or of a sleep of the thread, besides the turns. */
#define TW_SWITCH_NS	(4 * NSEC_PER_USEC)

/* Share of a CPU's time that turns may take, in percent. */
#define TW_SHARE	40U

/* Share of a CPU's time that turns of one user may take while other tasks want it, in percent */
#define TW_USER_SHARE	10U

/*
 * A user's saved time is limited to this. A turn is charged at most the same: if a machine stops
 * once, a user who had not used the share does not pause.
 */
#define TW_USER_SAVED_NS	(5 * NSEC_PER_MSEC)

/* A user who has used up the share pauses until this much has been earned. */
#define TW_USER_RESUME_NS	(100 * NSEC_PER_USEC)

/* If the CPU is idle at the end of the pause, the user has at least this much. */
#define TW_USER_IDLE_NS		NSEC_PER_MSEC

/* Saved time is limited to this. */
#define TW_SAVED_NS	(100 * NSEC_PER_USEC)

/* The thread leaves this much saved time to firings. */
#define TW_RESERVE_NS	(20 * NSEC_PER_USEC)

/* The thread serves one kick in this time, because each kick preempts ordinary tasks. */
#define TW_KICK_NS	(100 * NSEC_PER_USEC)

/**
 * struct tw_engine_clock - part of an engine for one clock
 * @timer: fires when the first queue in @timed has work
 * @timed: queues that will have work, ordered by the time of their first base
 * @programmed: when @timer expires; TW_NEVER: it is not started
 * @engine: its engine; constant
 *
 * Protected by the engine's lock.
 */
struct tw_engine_clock {
	struct hrtimer timer;
	struct timerqueue_head timed;
	u64 programmed;
	struct tw_engine *engine;
};

/**
 * struct tw_engine - the expiry engine of a CPU
 * @lock: protects all that follows, and the queues
 * @ready: queues that have work now, for the soft interrupt
 * @deferred: queues that have work now, for the thread
 * @running: number of firings in progress; they start the hrtimers when they end
 * @firing: number of the last firing
 * @threaded: the thread is not parked
 * @kick: the thread must start the hrtimers
 * @kick_next: it waits until this time, in ns of CLOCK_MONOTONIC
 * @nr: the CPU; constant
 * @clock: for each clock
 */
struct tw_engine {
	raw_spinlock_t lock;
	struct list_head ready;
	struct list_head deferred;
	u32 running;
	u32 firing;
	bool threaded;
	bool kick;
	u64 kick_next;
	u32 nr;
	struct tw_engine_clock clock[TW_CLOCKS];
};

static DEFINE_PER_CPU(struct tw_engine, tw_engines);
static DEFINE_PER_CPU(struct task_struct *, tw_threads);

/**
 * struct tw_pace - limits the CPU time of turns
 * @next: when the time that turns have used will be earned again, in ns of CLOCK_MONOTONIC
 * @rest: no firing begins before this time
 *
 * It belongs to the CPU that runs the turns, which after hotplug is not the engine's CPU. Accessed
 * with bottom halves off. With PREEMPT_RT two tasks may update it at the same time. Then one update
 * is lost, and the CPU time of those turns is not limited.
 */
struct tw_pace {
	u64 next;
	u64 rest;
};

static DEFINE_PER_CPU(struct tw_pace, tw_pace);

/* The time it takes to earn @ns of turns. */
static u64 tw_pace_earn(u64 ns)
{
	return ns * 100 / TW_SHARE;
}

/* The saved time. */
static u64 tw_pace_saved(u64 now)
{
	u64 next = this_cpu_read(tw_pace.next);

	return now > next ? min_t(u64, now - next, tw_pace_earn(TW_SAVED_NS)) * TW_SHARE / 100 : 0;
}

/* The time until @saved ns are saved. */
static u64 tw_pace_until(u64 now, u64 saved)
{
	u64 then = this_cpu_read(tw_pace.next) + tw_pace_earn(saved);

	return then > now ? then - now : 0;
}

/*
 * Charge @ns for turns that have just ended. The charge is limited because with PREEMPT_RT the
 * turns may have been preempted. Without it they take that long only if the machine stops.
 */
static void tw_pace_spend(u64 now, u64 ns)
{
	u64 most = tw_pace_earn(TW_SAVED_NS);
	u64 next = this_cpu_read(tw_pace.next);

	next = max(next, now > most ? now - most : 0);
	this_cpu_write(tw_pace.next, next + tw_pace_earn(min_t(u64, ns, TW_DEBT_NS)));
}

/* No other task wanted the CPU: forgive the time used, except for the reserve of firings. */
static void tw_pace_forgive(u64 now)
{
	u64 next = now - tw_pace_earn(TW_RESERVE_NS);

	if (this_cpu_read(tw_pace.next) > next)
		this_cpu_write(tw_pace.next, next);
}

/* The time until a firing may begin; 0: it may begin now. */
static u64 tw_pace_wait(void)
{
	u64 now = ktime_get_ns();
	u64 rest = this_cpu_read(tw_pace.rest);

	return max(rest > now ? rest - now : 0, tw_pace_until(now, TW_BUDGET_MIN_NS));
}

/* The time it takes a user to earn @ns of turns. */
static u64 tw_share_earn(u64 ns)
{
	return ns * 100 / TW_USER_SHARE;
}

/* Charge a user @ns for turns that have just ended. */
static void tw_share_spend(struct tw_share *share, u64 now, u64 ns)
{
	u64 most = tw_share_earn(TW_USER_SAVED_NS);

	ns = min_t(u64, ns, min_t(u64, TW_DEBT_NS, TW_USER_SAVED_NS));
	share->next = max(share->next, now > most ? now - most : 0) + tw_share_earn(ns);
	/* While the thread is parked no queue pauses, so the debt also needs a limit. */
	share->next = min(share->next, now + most);
}

/* Let a user have at least @ns, because no other task wants the CPU. */
static void tw_share_forgive(struct tw_share *share, u64 now, u64 ns)
{
	share->next = min(share->next, now - tw_share_earn(ns));
}

/* Take an entity out of the tree @timed, or off its list. */
static void tw_entity_take(struct tw_entity *entity, struct timerqueue_head *timed)
{
	if (entity->place == TW_TIMED)
		timerqueue_del(timed, &entity->node);
	else if (entity->place == TW_LISTED)
		list_del(&entity->list);
	entity->place = TW_NOWHERE;
}

static void tw_entity_time(struct tw_entity *entity, struct timerqueue_head *timed, u64 at)
{
	entity->node.expires = ns_to_ktime(min_t(u64, at, KTIME_MAX));
	timerqueue_add(timed, &entity->node);
	entity->place = TW_TIMED;
}

static void tw_entity_list(struct tw_entity *entity, struct list_head *list)
{
	list_add_tail(&entity->list, list);
	entity->place = TW_LISTED;
}

/* The earliest time in a tree; TW_NEVER if it is empty. */
static u64 tw_first_time(struct timerqueue_head *timed)
{
	struct timerqueue_node *node = timerqueue_getnext(timed);

	return node ? ktime_to_ns(node->expires) : TW_NEVER;
}

/* Move at most TW_DUE_MAX entities whose time has come to the end of @list. */
static void tw_entities_due(struct timerqueue_head *timed, u64 now, struct list_head *list)
{
	struct tw_entity *entity;
	unsigned int n;

	for (n = 0; n < TW_DUE_MAX && tw_first_time(timed) <= now; n++) {
		entity = container_of(timerqueue_getnext(timed), struct tw_entity, node);
		tw_entity_take(entity, timed);
		tw_entity_list(entity, list);
	}
}

/* The tree of a queue that is TW_TIMED: the tree of CLOCK_MONOTONIC while it pauses. */
static struct timerqueue_head *tw_queue_tree(struct tw_queue *queue)
{
	u32 clock = queue->paused ? TIMERWHEEL_CLOCK_MONOTONIC : queue->clock;

	return queue->parent ? &queue->parent->timed : &queue->engine->clock[clock].timed;
}

/* The share that the CPU time of a queue's turns is charged to. */
static struct tw_share *tw_queue_share(struct tw_queue *queue)
{
	return &queue->user->share[queue->engine->nr];
}

/* Pause a queue until its user, who has used up the share, has earned more. */
static void tw_queue_pause(struct tw_queue *queue)
{
	u64 at = tw_queue_share(queue)->next + tw_share_earn(TW_USER_RESUME_NS);

	lockdep_assert_held(&queue->engine->lock);
	tw_entity_take(&queue->entity, tw_queue_tree(queue));
	queue->paused = true;
	tw_entity_time(&queue->entity, tw_queue_tree(queue), at);
}

static bool tw_queue_pauses(struct tw_queue *queue)
{
	return queue->entity.place == TW_TIMED && queue->paused;
}

/* Put a queue on @list if it has work now, else into its tree or nowhere. */
static void tw_queue_settle(struct tw_queue *queue, struct list_head *list, u64 now)
{
	u64 first = tw_first_time(&queue->timed);
	struct timerqueue_head *timed;

	lockdep_assert_held(&queue->engine->lock);
	tw_entity_take(&queue->entity, tw_queue_tree(queue));
	queue->paused = false;
	timed = tw_queue_tree(queue);
	if (!list_empty(&queue->ready) || first <= now)
		tw_entity_list(&queue->entity, list);
	else if (first != TW_NEVER)
		tw_entity_time(&queue->entity, timed, first);
}

/* The list for a queue that has work now and is on none. */
static struct list_head *tw_queue_list(struct tw_queue *queue)
{
	return queue->parent ? &queue->parent->ready : &queue->engine->ready;
}

/* When the hrtimer of a clock must expire: TW_NEVER if it has no work. */
static u64 tw_clock_first(struct tw_engine *engine, u32 nr)
{
	/* Queues that have work now can use any clock. */
	if (nr == TIMERWHEEL_CLOCK_MONOTONIC && !list_empty(&engine->ready))
		return 0;
	return tw_first_time(&engine->clock[nr].timed);
}

/*
 * Make the thread start the hrtimers. Until it does, it needs no further wake-up: it runs, or
 * sleeps until it may serve the kick.
 */
static void tw_engine_kick(struct tw_engine *engine)
{
	lockdep_assert_held(&engine->lock);
	if (engine->kick)
		return;
	WRITE_ONCE(engine->kick, true);
	wake_up_process(*per_cpu_ptr(&tw_threads, engine->nr));
}

/*
 * Start the hrtimers that must expire earlier than they are programmed to. An hrtimer fires on the
 * CPU that started it, and the engine must stay on its CPU. A task on another CPU gets here if it
 * uses a base of this engine because there was no memory for its own base. It leaves the start to
 * the thread.
 */
static void tw_engine_program(struct tw_engine *engine)
{
	struct tw_engine_clock *clock;
	u64 at, wait;
	u32 i;

	lockdep_assert_held(&engine->lock);
	if (engine->running)
		return;
	wait = tw_pace_wait();
	for (i = 0; i < TW_CLOCKS; i++) {
		clock = &engine->clock[i];
		at = tw_clock_first(engine, i);
		if (at >= clock->programmed)
			continue;
		if (unlikely(engine->threaded && smp_processor_id() != engine->nr)) {
			tw_engine_kick(engine);
			return;
		}
		if (wait || !at)
			at = max(at, tw_clock_read(i) + wait);
		if (at >= clock->programmed)
			continue;
		clock->programmed = at;
		hrtimer_start(&clock->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_PINNED_SOFT);
	}
}

/* The time of a clock. @mono is the time of CLOCK_MONOTONIC, to avoid reading it again. */
static u64 tw_clock_at(u32 clock, u64 mono)
{
	return clock == TIMERWHEEL_CLOCK_MONOTONIC ? mono : tw_clock_read(clock);
}

/*
 * Run one turn of a queue, which begins at @mono. Releases the engine's lock during the turn.
 * Returns the time at the end.
 */
static u64 tw_engine_turn(struct tw_engine *engine, struct tw_queue *queue, u64 mono)
	__must_hold(&engine->lock)
{
	u64 now = tw_clock_at(queue->clock, mono);
	struct tw_entity *entity;
	struct tw_cpu *cpu;
	bool more, cover;

	lockdep_assert_held(&engine->lock);
	tw_entities_due(&queue->timed, now, &queue->ready);
	entity = list_first_entry_or_null(&queue->ready, struct tw_entity, list);
	if (entity && queue->user->is_container) {
		queue = container_of(entity, struct tw_queue, entity);
		tw_entities_due(&queue->timed, now, &queue->ready);
		entity = list_first_entry_or_null(&queue->ready, struct tw_entity, list);
	}
	if (!entity)
		goto out;
	tw_entity_take(entity, &queue->timed);
	raw_spin_unlock(&engine->lock);
	cpu = container_of(entity, struct tw_cpu, entity);
	cover = tw_cover_begin(cpu->file);
	more = tw_cpu_run(cpu, mono);
	tw_cover_end(cover);
	raw_spin_lock(&engine->lock);
	/* To the end of the list, unless it was listed or removed meanwhile. */
	if (more && (entity->place == TW_NOWHERE || entity->place == TW_TIMED)) {
		tw_entity_take(entity, &queue->timed);
		tw_entity_list(entity, &queue->ready);
	}
out:
	if (queue->parent)
		tw_queue_settle(queue, &queue->parent->ready, now);
	/* Includes the wake-ups, so a user's queue is charged for waking its readers. */
	return ktime_get_ns();
}

/* The queue that has the next turn, at @mono; NULL if none has work now. */
static struct tw_queue *tw_engine_next(struct tw_engine *engine, u64 mono)
{
	struct tw_engine_clock *clock;
	u32 i;

	lockdep_assert_held(&engine->lock);
	for (i = 0; i < TW_CLOCKS; i++) {
		clock = &engine->clock[i];
		if (timerqueue_getnext(&clock->timed))
			tw_entities_due(&clock->timed, tw_clock_at(i, mono), &engine->ready);
	}
	return list_first_entry_or_null(&engine->ready, struct tw_queue, entity.list);
}

/*
 * Run turns until there is no more work, or @budget is used up; it counts from @began. Returns true
 * if the caller must wake the thread while a queue is deferred.
 */
static bool tw_engine_turns(struct tw_engine *engine, u64 began, u64 budget)
	__must_hold(&engine->lock)
{
	u64 quantum = min_t(u64, TW_QUANTUM_NS, budget / 4);
	u64 before, now = began, cost = TW_SWITCH_NS;
	struct list_head *list;
	struct tw_queue *queue;
	struct tw_share *share;
	bool wake = false;

	lockdep_assert_held(&engine->lock);
	engine->firing++;
	do {
		queue = tw_engine_next(engine, now);
		if (!queue)
			break;
		share = tw_queue_share(queue);
		if (queue->paused && is_idle_task(current))
			tw_share_forgive(share, now, TW_USER_IDLE_NS);
		if (share->firing != engine->firing) {
			share->firing = engine->firing;
			share->spent = 0;
		}
		before = now;
		now = tw_engine_turn(engine, queue, now);
		share->spent += now - before;
		/* The user who has the first turn pays for the interrupt. */
		tw_share_spend(share, now, now - before + cost);
		cost = 0;
		list = engine->threaded && (share->spent >= quantum || share->next > now) ?
		       &engine->deferred : &engine->ready;
		/*
		 * If other queues are on the list, the thread was woken, or sleeps until it may
		 * continue. With PREEMPT_RT it may run between two turns here, so only the present
		 * list counts.
		 */
		wake |= list == &engine->deferred && list_empty(list);
		tw_queue_settle(queue, list, tw_clock_at(queue->clock, now));
	} while (now - began < budget);
	return wake;
}

static enum hrtimer_restart tw_engine_fire(struct hrtimer *timer)
{
	struct tw_engine_clock *clock = container_of(timer, struct tw_engine_clock, timer);
	struct tw_engine *engine = clock->engine;
	struct task_struct *thread = NULL;
	u64 began = ktime_get_ns(), now;
	bool wake = false;

	raw_spin_lock(&engine->lock);
	clock->programmed = TW_NEVER;
	if (!tw_pace_wait()) {
		engine->running++;
		wake = tw_engine_turns(engine, began,
				       min_t(u64, tw_pace_saved(began), TW_BUDGET_NS));
		engine->running--;
		now = ktime_get_ns();
		tw_pace_spend(now, now - began + TW_SWITCH_NS);
		this_cpu_write(tw_pace.rest, now + min_t(u64, now - began, TW_DEBT_NS));
	}
	tw_engine_program(engine);
	if (wake && !list_empty(&engine->deferred))
		thread = *per_cpu_ptr(&tw_threads, engine->nr);
	raw_spin_unlock(&engine->lock);
	if (thread)
		wake_up_process(thread);
	return HRTIMER_NORESTART;
}

static int tw_thread_should_run(unsigned int nr)
{
	struct tw_engine *engine = per_cpu_ptr(&tw_engines, nr);

	/* smpboot_thread_fn() has set the task's state before; litmus engine-thread. */
	return !list_empty_careful(&engine->deferred) || READ_ONCE(engine->kick);
}

/*
 * Serve a kick: start the hrtimers on this CPU, whichever CPU started them before. Returns the time
 * for which the kick must wait instead; 0: it was served, or there is none.
 */
static u64 tw_thread_kicked(struct tw_engine *engine, u64 now)
{
	u32 i;

	lockdep_assert_held(&engine->lock);
	if (likely(!engine->kick))
		return 0;
	if (now < engine->kick_next)
		return engine->kick_next - now;
	engine->kick_next = now + TW_KICK_NS;
	WRITE_ONCE(engine->kick, false);
	for (i = 0; i < TW_CLOCKS; i++)
		engine->clock[i].programmed = TW_NEVER;
	tw_pace_spend(now, TW_SWITCH_NS);
	tw_engine_program(engine);
	return 0;
}

/* The time for which the thread must sleep now. It has run since @began and has more to run. */
static u64 tw_thread_wait(u64 began, u64 now)
{
	/* No other task wants the CPU. */
	if (single_task_running()) {
		tw_pace_forgive(now);
		return now - began < TW_ALONE_NS ? 0 : TW_ALONE_NS / 2;
	}
	if (tw_pace_saved(now) > TW_RESERVE_NS)
		return 0;
	return tw_pace_until(now, TW_RESERVE_NS + TW_BUDGET_NS);
}

/* Sleep for @ns in spite of wake-ups, and serve kicks during that time. */
static void tw_thread_sleep(struct tw_engine *engine, u64 ns)
{
	u64 now = ktime_get_ns(), end = now + ns, at;
	ktime_t until;

	do {
		at = end;
		/* Pairs with the wake-up in tw_engine_kick(); litmus engine-thread. */
		set_current_state(TASK_IDLE);
		if (unlikely(READ_ONCE(engine->kick))) {
			/* Only this thread changes it. */
			at = min(end, engine->kick_next);
			if (now >= at) {
				__set_current_state(TASK_RUNNING);
				tw_lock_bh(&engine->lock);
				tw_thread_kicked(engine, now);
				tw_unlock_bh(&engine->lock);
			}
		}
		/* Returns at once in TASK_RUNNING, so that a new kick is served. */
		until = ns_to_ktime(at);
		schedule_hrtimeout_range(&until, at > now ? (at - now) / 4 : 0, HRTIMER_MODE_ABS);
		now = ktime_get_ns();
	} while (now < end);
}

/*
 * Run turns of deferred queues for a quantum, which counts from @began. If another task wants the
 * CPU, queues of users who have used up their share pause instead.
 */
static void tw_thread_quantum(struct tw_engine *engine, u64 began)
	__must_hold(&engine->lock)
{
	struct tw_queue *queue;
	struct tw_share *share;
	u64 before, now = began;

	lockdep_assert_held(&engine->lock);
	do {
		queue = list_first_entry_or_null(&engine->deferred, struct tw_queue, entity.list);
		if (!queue)
			break;
		before = now;
		share = tw_queue_share(queue);
		if (single_task_running())
			tw_share_forgive(share, now, 0);
		if (share->next > now) {
			/* Charge the interrupt and the wake-up of this thread. */
			tw_share_spend(share, now, TW_SWITCH_NS);
			tw_queue_pause(queue);
			now = ktime_get_ns();
			continue;
		}
		now = tw_engine_turn(engine, queue, now);
		tw_share_spend(share, now, now - before);
		tw_queue_settle(queue, &engine->deferred, tw_clock_at(queue->clock, now));
	} while (now - began < TW_QUANTUM_NS);
}

/* Run turns of deferred queues until none has work, or until it is time to sleep. */
static void tw_thread_turns(unsigned int nr)
{
	struct tw_engine *engine = per_cpu_ptr(&tw_engines, nr);
	u64 began = ktime_get_ns(), before, now, wait;
	bool more;

	do {
		tw_lock_bh(&engine->lock);
		before = ktime_get_ns();
		wait = tw_thread_kicked(engine, before);
		more = !list_empty(&engine->deferred);
		if (more) {
			tw_thread_quantum(engine, before);
			tw_engine_program(engine);
			now = ktime_get_ns();
			tw_pace_spend(now, now - before);
			wait = tw_thread_wait(began, now);
			if (wait)
				tw_pace_spend(now, TW_SWITCH_NS);
		}
		tw_unlock_bh(&engine->lock);
		cond_resched();
	} while (more && !wait);
	if (wait)
		tw_thread_sleep(engine, wait);
}

static void tw_thread_unpark(unsigned int nr)
{
	struct tw_engine *engine = per_cpu_ptr(&tw_engines, nr);

	tw_lock_bh(&engine->lock);
	engine->threaded = true;
	/* The hrtimers moved to another CPU while this one was offline. */
	WRITE_ONCE(engine->kick, true);
	tw_unlock_bh(&engine->lock);
}

static void tw_thread_setup(unsigned int nr)
{
	sched_set_fifo_low(current);
	tw_thread_unpark(nr);
}

/* The CPU goes offline: hand the deferred queues back to the soft interrupt. */
static void tw_thread_park(unsigned int nr)
{
	struct tw_engine *engine = per_cpu_ptr(&tw_engines, nr);

	tw_lock_bh(&engine->lock);
	engine->threaded = false;
	WRITE_ONCE(engine->kick, false);
	list_splice_tail_init(&engine->deferred, &engine->ready);
	tw_engine_program(engine);
	tw_unlock_bh(&engine->lock);
}

static struct smp_hotplug_thread tw_smp_thread = {
	.store			= &tw_threads,
	.thread_should_run	= tw_thread_should_run,
	.thread_fn		= tw_thread_turns,
	.setup			= tw_thread_setup,
	.park			= tw_thread_park,
	.unpark			= tw_thread_unpark,
	.thread_comm		= "timerwheel/%u",
};

/**
 * tw_engine_start - give a base a turn at a given time
 * @cpu: the base, locked
 * @at: when it has work, in ns of its clock; earlier than the time it is started for, if any
 *
 * Does nothing if the base is on a list already or was removed.
 */
void tw_engine_start(struct tw_cpu *cpu, u64 at)
{
	struct tw_queue *queue = cpu->queue;
	struct tw_engine *engine = queue->engine;

	lockdep_assert_held(&cpu->lock);
	raw_spin_lock(&engine->lock);
	if (cpu->entity.place == TW_NOWHERE || cpu->entity.place == TW_TIMED) {
		tw_entity_take(&cpu->entity, &queue->timed);
		tw_entity_time(&cpu->entity, &queue->timed, at);
		for (; queue; queue = queue->parent)
			if (queue->entity.place != TW_LISTED && !tw_queue_pauses(queue))
				tw_queue_settle(queue, tw_queue_list(queue), 0);
		tw_engine_program(engine);
	}
	raw_spin_unlock(&engine->lock);
}

/**
 * tw_engine_remove - take a base out of its engine for good
 * @cpu: the base
 *
 * A turn may still be in progress until a grace period has passed.
 */
void tw_engine_remove(struct tw_cpu *cpu)
{
	struct tw_queue *queue = cpu->queue;
	struct tw_engine *engine = queue->engine;
	struct tw_engine_clock *clock;
	u32 i;

	tw_lock_bh(&engine->lock);
	tw_entity_take(&cpu->entity, &queue->timed);
	cpu->entity.place = TW_REMOVED;
	/*
	 * Without bases the queue must leave the engine, since the user may be freed. A queue that
	 * is listed because the time of another base has come must stay listed: it may be on the
	 * thread's list, for which no hrtimer is started. A pause does not end either.
	 */
	for (; queue; queue = queue->parent)
		if ((queue->entity.place == TW_TIMED && !queue->paused) ||
		    (list_empty(&queue->ready) && !timerqueue_getnext(&queue->timed)))
			tw_queue_settle(queue, tw_queue_list(queue), 0);
	/* The queue's clock may need no hrtimer now, or the ready list none. */
	for (i = 0; i < TW_CLOCKS; i++) {
		clock = &engine->clock[i];
		/* A handler that runs already finds no work. */
		if (clock->programmed != TW_NEVER && tw_clock_first(engine, i) == TW_NEVER &&
		    hrtimer_try_to_cancel(&clock->timer) >= 0)
			clock->programmed = TW_NEVER;
	}
	tw_unlock_bh(&engine->lock);
}

static struct tw_queue *tw_queue_make(struct tw_user *user, unsigned int nr, u32 clock)
{
	struct tw_queue *queue = tw_alloc(sizeof(*queue));

	if (!queue)
		return NULL;
	if (user->container) {
		queue->parent = tw_engine_queue_get(user->container, nr, clock);
		if (!queue->parent) {
			tw_free(queue, sizeof(*queue));
			return NULL;
		}
	}
	timerqueue_init(&queue->entity.node);
	timerqueue_init_head(&queue->timed);
	INIT_LIST_HEAD(&queue->ready);
	queue->engine = per_cpu_ptr(&tw_engines, nr);
	queue->user = user;
	queue->clock = clock;
	queue->members = 1;
	return queue;
}

static void tw_queue_free(struct tw_queue *queue)
{
	if (queue->parent)
		tw_engine_queue_put(queue->parent);
	tw_free(queue, sizeof(*queue));
}

/**
 * tw_engine_queue_get - find or create the queue for one more base of a user, or for one more user
 *	of a container
 * @user: the user or container
 * @nr: the CPU
 * @clock: the clock
 *
 * Context: process, may sleep.
 * Return: the queue, or NULL without memory. Give it back with tw_engine_queue_put().
 */
struct tw_queue *tw_engine_queue_get(struct tw_user *user, unsigned int nr, u32 clock)
{
	struct tw_queue **place = &user->share[nr].queue[clock];
	struct tw_queue *made = tw_queue_make(user, nr, clock), *queue;

	if (!made)
		return NULL;
	spin_lock(&user->lock);
	queue = *place;
	if (queue)
		queue->members++;
	else
		*place = made;
	spin_unlock(&user->lock);
	if (!queue)
		return made;
	tw_queue_free(made);
	return queue;
}

/**
 * tw_engine_queue_put - drop the reference of a base, or of a user's queue, to its queue
 * @queue: the queue
 *
 * Context: process; if the base was ever in the engine, a grace period has passed since it was
 * removed.
 */
void tw_engine_queue_put(struct tw_queue *queue)
{
	struct tw_user *user = queue->user;
	bool last;

	spin_lock(&user->lock);
	WARN_ON_ONCE(!queue->members);
	last = !--queue->members;
	if (last)
		tw_queue_share(queue)->queue[queue->clock] = NULL;
	spin_unlock(&user->lock);
	if (!last)
		return;
	WARN_ON_ONCE(queue->entity.place != TW_NOWHERE);
	tw_queue_free(queue);
}

/**
 * tw_engine_init - create the engines and their threads
 *
 * Context: process, may sleep.
 * Return: 0 or an error.
 */
int __init tw_engine_init(void)
{
	static const clockid_t id[TW_CLOCKS] = {
		[TIMERWHEEL_CLOCK_MONOTONIC] = CLOCK_MONOTONIC,
		[TIMERWHEEL_CLOCK_BOOTTIME] = CLOCK_BOOTTIME,
		[TIMERWHEEL_CLOCK_REALTIME] = CLOCK_REALTIME,
	};
	struct tw_engine *engine;
	unsigned int nr;
	u32 i;

	for_each_possible_cpu(nr) {
		engine = per_cpu_ptr(&tw_engines, nr);
		raw_spin_lock_init(&engine->lock);
		INIT_LIST_HEAD(&engine->ready);
		INIT_LIST_HEAD(&engine->deferred);
		engine->nr = nr;
		for (i = 0; i < TW_CLOCKS; i++) {
			timerqueue_init_head(&engine->clock[i].timed);
			engine->clock[i].programmed = TW_NEVER;
			engine->clock[i].engine = engine;
			hrtimer_setup(&engine->clock[i].timer, tw_engine_fire, id[i],
				      HRTIMER_MODE_ABS_PINNED_SOFT);
		}
	}
	return smpboot_register_percpu_thread(&tw_smp_thread);
}

/**
 * tw_engine_exit - undo tw_engine_init()
 *
 * Context: process, may sleep; there are no bases.
 */
void tw_engine_exit(void)
{
	unsigned int nr;
	u32 i;

	smpboot_unregister_percpu_thread(&tw_smp_thread);
	for_each_possible_cpu(nr)
		for (i = 0; i < TW_CLOCKS; i++)
			hrtimer_cancel(&per_cpu_ptr(&tw_engines, nr)->clock[i].timer);
}
