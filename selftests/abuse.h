/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by abuse, killed, limits and suspend: timers whose value is a function of their key */
#ifndef ABUSE_H
#define ABUSE_H

#include "tw_test.h"

#define TIMEOUT		600
#define PAGE		4096	/* timers in one call */
#define EV_SIZE		sizeof(struct timerwheel_event)

static inline int rounds(int by_default)
{
	const char *s = getenv("TW_ABUSE_ROUNDS");

	return by_default * (s && atoi(s) > 0 ? atoi(s) : 1);
}

static inline __u64 value_of(__u64 key)
{
	return ~key * 0x9e3779b97f4a7c15ULL;
}

/*
 * Arm keys @first to @first + @n - 1, key @first + i for the absolute time @deadline + i * @step.
 * Returns 0 or a negative error.
 */
static inline int arm(int fd, __u64 first, int n, __u64 deadline, __u64 step, __u64 period)
{
	struct timerwheel_add *add = calloc(PAGE, sizeof(*add));
	int i, k, some, ret = 0;

	for (i = 0; add && !ret && i < n; i += some) {
		some = n - i < PAGE ? n - i : PAGE;
		for (k = 0; k < some; k++) {
			add[k] = (struct timerwheel_add){
				.key = first + i + k, .value = value_of(first + i + k),
				.deadline = deadline + (i + k) * step, .period = period,
				.flags = TIMERWHEEL_ABS,
			};
		}
		ret = dev_add(fd, add, some);
		ret = ret == some ? 0 : ret < 0 ? ret : -EPROTO;
		for (k = 0; !ret && k < some; k++)
			ret = add[k].result;
	}
	free(add);
	return add ? ret : -ENOMEM;
}

/*
 * LIST all timers. @seen counts how often each key below @n was listed; @deadline, if not NULL,
 * gets the deadlines. Returns the number of timers or a negative error.
 */
static inline int list_all(int fd, unsigned char *seen, __u64 *deadline, __u64 n)
{
	struct timerwheel_entry *ent = malloc(PAGE * sizeof(*ent));
	__u64 cursor = 0;
	int i, ret, total = 0;

	memset(seen, 0, n);
	while ((ret = tw_list(fd, &cursor, ent, PAGE)) > 0 || ret == -EINTR) {
		for (i = 0; i < ret; i++) {
			if (ent[i].key >= n || ent[i].value != value_of(ent[i].key))
				return -EPROTO;
			seen[ent[i].key]++;
			if (deadline)
				deadline[ent[i].key] = ent[i].deadline;
			total++;
		}
	}
	free(ent);
	return ret < 0 ? ret : total;
}

/* Does LIST report keys @from to @to - 1, each once, and nothing else? */
static inline bool lists(int fd, int from, int to)
{
	unsigned char *seen = malloc(to + 1);
	int i, total = list_all(fd, seen, NULL, to);
	bool good = total == to - from;

	for (i = 0; good && i < to; i++)
		good = seen[i] == (i >= from);
	if (!good)
		fprintf(stderr, "# LIST: %d instead of %d; key %d\n", total, to - from, i - 1);
	free(seen);
	return good;
}

/* Memory charged to the user for all wheels, in bytes, as INFO of @fd reports it */
static inline __u64 user_memory(int fd)
{
	struct timerwheel_info info;

	return tw_info(fd, &info) ? ~0ULL : info.user_memory;
}

/* Wait until the charge is @want: a closed wheel is freed some time after close has returned. */
static inline bool user_memory_become(int fd, __u64 want)
{
	int i;

	for (i = 0; i < LONG_MS && user_memory(fd) != want; i++)
		tw_sleep(MSEC);
	return user_memory(fd) == want;
}

#endif /* ABUSE_H */
