/* SPDX-License-Identifier: GPL-2.0 */
/* Cases that are not random: large ones, and what they cost. */
#ifndef CASES_H
#define CASES_H

#include <linux/types.h>

/**
 * struct test_case - one of them
 * @name: what it tests
 * @run: does it; returns if all is well
 * @large: takes a second or more
 */
struct test_case {
	const char *name;
	void (*run)(void);
	bool large;
};

extern const struct test_case case_table[];
extern const unsigned int case_count;

#endif /* CASES_H */
