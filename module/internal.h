/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The structures of the module, each group of fields with the lock that protects it,
 * and what each file offers to the others. README.md is the map: data flow, timer
 * states, lock order, lifetimes.
 */
#ifndef TW_INTERNAL_H
#define TW_INTERNAL_H

/*
 * A u64 that is read without a lock, or that user space writes, must be read in one piece: half of
 * a deadline could make a timer early. And the buffers on the stack are sized for 64 bits.
 */
#ifndef CONFIG_64BIT
#error timerwheel needs a 64-bit kernel: on a 32-bit one half of a deadline could be read
#endif

#include <linux/bottom_half.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/lockdep_types.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/timerwheel.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "engine.h"
#include "timer.h"
#include "wheel.h"

#define TW_NAME			"timerwheel"

/* Limits and defaults of SETUP. */
#define TW_TICK_MIN		1000ULL			/* 1 us */
#define TW_TICK_MAX		(3600ULL * NSEC_PER_SEC)
#define TW_TICK_DEFAULT		1000000ULL		/* 1 ms */
#define TW_SLOTS_DEFAULT	256U
#define TW_CAPACITY_MAX		BIT(24)
#define TW_CAPACITY_DEFAULT	BIT(22)

/*
 * Bytes of an event: of version 1, which is what all get who do not ask for more, and the largest
 * that may be asked for. When events grow, those who hand them out must look at
 * tw_setup.event_size.
 */
#define TW_EVENT_SIZE_FIRST	48U
#define TW_EVENT_SIZE_ASKED	4096U
static_assert(sizeof(struct timerwheel_event) == TW_EVENT_SIZE_FIRST);

/* Free timers that change hands together. */
#define TW_MAGAZINE		64U

/* Chains in a hash bucket: what fits a cache line beside the lock. */
#define TW_CHAINS		14U

/* Timers for each bucket: one for each chain. */
#define TW_BUCKET_TIMERS	14U
/*
 * Most timers in a hash chain, which is walked under its bucket's lock. Keys that were not chosen
 * for it get there with a probability below 10^-26 for each ADD.
 */
#define TW_CHAIN_MAX		32U

/* Bits of a word of the deadline table that hold a generation: less than a tick, as a rule. */
#define TW_GENERATION_BITS_MIN	10U
#define TW_GENERATION_BITS_MAX	20U

/* Most operations in a run. */
#define TW_RUN			48U

struct tw_file;
struct tw_log;

/**
 * struct tw_user - a user who has wheels open, and what they hold
 * @uid: who
 * @files: wheels and logs that are not freed yet; protected by the lock of tw_users
 * @memory: bytes charged; @lock
 * @lock: a leaf
 * @closing: wheels that are closed and not freed yet
 * @freed: how many have been freed, modulo 2^32
 * @wait: for that
 * @closed: closed wheels that @free has still to take, linked by tw_file.closed_node
 * @free: frees them, in that order, after a grace period: one worker for each user, so that a
 *	thousand wheels of one are not a thousand workers, and nobody waits for another user's
 * @queue: in the engines, by CPU and clock; while there are bases in them
 */
struct tw_user {
	kuid_t uid;
	unsigned long files;
	u64 memory;
	spinlock_t lock;	/* @memory, @closed, tw_queue.bases */
	u32 closing;
	u32 freed;
	wait_queue_head_t wait;
	struct list_head closed;
	struct work_struct free;
	struct tw_queue *queue[];
};

/**
 * struct tw_bucket - one cache line of the key table
 * @lock: bit 0 protects the chains and which timers are in them; see README.md, "Locks"
 * @head: first timer of each chain, linked by tw_timer.hash_next
 */
struct tw_bucket {
	unsigned long lock;
	u32 head[TW_CHAINS];
} __aligned(64);

/* Buckets that are allocated together. */
#define TW_PAGE_BUCKETS		(TW_PAGE / sizeof(struct tw_bucket))

/**
 * enum tw_dirs - the directories of a table
 * @TW_DIR_TIMERS: tw_pool.page
 * @TW_DIR_BUCKETS: tw_table.bucket
 * @TW_DIR_WORDS: tw_table.words
 * @TW_DIRS: how many there are
 */
enum tw_dirs {
	TW_DIR_TIMERS,
	TW_DIR_BUCKETS,
	TW_DIR_WORDS,
	TW_DIRS,
};

/**
 * struct tw_dir - how full a directory is
 * @used: its entries, which are pages
 * @room: how many it has room for
 */
struct tw_dir {
	u32 used;
	u32 room;
};

