# SPDX-License-Identifier: GPL-2.0
give: nobody is woken; proxy/run:log_of_many proxy/run:many_at_once; /^bool loop_give(/,/^}/s/loop_wake(loop);/;/
drain: a thread ends with its connections; proxy/run:graceful_stop; s/return LIST_EMPTY(&loop->conns) \&\&/return/
log: it is never written; proxy/run:log_text; /^static void \*loop_run(/,/^}/s/records_flush(loop);/;/
