/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The structures of the module, with the lock that protects each field, and the functions of files
 * that have no header. README.md describes the data flow. Documentation/design describes the states
 * of a timer, the order of locks and lifetimes.
 */
#ifndef TW_INTERNAL_H
#define TW_INTERNAL_H

/*
 * A u64 that is read without a lock, or that user space writes, must be read by a single load: half
 * of a deadline could make a timer fire early. The buffers on the stack also assume 64 bits.
 */
#ifndef CONFIG_64BIT
#error timerwheel needs a 64-bit kernel: a 32-bit one could read half of a deadline
#endif

#include <linux/atomic.h>
#include <linux/bottom_half.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/lockdep_types.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
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

/*
 * Limits and defaults of SETUP. The largest wheel takes 9 GB, and the directory of its timers
 * 16 MB.
 */
#define TW_TICK_MIN		1000ULL			/* 1 us */
#define TW_TICK_MAX		(3600ULL * NSEC_PER_SEC)
#define TW_TICK_DEFAULT		1000000ULL		/* 1 ms */
#define TW_SLOTS_DEFAULT	256U
#define TW_CAPACITY_MAX		BIT(27)
#define TW_CAPACITY_DEFAULT	BIT(22)

/*
 * Bytes of an event in version 1, which a program gets unless it asks for more, and the maximum
 * that it may ask for. When events grow, their delivery must use tw_setup.event_size.
 */
#define TW_EVENT_SIZE_FIRST	48U
#define TW_EVENT_SIZE_ASKED	4096U
static_assert(sizeof(struct timerwheel_event) == TW_EVENT_SIZE_FIRST);

/* Free timers in a magazine. They are moved together. */
#define TW_MAGAZINE		64U

/* Hash chains in a bucket: the number that fits a cache line beside the lock. */
#define TW_CHAINS		14U

/* Timers per bucket, on average: one for each chain. */
#define TW_BUCKET_TIMERS	14U
/*
 * Maximum number of timers in a hash chain, which is walked under its bucket's lock. If keys are
 * not chosen to collide, an ADD finds a full chain with a probability below 10^-26.
 */
#define TW_CHAIN_MAX		32U

/* Bits of the generation in an entry of the deadline table: see tw_setup_generation_bits(). */
#define TW_GENERATION_BITS_MIN	12U		/* two of them are the state */
#define TW_GENERATION_BITS_MAX	20U

/* Maximum number of operations in a call of tw_ops_add() and similar functions. */
#define TW_OPS_MAX		48U

/* No base: see tw_ctx.wants. */
#define TW_NO_CPU		U32_MAX

struct sock;
struct tw_file;
struct tw_log;

/**
 * struct tw_held - connections of a user that are to be aborted while a task holds their lock
 * @tree: the connections, ordered by socket; linked by tw_sock.held
 * @from: the address of the next socket that this round tries; 0: a round begins
 * @at: when it continues, in jiffies
 * @delay: from the end of this round to the next one, in jiffies
 * @next: when the time that the tries have used will be earned again, in ns
 * @purge: a file was closed: take its connections out
 *
 * Only the worker uses the fields other than @purge.
 */
struct tw_held {
	struct rb_root tree;
	unsigned long from;
	unsigned long at;
	unsigned long delay;
	u64 next;
	bool purge;
};

/**
 * struct tw_user - a user who has wheels, with their memory and work; or a container of such users
 * @id: the key in tw_users
 * @is_container: it is a container, which has only @id, @ns, @files, @memory, @lock and @share
 * @ns: the container's namespace, with a reference; constant
 * @container: the user's container; NULL: the user is in none; constant
 * @files: wheels and logs that are not freed yet, or users; protected by the lock of tw_users
 * @memory: bytes charged, also for the users of the container; @lock
 * @lock: a leaf
 * @closing: number of wheels that are closed but not freed yet
 * @freed: number of wheels that were freed, modulo 2^32
 * @wait: woken when @freed changes
 * @closed: closed wheels that @free has not taken yet, linked by tw_file.closed_node
 * @free: frees them in this order, after a grace period. Each user has one worker: a thousand
 *	wheels do not need a thousand workers, and no user waits for another user's wheels.
 * @sock_files: files whose connections need the worker, linked by tw_socks.node
 * @sock_work: the worker; see sock.c
 * @held: connections whose timer waits because a task holds the lock of the socket; see sock.c
 * @share: this user's queues in the engine of each CPU, and their share of its time
 */
