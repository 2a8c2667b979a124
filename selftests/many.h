/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the tests of many wheels: a crowd of wheels with a ledger of the event that each timer
 * owes, and meters for the time that a SCHED_FIFO task has to wait.
 */
#ifndef MANY_H
#define MANY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include "tw_test.h"

#define TIMEOUT		900		/* for one test, in s */
#define ROOM		4096		/* most timers in a call, most events in a read */
#define NO_EVENT	(~0ULL)		/* in the ledger: this timer owes no event */

/* --- Users -------------------------------------------------------------------------- */

#define ALICE	20001
#define BOB	20002

/* Open a wheel that is charged to user @uid. The caller is root and stays root. */
static inline int open_as(uid_t uid)
{
	int fd;

	if (setresuid(uid, 0, 0))
		return -errno;
	fd = dev_open(O_NONBLOCK);
	return setresuid(0, 0, 0) ? -errno : fd;
}

/* Become user @uid permanently. The caller can open the device only if @uid may. */
static inline int become(uid_t uid)
{
	return setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ? -errno : 0;
}

/*
 * Move this process, which is root, into a container: a user namespace that root has created. It
 * stays root for the file system, but can no longer raise limits or priorities. Its users, such as
 * ALICE, differ from the users outside. 0 or -errno
 */
static inline int enter_container(void)
{
	static const char map[] = "0 0 1\n1 1000001 60000\n";
	char path[64];
	int go[2], err;
	pid_t pid;
	char c = 0;

	if (pipe(go))
		return -errno;
	pid = fork();
	if (!pid) {
		if (read(go[0], &c, 1) != 1)
			_exit(1);
		snprintf(path, sizeof(path), "/proc/%d/uid_map", getppid());
		err = tw_file_write(path, map);
		snprintf(path, sizeof(path), "/proc/%d/gid_map", getppid());
		_exit(err || tw_file_write(path, map) ? 2 : 0);
	}
	if (pid < 0 || unshare(CLONE_NEWUSER) || write(go[1], &c, 1) != 1)
		return -errno;
	close(go[0]);
	close(go[1]);
	return tw_reap(pid) ? -EIO : 0;
}

/* --- Waits of a SCHED_FIFO 99 task -------------------------------------------------- */

static inline int fifo(bool on)
{
	struct sched_param param = { .sched_priority = on ? 99 : 0 };

	return tw_err(sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &param));
}

/*
 * Read the clock until @until with the highest priority, and return the longest gap: the time that
 * interrupts and softirqs take. Use it for a few 100 ms at most: after 950 ms the scheduler lets
 * other tasks run.
 */
static inline __u64 gap_spin(__u64 until)
{
	__u64 last, now, longest = 0;

	if (fifo(true))
		return NO_EVENT;
	for (last = tw_now(CLOCK_MONOTONIC); last < until; last = now) {
		now = tw_now(CLOCK_MONOTONIC);
		if (now - last > longest)
			longest = now - last;
	}
	return fifo(false) ? NO_EVENT : longest;
}

#define GAP_EVERY	(20 * USEC)

/*
 * A thread with the highest priority that repeatedly sleeps for GAP_EVERY. It also measures the
 * delays that tasks cause in the kernel, and lets them run in between. A delay of n us appears as
 * at least n - GAP_EVERY us. Without instruction-counted time it measures nothing.
 */
struct gap_meter {
	pthread_t id;
	atomic_bool stop;
	__u64 longest;
};

static inline void *gap_thread(void *arg)
{
	struct gap_meter *m = arg;
	__u64 now, at;

	if (tw_pin(0) || fifo(true)) {
		m->longest = NO_EVENT;
		return NULL;
	}
	/* the first rounds fault memory in */
	for (at = 0; at < 10; at++)
		tw_sleep(GAP_EVERY);
	at = tw_now(CLOCK_MONOTONIC);
	while (!atomic_load(&m->stop)) {
		at += GAP_EVERY;
		tw_sleep_until(CLOCK_MONOTONIC, at);
		now = tw_now(CLOCK_MONOTONIC);
		if (now - at > m->longest)
			m->longest = now - at;
		if (now > at)
			at = now;
	}
	return NULL;
}

