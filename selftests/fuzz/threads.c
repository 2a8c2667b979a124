// SPDX-License-Identifier: GPL-2.0
/*
 * Several threads, each on its own CPU, share wheels with all clocks. Children are killed in their
 * calls, memory changes during a call, signals arrive all the time.
 *
 * The result of an operation depends on the other threads, so only invariants are checked: errors
 * and results are documented and fit the arguments, and the kernel writes nothing but answers. Most
 * of the wheels are counted: they are not closed, no memory changes during a call, and all results
 * are seen. For these, what is reported of a timer must be consistent, and at the end the kernel's
 * counters must equal the sums of ours. Two of them are resident. Another thread arms and cancels
 * their timers in the deadline table, hammers entries and writes nonsense; all that holds still, in
 * these wheels and in the others.
 *
 * The threads work in rounds of a fixed number of programs, each with new wheels, so what a thread
 * does depends on the seed and not on time.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/capability.h>

#include "fuzz.h"

#define COUNTED		6
#define RESIDENT	4	/* from this one on the counted wheels are resident */
#define WHEELS		10
#define ROUND		30	/* number of programs of each thread */
#define CAP_FILE	"/sys/module/timerwheel/parameters/max_user_memory"
#define CHILD_CALLS	6
#define STORM_NS	3000000	/* time between two signals */

/* Sums of the results of one worker's calls. */
struct counts {
	__u64 armed, moved, removed, replaced, drained, delivered, withdrawn;
};

static struct {
	int fd[WHEELS];
	struct timerwheel_setup setup[WHEELS];
	pthread_barrier_t start;
	bool over;
	struct worker **workers;
	unsigned int n;
	__u64 seed;
	char cap[24];
} all;

struct job {
	struct worker *w;
	struct counts counts[COUNTED];
	pthread_t thread;
	bool child;
};

/* --- What may come back ---------------------------------------------------------- */

/* Kinds of wheels: bits. One that is not counted may be of either kind. */
#define KIND_PLAIN	1U
#define KIND_RESIDENT	2U

static unsigned int kinds_of(unsigned int wheel)
{
	if (wheel >= COUNTED)
		return KIND_PLAIN | (resident_errors ? 0 : KIND_RESIDENT);
	return wheel < RESIDENT || resident_errors ? KIND_PLAIN : KIND_RESIDENT;
}

static bool add_result_of(const struct timerwheel_add *a, bool resident, int result)
{
	bool excl = a->flags & TIMERWHEEL_EXCL, match = a->flags & TIMERWHEEL_MATCH;

	if (add_invalid(a, resident, resident))
		return result == -EINVAL;
	switch (result) {
	case TIMERWHEEL_WAS_PARKED:
		return resident && !excl;
	case TIMERWHEEL_WAS_NONE:
		return !match;
	case TIMERWHEEL_WAS_PENDING:
	case TIMERWHEEL_WAS_DUE:
		return !excl;
	case -EEXIST:
		return excl;
	case -ENOENT:
	case -ESTALE:
		return match;
	case -ENOSPC:
	case -EDQUOT:
	case -ENOMEM:
		return !match;
	default:
		return result == -ESHUTDOWN;
	}
}

static bool add_result(const struct timerwheel_add *a, unsigned int kinds, int result)
{
	return (kinds & KIND_PLAIN && add_result_of(a, false, result)) ||
	       (kinds & KIND_RESIDENT && add_result_of(a, true, result));
}

/* Is that a state of a timer? */
static bool was_result(unsigned int kinds, int result)
{
	return result == TIMERWHEEL_WAS_PENDING || result == TIMERWHEEL_WAS_DUE ||
	       (kinds & KIND_RESIDENT && result == TIMERWHEEL_WAS_PARKED);
}

static bool found_result(bool invalid, bool match, unsigned int kinds, int result)
{
	if (invalid)
		return result == -EINVAL;
	return was_result(kinds, result) || result == -ENOENT || (match && result == -ESTALE);
}

