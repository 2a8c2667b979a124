/* SPDX-License-Identifier: GPL-2.0 */
/* Is all of a file in order, and as the model says? */
#ifndef WALK_H
#define WALK_H

#include "model.h"

/* Returns the length of the longest chain. */
u32 walk(struct model *m);

#endif /* WALK_H */
