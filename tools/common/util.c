// SPDX-License-Identifier: GPL-2.0
/* See util.h. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

const char *progname = "?";
const char version[] = VERSION;

void say_version(void)
{
	printf("%s %s\n", progname, version);
}

void out_check(void)
{
	if (fflush(stdout) || ferror(stdout))
		die("cannot write the output: %s", strerror(errno));
}

void signals_reset(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_DFL);
}

static void vsay(const char *fmt, va_list args)
{
	fflush(stdout);
	fprintf(stderr, "%s: ", progname);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
}

void say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsay(fmt, args);
	va_end(args);
}

void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsay(fmt, args);
	va_end(args);
	exit(EXIT_FAILURE);
}

bool parse_count(const char *text, __u64 *count)
{
	static const struct suffix {
		const char *name;
		double factor;
	} suffixes[] = {
		{ "", 1 }, { "k", 1e3 }, { "M", 1e6 },
	};
	double value;
	char *end;
	size_t i;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || errno || !(value >= 0))
		return false;
	for (i = 0; i < ARRAY_SIZE(suffixes); i++) {
		if (strcmp(end, suffixes[i].name))
			continue;
		value *= suffixes[i].factor;
		/* Above 2^63 a double would overflow the integer. */
		if (!(value < 0x1p63))
			return false;
		*count = (__u64)llround(value);
		return true;
	}
	return false;
}

#define TEXTS	16

char *text_buffer(void)
{
	static char texts[TEXTS][TEXT_LENGTH];
	static unsigned int next;

	return texts[next++ % TEXTS];
}

const char *commas(__u64 n)
{
	char *text = text_buffer() + TEXT_LENGTH - 1;
	int digits = 0;

	*text = '\0';
	do {
		if (digits && digits % 3 == 0)
			*(--text) = ',';
		*(--text) = '0' + n % 10;
		n /= 10;
		digits++;
	} while (n);
	return text;
}

const char *duration(__u64 ns)
{
	char *text = text_buffer();

	if (ns < 10 * NSEC_PER_USEC)
		snprintf(text, 32, "%llu ns", ns);
	else if (ns < NSEC_PER_MSEC)
		snprintf(text, 32, "%.0f us", ns / 1e3);
	else if (ns < NSEC_PER_SEC)
		snprintf(text, 32, "%.*f ms", ns < 10 * NSEC_PER_MSEC ? 2 : 1, ns / 1e6);
	else if (ns >= 3600 * NSEC_PER_SEC && ns % (3600 * NSEC_PER_SEC) == 0)
		snprintf(text, 32, "%llu h", ns / (3600 * NSEC_PER_SEC));
	else
		snprintf(text, 32, "%.*f s", ns < 10 * NSEC_PER_SEC ? 2 : 1, ns / 1e9);
	return text;
}

__u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

__u64 cpu_ns(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * NSEC_PER_USEC;
}

void sleep_until(__u64 ns)
{
	struct timespec ts = {
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_nsec = ns % NSEC_PER_SEC,
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

__u64 mix64(__u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

__u64 random_next(__u64 *state)
{
	*state += 0x9e3779b97f4a7c15ULL;
	return mix64(*state);
}

__u64 random_below(__u64 *state, __u64 bound)
{
	return (__u64)(((__uint128_t)random_next(state) * bound) >> 64);
}

static __u64 gcd(__u64 a, __u64 b)
{
	while (b) {
		__u64 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

__u64 stride_of(__u64 n)
{
	/* With the golden section, neighbours in time are far apart in memory. */
	__u64 stride = (__u64)(n * 0.6180339887498949);

	while (stride > 1 && gcd(stride, n) != 1)
		stride--;
	return stride ? stride : 1;
}

/* A line of /proc/meminfo, in bytes. */
static __u64 meminfo(const char *name)
{
	FILE *file = fopen("/proc/meminfo", "r");
	size_t length = strlen(name);
	unsigned long long kb = 0;
	char line[128];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, name, length) && line[length] == ':')
			kb = strtoull(line + length + 1, NULL, 10);
	}
	fclose(file);
	return kb * 1024;
}

__u64 mem_available(void)
{
	return meminfo("MemAvailable");
}

/* Free pages in the lists of the CPUs, which no sum of meminfo includes. */
static __u64 laid_aside(void)
{
	FILE *file = fopen("/proc/zoneinfo", "r");
	unsigned long long pages = 0, one;
	char line[128];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, " count: %llu", &one) == 1)
			pages += one;
	}
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

__u64 mem_free(void)
{
	FILE *file;

	/* Each CPU publishes small changes only once per second; root can request them. */
	file = fopen("/proc/sys/vm/stat_refresh", "w");
	if (file) {
		fputs("1\n", file);
		fclose(file);
	}
	return meminfo("MemFree") + meminfo("Buffers") + meminfo("Cached") - meminfo("Shmem") +
	       laid_aside();
}

__u64 mem_taken(__u64 before)
{
	__u64 now = mem_free();

	return now < before ? before - now : 0;
}

/* Growth between two readings that is noise, and the number of readings without more */
#define SETTLED_BYTES		(64 << 10)
#define SETTLED_READINGS	5

__u64 mem_settled(void)
{
	__u64 before = mem_free(), now;
	int i, still = 0;

	for (i = 0; i < 100 && still < SETTLED_READINGS; i++) {
		usleep(50000);
		now = mem_free();
		still = now > before + SETTLED_BYTES ? 0 : still + 1;
		before = now;
	}
	return before;
}

/* Raise a limit below /proc/sys if it is too low, and if this is allowed. */
static void raise_sysctl(const char *path, __u64 want)
{
	FILE *file = fopen(path, "r+");
	unsigned long long now;

	if (!file)
		return;
	if (fscanf(file, "%llu", &now) == 1 && now < want) {
		rewind(file);
		/* Some limits must be a multiple of a small power of two. */
		fprintf(file, "%llu\n", (want + 1023) / 1024 * 1024);
	}
	fclose(file);
}

void raise_watches(__u64 want)
{
	raise_sysctl("/proc/sys/fs/epoll/max_user_watches", want);
}

__u64 raise_nofile(__u64 want)
{
	struct rlimit limit, more;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	if (limit.rlim_cur >= want)
		return limit.rlim_cur;
	raise_sysctl("/proc/sys/fs/nr_open", want);
	more = limit;
	more.rlim_cur = want;
	if (more.rlim_max < want)
		more.rlim_max = want;
	if (!setrlimit(RLIMIT_NOFILE, &more))
		return want;
	/* This is not allowed: raise it as far as allowed. */
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur;
}

const char *module_advice(void)
{
	static char text[256];
	char build[128], headers[96] = "";
	struct utsname name;

	uname(&name);
	snprintf(build, sizeof(build), "/lib/modules/%s/build/", name.release);
	if (access(build, F_OK))
		snprintf(headers, sizeof(headers), " and linux-headers-%s", name.release);
	snprintf(text, sizeof(text),
		 "load the module: modprobe timerwheel; if it is not found, install timerwheel-dkms%s",
		 headers);
	return text;
}

void *xcalloc(size_t n, size_t size)
{
	void *memory = calloc(n, size);

	if (!memory)
		die("no memory for %zu x %zu bytes", n, size);
	return memory;
}
