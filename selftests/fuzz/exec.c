// SPDX-License-Identifier: GPL-2.0
/* Makes the calls. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fuzz.h"

#define IOVECS	5

int dev_open(int flags)
{
	int fd = open("/dev/timerwheel", O_RDWR | O_CLOEXEC | flags);

	return fd < 0 ? -errno : fd;
}

int exec_ioctl(struct worker *w, int fd, unsigned long cmd, void *arg)
{
	int ret;

	cover_begin(&w->cover);
	ret = ioctl(fd, cmd, arg);
	if (ret < 0)
		ret = ret == -1 ? -errno : -1000;
	w->fresh |= cover_end(&w->cover);
	return ret;
}

/* --- io_uring ---------------------------------------------------------------- */

void ring_open(struct worker *w)
{
	w->ring = malloc(sizeof(*w->ring));
	/* Not every kernel has io_uring, or allows it. */
	if (w->ring && io_uring_queue_init(4, w->ring, 0)) {
		free(w->ring);
		w->ring = NULL;
	}
}

void ring_close(struct worker *w)
{
	if (!w->ring)
		return;
	io_uring_queue_exit(w->ring);
	free(w->ring);
}

static ssize_t ring_read(struct io_uring *ring, int fd, char *p, size_t len)
{
	struct __kernel_timespec soon = { .tv_nsec = 1000000 };
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	bool done = false, cancelled = true;
	ssize_t ret = -EIO;
	int err;

	sqe = io_uring_get_sqe(ring);
	io_uring_prep_read(sqe, fd, p, len, 0);
	io_uring_sqe_set_data64(sqe, 1);
	if (io_uring_submit(ring) != 1)
		return -EIO;
	err = io_uring_wait_cqe_timeout(ring, &cqe, &soon);
	/* The descriptor blocks: cancel the request and wait for both completions. */
	while (!done || !cancelled) {
		if (err && cancelled) {
			sqe = io_uring_get_sqe(ring);
			io_uring_prep_cancel64(sqe, 1, 0);
			io_uring_sqe_set_data64(sqe, 2);
			while (io_uring_submit(ring) == -EINTR)
				;
			cancelled = false;
		} else if (!err) {
			if (io_uring_cqe_get_data64(cqe) == 1) {
				ret = cqe->res;
				done = true;
			} else if (io_uring_cqe_get_data64(cqe) == 2) {
				cancelled = true;
			}
			io_uring_cqe_seen(ring, cqe);
			if (done && cancelled)
				break;
		}
		do
			err = io_uring_wait_cqe(ring, &cqe);
		while (err == -EINTR);
	}
	return ret == -ECANCELED ? -EAGAIN : ret;
}

/* --- read -------------------------------------------------------------------- */

static int split(struct iovec *iov, char *p, size_t len, __u64 *r)
{
	int n = 1 + rnd_to(r, IOVECS), i;
	size_t part;

	for (i = 0; i < n; i++) {
		part = i == n - 1 ? len : rnd_to(r, len + 1);
		iov[i] = (struct iovec){ .iov_base = p, .iov_len = part };
		p += part;
		len -= part;
	}
	return n;
}

/* The data of args_read(). */
ssize_t exec_read(struct worker *w, const struct call *call, int fd)
{
	struct io *io = &w->io;
	__u64 state = call->seed + 1;
	struct iovec iov[IOVECS];
	ssize_t ret;
	int n;

	n = split(iov, io->elems_at.p, io->elems_len, &state);
	cover_begin(&w->cover);
	if (call->op == OP_URING && w->ring) {
		ret = ring_read(w->ring, fd, io->elems_at.p, io->elems_len);
	} else {
		if (call->op == OP_READV)
			ret = preadv2(fd, iov, n, -1, call->seed % 4 ? 0 : RWF_NOWAIT);
		else
			ret = read(fd, io->elems_at.p, io->elems_len);
		if (ret < 0)
			ret = -errno;
	}
	w->fresh |= cover_end(&w->cover);
	return ret;
}

/* --- poll and the like ------------------------------------------------------- */

static int ready_poll(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT | POLLPRI };
	int ret = poll(&p, 1, 0);

	if (ret < 0)
		return -errno;
	if (p.revents & ~POLLIN)
		return -EPROTO;
	return ret;
}

