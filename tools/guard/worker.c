// SPDX-License-Identifier: GPL-2.0
/*
 * See worker.h.
 *
 * The guard must never wait for a process that it guards. A process can block several system calls
 * of the guard for any length of time:
 *
 *  - close() of a socket that the process has closed in the meantime: the guard has the last
 *    reference, and lingers for the time of SO_LINGER.
 *  - readlink() in /proc/PID/fd, which holds a reference for a moment: it can linger, too.
 *  - close() of a descriptor that now refers to another file: a FUSE file waits for its server.
 *  - pidfd_getfd(2) while the process is in execve(2), which may wait for a FUSE server.
 *  - getsockopt(2), if a BPF program needs the lock of the socket: the process may hold it while
 *    user space serves its page fault.
 *  - A read of /proc/PID/stat during execve(2), in newer kernels (seen on 6.18). In all kernels,
 *    the last user of the memory of an ending process frees it, and waits for its asynchronous I/O.
 *  - A list of sockets, before Linux 6.9: any user can make the kernel abort a socket in the user's
 *    own network namespace, which waits for the lock of the socket. All lists wait for that.
 *
 * Therefore only a worker makes these calls. It exits instead of closing the sockets, because a
 * task that exits does not linger. It closes other files after it has written its results.
 *
 * The worker counts its steps, each about one system call, in memory that it shares with the guard.
 * If it makes hardly any steps for two seconds, the guard kills it, ignores the process that
 * blocked it for a while, and continues with another worker. The guard ignores all processes of the
 * same user, who could create more of them, but only the process itself if the user is root. The
 * time doubles with each repetition. A user can have many user numbers in a user namespace: all
 * numbers of a range in
 * /etc/subuid count as one user.
 *
 * A user's processes can also be slow without a stall, if there are many of them with many large
 * descriptor tables, or if each system call waits a little. Therefore a worker spends at most
 * BUDGET on the processes of one user each time it goes through all processes, and then skips the
 * other processes of this user. Each process of root has a BUDGET of its own.
 *
 * Some waits outlast SIGKILL. The worker then stays until they end, and the guard ignores the
 * user's processes until then. Each user has at most one such worker, and the guard has at most
 * STUCK_MAX.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conns.h"
#include "counters.h"
#include "log.h"
#include "timers.h"
#include "timerwheel.h"
#include "worker.h"

/* The number is the same on all architectures. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open		434
#endif
#ifndef SYS_close_range
#define SYS_close_range		436
#endif

/*
 * Abandon the worker when the number of checks with less than STEPS_MIN steps exceeds the number of
 * the other checks by STALL_CHECKS.
 */
#define CHECK		(500 * NSEC_PER_MSEC)
#define STALL_CHECKS	4
#define STEPS_MIN	16
/* The maximum time for the processes of one user, and the minimum time between two log lines. */
#define BUDGET		(2 * NSEC_PER_SEC)
#define BUDGET_SAY	(60 * NSEC_PER_SEC)
/* Maximum number of workers that SIGKILL has not ended yet. */
#define STUCK_MAX	16
/* The time for which a process is ignored: the first time, and the maximum. */
#define SHUN_MIN	(60 * NSEC_PER_SEC)
#define SHUN_MAX	(24 * 3600 * NSEC_PER_SEC)
#define SHUNNED_MAX	256
/* Descriptors that are closed last. */
#define LAST_MAX	1024

/* A process that has blocked a worker. It stands for all processes of its user, except for root. */
struct culprit {
	uid_t uid;
	pid_t pid;
	uint64_t until;	/* the end of the time in which it is ignored */
	uint64_t time;	/* the length of that time */
};

/* Memory that the guard and its worker share. */
struct shared {
	_Atomic uint64_t steps;
	_Atomic bool done;
	/* The user whose time was used up; 0: none. */
	_Atomic uid_t slow;
	/* The process that can block the worker now; 0: none. */
	pid_t pid;
	uid_t uid;
	char name[DAEMON_TEXT];
};

static struct {
	pid_t pid;
	int pidfd;
	int out;
	struct shared *shared;
	uint64_t next_check;
	uint64_t steps;
	unsigned int stalls;
	bool ended;
} worker = { .pidfd = -1 };

static struct culprit culprits[SHUNNED_MAX];
static unsigned int nr_culprits;