static bool move_result(const struct timerwheel_move *m, unsigned int kinds, int result)
{
	bool match = m->flags & TIMERWHEEL_MATCH;

	if (kinds & KIND_PLAIN &&
	    found_result(move_invalid(m, false), match, KIND_PLAIN, result))
		return true;
	if (!(kinds & KIND_RESIDENT))
		return false;
	if (!move_invalid(m, true) && m->flags & TIMERWHEEL_EXCL &&
	    result != TIMERWHEEL_WAS_PARKED && result >= 0)
		return false;
	return (m->flags & TIMERWHEEL_EXCL && result == -EEXIST) ||
	       found_result(move_invalid(m, true), match, KIND_RESIDENT, result);
}

/*
 * Does the value belong to the key? If memory changes during an ADD the kernel may see any pair:
 * zeros in a new page, or the remains of an earlier call.
 */
static bool pair_fits(bool counted, __u64 key, __u64 value)
{
	return !counted || value_fits(key, value);
}

static bool entry_fits(bool counted, unsigned int kinds, const struct timerwheel_entry *e)
{
	bool lingers = e->flags & TIMERWHEEL_LINGER;

	if (e->flags & ~TIMERWHEEL_LINGER || (lingers && !(kinds & KIND_RESIDENT)) ||
	    (kinds == KIND_RESIDENT && lingers == !e->period))
		return false;
	return was_result(kinds, e->result) && pair_fits(counted, e->key, e->value) &&
	       e->deadline <= TIMERWHEEL_TIME_MAX && e->period <= TIMERWHEEL_TIME_MAX &&
	       e->index && e->generation;
}

static void count(struct counts *c, unsigned int op, int result)
{
	if (!c || result < 0)
		return;
	c->armed += op == OP_ADD;
	c->replaced += op == OP_ADD && result;
	c->moved += op == OP_MOVE || op == OP_MOVE_HANDLE;
	c->removed += op == OP_REMOVE || op == OP_REMOVE_HANDLE;
	c->drained += op == OP_DRAIN;
	c->withdrawn += op != OP_GET && op != OP_LIST && result == TIMERWHEEL_WAS_DUE;
}

/* Check an element that was done; accepted values replace the expected ones. */
static bool element(struct worker *w, unsigned int op, unsigned int i, unsigned int kinds,
		    struct counts *counts)
{
	struct io *io = &w->io;
	union elem is, must;
	bool fine;
	int result;

	memcpy(&is, io->elems_at.alias + i * io->elem, io->elem);
	elem_get(io, i, &must);
	switch (op) {
	case OP_ADD:
		result = is.add.result;
		fine = add_result(&must.add, kinds, result);
		must.add.result = result;
		if (result >= 0) {
			must.add.index = is.add.index;
			must.add.generation = is.add.generation;
		}
		break;
	case OP_MOVE:
		result = is.move.result;
		fine = move_result(&must.move, kinds, result);
		must.move.result = result;
		break;
	case OP_REMOVE:
		result = is.remove.result;
		fine = found_result(remove_invalid(&must.remove),
				    must.remove.flags & TIMERWHEEL_MATCH, kinds, result);
		must.remove.result = result;
		if (result < 0)
			break;
		fine &= pair_fits(counts, is.remove.key, is.remove.value);
		must.remove.value = is.remove.value;
		must.remove.left = is.remove.left;
		break;
	case OP_MOVE_HANDLE:
		result = is.move_handle.result;
		/* Without a key, that is all there is to MOVE. */
		fine = move_result(&(struct timerwheel_move){ .flags = io->batch.flags }, kinds,
				   result);
		must.move_handle.result = result;
		break;
	case OP_REMOVE_HANDLE:
		result = is.remove_handle.result;
		fine = found_result(false, false, kinds, result);
		must.remove_handle.result = result;
		if (result > 0)
			must.remove_handle.value = is.remove_handle.value;
		break;
	case OP_GET:
		result = is.entry.result;
		fine = found_result(get_invalid(&must.entry), false, kinds, result);
		if (result > 0) {
			fine &= entry_fits(counts, kinds, &is.entry) &&
				is.entry.key == must.entry.key;
			must.entry = is.entry;
		} else {
			must.entry.result = result;
		}
		break;
	default:
		result = is.entry.result;
		fine = entry_fits(counts, kinds, &is.entry);
		must.entry = is.entry;
	}
	elem_put(io, i, &must);
	if (!fine)
		wrong(w, "element %u (key %llx, result %d) is not as it should be", i,
		      is.add.key, result);
	count(counts, op, result);
	return fine;
}