static int ready_epoll(int fd, __u64 seed)
{
	static const __u32 ways[] = { 0, EPOLLET, EPOLLONESHOT, EPOLLEXCLUSIVE };
	struct epoll_event ev = { .events = EPOLLIN | ways[seed % ARRAY_LEN(ways)] };
	int ep = epoll_create1(EPOLL_CLOEXEC), ret;

	if (ep < 0)
		return -errno;
	ret = epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
	if (!ret)
		ret = epoll_wait(ep, &ev, 1, 0);
	if (ret < 0)
		ret = -errno;
	else if (ret && ev.events != EPOLLIN)
		ret = -EPROTO;
	close(ep);
	return ret;
}

static int ready_select(int fd)
{
	struct timeval none = {};
	fd_set in;
	int ret;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	ret = select(fd + 1, &in, NULL, NULL, &none);
	return ret < 0 ? -errno : ret;
}

static int ready_dup(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	int ret;

	if (copy < 0)
		return -errno;
	ret = ready_poll(copy);
	close(copy);
	return ret;
}

/* Send the descriptor through a socket, poll what arrives. */
static int ready_scm(int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {};
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.room, .msg_controllen = sizeof(control.room),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
	int pair[2], copy, ret;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(int));
	ret = sendmsg(pair[0], &msg, 0) == 1 &&
	      recvmsg(pair[1], &msg, MSG_CMSG_CLOEXEC) == 1 ? 0 : -errno;
	if (!ret) {
		memcpy(&copy, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
		ret = ready_poll(copy);
		close(copy);
	}
	close(pair[0]);
	close(pair[1]);
	return ret;
}

int exec_ready(const struct call *call, int fd)
{
	switch (call->op) {
	case OP_EPOLL:
		return ready_epoll(fd, call->seed);
	case OP_SELECT:
		return ready_select(fd);
	case OP_DUP:
		return ready_dup(fd);
	case OP_SCM:
		return ready_scm(fd);
	default:
		return ready_poll(fd);
	}
}

/* --- The rest ---------------------------------------------------------------- */

int exec_fdinfo(int fd, __u64 *pending, __u64 *due)
{
	char path[40], text[1024], *p, *d;
	ssize_t n;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return -errno;
	n = read(info, text, sizeof(text) - 1);
	close(info);
	if (n < 0)
		return -errno;
	text[n] = 0;
	p = strstr(text, "timerwheel-pending:\t");
	d = strstr(text, "timerwheel-due:\t");
	if (!p || !d)
		return -EPROTO;
	*pending = strtoull(strchr(p, '\t'), NULL, 10);
	*due = strtoull(strchr(d, '\t'), NULL, 10);
	return 0;
}

/* The last of the calls. */
#define LAST_NR		_IOC_NR(TIMERWHEEL_IOC_ADD_SOCKET)

/* Numbers that are not ours, or not in this form: all ENOTTY. */
static void bad_ioctl(struct worker *w, int fd, __u64 *r)
{
	unsigned int type = TIMERWHEEL_IOC_TYPE;
	unsigned int nr = rnd_to(r, LAST_NR + 1), dir = 1 + rnd_to(r, 3);
	unsigned long cmd = 0;
	int ret;

	switch (rnd_to(r, 5)) {
	case 0:
		cmd = _IO(type, LAST_NR + 1 + rnd_to(r, 255 - LAST_NR));
		break;
	case 1:
		cmd = _IO(type ^ (1 << rnd_to(r, 8)), nr);
		break;
	case 2:
		cmd = _IOC(dir, type, nr, 32);
		break;
	case 3:
		cmd = _IOC(_IOC_NONE, type, nr, 1 + rnd_to(r, 16383));
		break;
	default:
		cmd = 0x5401;		/* TCGETS, what isatty() asks */
	}
	ret = exec_ioctl(w, fd, cmd, w->arena.plain + 64);
	if (ret != -ENOTTY)
		wrong(w, "ioctl %#lx returned %d, not ENOTTY", cmd, ret);
}

/*
 * Map any part of the deadline table, or nothing valid; the arguments and the wheel decide which
 * result is right. (A private mapping may also fail for lack of memory, before the module is
 * called.)
 * @capacity: of the wheel, which has no table; 0: unknown.
 */
