/* SPDX-License-Identifier: GPL-2.0 */
/* Which connections there are: new ones get timers, those that have ended lose them. */
#ifndef GUARD_SCAN_H
#define GUARD_SCAN_H

#include <stdbool.h>

/** scan_turn - begin to look once; not while scan_busy() */
void scan_turn(void);

/** scan_busy - is there a worker? Until it ends the scan waits; the guard does not. */
bool scan_busy(void);

/**
 * scan_waits - was no port found in the last scan?
 *
 * Return: true if none of the chosen processes listens on a TCP port, and no port was chosen.
 */
bool scan_waits(void);

/** scan_go_on - go on with a scan if its worker has ended */
void scan_go_on(void);

#endif /* GUARD_SCAN_H */
