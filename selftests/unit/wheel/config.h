/* SPDX-License-Identifier: GPL-2.0 */
/* The configuration of a run of the driver; together with a seed it repeats the run exactly. */
#ifndef CONFIG_H
#define CONFIG_H

#include <linux/types.h>

/**
 * struct config - the configuration of a run
 * @slots: slots per level
 * @timers: maximum number of timers at a time
 * @tick: length of a tick in ns
 * @ops: number of operations
 * @walk: number of operations between walks through the whole wheel
 * @manual: the clock stops at each tick, like MANUAL
 * @bits: bits of an entry of the deadline table that hold the generation; 0: there is no table
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

/* The runs of `make check' */
extern const struct config config_table[];
extern const unsigned int config_count;

bool config_parse(struct config *c, const char *text);
int config_print(const struct config *c, char *text, size_t size);

#endif /* CONFIG_H */