struct tw_user {
	unsigned long id;
	bool is_container;
	struct user_namespace *ns;
	struct tw_user *container;
	unsigned long files;
	u64 memory;
	spinlock_t lock;	/* @memory, @closed, tw_queue.members */
	u32 closing;
	u32 freed;
	wait_queue_head_t wait;
	struct list_head closed;
	struct work_struct free;
	struct llist_head sock_files;
	struct delayed_work sock_work;
	struct tw_held held;
	struct tw_share share[];
};

/**
 * struct tw_bucket - a bucket of the hash table: one cache line
 * @lock: bit 0 protects the hash chains and the set of timers in them; see Documentation/design
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
 * @TW_DIR_DEADLINES: tw_pool.deadlines
 * @TW_DIRS: number of directories
 */
enum tw_dirs {
	TW_DIR_TIMERS,
	TW_DIR_BUCKETS,
	TW_DIR_DEADLINES,
	TW_DIRS,
};

/**
 * struct tw_dir - fill level of a directory
 * @used: number of pages in it; page faults of the deadline table read it without a lock
 * @room: number of pages that fit
 */
struct tw_dir {
	u32 used;
	u32 room;
};

/**
 * struct tw_table - all timers of a file, by index and by key
 * @pool: the timers, by index
 * @bucket: directory of the pages of buckets, replaced by a larger copy as it grows
 * @seed: seeds of the hash, random for each file
 * @buckets: number of buckets, which grows by one at a time (linear hashing). Written under the
 *	lock of the bucket that is split.
 * @made: indices 1 to @made exist. Written under tw_file.mutex.
 * @dir: how full the directories are; written under tw_file.mutex
 * @bucket_map: tw_bucket.lock for lockdep
 * @lock: protects @full; a leaf
 * @full: stack of the magazines that no base holds; see struct tw_timer
 */
struct tw_table {
	struct tw_pool pool;
	struct tw_bucket **bucket;
	u64 seed[2];
	u32 buckets;
	u32 made;
	struct tw_dir dir[TW_DIRS];
	struct lockdep_map bucket_map;
	raw_spinlock_t lock;
	u32 full;
};

/**
 * struct tw_counts - statistics of a base: operations with its lock held
 * @armed: ADDs
 * @moved: MOVEs
 * @removed: REMOVEs
 * @replaced: ADDs that ended an arming
 * @drained: timers removed by DRAIN
 * @withdrawn: events withdrawn before they were delivered
 * @delivered: events delivered
 * @rearmed: timers that continued to exist after the delivery of their event
 * @overruns: deadlines of periodic timers that were skipped at a delivery
 * @firings: number of times that the engine started it because it had work again
 * @batches: batches, of the engine and of ADVANCE
 * @batch_max_timers: largest number of timers in one batch
 * @batch_max_ns: longest batch
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
	u64 batches;
	u64 batch_max_timers;
	u64 batch_max_ns;
};

/**
 * struct tw_cpu - a base: the timers of a file that were armed on one CPU
 * @lock: protects all that follows, and the timers in @wheel
 * @nr: number of the CPU; constant
 * @file: the file; constant
 * @wheel: the timers
 * @free: the magazine in use: free timers, linked by tw_timer.next, 0 after the last
 * @nr_free: number of timers in it
 * @spare: a second magazine, full; 0: none
 * @tick_began: the beginning of the tick in which the clock was last read, in ns on that clock
 * @programmed: the time at which the engine will run this base, in ns; TW_NEVER: none; 0: it has
 *	work now and will get a turn, or needs none (MANUAL)
 * @wake_at: the time at which to wake readers, in ns (wake-up batching); TW_NEVER: none
 * @batches: number of expiry batches since it got work again
 * @counts: statistics
 * @queue: the queue in which it waits for its turns; constant, NULL: MANUAL
 * @entity: its entry there; protected by the engine's lock
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
 * @lock: protects @due, @warnings, @clock_sets, @clock_set_at, @woken and @wake_armed, and timers
 *	that are TW_DUE
 * @due: the due timers, first fired first
 * @warnings: number of due timers that are warnings of connections
 * @clock_sets: number of times that CLOCK_REALTIME was set without a report to a reader; with a
 *	ring also protected by its lock
 * @clock_set_at: the time at which the last of them was noticed, by that clock
 * @woken: number of due timers for which readers were woken
 * @wake_armed: a base has a @wake_at
 * @wakeups: number of wake-ups sent
 * @readers: waiting readers
 * @fasync: receivers of SIGIO
 * @log: the events that were delivered last, for monitors; created for the first monitor; see log.c
 */
