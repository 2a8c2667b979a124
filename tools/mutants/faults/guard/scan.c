# SPDX-License-Identifier: GPL-2.0
ports: those of all processes; guard/run:finds; s/^\t\tif (wanted\[i\].pid)$/\t\tif (1)/
ended: its timers stay; guard/run:finds; s/if (seen < conns_count())/if (0)/
skip: a list is taken each time; guard/run:nothing_new; s/++skipped % SKIP_MAX/0/
skip: what was not accepted yet is forgotten; guard/run:stopped_daemon; s/unfinished |= diag_waits(msg);/;/
ports: those of connections are forgotten; guard/run:listens_no_more; s/^\tconns_each(keep_port);/\t;/
ports: those of any connection; guard/run:restart_other_process; s/conn->pid || conn->tries < TRIES_MAX/1/
ports: without one, looked for as seldom; guard/run:listens_later; s/ \&\& !said \&\&/ \&\&/
tries: what was not found is not looked for later; guard/run:handed_over; s/ \&\& number % TRIES_AGAIN)/)/
tries: counted each time; guard/run:handed_over; s/unreachable += conn->tries == TRIES_MAX/unreachable += 1/
