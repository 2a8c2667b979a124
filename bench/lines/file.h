/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file of the module in user space, with one base, and the functions of the module's files that
 * are not built here. ../native uses it, too.
 */
#ifndef LINES_FILE_H
#define LINES_FILE_H

#include <linux/types.h>

#define LINES_SLOTS	256U
#define LINES_TICK	1000000ULL
/* 2^19 ns are less than a tick; see tw_setup_generation_bits() */
#define LINES_BITS	19

/* The time, in ns */
extern u64 lines_now;

/**
 * lines_file - create a file
 * @now: the time
 * @ring: events in its ring; 0: no ring. The caller sets tw_ring.events to use it.
 * @table: it has a deadline table
 * @resident: its timers are resident
 */
struct tw_file *lines_file(u64 now, u32 ring, bool table, bool resident);

#endif /* LINES_FILE_H */
