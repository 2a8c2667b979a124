/* SPDX-License-Identifier: GPL-2.0 */
/*
 * abi_fuzz: structured random calls on the device; what its files share.
 *
 *   main.c      arguments, the tests, their KTAP lines
 *   program.c   programs: short lists of calls; made, mutated, printed, read
 *   args.c      turns a call into an argument and an array, mangled or not
 *   memory.c    where these are put: good, half-mapped, read-only, flipping memory
 *   cover.c     which code a call reached (KCOV)
 *   exec.c      makes the calls
 *   worker.c    a thread that fuzzes: its corpus, its digest, its complaints
 *   model.c     what a wheel with the MANUAL clock must do
 *   single.c    one thread: each call compared with the model
 *   threads.c   several: what holds whatever the others do
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <errno.h>
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

/* --- Random numbers (splitmix64: any state is good) ------------------------ */

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
	/* On the argument of an ioctl, in the order of their numbers. */
	OP_INFO, OP_SETUP, OP_ADD, OP_MOVE, OP_REMOVE, OP_DRAIN, OP_GET, OP_LIST, OP_STATS,
	OP_ADVANCE,
	OP_BAD_IOCTL,
	OP_READ, OP_READV, OP_URING, OP_PREAD, OP_WRITE, OP_LSEEK,
	OP_POLL, OP_EPOLL, OP_SELECT, OP_FLAGS,
	OP_MMAP, OP_TOUCH, OP_FDINFO, OP_DUP, OP_SCM, OP_REOPEN,
	OP_CAP, OP_FORK,		/* only with threads */
	OPS
};

/* What is wrong with an argument: bits of struct call.mangle. */
#define MANGLE_SIZE		1
#define MANGLE_FLAGS		2
#define MANGLE_COUNT		4
#define MANGLE_ELEM_SIZE	8
#define MANGLE_CURSOR		16
#define MANGLE_FIELDS		32
#define MANGLE_BITS		6

/* Where memory lies: struct call.place. */
enum place {
	PLACE_PLAIN,		/* good memory */
	PLACE_ODD,		/* ... not aligned */
	PLACE_EDGE,		/* ... right before a page that is not mapped */
	PLACE_CUT,		/* only the first @cut bytes are before that page */
	PLACE_READ_ONLY,	/* all but the first @cut bytes can only be read */
	PLACE_NULL,
	PLACE_KERNEL,
	PLACE_WRAP,		/* wraps around the address space, or nearly */
	PLACE_FLIP,		/* another thread maps, protects and unmaps it */
	PLACES
};

/**
 * struct call - one call of a program
 * @op: enum op
 * @wheel: which wheel, where there are several
 * @place: where the argument (or what is read) is put
 * @elems: where the array is put
 * @cold: its pages must be faulted in: 1 the argument's, 2 the array's
 * @mangle: what is wrong with it
 * @cut: for @place
 * @elems_cut: for @elems
 * @count: elements, or events
 * @seed: all that is not said above is drawn from this
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
 * @seed: the settings of its wheel
 * @n: how many
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
 * struct arena - memory that is seen in several ways
 * @plain: a view that can be written, followed by a page that is not mapped
 * @edge: another, whose last READ_ONLY bytes can only be read
 * @alias: and one that is always good
 * @size: of all that
 * @flip: memory that another thread plays with, or NULL
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
 * @alias: where we see it, NULL: nowhere
 * @len: how much memory is there for us
 * @rw: so many bytes can be read and written by a call, from @p on
 * @rd: so many can be read
 * @flips: that may be different at any time
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
/* What is there beyond @from, or NULL if all is as it should be. */
const char *spot_differs(const struct spot *spot, const void *want, size_t len);
/* Play with the flip memory once. */
void arena_flip(const struct arena *arena, __u64 *random);

/* --- Arguments ------------------------------------------------------------------ */

/* The kernel accepts arguments of up to a page; some are larger, to see that it refuses them. */
#define ARG_MORE	512
#define ARG_ROOM	(65536 + ARG_MORE)	/* with the largest pages that there are */

/**
 * struct view - what one knows of a wheel when a call is made up
 * @now: its time
 * @tick: its tick
 * @cursor: what LIST said last
 * @clocks: SETUP may ask for any clock, not just MANUAL
 * @clean: all memory is good: who counts must see each result
 */
struct view {
	__u64 now;
	__u64 tick;
	__u64 cursor;
	bool clocks;
	bool clean;
};

/**
 * struct io - a call made ready
 * @cmd: the ioctl's number
 * @at: where the argument is
 * @elems_at: where the array is
 * @size: the size that the argument claims
 * @known: the size it has today
 * @arg_len: bytes of @arg in use
 * @elem: size of an element in the array, 0: not a call on one
 * @elem_known: the size it has today, never more than @elem
 * @elems_len: bytes of @elems in use
 * @arg: what it holds; in the end: what it must hold
 * @elems: and the array
 */