/* @ret: the number of elements done, or an error */
static void check_elements(struct worker *w, const struct call *call, int ret,
			   unsigned int kinds, struct counts *counts)
{
	struct io *io = &w->io;
	bool scan = call->op == OP_LIST || call->op == OP_DRAIN;
	size_t end;
	int i;

	if ((ret > 0 && (__u32)ret > io->batch.count) || (!ret && io->batch.count && !scan)) {
		wrong(w, "%u elements, %d done", io->batch.count, ret);
		return;
	}
	for (i = 0; i < ret && (i + 1) * io->elem <= io->elems_at.rw; i++)
		if (!element(w, call->op, i, kinds, counts))
			return;
	/*
	 * An element across the end of valid memory may have been written in part. So may one that
	 * DRAIN began to write when its memory had to be faulted in, if the timer was gone after.
	 */
	end = (i + 1) * io->elem;
	if (io->elems_at.alias && end <= io->elems_len &&
	    (io->elems_at.rw < end || call->op == OP_DRAIN))
		memcpy((char *)io->elems + i * io->elem, io->elems_at.alias + i * io->elem,
		       (end < io->elems_at.len ? end : io->elems_at.len) - i * io->elem);
}

/* Take over what a call may have written to its argument. */
static void check_answer(struct worker *w, unsigned int op, int ret)
{
	struct io *io = &w->io;
	size_t from = 0, to = 0, i;

	switch (op) {
	case OP_INFO:
	case OP_STATS:
		to = ret && ret != -EFAULT ? 0 : io->size;
		break;
	case OP_SETUP:
		to = ret ? 0 : io->known;
		break;
	case OP_ADVANCE:
		from = offsetof(struct timerwheel_advance, now);
		to = ret ? 0 : io->known;
		break;
	case OP_LIST:
		from = offsetof(struct timerwheel_batch, cursor);
		to = ret < 0 ? 0 : io->known;
		break;
	}
	if (!io->at.alias || from >= to)
		return;
	if (to > io->at.len)
		to = io->at.len;
	memcpy(io->arg + from, io->at.alias + from, to - from);
	if (op != OP_INFO && op != OP_STATS)
		return;
	for (i = io->known; !ret && i < to; i++)
		if (io->arg[i])
			wrong(w, "byte %zu of the answer is not 0", i);
	if (!ret && io->info.size != io->known)
		wrong(w, "the answer's size is %u, not %zu", io->info.size, io->known);
}

/* --- Calls ------------------------------------------------------------------------- */

static struct view view_of(const struct call *call, unsigned int wheel)
{
	static const int clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };
	const struct timerwheel_setup *setup = &all.setup[wheel];

	return (struct view) {
		.now = setup->clock < ARRAY_LEN(clocks) ? now_ns(clocks[setup->clock]) : 0,
		.tick = setup->tick,
		.cursor = call->seed >> 8 & 127,
		.clocks = true,
		.clean = wheel < COUNTED,
		.table = kinds_of(wheel) == KIND_RESIDENT,
		.resident = kinds_of(wheel) == KIND_RESIDENT,
	};
}

static void do_ioctl(struct worker *w, const struct call *call, unsigned int wheel,
		     struct counts *counts)
{
	const struct view view = view_of(call, wheel);
	struct io *io = &w->io;
	unsigned int errors, may;
	int ret;

