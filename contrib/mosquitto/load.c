// SPDX-License-Identifier: GPL-2.0
/*
 * usage: load sessions PORT COUNT CYCLES PID
 *        load idle PORT COUNT SECONDS KEEPALIVE PID
 *
 * Load for an MQTT broker on this machine, and the CPU time that process PID, the broker, took.
 *
 * sessions: COUNT clients connect and disconnect once, and their sessions are kept for a day. Then
 *	CYCLES times one of them comes back and disconnects again. Prints the microseconds of broker
 *	CPU of such a cycle. In the first part each session ends before those that are there, so
 *	that the lists of a broker without the patch need no walk yet.
 * idle: COUNT clients stay connected and ping in time, each KEEPALIVE s, for SECONDS s. Prints the
 *	milliseconds of broker CPU for each second.
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int port, keepalive;

/* The CPU time of a process in ns: /proc/PID/schedstat of its only thread */
static double cpu_time(const char *pid)
{
	unsigned long long ns;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/schedstat", pid);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%llu", &ns) != 1)
		err(1, "%s", path);
	fclose(file);
	return ns;
}

static void expect(int fd, char *buf, size_t size, int type)
{
	size_t have = 0;
	ssize_t n;

	/* all answers are shorter than 128 bytes */
	while (have < 2 || have < 2 + (size_t)buf[1]) {
		n = read(fd, buf + have, size - have);
		if (n <= 0)
			err(1, "no answer");
		have += n;
	}
	if ((buf[0] & 0xf0) != type)
		errx(1, "answer %02x, expected %02x", buf[0], type);
}

/* Connect client @id, to one of 64 addresses, as each has 28,000 ports. */
static int join(unsigned int id, uint32_t expiry)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	char packet[64] = { 0x10, 0, 0, 4, 'M', 'Q', 'T', 'T', 5, 0, keepalive >> 8, keepalive,
			    5, 0x11, expiry >> 24, expiry >> 16, expiry >> 8, expiry, 0, 10 };
	const struct linger reset = { 1, 0 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK + id / 10000 % 64);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		err(1, "connection of client %u", id);
	/* no port stays behind */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	snprintf(packet + 20, 11, "c%09u", id);
	packet[1] = 28;
	if (write(fd, packet, 30) != 30)
		err(1, "CONNECT");
	expect(fd, packet, sizeof(packet), 0x20);
	if (packet[3])
		errx(1, "the broker refuses client %u: %02x", id, packet[3] & 0xff);
	return fd;
}

static void come_and_go(unsigned int id, uint32_t expiry)
{
	static const char disconnect[] = { (char)0xe0, 0 };
	int fd = join(id, expiry);
	char end;

	if (write(fd, disconnect, 2) != 2)
		err(1, "DISCONNECT");
	/* the broker closes the connection when it is done */
	if (read(fd, &end, 1) > 0)
		errx(1, "unexpected data");
	close(fd);
}

static void sessions(unsigned int count, unsigned int cycles, const char *pid)
{
	unsigned int i;
	double begin;

	for (i = 0; i < count; i++)
		come_and_go(i, 86400 + count - i);
	begin = cpu_time(pid);
	for (i = 0; i < cycles; i++)
		come_and_go(i % count, 86400 + count);
	printf("%.1f\n", (cpu_time(pid) - begin) / cycles / 1000);
}

static unsigned long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void idle(unsigned int count, unsigned int seconds, const char *pid)
{
	static const char ping[] = { (char)0xc0, 0 };
	int *fd = calloc(count, sizeof(*fd));
	unsigned long long begin, next;
	unsigned int i, id;
	char answer[64];
	double cpu;

	if (!fd)
		err(1, "memory");
	for (i = 0; i < count; i++)
		fd[i] = join(i, 0);
	cpu = cpu_time(pid);
	begin = now_ns();
	for (i = 0;; i++) {
		next = begin + i * (keepalive * 1000000000ULL / count);
		if (next >= begin + seconds * 1000000000ULL)
			break;
		while (now_ns() < next)
			usleep(1000);
		id = i % count;
		if (write(fd[id], ping, 2) != 2)
			err(1, "PINGREQ");
		expect(fd[id], answer, sizeof(answer), 0xd0);
	}
	printf("%.2f\n", (cpu_time(pid) - cpu) / seconds / 1000000);
}

int main(int argc, char **argv)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (argc < 6)
		errx(2, "see the first comment in load.c");
	port = atoi(argv[2]);
	keepalive = 60;
	if (!strcmp(argv[1], "sessions"))
		sessions(atoi(argv[3]), atoi(argv[4]), argv[5]);
	if (!strcmp(argv[1], "idle") && argc > 6) {
		keepalive = atoi(argv[5]);
		idle(atoi(argv[3]), atoi(argv[4]), argv[6]);
	}
	return 0;
}
