/* SPDX-License-Identifier: GPL-2.0-only */
/* The expiry engine, which decides when the bases of all wheels run. See engine.c. */
#ifndef TW_ENGINE_H
#define TW_ENGINE_H

#include <linux/list.h>
#include <linux/timerqueue.h>
#include <linux/types.h>

struct tw_cpu;
struct tw_engine;
struct tw_user;

/* Clocks that drive wheels: enum timerwheel_clock without MANUAL. */
#define TW_CLOCKS	3U

/**
 * enum tw_place - where an entity waits
 * @TW_NOWHERE: it has no work, or is running
 * @TW_TIMED: it waits in a tree until its time is reached
 * @TW_LISTED: it waits in a list until its turn
 * @TW_REMOVED: it is being closed and never waits again
 */
enum tw_place {
	TW_NOWHERE,
	TW_TIMED,
	TW_LISTED,
	TW_REMOVED,
};

/**
 * struct tw_entity - something that waits for a time or a turn: a base in a queue, a queue in an
 *	engine or in the queue of a container
 * @node: node of a tree ordered by time; valid while TW_TIMED
 * @list: node of a list in the order of turns; valid while TW_LISTED
 * @place: enum tw_place
 */
struct tw_entity {
	struct timerqueue_node node;
	struct list_head list;
	u8 place;
};

/**
 * struct tw_queue - the bases of one user on one CPU and one clock; or the queues of the users of a
 *	container
 * @entity: the queue in its engine, or in @parent
 * @timed: bases or queues that will have work at a known time
 * @ready: bases or queues that have work now, in the order of their turns
 * @engine: the CPU's engine; constant
 * @parent: the queue of the user's container; NULL: the user is in none; constant
 * @user: the user or container; constant
 * @clock: enum timerwheel_clock; constant
 * @members: number of its bases or queues; protected by the user's lock
 * @paused: while TW_TIMED: it waits until its user has earned more time
 *
 * Protected by the engine's lock except as noted. Lives as long as its bases or queues.
 */
struct tw_queue {
	struct tw_entity entity;
	struct timerqueue_head timed;
	struct list_head ready;
	struct tw_engine *engine;
	struct tw_queue *parent;
	struct tw_user *user;
	u32 clock;
	u32 members;
	bool paused;
};

/**
 * struct tw_share - the queues of a user or container on one CPU, and their share of its time
 * @queue: the queues, by clock; a queue exists while it has bases; protected by the user's lock
 * @next: when the time that their turns have used will be earned again, in ns of CLOCK_MONOTONIC.
 *	Unused for a user of a container, because the container has the share.
 * @spent: ns that their turns took in firing @firing
 * @firing: the engine's last firing in which one of them had a turn
 *
 * Protected by the engine's lock except as noted. Lives as long as the user.
 */
struct tw_share {
	struct tw_queue *queue[TW_CLOCKS];
	u64 next;
	u64 spent;
	u32 firing;
};

int tw_engine_init(void);
void tw_engine_exit(void);
struct tw_queue *tw_engine_queue_get(struct tw_user *user, unsigned int nr, u32 clock);
void tw_engine_queue_put(struct tw_queue *queue);
void tw_engine_start(struct tw_cpu *cpu, u64 at);
void tw_engine_remove(struct tw_cpu *cpu);

#endif /* TW_ENGINE_H */
