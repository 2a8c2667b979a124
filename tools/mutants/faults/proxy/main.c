# SPDX-License-Identifier: GPL-2.0
watchdog: it never barks; proxy/run:watchdog_barks; s/if (!first \&\& now == beats\[i\]) {/if (0) {/
watchdog: it always barks; proxy/run:notify; s/bool alive = true,/bool alive = false,/
watchdog: threads are not woken for it; proxy/run:notify; s/^\t\tloop_wake(loops\[i\]);/\t\t;/
watchdog: who has ended is waited for; proxy/run:stop_with_watchdog; s/if (alive < options.threads)/if (0)/
limit: it is not said; proxy/run:limit_is_said; s/^\tlog_say(LOG_NOTICE,$/\tif (0) log_say(LOG_NOTICE,/
limit: four descriptors for a connection; proxy/run:limit_is_said; s/^#define FDS_OF_CONN\t2/#define FDS_OF_CONN\t4/
limit: nothing is left for others; proxy/run:limit_is_said; s/^#define FDS_OF_ALL\t96/#define FDS_OF_ALL\t0/
grace: it is never over; proxy/run:grace_is_over; s/^\t\tif (now_ns() >= until) {/\t\tif (0) {/
hang up: it ends what nobody keeps; proxy/run:hang_up_unkept; s/\&\& !store_active() \&\& !notify_there()) {/\&\& 0) {/
limit: nothing is left for those who ask for metrics; proxy/run:metrics_many_addresses; s/^#define FDS_OF_METRICS\t.*/#define FDS_OF_METRICS\t4/
ports: they do not limit anything; proxy/run:local_ports_limit; s/^\toptions.max_connections = ports;/\t;/
ports: it is not said; proxy/run:local_ports_used_up; s/^\tif (chosen) {/\tif (0) {/
log: a log at the limit of file sizes ends the proxy; proxy/run:log_file_limit; s/signal(SIGXFSZ, SIG_IGN);/;/
start: nothing is said if there is no device; proxy/run:no_device; s/access("\/dev\/timerwheel", F_OK) \&\& /0 \&\& /
