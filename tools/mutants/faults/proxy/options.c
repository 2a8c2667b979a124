# SPDX-License-Identifier: GPL-2.0
any: the metrics are at ::1 only; proxy/run:metrics_without_address; s/(at == found || any == ANY_LOOPBACK)/at == found/
any: the metrics are at all addresses; proxy/run:metrics_without_address; s/"metrics", 'M', take_address, &options.metrics, ANY_LOOPBACK/"metrics", 'M', take_address, \&options.metrics, ANY_ALL/
any: :PORT is IPv6 only; proxy/run:dual_stack; s/target.both = hints.ai_family == AF_INET6;/target.both = false;/
times: none at all is taken; proxy/run:options; s/if (ns < known->arg)/if (0)/
