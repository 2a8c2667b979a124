// SPDX-License-Identifier: GPL-2.0
#include <stddef.h>

#include "peers.h"

const struct peer peers[] = {
	{ "key",	"timerwheel, by key, read",	&facility_timerwheel, .stores = true },
	{ "handle",	"timerwheel, by handle, read",	&facility_timerwheel_handle,
	  .stores = true },
	{ "mapped",	"timerwheel, table and ring",	&facility_timerwheel_mapped,
	  .stores = true },
	{ "resident",	"timerwheel, resident, ring",	&facility_resident, .stores = true },
	{ "library",	"library, in the process",	&native_library, .stores = true },
	{ "wheel",	"wheel in the process",		&native_wheel, .stores = true },
	{ "wheel-lazy",	"lazy wheel in the process",	&native_wheel_lazy, .stores = true },
	{ "conn",	"lazy wheel of connections",	&native_connections, .stores = true },
	{ "conn-ahead",	"the same with prefetching",	&native_connections_prefetch,
	  .stores = true },
	{ "heap",	"heap in the process",		&native_heap, .stores = true },
	{ "libev",	"libev",			&facility_libev },
	{ "libevent",	"libevent",			&facility_libevent },
	{ "libuv",	"libuv",			&facility_libuv },
	{ "asio",	"Boost.Asio",			&native_asio },
	{ "rte",	"DPDK rte_timer",		&native_rte, .real_time = true },
	{ }
};
