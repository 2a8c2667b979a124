// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * usage: echod SOCKET [MILLISECONDS [ring]]
 *
 * An echo server on a Unix socket, with io_uring, that closes connections which are idle for
 * MILLISECONDS (2000). A queue gathers operations on its timers. They become commands in the
 * submission that the server makes for its requests: one system call for each iteration of the
 * loop. If the wheel has no commands, the server flushes the queue by calls. Try it with
 *
 *	echod /tmp/echo & nc -U /tmp/echo
 *
 * The loop differs from the loop of libtimerwheel(3) in one point: it flushes the queue with each
 * submission instead of before each take. The server can therefore get the event of a timer that
 * it has armed again. It ignores the event, because the event has an earlier deadline.
 */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <timerwheel.h>

#define CONNS	1024		/* descriptors */
#define ROOM	64		/* events taken at a time */
#define PAUSE	100000000ULL	/* ns, after an accept that failed */

/*
 * The kind of a request: bits 32 and up of user_data. The lower bits are a descriptor or an index.
 */
enum request { ACCEPT, RECEIVE, SEND, EVENTS, TIMERS };

struct conn {
	uint64_t key;		/* key of its timer, never used twice; 0: no connection */
	uint64_t deadline;
	int size;		/* size of the text */
	char text[4096];
};

static struct conn conns[CONNS];	/* by descriptor, which is also the value of the timer */
static struct timerwheel *wheel;
static struct timerwheel_queue *queue;
static struct io_uring ring;
static uint64_t idle = 2000000000, last_key;
static int listener;
static bool wheel_ready;		/* The descriptor of the wheel is readable. */

/* Completions that arrived during the wait for a result of TIMERS; at most one per connection. */
static struct io_uring_cqe kept[2 * CONNS];
static unsigned int kept_first, kept_end;

static void check(const char *what, int result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-result));
	exit(1);
}

static void check_wheel(const char *what, long result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, timerwheel_strerror(result));
	exit(1);
}

static struct io_uring_sqe *new_sqe(void)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (sqe)
		return sqe;
	check("io_uring_submit", io_uring_submit(&ring));
	return io_uring_get_sqe(&ring);
}

static void tag(struct io_uring_sqe *sqe, enum request request, unsigned int number)
{
	io_uring_sqe_set_data64(sqe, (uint64_t)request << 32 | number);
}

static bool next_completion(struct io_uring_cqe *completion)
{
	struct io_uring_cqe *cqe;

	if (kept_first != kept_end) {
		*completion = kept[kept_first++ % (2 * CONNS)];
		return true;
	}
	if (io_uring_peek_cqe(&ring, &cqe))
		return false;
	*completion = *cqe;
	io_uring_cqe_seen(&ring, cqe);
	return true;
}

static void command_done(const struct io_uring_cqe *cqe)
{
	unsigned int command = (uint32_t)cqe->user_data;

	check_wheel("timers", timerwheel_queue_completed(queue, command, cqe->res));
}

/*
 * Was an operation not queued, because it needs a flush first, but a worker still has the last
 * commands? Then wait for one of their results, and return true: the caller tries again.
 */
static bool busy(const char *what, int result)
{
	struct io_uring_cqe *cqe;
	int err;

	if (result != -EBUSY) {
		check_wheel(what, result);
		return false;
	}
	/* This also submits: after EINTR, some requests may not have been submitted. */
	err = io_uring_submit_and_wait(&ring, 1);
	if (err != -EINTR)
		check("io_uring_submit_and_wait", err);
	while (!io_uring_peek_cqe(&ring, &cqe)) {
		if (cqe->user_data >> 32 == TIMERS)
			command_done(cqe);
		else
			kept[kept_end++ % (2 * CONNS)] = *cqe;
		io_uring_cqe_seen(&ring, cqe);
	}
	return true;
}

static void start_accept(void)
{
	struct io_uring_sqe *sqe = new_sqe();

	io_uring_prep_accept(sqe, listener, NULL, NULL, SOCK_CLOEXEC);
	tag(sqe, ACCEPT, 0);
}

/* A timer that has just fired cannot be moved or removed: its event will arrive. */
static void failed(void *arg, unsigned long op, const void *elem)
{
	const struct timerwheel_add *add = elem;

	(void)arg;
	if (op != TIMERWHEEL_IOC_ADD)
		return;
	if (!add->key) {
		start_accept();		/* without a pause */
		return;
	}
	fprintf(stderr, "a connection without a timer: %s\n", timerwheel_strerror(add->result));
}

static void start_receive(int fd)
{
	struct io_uring_sqe *sqe = new_sqe();

	io_uring_prep_recv(sqe, fd, conns[fd].text, sizeof(conns[fd].text), 0);
	tag(sqe, RECEIVE, fd);
}

static void start_events(void)
{
	struct io_uring_sqe *sqe = new_sqe();

	io_uring_prep_poll_add(sqe, timerwheel_fd(wheel), POLLIN);
	tag(sqe, EVENTS, 0);
}

static void conn_arm(int fd)
{
	struct timerwheel_add add = {
		.key = conns[fd].key,
		.value = fd,
		.deadline = conns[fd].deadline,
		.flags = TIMERWHEEL_ABS,
	};

	while (busy("add", timerwheel_queue_add(queue, &add)))
		;
}

/* Accept again after a while, for example if too many files are open. No connection has key 0. */
static void pause_accept(void)
{
	struct timerwheel_add add = { .deadline = PAUSE };

	while (busy("add", timerwheel_queue_add(queue, &add)))
		;
}

