/* SPDX-License-Identifier: GPL-2.0 */
/*
 * abi_fuzz: structured random calls on the device; what its files share.
 *
 *   main.c      options, the tests, KTAP output
 *   program.c   programs: short lists of calls; creates, mutates, prints and reads them
 *   args.c      turns a call into an argument and an array, mangled or not
 *   memory.c    memory for these: valid, half-mapped, read-only, or changing
 *   cover.c     the code that a call reached (KCOV)
 *   exec.c      makes the calls
 *   worker.c    a fuzzing thread: its corpus, digest and failure reports
 *   model.c     what a wheel with the MANUAL clock must do
 *   single.c    one thread: each call is compared with the model
 *   table.c     ... the deadline table
 *   ring.c      ... the event ring
 *   watch.c     ... monitors
 *   threads.c   several threads: invariants that hold whatever the others do
 *   hammer.c    a thread that writes to the deadline tables of resident wheels
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <linux/timerwheel.h>

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

#define USEC	1000ULL
#define SEC	1000000000ULL
#define HOUR	(3600 * SEC)
#define POISON	0xA5

/* --- Random numbers (splitmix64: any state is valid) ----------------------- */

static inline __u64 rnd(__u64 *state)
{
	__u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* 0 to @n - 1 */
static inline unsigned int rnd_to(__u64 *state, unsigned int n)
{
	return (rnd(state) >> 32) % n;
}

static inline bool one_in(__u64 *state, unsigned int n)
{
	return !rnd_to(state, n);
}

/* --- Programs --------------------------------------------------------------- */

enum op {
	/* Calls with an ioctl's argument, in the order of the ioctl numbers. */
	OP_INFO, OP_SETUP, OP_ADD, OP_MOVE, OP_REMOVE, OP_DRAIN, OP_GET, OP_LIST, OP_STATS,
	OP_ADVANCE, OP_MOVE_HANDLE, OP_REMOVE_HANDLE, OP_MONITOR,
	OP_BAD_IOCTL,
	OP_READ, OP_READV, OP_URING, OP_PREAD, OP_WRITE, OP_LSEEK,
	OP_POLL, OP_EPOLL, OP_SELECT, OP_FLAGS,
	OP_MMAP, OP_TOUCH, OP_FDINFO, OP_DUP, OP_SCM, OP_REOPEN,
	OP_CAP, OP_FORK,			/* only with threads */
	OP_FLOW, OP_TAKE, OP_WATCH, OP_UNWATCH,	/* only in one thread */
	OPS
};

/* Bits of struct call.mangle: errors in an argument. */
#define MANGLE_SIZE		1
#define MANGLE_FLAGS		2
#define MANGLE_COUNT		4
#define MANGLE_ELEM_SIZE	8
#define MANGLE_CURSOR		16
#define MANGLE_FIELDS		32
#define MANGLE_BITS		6

/* Kinds of memory: struct call.place. */
enum place {
	PLACE_PLAIN,		/* valid memory */
	PLACE_ODD,		/* ... not aligned */
	PLACE_EDGE,		/* ... right before a page that is not mapped */
	PLACE_CUT,		/* only the first @cut bytes are before that page */
	PLACE_READ_ONLY,	/* all bytes except the first @cut are read-only */
	PLACE_NULL,
	PLACE_KERNEL,
	PLACE_WRAP,		/* wraps around the address space, or nearly */
	PLACE_FLIP,		/* another thread maps, protects and unmaps it */
	PLACES
};

/**
 * struct call - one call of a program
 * @op: enum op
 * @wheel: which wheel, if there are several
 * @place: place of the argument (or of the read buffer)
 * @elems: place of the array
 * @cold: make pages fault: 1: the pages of the argument, 2: the pages of the array
 * @mangle: errors in the argument
 * @cut: for @place
 * @elems_cut: for @elems
 * @count: number of elements, or of events
 * @seed: determines everything else
 */
struct call {
	__u8 op;
	__u8 wheel;
	__u8 place;
	__u8 elems;
	__u8 cold;
	__u8 mangle;
	__u32 cut;
	__u32 elems_cut;
	__u32 count;
	__u64 seed;
};

#define PROGRAM_MAX	32

/**
 * struct program - calls on a new wheel (or on those that all threads share)
 * @seed: determines the settings of its wheel
 * @n: number of calls
 * @call: the calls
 */
struct program {
	__u64 seed;
	unsigned int n;
	struct call call[PROGRAM_MAX];
};

extern const char * const op_names[OPS];

void program_make(struct program *p, __u64 *random, bool threads);
void program_mutate(struct program *p, const struct program *other, __u64 *random,
		    bool threads);
void program_print(const struct program *p, unsigned int until);
bool program_read(struct program *p, const char *path);

/* --- Memory ------------------------------------------------------------------- */

#define ELEMS_MAX	(TIMERWHEEL_BATCH_MAX + 8)
#define ELEM_ROOM	((size_t)ELEMS_MAX * 64)

/**
 * struct arena - memory that is mapped several times
 * @plain: a writable mapping, followed by an unmapped page
 * @edge: a mapping whose last READ_ONLY bytes are read-only
 * @alias: a mapping that is always valid
 * @size: size of each
 * @flip: memory that another thread maps, protects and unmaps, or NULL
 */
struct arena {
	char *plain;
	char *edge;
	char *alias;
	size_t size;
	char *flip;
};

#define READ_ONLY	(16 * 4096)
#define FLIP_PAGES	8

/**
 * struct spot - a place for an argument
 * @p: the address to give to a call
 * @alias: where the test can access the same memory; NULL: it cannot
 * @len: length of that
 * @rw: how many bytes from @p on a call can read and write
 * @rd: how many it can read
 * @flips: these numbers may change at any time
 */
struct spot {
	char *p;
	char *alias;
	size_t len;
	size_t rw;
	size_t rd;
	bool flips;
};

void arena_init(struct arena *arena, size_t size, bool flip);
void arena_free(struct arena *arena);
void spot_choose(const struct arena *arena, unsigned int place, unsigned int cut, bool cold,
		 size_t len, struct spot *spot);
void spot_fill(const struct spot *spot, const void *from, size_t len);
/* Returns what is wrong with the memory of a spot, or NULL. */
const char *spot_differs(const struct spot *spot, const void *want, size_t len);
/* Change the mapping of the flip memory once. */
void arena_flip(const struct arena *arena, __u64 *random);
void arena_unflip(const struct arena *arena);

/* --- Arguments ------------------------------------------------------------------ */

/* The kernel accepts arguments of up to a page; some are larger, to see that it refuses them. */
#define ARG_MORE	512
#define ARG_ROOM	(65536 + ARG_MORE)	/* with the largest pages that there are */

/** struct handle - index and generation of a timer */
struct handle {
	__u32 index;
	__u32 generation;
};

/**
 * struct view - what is known of a wheel when a call is made up
 * @now: its time
 * @tick: its tick
 * @cursor: the cursor that LIST returned last
 * @clocks: SETUP may ask for any clock, not just MANUAL, but not for a ring
 * @clean: use only valid memory, because the results are counted
 * @table: it has a deadline table
 * @resident: its timers are resident
 * @exact: no timer may have slack
 * @handles: handles that ADD has returned; their timers may have ended
 * @n_handles: how many
 */
struct view {
	__u64 now;
	__u64 tick;
	__u64 cursor;
	bool clocks;
	bool clean;
	bool table;
	bool resident;
	bool exact;
	const struct handle *handles;
	unsigned int n_handles;
};

/**
 * struct io - a prepared call
 * @cmd: the ioctl number
 * @at: where the argument is
 * @elems_at: where the array is
 * @size: the size that the argument claims
 * @known: its size in today's interface
 * @arg_len: bytes of @arg in use
 * @elem: size of an element of the array; 0: the call has no array
 * @elems_len: bytes of @elems in use
 * @arg: contents of the argument; after the call: what it must contain
 * @elems: the same for the array
 */
struct io {
	unsigned long cmd;
	struct spot at;
	struct spot elems_at;
	__u32 size;
	size_t known;
	size_t arg_len;
	size_t elem;
	size_t elems_len;
	union {
		char arg[ARG_ROOM];
		struct timerwheel_info info;
		struct timerwheel_setup setup;
		struct timerwheel_batch batch;
		struct timerwheel_stats stats;
		struct timerwheel_advance advance;
		struct timerwheel_monitor monitor;
	};
	union {
		char *elems;
		struct timerwheel_event *event;
	};
};

/** union elem - the known part of an element */
union elem {
	struct timerwheel_add add;
	struct timerwheel_move move;
	struct timerwheel_remove remove;
	struct timerwheel_move_handle move_handle;
	struct timerwheel_remove_handle remove_handle;
	struct timerwheel_entry entry;
};

/* Bits for the errors that a call may fail with as a whole. */
#define MAY_EINVAL	1
#define MAY_E2BIG	2
#define MAY_EFAULT	4
#define MAY_EBUSY	8
#define MAY_EAGAIN	16
#define MAY_EINTR	32
#define MAY_ENOMEM	64
#define MAY_EPERM	128
#define MAY_EOPNOTSUPP	256
#define MAY_ENOSPC	512

struct worker;

__u64 value_of(__u64 key, unsigned int tag);
bool value_fits(__u64 key, __u64 value);
/* @table: in a wheel with a deadline table */
bool add_invalid(const struct timerwheel_add *add, bool table, bool resident);
bool move_invalid(const struct timerwheel_move *move, bool table);
bool remove_invalid(const struct timerwheel_remove *rem);
bool get_invalid(const struct timerwheel_entry *entry);
unsigned int setup_errors(const struct timerwheel_setup *setup);
/* The error of SETUP on this machine with TIMERWHEEL_SETUP_ALARM, and _RESIDENT: a bit, or 0. */
extern unsigned int alarm_errors, resident_errors;
unsigned int error_bit(int err);

__u64 choose_key(__u64 *r);
__u64 choose_time(const struct view *view, __u64 *r);
/* A call on timers by index and generation? */
bool op_is_handle(unsigned int op);
/* Copy element @i, which may be unaligned, from the array and back. */
void elem_get(const struct io *io, unsigned int i, union elem *elem);
void elem_put(struct io *io, unsigned int i, const union elem *elem);
void args_ioctl(struct worker *w, const struct call *call, const struct view *view);
/* The errors that the memory and the fields justify; 0: none. */
unsigned int args_errors(const struct io *io, unsigned int op);
void args_read(struct worker *w, const struct call *call, const struct view *view);
bool args_kept(struct worker *w);

/* --- Coverage -------------------------------------------------------------------- */

#define COVER_BITS	262144

/**
 * struct cover - the code that one thread reached
 * @area: memory of KCOV; NULL: there is no KCOV
 * @fd: descriptor of KCOV
 * @pcs: a bit for each byte of the module's code
 * @edges: a bit for each hash of two places reached one after the other
 * @reached: number of places
 */
struct cover {
	unsigned long *area;
	int fd;
	__u8 pcs[COVER_BITS / 8];
	__u8 edges[COVER_BITS / 8];
	unsigned int reached;
};

extern bool cover_wanted;

/* To be called in the thread itself. Without KCOV these functions do nothing. */
void cover_open(struct cover *cover);
void cover_close(struct cover *cover);
void cover_begin(struct cover *cover);
/* Returns true if the call reached something new. */
bool cover_end(struct cover *cover);
unsigned int cover_total(void);

/* --- Workers --------------------------------------------------------------------- */

#define CORPUS_MAX	512
#define RECENT_CALLS	8

/**
 * struct worker - a fuzzing thread
 * @number: its number
 * @random: state of the generator that makes all its decisions
 * @arena: for arguments
 * @elems_arena: for arrays and what is read
 * @io: the call at hand
 * @cover: what it reached
 * @ring: its io_uring; NULL: none
 * @corpus: programs that reached new code
 * @in_corpus: number of programs in it
 * @fresh: the program at hand reached new code
 * @program: the program at hand
 * @at: its call at hand
 * @calls: calls made
 * @programs: programs run
 * @digest: hash of all calls and their results
 * @failed: something was wrong and has been reported
 */
struct worker {
	unsigned int number;
	__u64 random;
	struct arena arena;
	struct arena elems_arena;
	struct io io;
	struct cover cover;
	struct io_uring *ring;
	struct program *corpus;
	unsigned int in_corpus;
	bool fresh;
	struct program program;
	unsigned int at;
	__u64 calls;
	__u64 programs;
	__u64 digest;
	bool failed;
};

void worker_init(struct worker *w, unsigned int number, __u64 seed, bool threads);
void worker_free(struct worker *w);
/* Choose the next program; keep the last one if it reached new code. */
void worker_next(struct worker *w, bool threads);
void worker_keep(struct worker *w);
void digest(struct worker *w, const void *data, size_t len);
/* Report what is wrong, with the program and how to repeat it. */
__attribute__((format(printf, 2, 3)))
void wrong(struct worker *w, const char *format, ...);

/* --- Calls ------------------------------------------------------------------------ */

/* All return what the call returned, or -errno. */
int dev_open(int flags);
int exec_ioctl(struct worker *w, int fd, unsigned long cmd, void *arg);
ssize_t exec_read(struct worker *w, const struct call *call, int fd);
/* A call whose answer is always the same; a different one is reported. */
void exec_other(struct worker *w, const struct call *call, int fd, __u32 capacity);
bool exec_touch(int fd, __u32 index, __u64 word);
/* A descriptor's answer to POLL, EPOLL, SELECT, DUP, SCM: 1 readable, 0 not, -errno. */
int exec_ready(const struct call *call, int fd);
/* Read pending and due from fdinfo. Returns 0 or -errno. */
int exec_fdinfo(int fd, __u64 *pending, __u64 *due);
void ring_open(struct worker *w);
void ring_close(struct worker *w);
bool op_is_ioctl(unsigned int op);
bool op_is_read(unsigned int op);

/* --- Tests ------------------------------------------------------------------------- */

/**
 * struct limits - when to stop
 * @until: time of CLOCK_MONOTONIC, in ns; 0: no limit
 * @programs: number of programs; 0: no limit
 */
struct limits {
	__u64 until;
	__u64 programs;
};

extern __u64 fuzz_seed;

__u64 now_ns(int clock);
bool limits_reached(const struct limits *limits, const struct worker *w);
bool single_run(struct worker *w, const struct limits *limits, const struct program *only);
bool threads_run(struct worker **workers, unsigned int n, const struct limits *limits);

/**
 * struct hammer - a thread that writes to the deadline tables of resident wheels
 * @thread: the thread
 * @fd: the wheels
 * @clock: clock of each
 * @tick: tick of each
 * @n: how many
 * @random: state of its generator
 * @over: it ends
 */
struct hammer {
	pthread_t thread;
	int fd[2];
	__u32 clock[2];
	__u64 tick[2];
	unsigned int n;
	__u64 random;
	bool over;
};

void hammer_start(struct hammer *h);
void hammer_stop(struct hammer *h);

#endif /* FUZZ_H */