/**
 * struct tw_table - all timers of a file, by index and by key
 * @pool: the timers, by index
 * @bucket: directory of bucket pages, replaced by a larger copy as it grows (RCU)
 * @seed: makes the hash this file's own
 * @buckets: how many there are: linear hashing, grows by one at a time. Written under
 *	the lock of the bucket that is split.
 * @made: indices that exist: 1 to @made. Written under tw_file.mutex.
 * @words: directory of the deadline table, as in @pool but before all of it is there, too;
 *	tw_file.mutex
 * @dir: how full the directories are; tw_file.mutex
 * @sharers: calls that are making the deadline table; tw_file.mutex
 * @bucket_map: what lockdep knows about tw_bucket.lock
 * @lock: protects @full; a leaf
 * @full: magazines of free timers that no CPU part holds: linked by tw_timer.hash_next
 *	of the first timer of each, whose slack says how many are in it
 */
struct tw_table {
	struct tw_pool pool;
	struct tw_bucket *__rcu *bucket;
	u64 seed[2];
	u32 buckets;
	u32 made;
	u64 **words;
	struct tw_dir dir[TW_DIRS];
	u32 sharers;
	struct lockdep_map bucket_map;
	raw_spinlock_t lock;
	u32 full;
};

/**
 * struct tw_counts - what was done, counted by the CPU part that did it
 * @armed: ADDs
 * @moved: MOVEs
 * @removed: REMOVEs
 * @replaced: ADDs that ended an arming
 * @drained: timers taken out by DRAIN
 * @withdrawn: events taken back
 * @delivered: events handed out
 * @rearmed: periodic timers armed again by that
 * @overruns: deadlines passed over by that
 * @firings: times that the engine ran it since it had work again
 * @passes: batches, of the engine and of ADVANCE
 * @pass_max_timers: most timers in one batch
 * @pass_max_ns: longest batch
 */
struct tw_counts {
	u64 armed;
	u64 moved;
	u64 removed;
	u64 replaced;
	u64 drained;
	u64 withdrawn;
	u64 delivered;
	u64 rearmed;
	u64 overruns;
	u64 firings;
	u64 passes;
	u64 pass_max_timers;
	u64 pass_max_ns;
};

/**
 * struct tw_cpu - CPU part of a file: the timers armed on one CPU
 * @lock: protects all that follows, and the timers in @wheel
 * @nr: the CPU's number; constant
 * @file: whose part; constant
 * @wheel: the timers
 * @free: free timers, linked by tw_timer.next; 0 after the last
 * @nr_free: how many of them
 * @spare: 0 or TW_MAGAZINE more
 * @tick_began: when the tick of the last look at the clock did, in ns on that clock
 * @programmed: for when it is started in the engine, in ns; TW_NEVER: it is not; 0: it has work now
 *	and will have its turn, or needs none (MANUAL)
 * @wake_at: readers are to be woken then, in ns (wake-up batching); TW_NEVER: no
 * @batches: how many it had since it had work again
 * @counts: statistics
 * @queue: where it waits for its turns; constant, NULL: MANUAL
 * @entity: in that; protected by the engine's lock
 */
struct tw_cpu {
	raw_spinlock_t lock;
	u32 nr;
	struct tw_file *file;
	struct tw_wheel wheel;
	u32 free;
	u32 nr_free;
	u32 spare;
	u64 tick_began;
	u64 programmed;
	u64 wake_at;
	u32 batches;
	struct tw_counts counts;
	struct tw_queue *queue;
	struct tw_entity entity;
};

/**
 * struct tw_events - due timers on their way to readers
 * @lock: protects @due, @sets, @set_at, @woken and @wake_set, and timers that are TW_DUE
 * @due: the due timers, first fired first
 * @sets: times that CLOCK_REALTIME was set that no reader knows of; with a ring also its lock
 * @set_at: when the last of them was noticed, by that clock
 * @woken: how many of them readers were woken for
 * @wake_set: some CPU part has a @wake_at
 * @wakeups: wake-ups sent
 * @readers: who waits
 * @fasync: who wants SIGIO
 * @log: what was delivered last, for monitors; made for the first of them; see log.c
 */
struct tw_events {
	raw_spinlock_t lock;
	struct tw_chain due;
	u32 sets;
	u64 set_at;
	u32 woken;
	bool wake_set;
	atomic64_t wakeups;
	wait_queue_head_t readers;
	struct fasync_struct *fasync;
	struct tw_log *log;
};

/**
 * struct tw_clockset - for files whose readers are to know when CLOCK_REALTIME is set
 * @asked: they are; set once, last
 * @generation: when the work was at this file; protected as @list
 * @list: all such files; see clockset.c
 * @offset: CLOCK_REALTIME less CLOCK_BOOTTIME, as readers know it; tw_events.lock
 */
struct tw_clockset {
	bool asked;
	u32 generation;
	struct list_head list;
	s64 offset;
};

