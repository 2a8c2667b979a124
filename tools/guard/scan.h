/* SPDX-License-Identifier: GPL-2.0 */
/* Find connections: arm timers for new ones, and remove the timers of those that have ended. */
#ifndef GUARD_SCAN_H
#define GUARD_SCAN_H

#include <stdbool.h>

/** scan_turn - begin a scan; must not be called while scan_busy() */
void scan_turn(void);

/** scan_busy - is there a worker? The scan waits for its end, but the guard does not. */
bool scan_busy(void);

/**
 * scan_waits - did the last scan find no port?
 *
 * Return: true if none of the chosen processes listens on a TCP port, and no port was chosen.
 */
bool scan_waits(void);

/** scan_go_on - continue a scan if its worker has ended */
void scan_go_on(void);

#endif /* GUARD_SCAN_H */
