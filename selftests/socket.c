// SPDX-License-Identifier: GPL-2.0
/*
 * socket: timers that watch TCP connections. Tests when they fire, the steps from the warning to
 * the abort, the effect of calls on a timer at each step, sockets that are refused, lifetimes, and
 * many connections at once.
 *
 * Times are real: a connection keeps its own times in units of 1/HZ. So the tests assert order, the
 * absence of early events, and only generous upper limits.
 *
 * TW_SOCKETS: number of connections in the tests of many (2000).
 */
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <linux/tls.h>
#include <linux/userfaultfd.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include "tw_test.h"

#define KEY	7
#define VALUE	0x1234567890abcdefULL
#define IDLE	(60 * MSEC)
#define GRACE	(80 * MSEC)
#define LONG	MINUTE
#define PATIENCE (LONG_MS * MSEC)

/* Two ends of a connection over loopback; the timer watches @here. */
struct conn {
	int here;
	int peer;
};

static int listener(int family, struct sockaddr_storage *addr, socklen_t *len)
{
	int fd = socket(family, SOCK_STREAM, 0);

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = family;
	if (family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_addr = in6addr_loopback;
	else
		((struct sockaddr_in *)addr)->sin_addr.s_addr = htonl(INADDR_ANY);
	*len = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	if (fd < 0 || bind(fd, (void *)addr, *len) || listen(fd, 4096) ||
	    getsockname(fd, (void *)addr, len))
		return -errno;
	return fd;
}

static int conn_from(int listening, const struct sockaddr_storage *addr, socklen_t len,
		     struct conn *c)
{
	c->peer = socket(addr->ss_family, SOCK_STREAM, 0);
	if (c->peer < 0 || connect(c->peer, (const void *)addr, len))
		return -errno;
	c->here = accept(listening, NULL, NULL);
	return c->here < 0 ? -errno : 0;
}

static int add_elem(int fd, struct timerwheel_add_socket *add)
{
	tw_poison(&add->result, sizeof(add->result));
	return tw_result1(tw_batch(fd, TIMERWHEEL_IOC_ADD_SOCKET, 0, add, sizeof(*add), 1, NULL),
			  &add->result);
}

/* @grace: ~0: no abort */
static int add_sock(int fd, __u64 key, int sock, __u32 kind, __u64 time, __u64 grace)
{
	struct timerwheel_add_socket add = {
		.key = key, .value = VALUE, .deadline = time, .fd = sock, .kind = kind,
		.grace = grace == ~0ULL ? 0 : grace,
		.flags = grace == ~0ULL ? 0 : TIMERWHEEL_SOCKET_ABORT,
	};

	return add_elem(fd, &add);
}

/* The next event, within @ns: 1, 0 or -errno */
static int next_event(int fd, struct timerwheel_event *ev, __u64 ns)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int ret;

	ret = poll(&p, 1, ns / MSEC);
	if (ret <= 0)
		return ret;
	return dev_read(fd, ev, 1);
}

static struct timerwheel_stats stats_of(int fd)
{
	struct timerwheel_stats stats;

	if (tw_stats(fd, &stats))
		abort();
	return stats;
}

/* Does the peer see a reset? */
static bool is_reset(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	char c;

	return poll(&p, 1, LONG_MS) == 1 && recv(sock, &c, 1, 0) < 0 && errno == ECONNRESET;
}

static bool is_alive(struct conn *c)
{
	char out = 'x', in = 0;
	struct pollfd p = { .fd = c->here, .events = POLLIN };

	return send(c->peer, &out, 1, MSG_NOSIGNAL) == 1 && poll(&p, 1, LONG_MS) == 1 &&
	       recv(c->here, &in, 1, 0) == 1 && in == out;
}

FIXTURE(socket)
{
	int fd;
	struct conn c;
	int listening;
	struct sockaddr_storage addr;
	socklen_t len;
};

FIXTURE_VARIANT(socket)
{
	int family;
	__u32 ring;
};

FIXTURE_VARIANT_ADD(socket, ip4) { .family = AF_INET };
FIXTURE_VARIANT_ADD(socket, ip6) { .family = AF_INET6 };

FIXTURE_SETUP(socket)
{
	struct timerwheel_info info;

	self->fd = dev_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	ASSERT_TRUE(info.features & TIMERWHEEL_FEATURE_SOCKET);
	self->listening = listener(variant->family, &self->addr, &self->len);
	ASSERT_GE(self->listening, 0);
	ASSERT_EQ(0, conn_from(self->listening, &self->addr, self->len, &self->c));
}

FIXTURE_TEARDOWN(socket)
{
	struct timerwheel_stats stats = stats_of(self->fd);

	EXPECT_TRUE(tw_balanced(&stats));
	close(self->fd);
}

/* --- When they fire ----------------------------------------------------- */

TEST_F(socket, event_only)
{
	struct timerwheel_event ev;
	__u64 from = tw_now(CLOCK_MONOTONIC);

	EXPECT_EQ(TIMERWHEEL_WAS_NONE, add_sock(self->fd, KEY, self->c.here,
						TIMERWHEEL_SOCKET_IDLE, IDLE, ~0ULL));
	EXPECT_EQ(1, stats_of(self->fd).sockets);
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(KEY, ev.key);
	EXPECT_EQ(VALUE, ev.value);
	EXPECT_EQ(0, ev.flags);
	EXPECT_GE(ev.deadline, from + IDLE);
	EXPECT_GE(ev.fired, ev.deadline);
	EXPECT_TRUE(is_alive(&self->c));
	EXPECT_EQ(0, stats_of(self->fd).sockets);
	EXPECT_EQ(0, stats_of(self->fd).aborted);
	EXPECT_EQ(0, next_event(self->fd, &ev, 2 * IDLE));
}

TEST_F(socket, abort_at_once)
{
	struct timerwheel_event ev;
	__u64 from = tw_now(CLOCK_MONOTONIC);
	char c;

	EXPECT_EQ(TIMERWHEEL_WAS_NONE, add_sock(self->fd, KEY, self->c.here,
						TIMERWHEEL_SOCKET_IDLE, IDLE, 0));
	EXPECT_TRUE(is_reset(self->c.peer));
	EXPECT_GE(tw_now(CLOCK_MONOTONIC), from + IDLE);
	EXPECT_EQ(-1, recv(self->c.here, &c, 1, 0));
	EXPECT_EQ(ETIMEDOUT, errno);
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev.flags);
	EXPECT_EQ(KEY, ev.key);
	EXPECT_EQ(1, stats_of(self->fd).aborted);
	EXPECT_EQ(0, next_event(self->fd, &ev, 2 * IDLE));
}

TEST_F(socket, warning_then_abort)
{
	struct timerwheel_event ev[2];
	struct timerwheel_entry ent;
	struct timerwheel_add_socket add = {
		.key = KEY, .value = VALUE, .deadline = LONG, .grace = LONG, .fd = self->c.here,
		.flags = TIMERWHEEL_SOCKET_ABORT,
	};

	/* Times that have not passed at the first check */
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, add_elem(self->fd, &add));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(self->fd, KEY, &ent));
	EXPECT_EQ(TIMERWHEEL_ENTRY_SOCKET, ent.flags);
	EXPECT_EQ(LONG, ent.period);
	add.deadline = IDLE;
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, add_elem(self->fd, &add));
	ASSERT_EQ(1, next_event(self->fd, &ev[0], PATIENCE));
	ASSERT_EQ(TIMERWHEEL_EVENT_WARNING, ev[0].flags);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(self->fd, KEY, &ent));
	EXPECT_EQ(TIMERWHEEL_ENTRY_SOCKET | TIMERWHEEL_ENTRY_GRACE, ent.flags);
	EXPECT_EQ(IDLE, ent.period);
	/* Times that have passed at the first check */
	add.grace = GRACE;
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, add_elem(self->fd, &add));
	ASSERT_EQ(1, next_event(self->fd, &ev[0], PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_WARNING, ev[0].flags);
	EXPECT_EQ(KEY, ev[0].key);
	EXPECT_EQ(VALUE, ev[0].value);
	EXPECT_EQ(add.index, ev[0].index);
	ASSERT_EQ(1, next_event(self->fd, &ev[1], PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev[1].flags);
	EXPECT_EQ(KEY, ev[1].key);
	EXPECT_EQ(add.index, ev[1].index);
	EXPECT_GE(ev[1].deadline, ev[0].fired + GRACE);
	EXPECT_TRUE(is_reset(self->c.peer));
}

/* Without a reader the connection still ends, and both events are available afterwards. */
TEST_F(socket, nobody_reads)
{
	struct timerwheel_event ev[3];

	EXPECT_EQ(TIMERWHEEL_WAS_NONE, add_sock(self->fd, KEY, self->c.here,
						TIMERWHEEL_SOCKET_IDLE, IDLE, GRACE));
	EXPECT_TRUE(is_reset(self->c.peer));
	while (stats_of(self->fd).due < 1)
		tw_sleep(MSEC);
	EXPECT_EQ(1, stats_of(self->fd).due);
	ASSERT_EQ(2, dev_read(self->fd, ev, 3));
	EXPECT_EQ(TIMERWHEEL_EVENT_WARNING, ev[0].flags);
	EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev[1].flags);
}

/* The daemon is stopped. */
TEST_F(socket, stopped)
{
	int fd[2];
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(fd));
	pid = fork();
	if (!pid) {
		int wheel = dev_open(0);
		struct timerwheel_event ev;

		c = add_sock(wheel, KEY, self->c.here, TIMERWHEEL_SOCKET_IDLE, IDLE, GRACE);
		write(fd[1], &c, 1);
		dev_read(wheel, &ev, 1);
		pause();
		_exit(0);
	}
	ASSERT_EQ(1, read(fd[0], &c, 1));
	ASSERT_EQ(0, c);
	ASSERT_EQ(0, kill(pid, SIGSTOP));
	EXPECT_TRUE(is_reset(self->c.peer));
	kill(pid, SIGKILL);
	tw_reap(pid);
}

