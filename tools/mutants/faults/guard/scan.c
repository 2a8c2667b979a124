# SPDX-License-Identifier: GPL-2.0
ports: the addresses of all processes; guard/run:finds; s/^\t\tif (!wanted\[i\].pid)$/\t\tif (0)/
ended: its timers stay; guard/run:finds; s/if (seen < conns_count())/if (0)/
skip: a list is taken each time; guard/run:nothing_new; s/++skipped % SKIP_MAX/0/
skip: what was not accepted yet is forgotten; guard/run:stopped_daemon; s/unfinished |= diag_waits(msg);/;/
ports: those of connections are forgotten; guard/run:listens_no_more; s/^\tconns_each(keep_port);/\t;/
ports: those of any connection; guard/run:restart_other_process; s/conn->pid || conn->tries < TRIES_MAX/1/
ports: without one, looked for as seldom; guard/run:listens_later; s/ \&\& !ports.said \&\&/ \&\&/
tries: what was not found is not looked for later; guard/run:handed_over; s/ \&\& number % TRIES_AGAIN)/)/
tries: counted each time; guard/run:handed_over; s/if (++conn->tries < TRIES_MAX)/if (++conn->tries < 0)/
namespaces: not looked at with a port; guard/run:other_namespace; s/^\t\t\towners_refresh();/\t\t\t;/
ports: not looked for where nothing listens; guard/run:nothing_runs; s/^\tstatic uint64_t last = UINT64_MAX;$/\tstatic uint64_t last;/
group: those left over wait for a later turn; guard/run:few_descriptors; s/now == left \&\& i/i/
group: all processes of root; guard/run:not_a_socket; s/(one->uid || one->pid == group.pid)/1/
worker: what it counts is lost; guard/run:moved_descriptor; s/sum\[i\] += count\[i\];/;/
take over: what has ended is known again; guard/run:ends_meanwhile; s/^\t\ttimers_drop(conn);/\t\t;/
killed: the timers that it has armed are forgotten; guard/run:worker_killed; s/^\telse if (taking)$/\telse if (0)/
unsupported: no process is named; guard/run:unsupported; s/^\t\tconn->pid = wanted\[i\].pid;/\t\t;/
list: the last process visited is to blame; guard/run:no_list; /No process is to blame/,/begin/s/worker_visit(0, "");/;/
accepted: each connection with the port; guard/run:own_connections; s/ || listens_on(&at);/ || true;/
ports: only as many as the filter has; guard/run:many_listeners; s/ports.more ? 0 : ports.nr/ports.nr/
former: the addresses are forgotten; guard/run:accepted_before_close guard/run:accepts_one; s/^\tformer = places;$/\tformer.nr = 0;/
places: the next worker does not get them; guard/run:accepts_one; s/add_place(\&places, \&at\[i\]);/;/
former: not in the filter; guard/run:accepts_one; s/add_port(ntohs(former.at\[i\].v4.sin_port));/;/
orphans: not listed; guard/run:restart_orphans; s/ || (conn->armed \&\& timers_same_choice());/;/
orphans: counted and without timers; guard/run:restart_orphans; s/one->reason == REASON_NOT_FOUND \&\& conn->armed \&\& timers_same_choice()/0/
choice: never marked; guard/run:restart_orphans; s/number == TRIES_MAX)/0)/
choice: marked before the former timers are removed; guard/run:restart_other_process_twice; s/number == TRIES_MAX)/1)/
restored: the timers of other processes remain; guard/run:restart_other_process_of_port; s/^\t\ttimers_disarm(conn);/\t\t;/
results: no line if they cannot be written; guard/run:results_not_written; s/^\tlog_seldom(LOG_WARNING, "a worker cannot write.*/\t;/
ports: looked for in each list; guard/run:slow_list; s/^\tif (now < ports.next)/\tif (0)/
list: what has ended meanwhile is known again; guard/run:ends_before_results; s/if (!entry->known || conn_find(diag_cookie(\&entry->msg)))/if (1)/