static inline int gap_start(struct gap_meter *m)
{
	memset(m, 0, sizeof(*m));
	if (!tw_icount())
		return 0;
	if (pthread_create(&m->id, NULL, gap_thread, m))
		return -EAGAIN;
	tw_sleep(2 * MSEC);
	return 0;
}

static inline __u64 gap_stop(struct gap_meter *m)
{
	if (tw_icount()) {
		atomic_store(&m->stop, true);
		pthread_join(m->id, NULL);
	}
	return m->longest;
}

/* --- Counted work ------------------------------------------------------------------- */

#define WORK_LOOPS	5000

/* Always executes the same instructions */
static inline void work(void)
{
	int n;

	for (n = 0; n < WORK_LOOPS; n++)
		__asm__ volatile("" : "+r" (n));
}

/* --- A crowd of wheels -------------------------------------------------------------- */

struct crowd_wheel {
	int fd;
	struct timerwheel_ring *ring;	/* NULL: its events are read */
	int *monitor;
};

/* Settings and contents of the wheels of a crowd, the same for all of them */
struct crowd_kind {
	int wheels;
	int each;		/* timers in each */
	__u64 tick;		/* 0: default */
	__u64 period;
	__u64 apart;		/* from each timer's deadline to the next one's */
	__u32 ring;		/* 0: none */
	int monitors;		/* of each, with 64 events */
	int users;		/* number of users that own the wheels, in turn; 0: root owns all */
	int clocks;		/* number of clocks, in turn; 0: all wheels are on MONOTONIC */
	int unit_bits;		/* they have a deadline table, with that generation_bits; 0: none */
};

struct crowd {
	struct crowd_kind kind;
	struct crowd_wheel *wheel;
	__u64 *owes;		/* for each timer: deadline of its next event, or NO_EVENT */
	__u64 took;		/* ns to arm all, if time is not counted in instructions */
	/* events taken: */
	__u64 got;
	__u64 strange;		/* events that no timer owed */
	__u64 early;
	__u64 late_max;
};

static inline __u64 crowd_value(int wheel, __u64 key)
{
	return ~(key + wheel * 1000003ULL) * 0x9e3779b97f4a7c15ULL;
}

static inline clockid_t crowd_clock(const struct crowd *c, int i)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME };

	return c->kind.clocks ? clocks[i % c->kind.clocks] : CLOCK_MONOTONIC;
}

/* Difference of the clock of wheel @i from MONOTONIC */
static inline __u64 crowd_offset(const struct crowd *c, int i)
{
	clockid_t clock = crowd_clock(c, i);

	return clock == CLOCK_MONOTONIC ? 0 : tw_now(clock) - tw_now(CLOCK_MONOTONIC);
}

/* A deadline as a wheel of the crowd rounds it */
static inline __u64 crowd_deadline(const struct crowd *c, __u64 deadline)
{
	__u64 unit = 1ULL << c->kind.unit_bits;

	return (deadline + unit - 1) & ~(unit - 1);
}

static inline size_t ring_size(__u32 events)
{
	return TIMERWHEEL_RING_EVENTS + (size_t)events * sizeof(struct timerwheel_event);
}

static inline int monitor_of(int fd, __u32 events)
{
	struct timerwheel_monitor mon = {
		.size = sizeof(mon), .events = events,
		.flags = TIMERWHEEL_MONITOR_NONBLOCK | TIMERWHEEL_MONITOR_CLOEXEC,
	};

	return dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &mon);
}

