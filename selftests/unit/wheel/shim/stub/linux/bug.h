/* SPDX-License-Identifier: GPL-2.0 */
/* Stub: a warning aborts the test. */
#ifndef SHIM_BUG_H
#define SHIM_BUG_H

#include <stdio.h>
#include <stdlib.h>

#define WARN_ON_ONCE(cond)						\
({									\
	bool _warn = (cond);						\
									\
	if (_warn) {							\
		printf("# WARN_ON_ONCE(%s) in %s\n", #cond, __func__);	\
		fflush(stdout);						\
		abort();						\
	}								\
	_warn;								\
})

#define WARN_ON(cond)	WARN_ON_ONCE(cond)

#endif /* SHIM_BUG_H */
