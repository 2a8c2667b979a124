# SPDX-License-Identifier: GPL-2.0
pause: none after accept() failed; proxy/run:no_descriptors; /^static void accept_failed(/,/^}/s/loop->accept_again = loop->now + LISTENER_PAUSE;/;/
pause: for ever; proxy/run:no_descriptors; s/^\t\tloop->accept_again = 0;/\t\t;/
threads: clients stay with whoever accepts; proxy/run:threads_balanced; s/conn_accept(least_loaded(loop), /conn_accept(loop, /
threads: the fullest one gets the client; proxy/run:threads_balanced; s/if (load < least \&\& load/if (load > least || load/
threads: a full one goes on to accept; proxy/run:max_connections proxy/run:threads_full; s/< loop->max_open;/< UINT32_MAX;/
drain: the socket listens on; proxy/run:graceful_stop proxy/run:drain_frees_the_port; s/shutdown(listeners\[i\].fd, SHUT_RDWR);/;/
drain: clients that wait are reset; proxy/run:drain_takes_waiting; s/n < BACKLOG \&\& has_room/0 \&\& has_room/
drain: clients that come are taken for ever; proxy/run:drain_ends; s/n < BACKLOG \&\& has_room/has_room/
loops: a server that is the proxy itself; proxy/run:options; s/^\trefuse_loops(fd);/\t;/
drain: the number of connections has no limit; proxy/run:drain_when_full; s/n < BACKLOG \&\& has_room(least_loaded(loops\[0\]))/n < BACKLOG/
listen: a kept socket is used wherever it listens; proxy/run:other_listener_kept; s/return !memcmp(&at, .*/return true;/
listen: a kept socket is never used; proxy/run:same_listener_kept; s/return !memcmp(&at, .*/return false;/
listen: a kept socket that is not wanted listens on; proxy/run:other_listener_kept; /no longer listening/,/close(fd)/s/shutdown(fd, SHUT_RDWR);/;/
listen: that of a socket unit is ignored; proxy/run:socket_unit; s/if (!stored->listener\[i\].own)$/if (0)/
urgent: a byte that comes before accept() is lost; proxy/run:urgent_before_accept; /^static void use(/,/^}/s/^\t\tsocket_prepare(fd);/\t\t;/
drain: the pause of a thread goes on to count; proxy/run:drain_without_descriptors; /^void listener_stop(/,/^}/s/loop->accept_again = 0;/;/
loops: only the loopback addresses are its own; proxy/run:own_address; s|if (is_loopback(there) .. .*|if (is_loopback(there))|; s|if (there->any.sa_family != AF_INET)|if (1)|
loops: the second address of a network is not its own; proxy/run:own_address; s/if (there->any.sa_family != AF_INET)/if (1)/
loops: an address that is not there is its own; proxy/run:own_address; s/    !connect(fd, &to->any, sizeof(\*to)))$/    (from || !connect(fd, \&to->any, sizeof(*to))))/
loops: an address of another network namespace is its own; proxy/run:other_namespace; s/^\tif (!is_in_namespace(fd))/\tif (0 \&\& !is_in_namespace(fd))/
accept: a listening socket that was closed stays closed; proxy/run:listening_socket_closed; s/if (!listens \&\& !connect(/if (0 \&\& !connect(/
accept: a kill right after accept() ends connections well; proxy/run:killed_while_accepting; /^static void use(/,/^}/s/^\t\tsocket_prepare(fd);/\t\tsocket_keep_urgent(fd);/
accept: a kill before a socket unit's client has a thread ends it well; proxy/run:killed_before_thread_takes; /^static int accept_one(/,/^}/s/^\t\tsocket_prepare(fd);/\t\t;/