/* Each kind, while data flows in one direction */
static bool fires_while(int fd, struct conn *c, __u32 kind, bool receive, int periods)
{
	struct timerwheel_event ev;
	char buf[16] = "x";
	int i;

	if (add_sock(fd, KEY, c->here, kind, IDLE, ~0ULL) < 0)
		abort();
	for (i = 0; i < periods * 6; i++) {
		if (send(receive ? c->peer : c->here, buf, 1, MSG_NOSIGNAL) != 1)
			abort();
		if (next_event(fd, &ev, IDLE / 6) == 1)
			return true;
	}
	if (tw_remove1(fd, KEY) < 0)
		abort();
	return false;
}

TEST_F(socket, kinds)
{
	struct conn *c = &self->c;

	EXPECT_TRUE(fires_while(self->fd, c, TIMERWHEEL_SOCKET_IDLE_SEND, true, 500));
	EXPECT_TRUE(fires_while(self->fd, c, TIMERWHEEL_SOCKET_IDLE_RECEIVE, false, 500));
	EXPECT_TRUE(fires_while(self->fd, c, TIMERWHEEL_SOCKET_LIFETIME, true, 500));
	if (!tw_timed())
		return;
	/* The others need that no pause is longer than the timeout. */
	EXPECT_FALSE(fires_while(self->fd, c, TIMERWHEEL_SOCKET_IDLE, true, 5));
	EXPECT_FALSE(fires_while(self->fd, c, TIMERWHEEL_SOCKET_IDLE, false, 5));
	EXPECT_FALSE(fires_while(self->fd, c, TIMERWHEEL_SOCKET_IDLE_SEND, false, 5));
	EXPECT_FALSE(fires_while(self->fd, c, TIMERWHEEL_SOCKET_IDLE_RECEIVE, true, 5));
	EXPECT_FALSE(fires_while(self->fd, c, TIMERWHEEL_SOCKET_HALF_CLOSED, true, 5));
}

/* An event is never earlier than the timeout after data that was sent before. */
TEST_F(socket, data_postpones)
{
	struct timerwheel_event ev;
	bool fired = false;
	__u64 last = 0;
	char c = 'x';
	int i;

	EXPECT_EQ(0, add_sock(self->fd, KEY, self->c.here, TIMERWHEEL_SOCKET_IDLE, IDLE, ~0ULL));
	/* On a busy machine a pause may be too long, or the kernel's first check late. */
	for (i = 0; !fired && (i < 12 || !stats_of(self->fd).requeues); i++) {
		fired = next_event(self->fd, &ev, IDLE / 3) == 1;
		if (fired)
			break;
		last = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(1, send(self->c.peer, &c, 1, 0));
	}
	if (!fired) {
		ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
		EXPECT_GE(ev.deadline, last + IDLE);
	}
}

/* A batch of visits is smaller because checking a connection takes longer. */
TEST_F(socket, visits_cost_more)
{
	enum { N = 400, MOST = 43 };	/* 128 / 3 */
	int fd = tw_open_clock(TIMERWHEEL_CLOCK_MONOTONIC, 100 * MSEC, 0), i;
	struct timerwheel_add_socket add[N];
	struct timerwheel_stats stats;
	char c = 'x';

	ASSERT_GE(fd, 0);
	for (i = 0; i < N; i++)
		add[i] = (struct timerwheel_add_socket) {
			.key = i, .deadline = 2 * SEC, .fd = self->c.here,
		};
	ASSERT_EQ(N, tw_batch(fd, TIMERWHEEL_IOC_ADD_SOCKET, 0, add, sizeof(*add), N, NULL));
	do {
		tw_sleep(50 * MSEC);
		ASSERT_EQ(1, send(self->c.peer, &c, 1, 0));
		stats = stats_of(fd);
		/* After a pause of two seconds the connection was idle. */
	} while (stats.requeues + stats.due + stats.delivered < N);
	if (tw_timed())
		EXPECT_LE(N, stats.requeues);
	EXPECT_GE(MOST, stats.pass_max_timers);
	EXPECT_LT(MOST / 2, stats.pass_max_timers);
	close(fd);
}

TEST_F(socket, half_closed)
{
	struct timerwheel_event ev;
	__u64 from;

	EXPECT_EQ(0, add_sock(self->fd, KEY, self->c.here, TIMERWHEEL_SOCKET_HALF_CLOSED, IDLE, 0));
	EXPECT_EQ(0, next_event(self->fd, &ev, 3 * IDLE));
	from = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, shutdown(self->c.peer, SHUT_WR));
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev.flags);
	EXPECT_GE(ev.fired, from + IDLE);
}

/* The rest of a transfer is still in progress: only silence counts. */
TEST_F(socket, half_closed_in_use)
{
	struct timerwheel_event ev;
	__u64 last = 0;
	char c = 'x';
	int i;

	ASSERT_EQ(0, shutdown(self->c.here, SHUT_WR));
	EXPECT_EQ(0, add_sock(self->fd, KEY, self->c.here, TIMERWHEEL_SOCKET_HALF_CLOSED, IDLE, 0));
	/* No pause may be longer than the timeout. */
	for (i = 0; tw_timed() && i < 60; i++) {
		last = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(1, send(self->c.peer, &c, 1, MSG_NOSIGNAL));
		ASSERT_EQ(0, next_event(self->fd, &ev, IDLE / 6));
	}
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev.flags);
	EXPECT_GE(ev.fired, last + IDLE);
}

/* The time begins again at the visit that finds more bytes acknowledged. */
TEST_F(socket, half_closed_acknowledged)
{
	struct timerwheel_event ev;
	__u64 sent;
	char c = 'x';

	if (!tw_timed())
		SKIP(return, "the data must be sent soon after a visit");
	ASSERT_EQ(0, shutdown(self->c.peer, SHUT_WR));
	EXPECT_EQ(0, add_sock(self->fd, KEY, self->c.here, TIMERWHEEL_SOCKET_HALF_CLOSED, IDLE, 0));
	while (!stats_of(self->fd).requeues)
		tw_sleep(MSEC);
	sent = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(1, send(self->c.here, &c, 1, MSG_NOSIGNAL));
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_GE(ev.fired, sent + IDLE + IDLE / 2);
}

/* A deadline that has already passed */
TEST_F(socket, lifetime_over)
{
	struct timerwheel_event ev;
	struct timerwheel_add_socket add = {
		.key = KEY, .deadline = 1, .fd = self->c.here, .kind = TIMERWHEEL_SOCKET_LIFETIME,
		.flags = TIMERWHEEL_SOCKET_ABORT | TIMERWHEEL_ABS,
	};

	EXPECT_EQ(TIMERWHEEL_WAS_NONE, add_elem(self->fd, &add));
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev.flags);
	EXPECT_TRUE(is_reset(self->c.peer));
}

TEST_F(socket, closed_before)
{
	struct timerwheel_event ev;

	/* Closed before the timer ends, whatever its deadline */
	EXPECT_EQ(0, add_sock(self->fd, KEY, self->c.here, TIMERWHEEL_SOCKET_LIFETIME, LONG,
			      GRACE));
	close(self->c.here);
	close(self->c.peer);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, KEY, IDLE, 0));
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_GONE, ev.flags);
	EXPECT_EQ(0, stats_of(self->fd).sockets);
	EXPECT_EQ(0, stats_of(self->fd).aborted);
}

/*
 * Within about a minute the kernel releases closed sockets, whatever the deadlines of their timers
 * are. It does this twice, since it has to search again. The timers stay, and an open socket is
 * still watched.
 */
TEST_F_TIMEOUT(socket, closed_are_let_go, 2000)
{
	/* LEAST: minimum bytes of a struct sock; OTHERS: more than a turn of the worker */
	enum { SOCKS = 150, LEAST = 1500, OTHERS = 600 };
	static struct conn c[2 * SOCKS];
	struct timerwheel_event ev;
	__u64 with, until;
	int i, round;

	if (!tw_timed())
		SKIP(return, "it takes minutes");
	EXPECT_EQ(0, add_sock(self->fd, KEY, self->c.here, TIMERWHEEL_SOCKET_LIFETIME, HOUR, 0));
	for (i = 0; i < OTHERS; i++)
		ASSERT_EQ(0, tw_add1(self->fd, KEY + 1 + 2 * SOCKS + i, 0, HOUR, 0));
	for (i = 0; i < 2 * SOCKS; i++) {
		ASSERT_EQ(0, conn_from(self->listening, &self->addr, self->len, &c[i]));
		ASSERT_EQ(0, add_sock(self->fd, KEY + 1 + i, c[i].here,
				      TIMERWHEEL_SOCKET_LIFETIME, HOUR, 0));
	}
	for (round = 0; round < 2; round++) {
		with = stats_of(self->fd).memory;
		for (i = round * SOCKS; i < (round + 1) * SOCKS; i++) {
			close(c[i].here);
			close(c[i].peer);
		}
		until = tw_now(CLOCK_MONOTONIC) + 150 * SEC;
		while (stats_of(self->fd).memory > with - SOCKS * LEAST &&
		       tw_now(CLOCK_MONOTONIC) < until)
			tw_sleep(SEC / 10);
		EXPECT_GE(with - SOCKS * LEAST, stats_of(self->fd).memory);
		EXPECT_EQ(1 + 2 * SOCKS, stats_of(self->fd).sockets);
		EXPECT_EQ(0, stats_of(self->fd).due);
	}
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, KEY + 1, IDLE, 0));
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(KEY + 1, ev.key);
	EXPECT_EQ(TIMERWHEEL_EVENT_GONE, ev.flags);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, KEY + 2));
	EXPECT_TRUE(is_alive(&self->c));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, KEY, IDLE, 0));
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev.flags);
}

/* The peer does not read, so the connection has not ended, but no process has the socket. */
TEST_F(socket, closed_here)
{
	static const char much[65536];
	struct timerwheel_event ev;

	while (send(self->c.here, much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	EXPECT_EQ(0, add_sock(self->fd, KEY, self->c.here, TIMERWHEEL_SOCKET_LIFETIME, LONG, 0));
	close(self->c.here);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, KEY, IDLE, 0));
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_GONE, ev.flags);
	EXPECT_EQ(0, stats_of(self->fd).sockets);
	EXPECT_EQ(0, stats_of(self->fd).aborted);
}

