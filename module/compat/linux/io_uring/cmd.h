/* SPDX-License-Identifier: GPL-2.0-only */
/* linux/io_uring/cmd.h: changed in 6.8 (split off linux/io_uring.h). Not backported to 6.1. */
#include <linux/io_uring.h>
