# SPDX-License-Identifier: GPL-2.0
any: the metrics are at ::1 only; proxy/run:metrics_without_address; s/(at == found || any == ANY_LOOPBACK)/at == found/
any: :PORT is IPv6 only; proxy/run:dual_stack; s/target.both = hints.ai_family == AF_INET6;/target.both = false;/
listen: IPv6 takes the clients of IPv4; proxy/run:dual_stack; s/only = !target->both;/only = 0;/
listen: no advice about the address; proxy/run:port_taken; s/errno == EADDRNOTAVAIL ?/0 ?/
add: an empty port is port 0; proxy/run:options; s/if (!port || !port\[1\] ||/if (!port ||/
