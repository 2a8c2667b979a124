// SPDX-License-Identifier: GPL-2.0
/*
 * Input, line by line. All lines that have arrived are processed before waiting for more. Therefore
 * the timer of a program that writes a single line is armed immediately, and a million lines are
 * processed in large batches.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* The maximum length of a line, and the size of a read. */
#define SIZE	65536

static char buffer[SIZE + 1];

/* Pass on the complete lines, and move the rest to the front. */
static size_t hand_out(const struct line_source *source, size_t used, unsigned int *number)
{
	char *start = buffer, *end;

	while ((end = memchr(start, '\n', used - (start - buffer)))) {
		*end = '\0';
		source->line(start, ++*number);
		start = end + 1;
	}
	used -= start - buffer;
	memmove(buffer, start, used);
	return used;
}

void lines_read(const struct line_source *source)
{
	bool standard = !strcmp(source->name, "-");
	int fd = standard ? STDIN_FILENO : open(source->name, O_RDONLY | O_CLOEXEC);
	unsigned int number = 0;
	size_t used = 0;
	ssize_t n;

	if (fd < 0)
		die("cannot open %s: %s", source->name, strerror(errno));
	if (!standard && source->opened)
		source->opened(fd);
	for (;;) {
		n = read(fd, buffer + used, SIZE - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("cannot read %s: %s", source->name, strerror(errno));
		if (!n)
			break;
		used = hand_out(source, used + n, &number);
		if (used == SIZE)
			die("%s: line %u is longer than %d bytes", source->name, number + 1,
			    SIZE);
		source->pause();
	}
	if (used) {
		/* The last line need not have a newline. */
		buffer[used] = '\0';
		source->line(buffer, number + 1);
		source->pause();
	}
	if (!standard)
		close(fd);
}
