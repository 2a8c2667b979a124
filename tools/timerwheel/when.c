// SPDX-License-Identifier: GPL-2.0
/* Points in time in human notation. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"

static const char beyond[] = "beyond the largest time, 292 years (as a date: in 2262)";

/* Parse exactly @digits digits at the front of @text, and move @text behind them. */
static bool parse_digits(const char **text, int digits, int *number)
{
	*number = 0;
	for (; digits; digits--, (*text)++) {
		if (**text < '0' || **text > '9')
			return false;
		*number = 10 * *number + **text - '0';
	}
	return true;
}

/* Parse YYYY-MM-DDTHH:MM[:SS][Z] with exactly this number of digits, to avoid guesses. */
static bool parse_fields(const char *text, struct tm *tm, bool *utc)
{
	int year, month;

	*tm = (struct tm) {};
	if (!parse_digits(&text, 4, &year) || *text++ != '-' ||
	    !parse_digits(&text, 2, &month) || *text++ != '-' ||
	    !parse_digits(&text, 2, &tm->tm_mday) || *text++ != 'T' ||
	    !parse_digits(&text, 2, &tm->tm_hour) || *text++ != ':' ||
	    !parse_digits(&text, 2, &tm->tm_min))
		return false;
	if (*text == ':' && (text++, !parse_digits(&text, 2, &tm->tm_sec)))
		return false;
	tm->tm_year = year - 1900;
	tm->tm_mon = month - 1;
	*utc = !strcmp(text, "Z");
	return *utc || !*text;
}

/* mktime() and timegm() convert dates that do not exist: 30 February becomes 2 March. */
static bool same(const struct tm *a, const struct tm *b)
{
	return a->tm_year == b->tm_year && a->tm_mon == b->tm_mon && a->tm_mday == b->tm_mday &&
	       a->tm_hour == b->tm_hour && a->tm_min == b->tm_min && a->tm_sec == b->tm_sec;
}

/*
 * Find the points in time that local clocks show as @tm: none if the clocks skip it, two if they
 * are set back over it. mktime() would choose one, and not always the same one. @utc is @tm read as
 * UTC. The offsets of the day before and the day after are the two possible offsets.
 */
static int local_times(const struct tm *tm, time_t utc, time_t times[2])
{
	int i, count = 0;

	for (i = 0; i < 2; i++) {
		time_t near = utc + (i ? 86400 : -86400), time;
		struct tm local;

		if (!localtime_r(&near, &local))
			continue;
		time = utc - local.tm_gmtoff;
		if (localtime_r(&time, &local) && same(&local, tm) && !(count && times[0] == time))
			times[count++] = time;
	}
	return count;
}

/* The message for a local time that occurs twice. */
static const char *twice(const time_t times[2])
{
	static char text[160];
	char names[2][32];
	struct tm tm;
	int i;

	for (i = 0; i < 2; i++)
		strftime(names[i], sizeof(names[i]), "@%Y-%m-%dT%H:%M:%SZ",
			 gmtime_r(&times[i], &tm));
	snprintf(text, sizeof(text),
		 "this local time occurs twice, because clocks are set back: use %s or %s",
		 names[0], names[1]);
	return text;
}

/* Parse a date and time of day. Returns what is wrong with it, or NULL. */
static const char *parse_date(const char *text, __u64 *ns)
{
	time_t times[2];
	struct tm tm, again;
	bool utc;
	int count;

	if (!parse_fields(text, &tm, &utc))
		return "not a time such as @12.5 or @2030-12-24T18:00 (with Z at the end: UTC)";
	again = tm;
	times[0] = timegm(&again);
	if (!same(&again, &tm))
		return "there is no such date or time of day: check its numbers";
	count = utc ? 1 : local_times(&tm, times[0], times);
	if (!count)
		return "no such local time, because clocks are set forward: use another one";
	if (count > 1)
		return twice(times);
	if (times[0] < 0)
		return "before 1970, so no clock can show it: check the year";
	if (times[0] >= (time_t)(TIMERWHEEL_TIME_MAX / NSEC_PER_SEC))
		return beyond;
	*ns = times[0] * NSEC_PER_SEC;
	return NULL;
}

const char *when_parse(const char *text, const struct timerwheel_info *info, __u64 *deadline,
		       __u32 *flags)
{
	const char *wrong;
	__u64 time;

	if (*text != '@') {
		if (parse_duration(text, deadline))
			return NULL;
		if (errno == ERANGE)
			return beyond;
		if (*text == '-')
			return "times from now begin at 0, which is due at once";
		return "not a time such as 250ms, 10s, 1h30m, @12.5 or @2030-12-24T18:00";
	}
	if (parse_duration(text + 1, deadline)) {
		*flags |= TIMERWHEEL_ABS;
		return NULL;
	}
	if (errno == ERANGE)
		return beyond;
	wrong = parse_date(text + 1, &time);
	if (wrong)
		return wrong;
	switch (info->clock) {
	case TIMERWHEEL_CLOCK_REALTIME:
		*deadline = time;
		*flags |= TIMERWHEEL_ABS;
		return NULL;
	case TIMERWHEEL_CLOCK_MANUAL:
		return "a time of day, but the wheel's clock is manual: give @SECONDS";
	default:
		/* The clock of this wheel has no dates, so compute the time until then. */
		*deadline = time - wall_ns();	/* negative if that has passed */
		return NULL;
	}
}
