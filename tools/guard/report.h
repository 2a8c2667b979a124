/* SPDX-License-Identifier: GPL-2.0 */
/* The report: a line for each connection that was warned of, ended, or would have been. */
#ifndef GUARD_REPORT_H
#define GUARD_REPORT_H

#include "conns.h"
#include "counters.h"
#include "options.h"

/** report_open - open the file of --log; ends the process with a message if it cannot */
void report_open(void);

/**
 * report - a line
 * @conn: the connection
 * @kind: which timeout
 * @action: what happened
 * @ns: for how long it has been idle, half-closed or there
 */
void report(const struct conn *conn, enum kind kind, enum action action, uint64_t ns);

/** report_flush - write the lines; what is not taken at once is lost, and counted */
void report_flush(void);

/** action_names - of each action, in lines of the report and metrics */
extern const char *const action_names[ACTIONS];

#endif /* GUARD_REPORT_H */
