/* SPDX-License-Identifier: GPL-2.0 */
/* Same meaning as the kernel's: the message is optional. */
#ifndef SHIM_BUILD_BUG_H
#define SHIM_BUILD_BUG_H

#undef static_assert
#define static_assert(expr, ...)		SHIM_ASSERT(expr, ## __VA_ARGS__, #expr)
/* One argument or two */
#define SHIM_ASSERT(expr, msg, ...)		_Static_assert(expr, msg)

#define BUILD_BUG_ON(cond)			_Static_assert(!(cond), #cond)

#endif /* SHIM_BUILD_BUG_H */
