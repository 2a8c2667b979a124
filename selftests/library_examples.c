// SPDX-License-Identifier: GPL-2.0
/*
 * The examples in lib/examples: a wheel in event loops, requests and leases, which check their
 * results themselves; and two servers with idle timeouts.
 */
#include "library.h"
#include <linux/io_uring.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/un.h>

/* Their folder in a guest; elsewhere TW_EXAMPLES in the environment */
#define EXAMPLES	"/examples"

/* The path of an example, and the back end that it must use */
static void example(char *path, size_t size, const char *name)
{
	const char *folder = getenv("TW_EXAMPLES");

	snprintf(path, size, "%s/%s", folder ? folder : EXAMPLES, name);
	setenv("TIMERWHEEL_BACKEND", ON_DEVICE ? "device" : "process", 1);
}

FIXTURE(loop)
{
	char path[256];
};

FIXTURE_VARIANT(loop)
{
	const char *name;
};

FIXTURE_VARIANT_ADD(loop, epoll)
{
	.name = "epoll",
};

FIXTURE_VARIANT_ADD(loop, libevent)
{
	.name = "libevent",
};

FIXTURE_VARIANT_ADD(loop, libuv)
{
	.name = "libuv",
};

FIXTURE_SETUP(loop)
{
	example(self->path, sizeof(self->path), variant->name);
}

FIXTURE_TEARDOWN(loop)
{
}

/* Run it. Returns its exit status. */
static int run(const char *path, const char *how)
{
	pid_t pid = fork();

	if (!pid) {
		/* Its output is only for people. */
		dup2(2, 1);
		/* Some supervisors start programs this way, and an example must work under them. */
		signal(SIGCHLD, SIG_IGN);
		execl(path, path, how, NULL);
		_exit(127);
	}
	return reap(pid);
}

TEST_F(loop, read)
{
	EXPECT_EQ(0, run(self->path, NULL));
}

TEST_F(loop, ring)
{
	EXPECT_EQ(0, run(self->path, "ring"));
}

/* ---- request timeouts, leases ---------------------------------------------------------------- */

/* Each request is answered or lost. */
TEST(requests)
{
	char path[256];

	example(path, sizeof(path), "requests");
	EXPECT_EQ(0, run(path, NULL));
	EXPECT_EQ(0, run(path, "ring"));
}

#ifndef PROCESS
/* Workers that hang or exit lose their leases, and only these get an event. */
TEST(lease)
{
	char path[256];

	example(path, sizeof(path), "lease");
	EXPECT_EQ(0, run(path, NULL));
}
#endif

/* ---- a server with idle timeouts, each postponed in memory ----------------------------------- */

enum { IDLE_MS = 1000 };

struct server {
	char folder[32];
	struct sockaddr_un name;
	pid_t pid;
};

static int server_connect(const struct sockaddr_un *name)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!connect(fd, (const struct sockaddr *)name, sizeof(*name)))
		return fd;
	close(fd);
	return -errno;
}

/* Send one character and receive it again. */
static bool echoed(int fd, char c)
{
	char answer = 0;

	return send(fd, &c, 1, MSG_NOSIGNAL) == 1 && recv(fd, &answer, 1, 0) == 1 && answer == c;
}

