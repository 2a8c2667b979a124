/* SPDX-License-Identifier: GPL-2.0 */
/* A walk through all of a wheel that checks the invariants of its lists, bitmaps and counters */
#ifndef CHECK_H
#define CHECK_H

#include "model.h"
#include "rig.h"

void check_wheel(const struct rig *r, struct model *m, u64 now, bool exact);
void check_due(const struct rig *r, const struct model *m);

#endif /* CHECK_H */
