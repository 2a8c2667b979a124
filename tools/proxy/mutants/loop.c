# SPDX-License-Identifier: GPL-2.0
give: nobody is woken; log_of_many many_at_once; /^bool loop_give(/,/^}/s/loop_wake(loop);/;/
drain: a thread ends with its connections; graceful_stop; s/return LIST_EMPTY(&loop->conns) \&\&/return/
log: it is never written; log_text; /^static void \*loop_run(/,/^}/s/records_flush(loop);/;/