/* --- In the grace ------------------------------------------------------- */

/* Returns once the warning is on the due list. */
static void warned(int fd, struct conn *c, __u64 grace)
{
	struct timerwheel_entry ent;

	if (add_sock(fd, KEY, c->here, TIMERWHEEL_SOCKET_IDLE, IDLE, grace) < 0)
		abort();
	do {
		tw_sleep(MSEC);
		/* DUE while the kernel decides */
		if (tw_get1(fd, KEY, &ent) < 0)
			abort();
	} while (!(ent.flags & TIMERWHEEL_ENTRY_GRACE));
}

TEST_F(socket, move_withdraws_the_warning)
{
	struct timerwheel_event ev;

	warned(self->fd, &self->c, LONG);
	EXPECT_EQ(0, stats_of(self->fd).due);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, KEY, IDLE, 0));
	EXPECT_EQ(-EAGAIN, dev_read(self->fd, &ev, 1));
	/* If it is still idle then, there is another warning */
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_WARNING, ev.flags);
}

TEST_F(socket, remove_withdraws_the_warning)
{
	struct timerwheel_event ev;

	warned(self->fd, &self->c, LONG);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, KEY));
	EXPECT_EQ(-EAGAIN, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(0, stats_of(self->fd).sockets);
	EXPECT_TRUE(is_alive(&self->c));
}

TEST_F(socket, add_replaces_it)
{
	struct timerwheel_event ev;

	warned(self->fd, &self->c, LONG);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_add1(self->fd, KEY, 5, IDLE, 0));
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(5, ev.value);
	EXPECT_EQ(0, ev.flags);
	EXPECT_TRUE(is_alive(&self->c));
	/* The same with another connection */
	warned(self->fd, &self->c, LONG);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, add_sock(self->fd, KEY, self->c.peer,
						   TIMERWHEEL_SOCKET_IDLE, IDLE, ~0ULL));
	EXPECT_EQ(1, stats_of(self->fd).sockets);
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(0, ev.flags);
	EXPECT_EQ(-EAGAIN, dev_read(self->fd, &ev, 1));
}

TEST_F(socket, drain_withdraws_the_warning)
{
	struct timerwheel_entry ent[2];
	struct timerwheel_event ev;

	warned(self->fd, &self->c, LONG);
	EXPECT_EQ(1, tw_drain(self->fd, 0, ent, 2));
	EXPECT_EQ(TIMERWHEEL_ENTRY_SOCKET | TIMERWHEEL_ENTRY_GRACE, ent[0].flags);
	EXPECT_EQ(-EAGAIN, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(0, stats_of(self->fd).sockets);
}

/* Is the connection dead, because its time had passed when data were sent? */
static bool was_aborted(int fd, struct conn *c)
{
	if (is_alive(c))
		return false;
	while (!stats_of(fd).aborted)
		tw_sleep(MSEC);
	return true;
}

TEST_F(socket, data_in_the_grace)
{
	struct timerwheel_event ev;
	struct timerwheel_entry ent;

	warned(self->fd, &self->c, tw_icount() ? 20 * MSEC : 500 * MSEC);
	/* Either the data came in time, or a heavily loaded machine was too late. */
	if (was_aborted(self->fd, &self->c)) {
		ASSERT_FALSE(tw_timed());
		return;
	}
	if (tw_get1(self->fd, KEY, &ent) == TIMERWHEEL_WAS_PENDING) {
		ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
		EXPECT_EQ(TIMERWHEEL_EVENT_WARNING, ev.flags);
	}
}

/* A warning that was not read is withdrawn after data has arrived, although the grace continues. */
TEST_F(socket, data_withdraws_the_warning)
{
	struct pollfd p = { .fd = self->fd, .events = POLLIN };
	struct timerwheel_stats stats;

	ASSERT_EQ(0, add_sock(self->fd, KEY, self->c.here, TIMERWHEEL_SOCKET_IDLE, SEC, SEC));
	ASSERT_EQ(1, poll(&p, 1, LONG_MS));
	EXPECT_EQ(0, stats_of(self->fd).withdrawn);
	tw_sleep(SEC / 2);
	if (was_aborted(self->fd, &self->c))
		ASSERT_FALSE(tw_timed());
	do {
		tw_sleep(SEC / 20);
		stats = stats_of(self->fd);
	} while (!stats.withdrawn && !stats.aborted);
	/* Unless a loaded machine was too late, here or above. */
	if (tw_timed()) {
		EXPECT_EQ(1, stats.withdrawn);
		EXPECT_EQ(0, poll(&p, 1, 0));
		EXPECT_EQ(1, stats.pending);
	}
}

/* --- A task that holds the lock of a socket ------------------------------- */

/* A task that keeps the lock of a socket: it sends from memory whose page fault is not served. */
struct holder {
	int sock;
	int uffd;
	char *mem;
	pthread_t thread;
};

static void *holder_main(void *arg)
{
	struct holder *h = arg;

	send(h->sock, h->mem, 1, MSG_NOSIGNAL);
	return NULL;
}

/* Make a task hold the lock of @sock. 0, -errno; -EOPNOTSUPP: the kernel has no userfaultfd */
static int hold(struct holder *h, int sock)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.mode = UFFDIO_REGISTER_MODE_MISSING, .range.len = getpagesize(),
	};
	struct uffd_msg msg;

	h->sock = sock;
	h->uffd = syscall(__NR_userfaultfd, 0);
	if (h->uffd < 0)
		return -EOPNOTSUPP;
	h->mem = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	reg.range.start = (uintptr_t)h->mem;
	if (h->mem == MAP_FAILED || ioctl(h->uffd, UFFDIO_API, &api) ||
	    ioctl(h->uffd, UFFDIO_REGISTER, &reg))
		return -errno;
	if (pthread_create(&h->thread, NULL, holder_main, h))
		return -EAGAIN;
	return read(h->uffd, &msg, sizeof(msg)) == sizeof(msg) ? 0 : -errno;
}

/* Let the task continue. */
static int hold_no_more(struct holder *h)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)h->mem, .len = getpagesize() },
	};

	if (ioctl(h->uffd, UFFDIO_ZEROPAGE, &zero))
		return -errno;
	return pthread_join(h->thread, NULL);
}

/* Another connection is aborted meanwhile, and this connection as soon as its lock is free. */
TEST_F(socket, lock_is_held)
{
	struct timerwheel_event ev;
	struct holder h;
	struct conn c;
	int err;

	err = hold(&h, self->c.here);
	if (err == -EOPNOTSUPP)
		SKIP(return, "no userfaultfd");
	ASSERT_EQ(0, err);
	ASSERT_EQ(0, conn_from(self->listening, &self->addr, self->len, &c));
	ASSERT_EQ(0, add_sock(self->fd, 1, self->c.here, TIMERWHEEL_SOCKET_LIFETIME, MSEC, 0));
	tw_sleep(IDLE);
	ASSERT_EQ(0, add_sock(self->fd, 2, c.here, TIMERWHEEL_SOCKET_LIFETIME, MSEC, GRACE));
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_WARNING, ev.flags);
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev.flags);
	EXPECT_EQ(2, ev.key);
	EXPECT_TRUE(is_reset(c.peer));
	EXPECT_EQ(0, next_event(self->fd, &ev, 2 * IDLE));
	ASSERT_EQ(0, hold_no_more(&h));
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev.flags);
	EXPECT_EQ(1, ev.key);
}

/*
 * While a timer waits for the lock of its socket, calls can still postpone or remove it, and its
 * wheel can be closed.
 */
TEST_F(socket, postponed_while_held)
{
	struct timerwheel_event ev;
	int other = dev_open(O_NONBLOCK);
	struct holder h;
	int i, err;

	err = hold(&h, self->c.here);
	if (err == -EOPNOTSUPP)
		SKIP(return, "no userfaultfd");
	ASSERT_EQ(0, err);
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, add_sock(self->fd, i, self->c.here, TIMERWHEEL_SOCKET_LIFETIME, MSEC,
				      0));
	ASSERT_EQ(0, add_sock(other, 1, self->c.here, TIMERWHEEL_SOCKET_LIFETIME, MSEC, 0));
	tw_sleep(IDLE);
	ASSERT_EQ(0, close(other));
	ASSERT_LT(0, tw_remove1(self->fd, 0));
	ASSERT_LT(0, tw_move1(self->fd, 1, HOUR, 0));
	ASSERT_LT(0, tw_move1(self->fd, 2, HOUR, 0));
	EXPECT_EQ(0, next_event(self->fd, &ev, 0));
	ASSERT_EQ(0, hold_no_more(&h));
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	/* The worker may just have tried another of them when that was moved. */
	EXPECT_TRUE(ev.flags == TIMERWHEEL_EVENT_ABORTED || ev.flags == TIMERWHEEL_EVENT_GONE);
	EXPECT_EQ(3, ev.key);
	EXPECT_EQ(0, next_event(self->fd, &ev, 2 * IDLE));
	EXPECT_EQ(2, stats_of(self->fd).sockets);
}

/*
 * The lock of one socket has been held for seconds, so its timer is tried once a second. A timer
 * whose socket is held for a moment is tried much sooner.
 */
