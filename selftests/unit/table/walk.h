/* SPDX-License-Identifier: GPL-2.0 */
/* Check all data structures of a file, and compare them with the model. */
#ifndef WALK_H
#define WALK_H

#include "model.h"

/* Returns the length of the longest hash chain. */
u32 walk(struct model *m);

#endif /* WALK_H */