static void server_start(struct __test_metadata *_metadata, struct server *self,
			 const char *program, const char *how)
{
	char path[256], ms[16];
	int fd, tries = 6000;

	strcpy(self->folder, "/tmp/tw-server.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->folder));
	self->name.sun_family = AF_UNIX;
	snprintf(self->name.sun_path, sizeof(self->name.sun_path), "%s/socket", self->folder);
	example(path, sizeof(path), program);
	snprintf(ms, sizeof(ms), "%d", IDLE_MS);
	self->pid = fork();
	if (!self->pid) {
		execl(path, path, self->name.sun_path, ms, how, NULL);
		_exit(127);
	}
	while ((fd = server_connect(&self->name)) < 0 && --tries)
		nap(10 * MSEC);
	ASSERT_LE(0, fd);
	close(fd);
}

static void server_stop(struct __test_metadata *_metadata, struct server *self)
{
	kill(self->pid, SIGKILL);
	EXPECT_EQ(1000 + SIGKILL, reap(self->pid));
	unlink(self->name.sun_path);
	rmdir(self->folder);
}

/* A silent client stays connected until the timeout, but not longer. */
static void closes_idle_ones(struct __test_metadata *_metadata, struct server *self)
{
	uint64_t now, spoke = 0;
	int fd, i;
	char c;

	fd = server_connect(&self->name);
	ASSERT_LE(0, fd);
	for (i = 0; i < 3; i++) {
		now = clock_ns(CLOCK_MONOTONIC);
		/* A slow machine may have made it silent for too long. */
		if (!echoed(fd, 'a' + i))
			break;
		spoke = now;
		nap(IDLE_MS / 10 * MSEC);
	}
	ASSERT_LT(0, i);
	EXPECT_GE(0, recv(fd, &c, 1, 0));
	EXPECT_LE(spoke + IDLE_MS * MSEC, clock_ns(CLOCK_MONOTONIC));
	close(fd);
}

/*
 * The server is stopped for longer than the timeout. Meanwhile a client sends, after another client
 * has connected: the timer of the new client makes the process back end handle due timers before
 * the received data.
 */
static void stopped(struct __test_metadata *_metadata, struct server *self)
{
	int fd = -1, other, status;
	uint64_t spoke, goes_on;
	char c;

	/* Retry if a slow machine has made it silent for too long. */
	do {
		if (fd >= 0) {
			close(fd);
			ASSERT_EQ(0, kill(self->pid, SIGCONT));
		}
		fd = server_connect(&self->name);
		ASSERT_LE(0, fd);
		spoke = clock_ns(CLOCK_MONOTONIC);
		ASSERT_EQ(true, echoed(fd, 'a'));
		/* Let it fall asleep, so that it sees the other connection first. */
		nap(100 * MSEC);
		ASSERT_EQ(0, kill(self->pid, SIGSTOP));
		ASSERT_EQ(self->pid, waitpid(self->pid, &status, WUNTRACED));
	} while (clock_ns(CLOCK_MONOTONIC) >= spoke + IDLE_MS * MSEC);
	other = server_connect(&self->name);
	ASSERT_LE(0, other);
	nap(2 * IDLE_MS * MSEC);
	ASSERT_EQ(1, send(fd, "b", 1, MSG_NOSIGNAL));
	goes_on = clock_ns(CLOCK_MONOTONIC);
	ASSERT_EQ(0, kill(self->pid, SIGCONT));
	EXPECT_EQ(1, recv(fd, &c, 1, 0));
	EXPECT_EQ('b', c);
	EXPECT_EQ(0, recv(fd, &c, 1, 0));
	EXPECT_LE(goes_on + IDLE_MS * MSEC, clock_ns(CLOCK_MONOTONIC));
	EXPECT_EQ(0, recv(other, &c, 1, 0));
	EXPECT_LE(goes_on + IDLE_MS * MSEC, clock_ns(CLOCK_MONOTONIC));
	close(fd);
	close(other);
}

enum { CLIENTS = 20 };

/* More clients than free descriptors: the server does not spin, and serves later clients. */
static void too_many(struct __test_metadata *_metadata, struct server *self)
{
	struct rlimit limit = { CLIENTS, CLIENTS };
	int fds[CLIENTS], i, tries = 5;
	clockid_t clock;
	uint64_t used;

	ASSERT_EQ(0, prlimit(self->pid, RLIMIT_NOFILE, &limit, NULL));
	ASSERT_EQ(0, clock_getcpuclockid(self->pid, &clock));
	/* Retry on a busy machine, because a pause of the CPU counts for the running task. */
	do {
		for (i = 0; i < CLIENTS; i++) {
			fds[i] = server_connect(&self->name);
			ASSERT_LE(0, fds[i]);
		}
		nap(100 * MSEC);
		used = clock_ns(clock);
		nap(800 * MSEC);
		used = clock_ns(clock) - used;
		for (i = 0; i < CLIENTS; i++)
			close(fds[i]);
	} while (used >= 100 * MSEC && --tries);
	EXPECT_GT(100 * MSEC, used);
	fds[0] = server_connect(&self->name);
	ASSERT_LE(0, fds[0]);
	EXPECT_TRUE(echoed(fds[0], 'a'));
	close(fds[0]);
}

FIXTURE(server)
{
	struct server server;
};

FIXTURE_VARIANT(server)
{
	const char *how;
};

FIXTURE_VARIANT_ADD(server, read)
{
	.how = NULL,
};

FIXTURE_VARIANT_ADD(server, ring)
{
	.how = "ring",
};

FIXTURE_SETUP(server)
{
	server_start(_metadata, &self->server, "server", variant->how);
}

FIXTURE_TEARDOWN(server)
{
	server_stop(_metadata, &self->server);
}

TEST_F(server, closes_idle_ones)
{
	closes_idle_ones(_metadata, &self->server);
}

TEST_F(server, stopped)
{
	stopped(_metadata, &self->server);
}

TEST_F(server, too_many)
{
	too_many(_metadata, &self->server);
}

/* The same with io_uring: its timeouts are commands, or calls in the process back end. */
FIXTURE(echo)
{
	struct server server;
};

FIXTURE_VARIANT(echo)
{
	const char *how;
};

FIXTURE_VARIANT_ADD(echo, read)
{
	.how = NULL,
};

FIXTURE_VARIANT_ADD(echo, ring)
{
	.how = "ring",
};

FIXTURE_SETUP(echo)
{
	struct io_uring_params params = { 0 };
	int ring = syscall(SYS_io_uring_setup, 1, &params);

	if (ring < 0)
		SKIP(return, "no io_uring here");
	close(ring);
	server_start(_metadata, &self->server, "echod", variant->how);
}

FIXTURE_TEARDOWN(echo)
{
	if (self->server.pid)
		server_stop(_metadata, &self->server);
}

TEST_F(echo, closes_idle_ones)
{
	closes_idle_ones(_metadata, &self->server);
}

TEST_F(echo, stopped)
{
	stopped(_metadata, &self->server);
}

TEST_F(echo, too_many)
{
	too_many(_metadata, &self->server);
}

TEST_HARNESS_MAIN