/* Open wheel @i. 0 or -errno */
static inline int crowd_open_one(struct crowd *c, int i)
{
	static const __u32 clocks[] = {
		[CLOCK_MONOTONIC] = TIMERWHEEL_CLOCK_MONOTONIC,
		[CLOCK_REALTIME] = TIMERWHEEL_CLOCK_REALTIME,
		[CLOCK_BOOTTIME] = TIMERWHEEL_CLOCK_BOOTTIME,
	};
	struct timerwheel_setup setup = {
		.clock = clocks[crowd_clock(c, i)], .tick = c->kind.tick, .ring = c->kind.ring,
		.flags = c->kind.unit_bits ? TIMERWHEEL_SETUP_TABLE : 0,
	};
	struct crowd_wheel *w = &c->wheel[i];
	int k, ret;

	w->fd = c->kind.users ? open_as(ALICE + i % c->kind.users) : dev_open(O_NONBLOCK);
	if (w->fd < 0)
		return w->fd;
	ret = dev_setup(w->fd, &setup);
	if (ret)
		return ret;
	if (c->kind.ring) {
		w->ring = mmap(NULL, ring_size(c->kind.ring), PROT_READ | PROT_WRITE, MAP_SHARED,
			       w->fd, TIMERWHEEL_MMAP_RING);
		if (w->ring == MAP_FAILED)
			return -errno;
		w->ring->waiting = 1;
	}
	w->monitor = c->kind.monitors ? calloc(c->kind.monitors, sizeof(int)) : NULL;
	for (k = 0; k < c->kind.monitors; k++) {
		w->monitor[k] = monitor_of(w->fd, 64);
		if (w->monitor[k] < 0)
			return w->monitor[k];
	}
	return 0;
}