static void conn_open(int fd)
{
	if (fd < 0) {
		pause_accept();
		return;
	}
	start_accept();
	if (fd >= CONNS) {
		close(fd);
		return;
	}
	conns[fd].key = ++last_key;
	conns[fd].deadline = timerwheel_now(wheel) + idle;
	conn_arm(fd);
	start_receive(fd);
}

static void conn_close(int fd)
{
	struct timerwheel_remove timer = { .key = conns[fd].key };

	while (busy("remove", timerwheel_queue_remove(queue, &timer)))
		;
	conns[fd].key = 0;
	close(fd);
}

/* Echo received data and postpone the timeout, both with the next submission. */
static void conn_received(int fd, int n)
{
	struct conn *conn = &conns[fd];
	struct io_uring_sqe *sqe;

	if (n <= 0) {
		conn_close(fd);
		return;
	}
	conn->size = n;
	conn->deadline = timerwheel_now(wheel) + idle;
	conn_arm(fd);
	sqe = new_sqe();
	io_uring_prep_send(sqe, fd, conn->text, n, MSG_NOSIGNAL | MSG_WAITALL);
	tag(sqe, SEND, fd);
}

static void conn_sent(int fd, int n)
{
	if (n == conns[fd].size)
		start_receive(fd);
	else
		conn_close(fd);
}

/* Put the queued operations in the next submission. */
static void submit_timers(void)
{
	struct timerwheel_command commands[TIMERWHEEL_COMMANDS];
	struct io_uring_sqe *sqe;
	int n, i;

	/* A submission in between must not break the chain. */
	if (io_uring_sq_space_left(&ring) < TIMERWHEEL_COMMANDS)
		check("io_uring_submit", io_uring_submit(&ring));
	n = timerwheel_queue_commands(queue, commands);
	if (n == -EOPNOTSUPP)
		check_wheel("timers", timerwheel_queue_flush(queue));
	else if (n != -EBUSY)
		check_wheel("timers", n);
	/* -EBUSY: a worker still has the last commands; the queued operations wait. */
	for (i = 0; i < n; i++) {
		sqe = new_sqe();
		io_uring_prep_rw(IORING_OP_URING_CMD, sqe, commands[i].fd, NULL, 0,
				 commands[i].op);
		memcpy(&sqe->cmd, commands[i].bytes, sizeof(commands[i].bytes));
		tag(sqe, TIMERS, i);
		if (i < n - 1)
			sqe->flags |= IOSQE_IO_LINK;
	}
}

static void complete(const struct io_uring_cqe *cqe)
{
	unsigned int number = (uint32_t)cqe->user_data;

	switch ((enum request)(cqe->user_data >> 32)) {
	case ACCEPT:
		conn_open(cqe->res);
		break;
	case RECEIVE:
		conn_received(number, cqe->res);
		break;
	case SEND:
		conn_sent(number, cqe->res);
		break;
	case EVENTS:
		wheel_ready = true;
		break;
	case TIMERS:
		command_done(cqe);
		break;
	}
}

static void complete_all(void)
{
	struct io_uring_cqe cqe;

	while (next_completion(&cqe))
		complete(&cqe);
}

static void conn_expired(const struct timerwheel_event *event)
{
	int fd = event->value;
	struct conn *conn = &conns[fd];

	if (!event->key) {
		start_accept();
		return;
	}
	/* Receive once more, because data may have arrived while the server did not run. */
	complete_all();
	check("io_uring_submit", io_uring_submit(&ring));
	complete_all();
	/*
	 * Ignore the event if the connection was closed, even if another connection has its
	 * descriptor, and if the event belongs to an earlier arming.
	 */
	if (conn->key == event->key && event->deadline >= conn->deadline)
		/* This ends the waiting request, which closes the connection. */
		shutdown(fd, SHUT_RDWR);
}

/* Take events until there are none. Only then the descriptor becomes readable again. */
static void expire(void)
{
	struct timerwheel_event events[ROOM];
	long n, i;

	do {
		n = timerwheel_take(wheel, events, ROOM);
		check_wheel("events", n);
		for (i = 0; i < n; i++)
			conn_expired(&events[i]);
	} while (n > 0);
	wheel_ready = false;
	start_events();
}

static void start(int argc, char **argv)
{
	struct timerwheel_config config = { .capacity = CONNS };
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	if (argc < 2 || strlen(argv[1]) >= sizeof(name.sun_path)) {
		fprintf(stderr, "usage: echod SOCKET [MILLISECONDS [ring]]\n");
		exit(2);
	}
	strcpy(name.sun_path, argv[1]);
	if (argc > 2)
		idle = strtoull(argv[2], NULL, 0) * 1000000;
	if (argc > 3)
		config.ring = ROOM;
	check("io_uring", io_uring_queue_init(4 * CONNS, &ring, 0));
	check_wheel("wheel", timerwheel_open(&wheel, &config));
	check_wheel("queue", timerwheel_queue_new(&queue, wheel, 16 * CONNS, failed, NULL));
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(argv[1], bind(listener, (struct sockaddr *)&name, sizeof(name)) ? -errno : 0);
	check(argv[1], listen(listener, 128) ? -errno : 0);
	start_accept();
	expire();
}

int main(int argc, char **argv)
{
	int err;

	start(argc, argv);
	for (;;) {
		submit_timers();
		err = io_uring_submit_and_wait(&ring, kept_first == kept_end);
		/* EINTR: the server was stopped and continues. */
		if (err != -EINTR)
			check("io_uring_submit_and_wait", err);
		complete_all();
		if (wheel_ready)
			expire();
	}
}
