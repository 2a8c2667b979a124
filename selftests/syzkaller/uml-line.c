// SPDX-License-Identifier: GPL-2.0
/*
 * usage: uml-line COMMAND [ARGUMENT]...
 *
 * Run a command in a guest of uml.go; its standard input is a socket to the host. The guest
 * receives data on the first serial line, and sends the length of each piece back on the second
 * one. User-mode Linux stops receiving forever when more than 3,968 bytes wait to be read, so the
 * host sends the next piece only after the previous one was read. Data from the guest needs no such
 * protocol.
 */
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define PIECE 2048 /* as in uml.go */

static void write_all(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size > 0) {
		ssize_t n = write(fd, p, size);

		if (n < 0)
			err(1, "write");
		p += n;
		size -= n;
	}
}

static int open_line(const char *name)
{
	struct termios settings;
	int fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || tcgetattr(fd, &settings) < 0)
		err(1, "%s", name);
	cfmakeraw(&settings);
	if (tcsetattr(fd, TCSANOW, &settings) < 0)
		err(1, "%s", name);
	return fd;
}

static void receive(int line, int lengths, int to)
{
	char data[PIECE];
	ssize_t n;

	while ((n = read(line, data, sizeof(data))) > 0) {
		const unsigned char length[2] = { n & 255, n >> 8 };

		write_all(to, data, n);
		write_all(lengths, length, sizeof(length));
	}
	shutdown(to, SHUT_WR); /* the host has gone, which the command must notice */
	_exit(0);
}

static void send_all(int from, int line)
{
	char data[16 * PIECE];
	ssize_t n;

	while ((n = read(from, data, sizeof(data))) > 0)
		write_all(line, data, n);
}

static pid_t start(void)
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	return pid;
}

int main(int argc, char *argv[])
{
	const unsigned char ready[2] = { 0, 0 };
	int line, lengths, ends[2];
	pid_t receiver;

	if (argc < 2)
		errx(1, "usage: uml-line COMMAND [ARGUMENT]...");
	line = open_line("/dev/ttyS0");
	lengths = open_line("/dev/ttyS1");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		err(1, "socketpair");
	if (start() == 0) {
		if (dup2(ends[1], STDIN_FILENO) < 0)
			err(1, "dup2");
		execvp(argv[1], argv + 1);
		err(1, "%s", argv[1]);
	}
	close(ends[1]);
	receiver = start();
	if (receiver == 0)
		receive(line, lengths, ends[0]);
	write_all(lengths, ready, sizeof(ready));
	send_all(ends[0], line); /* until the command has ended */
	kill(receiver, SIGKILL);
	while (wait(NULL) > 0)
		;
	return 0;
}
