// SPDX-License-Identifier: GPL-2.0
/* Points in time, as people write them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"

/* @2030-12-24T18:00[:05][Z]: false if it is not (errno is EINVAL) or too far away (ERANGE). */
static bool parse_date(const char *text, __u64 *ns)
{
	static const char *const formats[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M" };
	const char *end = NULL;
	struct tm tm;
	time_t time;
	size_t i;

	for (i = 0; !end && i < ARRAY_SIZE(formats); i++) {
		tm = (struct tm) { .tm_isdst = -1 };
		end = strptime(text, formats[i], &tm);
	}
	errno = EINVAL;
	if (!end || (*end && strcmp(end, "Z")))
		return false;
	time = *end ? timegm(&tm) : mktime(&tm);
	*ns = time < 0 ? 0 : time * NSEC_PER_SEC;
	errno = ERANGE;
	return time < (time_t)(TIMERWHEEL_TIME_MAX / NSEC_PER_SEC);
}

const char *when_parse(const char *text, const struct timerwheel_info *info, __u64 *deadline,
		       __u32 *flags)
{
	static const char beyond[] = "beyond the largest time, 292 years (as a date: in 2262)";
	__u64 time;

	if (*text != '@') {
		if (parse_duration(text, deadline))
			return NULL;
		if (errno == ERANGE)
			return beyond;
		return "not a time such as 250ms, 10s, 1h30m, @12.5 or @2030-12-24T18:00";
	}
	if (parse_duration(text + 1, deadline)) {
		*flags |= TIMERWHEEL_ABS;
		return NULL;
	}
	if (errno == ERANGE)
		return beyond;
	if (!parse_date(text + 1, &time))
		return errno == ERANGE ? beyond :
		       "not a time such as @12.5 (seconds of the clock) or @2030-12-24T18:00";
	switch (info->clock) {
	case TIMERWHEEL_CLOCK_REALTIME:
		*deadline = time;
		*flags |= TIMERWHEEL_ABS;
		return NULL;
	case TIMERWHEEL_CLOCK_MANUAL:
		return "a time of day, but the wheel's clock is manual: give @SECONDS";
	default:
		/* The clock of such a wheel knows no date: how long is it until then? */
		*deadline = time - wall_ns();	/* negative if that has passed */
		return NULL;
	}
}