	args_ioctl(w, call, &view);
	errors = args_errors(io, call->op);
	ret = exec_ioctl(w, all.fd[wheel], io->cmd, io->at.p);
	if (call->op == OP_MONITOR && ret >= 0)
		close(ret);
	may = errors;
	if (io->elem) {
		may |= MAY_EINTR | MAY_ENOMEM;
		if (io->elems_at.rw < io->elems_len || io->at.flips)
			may |= MAY_EFAULT;
	} else if (call->op == OP_SETUP) {
		may |= MAY_EBUSY;
		if (io->setup.flags & TIMERWHEEL_SETUP_RESIDENT)
			may |= MAY_ENOMEM;
	} else if (call->op == OP_MONITOR) {
		may |= MAY_ENOMEM | MAY_ENOSPC;
	} else if (call->op == OP_ADVANCE) {
		may |= MAY_EINVAL | MAY_EINTR | MAY_ENOMEM;
	}
	if (ret < 0 && !(error_bit(-ret) & may)) {
		wrong(w, "%s failed with %s, not one of the errors %#x", op_names[call->op],
		      strerror(-ret), may);
		return;
	}
	if (ret >= 0 && errors && !io->at.flips) {
		wrong(w, "%s returned %d, not one of the errors %#x", op_names[call->op], ret,
		      errors);
		return;
	}
	if (io->at.flips)
		return;		/* the argument may have been anything */
	if (io->elem)
		check_elements(w, call, ret, kinds_of(wheel), counts);
	check_answer(w, call->op, ret);
	if (!w->failed)
		args_kept(w);
}

static void do_read(struct worker *w, const struct call *call, unsigned int wheel,
		    struct counts *counts)
{
	const size_t size = sizeof(struct timerwheel_event);
	const struct view view = { .clean = wheel < COUNTED };
	struct timerwheel_event *e;
	struct io *io = &w->io;
	size_t i, n, got;
	const char *what;
	ssize_t ret;

	args_read(w, call, &view);
	ret = exec_read(w, call, all.fd[wheel]);
	got = ret < 0 ? 0 : ret;
	n = got / size;
	if (ret < 0 && !(error_bit(-ret) & (MAY_EINVAL | MAY_EFAULT | MAY_EAGAIN | MAY_EINTR |
					    MAY_ENOMEM))) {
		wrong(w, "read failed with %s", strerror(-ret));
		return;
	}
	if (got > io->elems_len || got % size || (!ret && io->elems_len)) {
		wrong(w, "read of %zu bytes returned %zd", io->elems_len, ret);
		return;
	}
	if (counts)
		counts->delivered += n;
	if (!io->elems_at.alias)
		return;
	memcpy(io->elems, io->elems_at.alias, got);
	for (i = 0; i < n; i++) {
		e = &io->event[i];
		/* Another thread may have set the wheel up for this event and set the clock. */
		if (!counts && e->flags == TIMERWHEEL_EVENT_CLOCK_SET)
			continue;
		if (e->fired < e->deadline || !pair_fits(counts, e->key, e->value) || !e->index ||
		    e->flags & ~TIMERWHEEL_EVENT_PERIODIC || (e->overruns && !e->flags)) {
			wrong(w, "event %zu: key %llx value %llx deadline %llx fired %llx",
			      i, e->key, e->value, e->deadline, e->fired);
			return;
		}
	}
	/* One more may have been written in part, as by DRAIN: it does not count. */
	if (got + size <= io->elems_len)
		memcpy((char *)io->elems + got, io->elems_at.alias + got,
		       (size < io->elems_at.len - got ? size : io->elems_at.len - got));
	what = spot_differs(&io->elems_at, io->elems, io->elems_len);
	if (what)
		wrong(w, "%s: %s", op_names[call->op], what);
}

static void run_program(struct job *job);

/* From now on this process may not open wheels that wake the machine. */
static void drop_wake_alarm(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, data))
		return;
	data[CAP_TO_INDEX(CAP_WAKE_ALARM)].effective &= ~CAP_TO_MASK(CAP_WAKE_ALARM);
	if (!syscall(SYS_capset, &head, data))
		alarm_errors = MAY_EPERM;
}

/* A child with the same descriptors. It may be killed at any moment. */
static void do_fork(struct worker *w, const struct call *call)
{
	const struct itimerval storm = { { 0, STORM_NS / 1000 }, { 0, STORM_NS / 1000 } };
	struct job child = { .w = w, .child = true };
	__u64 state = call->seed;
	int status;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		return;		/* no memory, or too many processes: no fault of the module */
	if (!pid) {
		w->cover.area = NULL;
		w->ring = NULL;
		setitimer(ITIMER_REAL, &storm, NULL);
		w->failed = false;
		if (one_in(&state, 2))
			drop_wake_alarm();
		program_make(&w->program, &state, true);
		if (w->program.n > CHILD_CALLS)
			w->program.n = CHILD_CALLS;
		run_program(&child);
		_exit(w->failed);
	}
	if (one_in(&state, 2)) {
		usleep(rnd_to(&state, 3000));
		kill(pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status) != SIGKILL)
		wrong(w, "the child ended with status %#x", status);
}