TEST_F_TIMEOUT(socket, new_one_is_tried_soon, 600)
{
	struct holder old, h;
	struct timerwheel_event ev;
	struct conn c;
	__u64 free_at;
	int i, err;

	err = hold(&old, self->c.here);
	if (err == -EOPNOTSUPP)
		SKIP(return, "no userfaultfd");
	ASSERT_EQ(0, err);
	ASSERT_EQ(0, add_sock(self->fd, 0, self->c.here, TIMERWHEEL_SOCKET_LIFETIME, MSEC, 0));
	for (i = 1; i <= (tw_icount() ? 4 : 1); i++) {
		/* each time at another point of that second */
		tw_sleep(3 * SEC + i * SEC / 4);
		ASSERT_EQ(0, conn_from(self->listening, &self->addr, self->len, &c));
		ASSERT_EQ(0, hold(&h, c.here));
		ASSERT_EQ(0, add_sock(self->fd, i, c.here, TIMERWHEEL_SOCKET_LIFETIME, MSEC, 0));
		tw_sleep(30 * MSEC);
		EXPECT_EQ(0, next_event(self->fd, &ev, 0));
		ASSERT_EQ(0, hold_no_more(&h));
		free_at = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
		EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev.flags);
		EXPECT_EQ(i, ev.key);
		if (tw_timed())
			EXPECT_GE(free_at + 150 * MSEC, tw_now(CLOCK_MONOTONIC));
	}
	ASSERT_EQ(0, hold_no_more(&old));
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(0, ev.key);
}

/* --- Other network namespaces --------------------------------------------- */

/* In a separate network namespace: watch a connection in @fd, then wait for @end. */
static int in_netns(int fd, __u64 time, int ready, int end)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	struct sockaddr_storage addr;
	socklen_t len;
	struct conn c;
	int listening;
	char x = 0;

	if (unshare(CLONE_NEWNET) || ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &lo))
		return 1;
	listening = listener(AF_INET, &addr, &len);
	if (listening < 0 || conn_from(listening, &addr, len, &c))
		return 2;
	if (add_sock(fd, KEY, c.here, TIMERWHEEL_SOCKET_LIFETIME, time, 0))
		return 3;
	if (write(ready, &x, 1) != 1 || read(end, &x, 1) < 0)
		return 4;
	return x && !is_reset(c.peer) ? 5 : 0;
}

/* Its connection is aborted; or it is closed, with the namespace, before the timer ends. */
TEST_F(socket, other_netns)
{
	struct timerwheel_event ev;
	int ready[2], end[2], round;
	char x = 1;
	pid_t pid;

	for (round = 0; round < 2; round++) {
		ASSERT_EQ(0, pipe(ready));
		ASSERT_EQ(0, pipe(end));
		pid = fork();
		if (!pid) {
			close(end[1]);
			_exit(in_netns(self->fd, round ? LONG : IDLE, ready[1], end[0]));
		}
		ASSERT_EQ(1, read(ready[0], &x, 1));
		if (!round) {
			ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
			EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev.flags);
			x = 1;
			ASSERT_EQ(1, write(end[1], &x, 1));
		}
		close(end[1]);
		EXPECT_EQ(0, tw_reap(pid));
		if (round) {
			EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, KEY, IDLE, 0));
			ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
			EXPECT_EQ(TIMERWHEEL_EVENT_GONE, ev.flags);
		}
	}
}

/* --- Connections that others have changed -------------------------------- */

/* Data postpones the timer of connection @c; then it is idle, and aborted. */
static void works(struct __test_metadata *_metadata, int fd, struct conn *c)
{
	socklen_t size = sizeof(int);
	struct timerwheel_event ev;
	__u64 last, now;
	int i, err = 0;

	last = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, add_sock(fd, KEY, c->here, TIMERWHEEL_SOCKET_IDLE, SEC, 0));
	/* On a busy machine the first check is late. */
	for (i = 0; i < 25 || !stats_of(fd).requeues; i++) {
		tw_sleep(SEC / 20);
		now = tw_now(CLOCK_MONOTONIC);
		if (!is_alive(c)) {
			/* The pause was too long. */
			ASSERT_LE(last + SEC, tw_now(CLOCK_MONOTONIC));
			return;
		}
		last = now;
	}
	ASSERT_EQ(1, next_event(fd, &ev, PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev.flags);
	EXPECT_LE(last + SEC, ev.fired);
	EXPECT_TRUE(is_reset(c->peer));
	ASSERT_EQ(0, getsockopt(c->here, SOL_SOCKET, SO_ERROR, &err, &size));
	EXPECT_EQ(ETIMEDOUT, err);
	EXPECT_EQ(0, stats_of(fd).sockets);
}

/* The kernel encrypts sent data and decrypts received data. */
TEST_F(socket, tls)
{
	struct tls12_crypto_info_aes_gcm_128 keys = {
		.info = { .version = TLS_1_2_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128 },
	};
	int *ends[] = { &self->c.here, &self->c.peer }, i;

	for (i = 0; i < 2; i++) {
		if (setsockopt(*ends[i], SOL_TCP, TCP_ULP, "tls", 4) && errno == ENOENT)
			SKIP(return, "this kernel has no TLS");
		if (setsockopt(*ends[i], SOL_TLS, TLS_TX, &keys, sizeof(keys)) && errno == ENOENT)
			SKIP(return, "this kernel has no AES-GCM");
		ASSERT_EQ(0, setsockopt(*ends[i], SOL_TLS, TLS_RX, &keys, sizeof(keys)));
	}
	works(_metadata, self->fd, &self->c);
}

static long bpf(int cmd, union bpf_attr *attr)
{
	return tw_err(syscall(SYS_bpf, cmd, attr, sizeof(*attr)));
}

/* The socket is in a map of BPF, which replaces functions of TCP. */
TEST_F(socket, sockmap)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_SOCKMAP, .key_size = 4, .value_size = 4, .max_entries = 1,
	};
	long map = bpf(BPF_MAP_CREATE, &attr);
	__u32 key = 0;

	if (map < 0)
		SKIP(return, "no maps of sockets here");
	attr = (union bpf_attr) {
		.map_fd = map, .key = (__u64)(uintptr_t)&key,
		.value = (__u64)(uintptr_t)&self->c.here,
	};
	ASSERT_EQ(0, bpf(BPF_MAP_UPDATE_ELEM, &attr));
	works(_metadata, self->fd, &self->c);
	close(map);
}

/* --- Refused ------------------------------------------------------------ */

TEST_F(socket, fields)
{
	struct timerwheel_add_socket good = {
		.key = KEY, .deadline = IDLE, .fd = self->c.here,
	}, add;
	struct timerwheel_stats before = stats_of(self->fd), after;

#define REFUSED(err, ...) do {						\
	add = good;							\
	__VA_ARGS__;							\
	EXPECT_EQ(err, add_elem(self->fd, &add));			\
} while (0)

	REFUSED(-EINVAL, add.flags = 1U << 31);
	REFUSED(-EINVAL, add.flags = TIMERWHEEL_LINGER);
	REFUSED(-EINVAL, add.flags = TIMERWHEEL_EXCL | TIMERWHEEL_MATCH);
	REFUSED(-EINVAL, add.flags = TIMERWHEEL_ABS);
	REFUSED(-EINVAL, add.kind = 5);
	REFUSED(-EINVAL, add.grace = 1);
	REFUSED(-EINVAL, add.match = 1);
	REFUSED(-EINVAL, add.slack = 1);
	REFUSED(-EINVAL, add.deadline = 0);
	REFUSED(-EINVAL, add.deadline = -1ULL);
	REFUSED(-EINVAL, add.deadline = TIMERWHEEL_SOCKET_TIME_MAX + 1);
	REFUSED(-EINVAL, add.grace = TIMERWHEEL_SOCKET_TIME_MAX + 1,
		add.flags = TIMERWHEEL_SOCKET_ABORT);
	REFUSED(-EBADF, add.fd = -1);
	REFUSED(-ENOTSOCK, add.fd = self->fd);
	REFUSED(-EOPNOTSUPP, add.fd = self->listening);
	REFUSED(-ENOENT, add.flags = TIMERWHEEL_MATCH);
	after = stats_of(self->fd);
	EXPECT_EQ(before.sockets, after.sockets);
	EXPECT_EQ(before.armed, after.armed);
	EXPECT_EQ(0, add_elem(self->fd, &good));
	REFUSED(-EEXIST, add.flags = TIMERWHEEL_EXCL);
	REFUSED(-ESTALE, add.flags = TIMERWHEEL_MATCH, add.match = 1);
	EXPECT_EQ(1, stats_of(self->fd).sockets);
}

