/* SPDX-License-Identifier: GPL-2.0-only */
/* Reports about a wheel: INFO, STATS, fdinfo. See stats.c. */
#ifndef TW_STATS_H
#define TW_STATS_H

struct file;
struct seq_file;
struct timerwheel_info;
struct timerwheel_stats;
struct tw_file;

void tw_stats_get(struct tw_file *file, struct timerwheel_stats *stats);
void tw_stats_info(struct tw_file *file, struct timerwheel_info *info);
void tw_stats_show(struct seq_file *m, struct file *filp);

#endif /* TW_STATS_H */
