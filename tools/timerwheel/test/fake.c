// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel in a file, for tests on machines without the module: preload this library (LD_PRELOAD),
 * and a descriptor of the file that FAKE_WHEEL names does what one of /dev/timerwheel does, as far
 * as the command line tool and the guard need it. Every operation takes time linear in the number
 * of timers. Of connections only their timers are there: every one is idle, and is not aborted.
 *
 * Variables in the environment make things go wrong:
 *
 *   FAKE_ADD=ERRNO      each element of ADD and ADD_SOCKET fails
 *   FAKE_ADD_SOCKET=ERRNO  each element of ADD_SOCKET fails
 *   FAKE_DRAIN=ERRNO    DRAIN fails
 *   FAKE_LIST=ERRNO     LIST fails
 *   FAKE_OLD=1          the module does not know ADD_SOCKET
 *   FAKE_FSYNC=ERRNO    fsync() fails
 *   FAKE_RECV=COUNT     this recv() from the kernel (netlink) fails with ENOBUFS, and takes nothing
 *   FAKE_SLOW=MS        each recv() from the kernel that gets more than 4096 bytes takes that long
 *   FAKE_SYNCHRONIZED=1 the time of day is right
 *   FAKE_SIGNAL=NUMBER  this signal arrives after each DRAIN, REMOVE and read that takes something
 *   FAKE_MEANWHILE=KEY  somebody arms this timer then, with the value 99
 *   FAKE_PAUSE=FIFO     ADD_SOCKET waits when it is done, until a writer of FIFO has come and gone.
 *                       Nothing waits if FIFO does not exist.
 *   FAKE_LINK=TEXT      with FAKE_PAUSE, readlinkat() waits instead if it has read TEXT; with
 *                       FAKE_RECV and FAKE_PAUSE, that recv() waits and does not fail
 *
 * FAKE_RESIDENT=1: timers of a new wheel are resident. The file begins with their deadline table.
 * A cancelled timer is parked, and so is one whose event was delivered, whatever its linger; the
 * deadlines in the table do not count.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <linux/timerwheel.h>

#define ROOM		20000
#define GENERATION_BITS	12

struct wheel {
	__u64 table[ROOM];
	struct timerwheel_setup setup;
	bool settled, closed;
	__u64 armed, delivered;
	bool used[ROOM];
	struct timerwheel_entry timers[ROOM];
	__u64 grace[ROOM];
	bool abort[ROOM];
};

/* For threads: the lock on the file is one of processes. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct wheel *wheel;
static int locked;

static void lock_mutex(void)
{
	pthread_mutex_lock(&mutex);
}

static void unlock_mutex(void)
{
	pthread_mutex_unlock(&mutex);
}

/* Calls of recv() by this process and its children. */
static __u64 *received;