TEST_F(socket, other_sockets)
{
	int pair[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	EXPECT_EQ(-EOPNOTSUPP, add_sock(self->fd, KEY, pair[0], 0, IDLE, 0));
	EXPECT_EQ(-EOPNOTSUPP, add_sock(self->fd, KEY, socket(variant->family, SOCK_DGRAM, 0), 0,
					IDLE, 0));
	EXPECT_EQ(-ENOTCONN, add_sock(self->fd, KEY, socket(variant->family, SOCK_STREAM, 0), 0,
				      IDLE, 0));
	close(self->c.peer);
	EXPECT_EQ(0, stats_of(self->fd).sockets);
}

/* A connection of MPTCP has several connections of TCP, or one that is not its own. */
TEST_F(socket, mptcp)
{
	int fd = socket(variant->family, SOCK_STREAM, IPPROTO_MPTCP);

	if (fd < 0)
		SKIP(return, "this kernel has no MPTCP");
	ASSERT_EQ(0, connect(fd, (void *)&self->addr, self->len));
	EXPECT_EQ(-EOPNOTSUPP, add_sock(self->fd, KEY, fd, 0, IDLE, 0));
	EXPECT_EQ(0, stats_of(self->fd).sockets);
	close(fd);
}

TEST_F(socket, wheels)
{
	int manual = tw_open_manual(MSEC), table = tw_open_table(TIMERWHEEL_CLOCK_MONOTONIC, 0);

	EXPECT_EQ(-EINVAL, add_sock(manual, KEY, self->c.here, 0, IDLE, 0));
	ASSERT_LE(0, table);
	EXPECT_EQ(-EINVAL, add_sock(table, KEY, self->c.here, 0, IDLE, 0));
	EXPECT_EQ(0, stats_of(manual).sockets);
}

/* A connection that is not answered: its packets go to a full backlog. */
TEST_F(socket, connecting)
{
	struct timerwheel_event ev;
	int i, fd, last = -1;

	ASSERT_EQ(0, listen(self->listening, 0));
	for (i = 0; i < 4; i++) {
		fd = socket(variant->family, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (connect(fd, (void *)&self->addr, self->len))
			last = fd;
	}
	tw_sleep(50 * MSEC);
	ASSERT_EQ(0, add_sock(self->fd, KEY, last, TIMERWHEEL_SOCKET_LIFETIME, IDLE, 0));
	ASSERT_EQ(1, next_event(self->fd, &ev, PATIENCE));
	EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev.flags);
}

/* Elements of other sizes, and in memory that ends */
TEST_F(socket, elements)
{
	struct timerwheel_add_socket add = { .deadline = LONG, .fd = self->c.here }, *at;

	EXPECT_EQ(-EINVAL, tw_batch(self->fd, TIMERWHEEL_IOC_ADD_SOCKET, 0, &add, 71, 1, NULL));
	EXPECT_EQ(-E2BIG, tw_batch(self->fd, TIMERWHEEL_IOC_ADD_SOCKET, 0, &add, 73, 1, NULL));
	EXPECT_EQ(0, stats_of(self->fd).sockets);
	/* The second element is behind the end of memory. */
	at = tw_fence(sizeof(add));
	add.key = 2;
	*at = add;
	EXPECT_EQ(1, tw_batch(self->fd, TIMERWHEEL_IOC_ADD_SOCKET, 0, at, sizeof(add), 2, NULL));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, at->result);
	EXPECT_EQ(-EFAULT, tw_batch(self->fd, TIMERWHEEL_IOC_ADD_SOCKET, 0, at + 1, sizeof(add), 1,
				    NULL));
	/* Its results could not be written, so it is not begun */
	at->key = 3;
	ASSERT_EQ(0, mprotect((void *)((uintptr_t)at & -getpagesize()), getpagesize(), PROT_READ));
	EXPECT_EQ(-EFAULT, tw_batch(self->fd, TIMERWHEEL_IOC_ADD_SOCKET, 0, at, sizeof(add), 1,
				    NULL));
	EXPECT_EQ(1, stats_of(self->fd).sockets);
}

/* --- Memory and limits -------------------------------------------------- */

TEST_F(socket, room_for_two)
{
	struct timerwheel_setup setup = { .capacity = 2 };
	int fd = dev_open(O_NONBLOCK);

	ASSERT_EQ(0, dev_setup(fd, &setup));
	EXPECT_EQ(0, add_sock(fd, 1, self->c.here, 0, LONG, GRACE));
	EXPECT_EQ(-ENOSPC, add_sock(fd, 2, self->c.here, 0, LONG, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(fd, 1));
	EXPECT_EQ(0, add_sock(fd, 1, self->c.here, 0, LONG, 0));
	EXPECT_EQ(-ENOSPC, add_sock(fd, 2, self->c.here, 0, LONG, GRACE));
	EXPECT_EQ(0, add_sock(fd, 2, self->c.here, 0, LONG, 0));
	EXPECT_EQ(2, stats_of(fd).sockets);
}

TEST_F(socket, memory_is_charged_and_given_back)
{
	__u64 before, with;
	int i;

	/* A base of its own, but no other memory */
	ASSERT_EQ(0, tw_pin(0));
	EXPECT_EQ(0, add_sock(self->fd, KEY, self->c.here, 0, LONG, GRACE));
	with = stats_of(self->fd).memory;
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, KEY));
	/* The worker releases the socket a moment later. */
	for (i = 0; i < LONG_MS && stats_of(self->fd).memory > with - 1500; i++)
		tw_sleep(MSEC);
	while (stats_of(self->fd).memory != (before = tw_memory_alone(self->fd)))
		tw_sleep(MSEC);
	for (i = 0; i < 20; i++)
		EXPECT_EQ(0, add_sock(self->fd, i, self->c.here, 0, LONG, GRACE));
	with = stats_of(self->fd).memory;
	EXPECT_GE(with, before + 20 * 1500);
	EXPECT_LE(with, before + 20 * 6000);
	for (i = 0; i < 20; i++)
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, i));
	for (i = 0; i < LONG_MS && stats_of(self->fd).memory != before; i++)
		tw_sleep(MSEC);
	EXPECT_EQ(before, stats_of(self->fd).memory);
	EXPECT_EQ(before, tw_memory_alone(self->fd));
}

/* Closed with connections in every state */
TEST_F(socket, close_the_wheel)
{
	int fd = dev_open(O_NONBLOCK), i;

	for (i = 0; i < 50; i++)
		EXPECT_EQ(0, add_sock(fd, i, self->c.here, 0, i % 2 ? LONG : IDLE,
				      i % 3 ? LONG : ~0ULL));
	tw_sleep(IDLE);
	close(fd);
	EXPECT_TRUE(is_alive(&self->c));
	EXPECT_NE(~0ULL, tw_memory_alone(self->fd));
}

struct kicks {
	int sock;
	atomic_bool stop;
};

/* Continually give the kernel work for connections. */
static void *kick(void *arg)
{
	struct kicks *k = arg;
	int fd = dev_open(O_NONBLOCK), ret;

	while (!atomic_load(&k->stop)) {
		ret = add_sock(fd, KEY, k->sock, TIMERWHEEL_SOCKET_LIFETIME, HOUR, ~0ULL);
		/* At the limit: the kernel has not freed all replaced connections yet. */
		if (ret < 0 && ret != -EDQUOT)
			abort();
	}
	close(fd);
	return NULL;
}

/* Close the wheel while thousands of connections of it and of another wheel are released. */
TEST_F_TIMEOUT(socket, closed_while_handled, 600)
{
	struct kicks k = { .sock = self->c.here };
	static struct timerwheel_entry ent[1000];
	struct timerwheel_add_socket *add = calloc(1000, sizeof(*add));
	__u64 end = tw_now(CLOCK_MONOTONIC) + 4 * SEC;
	pthread_t thread;
	int fd, i, n;

	ASSERT_EQ(0, pthread_create(&thread, NULL, kick, &k));
	do {
		fd = dev_open(O_NONBLOCK);
		for (n = 0; n < 10; n++) {
			for (i = 0; i < 1000; i++)
				add[i] = (struct timerwheel_add_socket) {
					.key = n * 1000 + i, .deadline = HOUR,
					.fd = self->c.here, .kind = TIMERWHEEL_SOCKET_LIFETIME,
				};
			ASSERT_EQ(1000, tw_batch(fd, TIMERWHEEL_IOC_ADD_SOCKET, 0, add,
						 sizeof(*add), 1000, NULL));
		}
		while (tw_drain(fd, 0, ent, 1000) > 0)
			;
		close(fd);
	} while (tw_now(CLOCK_MONOTONIC) < end);
	atomic_store(&k.stop, true);
	pthread_join(thread, NULL);
	EXPECT_NE(~0ULL, tw_memory_alone(self->fd));
}

/* --- Readers ------------------------------------------------------------ */

TEST_F(socket, ring)
{
	struct timerwheel_setup setup = { .ring = 8 };
	size_t size = TIMERWHEEL_RING_EVENTS + 8 * sizeof(struct timerwheel_event);
	int fd = dev_open(O_NONBLOCK), i;
	struct timerwheel_event *ev;
	struct timerwheel_ring *ring;

	ASSERT_EQ(0, dev_setup(fd, &setup));
	ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, TIMERWHEEL_MMAP_RING);
	ASSERT_NE(MAP_FAILED, ring);
	ev = (void *)ring + TIMERWHEEL_RING_EVENTS;
	EXPECT_EQ(0, add_sock(fd, KEY, self->c.here, 0, IDLE, GRACE));
	for (i = 0; i < LONG_MS && __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) < 2; i++)
		tw_sleep(MSEC);
	ASSERT_EQ(2, ring->tail);
	EXPECT_EQ(TIMERWHEEL_EVENT_WARNING, ev[0].flags);
	EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev[1].flags);
	EXPECT_EQ(ev[0].index, ev[1].index);
	EXPECT_EQ(0, stats_of(fd).sockets);
}

/*
 * The kernel's worker, which may be on any CPU, delivers to the ring with existing bases. Memory
 * for a base of its own would not be charged to the owner's cgroup.
 */
TEST_F_TIMEOUT(socket, ring_without_another_base, 600)
{
	enum { ROUNDS = 100 };
	struct timerwheel_setup setup = { .ring = 128 };
	size_t size = TIMERWHEEL_RING_EVENTS + 128 * sizeof(struct timerwheel_event);
	int fd = dev_open(O_NONBLOCK), i;
	struct timerwheel_ring *ring;
	__u64 memory, end;

	ASSERT_EQ(0, tw_pin(0));
	ASSERT_EQ(0, dev_setup(fd, &setup));
	ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, TIMERWHEEL_MMAP_RING);
	ASSERT_NE(MAP_FAILED, ring);
	/* Memory that connections need once */
	ASSERT_EQ(0, add_sock(fd, KEY, self->c.here, 0, LONG, LONG));
	memory = stats_of(fd).memory;
	for (i = 1; i <= ROUNDS; i++) {
		ASSERT_EQ(0, add_sock(fd, KEY + 1, self->c.here, TIMERWHEEL_SOCKET_LIFETIME, MSEC,
				      LONG));
		/* Keep this CPU busy, so that the worker, which warns, runs on another CPU. */
		end = tw_now(CLOCK_MONOTONIC) + PATIENCE;
		while (__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) < (__u32)i)
			ASSERT_GT(end, tw_now(CLOCK_MONOTONIC));
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(fd, KEY + 1));
	}
	/* The worker releases the sockets a moment later. */
	for (i = 0; i < LONG_MS && stats_of(fd).memory != memory; i++)
		tw_sleep(MSEC);
	EXPECT_EQ(memory, stats_of(fd).memory);
	close(fd);
}

/* --- Many --------------------------------------------------------------- */

static int many(void)
{
	const char *s = getenv("TW_SOCKETS");

	return s && atoi(s) > 0 ? atoi(s) : 2000;
}