/* Workers that were killed. */
static struct {
	pid_t worker;	/* 0: this entry is free */
	pid_t pid;	/* the process that has blocked it */
	uid_t uid;
} stuck[STUCK_MAX];

/* In the worker: equal to worker.shared. In the guard: NULL. */
static struct shared *self;

/* The time at which a worker last logged by log_seldom(). All workers share it. */
static _Atomic uint64_t *said;

/*
 * In the worker: the time spent on each user. The current user's time lacks the time since @since.
 */
static struct account {
	uid_t uid;
	uint64_t spent;
} *accounts;
static unsigned int nr_accounts, room_accounts;
static uint64_t since, spent;

static struct {
	uint64_t first;
	uint64_t count;
} *ranges;
static unsigned int nr_ranges;

static struct {
	int fd;
	pid_t pid;
	uid_t uid;
	char name[DAEMON_TEXT];
} last[LAST_MAX];
static unsigned int nr_last;

int pidfd_of(pid_t pid)
{
	return syscall(SYS_pidfd_open, pid, 0);
}

/* --- users -------------------------------------------------------------- */

/* Read the ranges of user numbers that newuidmap(1) allows to users: see subuid(5). */
static void read_ranges(void)
{
	FILE *file = fopen("/etc/subuid", "re");
	unsigned long long first, count;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*[^:]:%llu:%llu", &first, &count) != 2 || !first)
			continue;
		ranges = realloc(ranges, (nr_ranges + 1) * sizeof(*ranges));
		if (!ranges)
			log_die("no memory for %u lines of /etc/subuid", nr_ranges + 1);
		ranges[nr_ranges].first = first;
		ranges[nr_ranges++].count = count;
	}
	if (file)
		fclose(file);
}

/* Map all numbers of a range to the first one, because they count as one user. */
static uid_t user_of(uid_t uid)
{
	unsigned int i;

	for (i = 0; i < nr_ranges; i++) {
		if (uid >= ranges[i].first && uid - ranges[i].first < ranges[i].count)
			return ranges[i].first;
	}
	return uid;
}

/* --- ignored processes --------------------------------------------------- */

static bool is_culprit(const struct culprit *culprit, pid_t pid, uid_t uid)
{
	return culprit->uid == uid && (uid || culprit->pid == pid);
}

static bool shunned(pid_t pid, uid_t uid)
{
	unsigned int i;

	for (i = 0; i < nr_culprits; i++) {
		if (is_culprit(&culprits[i], pid, uid))
			return now_ns() < culprits[i].until;
	}
	return false;
}

/* Ignore a process, for longer each time. If there are too many, drop the one that ends first. */
static const struct culprit *blame(pid_t pid, uid_t uid)
{
	struct culprit *culprit = culprits;
	unsigned int i;

	for (i = 0; i < nr_culprits && !is_culprit(&culprits[i], pid, uid); i++) {
		if (culprits[i].until < culprit->until)
			culprit = &culprits[i];
	}
	if (i < nr_culprits || nr_culprits < SHUNNED_MAX)
		culprit = &culprits[i];
	if (i == nr_culprits) {
		nr_culprits += nr_culprits < SHUNNED_MAX;
		*culprit = (struct culprit) { .uid = uid, .pid = pid, .time = SHUN_MIN / 2 };
	}
	culprit->time = culprit->time < SHUN_MAX / 2 ? 2 * culprit->time : SHUN_MAX;
	culprit->until = now_ns() + culprit->time;
	return culprit;
}

/* Ignore a process for as long as it blocks a worker. */
static void keep_shunned(pid_t pid, uid_t uid)
{
	uint64_t until = now_ns() + SHUN_MIN;
	unsigned int i;

	for (i = 0; i < nr_culprits; i++) {
		if (is_culprit(&culprits[i], pid, uid) && culprits[i].until < until)
			culprits[i].until = until;
	}
}

/* --- the guard's side --------------------------------------------------- */

/* Reap stuck workers that have ended. Returns a free entry, or STUCK_MAX. */
static unsigned int reap(void)
{
	unsigned int free = STUCK_MAX, i, n = 0;

	for (i = 0; i < STUCK_MAX; i++) {
		if (stuck[i].worker && waitpid(stuck[i].worker, NULL, WNOHANG))
			stuck[i].worker = 0;
		if (!stuck[i].worker) {
			free = i;
			continue;
		}
		keep_shunned(stuck[i].pid, stuck[i].uid);
		n++;
	}
	counters.workers_stuck = n;
	return free;
}

