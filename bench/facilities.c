// SPDX-License-Identifier: GPL-2.0
/* All facilities, in the order of the tables. */
#include <stddef.h>
#include <string.h>

#include "facility.h"

const struct facility * const facilities[] = {
	&facility_timerwheel,
	&facility_timerwheel_handle,
	&facility_timerwheel_mapped,
	&facility_resident,
	&facility_resident_shared,
	&facility_timerfd,
	&facility_timerfd_1ms,
	&facility_timerfd_leases,
	&facility_posix,
	&facility_uring,
	&facility_libevent,
	&facility_libevent_common,
	&facility_libuv,
	&facility_libev,
	&facility_glib,
	&facility_heap,
	&facility_wheel,
	&facility_heap_lazy,
	&facility_wheel_lazy,
	&facility_heap_shared,
	&facility_wheel_shared,
	&facility_heap_lazy_shared,
	&facility_wheel_lazy_shared,
	&facility_wheel_messages,
	&facility_wheel_memory,
	NULL
};

const struct facility *facility_named(const char *name)
{
	int i;

	for (i = 0; facilities[i]; i++) {
		if (!strcmp(facilities[i]->name, name))
			return facilities[i];
	}
	return NULL;
}
