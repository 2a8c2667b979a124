/* SPDX-License-Identifier: GPL-2.0 */
/* Invariants of a wheel's lists, bitmaps and counters, checked by walking through all of it. */
#ifndef CHECK_H
#define CHECK_H

#include "model.h"
#include "rig.h"

void check_wheel(const struct rig *r, struct model *m, u64 now, bool exact);
void check_due(const struct rig *r, const struct model *m);

#endif /* CHECK_H */
