// SPDX-License-Identifier: GPL-2.0
/*
 * killed: a process that shares a wheel is killed, stalls or loses the wheel in the middle of a
 * call. The other processes then find each element done or not begun, each event delivered once,
 * and no lock held.
 *
 * TW_ABUSE_ROUNDS: factor for the number of rounds of tests that depend on chance (1)
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "abuse.h"

#define REFCNT		"/sys/module/timerwheel/refcnt"

/* --- Killed in the middle --------------------------------------------------------------- */

#define VICTIM	10000	/* timers */
#define CHUNK	2000	/* elements in one call */

/* Shared with the victim: its progress, and the memory that its calls write to */
struct victim {
	atomic_bool began;
	atomic_int reported;	/* elements of calls that have returned */
	struct timerwheel_entry ent[VICTIM];
	struct timerwheel_event ev[VICTIM];
};

enum doing { ADDS, REPLACES, MOVES, REMOVES, GETS, LISTS, DRAINS, READS, ADVANCES };

FIXTURE(victim) {
	int fd;			/* MANUAL clock, tick of 1 us */
	int probe;
	struct victim *v;
	__u64 base;
};

FIXTURE_VARIANT(victim) {
	enum doing doing;
};

FIXTURE_VARIANT_ADD(victim, add) {
	.doing = ADDS,
};

FIXTURE_VARIANT_ADD(victim, replace) {
	.doing = REPLACES,
};

FIXTURE_VARIANT_ADD(victim, move) {
	.doing = MOVES,
};

FIXTURE_VARIANT_ADD(victim, remove) {
	.doing = REMOVES,
};

FIXTURE_VARIANT_ADD(victim, get) {
	.doing = GETS,
};

FIXTURE_VARIANT_ADD(victim, list) {
	.doing = LISTS,
};

FIXTURE_VARIANT_ADD(victim, drain) {
	.doing = DRAINS,
};

FIXTURE_VARIANT_ADD(victim, read) {
	.doing = READS,
};

FIXTURE_VARIANT_ADD(victim, advance) {
	.doing = ADVANCES,
};

FIXTURE_SETUP(victim)
{
	self->v = tw_shared(sizeof(*self->v));
	self->probe = dev_open(O_NONBLOCK);
	ASSERT_LE(0, self->probe);
	self->base = tw_memory_alone(self->probe);
}

FIXTURE_TEARDOWN(victim)
{
	EXPECT_TRUE(user_memory_become(self->probe, self->base));
	close(self->probe);
}

/* Process all timers in the order of their keys, in calls of CHUNK elements. */
static void victim_works(int fd, enum doing doing, struct victim *v)
{
	union {
		struct timerwheel_add add[CHUNK];
		struct timerwheel_move move[CHUNK];
		struct timerwheel_remove rem[CHUNK];
	} *u = calloc(1, sizeof(*u));
	__u64 cursor = 0;
	int i, k, n;

	memset(v->ent, 0, sizeof(v->ent));
	if (doing == DRAINS)
		tw_poison(v->ent, sizeof(v->ent));
	tw_poison(v->ev, sizeof(v->ev));
	for (i = 0; i < VICTIM; i++)
		v->ent[i].key = doing == GETS ? (__u64)i : v->ent[i].key;
	atomic_store(&v->began, true);
	for (i = 0; i < VICTIM; i += n) {
		n = CHUNK;
		for (k = 0; k < CHUNK; k++) {
			if (doing == MOVES) {
				u->move[k] = (struct timerwheel_move){
					.key = i + k, .deadline = 2 * HOUR, .flags = TIMERWHEEL_ABS,
				};
			} else if (doing == REMOVES) {
				u->rem[k] = (struct timerwheel_remove){ .key = i + k };
			} else if (doing == ADDS || doing == REPLACES) {
				u->add[k] = (struct timerwheel_add){
					.key = i + k, .value = value_of(i + k),
					.deadline = 2 * HOUR, .flags = TIMERWHEEL_ABS,
				};
			}
		}
		switch (doing) {
		case ADDS:
		case REPLACES:
			n = dev_add(fd, u->add, n);
			break;
		case MOVES:
			n = dev_move(fd, u->move, n);
			break;
		case REMOVES:
			n = dev_remove(fd, u->rem, n);
			break;
		case GETS:
			n = dev_get(fd, v->ent + i, n);
			break;
		case LISTS:
			n = tw_batch(fd, TIMERWHEEL_IOC_LIST, 0, v->ent + i, sizeof(*v->ent), n,
				     &cursor);
			break;
		case DRAINS:
			n = tw_batch(fd, TIMERWHEEL_IOC_DRAIN, 0, v->ent + i, sizeof(*v->ent), n,
				     NULL);
			break;
		case READS:
			n = read(fd, v->ev + i, n * EV_SIZE) / (int)EV_SIZE;
			break;
		case ADVANCES:
			/* all timers in one call */
			n = tw_advance(fd, TIMERWHEEL_ABS, 3 * HOUR) == VICTIM ? VICTIM : -1;
			break;
		}
		if (n <= 0)
			_exit(3);
		atomic_store(&v->reported, i + n);
	}
	pause();
}

