// SPDX-License-Identifier: GPL-2.0
/* See pipes.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "pipes.h"
#include "store.h"

/*
 * More empty ones than this are closed; not if the service manager keeps them, which has no way
 * to forget a single one.
 */
#define FREE_MAX	256
#define LEDGER_BYTES	(PIPES_MAX * sizeof(struct ledger))

static void ledger_open(struct pipes *pipes, int fd)
{
	bool new = fd < 0;

	if (new)
		fd = memfd_create("timerwheel-proxy", MFD_CLOEXEC);
	if (fd < 0 || (new && ftruncate(fd, LEDGER_BYTES)))
		log_die("no memory for the ledger of pipes: %s", strerror(errno));
	pipes->ledger_fd = fd;
	pipes->ledger = mmap(NULL, LEDGER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pipes->ledger == MAP_FAILED)
		log_die("cannot map the ledger of pipes: %s", strerror(errno));
	while (pipes->lines < PIPES_MAX && pipes->ledger[pipes->lines].inode)
		pipes->lines++;
	pipes->back = xcalloc(pipes->lines + 1, sizeof(*pipes->back));
}

void pipes_open(struct pipes *pipes, int ledger, struct counters *counters)
{
	pipes->ledger_fd = -1;
	if (store_active())
		ledger_open(pipes, ledger);
	pipes->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (pipes->null < 0)
		log_die("/dev/null: %s", strerror(errno));
	pipes->counters = counters;
}

/* The next line of the ledger, for a new pipe; which the service manager gets, too. */
static void pipe_register(struct pipes *pipes, struct pipe *pipe)
{
	struct stat stat;

	/* Cannot fail on a descriptor that was just made. */
	fstat(pipe->out, &stat);
	pipe->ledger = &pipes->ledger[pipes->lines++];
	pipe->ledger->inode = stat.st_ino;
	if (store_pipe(pipe))
		LIST_INSERT_HEAD(&pipes->unstored, pipe, store);
}

static struct pipe *pipe_new(struct pipes *pipes)
{
	struct pipe *pipe;
	int end[2];

	if (pipes->ledger && pipes->lines == PIPES_MAX) {
		errno = ENFILE;
		return NULL;
	}
	if (pipe2(end, O_NONBLOCK | O_CLOEXEC))
		return NULL;
	pipe = xcalloc(1, sizeof(*pipe));
	pipe->in = end[1];
	pipe->out = end[0];
	if (pipes->ledger)
		pipe_register(pipes, pipe);
	counter_add(&pipes->counters->pipes, 1);
	return pipe;
}

static void pipe_free(struct pipes *pipes, struct pipe *pipe)
{
	close(pipe->in);
	close(pipe->out);
	free(pipe);
	counter_add(&pipes->counters->pipes, -1);
}

struct pipe *pipes_get(struct pipes *pipes, uint64_t owner)
{
	struct pipe *pipe = pipes->free;

	if (pipe) {
		pipes->free = pipe->next;
		pipes->nr_free--;
	} else {
		pipe = pipe_new(pipes);
		if (!pipe)
			return NULL;
	}
	/* Before the bytes come: who finds them after a kill knows whose they are. */
	if (pipe->ledger)
		atomic_store_explicit(&pipe->ledger->owner, owner, memory_order_release);
	counter_add(&pipes->counters->pipes_used, 1);
	return pipe;
}

void pipes_put(struct pipes *pipes, struct pipe *pipe)
{
	ssize_t gone;

	while (pipe->held) {
		gone = splice(pipe->out, NULL, pipes->null, NULL, pipe->held, SPLICE_F_NONBLOCK);
		if (gone <= 0)
			log_die("cannot empty a pipe: %s", strerror(errno));
		pipe->held -= gone;
	}
	counter_add(&pipes->counters->pipes_used, -1);
	if (pipe->ledger) {
		atomic_store_explicit(&pipe->ledger->owner, 0, memory_order_release);
	} else if (pipes->nr_free == FREE_MAX) {
		pipe_free(pipes, pipe);
		return;
	}
	pipe->next = pipes->free;
	pipes->free = pipe;
	pipes->nr_free++;
}

struct pipe *pipes_restore(struct pipes *pipes, int in, int out, uint64_t inode)
{
	struct pipe *pipe;
	unsigned int i = 0;
	int held = 0;

	while (i < pipes->lines && pipes->ledger[i].inode != inode)
		i++;
	if (i == pipes->lines)
		return NULL;
	pipes->back[i] = true;
	ioctl(out, FIONREAD, &held);
	pipe = xcalloc(1, sizeof(*pipe));
	pipe->in = in;
	pipe->out = out;
	pipe->held = held;
	pipe->ledger = &pipes->ledger[i];
	counter_add(&pipes->counters->pipes, 1);
	counter_add(&pipes->counters->pipes_used, 1);
	return pipe;
}

uint64_t pipes_lost(struct pipes *pipes, unsigned int *line)
{
	uint64_t owner = 0;
	unsigned int i;

	while (!owner && *line < pipes->lines) {
		i = (*line)++;
		if (!pipes->back[i])
			owner = atomic_load(&pipes->ledger[i].owner);
	}
	return owner;
}
