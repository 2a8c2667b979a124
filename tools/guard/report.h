/* SPDX-License-Identifier: GPL-2.0 */
/* The report: a line for each warning and for each connection that was or would have been ended. */
#ifndef GUARD_REPORT_H
#define GUARD_REPORT_H

#include "conns.h"
#include "counters.h"
#include "options.h"

/** report_open - open the file of --log; ends the process with a message if it fails */
void report_open(void);

/**
 * report - write a line
 * @conn: the connection
 * @kind: the timeout
 * @action: the action
 * @ns: time for which it has been idle, half-closed or known
 */
void report(const struct conn *conn, enum kind kind, enum action action, uint64_t ns);

/** report_flush - write the lines; those that are not accepted immediately are lost and counted */
void report_flush(void);

/** action_names - names of enum action in the report and metrics */
extern const char *const action_names[ACTIONS];

#endif /* GUARD_REPORT_H */