struct tw_events {
	raw_spinlock_t lock;
	struct tw_due_list due;
	u32 warnings;
	u32 clock_sets;
	u64 clock_set_at;
	u32 woken;
	bool wake_armed;
	atomic64_t wakeups;
	wait_queue_head_t readers;
	struct fasync_struct *fasync;
	struct tw_log *log;
};

/**
 * struct tw_clockset - reporting of changes of CLOCK_REALTIME to the readers of a file
 * @enabled: readers get these reports; set once, last
 * @generation: the run in which the work handled this file; protected like @list
 * @list: all files with these reports; see clockset.c
 * @offset: CLOCK_REALTIME minus CLOCK_BOOTTIME, as last reported; tw_events.lock
 */
struct tw_clockset {
	bool enabled;
	u32 generation;
	struct list_head list;
	s64 offset;
};

/**
 * struct tw_ring - the event ring of a file; see ring.c
 * @shared: the memory that user space maps
 * @event: the entries
 * @events: number of entries, a power of two; 0: the file has no ring. Set last.
 * @lock: held to write to the ring
 * @tail: events written, modulo 2^32; protected by @lock
 * @offset: added to the times in events; constant once @events is set, like @shared and @event
 */
struct tw_ring {
	struct timerwheel_ring *shared;
	struct timerwheel_event *event;
	u32 events;
	raw_spinlock_t lock;	/* writing to the ring */
	u32 tail;
	u64 offset;
};

/**
 * struct tw_setup - the settings of a file
 * @clock: enum timerwheel_clock
 * @slots: slots per level
 * @tick: length of a tick, in ns
 * @capacity: maximum number of timers
 * @wake_events: wake readers when this many events wait ...
 * @wake_ns: ... or this long after the first of them, in ns
 * @slack: default slack, in ns
 * @ring: entries of the event ring
 * @event_size: bytes of an event
 * @table: there is a deadline table
 * @resident: timers are resident; implies @table
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
	bool table;
	bool resident;
};

/**
 * struct tw_sock - a connection that a timer watches
 * @node: in tw_socks.todo
 * @held: in tw_held.tree of the user, or clear; only the worker uses it
 * @flags: TW_SOCK_QUEUED, TW_SOCK_ENDED
 * @acked: HALF_CLOSED: the peer's last acknowledgment at the last visit
 * @file: the file
 * @sk: the socket, with a reference; NULL: it was closed and released
 * @timeout: maximum idle time, in ns; 0: LIFETIME
 * @grace: time from the warning to the abort, in ns; 0: there is no warning
 * @grace_end: deadline of the timer during the grace time; 0: it has not begun
 * @since: earliest time of the connection from which @timeout counts, in jiffies
 * @warned_at: @since at the beginning of the grace time; if @since differs, it was used after that
 * @index: its timer; constant
 * @warning: the timer (TW_WARNING) of the warning's event; 0: none
 * @bytes: memory charged for it
 * @event: flags of the event with which the timer ends
 * @kind: enum timerwheel_socket
 * @abort: abort the connection; otherwise only deliver an event
 * @half_closed: HALF_CLOSED: it was half-closed at the last visit
 * @warned: the warning is on the due list; its lock
 *
 * All fields that are not constant are protected like the timer: by its base's lock while it is
 * PENDING, by its bucket's lock otherwise.
 */
struct tw_sock {
	struct llist_node node;
	struct rb_node held;
	atomic_t flags;
	u32 acked;
	struct tw_file *file;
	struct sock *sk;
	u64 timeout;
	u64 grace;
	u64 grace_end;
	u32 since;
	u32 warned_at;
	u32 index;
	u32 warning;
	u32 bytes;
	u32 event;
	u8 kind;
	bool abort;
	bool half_closed;
	bool warned;
};