/* Replace a wheel that other threads are using. */
static void do_reopen(struct worker *w, unsigned int wheel)
{
	int fd = dev_open(wheel % 2 ? 0 : O_NONBLOCK);

	if (fd == -EDQUOT)
		return;
	if (fd < 0) {
		wrong(w, "open: %s", strerror(-fd));
		return;
	}
	dup3(fd, all.fd[wheel], O_CLOEXEC);
	close(fd);
}

/* The administrator changes the limit on a user's memory. */
static void set_cap(const char *text)
{
	int fd = open(CAP_FILE, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	/* Only root may; without root this is not tested. */
	(void)!write(fd, text, strlen(text));
	close(fd);
}

static void do_ready(struct worker *w, const struct call *call, int fd)
{
	int ret;

	cover_begin(&w->cover);
	ret = exec_ready(call, fd);
	w->fresh |= cover_end(&w->cover);
	if (ret != 0 && ret != 1 && ret != -EINTR)
		wrong(w, "%s: %d", op_names[call->op], ret);
}

static void run_call(struct job *job, const struct call *call)
{
	__u64 state = call->seed;
	/* The results of a child would not be seen here. */
	unsigned int wheel = job->child ? COUNTED + call->wheel % (WHEELS - COUNTED) :
					  call->wheel % WHEELS;
	struct counts *counts = wheel < COUNTED ? &job->counts[wheel] : NULL;
	__u64 pending, due;

	job->w->calls++;
	if (op_is_ioctl(call->op)) {
		do_ioctl(job->w, call, wheel, counts);
		return;
	}
	if (op_is_read(call->op)) {
		do_read(job->w, call, wheel, counts);
		return;
	}
	switch (call->op) {
	case OP_POLL:
	case OP_EPOLL:
	case OP_SELECT:
	case OP_DUP:
	case OP_SCM:
		do_ready(job->w, call, all.fd[wheel]);
		break;
	case OP_TOUCH:
		exec_touch(all.fd[wheel], rnd_to(&state, 2000),
			   (rnd(&state) >> rnd_to(&state, 64) & ~1023ULL) | rnd_to(&state, 16));
		break;
	case OP_FDINFO:
		if (exec_fdinfo(all.fd[wheel], &pending, &due))
			wrong(job->w, "fdinfo: %s", strerror(errno));
		break;
	case OP_REOPEN:
		if (!counts && !job->child)
			do_reopen(job->w, wheel);
		break;
	case OP_CAP:
		if (!job->child)
			set_cap(call->seed % 2 ? "100000" : "1000000");
		break;
	case OP_FORK:
		if (!job->child)
			do_fork(job->w, call);
		break;
	default:
		exec_other(job->w, call, all.fd[wheel], 0);
	}
}

static void run_program(struct job *job)
{
	struct worker *w = job->w;

	for (w->at = 0; w->at < w->program.n && !w->failed; w->at++)
		run_call(job, &w->program.call[w->at]);
}

/* --- Threads ----------------------------------------------------------------------- */

static void pin(unsigned int number)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(number % (cpus > 0 ? cpus : 1), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void on_signal(int signal)
{
	(void)signal;
}

static void *thread_main(void *arg)
{
	const struct itimerspec storm = { { 0, STORM_NS }, { 0, STORM_NS } };
	struct job *job = arg;
	struct worker *w = job->w;
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM,
	};
	timer_t timer;
	unsigned int i;

	pin(w->number);
	cover_open(&w->cover);
	event._sigev_un._tid = syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer))
		wrong(w, "timer_create: %s", strerror(errno));
	timer_settime(timer, 0, &storm, NULL);
	pthread_barrier_wait(&all.start);
	for (i = 0; i < ROUND && !w->failed; i++) {
		worker_next(w, true);
		run_program(job);
		worker_keep(w);
		w->programs++;
		set_cap(all.cap);
	}
	timer_delete(timer);
	cover_close(&w->cover);
	return NULL;
}