/* Is a worker stuck in a list of sockets? Another worker would get stuck, too. */
static bool stuck_in_list(void)
{
	unsigned int i;

	for (i = 0; i < STUCK_MAX; i++) {
		if (stuck[i].worker && !stuck[i].pid)
			return true;
	}
	return false;
}

/*
 * Close all descriptors except those that the worker needs, because a stuck worker would keep them
 * open. They are copies, so closing them has no other effect.
 */
static void close_others(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	syscall(SYS_close_range, STDERR_FILENO + 1, low - 1, 0);
	if (high > low + 1)
		syscall(SYS_close_range, low + 1, high - 1, 0);
	syscall(SYS_close_range, high + 1, ~0U, 0);
}

static noreturn void run(bool (*work)(int out), int out, pid_t guard)
{
	const int wheel = timerwheel_fd(timers_wheel());
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != guard)
		_exit(EXIT_SUCCESS);
	self = worker.shared;
	log_common = said;
	close_others(wheel, out);
	read_ranges();
	if (!work(out))
		_exit(EXIT_SUCCESS);
	self->done = true;
	/* A stuck worker must not keep the guard's wheel. */
	close(wheel);
	for (i = 0; i < nr_last; i++) {
		self->pid = last[i].pid;
		self->uid = last[i].uid;
		memcpy(self->name, last[i].name, sizeof(self->name));
		self->steps++;
		close(last[i].fd);
	}
	_exit(EXIT_SUCCESS);
}

