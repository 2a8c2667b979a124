// SPDX-License-Identifier: GPL-2.0
/*
 * restore: a saved wheel back into one that runs.
 *
 * The wheel's clock may have begun anew since, but the time of day went on: so much as that has
 * passed is taken off what was left. All timers are armed or, if one cannot be, none: what was
 * armed is removed again, and what was replaced is put back. Those that are overdue come last,
 * for their events cannot be taken back once somebody has read them.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/ioctl.h>

#include "cli.h"

#define BATCH	4096

static struct saved saved;
static struct timerwheel *wheel;
static struct timerwheel_add *adds;	/* in the order of the file's timers */
static struct timerwheel_entry *before;	/* what was there; NULL with --excl */
static size_t nr_overdue;
static __s64 longest;

/* --- what there is to do ------------------------------------------------ */

static int by_key(const void *a, const void *b)
{
	const struct timerwheel_entry *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* What has passed is taken off; then those that are overdue are behind all others. */
static int by_left(const void *a, const void *b)
{
	const struct timerwheel_entry *x = a, *y = b;

	return (x->left < y->left) - (x->left > y->left);
}

static bool by_hand(__u32 clock)
{
	return clock == TIMERWHEEL_CLOCK_MANUAL;
}

static void prepare(const char *name)
{
	__u64 now = wall_ns(), passed = 0;
	size_t i;

	savefile_read(name, &saved);
	qsort(saved.timers, saved.count, sizeof(*saved.timers), by_key);
	for (i = 1; i < saved.count; i++) {
		if (saved.timers[i].key == saved.timers[i - 1].key)
			die("%s: timer %llu occurs twice; nothing was restored", name,
			    saved.timers[i].key);
	}
	/* A clock that is moved by hand stood still. */
	if (!by_hand(saved.clock) && now > saved.time)
		passed = now - saved.time;
	if (!by_hand(saved.clock) && now < saved.time)
		say("%s was saved in the future: check the time of day. The times left are restored unchanged",
		    name);
	for (i = 0; i < saved.count; i++) {
		struct timerwheel_entry *e = &saved.timers[i];

		if (__builtin_sub_overflow(e->left, passed, &e->left) ||
		    e->left < -(__s64)TIMERWHEEL_TIME_MAX)
			e->left = -(__s64)TIMERWHEEL_TIME_MAX;
		if (e->left > 0)
			continue;
		nr_overdue++;
		if (-e->left > longest)
			longest = -e->left;
		e->value |= opt.number[OPT_OVERDUE_MARK];
	}
	qsort(saved.timers, saved.count, sizeof(*saved.timers), by_left);
}

/*
 * The deadline on a clock that says @now. A clock that began anew cannot say when a timer was due
 * before that: then it is due since the beginning, or, if it is periodic, since the first time
 * that it would have fired, if that has passed.
 */
static __u64 deadline_of(const struct timerwheel_entry *e, __u64 now)
{
	__u64 ago = -e->left, missing;

	if (e->left > 0)
		return now + e->left;
	if (ago <= now)
		return now - ago;
	if (!e->period)
		return 0;
	missing = (ago - now) % e->period;
	missing = missing ? e->period - missing : 0;
	return missing <= now ? missing : 0;
}

/* --- a list of what is overdue ------------------------------------------ */

/* How many more deadlines of a periodic timer have passed. */
static __u64 missed(const struct timerwheel_entry *e)
{
	return e->period ? -e->left / e->period : 0;
}

static void write_overdue(const char *name)
{
	FILE *file = strcmp(name, "-") ? fopen(name, "we") : stdout;
	size_t i;

	if (!file)
		die("cannot write %s: %s; nothing was restored", name, strerror(errno));
	for (i = saved.count - nr_overdue; i < saved.count; i++) {
		const struct timerwheel_entry *e = &saved.timers[i];

		fprintf(file, "%llu %llu %lld %llu\n", e->key, e->value, -e->left, missed(e));
	}
	if (fflush(file) || ferror(file) || (file != stdout && fclose(file)))
		die("cannot write %s: %s; nothing was restored", name, strerror(errno));
}

static void report(const char *name)
{
	size_t i;

	if (nr_overdue)
		out_line("%s%s timer%s, %s of them overdue, the longest by %s",
			 name, commas(saved.count), saved.count == 1 ? "" : "s",
			 commas(nr_overdue), span(longest));
	else
		out_line("%s%s timer%s, none of them overdue", name, commas(saved.count),
			 saved.count == 1 ? "" : "s");
	json_open(NULL, '{');
	out_text(NULL, "clock", clock_text(saved.clock));
	out_number(NULL, "saved_ns", SHOW_NUMBER, saved.time);
	out_number(NULL, "timers", SHOW_NUMBER, saved.count);
	out_number(NULL, "overdue", SHOW_NUMBER, nr_overdue);
	json_open("overdue_timers", '[');
	for (i = saved.count - nr_overdue; i < saved.count && opt.given[OPT_JSON]; i++) {
		json_open(NULL, '{');
		out_number(NULL, "key", SHOW_NUMBER, saved.timers[i].key);
		out_number(NULL, "value", SHOW_NUMBER, saved.timers[i].value);
		out_number(NULL, "overdue_ns", SHOW_NUMBER, -saved.timers[i].left);
		out_number(NULL, "missed", SHOW_NUMBER, missed(&saved.timers[i]));
		json_close();
	}
	json_close();
	json_close();
}

/* --- arming, and undoing it --------------------------------------------- */

static noreturn void no_setup(int err)
{
	if (err == EPERM || err == EOPNOTSUPP)
		die("the saved wheel wakes the machine from suspend, and %s, or remove 'alarm' from its line 'flags'; nothing was restored",
		    err == EPERM ? "this needs CAP_WAKE_ALARM: run as root" :
				   "no clock can wake this machine: use another machine");
	die("the wheel cannot be set up like the saved one (clock, tick, slots, capacity, flags): %s; nothing was restored",
	    strerror(err));
}

/* A wheel that was only opened so far is made like the one that was saved. */
static void open_wheel(void)
{
	struct timerwheel_info info = { .size = sizeof(info) };
	struct timerwheel_setup setup = {
		.size = sizeof(setup),
		.clock = saved.clock,
		.slots = saved.slots,
		.tick = saved.tick,
		.capacity = saved.capacity,
		.slack = saved.slack,
		.flags = saved.flags,
	};
	int fd = target_fd(), err;

	if (!ioctl(fd, TIMERWHEEL_IOC_INFO, &info) && !(info.flags & TIMERWHEEL_INFO_SETTLED) &&
	    ioctl(fd, TIMERWHEEL_IOC_SETUP, &setup))
		no_setup(errno);
	err = timerwheel_adopt(&wheel, fd, false);
	if (err)
		die("cannot use this wheel: %s", error_text(err));
	target_info(wheel, &info);
	if (by_hand(info.clock) != by_hand(saved.clock))
		die("the saved wheel has a %s clock, this one a %s clock, so the times left cannot be converted; nothing was restored",
		    clock_text(saved.clock), clock_text(info.clock));
}

static void look_before(void)
{
	size_t i;
	long n;

	if (opt.given[OPT_EXCL])
		return;
	before = xcalloc(saved.count + 1, sizeof(*before));
	for (i = 0; i < saved.count; i++)
		before[i].key = saved.timers[i].key;
	n = timerwheel_get(wheel, before, saved.count);
	if (n < (long)saved.count)
		die("GET: %s; nothing was restored", error_text(n < 0 ? n : -EINTR));
}

/* Put things back as they were, as far as nobody has read the events. */
static void undo(size_t count)
{
	size_t i, late = 0;

	for (i = 0; i < count; i++) {
		struct timerwheel_remove gone = {
			.key = adds[i].key,
			.match = adds[i].value,
			.flags = TIMERWHEEL_MATCH,
		};

		if (adds[i].result < 0)
			continue;
		if (timerwheel_remove(wheel, &gone, 1) != 1 || gone.result < 0)
			late++;
		if (before && before[i].result > 0)
			put_back(wheel, &before[i], 1);
	}
	if (late)
		say("%s of the timers were delivered or changed by others before they could be removed again",
		    commas(late));
}

/* Arm all of them; false: one could not be, which is said, and none is. */
static bool arm(void)
{
	struct timerwheel_info info;
	size_t done = 0, i;
	long n;

	target_info(wheel, &info);
	adds = xcalloc(saved.count + 1, sizeof(*adds));
	for (i = 0; i < saved.count; i++) {
		const struct timerwheel_entry *e = &saved.timers[i];

		adds[i] = (struct timerwheel_add) {
			.key = e->key,
			.value = e->value,
			.deadline = deadline_of(e, info.now),
			.period = e->period,
			.slack = e->slack,
			.flags = TIMERWHEEL_ABS | TIMERWHEEL_SLACK |
				 (opt.given[OPT_EXCL] ? TIMERWHEEL_EXCL : 0),
		};
	}
	while (done < saved.count) {
		n = timerwheel_add(wheel, adds + done,
				   saved.count - done < BATCH ? saved.count - done : BATCH);
		if (n == -EINTR)
			continue;
		if (n < 0) {
			undo(done);
			say("ADD: %s; nothing was restored", error_text(n));
			return false;
		}
		for (i = done; i < done + n && adds[i].result >= 0; i++)
			;
		done += n;
		if (i < done) {
			undo(done);
			say("timer %llu: %s; nothing was restored", adds[i].key,
			    error_text(adds[i].result));
			return false;
		}
	}
	return true;
}

int command_restore(int argc, char **argv)
{
	sigset_t all, old;
	bool armed;

	if (argc != 1)
		usage("one FILE is required; - is the standard input");
	if (opt.given[OPT_JSON] && opt.given[OPT_OVERDUE] && !strcmp(opt.text[OPT_OVERDUE], "-"))
		usage("--json lists overdue timers on the standard output: use --overdue with a file");
	if (!opt.given[OPT_CHECK] && !target_given())
		usage("no wheel given: use --fd N for a descriptor of this shell, or --pid PID; only --check needs none");
	prepare(argv[0]);
	if (opt.given[OPT_OVERDUE])
		write_overdue(opt.text[OPT_OVERDUE]);
	if (opt.given[OPT_CHECK]) {
		report("sound: ");
		return STATUS_DONE;
	}
	open_wheel();
	look_before();
	/* Not half of it because somebody has pressed Ctrl-C. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	armed = arm();
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (armed) {
		report("restored ");
		if (fflush(stdout) || ferror(stdout))
			die("the timers were restored, but that cannot be written: %s",
			    strerror(errno));
	}
	timerwheel_close(wheel);
	return armed ? STATUS_DONE : STATUS_ERROR;
}
