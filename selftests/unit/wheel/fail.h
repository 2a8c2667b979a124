/* SPDX-License-Identifier: GPL-2.0 */
/* One way to fail: say what is wrong and how to repeat it, then end the process. */
#ifndef FAIL_H
#define FAIL_H

__attribute__((noreturn, format(printf, 1, 2)))
void fail(const char *format, ...);

/* What fail() prints below its message; @context may be NULL. */
void fail_context(void (*print)(const void *context), const void *context);

#define CHECK(cond, ...)			\
do {						\
	if (__builtin_expect(!(cond), 0))	\
		fail(__VA_ARGS__);		\
} while (0)

#endif /* FAIL_H */
