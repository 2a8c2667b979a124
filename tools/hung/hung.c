// SPDX-License-Identifier: GPL-2.0
/*
 * hung: a server that hangs, and clients whose connections still end on time.
 *
 * A server accepts connections, gives each a deadline in the kernel (ADD_SOCKET), and stops
 * forever, as if it were stuck in a loop. Half of its clients go idle. The kernel ends their
 * connections. The other clients continue to send data to the hung server and keep their
 * connections.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util.h"
#include "wheel.h"

#define IDLE		(3 * NSEC_PER_SEC)
#define GRACE		NSEC_PER_SEC
#define TALK_EVERY	(NSEC_PER_SEC / 2)
/* How long the clients are watched, and the longest time until all silent ones are reset */
#define END		(12 * NSEC_PER_SEC)
#define TIMEOUT		(120 * NSEC_PER_SEC)
/* Exit status: only a claim on time does not hold, see tools/pauses */
#define INCONCLUSIVE	75

static __u32 clients = 1000;

static void usage(void)
{
	printf("usage: hung [--clients N]\n\n"
	       "A server that hangs with N clients (1000), half of them silent: the kernel closes\n"
	       "those connections after %s, and %s of grace. Needs /dev/timerwheel.\n"
	       "The exit status is 0 if every claim holds. It is 75 if only those claims do not hold\n"
	       "that need a machine which lets this program run in time.\n",
	       duration(IDLE), duration(GRACE));
}

static void may_open(__u32 files)
{
	struct rlimit limit = { files, files };

	if (setrlimit(RLIMIT_NOFILE, &limit))
		die("%u open files are not allowed: %s", files, strerror(errno));
}

static void watch(int wheel, __u32 key, int sock)
{
	struct timerwheel_add_socket elem = {
		.key = key, .deadline = IDLE, .grace = GRACE, .fd = sock,
		.kind = TIMERWHEEL_SOCKET_IDLE, .flags = TIMERWHEEL_SOCKET_ABORT,
	};
	struct timerwheel_batch batch = {
		.size = sizeof(batch), .elems = (unsigned long)&elem, .count = 1,
		.elem_size = sizeof(elem),
	};

	if (ioctl(wheel, TIMERWHEEL_IOC_ADD_SOCKET, &batch) != 1)
		die("ADD_SOCKET: %s", strerror(errno));
	if (elem.result < 0)
		die("ADD_SOCKET: %s", strerror(-elem.result));
}

/* Accept all clients, and hang. */
static void serve(int listening)
{
	int wheel = wheel_open(), sock;
	__u32 i;

	for (i = 0; i < clients; i++) {
		sock = accept(listening, NULL, NULL);
		if (sock < 0)
			die("accept: %s", strerror(errno));
		watch(wheel, i, sock);
	}
	raise(SIGSTOP);
}

static int start_listening(struct sockaddr_in *addr)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(*addr);

	*addr = (struct sockaddr_in) {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	if (fd < 0 || bind(fd, (void *)addr, len) || listen(fd, 4096) ||
	    getsockname(fd, (void *)addr, &len))
		die("no socket to listen on: %s", strerror(errno));
	return fd;
}

/* Active clients have odd numbers. A send may fail after the server has ended. */
static void talk(const struct pollfd *client)
{
	__u32 i;

	for (i = 1; i < clients; i += 2)
		if (client[i].fd >= 0)
			send(client[i].fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool claim(bool holds, const char *otherwise, const char *text)
{
	printf("%s  a hung server: %s\n", holds ? "PASS" : otherwise, text);
	return holds;
}

/* Watch the clients until the end. Returns the exit status. */
static int look(struct pollfd *client, __u64 began)
{
	__u64 now = now_ns(), first = 0, last = 0, next = now, spoke = began, gap = 0;
	__u32 silent = 0, talkers = 0, other = 0, i;
	bool right, late;
	char c;

	for (; now < began + END || (silent < (clients + 1) / 2 && now < began + TIMEOUT);
	     now = now_ns()) {
		if (now >= next) {
			talk(client);
			next += TALK_EVERY;
			/* From before the previous words to after these. */
			if (now_ns() - spoke > gap)
				gap = now_ns() - spoke;
			spoke = now;
		}
		if (poll(client, clients, 20) <= 0)
			continue;
		now = now_ns();
		for (i = 0; i < clients; i++) {
			if (client[i].fd < 0 || !client[i].revents)
				continue;
			if (recv(client[i].fd, &c, 1, 0) >= 0 || errno != ECONNRESET)
				other++;
			client[i].fd = -1;
			talkers += i % 2;
			silent += !(i % 2);
			first = first ?: now - began;
			last = now - began;
		}
	}
	printf("  %u silent clients were freed, the first after %s, the last after %s;\n"
	       "  the server was stopped all the time. The others sent a word every %s;\n"
	       "  the longest time between two words was %s\n\n",
	       silent, duration(first), duration(last), duration(TALK_EVERY), duration(gap));
	right = claim(silent == (clients + 1) / 2 && !other, "FAIL",
		      "all silent clients were reset");
	right &= claim(silent && first >= IDLE + GRACE, "FAIL",
		       "none before its timeout and the grace");
	/* A client that could not talk in time was silent. */
	late = !claim(!talkers, gap >= IDLE ? "LATE" : "FAIL",
		      "none of those that went on talking");
	if (!right || (late && gap < IDLE))
		return EXIT_FAILURE;
	return late ? INCONCLUSIVE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "clients", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	struct sockaddr_in addr;
	struct pollfd *client;
	int listening, status, c;
	__u64 began, n;
	pid_t server;
	__u32 i;

	progname = "hung";
	signals_reset();
	while ((c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			if (!parse_count(optarg, &n) || n < 2 || n > 20000)
				die("--clients needs a number from 2 to 20000, not '%s'", optarg);
			clients = n;
			break;
		case 'h':
			usage();
			return EXIT_SUCCESS;
		default:
			die("try --help");
		}
	}
	may_open(clients + 64);
	listening = start_listening(&addr);
	fflush(stdout);
	server = fork();
	if (server < 0)
		die("fork: %s", strerror(errno));
	if (!server) {
		serve(listening);
		_exit(EXIT_FAILURE);
	}
	client = xcalloc(clients, sizeof(*client));
	/* No client has been idle before this time. */
	began = now_ns();
	for (i = 0; i < clients; i++) {
		client[i].fd = socket(AF_INET, SOCK_STREAM, 0);
		client[i].events = POLLIN;
		if (connect(client[i].fd, (void *)&addr, sizeof(addr)))
			die("connect: %s", strerror(errno));
	}
	if (waitpid(server, &status, WUNTRACED) != server || !WIFSTOPPED(status))
		die("the server ended");
	printf("%u clients are connected, and the server hangs. Half of them fall silent.\n",
	       clients);
	status = look(client, began);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	return status;
}
