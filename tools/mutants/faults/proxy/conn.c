# SPDX-License-Identifier: GPL-2.0
expired: nobody looks again; proxy/run:stopped_for_longer; s/^\t\tlook_again(conn);/\t\t;/
expired: it looks, and closes all the same; proxy/run:stopped_for_longer; /^void conn_expired(/,/^}/s/if (timer->deadline > now) {/if (0) {/
connecting: a client's reset is not seen; proxy/run:reset_while_connecting; s/EPOLLOUT : EPOLLERR/EPOLLOUT : 0/
connecting: a client's end of file is a reset; proxy/run:at_once proxy/run:client_closes_first; s/EPOLLOUT : EPOLLERR/EPOLLOUT : EPOLLIN/
connecting: only one server is tried; proxy/run:next_server; /^static void conn_connect(/,/^}/s/if (!upstream_next(conn)) {/if (1) {/
connecting: failures are not counted; proxy/run:next_server_after_timeout; s/counter_add(&conn->loop->counters.connect_failures, 1);/;/
pump: a blocked side is watched on; proxy/run:slow_reader proxy/run:slow_reader_server_gone; s/if (!side->eof \&\& !side->blocked)/if (!side->eof)/
pump: what was sent is not taken; proxy/run:small_writes; s/if (!discard(from->fd, loop->buffer, sent)) {/if (0) {/
pump: bytes do not postpone; proxy/run:refresh_by_client proxy/run:refresh_by_server; s/^\tphase_refresh(from->conn);/\t;/
eof: it is not passed on; proxy/run:client_closes_first; s/shutdown(other(from)->fd, SHUT_WR);/;/
eof: the wrong side was first; proxy/run:log_ends; s/conn->first = from - conn->side;/conn->first = other(from) - conn->side;/
eof: the idle time goes on to count; proxy/run:half_close proxy/run:half_close_by_server; s/phase_begin(conn, KIND_HALF_CLOSE);/;/
reset: it is seen only while something is wanted; proxy/run:reset_while_blocked proxy/run:reset_after_end_of_file; s/if (events \& EPOLLERR ||/if ((events \& EPOLLERR \&\& !(side->watched \& EPOLLET)) ||/
hangup: it is told again and again; proxy/run:hangup_while_blocked; s/EPOLLERR | EPOLLET/EPOLLERR/
reset: it comes as an end of file; proxy/run:reset_by_client proxy/run:reset_by_server; s/side_close(&conn->side\[i\], end >= END_RESET);/side_close(\&conn->side[i], false);/
reset: the wrong side did it; proxy/run:log_ends; s/END_CLIENT_RESET :/END_SERVER_RESET :/
close: the blocked directions stay counted; proxy/run:blocked_reader_resets; s/^\t\tset_blocked(&conn->side\[i\], false);/\t\t;/
close: the load stays; proxy/run:threads_balanced proxy/run:max_connections; /^void conn_leave(/,/^}/s/atomic_fetch_sub(&conn->loop->load, 1);/;/
open: no limit of the lifetime; proxy/run:lifetime; s/^\t\ttimer_start(conn, &conn->life, KIND_LIFETIME);/\t\t;/
