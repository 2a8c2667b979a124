# SPDX-License-Identifier: GPL-2.0
write: also when the last monitor has gone; monitor:global.come_and_go; s/if (unlikely(!log->store.events || log->closed))/if (unlikely(log->closed))/
write: not seen without the lock; monitor:monitor.copies; s/WRITE_ONCE(log->tail, log->tail + 1);/;/
ready: an end is not; monitor:monitor.wakes; s/READ_ONCE(log->tail) != READ_ONCE(cursor->next) || READ_ONCE(cursor->missed) ||/READ_ONCE(log->tail) != READ_ONCE(cursor->next) || READ_ONCE(cursor->missed);/;/^	       READ_ONCE(log->closed);/d
ready: what was missed does not count; equivalent: what was missed is told with the event behind it at the latest, so the cursor is behind the tail as well; s/ || READ_ONCE(cursor->missed) ||/ ||/
wanted: also without monitors; equivalent: tw_log_write() looks again, and nobody is left to be woken; s/return log \&\& READ_ONCE(log->store.events) ? log : NULL;/return log;/
wake: one of those who wait exclusively; monitor:monitor.wakes_exclusive_waiters; s/TASK_INTERRUPTIBLE, 0, poll_to_key/TASK_INTERRUPTIBLE, 1, poll_to_key/
