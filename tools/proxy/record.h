/* SPDX-License-Identifier: GPL-2.0 */
/* The connection log: a line for each connection that has ended. */
#ifndef PROXY_RECORD_H
#define PROXY_RECORD_H

#include "conn.h"

/** end_names - names of enum end in the log and in the metrics */
extern const char *const end_names[ENDS];

/**
 * records_open - open the file of --log
 *
 * Ends the process with a message if it fails.
 */
void records_open(void);

/**
 * records_close - wait until all lines are written
 *
 * No thread may log after this.
 */
void records_close(void);

/**
 * records_lost - number of lines that could not be written to a regular file
 *
 * The counters of the threads contain the other lines that were lost.
 *
 * Return: the number.
 */
uint64_t records_lost(void);

/**
 * record - log a connection
 * @conn: the connection
 * @end: how it ended
 */
void record(const struct conn *conn, enum end end);

/**
 * records_flush - write the log lines of this turn
 * @loop: the calling thread
 */
void records_flush(struct loop *loop);

#endif /* PROXY_RECORD_H */