/* A child must not find it locked by a thread that it does not have. */
static __attribute((constructor)) void prepare_fork(void)
{
	pthread_atfork(lock_mutex, unlock_mutex, unlock_mutex);
	received = mmap(NULL, sizeof(*received), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (received == MAP_FAILED)
		abort();
}

static __u64 variable(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : 0;
}

static __u64 now(void)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };
	struct timespec ts;

	if (wheel->setup.clock == TIMERWHEEL_CLOCK_MANUAL)
		return 0;
	clock_gettime(clocks[wheel->setup.clock], &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Is this the wheel? Then it is locked, until end(). */
static bool begin(int fd)
{
	const char *name = getenv("FAKE_WHEEL");
	struct stat st, own;

	if (!name || stat(name, &own) || fstat(fd, &st) || st.st_ino != own.st_ino ||
	    st.st_dev != own.st_dev)
		return false;
	pthread_mutex_lock(&mutex);
	/* Opened again: a lock is shared with all who share a descriptor. */
	locked = open(name, O_RDWR | O_CLOEXEC);
	if (locked < 0 || flock(locked, LOCK_EX) || ftruncate(locked, sizeof(*wheel)))
		abort();
	wheel = mmap(NULL, sizeof(*wheel), PROT_READ | PROT_WRITE, MAP_SHARED, locked, 0);
	if (wheel == MAP_FAILED)
		abort();
	if (!wheel->setup.tick) {
		wheel->setup.tick = 1000000;
		wheel->setup.slots = 256;
		wheel->setup.capacity = ROOM;
		wheel->setup.flags = variable("FAKE_RESIDENT") ? TIMERWHEEL_SETUP_RESIDENT : 0;
	}
	return true;
}

static int end(int result)
{
	munmap(wheel, sizeof(*wheel));
	close(locked);
	pthread_mutex_unlock(&mutex);
	if (result >= 0)
		return result;
	errno = -result;
	return -1;
}

/* --- timers ------------------------------------------------------------- */

static int find(__u64 key)
{
	int i;

	for (i = 0; i < ROOM; i++) {
		if (wheel->used[i] && wheel->timers[i].key == key)
			return i;
	}
	return -ENOENT;
}

static bool resident(void)
{
	return wheel->setup.flags & TIMERWHEEL_SETUP_RESIDENT;
}

static bool parked(int i)
{
	return resident() && !(wheel->table[i] & TIMERWHEEL_TABLE_ARMED);
}

static bool due(int i)
{
	return !parked(i) && wheel->timers[i].deadline <= now();
}

/* A resident timer gets a deadline. */
static void arm_entry(int i)
{
	__u64 mask = (1ULL << GENERATION_BITS) - 1;
	__u64 deadline = wheel->timers[i].deadline;

	if (deadline > TIMERWHEEL_TIME_MAX - mask)
		deadline = TIMERWHEEL_TIME_MAX - mask;
	wheel->table[i] = ((deadline + mask) & ~mask) | wheel->timers[i].generation |
			  TIMERWHEEL_TABLE_ARMED;
}

/* The description of a timer by GET, LIST and DRAIN. */
static struct timerwheel_entry describe(int i)
{
	struct timerwheel_entry entry = wheel->timers[i];

	entry.left = entry.deadline - now();
	entry.result = parked(i) ? TIMERWHEEL_WAS_PARKED :
		       due(i) ? TIMERWHEEL_WAS_DUE : TIMERWHEEL_WAS_PENDING;
	return entry;
}

static __u64 absolute(__u64 deadline, __u32 flags)
{
	if (!(flags & TIMERWHEEL_ABS))
		deadline += now();
	return deadline > TIMERWHEEL_TIME_MAX ? 0 : deadline;
}

static int add(void *element)
{
	struct timerwheel_add *a = element;
	int i = find(a->key), was = i < 0 ? 0 : describe(i).result;
	__u32 used = 0, n;

	if (variable("FAKE_ADD"))
		return -(int)variable("FAKE_ADD");
	if (wheel->closed)
		return -ESHUTDOWN;
	if (resident() ? !a->period == !!(a->flags & TIMERWHEEL_LINGER) :
			 !!(a->flags & TIMERWHEEL_LINGER))
		return -EINVAL;
	if (i >= 0 && a->flags & TIMERWHEEL_EXCL)
		return -EEXIST;
	if (a->flags & TIMERWHEEL_MATCH && i < 0)
		return -ENOENT;
	if (a->flags & TIMERWHEEL_MATCH && wheel->timers[i].value != a->match)
		return -ESTALE;
	for (n = 0; i < 0 && n < ROOM; n++)
		used += wheel->used[n];
	if (i < 0 && used >= wheel->setup.capacity)
		return -ENOSPC;
	for (n = 0; i < 0; n++) {
		if (!wheel->used[n])
			i = n;
	}
	wheel->used[i] = true;
	wheel->settled = true;
	wheel->armed++;
	wheel->timers[i] = (struct timerwheel_entry) {
		.key = a->key,
		.value = a->value,
		.deadline = absolute(a->deadline, a->flags),
		.period = a->period,
		.slack = a->flags & TIMERWHEEL_SLACK ? a->slack : wheel->setup.slack,
		.flags = a->flags & TIMERWHEEL_LINGER,
		.index = i,
		.generation = (wheel->armed * 4) & ((1U << GENERATION_BITS) - 1),
	};
	a->index = i;
	a->generation = wheel->timers[i].generation;
	if (resident())
		arm_entry(i);
	return was;
}

static int add_socket(void *element)
{
	struct timerwheel_add_socket *s = element;
	struct timerwheel_add a = {
		.key = s->key,
		.value = s->value,
		.deadline = s->deadline,
		.period = s->kind == TIMERWHEEL_SOCKET_LIFETIME ? 0 : s->deadline,
		.slack = s->slack,
		.match = s->match,
		.flags = s->flags & ~TIMERWHEEL_SOCKET_ABORT,
	};
	struct stat st;
	int result, i;

	if (fstat(s->fd, &st))
		return -EBADF;
	if (!S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	if (variable("FAKE_ADD_SOCKET"))
		return -(int)variable("FAKE_ADD_SOCKET");
	result = add(&a);
	if (result < 0)
		return result;
	i = find(s->key);
	wheel->timers[i].flags = TIMERWHEEL_ENTRY_SOCKET;
	wheel->abort[i] = s->flags & TIMERWHEEL_SOCKET_ABORT;
	wheel->grace[i] = s->grace;
	return result;
}

static int move(void *element)
{
	struct timerwheel_move *m = element;
	int i = find(m->key), was;

	if (i < 0)
		return i;
	if (m->flags & TIMERWHEEL_EXCL && !resident())
		return -EINVAL;
	if (m->flags & TIMERWHEEL_MATCH && wheel->timers[i].value != m->match)
		return -ESTALE;
	was = describe(i).result;
	if (m->flags & TIMERWHEEL_EXCL && was != TIMERWHEEL_WAS_PARKED)
		return -EEXIST;
	wheel->timers[i].deadline = absolute(m->deadline, m->flags);
	if (resident())
		arm_entry(i);
	return was;
}

static int remove_timer(void *element)
{
	struct timerwheel_remove *r = element;
	int i = find(r->key);

	if (i < 0)
		return i;
	if (r->flags & TIMERWHEEL_MATCH && wheel->timers[i].value != r->match)
		return -ESTALE;
	r->value = wheel->timers[i].value;
	r->left = describe(i).left;
	wheel->used[i] = false;
	return describe(i).result;
}

static int get(void *element)
{
	struct timerwheel_entry *e = element;
	int i = find(e->key);

	if (i < 0)
		return i;
	*e = describe(i);
	return e->result;
}

static int list(struct timerwheel_batch *batch)
{
	struct timerwheel_entry *entries = (void *)(unsigned long)batch->elems;
	__u32 n = 0;

	if (variable("FAKE_LIST"))
		return -(int)variable("FAKE_LIST");
	for (; batch->cursor < ROOM && n < batch->count; batch->cursor++) {
		if (wheel->used[batch->cursor])
			entries[n++] = describe(batch->cursor);
	}
	return n;
}

static int drain(struct timerwheel_batch *batch)
{
	struct timerwheel_entry *entries = (void *)(unsigned long)batch->elems;
	__u32 n = 0, i;

	if (variable("FAKE_DRAIN"))
		return -(int)variable("FAKE_DRAIN");
	wheel->closed |= batch->flags & TIMERWHEEL_DRAIN_CLOSE;
	for (i = 0; i < ROOM && n < batch->count; i++) {
		if (!wheel->used[i])
			continue;
		entries[n++] = describe(i);
		wheel->used[i] = false;
	}
	return n;
}

/* Trouble for a caller that has just taken events or timers. */
static void taken(void)
{
	struct timerwheel_add other = { .key = variable("FAKE_MEANWHILE"), .value = 99 };

	if (getenv("FAKE_MEANWHILE"))
		add(&other);
	if (variable("FAKE_SIGNAL"))
		raise(variable("FAKE_SIGNAL"));
}

/* --- calls -------------------------------------------------------------- */

static int info(struct timerwheel_info *i)
{
	*i = (struct timerwheel_info) {
		.size = sizeof(*i),
		.abi_version = TIMERWHEEL_ABI_VERSION,
		.flags = (wheel->settled ? TIMERWHEEL_INFO_SETTLED : 0) |
			 (wheel->closed ? TIMERWHEEL_INFO_CLOSED : 0) |
			 (resident() ? TIMERWHEEL_INFO_RESIDENT | TIMERWHEEL_INFO_TABLE : 0),
		.clock = wheel->setup.clock,
		.tick = wheel->setup.tick,
		.slots = wheel->setup.slots,
		.capacity = wheel->setup.capacity,
		.slack = wheel->setup.slack,
		.generation_bits = GENERATION_BITS,
		.event_size = sizeof(struct timerwheel_event),
		.features = variable("FAKE_OLD") ? 0 : TIMERWHEEL_FEATURE_SOCKET,
		.now = now(),
	};
	return 0;
}

static int stats(struct timerwheel_stats *s)
{
	int i;

	*s = (struct timerwheel_stats) {
		.size = sizeof(*s),
		.armed = wheel->armed,
		.delivered = wheel->delivered,
	};
	for (i = 0; i < ROOM; i++) {
		s->due += wheel->used[i] && due(i);
		s->parked += wheel->used[i] && parked(i);
		s->pending += wheel->used[i] && !due(i) && !parked(i);
		s->sockets += wheel->used[i] && wheel->timers[i].flags & TIMERWHEEL_ENTRY_SOCKET;
	}
	return 0;
}

static int setup(const struct timerwheel_setup *s)
{
	if (wheel->settled)
		return -EBUSY;
	if (s->tick > 3600000000000ULL)
		return -EINVAL;
	wheel->setup = *s;
	wheel->settled = true;
	return 0;
}

/* The function for an element of an array, and the place of its result. */
struct operation {
	int (*run)(void *element);
	size_t size;
	size_t result;
};

static int each(const struct timerwheel_batch *batch, const struct operation *operation)
{
	char *element = (void *)(unsigned long)batch->elems;
	__u32 n;

	for (n = 0; n < batch->count; n++, element += operation->size)
		*(__s32 *)(element + operation->result) = operation->run(element);
	return n;
}

static int call(unsigned long request, void *arg)
{
	static const struct operation operations[] = {
		{ add, sizeof(struct timerwheel_add), offsetof(struct timerwheel_add, result) },
		{ move, sizeof(struct timerwheel_move), offsetof(struct timerwheel_move, result) },
		{ remove_timer, sizeof(struct timerwheel_remove),
		  offsetof(struct timerwheel_remove, result) },
		{ get, sizeof(struct timerwheel_entry), offsetof(struct timerwheel_entry, result) },
		{ add_socket, sizeof(struct timerwheel_add_socket),
		  offsetof(struct timerwheel_add_socket, result) },
	};
	int n;

	switch (request) {
	case TIMERWHEEL_IOC_INFO:
		return info(arg);
	case TIMERWHEEL_IOC_SETUP:
		return setup(arg);
	case TIMERWHEEL_IOC_STATS:
		return stats(arg);
	case TIMERWHEEL_IOC_ADD:
		return each(arg, &operations[0]);
	case TIMERWHEEL_IOC_MOVE:
		return each(arg, &operations[1]);
	case TIMERWHEEL_IOC_GET:
		return each(arg, &operations[3]);
	case TIMERWHEEL_IOC_ADD_SOCKET:
		return each(arg, &operations[4]);
	case TIMERWHEEL_IOC_LIST:
		return list(arg);
	case TIMERWHEEL_IOC_REMOVE:
		n = each(arg, &operations[2]);
		break;
	case TIMERWHEEL_IOC_DRAIN:
		n = drain(arg);
		break;
	default:
		return -ENOTTY;
	}
	if (n > 0)
		taken();
	return n;
}

static void pause_at(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	char c;

	if (fd < 0)
		return;
	while (read(fd, &c, 1) > 0)
		;
	close(fd);
}

ssize_t readlinkat(int folder, const char *path, char *link, size_t size)
{
	ssize_t (*real)(int folder, const char *path, char *link, size_t size) =
		dlsym(RTLD_NEXT, "readlinkat");
	const char *wanted = getenv("FAKE_LINK"), *fifo = getenv("FAKE_PAUSE");
	ssize_t n = real(folder, path, link, size);

	if (wanted && fifo && n == (ssize_t)strlen(wanted) && !memcmp(link, wanted, n))
		pause_at(fifo);
	return n;
}

/* The flags of the event of a timer that watches a connection. */
static __u32 expire_socket(int i)
{
	struct timerwheel_entry *e = &wheel->timers[i];

	if (wheel->grace[i] && !(e->flags & TIMERWHEEL_ENTRY_GRACE)) {
		e->flags |= TIMERWHEEL_ENTRY_GRACE;
		e->deadline += wheel->grace[i];
		return TIMERWHEEL_EVENT_WARNING;
	}
	wheel->used[i] = false;
	return wheel->abort[i] ? TIMERWHEEL_EVENT_ABORTED : 0;
}

static ssize_t take(struct timerwheel_event *events, size_t room)
{
	size_t n = 0;
	int i;

	for (i = 0; i < ROOM && n < room; i++) {
		struct timerwheel_entry *e = &wheel->timers[i];
		__u64 time = now(), overruns;

		if (!wheel->used[i] || !due(i))
			continue;
		if (e->flags & TIMERWHEEL_ENTRY_SOCKET) {
			events[n] = (struct timerwheel_event) {
				.key = e->key,
				.value = e->value,
				.deadline = e->deadline,
				.fired = time,
			};
			events[n++].flags = expire_socket(i);
			wheel->delivered++;
			continue;
		}
		if (resident()) {
			events[n++] = (struct timerwheel_event) {
				.key = e->key,
				.value = e->value,
				.deadline = e->deadline,
				.fired = time,
				.index = i,
			};
			wheel->delivered++;
			wheel->table[i] ^= TIMERWHEEL_TABLE_ARMED ^ TIMERWHEEL_TABLE_PARKED;
			continue;
		}
		overruns = e->period ? (time - e->deadline) / e->period : 0;
		events[n++] = (struct timerwheel_event) {
			.key = e->key,
			.value = e->value,
			.deadline = e->deadline,
			.fired = time,
			.overruns = overruns,
			.flags = e->period ? TIMERWHEEL_EVENT_PERIODIC : 0,
		};
		wheel->delivered++;
		e->deadline += (overruns + 1) * e->period;
		wheel->used[i] = e->period;
	}
	if (n)
		taken();
	return n ? (ssize_t)n : -EAGAIN;
}

/* The ms until something is due, -1: nothing will be. */
static int wait_for(void)
{
	__u64 first = ~0ULL, time = now();
	int i;

	for (i = 0; i < ROOM; i++) {
		if (wheel->used[i] && !parked(i) && wheel->timers[i].deadline < first)
			first = wheel->timers[i].deadline;
	}
	if (first == ~0ULL)
		return -1;
	return first <= time ? 0 : (first - time) / 1000000 < INT_MAX ?
				   (int)((first - time) / 1000000 + 1) : INT_MAX;
}

/* --- in place of libc's functions --------------------------------------- */

int ioctl(int fd, unsigned long request, ...)
{
	int (*real)(int fd, unsigned long request, void *arg) = dlsym(RTLD_NEXT, "ioctl");
	const char *fifo = getenv("FAKE_PAUSE");
	va_list args;
	void *arg;
	int n;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (!begin(fd))
		return real(fd, request, arg);
	n = end(call(request, arg));
	if (request == TIMERWHEEL_IOC_ADD_SOCKET && fifo && !getenv("FAKE_LINK") &&
	    !getenv("FAKE_RECV"))
		pause_at(fifo);
	return n;
}

/* The library reads by preadv2(). */
long syscall(long number, ...)
{
	long (*real)(long number, ...) = dlsym(RTLD_NEXT, "syscall");
	const struct iovec *to;
	va_list args;
	long arg[6];
	size_t i;
	int n;

	va_start(args, number);
	for (i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number != SYS_preadv2)
		return real(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	to = (const struct iovec *)arg[1];
	if (!begin(arg[0]) || arg[2] != 1)
		abort();
	n = end(take(to->iov_base, to->iov_len / sizeof(struct timerwheel_event)));
	return n < 0 ? n : n * (long)sizeof(struct timerwheel_event);
}

ssize_t recv(int fd, void *to, size_t size, int flags)
{
	ssize_t (*real)(int fd, void *to, size_t size, int flags) = dlsym(RTLD_NEXT, "recv");
	socklen_t length = sizeof(int);
	int domain;
	ssize_t n;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) || domain != AF_NETLINK)
		return real(fd, to, size, flags);
	if (++*received != variable("FAKE_RECV")) {
		n = real(fd, to, size, flags);
		if (n > 4096)
			usleep(variable("FAKE_SLOW") * 1000);
		return n;
	}
	if (getenv("FAKE_PAUSE")) {
		pause_at(getenv("FAKE_PAUSE"));
		return real(fd, to, size, flags);
	}
	errno = ENOBUFS;
	return -1;
}

/* Changes by other processes are noticed after a while. */
int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	int (*real)(struct pollfd *fds, nfds_t count, int timeout) = dlsym(RTLD_NEXT, "poll");
	bool is_due = false, is_wheel = false;
	int most = timeout, n, saved;

	if (count && fds[0].fd > 2 && begin(fds[0].fd)) {
		int wait = wait_for();

		end(0);
		is_wheel = true;
		is_due = !wait;
		most = wait >= 0 && wait < 100 ? wait : 100;
		if (timeout >= 0 && timeout < most)
			most = timeout;
		/* A regular file is always ready. */
		saved = fds[0].fd;
		fds[0].fd = -1;
	}
	n = real(fds, count, most);
	if (!is_wheel)
		return n;
	fds[0].fd = saved;
	fds[0].revents = is_due ? POLLIN : 0;
	return n < 0 ? n : n + is_due;
}