static void *victim_thread(void *arg)
{
	void **a = arg;

	victim_works((int)(long)a[0], (enum doing)(long)a[1], a[2]);
	return NULL;
}

enum ending { KILLED, EXECS, EXITS, ENDINGS };

/* A child works on @fd and ends in the middle, after @ns. Returns its status, as tw_reap() does. */
static int victim_dies(int fd, enum doing doing, struct victim *v, enum ending how, __u64 ns)
{
	__u64 until = tw_now(CLOCK_MONOTONIC) + LONG_MS * MSEC;
	pid_t pid;

	atomic_store(&v->began, false);
	atomic_store(&v->reported, 0);
	pid = fork();
	if (!pid) {
		void *arg[] = { (void *)(long)fd, (void *)(long)doing, v };
		pthread_t id;

		if (how == KILLED)
			victim_works(fd, doing, v);
		/* its memory is released while its other thread is in a call */
		pthread_create(&id, NULL, victim_thread, arg);
		while (!atomic_load(&v->began))
			sched_yield();
		tw_sleep(ns);
		if (how == EXECS)
			execl("/bin/true", "true", NULL);
		_exit(0);
	}
	while (!atomic_load(&v->began) && tw_now(CLOCK_MONOTONIC) < until)
		sched_yield();
	if (how == KILLED) {
		tw_sleep(ns);
		kill(pid, SIGKILL);
	}
	return tw_reap(pid);
}

/*
 * Returns the number of elements that were done when the victim died. -1: they are not the first
 * ones, or not those that the calls reported.
 */
static int victim_left(int fd, enum doing doing, struct victim *v)
{
	bool present = doing != ADDS && doing != REMOVES && doing != DRAINS && doing != READS;
	unsigned char *seen = calloc(VICTIM, 1), *reported = calloc(VICTIM, 1);
	struct timerwheel_event *ev = calloc(VICTIM + 1, sizeof(*ev));
	__u64 *deadline = calloc(VICTIM, sizeof(*deadline));
	int i, n, done = 0, total = list_all(fd, seen, deadline, VICTIM);
	struct timerwheel_stats st;

	if (total < 0 || tw_stats(fd, &st) || !tw_balanced(&st))
		return -1;
	for (i = 0; i < VICTIM; i++) {
		if (seen[i] > 1 || (present && !seen[i]))
			return -1;
	}
	switch (doing) {
	case ADDS:
	case REPLACES:
	case MOVES:
	case REMOVES:
		for (i = 0; i < VICTIM; i++) {
			bool is = doing == REMOVES ? !seen[i] :
						     seen[i] && deadline[i] == 2 * HOUR;

			if (is && done < i)
				return -1;
			done += is;
		}
		break;
	case DRAINS:
		/* each timer is still in the wheel or was copied out: one of the two */
		for (i = 0; i < VICTIM && !tw_poisoned(v->ent + i, sizeof(*v->ent)); i++, done++) {
			if (v->ent[i].key >= VICTIM)
				return -1;
			reported[v->ent[i].key]++;
		}
		for (; i < VICTIM; i++) {
			if (!tw_poisoned(v->ent + i, sizeof(*v->ent)))
				return -1;
		}
		for (i = 0; i < VICTIM; i++) {
			if (reported[i] + seen[i] != 1)
				return -1;
		}
		break;
	case READS:
		for (; done < VICTIM && !tw_poisoned(v->ev + done, EV_SIZE); done++) {
			if (v->ev[done].key >= VICTIM)
				return -1;
			reported[v->ev[done].key]++;
		}
		for (i = 0; i < VICTIM; i++) {
			if (reported[i] + seen[i] != 1)
				return -1;
		}
		break;
	case ADVANCES:
		/* the next ADVANCE does the rest, or all of it */
		done = st.due;
		if (tw_advance(fd, TIMERWHEEL_ABS, 3 * HOUR) != VICTIM - done)
			return -1;
		n = tw_read_all(fd, ev, VICTIM + 1, 0);
		for (i = 0; i < n; i++) {
			if (ev[i].key >= VICTIM || reported[ev[i].key]++)
				return -1;
		}
		if (n != VICTIM)
			return -1;
		break;
	case GETS:
	case LISTS:
		/* each element was copied out or not written; no timer has changed */
		for (i = 0; i < VICTIM; i++) {
			if (v->ent[i].result && (done < i || deadline[i] != HOUR ||
						 v->ent[i].deadline != HOUR))
				return -1;
			done += !!v->ent[i].result;
		}
		break;
	}
	free(seen);
	free(reported);
	free(ev);
	free(deadline);
	return done >= atomic_load(&v->reported) ? done : -1;
}

