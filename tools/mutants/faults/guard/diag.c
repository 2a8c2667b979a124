# SPDX-License-Identifier: GPL-2.0
filter: the last port is not looked at; guard/run:many_ports guard/run:finds; s/left - 2 \* sizeof(\*op)/left - 2 * sizeof(*op) + 4/
families: no IPv6; guard/run:ipv6; s/dump(AF_INET6, connections, ports, nr_ports, each)/1/
address: mapped ones stay; guard/run:ipv6; s/address_unmap(&address);/;/
list: the rest of a list that was given up is a part of the next one; guard/run:list_given_up; s/if (head->nlmsg_seq != sequence)/if (0)/
dual: one of IPv6 alone, too; guard/run:own_connections; s/return !v6_only || !\*v6_only;/return true;/
dual: never; guard/run:own_connections; s/return !v6_only || !\*v6_only;/return false;/
transparent: never; guard/run:transparent; s/return options \&\& options->transparent;/return false;/
transparent: always; guard/run:transparent; s/return options \&\& options->transparent;/return true;/
progress: a list makes none; guard/run:slow_list; s/^\t\t\tworker_step();/\t\t\t;/
