# SPDX-License-Identifier: GPL-2.0
next: always the first; proxy/run:round_robin; s/conn->server = (conn->server + 1) % options.to.n;/conn->server = 0;/
next: none is tried twice, nor is the last; proxy/run:next_server; s/side->fd < 0 \&\& conn->tries;/side->fd < 0 \&\& conn->tries > 1;/
v1: everything is IPv4; proxy/run:proxy_protocol_v1; s/len == 4 ? '4' : '6'/'4'/
v1: without the server's port; proxy/run:proxy_protocol_v1; s/ntohs(ends\[1\].v4.sin_port));/ntohs(ends[0].v4.sin_port));/
v2: the ports are the other way round; proxy/run:proxy_protocol_v2; s/&ends\[i\].v4.sin_port, 2/\&ends[!i].v4.sin_port, 2/
v2: everything is IPv6; proxy/run:proxy_protocol_v2; s/len == 4 ? 0x11 : 0x21/0x21/
v2: the length has the signature in it; proxy/run:proxy_protocol_v2; s/header\[15\] = at - header - 16;/header[15] = at - header;/
greet: there is no header; proxy/run:proxy_protocol_v1 proxy/run:proxy_protocol_v2; s/^\tif (!conn->header)$/\tif (1)/
next: what fails at once is not counted; proxy/run:connect_failures; s/counter_add(&conn->loop->counters.connect_failures, 1);/;/
ports: a range has one less; proxy/run:local_ports_suffice; s/(last - first + 1) \* servers/(last - first) * servers/
ports: one for all servers; proxy/run:local_ports_limit; s/(last - first + 1) \* servers/(last - first + 1)/
ports: one more for each name; proxy/run:local_ports_same_server; s/servers += j == i;/servers++;/
advice: everything is refused; proxy/run:local_ports_used_up; s/case EADDRNOTAVAIL:/case -1:/
advice: the same for every error; proxy/run:advice_depends_on_error; s/^\tcase ENETUNREACH:/\tcase -1:/
