/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The calls of /dev/timerwheel as C functions. If a call fails, the function prints the reason and
 * what to do about it, and ends the program. This suits tools, but not a library.
 */
#ifndef TOOLS_WHEEL_H
#define TOOLS_WHEEL_H

#include <linux/types.h>
#include <linux/timerwheel.h>

/* A new wheel: non-blocking, closed on exec. */
int wheel_open(void);

/* Set a wheel up. The granted settings are written back. */
void wheel_setup(int wheel, struct timerwheel_setup *setup);

void wheel_info(int wheel, struct timerwheel_info *info);
void wheel_stats(int wheel, struct timerwheel_stats *stats);

/*
 * Wait until a worker has freed the memory of all wheels that this user has closed. No wheel of the
 * user may be open.
 */
void wheel_wait_freed(void);

/*
 * These process all elements, in as many calls as needed, and return the number of calls. The
 * result of each element is in the element.
 */
unsigned int wheel_add(int wheel, struct timerwheel_add *elems, __u32 count);
unsigned int wheel_move(int wheel, struct timerwheel_move *elems, __u32 count);
unsigned int wheel_remove(int wheel, struct timerwheel_remove *elems, __u32 count);

/* By handle; @flags are the flags of MOVE_HANDLE. */
unsigned int wheel_move_handle(int wheel, __u32 flags, struct timerwheel_move_handle *elems,
			       __u32 count);
unsigned int wheel_remove_handle(int wheel, struct timerwheel_remove_handle *elems, __u32 count);

/* Make one call. Returns the number of removed timers. */
__u32 wheel_drain(int wheel, __u32 flags, struct timerwheel_entry *elems, __u32 count);

/* Make one read. Returns the number of events; 0 if none waits. */
__u32 wheel_read(int wheel, struct timerwheel_event *events, __u32 count);

#endif /* TOOLS_WHEEL_H */
