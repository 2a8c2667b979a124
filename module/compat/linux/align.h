/* SPDX-License-Identifier: GPL-2.0-only */
/* linux/align.h: changed in 5.11 (split off linux/kernel.h). Not backported to 5.10. */
#include <linux/kernel.h>
