/* SPDX-License-Identifier: GPL-2.0 */
/* Which connections there are: new ones get timers, those that have ended lose them. */
#ifndef GUARD_SCAN_H
#define GUARD_SCAN_H

/** scan_turn - look once */
void scan_turn(void);

#endif /* GUARD_SCAN_H */