/*
 * A process is killed, or its memory is replaced by exec or released by exit while a thread is in
 * the call: each element is done or not begun, and the wheel is consistent.
 */
TEST_F_TIMEOUT(victim, dies_in_the_middle, TIMEOUT)
{
	static const char * const name[] = { "killed", "execs", "exits" };
	enum doing doing = variant->doing;
	__u64 seed = tw_seed(), all = 0, after, began;
	int round, done, in_the_middle = 0;

	TH_LOG("TW_SEED=%llu", (unsigned long long)seed);
	/* a busy machine may need many rounds to hit the middle once */
	for (round = 0; round < 1 + rounds(9) || (!in_the_middle && round < 200); round++) {
		enum ending how = round % ENDINGS;
		int fd = tw_open_manual(USEC);

		ASSERT_LE(0, fd);
		if (doing != ADDS)
			ASSERT_EQ(0, arm(fd, 0, VICTIM, doing == READS ? USEC : HOUR, 0, 0));
		if (doing == READS)
			ASSERT_EQ(VICTIM, tw_advance(fd, 0, SEC));
		if (!round) {
			/* the first round measures the duration */
			pid_t pid = fork();

			if (!pid)
				victim_works(fd, doing, self->v);
			while (!atomic_load(&self->v->began))
				sched_yield();
			began = tw_now(CLOCK_MONOTONIC);
			while (atomic_load(&self->v->reported) < VICTIM &&
			       tw_now(CLOCK_MONOTONIC) - began < LONG_MS * MSEC)
				sched_yield();
			all = tw_now(CLOCK_MONOTONIC) - began;
			kill(pid, SIGKILL);
			ASSERT_EQ(1000 + SIGKILL, tw_reap(pid));
			ASSERT_EQ(VICTIM, atomic_load(&self->v->reported));
		} else {
			after = tw_rand(&seed) % all;
			ASSERT_EQ(how == KILLED ? 1000 + SIGKILL : 0,
				  victim_dies(fd, doing, self->v, how, after));
			done = victim_left(fd, doing, self->v);
			ASSERT_LE(0, done) {
				TH_LOG("round %d: %s", round, name[how]);
			}
			in_the_middle += done > 0 && done < VICTIM;
			/* a busy machine may have been slow or fast during the measurement */
			if (done == VICTIM)
				all = after + 1;
			else if (!done)
				all *= 2;
		}
		close(fd);
	}
	EXPECT_LT(0, in_the_middle);
}

/* --- Page faults that never end ----------------------------------------------------------- */

#define STALL_TIMERS	64

struct staller {
	int fd;
	enum doing doing;
	void *page;
};