/* The library asks which device a descriptor is of. */
int fstat64(int fd, struct stat64 *st)
{
	int (*real)(int fd, struct stat64 *st) = dlsym(RTLD_NEXT, "fstat64");
	int ret = real(fd, st);

	if (!ret && begin(fd)) {
		end(0);
		st->st_mode = S_IFCHR | 0666;
		st->st_rdev = makedev(123, 0);
	}
	return ret;
}

ssize_t readlink(const char *name, char *to, size_t size)
{
	ssize_t (*real)(const char *name, char *to, size_t size) = dlsym(RTLD_NEXT, "readlink");

	if (strcmp(name, "/sys/dev/char/123:0/subsystem"))
		return real(name, to, size);
	return snprintf(to, size, "../../../../class/timerwheel");
}

/* Fake files of /proc about the device and the wheel; other files are real. */
FILE *fopen(const char *name, const char *mode)
{
	FILE *(*real)(const char *name, const char *mode) = dlsym(RTLD_NEXT, "fopen");
	char path[64], text[512] = "Character devices:\n 10 misc\n123 timerwheel\n";
	struct timerwheel_stats s;
	int pid, fd;

	if (sscanf(name, "/proc/%*d/task/%d/fdinfo/%d", &pid, &fd) == 2) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (begin(fd)) {
			end(stats(&s));
			snprintf(text, sizeof(text),
				 "pos:\t0\ntimerwheel-clock:\tmonotonic\ntimerwheel-tick-ns:\t1000000\n"
				 "timerwheel-pending:\t%llu\ntimerwheel-due:\t%llu\n"
				 "timerwheel-armed:\t%llu\ntimerwheel-delivered:\t%llu\n",
				 s.pending, s.due, s.armed, s.delivered);
			name = "/proc/devices";
		}
		close(fd);
	}
	if (strcmp(name, "/proc/devices"))
		return real(name, mode);
	return fmemopen(memcpy(malloc(sizeof(text)), text, sizeof(text)), strlen(text), mode);
}

int fstatat(int folder, const char *name, struct stat *st, int flags)
{
	int (*real)(int folder, const char *name, struct stat *st, int flags) =
		dlsym(RTLD_NEXT, "fstatat");
	const char *wheel_name = getenv("FAKE_WHEEL");
	struct stat own;
	int ret;

	ret = real(folder, name, st, flags);
	if (!ret && !flags && wheel_name && !stat(wheel_name, &own) && st->st_ino == own.st_ino) {
		st->st_mode = S_IFCHR | 0666;
		st->st_rdev = makedev(123, 0);
	}
	return ret;
}

int adjtimex(struct timex *state)
{
	memset(state, 0, sizeof(*state));
	return variable("FAKE_SYNCHRONIZED") ? TIME_OK : TIME_ERROR;
}

int fsync(int fd)
{
	int (*real)(int fd) = dlsym(RTLD_NEXT, "fsync");

	if (!variable("FAKE_FSYNC"))
		return real(fd);
	errno = variable("FAKE_FSYNC");
	return -1;
}