/* The maximum wake-up delay of a task of the highest priority */
struct task {
	atomic_bool stop;
	__u64 worst;
};

static void *task_main(void *arg)
{
	struct sched_param param = { .sched_priority = 99 };
	struct task *task = arg;
	__u64 next;

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		abort();
	next = tw_now(CLOCK_MONOTONIC);
	while (!atomic_load(&task->stop)) {
		next += 200 * USEC;
		tw_sleep_until(CLOCK_MONOTONIC, next);
		if (tw_now(CLOCK_MONOTONIC) - next > task->worst)
			task->worst = tw_now(CLOCK_MONOTONIC) - next;
		next = tw_now(CLOCK_MONOTONIC);
	}
	return NULL;
}

/* The address for connection @i: with many connections to one address, free ports are scarce. */
static void address_of(struct sockaddr_storage *addr, int i)
{
	if (addr->ss_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_addr.s_addr =
			htonl(INADDR_LOOPBACK + i / 5000);
}

/* A connection in many wheels is aborted once; each wheel gets an event. */
TEST_F(socket, many_wheels)
{
	int n = many() / 4, i, sum = 0, gone = 0;
	struct rlimit limit = { n + 100, n + 100 };
	int *fd = calloc(n, sizeof(*fd));
	struct timerwheel_event ev;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	for (i = 0; i < n; i++) {
		fd[i] = dev_open(O_NONBLOCK);
		ASSERT_GE(fd[i], 0);
		ASSERT_EQ(0, add_sock(fd[i], KEY, self->c.here, TIMERWHEEL_SOCKET_LIFETIME, HOUR,
				      i % 2 ? GRACE : 0));
	}
	for (i = 0; i < n; i++)
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(fd[i], KEY, 0, 0));
	for (i = 0; i < n; i++) {
		do {
			ASSERT_EQ(1, next_event(fd[i], &ev, PATIENCE));
		} while (ev.flags == TIMERWHEEL_EVENT_WARNING);
		sum += ev.flags == TIMERWHEEL_EVENT_ABORTED;
		gone += ev.flags == TIMERWHEEL_EVENT_GONE;
		EXPECT_EQ(0, stats_of(fd[i]).sockets);
		close(fd[i]);
	}
	EXPECT_EQ(1, sum);
	EXPECT_EQ(n - 1, gone);
}

/* Many timers are removed at once, and their connections released. */
TEST_F_TIMEOUT(socket, drained_at_once, 600)
{
	static struct timerwheel_add_socket add[1000];
	static struct timerwheel_entry ent[1000];
	const struct sched_param first = { .sched_priority = 1 }, usual = {};
	int rounds = many() / 10, i, k;
	struct task task = {};
	__u64 with;
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, task_main, &task));
	for (i = 0; i < rounds; i++) {
		for (k = 0; k < 1000; k++)
			add[k] = (struct timerwheel_add_socket) {
				.key = i * 1000 + k, .deadline = HOUR, .fd = self->c.here,
				.kind = TIMERWHEEL_SOCKET_LIFETIME,
			};
		ASSERT_EQ(1000, tw_batch(self->fd, TIMERWHEEL_IOC_ADD_SOCKET, 0, add, sizeof(*add),
					 1000, NULL));
		/* -EDQUOT: a guest with 1 GB has too little memory. */
		ASSERT_EQ(0, add[999].result);
	}
	with = stats_of(self->fd).memory;
	/* The kernel's worker does not run on this CPU before all are drained. */
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_FIFO, &first));
	for (i = 0; i < rounds; i++)
		ASSERT_EQ(1000, tw_drain(self->fd, 0, ent, 1000));
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_OTHER, &usual));
	while (stats_of(self->fd).memory > with / 8)
		tw_sleep(10 * MSEC);
	atomic_store(&task.stop, true);
	pthread_join(thread, NULL);
	TH_LOG("a task of the highest priority woke %llu us late at most", task.worst / USEC);
	if (tw_timed())
		EXPECT_LT(task.worst, 100 * USEC);
}

/* All are idle at the same time; each ends exactly once, and none holds a CPU for long. */
TEST_F(socket, all_at_once)
{
	struct rlimit limit = { 2 * many() + 100, 2 * many() + 100 };
	int n = many(), i, got, warnings = 0, aborted = 0;
	struct conn *c = calloc(n, sizeof(*c));
	unsigned char *seen = calloc(n, 1);
	struct timerwheel_event ev[64];
	struct pollfd p = { .fd = self->fd, .events = POLLIN };
	struct task task = {};
	pthread_t thread;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	for (i = 0; i < n; i++) {
		address_of(&self->addr, i);
		ASSERT_EQ(0, conn_from(self->listening, &self->addr, self->len, &c[i]));
	}
	ASSERT_EQ(0, pthread_create(&thread, NULL, task_main, &task));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, add_sock(self->fd, i, c[i].here, 0, IDLE, i % 2 ? GRACE : 0));
	while (aborted < n) {
		ASSERT_EQ(1, poll(&p, 1, LONG_MS));
		got = dev_read(self->fd, ev, 64);
		ASSERT_GT(got, 0);
		for (i = 0; i < got; i++) {
			ASSERT_LT(ev[i].key, n);
			if (ev[i].flags == TIMERWHEEL_EVENT_WARNING) {
				EXPECT_EQ(0, seen[ev[i].key]);
				EXPECT_EQ(1, ev[i].key % 2);
				seen[ev[i].key] = 1;
				warnings++;
			} else {
				EXPECT_EQ(TIMERWHEEL_EVENT_ABORTED, ev[i].flags);
				EXPECT_EQ(ev[i].key % 2, seen[ev[i].key]);
				seen[ev[i].key] = 2;
				aborted++;
			}
		}
	}
	atomic_store(&task.stop, true);
	pthread_join(thread, NULL);
	EXPECT_EQ(n / 2, warnings);
	TH_LOG("a task of the highest priority woke %llu us late at most", task.worst / USEC);
	if (tw_timed())
		EXPECT_LT(task.worst, 100 * USEC);
	for (i = 0; i < n; i++)
		EXPECT_TRUE(is_reset(c[i].peer));
	EXPECT_EQ(n, stats_of(self->fd).aborted);
	EXPECT_EQ(0, stats_of(self->fd).sockets);
}

/* The number of times that this task can do a little work until @until */
static __u64 work_until(__u64 until)
{
	__u64 turns;
	int n;

	for (turns = 0; tw_now(CLOCK_MONOTONIC) < until; turns++)
		for (n = 0; n < 5000; n++)
			__asm__ volatile("" : "+r" (n));
	return turns;
}

/*
 * Many timers wait for the lock of one socket, which a task holds. Another task keeps the CPU while
 * they wait and when they end.
 */
TEST_F_TIMEOUT(socket, many_wait_for_a_lock, 600)
{
	enum { PART = 1000 };
	static struct timerwheel_add_socket add[PART];
	int n = tw_icount() ? 20 * PART : PART, i, k, got, aborted = 0;
	unsigned char *seen = calloc(n, 1);
	struct timerwheel_event ev[64];
	struct pollfd p = { .fd = self->fd, .events = POLLIN };
	__u64 alone, held, free_at, ends;
	struct holder h;
	int err;

	err = hold(&h, self->c.here);
	if (err == -EOPNOTSUPP)
		SKIP(return, "no userfaultfd");
	ASSERT_EQ(0, err);
	alone = work_until(tw_now(CLOCK_MONOTONIC) + SEC);
	for (i = 0; i < n; i += PART) {
		for (k = 0; k < PART; k++)
			add[k] = (struct timerwheel_add_socket) {
				.key = i + k, .deadline = MSEC, .fd = self->c.here,
				.kind = TIMERWHEEL_SOCKET_LIFETIME,
				.flags = TIMERWHEEL_SOCKET_ABORT,
			};
		ASSERT_EQ(PART, tw_batch(self->fd, TIMERWHEEL_IOC_ADD_SOCKET, 0, add, sizeof(*add),
					 PART, NULL));
		ASSERT_EQ(0, add[PART - 1].result);
	}
	tw_sleep(2 * SEC);
	held = work_until(tw_now(CLOCK_MONOTONIC) + SEC);
	EXPECT_EQ(0, poll(&p, 1, 0));
	ASSERT_EQ(0, hold_no_more(&h));
	free_at = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(1, poll(&p, 1, LONG_MS));
	if (tw_timed())
		EXPECT_GE(free_at + SEC + 100 * MSEC, tw_now(CLOCK_MONOTONIC));
	ends = 10 * work_until(tw_now(CLOCK_MONOTONIC) + SEC / 10);
	TH_LOG("another task kept %.1f %% of the CPU, then %.1f %%", held * 100.0 / alone,
	       ends * 100.0 / alone);
	if (tw_timed()) {
		EXPECT_LE(998 * alone / 1000, held);
		EXPECT_LE(94 * alone / 100, ends);
	}
	for (i = 0; i < n; i += got) {
		ASSERT_EQ(1, poll(&p, 1, LONG_MS));
		got = dev_read(self->fd, ev, 64);
		ASSERT_GT(got, 0);
		for (k = 0; k < got; k++) {
			ASSERT_LT(ev[k].key, n);
			EXPECT_EQ(0, seen[ev[k].key]++);
			aborted += ev[k].flags == TIMERWHEEL_EVENT_ABORTED;
		}
	}
	EXPECT_EQ(1, aborted);
	EXPECT_EQ(0, stats_of(self->fd).sockets);
	free(seen);
}

/* --- Races -------------------------------------------------------------- */

/*
 * Calls, data, reopened connections and wheels that are closed, all at once, on few keys and
 * connections. Each arming has a version, which is the timer's value. A version ends exactly once.
 * A connection that has died was aborted for a version that a call reported as DUE, or that has
 * ended with an event.
 *
 * TW_RACE_SECONDS: duration of each variant (2 s).
 */
#define RACE_KEYS	12
#define RACE_CONNS	16
#define RACE_VERSIONS	1000000U
#define RACE_THREADS	16
#define RACE_WHEELS	4	/* wheels that are opened and closed */

