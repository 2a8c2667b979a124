/* SPDX-License-Identifier: GPL-2.0 */
/* Stub: one thread, so nothing is read while it is replaced. */
#ifndef SHIM_RCUPDATE_H
#define SHIM_RCUPDATE_H

#define __rcu
#define rcu_dereference_raw(p)		(p)
#define rcu_assign_pointer(p, v)	((p) = (v))

#endif /* SHIM_RCUPDATE_H */
