// SPDX-License-Identifier: GPL-2.0
/*
 * start: run a command in a guest and report its exit status to the host.
 *
 *   start tty COMMAND...   input, output and errors are the terminal TERMINAL
 *   start raw COMMAND...   output goes to OUTPUT, errors to ERRORS, both
 *                          unchanged; input comes from INPUT if that exists
 *   start fail SENTENCE    run nothing; report to the host why the guest
 *                          cannot run the command
 *   start pack             (on the host) copy stdin to stdout for the virtio
 *                          port
 *
 * Serial lines and virtio ports have no end of file. So input is sent in blocks,
 * each preceded by its length (two bytes, little-endian); length 0 is the end.
 *
 * On x86 output uses serial lines and input a virtio port. The host listens on two
 * I/O ports: data written to REPORT_PORT is kept in a file, and a write to
 * EXIT_PORT ends the guest at once. A locked-down kernel does not permit access to
 * I/O ports: then reports go to the kernel's log, and a reboot ends the guest.
 *
 * On other architectures all are virtio ports, for which a write returns when the
 * host has received the data, and a reboot ends the guest.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <sys/io.h>
#endif
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define REPORT		"report to the host: "

#ifdef __x86_64__
#define REPORT_PORT	0xe9
#define EXIT_PORT	0x501
#define OUTPUT		"/dev/ttyS1"
#define ERRORS		"/dev/ttyS2"
#define INPUT		"/dev/vport0p1"
#define TERMINAL	OUTPUT
#else
#define REPORT_TO	"/dev/vport0p1"
#define OUTPUT		"/dev/vport0p2"
#define ERRORS		"/dev/vport0p3"
#define INPUT		"/dev/vport0p4"
#define TERMINAL	"/dev/hvc0"
#endif

#define PIECE		4096

#ifdef __x86_64__
static int have_ports(void)
{
	return !ioperm(REPORT_PORT, 1, 1) && !ioperm(EXIT_PORT, 1, 1);
}

static int report_to_host(const char *line)
{
	if (!have_ports())
		return -1;
	while (*line)
		outb(*line++, REPORT_PORT);
	return 0;
}

static void exit_at_once(void)
{
	if (have_ports())
		outb(0, EXIT_PORT);
}
#else
static int report_to_host(const char *line)
{
	int fd = open(REPORT_TO, O_WRONLY | O_CLOEXEC);
	ssize_t n = write(fd, line, strlen(line));

	close(fd);
	return n < 0 ? -1 : 0;
}

static void exit_at_once(void)
{
}
#endif

static void report(const char *line)
{
	char text[600];
	int fd;

	if (!report_to_host(line))
		return;
	fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	snprintf(text, sizeof(text), "<0>" REPORT "%s", line);
	if (write(fd, text, strlen(text)) < 0)
		perror("start: /dev/kmsg");
	close(fd);
}

static void end_guest(void)
{
	/* wait until all output has left the serial lines */
	tcdrain(1);
	tcdrain(2);
	exit_at_once();
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static void fail(const char *sentence, const char *detail)
{
	char line[512];

	snprintf(line, sizeof(line), "fail %s%s%s\n", sentence,
		 detail ? ": " : "", detail ? detail : "");
	report(line);
	end_guest();
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		size -= n;
	}
	return 0;
}

static int pack(void)
{
	char piece[2 + PIECE];
	ssize_t n;

	do {
		n = read(0, piece + 2, PIECE);
		if (n < 0)
			n = 0;
		piece[0] = n & 0xff;
		piece[1] = n >> 8;
		if (write_all(1, piece, 2 + n))
			return 1;
	} while (n);
	return 0;
}

/* A read returns 0 until the host's end is connected: try again. */
static void read_all(int fd, char *data, size_t size)
{
	while (size) {
		ssize_t n = read(fd, data, size);

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			_exit(1);
		if (n <= 0) {
			usleep(5000);
			continue;
		}
		data += n;
		size -= n;
	}
}

/* The other end of pack(): returns a pipe with the data from the host. */
static int unpack(void)
{
	unsigned char length[2];
	char piece[PIECE];
	int in, pipes[2];
	size_t n;

	in = open(INPUT, O_RDONLY | O_CLOEXEC);
	if (in < 0)
		return open("/dev/null", O_RDONLY);
	if (pipe(pipes))
		fail("pipe", strerror(errno));
	if (fork()) {
		close(in);
		close(pipes[1]);
		return pipes[0];
	}
	close(pipes[0]);
	do {
		read_all(in, (char *)length, 2);
		n = length[0] | length[1] << 8;
		if (n > PIECE)
			_exit(1);
		read_all(in, piece, n);
	} while (n && !write_all(pipes[1], piece, n));
	_exit(0);
}

static int open_line(const char *path, int raw)
{
	int fd = open(path, O_RDWR | (raw ? O_NOCTTY : 0));
	struct termios t;

	if (fd < 0)
		fail(path, strerror(errno));
	if (raw && !tcgetattr(fd, &t)) {
		cfmakeraw(&t);
		tcsetattr(fd, TCSANOW, &t);
	}
	return fd;
}

static void set_size(int fd)
{
	const char *rows = getenv("LINES"), *columns = getenv("COLUMNS");
	struct winsize w = { 0 };

	if (!rows || !columns)
		return;
	w.ws_row = atoi(rows);
	w.ws_col = atoi(columns);
	ioctl(fd, TIOCSWINSZ, &w);
	unsetenv("LINES");
	unsetenv("COLUMNS");
}

static void child(int raw, char **command)
{
	int in, out, err;

	setsid();
	out = open_line(raw ? OUTPUT : TERMINAL, raw);
	err = raw ? open_line(ERRORS, raw) : out;
	in = raw ? unpack() : out;
	if (!raw) {
		ioctl(out, TIOCSCTTY, 0);
		set_size(out);
	}
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		fail("dup2", strerror(errno));
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	report("up\n");
	execvp(command[0], command);
	fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

int main(int argc, char **argv)
{
	char line[32];
	int raw, status;
	pid_t pid;

	if (argc == 2 && !strcmp(argv[1], "pack"))
		return pack();
	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "fail"))
		fail(argv[2], NULL);
	raw = strcmp(argv[1], "tty");

	pid = fork();
	if (!pid)
		child(raw, argv + 2);
	if (pid < 0)
		fail("fork", strerror(errno));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	/* as in a shell: 128 + n if killed by signal n */
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

#ifdef __x86_64__
	/* end_guest() calls tcdrain() on these */
	dup2(open_line(OUTPUT, 1), 1);
	if (raw)
		dup2(open_line(ERRORS, 1), 2);
#endif
	snprintf(line, sizeof(line), "exit %d\n", status);
	report(line);
	end_guest();
	return 0;
}