static void any_mmap(struct worker *w, int fd, __u32 capacity, __u64 *r)
{
	static const int prots[] = {
		PROT_NONE, PROT_READ, PROT_WRITE, PROT_READ | PROT_WRITE, PROT_EXEC,
		PROT_READ | PROT_EXEC,
	};
	static const int kinds[] = {
		MAP_SHARED, MAP_PRIVATE, MAP_SHARED | MAP_POPULATE, MAP_SHARED_VALIDATE,
	};
	size_t page = getpagesize(), len = page << rnd_to(r, 20);
	__u64 offset = one_in(r, 2) ? 0 : (rnd(r) >> (1 + rnd_to(r, 52))) / page * page;
	char *own = mmap(NULL, 4 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int prot = prots[rnd_to(r, ARRAY_LEN(prots))], kind = kinds[rnd_to(r, ARRAY_LEN(kinds))];
	bool odd = one_in(r, 4), fixed = one_in(r, 3), private, may;
	void *p;

	if (own == MAP_FAILED)
		return;
	munmap(own + page, page);
	if (odd) {
		len = one_in(r, 2) ? rnd(r) : rnd_to(r, 2);
		offset = one_in(r, 2) ? rnd(r) : offset;
	}
	if (fixed) {
		kind = MAP_SHARED | MAP_FIXED;
		/* MAP_FIXED only over our own pages: anything else there would be lost. */
		len = !odd ? page : len > 1 ? 1 + len % (2 * page) : len;
	}
	cover_begin(&w->cover);
	p = mmap(fixed ? own + 2 * page : NULL, len, prot, kind, fd, offset);
	w->fresh |= cover_end(&w->cover);

	private = (kind & MAP_TYPE) == MAP_PRIVATE;
	may = !private && !(prot & PROT_EXEC) && !(offset % page);
	if (p != MAP_FAILED) {
		if (!may || capacity)
			wrong(w, "mmap of %#zx at %#llx was granted", len, offset);
		munmap(p, len);
	} else if (errno != EINVAL && !(odd && errno == EOVERFLOW) &&
		   !((odd || private) && errno == ENOMEM)) {
		wrong(w, "mmap of %#zx at %#llx: %s, not EINVAL", len, offset, strerror(errno));
	}
	munmap(own, 4 * page);
}

/* Store to an entry of the deadline table. Returns false if there is none. */
bool exec_touch(int fd, __u32 index, __u64 word)
{
	size_t page = getpagesize(), at = index * sizeof(word);
	bool done = false;
	int memory;
	char *p;

	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 TIMERWHEEL_MMAP_DEADLINES + at / page * page);
	if (p == MAP_FAILED)
		return false;
	/* By write(): if there is no entry it fails, instead of SIGBUS that ends this process. */
	memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (memory >= 0)
		done = pwrite(memory, &word, sizeof(word), (uintptr_t)(p + at % page)) ==
		       sizeof(word);
	close(memory);
	munmap(p, page);
	return done;
}

static void bad_offset(struct worker *w, unsigned int op, int fd, __u64 *r)
{
	char *p = w->elems_arena.plain + 64;
	int want = ESPIPE;
	ssize_t ret;

	cover_begin(&w->cover);
	if (op == OP_PREAD) {
		ret = pread(fd, p, 48 * rnd_to(r, 4), rnd(r) >> 1);
	} else if (op == OP_WRITE) {
		ret = write(fd, p, rnd_to(r, 100));
		want = EINVAL;
	} else {
		ret = lseek(fd, rnd_to(r, 100), rnd_to(r, 3));
	}
	w->fresh |= cover_end(&w->cover);
	if (ret >= 0 || errno != want)
		wrong(w, "%s returned %zd, errno %d", op_names[op], ret, ret < 0 ? errno : 0);
}

/* Switch SIGIO on or off; it is ignored. */
static void set_async(struct worker *w, int fd, __u64 *r)
{
	int flags = fcntl(fd, F_GETFL);

	cover_begin(&w->cover);
	if (flags < 0 || fcntl(fd, F_SETOWN, getpid()) ||
	    fcntl(fd, F_SETFL, (flags & ~O_ASYNC) | (one_in(r, 2) ? O_ASYNC : 0)))
		wrong(w, "fcntl: %s", strerror(errno));
	w->fresh |= cover_end(&w->cover);
}

void exec_other(struct worker *w, const struct call *call, int fd, __u32 capacity)
{
	__u64 state = call->seed;

	switch (call->op) {
	case OP_BAD_IOCTL:
		bad_ioctl(w, fd, &state);
		break;
	case OP_MMAP:
		any_mmap(w, fd, capacity, &state);
		break;
	case OP_PREAD:
	case OP_WRITE:
	case OP_LSEEK:
		bad_offset(w, call->op, fd, &state);
		break;
	case OP_FLAGS:
		set_async(w, fd, &state);
		break;
	}
}
