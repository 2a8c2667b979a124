// SPDX-License-Identifier: GPL-2.0
/* See pump.h. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pump.h"

#define HOW	(SPLICE_F_MOVE | SPLICE_F_NONBLOCK)

static bool only_later(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/*
 * splice(2) stops before an urgent byte (MSG_OOB) for good, while epoll says that there is
 * something to read. So that one is copied; with SO_OOBINLINE it is a byte like others.
 */
static ssize_t fill_urgent(const struct side *from, const struct pipe *pipe)
{
	ssize_t got;
	char byte;

	if (sockatmark(from->fd) != 1) {
		errno = EAGAIN;
		return -1;
	}
	got = recv(from->fd, &byte, 1, MSG_DONTWAIT);
	return got > 0 ? write(pipe->in, &byte, 1) : got;
}

/* From the socket into an empty pipe, which holds nothing else: EAGAIN is the socket's. */
static enum pumped fill(struct side *from)
{
	struct conn *conn = from->conn;
	struct pipes *pipes = &conn->loop->pipes;
	struct pipe *pipe = pipes_get(pipes, pipes_owner(conn->id, from - conn->side));
	ssize_t got;
	bool later;

	if (!pipe)
		return PUMP_NO_PIPE;
	got = splice(from->fd, NULL, pipe->in, NULL, PIPE_BYTES, HOW);
	if (got < 0 && errno == EAGAIN)
		got = fill_urgent(from, pipe);
	if (got > 0) {
		pipe->held = got;
		from->pipe = pipe;
		return PUMP_OK;
	}
	later = got < 0 && only_later();
	pipes_put(pipes, pipe);
	from->eof = !got;
	return from->eof || later ? PUMP_OK : PUMP_BROKEN;
}

static enum pumped drain(struct side *from, struct side *to, uint64_t *moved)
{
	struct pipe *pipe = from->pipe;
	ssize_t gone = splice(pipe->out, NULL, to->fd, NULL, pipe->held, HOW);

	if (gone < 0)
		return only_later() ? PUMP_OK : PUMP_BROKEN;
	*moved = gone;
	pipe->held -= gone;
	if (!pipe->held) {
		from->pipe = NULL;
		pipes_put(&from->conn->loop->pipes, pipe);
	}
	return PUMP_OK;
}

enum pumped pump(struct side *from, struct side *to, uint64_t *moved)
{
	enum pumped result = PUMP_OK;

	*moved = 0;
	if (!from->pipe && !from->eof)
		result = fill(from);
	if (from->pipe)
		result = drain(from, to, moved);
	if (from->eof && !from->pipe && !to->shut) {
		/* It may be gone already; then its own events say so. */
		shutdown(to->fd, SHUT_WR);
		to->shut = true;
	}
	return result;
}
