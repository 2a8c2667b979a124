/* SPDX-License-Identifier: GPL-2.0 */
/* Hash chains of keys in patterns. */
#ifndef HASH_H
#define HASH_H

#include <linux/types.h>

/* Hash patterns of keys with @seeds seeds each; the seeds come from @source. */
void hash_run(unsigned int seeds, u64 source);

#endif /* HASH_H */
