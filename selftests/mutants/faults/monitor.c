# SPDX-License-Identifier: GPL-2.0
wake: nobody is woken; monitor:monitor.wakes; s/if (!wq_has_sleeper(&log->readers))/if (1)/
wake: a crowd is woken in the turn; icount/many:waiters.monitor_4000.*; s/WRITE_ONCE(log->crowded, true);/;/
wake: nobody wakes a crowd; icount/many:waiters.monitor_4000.*; s/queue_work(tw_monitor_wq, &log->wake);/;/
take: what did not arrive is taken, too; monitor:monitor.faults; s|tw_log_take(&monitor->cursor, copied / sizeof(\*event));|tw_log_take(\&monitor->cursor, n);|
take: a reader that was late has an end; monitor:monitor.late_reader; s/return done ? done \* sizeof(\*event) : n;/return done * sizeof(*event);/
take: sixteen at most; monitor:monitor.misses; s/if (copied == n \* sizeof(\*event))/if (0)/;s/if (n == 1)/if (1)/
read: RWF_NOWAIT is ignored; monitor:monitor.nowait; s/bool nowait = iocb->ki_filp->f_flags \& O_NONBLOCK || iocb->ki_flags \& IOCB_NOWAIT;/bool nowait = iocb->ki_filp->f_flags \& O_NONBLOCK;/
read: O_NONBLOCK is ignored; monitor:monitor.copies; s/bool nowait = iocb->ki_filp->f_flags \& O_NONBLOCK || iocb->ki_flags \& IOCB_NOWAIT;/bool nowait = iocb->ki_flags \& IOCB_NOWAIT;/
read: who may not wait waits for another reader; monitor:monitor.stalled_reader; s/if (nowait ? !mutex_trylock(&monitor->reading) :/if (0 ? !mutex_trylock(\&monitor->reading) :/
read: waits for another reader whatever signal comes; monitor:monitor.stalled_reader; s/mutex_lock_interruptible(&monitor->reading))/mutex_lock_killable(\&monitor->reading))/
read: waits for another reader, and is not restarted; monitor:monitor.stalled_reader; s/nowait ? -EAGAIN : -ERESTARTSYS;/nowait ? -EAGAIN : -EINTR;/
read: sleeps whatever signal comes; monitor:monitor.blocked_reader_signalled; s/wait_event_interruptible(/wait_event_killable(/;s/TASK_INTERRUPTIBLE/TASK_KILLABLE/
read: one reader is woken at a time; monitor:monitor.blocked_readers_share,monitor.blocked_readers_end; s/wait_event_interruptible(/wait_event_interruptible_exclusive(/
read: who was late has EAGAIN; monitor:monitor.late_reader; s/} while (ret == -EAGAIN);/} while (0);/
read: no room for an event is an end; monitor:monitor.read_too_small; /if (!room)/s/!room/0/
poll: not on the queue; monitor:monitor.wakes_poll; s/poll_wait(filp, &monitor->log->readers, wait);/;/
poll: an end is not said; monitor:monitor.has_an_end; s/mask |= EPOLLHUP;/;/
free: uncharged only if it was attached; monitor:monitor.over_the_cap; /^static void tw_monitor_free/,/^}/{s/tw_log_detach(log);/tw_log_detach(log), tw_log_uncharge(log, tw_monitor_size());/;/^\ttw_log_uncharge/d}
free: the log is not left; monitor:monitor.charged; /^static void tw_monitor_free/,/^}/s/if (monitor->cursor.events)/if (0)/
free: the reference to the log stays; monitor:monitor.at_the_cap; /^static void tw_monitor_free/,/^}/s/tw_log_put(log);/;/
log: the monitor's reference is not taken; monitor:monitor.lifetime; s/refcount_inc(&log->refs);/;/
make: at the cap the reference to the log stays; monitor:monitor.at_the_cap; /^put:/,/^}/s/tw_log_put(log);/;/
make: charged to nobody; monitor:monitor.at_the_cap; s/err = tw_log_charge(log, tw_monitor_size());/err = 0;/;/^static void tw_monitor_free/,/^}/s/tw_log_uncharge(log, tw_monitor_size());/;/
open: flags are not looked at; monitor:monitor.errors; s/arg->flags \& ~(TIMERWHEEL_MONITOR_CLOEXEC | TIMERWHEEL_MONITOR_NONBLOCK) ||/0 ||/
open: no greatest length; monitor:monitor.errors; s/events > TIMERWHEEL_RING_MAX || arg->reserved/arg->reserved/
open: a short one by default; monitor:monitor.default_length; s/arg->events ? arg->events : TW_MONITOR_DEFAULT/arg->events ? arg->events : 16/
open: no power of two; monitor:monitor.lengths; s/roundup_pow_of_two(events))/events)/
open: blocks always; monitor:monitor.flags; s/arg->flags & TIMERWHEEL_MONITOR_NONBLOCK ? O_NONBLOCK : 0/0/
open: closed by exec never; monitor:monitor.flags; s/arg->flags & TIMERWHEEL_MONITOR_CLOEXEC ? O_CLOEXEC : 0/0/
open: RWF_NOWAIT is not offered; monitor:monitor.nowait; s/filp->f_mode |= FMODE_NOWAIT;/;/
open: the number stays taken after an error; monitor:monitor.over_the_cap; s/put_unused_fd(fd);/;/
