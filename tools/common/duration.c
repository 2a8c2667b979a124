// SPDX-License-Identifier: GPL-2.0
/* Durations in human notation: one or more numbers with a unit each, such as 1h30m. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util.h"

static const struct unit {
	const char *name;
	__u64 ns;
} units[] = {
	{ "ns", 1 },
	{ "us", NSEC_PER_USEC },
	{ "ms", NSEC_PER_MSEC },
	{ "s", NSEC_PER_SEC },
	{ "min", 60 * NSEC_PER_SEC },
	{ "m", 60 * NSEC_PER_SEC },
	{ "h", 3600 * NSEC_PER_SEC },
	{ "d", 24 * 3600 * NSEC_PER_SEC },
	{ "w", 7 * 24 * 3600 * NSEC_PER_SEC },
};

/* Parse the name of a unit, and move *text behind it. Returns 0 if there is no such unit. */
static __u64 parse_unit(const char **text)
{
	size_t length = strspn(*text, "abcdefghijklmnopqrstuvwxyz");
	size_t i;

	for (i = 0; i < ARRAY_SIZE(units); i++) {
		if (strlen(units[i].name) == length && !strncmp(*text, units[i].name, length)) {
			*text += length;
			return units[i].ns;
		}
	}
	return 0;
}

static bool fail(int error)
{
	errno = error;
	return false;
}

/*
 * Whole numbers are exact, which a double would not be. The part behind the point is less than a
 * unit, so a double is sufficient.
 */
bool parse_duration(const char *text, __u64 *ns)
{
	bool first = true, large = false;
	__u64 sum = 0;

	do {
		__u64 whole = 0, unit;
		double part = 0, place = 1;
		const char *start = text;

		for (; *text >= '0' && *text <= '9'; text++)
			large |= __builtin_mul_overflow(whole, 10, &whole) ||
				 __builtin_add_overflow(whole, *text - '0', &whole);
		if (*text == '.') {
			for (text++; *text >= '0' && *text <= '9'; text++)
				part += (*text - '0') * (place /= 10);
			if (text == start + 1)
				return fail(EINVAL);
		}
		if (text == start)
			return fail(EINVAL);
		unit = first && !*text ? NSEC_PER_SEC : parse_unit(&text);
		if (!unit)
			return fail(EINVAL);
		large |= __builtin_mul_overflow(whole, unit, &whole) ||
			 __builtin_add_overflow(sum, whole, &sum) ||
			 __builtin_add_overflow(sum, (__u64)(part * unit + 0.5), &sum) || sum >> 63;
		first = false;
	} while (*text);
	if (large)
		return fail(ERANGE);
	*ns = sum;
	return true;
}

/* Three digits, rounded down: "1.23s", "12.3s", "123ms", "2ms". */
static const char *three_digits(const char *sign, __u64 ns, const struct unit *unit)
{
	int digits = ns >= 100 * unit->ns ? 0 : ns >= 10 * unit->ns ? 1 : 2;
	char *text = text_buffer();
	__u64 scale = 1, value;
	int i;

	for (i = 0; i < digits; i++)
		scale *= 10;
	value = ns * scale / unit->ns;
	for (; digits && value % 10 == 0; digits--) {
		value /= 10;
		scale /= 10;
	}
	if (digits)
		snprintf(text, TEXT_LENGTH, "%s%llu.%0*llu%s", sign, value / scale, digits,
			 value % scale, unit->name);
	else
		snprintf(text, TEXT_LENGTH, "%s%llu%s", sign, value, unit->name);
	return text;
}

/* For a minute and more: the largest unit and the next one, "1m30s", "3h", "2d4h". */
static const char *two_units(const char *sign, __u64 ns)
{
	static const struct unit *const large[] = { &units[7], &units[6], &units[5], &units[3] };
	char *text = text_buffer();
	__u64 rest;
	size_t i;

	for (i = 0; ns < large[i]->ns; i++)
		;
	rest = ns % large[i]->ns / large[i + 1]->ns;
	if (rest)
		snprintf(text, TEXT_LENGTH, "%s%llu%s%llu%s", sign, ns / large[i]->ns,
			 large[i]->name, rest, large[i + 1]->name);
	else
		snprintf(text, TEXT_LENGTH, "%s%llu%s", sign, ns / large[i]->ns, large[i]->name);
	return text;
}

const char *span(__s64 ns)
{
	const char *sign = ns < 0 ? "-" : "";
	__u64 size = ns < 0 ? -(__u64)ns : (__u64)ns;
	size_t i = 0;

	if (!size)
		return "0s";
	if (size >= 60 * NSEC_PER_SEC)
		return two_units(sign, size);
	while (i < 3 && size >= units[i + 1].ns)
		i++;
	return three_digits(sign, size, &units[i]);
}