enum { RACE_ENDED = 1, RACE_DUE = 2, RACE_ABORTS = 4, RACE_DIED = 8 };

struct race_slot {
	pthread_rwlock_t lock;
	struct conn c;
	__u32 life;		/* number of its current connection */
};

struct race {
	int fd;
	struct timerwheel_ring *ring;
	int listening;
	struct sockaddr_storage addr;
	socklen_t len;
	struct race_slot slot[RACE_CONNS];
	atomic_uint version, lives, clock, errors, stop, aborted, warned;
	atomic_uint last[RACE_KEYS];		/* a version that may still exist */
	atomic_ullong handle[RACE_KEYS];
	atomic_uint state[RACE_VERSIONS];	/* RACE_* of versions */
	atomic_uint ended[RACE_VERSIONS];	/* when a REMOVE had returned */
	__u32 life[RACE_VERSIONS];		/* the connection that they are for */
	unsigned char key[RACE_VERSIONS];
	atomic_uint died[RACE_VERSIONS];	/* RACE_* of connections */
};

struct race_thread {
	struct race *r;
	pthread_t id;
	__u64 rnd;
	int number;
};

#define RACE_BAD(r, fmt, ...) do {					\
	if (atomic_fetch_add(&(r)->errors, 1) < 20)			\
		printf("# race: " fmt "\n", ##__VA_ARGS__);		\
} while (0)

static __u32 race_below(struct race_thread *t, __u32 n)
{
	return (tw_rand(&t->rnd) >> 32) % n;
}

static bool race_dead(int sock)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	return getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &len) || info.tcpi_state == TCP_CLOSE;
}

static void race_end(struct race *r, __u64 v, __u32 why, const char *what)
{
	if (!v || v >= RACE_VERSIONS) {
		RACE_BAD(r, "%s: version %llu", what, (unsigned long long)v);
		return;
	}
	if (atomic_fetch_or(&r->state[v], why | RACE_ENDED) & RACE_ENDED)
		RACE_BAD(r, "%s: version %llu has ended before", what, (unsigned long long)v);
}

/* The end of a version that a call returns */
static void race_end_was(struct race *r, __u64 v, int was, const char *what)
{
	race_end(r, v, was == TIMERWHEEL_WAS_DUE ? RACE_DUE : 0, what);
	if (v && v < RACE_VERSIONS)
		atomic_store(&r->ended[v], atomic_fetch_add(&r->clock, 1) + 1);
}

static void race_event(struct race *r, const struct timerwheel_event *ev, __u32 since)
{
	__u64 v = ev->value;
	__u32 ended;
	int i;

	if (!v)
		return;		/* of race_add_plain(), and moved */
	if (v >= RACE_VERSIONS || ev->key >= RACE_KEYS) {
		RACE_BAD(r, "event of version %llu", (unsigned long long)v);
		return;
	}
	if (ev->fired < ev->deadline)
		RACE_BAD(r, "event %#x: %lld ns early", ev->flags,
			 (long long)(ev->deadline - ev->fired));
	ended = atomic_load(&r->ended[v]);
	if (ended && since && ended < since)
		RACE_BAD(r, "event %#x of version %llu, which had ended", ev->flags,
			 (unsigned long long)v);
	if (ev->flags == TIMERWHEEL_EVENT_WARNING) {
		atomic_fetch_add(&r->warned, 1);
		return;
	}
	if (ev->flags != TIMERWHEEL_EVENT_GONE &&
	    ev->flags != (atomic_load(&r->state[v]) & RACE_ABORTS ? TIMERWHEEL_EVENT_ABORTED : 0))
		RACE_BAD(r, "event of version %llu: flags %#x", (unsigned long long)v, ev->flags);
	race_end(r, v, ev->flags == TIMERWHEEL_EVENT_ABORTED ? RACE_DUE : 0, "event");
	if (ev->flags == TIMERWHEEL_EVENT_ABORTED)
		atomic_fetch_add(&r->aborted, 1);
	if (!ev->flags)
		return;
	for (i = 0; i < RACE_CONNS; i++) {
		pthread_rwlock_rdlock(&r->slot[i].lock);
		if (r->slot[i].life == r->life[v] && !race_dead(r->slot[i].c.here))
			RACE_BAD(r, "event %#x of a connection that is alive", ev->flags);
		pthread_rwlock_unlock(&r->slot[i].lock);
	}
}

