# SPDX-License-Identifier: GPL-2.0
exit: it closes sockets; guard/run:lingers; s/^\tself->done = true;/\tsyscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);\n&/
stall: nothing is given up; guard/run:in_execve guard/run:no_list; s/worker.stalls < STALL_CHECKS/1/
culprits: they are visited again; guard/run:in_execve; s/return now_ns() < culprits\[i\].until;/return false;/
culprits: all processes of root; guard/run:not_a_socket; s/(uid || culprit->pid == pid)/1/
culprits: one process of a user; guard/run:in_execve; s/(uid || culprit->pid == pid)/culprit->pid == pid/
list: a process is to blame; guard/run:no_list; s/^\tif (!shared->pid) {/\tif (0) {/
budget: a user takes as long as the tables are large; guard/run:large_tables; s/- since < BUDGET)/- since < TIME_NONE)/
users: each number in a user namespace is one; guard/run:user_namespace; s/return ranges\[i\].first;/return uid;/
log: a line of each worker; guard/run:cannot_arm; s/^\tlog_common = said;/\t;/
