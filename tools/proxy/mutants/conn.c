# SPDX-License-Identifier: GPL-2.0
expired: nobody looks again; stopped_for_longer; s/^\t\tlook_again(conn);/\t\t;/
expired: it looks, and closes all the same; stopped_for_longer; /^void conn_expired(/,/^}/s/if (timer->deadline > now) {/if (0) {/
connecting: a client's reset is not seen; reset_while_connecting; s/EPOLLOUT : EPOLLERR/EPOLLOUT : 0/
connecting: a client's end of file is a reset; at_once client_closes_first; s/EPOLLOUT : EPOLLERR/EPOLLOUT : EPOLLIN/
connecting: only one server is tried; next_server; /^static void conn_connect(/,/^}/s/if (!upstream_next(conn)) {/if (1) {/
connecting: failures are not counted; next_server_after_timeout; s/counter_add(&conn->loop->counters.connect_failures, 1);/;/
pump: a blocked side is watched on; slow_reader slow_reader_server_gone; s/if (!side->eof \&\& !side->blocked)/if (!side->eof)/
pump: what was sent is not taken; small_writes; s/if (!discard(from->fd, loop->buffer, sent)) {/if (0) {/
pump: bytes do not postpone; refresh_by_client refresh_by_server; s/^\tphase_refresh(from->conn);/\t;/
eof: it is not passed on; client_closes_first; s/shutdown(other(from)->fd, SHUT_WR);/;/
eof: the wrong side was first; log_ends; s/conn->first = from - conn->side;/conn->first = other(from) - conn->side;/
eof: the idle time goes on to count; half_close half_close_by_server; s/phase_begin(conn, KIND_HALF_CLOSE);/;/
reset: it comes as an end of file; reset_by_client reset_by_server; s/side_close(&conn->side\[i\], end >= END_RESET);/side_close(\&conn->side[i], false);/
reset: the wrong side did it; log_ends; s/END_CLIENT_RESET :/END_SERVER_RESET :/
close: the blocked directions stay counted; blocked_reader_resets; s/^\t\tset_blocked(&conn->side\[i\], false);/\t\t;/
close: the load stays; threads_balanced max_connections; /^void conn_close(/,/^}/s/atomic_fetch_sub(&loop->load, 1);/;/
open: no limit of the lifetime; lifetime; s/^\t\ttimer_start(conn, &conn->life, KIND_LIFETIME);/\t\t;/
