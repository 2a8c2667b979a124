// SPDX-License-Identifier: GPL-2.0
/*
 * restore: load a saved wheel into a running wheel.
 *
 * If the wheel's clock is the time of day, timers are armed for the times of day in the file. The
 * current time does not matter, because the clock may be corrected later. For other clocks, the
 * time since the save is subtracted from the time that was left. The saved clock shows how long
 * that is, unless the machine was booted since. After a boot only the time of day can show it.
 *
 * Either all timers are armed, or none: if one fails, armed timers are removed again, and replaced
 * timers are put back. Overdue timers come last, because an event that was read cannot be
 * withdrawn.
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
static struct timerwheel_entry *before;	/* the replaced timers; NULL with --excl */
static size_t nr_overdue;
static __s64 longest;
static int wheel_fd = -1;
static __u32 wheel_clock;
static __u64 day;		/* the time of day now */
static __s64 passed;		/* since the save; negative: the time of day is before it */
static const char *passed_by;	/* the clock or option that determines it */

/* --- preparation -------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
	const struct timerwheel_entry *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* Descending, so that overdue timers come last. */
static int by_left(const void *a, const void *b)
{
	const struct timerwheel_entry *x = a, *y = b;

	return (x->left < y->left) - (x->left > y->left);
}

static bool by_hand(__u32 clock)
{
	return clock == TIMERWHEEL_CLOCK_MANUAL;
}

/* The clock of the wheel, or the saved clock if the wheel is not set up yet. */
static __u32 find_clock(void)
{
	struct timerwheel_info info = { .size = sizeof(info) };

	if (!target_given())
		return saved.clock;
	wheel_fd = target_fd();
	if (ioctl(wheel_fd, TIMERWHEEL_IOC_INFO, &info) || !(info.flags & TIMERWHEEL_INFO_SETTLED))
		return saved.clock;
	return info.clock;
}

/* Has the clock of the saved wheel run without a break since the save? */
static bool same_boot(void)
{
	char boot[sizeof(saved.boot)];

	boot_id(boot, sizeof(boot));
	return *boot && !strcmp(boot, saved.boot) && saved.clock < TIMERWHEEL_CLOCK_REALTIME &&
	       clock_ns(saved.clock) >= saved.now;
}

/* Report a larger difference between two clocks, ns. */
#define DIFFERENCE	(60 * (__s64)NSEC_PER_SEC)

static void measure(const char *name)
{
	__s64 by_day;

	day = wall_ns();
	by_day = day - saved.time;
	passed = by_day;
	passed_by = "the time of day";
	if (by_day < 0 && !by_hand(saved.clock) && !opt.given[OPT_ELAPSED] &&
	    (wheel_clock == TIMERWHEEL_CLOCK_REALTIME || !same_boot()))
		say("%s was saved in the future: check the time of day. %s", name,
		    wheel_clock == TIMERWHEEL_CLOCK_REALTIME ?
		    "The timers are restored for the times of day in the file" :
		    "The times left are restored unchanged; use --elapsed TIME to give the time since the save");
	if (wheel_clock == TIMERWHEEL_CLOCK_REALTIME)
		return;
	if (by_hand(saved.clock)) {
		passed = 0;
	} else if (opt.given[OPT_ELAPSED]) {
		passed = opt.number[OPT_ELAPSED];
		passed_by = "--elapsed";
	} else if (same_boot()) {
		passed = clock_ns(saved.clock) - saved.now;
		passed_by = "the clock of the saved wheel";
		if (by_day - passed > DIFFERENCE || passed - by_day > DIFFERENCE)
			say("%s was saved %s ago according to the %s clock, and this time is used. The time of day has moved by %s since the save: it was set, or the machine was suspended",
			    name, span(passed), clock_text(saved.clock), span(by_day));
	} else if (passed < 0) {
		passed = 0;
	} else if (!saved.synchronized || !wall_synchronized()) {
		say("%s was saved %s ago according to the time of day, which is not known to have been right at the %s. If it was wrong, timers are early or late by its error: save and restore after time-sync.target, or use --elapsed TIME",
		    name, span(passed), saved.synchronized ? "restore" : "save");
	}
}