static void *share(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void forget(void)
{
	if (worker.shared)
		munmap(worker.shared, sizeof(*worker.shared));
	if (worker.out >= 0)
		close(worker.out);
	if (worker.pidfd >= 0)
		close(worker.pidfd);
	worker.pid = 0;
	worker.pidfd = -1;
}

bool worker_start(bool (*work)(int out))
{
	const pid_t guard = getpid();

	if (reap() == STUCK_MAX) {
		log_seldom(LOG_ERR, "%u processes hold the guard up: it takes no more sockets until one of them ends",
			   STUCK_MAX);
		return false;
	}
	if (stuck_in_list())
		return false;
	worker.out = memfd_create("timerwheel-guard", MFD_CLOEXEC);
	worker.shared = share(sizeof(struct shared));
	said = said ? said : share(sizeof(*said));
	worker.pid = worker.out >= 0 && worker.shared && said ? fork() : -1;
	if (!worker.pid)
		run(work, worker.out, guard);
	if (worker.pid > 0)
		worker.pidfd = pidfd_of(worker.pid);
	if (worker.pidfd < 0) {
		log_seldom(LOG_WARNING, "cannot start a process: %s", strerror(errno));
		if (worker.pid > 0) {
			kill(worker.pid, SIGKILL);
			waitpid(worker.pid, NULL, 0);
		}
		forget();
		return false;
	}
	worker.next_check = now_ns() + CHECK;
	worker.steps = 0;
	worker.stalls = 0;
	worker.ended = false;
	return true;
}

int worker_fd(void)
{
	return worker.pidfd;
}

uint64_t worker_next(void)
{
	return worker.pid ? worker.next_check : TIME_NONE;
}

/* Abandon the worker. */
static void give_up(void)
{
	const struct shared *shared = worker.shared;
	unsigned int at = reap();
	const struct culprit *culprit;

	kill(worker.pid, SIGKILL);
	stuck[at].worker = worker.pid;
	stuck[at].pid = shared->pid;
	stuck[at].uid = shared->uid;
	counters.workers_killed++;
	worker.ended = true;
	if (!shared->pid) {
		log_say(LOG_WARNING, "the kernel does not list sockets or processes: another process holds it up; new connections are not guarded until it ends");
		return;
	}
	culprit = blame(shared->pid, shared->uid);
	log_say(LOG_WARNING, "%.*s[%d] of user %u holds the guard up: %s left alone for %s",
		DAEMON_TEXT, *shared->name ? shared->name : "process", shared->pid, shared->uid,
		shared->uid ? "this user's processes are" : "it is", duration(culprit->time));
}

enum worker_state worker_check(void)
{
	uint64_t now = now_ns(), steps;
	int status = 0;

	reap();
	if (!worker.pid)
		return WORKER_NONE;
	if (worker.ended)
		return WORKER_ENDED;
	if (waitpid(worker.pid, &status, WNOHANG)) {
		/* The worker has logged the reason. */
		if (WIFEXITED(status) && WEXITSTATUS(status))
			exit(WEXITSTATUS(status));
		if (!WIFEXITED(status))
			log_seldom(LOG_WARNING, "a worker was ended by signal %d",
				   WTERMSIG(status));
		worker.ended = true;
		return WORKER_ENDED;
	}
	if (now < worker.next_check)
		return WORKER_RUNS;
	/* Require several checks, because the guard or the machine may have paused. */
	worker.next_check = now + CHECK;
	steps = worker.shared->steps;
	if (steps - worker.steps < STEPS_MIN)
		worker.stalls++;
	else if (worker.stalls)
		worker.stalls--;
	worker.steps = steps;
	if (worker.stalls < STALL_CHECKS)
		return WORKER_RUNS;
	give_up();
	return WORKER_ENDED;
}

static void *read_all(int fd, size_t *len)
{
	struct stat stat;
	char *text;

	if (fstat(fd, &stat))
		return NULL;
	text = xcalloc(1, stat.st_size + 1);
	*len = stat.st_size;
	if (pread(fd, text, *len, 0) == stat.st_size)
		return text;
	free(text);
	return NULL;
}

static void report_slow(uid_t uid)
{
	static uint64_t last_said;

	if (!uid || (last_said && now_ns() - last_said < BUDGET_SAY))
		return;
	last_said = now_ns();
	log_say(LOG_WARNING, "visiting the processes of user %u takes too long: new connections of this user may get no timers",
		uid);
}

void *worker_results(size_t *len)
{
	void *results = worker.shared->done ? read_all(worker.out, len) : NULL;

	report_slow(worker.shared->slow);
	forget();
	return results;
}

/* --- the worker's side -------------------------------------------------- */

static struct account *account_of(uid_t uid)
{
	unsigned int i;

	for (i = 0; i < nr_accounts && accounts[i].uid != uid; i++)
		;
	if (i < nr_accounts)
		return &accounts[i];
	if (nr_accounts == room_accounts) {
		room_accounts = room_accounts ? 2 * room_accounts : 64;
		accounts = realloc(accounts, room_accounts * sizeof(*accounts));
		if (!accounts)
			log_die("no memory for %u users", room_accounts);
	}
	accounts[nr_accounts] = (struct account) { .uid = uid };
	return &accounts[nr_accounts++];
}

/* Switch the time accounting to another process. Processes of root do not share an account. */
static void turn_to(pid_t pid, uid_t uid)
{
	uint64_t now = now_ns();

	if (self->uid)
		account_of(self->uid)->spent = spent + now - since;
	self->pid = pid;
	self->uid = uid;
	spent = uid ? account_of(uid)->spent : 0;
	since = now;
}

bool worker_visit(pid_t pid, const char *name)
{
	struct stat stat;
	char path[32];
	uid_t uid;

	worker_step();
	if (!self)
		return true;
	if (pid && self->pid != pid) {
		/*
		 * The owner of this folder is the process's user, even if root owns the files in
		 * it.
		 */
		snprintf(path, sizeof(path), "/proc/%d", pid);
		if (lstat(path, &stat))
			return false;
		uid = user_of(stat.st_uid);
		if (shunned(pid, uid))
			return false;
		turn_to(pid, uid);
	} else if (!pid) {
		turn_to(0, 0);
		nr_accounts = 0;
	}
	snprintf(self->name, sizeof(self->name), "%s", name);
	return worker_step();
}

uid_t worker_uid(void)
{
	return self ? self->uid : 0;
}

bool worker_step(void)
{
	if (!self)
		return true;
	self->steps++;
	if (!self->pid || spent + now_ns() - since < BUDGET)
		return true;
	if (self->uid)
		self->slow = self->uid;
	return false;
}

void worker_close_last(int fd)
{
	if (nr_last == LAST_MAX)
		return;
	last[nr_last].fd = fd;
	last[nr_last].pid = self->pid;
	last[nr_last].uid = self->uid;
	memcpy(last[nr_last].name, self->name, sizeof(self->name));
	nr_last++;
}