/**
 * struct tw_ring - a file's event ring; see ring.c
 * @shared: what user space maps
 * @event: the events in it
 * @events: how many there is room for, a power of two; 0: the file has no ring. Set last.
 * @lock: who writes to it
 * @tail: events written, modulo 2^32; protected by @lock
 * @offset: what is added to times in it; constant once @events is set, as @shared and @event
 */
struct tw_ring {
	struct timerwheel_ring *shared;
	struct timerwheel_event *event;
	u32 events;
	raw_spinlock_t lock;	/* who writes to it */
	u32 tail;
	u64 offset;
};

/**
 * struct tw_setup - the settings of a file
 * @clock: enum timerwheel_clock
 * @slots: slots per level
 * @tick: in ns
 * @capacity: most timers
 * @wake_events: wake readers when so many wait
 * @wake_ns: or so long after the first
 * @slack: default, in ns
 * @ring: length of the event ring
 * @event_size: bytes of an event
 */
struct tw_setup {
	u32 clock;
	u32 slots;
	u64 tick;
	u32 capacity;
	u32 wake_events;
	u64 wake_ns;
	u64 slack;
	u32 ring;
	u32 event_size;
};

/**
 * struct tw_file - what one open of the device made: "a wheel" to its users
 * @setup: settings. Changed under @mutex while there are no timers and no CPU parts, constant
 *	afterwards. The clock is read without a lock, too.
 * @setup_done: SETUP was called, or is too late: @setup is constant; @mutex
 * @closed: no new timers. Set under @mutex; whoever takes a CPU part's lock after
 *	tw_close() (scan.c) has been through it sees it.
 * @advanced: MANUAL: the time; lock of CPU part 0
 * @table: the timers
 * @events: the due ones
 * @ring: where their events go, if user space wants it
 * @clockset: whether they know when the clock is set
 * @alarm: among the files that wake the machine; empty: it does not. See alarm.c.
 * @mutex: SETUP, growth, new CPU parts
 * @parts_later: there was no memory for a CPU part: no new one before, in jiffies; @mutex
 * @charged: bytes of memory charged to @user; @mutex
 * @advance: one ADVANCE at a time; taken before @mutex
 * @drain_next: index where DRAIN goes on; a hint
 * @user: who is charged
 * @closed_node: in tw_user.closed after close
 * @cpu: CPU parts, by CPU number, made when a CPU first needs one. Of a MANUAL file
 *	all CPUs use part 0.
 */
struct tw_file {
	struct tw_setup setup;
	bool setup_done;
	bool closed;
	u64 advanced;
	struct tw_table table;
	struct tw_events events;
	struct tw_ring ring;
	struct tw_clockset clockset;
	struct list_head alarm;
	struct mutex mutex;	/* settings, growth, new parts */
	u64 parts_later;
	size_t charged;
	struct mutex advance;	/* one ADVANCE at a time */
	u32 drain_next;
	struct tw_user *user;
	struct list_head closed_node;
	struct tw_cpu *cpu[];
};

/**
 * struct tw_ctx - a run of operations under one hold of the CPU part's lock
 * @file: on which file
 * @cpu: this CPU's part, locked; bottom halves are off
 * @other: one more part, locked, or NULL
 * @now: the file's time at the start of the run, in ns
 * @offset: what the caller's time namespace adds to that
 * @todo: not 0: one of the following
 * @wake: readers are to be woken at the end
 * @told: monitors are to be woken at the end
 * @flow: so many timers fell due in this run that may go into the ring after it
 */
struct tw_ctx {
	struct tw_file *file;
	struct tw_cpu *cpu;
	struct tw_cpu *other;
	u64 now;
	u64 offset;
	union {
		u32 todo;
		struct {
			bool wake;
			bool told;
			u16 flow;
		};
	};
};

/*
 * Not raw_spin_lock_bh(): with PREEMPT_RT that one leaves preemption on, and whoever
 * is scheduled in the holder's place then may spin for the lock for ever.
 */
static inline void tw_lock_bh(raw_spinlock_t *lock)
{
	local_bh_disable();
	raw_spin_lock(lock);
}

static inline void tw_unlock_bh(raw_spinlock_t *lock)
{
	raw_spin_unlock(lock);
	local_bh_enable();
}

/* Does the file have an event ring? */
static inline bool tw_has_ring(const struct tw_file *file)
{
	/* Pairs with the release in tw_setup_apply(). */
	return smp_load_acquire(&file->ring.events);
}

/* file.c */
extern const struct file_operations tw_fops;
int tw_file_init(void);
void tw_file_exit(void);
void tw_file_free_closed(struct work_struct *work);

/* map.c */
int tw_mmap(struct file *filp, struct vm_area_struct *vma);

/* ioctl.c */
long tw_ioctl(struct file *filp, unsigned int cmd, unsigned long arg);