/*
 * Changes the memory that some calls are given. It may unmap it, because while this thread runs no
 * other thread maps memory that is accessed later.
 */
static void *flip_main(void *arg)
{
	__u64 random = all.seed;
	const struct worker *w;
	unsigned int i;

	(void)arg;
	while (!__atomic_load_n(&all.over, __ATOMIC_RELAXED)) {
		w = all.workers[rnd_to(&random, all.n)];
		arena_flip(&w->arena, &random);
		arena_flip(&w->elems_arena, &random);
		usleep(rnd_to(&random, 200));
	}
	for (i = 0; i < all.n; i++) {
		arena_unflip(&all.workers[i]->arena);
		arena_unflip(&all.workers[i]->elems_arena);
	}
	return NULL;
}

static bool open_wheels(struct worker *w)
{
	static const __u64 ticks[] = { 1000, 10000, 100000, 1000000 };
	static const __u32 slots[] = { 8, 64, 256 };
	static const __u32 caps[] = { 0, 0, 100 };
	struct timerwheel_setup *setup;
	unsigned int i;
	int fd;

	for (i = 0; i < WHEELS; i++) {
		fd = dev_open(one_in(&all.seed, 4) ? 0 : O_NONBLOCK);
		all.fd[i] = fd;
		setup = &all.setup[i];
		*setup = (struct timerwheel_setup) {
			.size = sizeof(*setup),
			/* one resident wheel with a clock that runs, and a MANUAL one */
			.clock = kinds_of(i) != KIND_RESIDENT ? i % 4 :
				 i % 2 ? TIMERWHEEL_CLOCK_MANUAL : TIMERWHEEL_CLOCK_MONOTONIC,
			.flags = kinds_of(i) == KIND_RESIDENT ? TIMERWHEEL_SETUP_RESIDENT : 0,
			.tick = ticks[rnd_to(&all.seed, ARRAY_LEN(ticks))],
			.slots = slots[rnd_to(&all.seed, ARRAY_LEN(slots))],
			.capacity = caps[rnd_to(&all.seed, ARRAY_LEN(caps))],
			.wake_events = 1 + rnd_to(&all.seed, 3), .wake_ns = 100000,
		};
		if (fd < 0 || (i < COUNTED && exec_ioctl(w, fd, TIMERWHEEL_IOC_SETUP, setup))) {
			wrong(w, "cannot open and set up wheel %u: %s", i, strerror(errno));
			return false;
		}
	}
	return true;
}

/* --- What must hold when no thread uses a wheel --------------------------------------- */

static int ask(struct worker *w, int fd, unsigned long cmd, struct timerwheel_batch *batch)
{
	batch->size = sizeof(*batch);
	batch->elem_size = sizeof(struct timerwheel_entry);
	return exec_ioctl(w, fd, cmd, batch);
}

static void same(struct worker *w, unsigned int wheel, const char *what, __u64 kernel, __u64 ours)
{
	if (kernel != ours)
		wrong(w, "wheel %u: %s: the kernel counts %llu, we %llu", wheel, what, kernel,
		      ours);
}

static void check_wheel(struct worker *w, unsigned int wheel, struct counts *c)
{
	struct timerwheel_entry entry[64];
	struct timerwheel_batch batch = { .elems = (uintptr_t)entry, .count = ARRAY_LEN(entry) };
	struct timerwheel_stats s = { .size = sizeof(s) };
	__u64 listed = 0, drained = 0;
	int fd = all.fd[wheel], n, i;

	while ((n = ask(w, fd, TIMERWHEEL_IOC_LIST, &batch)) > 0)
		listed += n;
	batch.cursor = 0;
	while ((n = ask(w, fd, TIMERWHEEL_IOC_DRAIN, &batch)) > 0) {
		drained += n;
		for (i = 0; i < n; i++) {
			if (!entry_fits(c, kinds_of(wheel), &entry[i]))
				wrong(w, "wheel %u: key %llx is not whole", wheel, entry[i].key);
			count(c, OP_DRAIN, entry[i].result);
		}
	}
	same(w, wheel, "timers listed, drained", listed, drained);
	if (n || exec_ioctl(w, fd, TIMERWHEEL_IOC_STATS, &s)) {
		wrong(w, "wheel %u: DRAIN or STATS failed", wheel);
		return;
	}
	same(w, wheel, "pending", s.pending, 0);
	same(w, wheel, "due", s.due, 0);
	same(w, wheel, "parked", s.parked, 0);
	same(w, wheel, "all armings have ended", s.armed + s.rearmed,
	     s.delivered + s.removed + s.replaced + s.drained);
	if (!c)
		return;
	same(w, wheel, "armed", s.armed, c->armed);
	same(w, wheel, "moved", s.moved, c->moved);
	same(w, wheel, "removed", s.removed, c->removed);
	same(w, wheel, "replaced", s.replaced, c->replaced);
	same(w, wheel, "drained", s.drained, c->drained);
	same(w, wheel, "delivered", s.delivered, c->delivered);
	same(w, wheel, "withdrawn", s.withdrawn, c->withdrawn);
}

