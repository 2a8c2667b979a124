/* SPDX-License-Identifier: GPL-2.0 */
/* How bytes get from one side of a connection to the other: splice(2), through a pipe. */
#ifndef PROXY_PUMP_H
#define PROXY_PUMP_H

#include <stdint.h>

#include "conn.h"

/** enum pumped - what became of it */
enum pumped {
	/** @PUMP_OK: as much as was there and fitted was passed on, or the end of file */
	PUMP_OK,
	/** @PUMP_BROKEN: one side is gone */
	PUMP_BROKEN,
	/** @PUMP_NO_PIPE: there was no pipe (errno) */
	PUMP_NO_PIPE
};

/**
 * pump - pass on what one side has said
 * @from: which
 * @to: the other
 * @moved: is set to how many bytes @to has taken
 *
 * Takes at most a pipe full, and no more before @to has taken all of it: that is how a slow
 * reader slows its writer down. An end of file is passed on once all before it is.
 */
enum pumped pump(struct side *from, struct side *to, uint64_t *moved);

#endif /* PROXY_PUMP_H */