/* setup.c */
void tw_setup_default(struct tw_setup *setup);
u32 tw_setup_generation_bits(const struct tw_setup *setup);
int tw_setup(struct tw_file *file, struct timerwheel_setup *arg);

/* batch.c */
long tw_batch_add(struct tw_file *file, const struct timerwheel_batch *batch);
long tw_batch_move(struct tw_file *file, const struct timerwheel_batch *batch);
long tw_batch_remove(struct tw_file *file, const struct timerwheel_batch *batch);
long tw_batch_get(struct tw_file *file, const struct timerwheel_batch *batch);
long tw_strided_add(struct tw_file *file, const struct timerwheel_batch *batch);
long tw_strided_move(struct tw_file *file, const struct timerwheel_batch *batch);
long tw_strided_remove(struct tw_file *file, const struct timerwheel_batch *batch);
long tw_strided_get(struct tw_file *file, const struct timerwheel_batch *batch);

/* scan.c */
long tw_scan_list(struct tw_file *file, struct timerwheel_batch *batch);
long tw_scan_drain(struct tw_file *file, const struct timerwheel_batch *batch);

/* ops.c */
int tw_run_add(struct tw_ctx *ctx, void *elems, int n);
int tw_run_move(struct tw_ctx *ctx, void *elems, int n);
int tw_run_remove(struct tw_ctx *ctx, void *elems, int n);
int tw_run_get(struct tw_ctx *ctx, void *elems, int n);
void tw_queue_due(struct tw_ctx *ctx, u32 index, struct tw_timer *t);
int tw_op_look(struct tw_ctx *ctx, u32 index, struct timerwheel_entry *entry);
int tw_op_drain(struct tw_ctx *ctx, u32 index, void __user *to, size_t size);

/* table.c */
int tw_table_init(struct tw_file *file);
void tw_table_free(struct tw_table *table);
int tw_table_grow(struct tw_file *file);
int tw_table_share(struct tw_file *file, unsigned long first, unsigned long count);
struct page *tw_table_words(struct tw_file *file, unsigned long nr);
u32 tw_table_get(struct tw_table *table, u32 *count);
void tw_table_put(struct tw_table *table, u32 first, u32 count);

/* user.c */
void tw_user_init(void);
struct tw_user *tw_user_get(void);
void tw_user_hold(struct tw_user *user);
void tw_user_put(struct tw_user *user);
bool tw_user_closing(struct tw_user *user, struct list_head *node);
void tw_user_closed(struct tw_user *user, struct list_head *closed);
void tw_user_freed(struct tw_user *user);
int tw_user_charge(struct tw_user *user, size_t bytes);
void tw_user_uncharge(struct tw_user *user, size_t bytes);
u64 tw_user_memory(struct tw_user *user);
u64 tw_user_memory_max(void);

/* cpu.c */
struct tw_cpu *tw_cpu_obtain(struct tw_file *file, bool nowait);
u64 tw_cpu_set_back(struct tw_cpu *cpu, u64 now, u64 tick);
void tw_cpu_program(struct tw_cpu *cpu);
bool tw_cpu_run(struct tw_cpu *cpu, u64 *mono);
void tw_cpu_lock_other(struct tw_ctx *ctx, u32 nr);
bool tw_cpu_reclaim(struct tw_file *file);
int tw_cpu_advance(struct tw_file *file, u64 to, u64 *expired);
void tw_cpu_close(struct tw_file *file);
void tw_cpu_free_all(struct tw_file *file);
void tw_cpu_reset(struct tw_file *file);
void tw_cpu_barrier(struct tw_file *file);

/* events.c */
void tw_events_init(struct tw_events *events);
bool tw_events_add(struct tw_cpu *cpu, const struct tw_chain *due, u64 now);
void tw_events_lock(struct tw_file *file);
void tw_events_unlink(struct tw_file *file, struct tw_timer *t);
void tw_events_unlock(struct tw_file *file);
bool tw_events_wake_now(struct tw_cpu *cpu);
void tw_events_wake(struct tw_file *file);
bool tw_events_any(const struct tw_file *file);
ssize_t tw_events_read(struct tw_file *file, struct iov_iter *to, bool nowait);

/* flow.c */
void tw_flow_expire(struct tw_ctx *ctx, const struct tw_chain *due);
void tw_flow_after(struct tw_file *file, unsigned int n);
long tw_flow_all(struct tw_file *file);
bool tw_flow_set(struct tw_file *file);

/* monitor.c */
void tw_monitor_wake(struct tw_file *file);
long tw_monitor_open(struct tw_file *file, const struct timerwheel_monitor *arg);

/* stats.c */
void tw_stats_get(struct tw_file *file, struct timerwheel_stats *stats);
void tw_stats_info(struct tw_file *file, struct timerwheel_info *info);
void tw_stats_show(struct seq_file *m, struct file *filp);

#endif /* TW_INTERNAL_H */
