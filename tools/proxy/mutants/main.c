# SPDX-License-Identifier: GPL-2.0
watchdog: it never barks; watchdog_barks; s/if (beats\[i\] \&\& now == beats\[i\]) {/if (0) {/
watchdog: it always barks; notify; s/^\tbool alive = true;/\tbool alive = false;/
watchdog: threads are not woken for it; notify; s/^\t\tloop_wake(loops\[i\]);/\t\t;/
watchdog: who has ended is waited for; stop_with_watchdog; s/if (alive < options.threads)/if (0)/
limit: it is not said; limit_is_said; s/^\tlog_say(LOG_NOTICE,$/\tif (0) log_say(LOG_NOTICE,/
limit: four descriptors for a connection; limit_is_said; s/^#define FDS_OF_CONN\t2/#define FDS_OF_CONN\t4/
limit: nothing is left for others; limit_is_said; s/^#define FDS_OF_ALL\t96/#define FDS_OF_ALL\t0/
grace: it is never over; grace_is_over; s/^\t\tif (now_ns() >= until) {/\t\tif (0) {/
hang up: it ends what nobody keeps; hang_up_unkept; s/\&\& !store_active() \&\& !notify_there()) {/\&\& 0) {/