static void prepare(const char *name)
{
	size_t i;

	savefile_read(name, &saved);
	qsort(saved.timers, saved.count, sizeof(*saved.timers), by_key);
	for (i = 1; i < saved.count; i++) {
		if (saved.timers[i].key == saved.timers[i - 1].key)
			die("%s: timer %llu occurs twice; nothing was restored", name,
			    saved.timers[i].key);
	}
	wheel_clock = find_clock();
	if (opt.given[OPT_ELAPSED] && wheel_clock >= TIMERWHEEL_CLOCK_REALTIME)
		die("--elapsed is for wheels with a monotonic or boottime clock, and this one has a %s clock; nothing was restored",
		    clock_text(wheel_clock));
	measure(name);
	for (i = 0; i < saved.count; i++) {
		struct timerwheel_entry *e = &saved.timers[i];

		if (__builtin_sub_overflow(e->left, passed, &e->left) ||
		    e->left < -(__s64)TIMERWHEEL_TIME_MAX)
			e->left = (passed < 0 ? 1 : -1) * (__s64)TIMERWHEEL_TIME_MAX;
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
 * The deadline on a clock whose time is @now. A clock that has started again cannot represent an
 * earlier deadline. The timer is then due since the start of the clock or, if it is periodic, since
 * the first time that it would have fired after that, if this time has passed.
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

/* --- list of overdue timers --------------------------------------------- */

/* Number of further deadlines of a periodic timer that have passed. */
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
	if (wheel_clock < TIMERWHEEL_CLOCK_REALTIME)
		out_line("%s passed since the save, according to %s", span(passed), passed_by);
	json_open(NULL, '{');
	out_text(NULL, "clock", clock_text(saved.clock));
	out_number(NULL, "saved_ns", SHOW_NUMBER, saved.time);
	out_number(NULL, "passed_ns", SHOW_SPAN, passed);
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
		die("the saved wheel wakes the machine from suspend, and %s, or remove 'alarm' from the 'flags' line of the file; nothing was restored",
		    err == EPERM ? "this needs CAP_WAKE_ALARM: run as root" :
				   "no clock can wake this machine: use another machine");
	die("the wheel cannot be set up like the saved one (clock, tick, slots, capacity, flags): %s; nothing was restored",
	    strerror(err));
}

/* Set up a new wheel like the saved one. */
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
	int fd = wheel_fd, err;

	if (!ioctl(fd, TIMERWHEEL_IOC_INFO, &info) && !(info.flags & TIMERWHEEL_INFO_SETTLED) &&
	    ioctl(fd, TIMERWHEEL_IOC_SETUP, &setup))
		no_setup(errno);
	err = timerwheel_adopt(&wheel, fd, false);
	if (err)
		die("cannot use this wheel: %s", error_text(err));
	target_info(wheel, &info);
	if (by_hand(info.clock) != by_hand(saved.clock))
		die("the saved wheel has a %s clock, and this wheel has a %s clock, so the times left cannot be converted; nothing was restored",
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

/* Undo the changes, except for events that were already read. */
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
		say("%s of the timers were delivered or changed by other programs before they could be removed again",
		    commas(late));
}

/* Arm all timers. If one fails, report it, undo the others and return false. */
static bool arm(void)
{
	struct timerwheel_info info;
	size_t done = 0, i;
	__u64 now;
	long n;

	target_info(wheel, &info);
	/* The time left until a time of day counts from the time of its calculation. */
	now = info.clock == TIMERWHEEL_CLOCK_REALTIME ? day : info.now;
	adds = xcalloc(saved.count + 1, sizeof(*adds));
	for (i = 0; i < saved.count; i++) {
		const struct timerwheel_entry *e = &saved.timers[i];

		adds[i] = (struct timerwheel_add) {
			.key = e->key,
			.value = e->value,
			.deadline = deadline_of(e, now),
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
		usage("no wheel given: use --fd N for a descriptor of this shell, or --pid PID; only --check needs no wheel");
	prepare(argv[0]);
	if (opt.given[OPT_OVERDUE])
		write_overdue(opt.text[OPT_OVERDUE]);
	if (opt.given[OPT_CHECK]) {
		report("sound: ");
		return STATUS_DONE;
	}
	open_wheel();
	look_before();
	/* Block signals, so that Ctrl-C does not interrupt a restore halfway. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	armed = arm();
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (armed) {
		report("restored ");
		if (fflush(stdout) || ferror(stdout))
			die("the timers were restored, but the report cannot be written: %s",
			    strerror(errno));
	}
	timerwheel_close(wheel);
	return armed ? STATUS_DONE : STATUS_ERROR;
}
