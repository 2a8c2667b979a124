/* SPDX-License-Identifier: GPL-2.0 */
/* What one run of the driver is made of; with a seed it repeats the run exactly. */
#ifndef CONFIG_H
#define CONFIG_H

#include <linux/types.h>

/**
 * struct config - a run
 * @slots: slots per level
 * @timers: most timers at a time
 * @tick: length of a tick in ns
 * @ops: operations
 * @walk: walk through the whole wheel after every so many operations
 * @manual: a clock that stops at each tick
 * @bits: generation bits of the deadline table's words; 0: there is no table
 */
struct config {
	unsigned int slots;
	unsigned int timers;
	u64 tick;
	u64 ops;
	unsigned int walk;
	bool manual;
	unsigned int bits;
};

/* The runs of `make check`. */
extern const struct config config_table[];
extern const unsigned int config_count;

bool config_parse(struct config *c, const char *text);
int config_print(const struct config *c, char *text, size_t size);

#endif /* CONFIG_H */