/* One call whose array, buffer or argument is in the page */
static void *staller(void *arg)
{
	struct staller *s = arg;
	__u64 cursor = 0;

	switch (s->doing) {
	case READS:
		read(s->fd, s->page, 8 * EV_SIZE);
		break;
	case LISTS:
		tw_batch(s->fd, TIMERWHEEL_IOC_LIST, 0, s->page, 64, 8, &cursor);
		break;
	case DRAINS:
		tw_batch(s->fd, TIMERWHEEL_IOC_DRAIN, 0, s->page, 64, 8, NULL);
		break;
	case ADVANCES:
		dev_ioctl(s->fd, TIMERWHEEL_IOC_ADVANCE, s->page);
		break;
	case MOVES:
		dev_move(s->fd, s->page, 8);
		break;
	case REMOVES:
		dev_remove(s->fd, s->page, 8);
		break;
	case GETS:
		dev_get(s->fd, s->page, 8);
		break;
	default:
		dev_add(s->fd, s->page, 8);
	}
	return NULL;
}

/*
 * A call sleeps in a page fault that never ends. Meanwhile all other calls work, no timer or event
 * is missing, and the sleeping call can be killed.
 */
TEST_F_TIMEOUT(victim, stalls_in_memory, TIMEOUT)
{
	struct timerwheel_event ev[STALL_TIMERS + 1];
	struct timerwheel_entry ent[STALL_TIMERS + 1];
	struct timerwheel_info info;
	struct timerwheel_stats st;
	int i, uffd, fd, ready[2];
	pid_t pid;
	char c;

	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd < 0)
		SKIP(return, "this kernel has no userfaultfd");
	close(uffd);
	fd = tw_open_manual(USEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pipe(ready));
	/* half of the timers are due */
	ASSERT_EQ(0, arm(fd, 0, STALL_TIMERS / 2, USEC, 0, 0));
	ASSERT_EQ(0, arm(fd, STALL_TIMERS / 2, STALL_TIMERS / 2, HOUR, 0, 0));
	ASSERT_EQ(STALL_TIMERS / 2, tw_advance(fd, 0, SEC));
	pid = fork();
	if (!pid) {
		struct staller s = { .fd = fd, .doing = variant->doing };
		pthread_t id;

		/* It is never filled: a thread that accesses it sleeps until it is killed. */
		s.page = tw_missing_page(&uffd);
		if (!s.page || pthread_create(&id, NULL, staller, &s))
			_exit(1);
		if (dev_poll(uffd, LONG_MS) != POLLIN || write(ready[1], "", 1) != 1)
			_exit(2);
		pause();
	}
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &c, 1));

	ASSERT_EQ(0, tw_info(fd, &info));
	ASSERT_EQ(0, tw_stats(fd, &st));
	EXPECT_EQ(STALL_TIMERS / 2, st.due);
	EXPECT_EQ(STALL_TIMERS / 2, st.pending);
	EXPECT_TRUE(lists(fd, 0, STALL_TIMERS));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_get1(fd, 0, ent));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(fd, 1000, 0, HOUR, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(fd, 1000, 2 * HOUR, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(fd, 1000));
	EXPECT_EQ(0, tw_advance(fd, 0, SEC));
	EXPECT_EQ(STALL_TIMERS / 2, dev_read(fd, ev, STALL_TIMERS + 1));
	EXPECT_EQ(0, arm(fd, 0, STALL_TIMERS / 2, HOUR, 0, 0));
	EXPECT_EQ(STALL_TIMERS, tw_drain(fd, 0, ent, STALL_TIMERS + 1));
	ASSERT_EQ(0, tw_stats(fd, &st));
	EXPECT_TRUE(tw_balanced(&st));

	ASSERT_EQ(0, waitpid(pid, &i, WNOHANG));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(1000 + SIGKILL, tw_reap(pid));
	close(fd);
	close(ready[0]);
}

/* --- Readers ------------------------------------------------------------------------------- */

#define CROWD		100	/* processes */
#define CROWD_TIMERS	5000

/* The buffers of all readers, in memory that outlives them */
struct crowd {
	struct timerwheel_event ev[CROWD][CROWD_TIMERS];
};

FIXTURE(readers) {
	int fd;		/* MANUAL clock, tick of 1 us; blocks */
};

