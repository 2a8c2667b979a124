# SPDX-License-Identifier: GPL-2.0
any: the metrics are at all addresses; proxy/run:metrics_without_address; s/"metrics", 'M', take_address, &options.metrics, ANY_LOOPBACK/"metrics", 'M', take_address, \&options.metrics, ANY_ALL/
times: none at all is taken; proxy/run:options; s/if (ns < known->arg)/if (0)/
--help that cannot be written; proxy/run:help_not_written; s/^\tout_check();/\t;/
to: port 0 is taken; proxy/run:options; s/ \&\& !to->target\[to->n - 1\].at.v4.sin_port)/ \&\& 0)/
