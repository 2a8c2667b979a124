/* SPDX-License-Identifier: GPL-2.0 */
/* Stub: there is one thread, so nothing is replaced while it is read. */
#ifndef SHIM_RCUPDATE_H
#define SHIM_RCUPDATE_H

#define __rcu
#define rcu_dereference_raw(p)		(p)
#define rcu_assign_pointer(p, v)	((p) = (v))

#endif /* SHIM_RCUPDATE_H */
