# SPDX-License-Identifier: GPL-2.0
any: the metrics are at ::1 only; proxy/run:metrics_without_address; s/if (any == ANY_LOOPBACK || !ipv6) {/if (!ipv6) {/
any: the metrics are at all addresses; proxy/run:metrics_without_address; s/sin6_addr = any == ANY_ALL ?/sin6_addr = 1 ?/
any: :PORT is IPv6 only; proxy/run:dual_stack; s/target.both = any == ANY_ALL;/target.both = false;/
times: none at all is taken; proxy/run:options; s/if (!\*t->ns \&\& !t->zero)/if (0)/