struct io {
	unsigned long cmd;
	struct spot at;
	struct spot elems_at;
	__u32 size;
	size_t known;
	size_t arg_len;
	size_t elem;
	size_t elem_known;
	size_t elems_len;
	union {
		char arg[ARG_ROOM];
		struct timerwheel_info info;
		struct timerwheel_setup setup;
		struct timerwheel_batch batch;
		struct timerwheel_stats stats;
		struct timerwheel_advance advance;
	};
	union {
		char *elems;
		struct timerwheel_event *event;
	};
};

/** union elem - an element, as much of it as is known */
union elem {
	struct timerwheel_add add;
	struct timerwheel_move move;
	struct timerwheel_remove remove;
	struct timerwheel_entry entry;
};

/* Errors that a call as a whole may fail with: bits. */
#define MAY_EINVAL	1
#define MAY_E2BIG	2
#define MAY_EFAULT	4
#define MAY_EBUSY	8
#define MAY_EAGAIN	16
#define MAY_EINTR	32
#define MAY_ENOMEM	64
#define MAY_EPERM	128
#define MAY_EOPNOTSUPP	256

struct worker;

__u64 value_of(__u64 key, unsigned int tag);
bool value_fits(__u64 key, __u64 value);
bool add_invalid(const struct timerwheel_add *add);
bool move_invalid(const struct timerwheel_move *move);
bool remove_invalid(const struct timerwheel_remove *rem);
bool get_invalid(const struct timerwheel_entry *entry);
unsigned int setup_errors(const struct timerwheel_setup *setup);
/* What SETUP with TIMERWHEEL_SETUP_ALARM fails with here: a bit, or 0. */
extern unsigned int alarm_errors;
unsigned int error_bit(int err);

__u64 choose_key(__u64 *r);
__u64 choose_time(const struct view *view, __u64 *r);
/* Element @i of the array, which may lie anywhere; from there and back. */
void elem_get(const struct io *io, unsigned int i, union elem *elem);
void elem_put(struct io *io, unsigned int i, const union elem *elem);
/* The unknown part of element @i: from here on it must be zero. */
void elem_zero_tail(struct io *io, unsigned int i);
/* Is something set in it, as far as it lies within @room bytes? */
bool elem_tail_set(const struct io *io, unsigned int i, size_t room);
void args_ioctl(struct worker *w, const struct call *call, const struct view *view);
/* Which errors the memory and the fields give reason for; 0: it may not fail for these. */
unsigned int args_errors(const struct io *io, unsigned int op);
void args_read(struct worker *w, const struct call *call, const struct view *view);
bool args_kept(struct worker *w);

/* --- Coverage -------------------------------------------------------------------- */

#define COVER_BITS	262144

/**
 * struct cover - what one thread reached
 * @area: KCOV's, NULL: there is none
 * @fd: its descriptor
 * @pcs: a bit for each byte of the module's code
 * @edges: a bit for each hash of two places reached one after the other
 * @reached: how many places
 */
struct cover {
	unsigned long *area;
	int fd;
	__u8 pcs[COVER_BITS / 8];
	__u8 edges[COVER_BITS / 8];
	unsigned int reached;
};

extern bool cover_wanted;

/* In the thread itself. Without KCOV all of this does nothing. */
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
 * struct worker - a thread, or the only one
 * @number: which one
 * @random: where all its decisions come from
 * @arena: for arguments
 * @elems_arena: for arrays and what is read
 * @io: the call at hand
 * @cover: what it reached
 * @ring: its io_uring, NULL: none
 * @corpus: programs that reached something new
 * @in_corpus: how many
 * @fresh: the program at hand did
 * @program: the program at hand
 * @at: its call at hand
 * @calls: calls made
 * @programs: programs run
 * @digest: of all calls and their results
 * @failed: something is wrong and has been said
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
/* Choose the next program, keep the last one if it was good. */
void worker_next(struct worker *w, bool threads);
void worker_keep(struct worker *w);
void digest(struct worker *w, const void *data, size_t len);
/* Say what is wrong, with the program and how to repeat it. */
__attribute__((format(printf, 2, 3)))
void wrong(struct worker *w, const char *format, ...);

/* --- Calls ------------------------------------------------------------------------ */

/* All return what the call returned, or -errno. */
int dev_open(int flags);
int exec_ioctl(struct worker *w, int fd, unsigned long cmd, void *arg);
ssize_t exec_read(struct worker *w, const struct call *call, int fd);
/* A call whose answer is always the same; says so if it is another. */
void exec_other(struct worker *w, const struct call *call, int fd, __u32 capacity);
bool exec_touch(int fd, __u32 index, __u64 word);
/* A descriptor's answer to POLL, EPOLL, SELECT, DUP, SCM: 1 readable, 0 not, -errno. */
int exec_ready(const struct call *call, int fd);
/* What fdinfo says of pending and due. Returns 0 or -errno. */
int exec_fdinfo(int fd, __u64 *pending, __u64 *due);
void ring_open(struct worker *w);
void ring_close(struct worker *w);
bool op_is_ioctl(unsigned int op);
bool op_is_read(unsigned int op);

/* --- Tests ------------------------------------------------------------------------- */

/**
 * struct limits - when to stop
 * @until: CLOCK_MONOTONIC, ns; 0: never
 * @programs: so many programs; 0: any number
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

#endif /* FUZZ_H */
