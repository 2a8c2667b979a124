# SPDX-License-Identifier: GPL-2.0
expired: nobody looks again; proxy/run:stopped_for_longer; s/^\t\tlook_again(conn);/\t\t;/; s/^\t\t\tlook_at_readers(conn);/\t\t\t;/
expired: it looks, and closes all the same; proxy/run:stopped_for_longer; /^void conn_expired(/,/^}/s/if (timer->deadline > now) {/if (0) {/
connecting: a client's reset is not seen; proxy/run:reset_while_connecting; s/if (side->reset \&\& !socket_unread(side->fd))/if (0)/
connecting: a client's bytes are lost with its reset; proxy/run:reset_before_accept; s/if (side->reset \&\& !socket_unread(side->fd))/if (side->broken)/
connecting: a client's end of file is lost with its reset; proxy/run:end_before_accept; s/if (side->reset \&\& !socket_unread(side->fd))/if (side->broken \&\& !socket_unread(side->fd))/
connecting: only one server is tried; proxy/run:next_server; /^static void conn_connect(/,/^}/s/if (!upstream_next(conn)) {/if (1) {/
connecting: failures are not counted; proxy/run:next_server_after_timeout; s/counter_add(&conn->loop->counters.connect_failures, 1);/;/
pump: a blocked side is watched on; proxy/run:slow_reader proxy/run:slow_reader_server_gone; s/if (!side->eof \&\& !side->blocked)/if (!side->eof)/
pump: what was sent is not taken; proxy/run:small_writes; s/if (!discard(from->fd, loop->buffer, sent)) {/if (0) {/
pump: bytes do not postpone; proxy/run:refresh_by_client proxy/run:refresh_by_server; s/^\t\tphase_refresh(from->conn);/\t\t;/
eof: it is not passed on; proxy/run:client_closes_first; s/shutdown(other(from)->fd, SHUT_WR);/;/
eof: the wrong side was first; proxy/run:log_ends; s/conn->first = from - conn->side;/conn->first = other(from) - conn->side;/
eof: the idle time goes on to count; proxy/run:half_close proxy/run:half_close_by_server; s/phase_begin(conn, KIND_HALF_CLOSE);/;/
reset: the report of the kernel is ignored; proxy/run:reset_after_end_of_file; s/if (events \& EPOLLERR)/if (0)/
hangup: it is told again and again; proxy/run:hangup_while_blocked; s/EPOLLERR | EPOLLET/EPOLLERR/
reset: it comes as an end of file; proxy/run:reset_by_client proxy/run:reset_by_server; s/bool reset = end >= END_RESET ||/bool reset =/
reset: the wrong side did it; proxy/run:log_ends; s/END_CLIENT_RESET :/END_SERVER_RESET :/
close: the blocked directions stay counted; proxy/run:blocked_reader_idle; s/^\t\tset_blocked(&conn->side\[i\], false);/\t\t;/
close: the load stays; proxy/run:threads_balanced proxy/run:max_connections; /^void conn_leave(/,/^}/s/atomic_fetch_sub(&conn->loop->load, 1);/;/
open: no limit of the lifetime; proxy/run:lifetime; s/^\t\ttimer_start(conn, &conn->life, KIND_LIFETIME);/\t\t;/
reset: it overtakes bytes; proxy/run:reset_waits_for_reader; s/(gone->eof \&\& !progress.unacked)/gone->eof/
reset: bytes that wait in the socket are lost; proxy/run:reset_before_accept; s/(gone->eof \&\& !progress.unacked)/!progress.unacked/
reset: a reader that takes nothing keeps it; proxy/run:reset_while_blocked; s/if (now - conn->moved >= limit)/if (0)/
reset: a slow reader is cut; proxy/run:reset_waits_for_slow_reader; s/if (progress.acked != to->acked)/if (0)/
reset: bytes of the other side are not discarded; proxy/run:reset_while_other_writes; s/int how = to->broken ? MSG_TRUNC : MSG_PEEK;/int how = MSG_PEEK;/
reset: an end of file before it is lost; proxy/run:end_of_file_and_reset; s/side->reset = err != EPIPE;/side->reset = true;/
reset: one that came while connecting is a refusal; proxy/run:reset_while_connected; s/if (err == EPIPE || (err/if (0 \&\& (err/
connecting: a socket that is its own peer; proxy/run:connects_to_itself; s/if (!err \&\& socket_is_own_peer(fd))/if (0)/
expired: a reader does not count; proxy/run:idle_slow_reader; s/^\t\t\tlook_at_readers(conn);/\t\t\t;/
expired: any reader counts for ever; proxy/run:idle_reader_stops; s/ || progress.acked == side->acked)/)/
close: half an answer ends as a whole one; proxy/run:idle_reader_stops; s/(end >= END_TIMEOUT \&\& bytes_missing(conn, end))/false/
close: every timeout is a reset; proxy/run:idle; s/(end >= END_TIMEOUT \&\& bytes_missing(conn, end))/end >= END_TIMEOUT/
differ: an end of file is passed on before the bytes that are blocked; proxy/differ; s/^\tset_blocked(from, sent < n);/\tset_blocked(from, sent < n);\n\tif (sent < n)\n\t\tshutdown(to->fd, SHUT_WR);/
differ: a byte is sent twice if the receiver is slow; proxy/differ; s/discard(from->fd, loop->buffer, sent))/discard(from->fd, loop->buffer, sent - (sent > 1 \&\& sent < n)))/
differ: a byte is lost if the receiver is slow; proxy/differ; s/discard(from->fd, loop->buffer, sent))/discard(from->fd, loop->buffer, sent + (sent > 0 \&\& sent < n)))/
differ: a reset overtakes bytes; proxy/differ; s/(gone->eof \&\& !progress.unacked)/gone->eof/
differ: a reset is passed on as an end of file; proxy/differ; s/bool reset = end >= END_RESET ||/bool reset =/
differ: an end of file before a reset is lost; proxy/differ; s/side->reset = err != EPIPE;/side->reset = true;/
differ: both ends are closed at the first end of file; proxy/differ; s/} else if (client->eof \&\& server->eof) {/} else if (client->eof || server->eof) {/
expired: a client that is gone has no connect timeout; proxy/run:connect_after_reset; /^void conn_expired(/,/^}/s/(conn->gone \&\& conn->phase != KIND_CONNECT)/conn->gone/
close: a reset that was not reported yet is an end of file; proxy/run:stop_after_reset proxy/run:lifetime_after_reset; s/^\t\t    socket_failed(side->fd) ||/\t\t    0 ||/
close: epoll goes on to watch a socket that others have open; proxy/run:copied_descriptors; s/^\tif (side->watched)$/\tif (conn->stored \&\& side->watched)/
close: an end in the middle of a transfer is an end of file; proxy/run:lifetime_in_transfer proxy/run:stop_in_transfer; s/(!silent \&\& !side->eof \&\& socket_receives(side->fd))/0/
close: bytes after a lost byte are ignored; proxy/run:end_after_loss; s/ || socket_has_gap(side->fd) ||/ ||/