/**
 * struct tw_socks - the connections that the timers of a file watch
 * @file: the file
 * @todo: connections that the worker has to handle, linked by tw_sock.node
 * @taken: connections that the worker has taken from @todo; only the worker uses it
 * @node: in tw_user.sock_files, if @kicked
 * @kicked: the worker has to handle this file
 * @closed: the file is closed
 * @sweeper: sets @sweep to 1 once a minute while there are connections
 * @sweep: the next timer that the worker examines to find closed sockets; 0: it does not search
 * @count: timers that watch a connection
 * @memory: bytes charged for connections to the user, in addition to tw_file.charged
 * @aborted: connections aborted
 *
 * Allocated for the first connection of a wheel. If it were part of struct tw_file, that would not
 * fit 512 bytes on a small machine.
 */
struct tw_socks {
	struct tw_file *file;
	struct llist_head todo;
	struct llist_node *taken;
	struct llist_node node;
	int kicked;
	bool closed;
	struct delayed_work sweeper;
	u32 sweep;
	atomic_t count;
	atomic_long_t memory;
	atomic64_t aborted;
};

/**
 * struct tw_file - an open file of the device: "a wheel" to its users
 * @setup: settings. Changed under @mutex while there are no timers and no bases, constant
 *	afterwards. The clock is read without a lock, too.
 * @setup_done: SETUP was called, or is now too late, so @setup is constant; @mutex
 * @closed: the file accepts no new timers. Set under @mutex. After tw_drain_close() (scan.c) has
 *	taken the lock of each base, every later holder of a base's lock sees it.
 * @advanced: MANUAL: the time; protected by the lock of base 0
 * @table: the timers
 * @events: due timers, and their readers
 * @ring: the event ring, if there is one
 * @socks: the connections that timers watch; NULL until the first. Set once, under @mutex.
 * @clockset: reports of changes of the clock to readers
 * @alarm: in the list of files that wake the machine, or empty. See alarm.c.
 * @mutex: SETUP, growth, new bases
 * @base_retry_at: after a base could not be created: the time of the next attempt, in jiffies;
 *	@mutex
 * @charged: bytes of memory charged to @user; @mutex
 * @advance: serializes ADVANCE; taken before @mutex
 * @drain_next: the index at which the next DRAIN starts; a hint
 * @user: the user who is charged
 * @closed_node: in tw_user.closed, after the file was closed
 * @cover: KCOV handle of the task that opened the file, or 0: see cover.h; constant
 * @cpu: the bases, by CPU, each created when its CPU first needs it. All CPUs use base 0 of a
 *	MANUAL file.
 */
struct tw_file {
	struct tw_setup setup;
	bool setup_done;
	bool closed;
	u64 advanced;
	struct tw_table table;
	struct tw_events events;
	struct tw_ring ring;
	struct tw_socks *socks;
	struct tw_clockset clockset;
	struct list_head alarm;
	struct mutex mutex;	/* settings, growth, new bases */
	u64 base_retry_at;
	size_t charged;
	struct mutex advance;	/* one ADVANCE at a time */
	u32 drain_next;
	struct tw_user *user;
	struct list_head closed_node;
#ifdef CONFIG_KCOV
	u64 cover;
#endif
	struct tw_cpu *cpu[];
};

