/* SPDX-License-Identifier: GPL-2.0 */
/* Failing: print what is wrong and how to repeat it, then abort. */
#ifndef FAIL_H
#define FAIL_H

__attribute__((noreturn, format(printf, 1, 2)))
void fail(const char *format, ...);

/* Let fail() call @print below its message; NULL: nothing is printed. */
void fail_context(void (*print)(const void *context), const void *context);

#define CHECK(cond, ...)			\
do {						\
	if (__builtin_expect(!(cond), 0))	\
		fail(__VA_ARGS__);		\
} while (0)

#endif /* FAIL_H */