static void check_wheels(struct job *jobs)
{
	struct counts sum;
	unsigned int i, j, k;

	for (i = 0; i < WHEELS; i++) {
		memset(&sum, 0, sizeof(sum));
		for (j = 0; i < COUNTED && j < all.n; j++)
			for (k = 0; k < sizeof(sum) / sizeof(__u64); k++)
				((__u64 *)&sum)[k] += ((__u64 *)&jobs[j].counts[i])[k];
		check_wheel(all.workers[0], i, i < COUNTED ? &sum : NULL);
	}
}

static bool any_failed(void)
{
	unsigned int i;

	for (i = 0; i < all.n; i++)
		if (all.workers[i]->failed)
			return true;
	return false;
}

/* All threads run a round of programs on new wheels. */
static void run_round(struct job *jobs)
{
	struct hammer hammer = { .random = rnd(&all.seed) };
	pthread_t flipper;
	unsigned int i;

	if (!open_wheels(all.workers[0]))
		return;
	for (i = RESIDENT; i < COUNTED && !resident_errors; i++) {
		hammer.fd[hammer.n] = all.fd[i];
		hammer.clock[hammer.n] = all.setup[i].clock;
		hammer.tick[hammer.n++] = all.setup[i].tick;
	}
	all.over = false;
	/* It maps memory: before flip_main() runs. */
	hammer_start(&hammer);
	for (i = 0; i < all.n; i++) {
		jobs[i] = (struct job){ .w = all.workers[i] };
		if (pthread_create(&jobs[i].thread, NULL, thread_main, &jobs[i]))
			abort();
	}
	if (pthread_create(&flipper, NULL, flip_main, NULL))
		abort();
	pthread_barrier_wait(&all.start);
	for (i = 0; i < all.n; i++)
		pthread_join(jobs[i].thread, NULL);
	all.over = true;
	pthread_join(flipper, NULL);
	hammer_stop(&hammer);
	if (!any_failed())
		check_wheels(jobs);
	for (i = 0; i < WHEELS; i++)
		close(all.fd[i]);
}

/**
 * threads_run - run programs in several threads, in rounds
 * @workers: one for each thread
 * @n: how many
 * @limits: when to stop
 *
 * Return: true if nothing was wrong.
 */
bool threads_run(struct worker **workers, unsigned int n, const struct limits *limits)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct job *jobs = calloc(n, sizeof(*jobs));
	FILE *file = fopen(CAP_FILE, "r");

	if (!jobs)
		abort();
	strcpy(all.cap, "0");
	if (file) {
		if (fscanf(file, "%20s", all.cap) != 1)
			strcpy(all.cap, "0");
		fclose(file);
	}
	/* One heap for all threads, so that no thread maps memory: see flip_main(). */
	mallopt(M_ARENA_MAX, 1);
	sigaction(SIGALRM, &action, NULL);
	all.workers = workers;
	all.n = n;
	all.seed = fuzz_seed;
	pthread_barrier_init(&all.start, NULL, n + 1);
	while (!any_failed() && !limits_reached(limits, workers[0]))
		run_round(jobs);
	pthread_barrier_destroy(&all.start);
	free(jobs);
	return !any_failed();
}
