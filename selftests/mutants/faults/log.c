# SPDX-License-Identifier: GPL-2.0
charge: not in STATS; monitor:monitor.charged; s/atomic_long_add(bytes, &log->charged);/;/
uncharge: STATS forget nothing; monitor:monitor.charged; s/atomic_long_sub(bytes, &log->charged);/;/
make: the user is not held; monitor:monitor.outlives_its_user; s/tw_user_hold(user);/;/;s/^\ttw_user_put(user);/;/
put: its memory stays charged; monitor:monitor.charged; /^void tw_log_put/,/^}/s/tw_user_uncharge(user, tw_alloc_size(sizeof(\*log)));/;/
store: without memory it stays charged; lifetime:memcg.monitor_enomem; /^static int tw_log_store_make/,/^}/s/tw_log_uncharge(log, tw_alloc_size(size));/;/
store: not charged; monitor:monitor.charged; /^static int tw_log_store_make/,/^}/s/int err = tw_log_charge(log, tw_alloc_size(size));/int err = 0;/;/^static void tw_log_store_free/,/^}/s/tw_log_uncharge(log, tw_alloc_size(tw_log_store_size(store->events)));/;/
settle: the older one stays charged; monitor:monitor.charged; /^static void tw_log_retire_older/,/^}/s/tw_log_store_free(log, &older);/;/
attach: one more than may be; monitor:monitor.many; s/log->monitors == TIMERWHEEL_MONITORS_MAX/log->monitors > TIMERWHEEL_MONITORS_MAX/
attach: counted though refused; monitor:monitor.over_the_cap; /^int tw_log_attach/,/^}/{/log->monitors++;/d;s/^\tmutex_unlock(&log->mutex);/\tlog->monitors++;\n&/}
attach: a longer one for any other length; monitor:monitor.lengths; s/else if (events > log->store.events)/else if (events != log->store.events)/
detach: the first that goes ends it; monitor:monitor.many; s/if (!--log->monitors) {/if (log->monitors--) {/
detach: the store stays for the next one; monitor:monitor.charged; /^void tw_log_detach/,/^}/s/if (!--log->monitors) {/if (!--log->monitors \&\& log->closed) {/
close: nobody is woken; monitor:monitor.wakes; s/tw_log_wake(log, EPOLLIN | EPOLLHUP);/;/
close: who waits for the end alone sleeps on; monitor:monitor.wakes_who_waits_for_the_end; s/EPOLLIN | EPOLLHUP/EPOLLIN/
close: not said; monitor:monitor.has_an_end; s/WRITE_ONCE(log->closed, true);/;/