static void race_connect(struct race *r, struct conn *c)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	struct linger linger = { 1, 0 };
	int err;

	/* One at a time, because two threads could accept each other's connection. */
	pthread_mutex_lock(&mutex);
	err = conn_from(r->listening, &r->addr, r->len, c);
	pthread_mutex_unlock(&mutex);
	if (err) {
		printf("# race: connect: %d\n", err);
		abort();
	}
	/* No TIME_WAIT, because the number of ports is limited. */
	setsockopt(c->peer, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	setsockopt(c->here, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static void race_open(struct race *r, struct race_slot *slot)
{
	race_connect(r, &slot->c);
	slot->life = atomic_fetch_add(&r->lives, 1);
}

static void race_shut(struct race *r, struct race_slot *slot)
{
	if (race_dead(slot->c.here))
		atomic_fetch_or(&r->died[slot->life], RACE_DIED);
	close(slot->c.here);
	close(slot->c.peer);
}

static void race_reopen(struct race *r, struct race_slot *slot)
{
	if (atomic_load(&r->lives) >= RACE_VERSIONS - 64)
		return;
	pthread_rwlock_wrlock(&slot->lock);
	race_shut(r, slot);
	race_open(r, slot);
	pthread_rwlock_unlock(&slot->lock);
}

static void race_add(struct race_thread *t)
{
	struct race *r = t->r;
	__u32 v = atomic_fetch_add(&r->version, 1), key = race_below(t, RACE_KEYS), old;
	struct race_slot *slot = &r->slot[race_below(t, RACE_CONNS)];
	bool aborts = race_below(t, 4);
	struct timerwheel_add_socket add = {
		.key = key, .value = v, .deadline = (1 + race_below(t, 12)) * MSEC,
		.flags = aborts ? TIMERWHEEL_SOCKET_ABORT : 0,
		.grace = aborts && race_below(t, 3) ? (1 + race_below(t, 16)) * MSEC : 0,
		.kind = race_below(t, 5),
	};
	int ret;

	if (v >= RACE_VERSIONS)
		return;
	old = atomic_load(&r->last[key]);
	if (old && race_below(t, 2)) {
		add.flags |= TIMERWHEEL_MATCH;
		add.match = old;
	} else {
		add.flags |= TIMERWHEEL_EXCL;
	}
	pthread_rwlock_rdlock(&slot->lock);
	r->life[v] = slot->life;
	r->key[v] = key;
	add.fd = slot->c.here;
	atomic_store(&r->state[v], aborts ? RACE_ABORTS : 0);
	ret = add_elem(r->fd, &add);
	pthread_rwlock_unlock(&slot->lock);
	if (ret < 0) {
		if (ret != -EEXIST && ret != -ESTALE && ret != -ENOENT && ret != -ENOTCONN &&
		    ret != -ENOSPC)
			RACE_BAD(r, "ADD_SOCKET: %d", ret);
		atomic_fetch_or(&r->state[v], RACE_ENDED);
		if (ret == -ENOTCONN)
			race_reopen(r, slot);
		return;
	}
	if (ret != TIMERWHEEL_WAS_NONE)
		race_end_was(r, old, ret, "ADD_SOCKET");
	atomic_store(&r->last[key], v);
	atomic_store(&r->handle[key], (__u64)add.index << 32 | add.generation);
}

/* A timer without a connection, which falls due or replaces another */
static void race_add_plain(struct race_thread *t)
{
	struct race *r = t->r;
	__u32 key = race_below(t, RACE_KEYS), old = atomic_load(&r->last[key]);
	int ret, was;

	if (!old)
		return;
	ret = tw_add1_match(r->fd, key, 0, HOUR, old, 0);
	if (ret < 0)
		return;
	race_end_was(r, old, ret, "ADD");
	was = tw_remove1_match(r->fd, key, 0);
	/* A DRAIN or a MOVE may have been faster. */
	if (was < 0 && was != -ENOENT && was != -ESTALE)
		RACE_BAD(r, "REMOVE: %d", was);
}

/* A timer of unknown version was DUE: suspect the latest versions of this key. */
static void race_suspect(struct race *r, __u32 key)
{
	__u32 v = atomic_load(&r->version), i;

	for (i = 0; i < 400 && --v && v < RACE_VERSIONS; i++)
		if (r->key[v] == key)
			atomic_fetch_or(&r->state[v], RACE_DUE);
}

static void race_move(struct race_thread *t)
{
	struct race *r = t->r;
	__u32 key = race_below(t, RACE_KEYS), v = atomic_load(&r->last[key]);
	__u64 time = race_below(t, 3) ? race_below(t, 20) * MSEC : 0;
	__u64 handle = atomic_load(&r->handle[key]);
	int ret;

	if (!v)
		return;
	switch (race_below(t, 3)) {
	case 0:
		/* The version is unknown, so each may be the moved one. */
		ret = tw_move_handle1(r->fd, handle >> 32, handle, time, 0);
		if (ret == TIMERWHEEL_WAS_DUE)
			race_suspect(r, key);
		break;
	default:
		ret = tw_move1_match(r->fd, key, time, v, 0);
		if (ret == TIMERWHEEL_WAS_DUE)
			atomic_fetch_or(&r->state[v], RACE_DUE);
		break;
	}
	if (ret < 0 && ret != -ENOENT && ret != -ESTALE)
		RACE_BAD(r, "MOVE: %d", ret);
}

static void race_remove(struct race_thread *t)
{
	struct race *r = t->r;
	__u32 key = race_below(t, RACE_KEYS);
	__u64 handle = atomic_load(&r->handle[key]), value;
	struct timerwheel_remove rem = { .key = key };
	int ret;

	if (race_below(t, 2)) {
		ret = tw_remove_elem(r->fd, &rem);
		value = rem.value;
	} else {
		ret = tw_remove_handle1(r->fd, handle >> 32, handle, &value);
	}
	if (ret >= 0 && value)
		race_end_was(r, value, ret, "REMOVE");
	else if (ret < 0 && ret != -ENOENT)
		RACE_BAD(r, "REMOVE: %d", ret);
}

static void race_drain(struct race *r, __u32 n)
{
	struct timerwheel_entry ent[4];
	int got, i;

	got = tw_drain(r->fd, 0, ent, n);
	for (i = 0; i < got; i++)
		if (ent[i].value)
			race_end_was(r, ent[i].value, ent[i].result, "DRAIN");
}

static void race_look(struct race_thread *t)
{
	struct timerwheel_entry ent[8];
	struct timerwheel_stats stats;
	struct race *r = t->r;
	__u64 cursor = 0;

	tw_get1(r->fd, race_below(t, RACE_KEYS), ent);
	tw_list(r->fd, &cursor, ent, 8);
	stats = stats_of(r->fd);
	if (stats.due > RACE_KEYS || stats.sockets > RACE_KEYS)
		RACE_BAD(r, "STATS: due %llu, sockets %llu", (unsigned long long)stats.due,
			 (unsigned long long)stats.sockets);
}

static void race_data(struct race_thread *t)
{
	struct race_slot *slot = &t->r->slot[race_below(t, RACE_CONNS)];
	char buf[64];
	int from, to;

	pthread_rwlock_rdlock(&slot->lock);
	from = race_below(t, 2) ? slot->c.here : slot->c.peer;
	to = from == slot->c.here ? slot->c.peer : slot->c.here;
	memset(buf, 0, sizeof(buf));
	send(from, buf, 1 + race_below(t, 60), MSG_NOSIGNAL | MSG_DONTWAIT);
	recv(to, buf, sizeof(buf), MSG_DONTWAIT);
	if (!race_below(t, 64)) {
		shutdown(from, SHUT_WR);
		/* It ends when both sides have sent an end of file. */
		atomic_fetch_or(&t->r->died[slot->life], RACE_ABORTS);
	}
	pthread_rwlock_unlock(&slot->lock);
}

static void race_some(struct race_thread *t)
{
	race_drain(t->r, 1 + race_below(t, 4));
}

static void race_change(struct race_thread *t)
{
	race_reopen(t->r, &t->r->slot[race_below(t, RACE_CONNS)]);
}

static void race_pause(struct race_thread *t)
{
	tw_sleep(race_below(t, 3) * MSEC);
}

static void *race_worker(void *arg)
{
	static const struct {
		void (*op)(struct race_thread *t);
		__u32 below;	/* of 256: in ascending order */
	} ops[] = {
		{ race_add, 80 }, { race_move, 112 }, { race_remove, 160 },
		{ race_look, 192 }, { race_data, 208 }, { race_pause, 238 },
		{ race_add_plain, 246 }, { race_change, 254 }, { race_some, 256 },
	};
	struct race_thread *t = arg;
	__u32 dice, i;

	while (!atomic_load(&t->r->stop)) {
		dice = race_below(t, 256);
		for (i = 0; dice >= ops[i].below; i++)
			;
		ops[i].op(t);
	}
	return NULL;
}

static int race_take(struct race *r, struct timerwheel_event *ev, int n)
{
	if (!r->ring)
		return dev_read(r->fd, ev, n);
	n = timerwheel_ring_take(TW_RING(r->ring), ev, n);
	ioctl(r->fd, TIMERWHEEL_IOC_FLOW);
	return n ?: -EAGAIN;
}

static void *race_reader(void *arg)
{
	struct race_thread *t = arg;
	struct timerwheel_event ev[8];
	struct race *r = t->r;
	__u32 since;
	int n, i;

	while (!atomic_load(&r->stop)) {
		since = r->ring ? 0 : atomic_fetch_add(&r->clock, 1) + 1;
		n = race_take(r, ev, 1 + race_below(t, 8));
		for (i = 0; i < n; i++)
			race_event(r, &ev[i], since);
		if (n <= 0)
			tw_sleep(race_below(t, 4) * MSEC);
	}
	return NULL;
}

/* Close wheels of one user while the kernel handles their connections. */
static void *race_closer(void *arg)
{
	struct race_thread *t = arg;
	struct race *r = t->r;
	int fd[RACE_WHEELS], i, k;
	struct conn c;

	while (!atomic_load(&r->stop)) {
		race_connect(r, &c);
		for (i = 0; i < RACE_WHEELS; i++) {
			fd[i] = dev_open(O_NONBLOCK);
			for (k = 0; k < 6; k++)
				add_sock(fd[i], k, k % 3 ? c.here : c.peer, race_below(t, 5),
					 (1 + race_below(t, 8)) * MSEC,
					 race_below(t, 3) ? ~0ULL : race_below(t, 3) * MSEC);
		}
		tw_sleep(race_below(t, 10) * MSEC);
		for (i = 0; i < RACE_WHEELS; i++) {
			for (k = 0; k < 6; k++)
				if (race_below(t, 2))
					tw_remove1(fd[i], k);
			close(fd[i]);
		}
		close(c.here);
		close(c.peer);
	}
	return NULL;
}

/* All versions have ended once. Check why the dead connections died. */
static void race_check(struct race *r)
{
	__u32 versions = atomic_load(&r->version), v;

	if (versions > RACE_VERSIONS)
		versions = RACE_VERSIONS;
	for (v = 1; v < versions; v++) {
		if (!(atomic_load(&r->state[v]) & RACE_ENDED))
			RACE_BAD(r, "version %u has not ended", v);
		if (atomic_load(&r->state[v]) & RACE_ABORTS &&
		    atomic_load(&r->state[v]) & RACE_DUE)
			atomic_fetch_or(&r->died[r->life[v]], RACE_ABORTS);
	}
	for (v = 1; v < atomic_load(&r->lives); v++)
		if (atomic_load(&r->died[v]) == RACE_DIED)
			RACE_BAD(r, "connection %u was aborted by nobody", v);
}

FIXTURE(race)
{
	struct race *r;
};

FIXTURE_VARIANT(race)
{
	__u32 ring;
};

FIXTURE_VARIANT_ADD(race, read) { .ring = 0 };
FIXTURE_VARIANT_ADD(race, ring) { .ring = 4 };

FIXTURE_SETUP(race)
{
	struct timerwheel_setup setup = { .ring = variant->ring, .tick = 100 * USEC };
	size_t size = TIMERWHEEL_RING_EVENTS + variant->ring * sizeof(struct timerwheel_event);
	struct race *r = calloc(1, sizeof(*r));
	int i;

	ASSERT_NE(NULL, r);
	self->r = r;
	r->fd = dev_open(O_NONBLOCK);
	ASSERT_GE(r->fd, 0);
	ASSERT_EQ(0, dev_setup(r->fd, &setup));
	if (variant->ring) {
		r->ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
			       TIMERWHEEL_MMAP_RING);
		ASSERT_NE(MAP_FAILED, r->ring);
	}
	r->listening = listener(AF_INET, &r->addr, &r->len);
	ASSERT_GE(r->listening, 0);
	atomic_store(&r->version, 1);
	atomic_store(&r->lives, 1);
	for (i = 0; i < RACE_CONNS; i++) {
		pthread_rwlock_init(&r->slot[i].lock, NULL);
		race_open(r, &r->slot[i]);
	}
}

FIXTURE_TEARDOWN(race)
{
	close(self->r->fd);
}

TEST_F_TIMEOUT(race, all, 600)
{
	const char *s = getenv("TW_RACE_SECONDS");
	struct race_thread thread[RACE_THREADS] = {};
	struct race *r = self->r;
	struct timerwheel_event ev[8];
	struct timerwheel_stats stats;
	__u64 seed = tw_seed();
	int i, n;

	for (i = 0; i < RACE_THREADS; i++) {
		void *(*main)(void *) = race_worker;

		if (i == 0 || (i == 1 && !r->ring))
			main = race_reader;
		else if (i < 4)
			main = race_closer;
		thread[i].r = r;
		thread[i].number = i;
		thread[i].rnd = seed + i * 0x9e3779b97f4a7c15ULL;
		ASSERT_EQ(0, pthread_create(&thread[i].id, NULL, main, &thread[i]));
	}
	tw_sleep((s && atoi(s) > 0 ? atoi(s) : 2) * SEC);
	/* Allow more time on slow kernels, where the run would otherwise prove nothing. */
	for (i = 0; i < LONG_MS && !(atomic_load(&r->aborted) && atomic_load(&r->warned)); i++)
		tw_sleep(MSEC);
	atomic_store(&r->stop, 1);
	for (i = 0; i < RACE_THREADS; i++)
		pthread_join(thread[i].id, NULL);
	do {
		race_drain(r, 4);
		n = race_take(r, ev, 8);
		for (i = 0; i < n; i++)
			race_event(r, &ev[i], 0);
		stats = stats_of(r->fd);
	} while (n > 0 || stats.pending + stats.due + stats.parked);
	/* Wait for aborts in progress. */
	for (i = 0; i < LONG_MS && stats_of(r->fd).memory != tw_memory_alone(r->fd); i++)
		tw_sleep(MSEC);
	for (i = 0; i < RACE_CONNS; i++)
		race_shut(r, &r->slot[i]);
	race_check(r);
	stats = stats_of(r->fd);
	printf("# race: %u armed, %u warned, %u aborted, %llu by the kernel, %u connections\n",
	       atomic_load(&r->version), atomic_load(&r->warned), atomic_load(&r->aborted),
	       (unsigned long long)stats.aborted, atomic_load(&r->lives));
	EXPECT_EQ(0, atomic_load(&r->errors));
	EXPECT_EQ(0, stats.sockets);
	EXPECT_TRUE(tw_balanced(&stats));
	EXPECT_GT(atomic_load(&r->aborted), 0);
	EXPECT_GT(atomic_load(&r->warned), 0);
}

TEST_HARNESS_MAIN