/* 0 or -errno */
static inline int crowd_open(struct crowd *c, const struct crowd_kind *kind)
{
	struct rlimit rl = { 1 << 18, 1 << 18 };
	int i, ret;

	memset(c, 0, sizeof(*c));
	c->kind = *kind;
	if (setrlimit(RLIMIT_NOFILE, &rl))
		return -errno;
	c->wheel = calloc(kind->wheels, sizeof(*c->wheel));
	c->owes = malloc((size_t)kind->wheels * kind->each * sizeof(*c->owes));
	if (!c->wheel || !c->owes)
		return -ENOMEM;
	memset(c->owes, 0xff, (size_t)kind->wheels * kind->each * sizeof(*c->owes));
	for (i = 0; i < kind->wheels; i++) {
		ret = crowd_open_one(c, i);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static inline void crowd_close(struct crowd *c)
{
	int i, k;

	for (i = 0; i < c->kind.wheels; i++) {
		for (k = 0; k < c->kind.monitors; k++)
			close(c->wheel[i].monitor[k]);
		if (c->wheel[i].ring)
			munmap(c->wheel[i].ring, ring_size(c->kind.ring));
		free(c->wheel[i].monitor);
		close(c->wheel[i].fd);
	}
	free(c->wheel);
	free(c->owes);
}

/* Arm all, for @at (on MONOTONIC) + number of the wheel * @stagger. 0, or an error. */
static inline int crowd_arm_at(struct crowd *c, __u64 at, __u64 stagger)
{
	static struct timerwheel_add add[ROOM];
	int i, k, from, n, ret;
	__u64 when;

	for (i = 0; i < c->kind.wheels; i++) {
		when = at + i * stagger + crowd_offset(c, i);
		for (from = 0; from < c->kind.each; from += n) {
			n = c->kind.each - from < ROOM ? c->kind.each - from : ROOM;
			for (k = 0; k < n; k++) {
				add[k] = (struct timerwheel_add){
					.key = from + k, .value = crowd_value(i, from + k),
					.deadline = when + (from + k) * c->kind.apart,
					.period = c->kind.period, .flags = TIMERWHEEL_ABS,
				};
				c->owes[(size_t)i * c->kind.each + from + k] =
					crowd_deadline(c, add[k].deadline);
			}
			ret = dev_add(c->wheel[i].fd, add, n);
			if (ret != n)
				return ret < 0 ? ret : -EPROTO;
			for (k = 0; k < n; k++) {
				if (add[k].result < 0)
					return add[k].result;
			}
		}
	}
	return 0;
}

/*
 * The same, for a time when all will have been armed. Under instruction-counted time a distant time
 * costs nothing; otherwise the function first measures the duration of arming. Returns the time, or
 * 0 after an error.
 */
static inline __u64 crowd_arm(struct crowd *c, __u64 stagger)
{
	__u64 began = tw_now(CLOCK_MONOTONIC), at;

	if (tw_icount()) {
		at = (began / SEC + 20) * SEC;
	} else {
		if (!c->took && crowd_arm_at(c, began + HOUR, 0))
			return 0;
		if (!c->took)
			c->took = tw_now(CLOCK_MONOTONIC) - began;
		at = tw_now(CLOCK_MONOTONIC) + 2 * c->took + 100 * MSEC;
	}
	return crowd_arm_at(c, at, stagger) ? 0 : at;
}

/* Enter taken events into the ledger */
static inline void crowd_enter(struct crowd *c, int i, const struct timerwheel_event *ev, int n)
{
	int k;

	for (k = 0; k < n; k++) {
		__u64 *owes = &c->owes[(size_t)i * c->kind.each + ev[k].key];

		if (ev[k].key >= (__u64)c->kind.each || *owes != ev[k].deadline ||
		    ev[k].value != crowd_value(i, ev[k].key)) {
			c->strange++;
			continue;
		}
		*owes = NO_EVENT;
		if (c->kind.period)
			*owes = ev[k].deadline + (1 + ev[k].overruns) * c->kind.period;
		c->early += ev[k].fired < ev[k].deadline;
		if (ev[k].fired > ev[k].deadline && ev[k].fired - ev[k].deadline > c->late_max)
			c->late_max = ev[k].fired - ev[k].deadline;
	}
	c->got += n;
}

/* Take the delivered events of wheel @i. Returns the number of events, or -errno. */
static inline int crowd_take_one(struct crowd *c, int i)
{
	static struct timerwheel_event ev[ROOM];
	struct crowd_wheel *w = &c->wheel[i];
	struct timerwheel_event *first;
	__u32 head, tail, n;
	ssize_t ret;

	if (!w->ring) {
		ret = read(w->fd, ev, sizeof(ev));
		if (ret < 0)
			return errno == EAGAIN ? 0 : -errno;
		crowd_enter(c, i, ev, ret / sizeof(*ev));
		return ret / sizeof(*ev);
	}
	if (__atomic_load_n(&w->ring->flags, __ATOMIC_RELAXED) & TIMERWHEEL_RING_OVERFLOW) {
		ret = dev_ioctl(w->fd, TIMERWHEEL_IOC_FLOW, NULL);
		if (ret < 0)
			return ret;
	}
	first = (void *)((char *)w->ring + TIMERWHEEL_RING_EVENTS);
	head = w->ring->head;
	tail = __atomic_load_n(&w->ring->tail, __ATOMIC_ACQUIRE);
	for (n = 0; head != tail; head++, n++)
		crowd_enter(c, i, first + (head & w->ring->mask), 1);
	__atomic_store_n(&w->ring->head, head, __ATOMIC_RELEASE);
	return n;
}

/* Take @want events. Returns 0, -ETIMEDOUT if they do not come, or an error. */
static inline int crowd_take(struct crowd *c, __u64 want)
{
	__u64 until = tw_now(CLOCK_MONOTONIC) + LONG_MS * MSEC, got;
	int i, ret;

	/* Not epoll, which loops with interrupts off for wheels that become ready meanwhile. */
	while (c->got < want) {
		got = c->got;
		for (i = 0; i < c->kind.wheels; i++) {
			ret = crowd_take_one(c, i);
			if (ret < 0)
				return ret;
		}
		if (c->got != got) {
			until = tw_now(CLOCK_MONOTONIC) + LONG_MS * MSEC;
			continue;
		}
		if (tw_now(CLOCK_MONOTONIC) > until)
			return -ETIMEDOUT;
		tw_sleep(MSEC);
	}
	return 0;
}

/* Add up the counters of all wheels. Returns true if the counters of each wheel are balanced. */
static inline bool crowd_stats(const struct crowd *c, struct timerwheel_stats *sum)
{
	struct timerwheel_stats st;
	bool good = true;
	int i;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < c->kind.wheels; i++) {
		good = good && !tw_stats(c->wheel[i].fd, &st) && tw_balanced(&st);
		sum->pending += st.pending;
		sum->due += st.due;
		sum->armed += st.armed;
		sum->delivered += st.delivered;
		sum->overruns += st.overruns;
		sum->firings += st.firings;
	}
	return good;
}

/* Does any timer still owe an event? */
static inline bool crowd_owes(const struct crowd *c)
{
	return !tw_all_bytes(c->owes, 0xff,
			     (size_t)c->kind.wheels * c->kind.each * sizeof(*c->owes));
}

#endif /* MANY_H */
