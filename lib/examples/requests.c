// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * usage: requests [ring]
 *
 * A client with many connections, which repeatedly sends a request on each. It arms a timeout for
 * each request and cancels it when the answer arrives, both in memory. The server, here a child
 * process, drops one request in 50. When a timeout fires, the client sends the request again with
 * twice the timeout. After the third timeout, it gives the request up. The loop is the loop of
 * libtimerwheel(3), so an answer that has arrived is never treated as a timeout.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <timerwheel.h>

#define CONNS		100
#define REQUESTS	50		/* per connection */
#define TRIES		3
#define TIMEOUT		20000000ULL	/* for the first try, in ns */
#define ROOM		64

struct request {
	uint32_t conn;
	uint32_t number;
};

struct conn {
	uint32_t number;		/* number of its request */
	int tries;
	uint64_t deadline;		/* deadline of its timeout; TIMERWHEEL_TIME_MAX: none */
	uint32_t index;			/* its timer, whose key is the index of the connection */
	uint32_t generation;
};

static struct conn conns[CONNS];
static struct timerwheel *wheel;
static struct timerwheel_queue *queue;
static long answered, late, again, lost, moved, open_conns = CONNS;
static int sock;

static void check(const char *what, long result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, timerwheel_strerror(result));
	exit(1);
}

static void failed(void *arg, unsigned long op, const void *elem)
{
	const struct timerwheel_move *move = elem;

	(void)arg;
	(void)op;	/* only timerwheel_queue_arm() queues operations here */
	check("no timeout", move->result);
}

static void send_request(uint32_t i)
{
	struct conn *conn = &conns[i];
	struct request request = { .conn = i, .number = conn->number };
	int answer;

	conn->deadline = timerwheel_now(wheel) + (TIMEOUT << conn->tries++);
	answer = timerwheel_queue_arm(queue, i, conn->index, conn->generation, conn->deadline);
	check("arm", answer);
	moved += answer == TIMERWHEEL_NEEDS_CALL;
	if (send(sock, &request, sizeof(request), 0) != sizeof(request)) {
		perror("send");
		exit(1);
	}
}

static void next_request(uint32_t i)
{
	conns[i].tries = 0;
	conns[i].deadline = TIMERWHEEL_TIME_MAX;
	if (++conns[i].number <= REQUESTS)
		send_request(i);
	else
		open_conns--;
}

static void answer_arrived(const struct request *answer)
{
	struct conn *conn = &conns[answer->conn];
	int was;

	/* This answers an earlier request, which was given up. */
	if (conn->number != answer->number)
		return;
	was = timerwheel_queue_cancel(queue, answer->conn, conn->index, conn->generation);
	check("cancel", was);
	/* The timeout may have fired before. Its event then has an earlier deadline. */
	late += was != TIMERWHEEL_DONE;
	answered++;
	next_request(answer->conn);
}

static void receive(void)
{
	struct request answer;

	while (recv(sock, &answer, sizeof(answer), MSG_DONTWAIT) == sizeof(answer))
		answer_arrived(&answer);
}

static void timed_out(const struct timerwheel_event *event)
{
	struct conn *conn = &conns[event->key];

	/* The answer may have arrived while this program did not run. */
	receive();
	/* This event belongs to an earlier arming. */
	if (event->deadline < conn->deadline)
		return;
	if (conn->tries < TRIES) {
		again++;
		send_request(event->key);
	} else {
		lost++;
		next_request(event->key);
	}
}

static void start(uint32_t ring)
{
	struct timerwheel_config config = { .capacity = CONNS, .ring = ring, .resident = true };
	struct timerwheel_add add;
	uint32_t i;

	check("open", timerwheel_open(&wheel, &config));
	check("queue", timerwheel_queue_new(&queue, wheel, 0, failed, NULL));
	for (i = 0; i < CONNS; i++) {
		add = (struct timerwheel_add){ .key = i, .deadline = TIMEOUT };
		check("add", timerwheel_add(wheel, &add, 1));
		check("add", add.result);
		conns[i].index = add.index;
		conns[i].generation = add.generation;
		next_request(i);
	}
}

static void server(int fd)
{
	struct request request;
	unsigned int n = 0;

	while (recv(fd, &request, sizeof(request), 0) == sizeof(request))
		if (++n % 50)
			send(fd, &request, sizeof(request), MSG_NOSIGNAL);
	_exit(0);
}

static void expire(void)
{
	struct timerwheel_event events[ROOM];
	long n, i;

	do {
		check("flush", timerwheel_queue_flush(queue));
		n = timerwheel_take(wheel, events, ROOM);
		check("take", n);
		for (i = 0; i < n; i++)
			timed_out(&events[i]);
	} while (n > 0);
}

int main(int argc, char **argv)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fds[2], epoll = epoll_create1(EPOLL_CLOEXEC);
	pid_t pid;

	if (argc > 2 || (argc == 2 && strcmp(argv[1], "ring"))) {
		fprintf(stderr, "usage: requests [ring]\n");
		return 2;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds)) {
		perror("socketpair");
		return 1;
	}
	pid = fork();
	if (pid < 0) {
		perror("fork");
		return 1;
	}
	if (!pid) {
		close(fds[0]);
		server(fds[1]);
	}
	close(fds[1]);
	sock = fds[0];
	start(argc == 2 ? ROOM : 0);
	epoll_ctl(epoll, EPOLL_CTL_ADD, sock, &event);
	epoll_ctl(epoll, EPOLL_CTL_ADD, timerwheel_fd(wheel), &event);
	while (open_conns) {
		receive();
		expire();
		if (open_conns)
			epoll_wait(epoll, &event, 1, -1);
	}
	printf("%ld answered, %ld of them after a timeout had fired, %ld sent again, %ld lost\n",
	       answered, late, again, lost);
	printf("%ld timeouts were armed by a call\n", moved);
	timerwheel_queue_free(queue);
	timerwheel_close(wheel);
	return answered + lost == CONNS * REQUESTS ? 0 : 1;
}