FIXTURE_SETUP(readers)
{
	self->fd = tw_open_manual(USEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, 0));
}

FIXTURE_TEARDOWN(readers)
{
	close(self->fd);
}

/* Processes that read one wheel are killed one after another: each event is delivered once. */
TEST_F_TIMEOUT(readers, crowd_is_killed, TIMEOUT)
{
	struct timerwheel_event *rest = calloc(CROWD_TIMERS, EV_SIZE);
	struct crowd *c = tw_shared(sizeof(*c));
	unsigned char *seen = calloc(CROWD_TIMERS, 1);
	__u64 seed = tw_seed();
	int i, k, n, had = 0;
	pid_t pid[CROWD];

	TH_LOG("TW_SEED=%llu", (unsigned long long)seed);
	ASSERT_EQ(0, arm(self->fd, 0, CROWD_TIMERS, USEC, USEC, 0));
	for (i = 0; i < CROWD; i++) {
		/* 0 is a valid key, so another value marks elements that were not read */
		memset(c->ev[i], 0xff, 3 * EV_SIZE);
		pid[i] = fork();
		ASSERT_LE(0, pid[i]);
		for (k = 0; !pid[i]; k += n) {
			memset(&c->ev[i][k], 0xff, 8 * EV_SIZE);
			n = read(self->fd, &c->ev[i][k], (1 + i % 3) * EV_SIZE) / (int)EV_SIZE;
			if (n <= 0)
				_exit(1);
		}
	}
	for (i = 0; i < CROWD; i++) {
		ASSERT_LE(0, tw_advance(self->fd, 0, CROWD_TIMERS / CROWD * USEC));
		tw_sleep(tw_rand(&seed) % 500 * USEC);
		kill(pid[i], SIGKILL);
	}
	for (i = 0; i < CROWD; i++)
		ASSERT_EQ(1000 + SIGKILL, tw_reap(pid[i]));
	for (i = 0; i < CROWD; i++) {
		for (k = 0; c->ev[i][k].key < CROWD_TIMERS && c->ev[i][k].deadline; k++)
			seen[c->ev[i][k].key]++;
		had += k;
	}
	ASSERT_LE(0, tw_advance(self->fd, 0, SEC));
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	n = tw_read_all(self->fd, rest, CROWD_TIMERS, 0);
	for (k = 0; k < n; k++)
		seen[rest[k].key]++;
	EXPECT_LT(0, had);
	EXPECT_EQ(CROWD_TIMERS, had + n);
	for (i = 0; i < CROWD_TIMERS && seen[i] == 1; i++)
		;
	EXPECT_EQ(CROWD_TIMERS, i);
}

/* A tracer stops and continues a sleeping reader: it still sleeps and gets its event. */
TEST_F_TIMEOUT(readers, is_traced, TIMEOUT)
{
	struct timerwheel_event ev;
	int i, status;
	pid_t pid;

	pid = fork();
	if (!pid)
		_exit(dev_read(self->fd, &ev, 1) == 1 && ev.key == 7 ? 0 : 1);
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, pid, NULL, NULL));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, ptrace(PTRACE_INTERRUPT, pid, NULL, NULL));
		ASSERT_EQ(pid, waitpid(pid, &status, __WALL));
		ASSERT_TRUE(WIFSTOPPED(status));
		ASSERT_EQ(0, ptrace(PTRACE_CONT, pid, NULL, NULL));
	}
	ASSERT_EQ(0, arm(self->fd, 7, 1, USEC, 0, 0));
	ASSERT_EQ(1, tw_advance(self->fd, 0, SEC));
	EXPECT_EQ(0, tw_reap(pid));
}

/* splice and sendfile are not supported: they fail and take no event. */
TEST_F(readers, splice_takes_nothing)
{
	struct timerwheel_event ev;
	int pipefd[2];

	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ(0, arm(self->fd, 1, 1, USEC, 0, 0));
	ASSERT_EQ(1, tw_advance(self->fd, 0, SEC));
	EXPECT_EQ(-EINVAL, tw_err(splice(self->fd, NULL, pipefd[1], NULL, 4096, 0)));
	EXPECT_EQ(-EINVAL, tw_err(sendfile(pipefd[1], self->fd, NULL, 4096)));
	EXPECT_EQ(1, dev_read(self->fd, &ev, 1));
	close(pipefd[0]);
	close(pipefd[1]);
}

