/* SPDX-License-Identifier: GPL-2.0-only */
/* What the module knows of TCP connections: added by a later patch. */
#ifndef TW_TCP_H
#define TW_TCP_H

#include <linux/types.h>

static inline bool tw_tcp_supported(void)
{
	return false;
}

#endif /* TW_TCP_H */