/**
 * struct tw_ctx - batch context: a batch is a group of operations with a base's lock held
 * @file: the file
 * @cpu: this CPU's base, locked; bottom halves are off
 * @other: one more base, locked during the whole batch; or NULL
 * @now: the file's time at the start of the batch, in ns
 * @offset: offset of the caller's time namespace, in ns
 * @todo: not 0: one of the following fields is set
 * @wake_readers: wake readers at the end
 * @wake_monitors: wake monitors at the end
 * @socks: the worker of the connections has work
 * @flow: number of timers that fell due in this batch and may go into the ring after it, plus one
 *	if the last timer that waited for the ring has left the due list
 * @flags: flags of a call by handle: TIMERWHEEL_ABS, TIMERWHEEL_EXCL
 * @wants: number of the CPU whose base the last operation needs. That operation has done nothing
 *	and returned -EAGAIN: end the batch, and repeat it in a batch that locks this base, too.
 *	TW_NO_CPU: none.
 *
 * It need not be initialized: __tw_cpu_begin() sets all fields except @flags, which only MOVE by
 * handle reads and its callers set.
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
			bool wake_readers;
			bool wake_monitors;
			bool socks;
			u8 flow;
		};
	};
	u32 flags;
	u32 wants;
};

/*
 * raw_spin_lock_bh() would leave preemption enabled with PREEMPT_RT. A task that preempts the
 * holder could then spin forever.
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

/* The connections that timers of a file watch; NULL: no timer has ever watched one. */
static inline struct tw_socks *tw_file_socks(const struct tw_file *file)
{
	/* Pairs with the release in tw_socks_make(); litmus dependency. */
	return READ_ONCE(file->socks);
}

static inline bool tw_has_ring(const struct tw_file *file)
{
	/* Pairs with the release in tw_setup_apply(); litmus publish. */
	return smp_load_acquire(&file->ring.events);
}

/* file.c */
extern const struct file_operations tw_fops;
int tw_file_init(void);
void tw_file_exit(void);
void tw_file_free_closed(struct work_struct *work);

/* ioctl.c */
long tw_ioctl(struct file *filp, unsigned int cmd, unsigned long arg);
long tw_call_array(struct tw_file *file, unsigned int cmd, struct timerwheel_batch *batch,
		   u32 internal);

/*
 * Internal flags of struct timerwheel_batch, in addition to the flags of the call.
 * TW_BATCH_KILLABLE: only a fatal signal ends the call early.
 * TW_BATCH_NOWAIT: the call fails with -EAGAIN if its first element needs memory.
 */
#define TW_BATCH_KILLABLE	BIT(31)
#define TW_BATCH_NOWAIT		BIT(30)

/* setup.c */
void tw_setup_default(struct tw_setup *setup);
u32 tw_setup_generation_bits(const struct tw_setup *setup);
int tw_setup(struct tw_file *file, struct timerwheel_setup *arg);

/* batch.c */
long tw_batch_add(struct tw_file *file, const struct timerwheel_batch *batch);
long tw_batch_move(struct tw_file *file, const struct timerwheel_batch *batch);
long tw_batch_remove(struct tw_file *file, const struct timerwheel_batch *batch);
long tw_batch_get(struct tw_file *file, const struct timerwheel_batch *batch);
long tw_batch_move_handle(struct tw_file *file, const struct timerwheel_batch *batch);
long tw_batch_remove_handle(struct tw_file *file, const struct timerwheel_batch *batch);

/* scan.c */
long tw_scan_list(struct tw_file *file, struct timerwheel_batch *batch);
long tw_scan_drain(struct tw_file *file, const struct timerwheel_batch *batch);

/* ops.c */
int tw_ops_add(struct tw_ctx *ctx, void *elems, int n);
int tw_ops_move(struct tw_ctx *ctx, void *elems, int n);
int tw_ops_remove(struct tw_ctx *ctx, void *elems, int n);
int tw_ops_get(struct tw_ctx *ctx, void *elems, int n);
void tw_enqueue_due(struct tw_ctx *ctx, u32 index, struct tw_timer *t);
int tw_get_index(struct tw_ctx *ctx, u32 index, struct timerwheel_entry *entry);
int tw_drain_index(struct tw_ctx *ctx, u32 index, struct timerwheel_entry __user *to);

/* handle.c */
int tw_ops_move_handle(struct tw_ctx *ctx, void *elems, int n);
int tw_ops_remove_handle(struct tw_ctx *ctx, void *elems, int n);

/* table.c */
int tw_table_init(struct tw_file *file);
void tw_table_free(struct tw_table *table);
int tw_table_grow(struct tw_file *file);
int tw_table_add_deadlines(struct tw_file *file);
struct page *tw_table_deadlines_page(struct tw_file *file, unsigned long nr);
u32 tw_magazine_pop(struct tw_table *table, u32 *count);
void tw_magazine_push(struct tw_table *table, u32 first, u32 count);

#endif /* TW_INTERNAL_H */
