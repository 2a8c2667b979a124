// SPDX-License-Identifier: GPL-2.0
/*
 * A daemon that is killed and restarted with its million timers: lib/examples/restart, under a
 * minimal service manager that keeps its descriptor, as systemd does.
 */
#include "library.h"
#include <sys/un.h>

#define EXAMPLE	"/examples/restart"

struct manager {
	char folder[32];		/* used only by this program */
	struct sockaddr_un name;	/* destination of its messages, in this folder */
	int socket;
	int stored;		/* the descriptor that the daemon has stored; -1: none */
	pid_t daemon;
	char leases[16];
	char status[128];	/* its last status */
	bool ready;
};

FIXTURE(manager)
{
	struct manager m;
};

/* The number of timers: a million, or TW_SCALE in the environment */
static int scale(void)
{
	const char *s = getenv("TW_SCALE");

	return s && atoi(s) > 0 ? atoi(s) : 1000000;
}

FIXTURE_SETUP(manager)
{
	struct timeval patience = { .tv_sec = 120 };
	struct sockaddr_un *name = &self->m.name;

	strcpy(self->m.folder, "/tmp/tw-restart.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->m.folder));
	name->sun_family = AF_UNIX;
	snprintf(name->sun_path, sizeof(name->sun_path), "%s/socket", self->m.folder);
	self->m.socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ASSERT_EQ(0, bind(self->m.socket, (struct sockaddr *)name, sizeof(*name)));
	ASSERT_EQ(0, setsockopt(self->m.socket, SOL_SOCKET, SO_RCVTIMEO, &patience,
				sizeof(patience)));
	self->m.stored = -1;
	self->m.daemon = 0;
	snprintf(self->m.leases, sizeof(self->m.leases), "%d", scale());
}

FIXTURE_TEARDOWN(manager)
{
	if (self->m.daemon) {
		kill(self->m.daemon, SIGKILL);
		reap(self->m.daemon);
	}
	unlink(self->m.name.sun_path);
	rmdir(self->m.folder);
}

/* As systemd does: the stored descriptor is descriptor 3, and the environment announces it. */
static void run_daemon(struct manager *m)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("NOTIFY_SOCKET", m->name.sun_path, 1);
	if (m->stored >= 0) {
		if (m->stored == 3)
			fcntl(3, F_SETFD, 0);
		else
			dup2(m->stored, 3);
		setenv("LISTEN_PID", pid, 1);
		setenv("LISTEN_FDS", "1", 1);
		setenv("LISTEN_FDNAMES", "wheel", 1);
	}
	execl(EXAMPLE, "restart", m->leases, NULL);
	_exit(127);
}

/* Take one message of the daemon. Returns 0, or -1 if there was none. */
static int listen_once(struct manager *m)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char text[512];
	struct iovec data = { .iov_base = text, .iov_len = sizeof(text) - 1 };
	struct msghdr msg = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = control.buf, .msg_controllen = sizeof(control.buf),
	};
	struct cmsghdr *head;
	const char *status;
	ssize_t n;

	n = recvmsg(m->socket, &msg, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -1;
	text[n] = 0;
	head = CMSG_FIRSTHDR(&msg);
	if (head && head->cmsg_type == SCM_RIGHTS && strstr(text, "FDSTORE=1") &&
	    strstr(text, "FDNAME=wheel"))
		memcpy(&m->stored, CMSG_DATA(head), sizeof(m->stored));
	status = strstr(text, "STATUS=");
	if (status)
		snprintf(m->status, sizeof(m->status), "%.*s",
			 (int)strcspn(status + 7, "\n"), status + 7);
	m->ready |= !!strstr(text, "READY=1");
	return 0;
}

/* Start it, and wait until it is ready. */
static void start_daemon(struct manager *m)
{
	m->ready = false;
	m->daemon = fork();
	if (!m->daemon)
		run_daemon(m);
	while (!m->ready && !listen_once(m))
		;
}

static int kill_daemon(struct manager *m)
{
	pid_t pid = m->daemon;

	m->daemon = 0;
	kill(pid, SIGKILL);
	return reap(pid);
}

TEST_F_TIMEOUT(manager, comes_back, 300)
{
	char made[64], found[64], ended[64];
	struct timerwheel_stats s;
	struct timerwheel *wheel;
	int round, fd;

	snprintf(made, sizeof(made), "made: %s leases", self->m.leases);
	start_daemon(&self->m);
	ASSERT_EQ(true, self->m.ready);
	EXPECT_STREQ(made, self->m.status);
	ASSERT_LE(0, self->m.stored);
	for (round = 0; round < 3; round++) {
		EXPECT_EQ(1000 + SIGKILL, kill_daemon(&self->m));
		/* One more timer falls due while no daemon is running. */
		fd = fcntl(self->m.stored, F_DUPFD_CLOEXEC, 10);
		ASSERT_EQ(0, timerwheel_adopt(&wheel, fd, false));
		ASSERT_EQ(0, timerwheel_stats(wheel, &s));
		EXPECT_EQ(scale(), s.pending);
		EXPECT_EQ(round, s.delivered);
		ASSERT_EQ(TIMERWHEEL_WAS_NONE, add(wheel, 5000000 + round, 0, MSEC, 0));
		do {
			nap(MSEC);
			ASSERT_EQ(0, timerwheel_stats(wheel, &s));
		} while (s.pending + s.due > (unsigned int)scale());
		timerwheel_close(wheel);
		start_daemon(&self->m);
		ASSERT_EQ(true, self->m.ready);
		/* Its event is in the ring already, so the next reader gets it. */
		snprintf(found, sizeof(found), "found: %s leases", self->m.leases);
		EXPECT_STREQ(found, self->m.status);
		snprintf(ended, sizeof(ended), "lease %d ended", 5000000 + round);
		ASSERT_EQ(0, listen_once(&self->m));
		EXPECT_STREQ(ended, self->m.status);
	}
}

/* Without a service manager, its timers would be lost. */
TEST_F(manager, none)
{
	self->m.daemon = fork();
	if (!self->m.daemon) {
		unsetenv("NOTIFY_SOCKET");
		execl(EXAMPLE, "restart", "1", NULL);
		_exit(127);
	}
	EXPECT_EQ(1, reap(self->m.daemon));
	self->m.daemon = 0;
}

TEST_HARNESS_MAIN
