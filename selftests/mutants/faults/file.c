# SPDX-License-Identifier: GPL-2.0
free: what was charged stays; lifetime:wheels.close_gives_back; s/^\ttw_user_uncharge(user, charged);//
free: who waits for it is not told; icount/many:cap.one_wheel.*; s/^\ttw_user_count_freed(user);//
free: the ring stays; limits:charged.rings.*; s/^\ttw_ring_free(&file->ring, file->ring.events);//
free: the table stays; limits:charged.many_timers.*; s/^\ttw_table_free(&file->table);//
free: the log stays; limits:charged.monitors.*; s/^\ttw_log_put(file->events.log);//
open: beyond the cap; ops:cap.open; s/^\tif (err)$/\tif (0)/
open: not charged; ops:cap.open; s/err = tw_user_charge(user, bytes);/bytes = 0; err = 0;/
open: the generations of a wheel that is not set up; deadlines:global.generations_by_default; /^static int tw_open/,/^}/s/tw_pool_set_entries(.*/;/
open: reads cannot be tried; readers:uring.read_needs_no_worker,manual.nowait*; s/filp->f_mode |= FMODE_NOWAIT;//
open: has a position; readers:manual.has_no_position; s/return stream_open(inode, filp);/return 0;/
release: monitors have no end; monitor:monitor.has_an_end; s/^\ttw_log_close(file->events.log);//
release: nobody frees what is closed; many:closers.one_user.*; /^static int tw_release(/,/^}/s/^\t\tqueue_work(.*/\t\t;/
release: told when the clock is set; time:set.told_and_closed; s/^\ttw_clockset_leave(file);//
read: shorter than an event; readers:manual.tiny_buffer_einval; s/if (iov_iter_count(to) < sizeof(struct timerwheel_event) || /if (/
read: of a wheel with a ring; ring:ring.no_read; s/ || tw_has_ring(file))$/)/
read: blocks; readers:manual.nonblock_eagain; s/if (nowait || filp->f_flags & O_NONBLOCK)/if (nowait)/
read: blocks although it may not; readers:manual.nowait_eagain; s/if (nowait || filp->f_flags & O_NONBLOCK)/if (filp->f_flags \& O_NONBLOCK)/
read: all who wait are woken; readers:manual.event_wakes_one_reader; s/wait_event_interruptible_exclusive(/wait_event_interruptible(/
read: a signal is an event; readers:manual.signal_eintr; s/^\t\t\treturn err;/\t\t\treturn -EAGAIN;/
poll: the clock that was set is not noticed; time:set.told_poll; /tw_poll(/,/^}/s/if (unlikely(tw_clockset_enabled(file)))/if (0)/
poll: nothing to read; readers:manual.poll_readable; s/EPOLLIN | EPOLLRDNORM : 0/EPOLLRDNORM : 0/
no SIGIO; readers:manual.sigio; s/^\t\.fasync\t.*//
no calls of 32-bit programs; abi_32:device.version; s/^\t\.compat_ioctl\t.*//
no fdinfo; lifetime:wheel.fdinfo_present; s/^\t\.show_fdinfo\t.*//
open: in any mode; abi:device.modes; s/if ((filp->f_flags \& O_ACCMODE) != O_RDWR)/if (0)/
