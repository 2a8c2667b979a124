/* SPDX-License-Identifier: GPL-2.0 */
/* Test cases that are not random: large wheels, and the cost of operations */
#ifndef CASES_H
#define CASES_H

#include <linux/types.h>

/**
 * struct test_case - a test case
 * @name: its name
 * @run: runs it; returns if it passes
 * @large: it takes a second or more
 */
struct test_case {
	const char *name;
	void (*run)(void);
	bool large;
};

extern const struct test_case case_table[];
extern const unsigned int case_count;

#endif /* CASES_H */
