# SPDX-License-Identifier: GPL-2.0
ports: those of all processes; guard/run:finds; s/^\t\tif (wanted\[i\].pid)$/\t\tif (1)/
ended: its timers stay; guard/run:finds; s/if (seen < conns_count())/if (0)/
skip: a list is taken each time; guard/run:nothing_new; s/++skipped % SKIP_MAX/0/
skip: what was not accepted yet is forgotten; guard/run:stopped_daemon; s/unfinished |= diag_waits(msg);/;/