/* A wheel in nested epoll sets wakes the outermost. Its close removes it from all of them. */
TEST_F(readers, nested_epoll)
{
	enum { DEPTH = 5 };	/* the deepest nesting that the kernel allows */
	struct epoll_event ee = { .events = EPOLLIN };
	int i, ep[DEPTH];

	for (i = 0; i < DEPTH; i++) {
		ep[i] = epoll_create1(EPOLL_CLOEXEC);
		ASSERT_EQ(0, epoll_ctl(ep[i], EPOLL_CTL_ADD, i ? ep[i - 1] : self->fd, &ee));
	}
	EXPECT_EQ(-ELOOP, tw_err(epoll_ctl(ep[0], EPOLL_CTL_ADD, ep[DEPTH - 1], &ee)));
	EXPECT_EQ(0, epoll_wait(ep[DEPTH - 1], &ee, 1, 10));
	ASSERT_EQ(0, arm(self->fd, 1, 1, USEC, 0, 0));
	ASSERT_EQ(1, tw_advance(self->fd, 0, SEC));
	EXPECT_EQ(1, epoll_wait(ep[DEPTH - 1], &ee, 1, LONG_MS));
	ASSERT_EQ(0, close(self->fd));
	self->fd = -1;
	EXPECT_EQ(0, epoll_wait(ep[DEPTH - 1], &ee, 1, 10));
	for (i = 0; i < DEPTH; i++)
		close(ep[i]);
}

/* --- Other ways to a wheel -------------------------------------------------- */

/* open of /proc/PID/fd/N opens the device: it creates a wheel instead of sharing one. */
TEST_F(readers, proc_fd_is_another_wheel)
{
	char path[64];
	int fd;

	ASSERT_EQ(0, arm(self->fd, 1, 1, HOUR, 0, 0));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-ENOENT, tw_remove1(fd, 1));
	EXPECT_TRUE(lists(fd, 0, 0));
	EXPECT_TRUE(lists(self->fd, 1, 2));
	close(fd);
}

/* open with O_PATH creates no wheel, and calls on such a descriptor fail. */
TEST_F(readers, path_is_no_wheel)
{
	long long before = tw_file_number(REFCNT, NULL);
	struct timerwheel_stats st;
	int fd = open(TW_DEV, O_PATH | O_CLOEXEC);

	ASSERT_LE(0, fd);
	EXPECT_EQ(before, tw_file_number(REFCNT, NULL));
	EXPECT_EQ(-EBADF, tw_stats(fd, &st));
	close(fd);
}

FIXTURE(sockets) {
	int probe;
	__u64 base;
};

FIXTURE_SETUP(sockets)
{
	self->probe = dev_open(O_NONBLOCK);
	ASSERT_LE(0, self->probe);
	self->base = tw_memory_alone(self->probe);
}

FIXTURE_TEARDOWN(sockets)
{
	close(self->probe);
}

/* Wheels in a reference cycle of Unix sockets: the kernel's garbage collector closes them. */
TEST_F_TIMEOUT(sockets, cycle_ends, TIMEOUT)
{
	int i, k, fd, sock[2];

	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
		fd = dev_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, arm(fd, 0, 100, 0, 0, 0));
		ASSERT_EQ(0, arm(fd, 100, 100, tw_now(CLOCK_MONOTONIC) + MSEC, 0, MSEC));
		for (k = 0; k < 2; k++) {
			ASSERT_EQ(0, tw_send_fd(sock[k], fd));
			ASSERT_EQ(0, tw_send_fd(sock[k], sock[k]));
			ASSERT_EQ(0, tw_send_fd(sock[k], sock[!k]));
		}
		close(fd);
		close(sock[0]);
		close(sock[1]);
	}
	/* a socket that is closed starts the garbage collector */
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	close(sock[0]);
	close(sock[1]);
	EXPECT_TRUE(user_memory_become(self->probe, self->base));
}

TEST_HARNESS_MAIN
