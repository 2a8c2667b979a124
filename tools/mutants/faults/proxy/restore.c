# SPDX-License-Identifier: GPL-2.0
names: what begins like a wheel is one; proxy/run:strange_descriptors; s/if (strcmp(name, again) || /if (/
names: any number is one of a wheel; proxy/run:strange_descriptors; s/ || number >= ARRAY_SIZE(stored->wheel))/)/
names: any descriptor is a listening socket; proxy/run:strange_descriptors; s/if (!listens || /if (/
names: what begins like a wheel is no listening socket; proxy/run:socket_unit_any_name; s/if (collect_listener(stored, fd, name))/if (*name != 'w' \&\& collect_listener(stored, fd, name))/
names: a listening socket with the name of a connection's socket is one; proxy/run:socket_unit_any_name; s/if (collect_listener(stored, fd, name))/if (strcmp(name, "s") \&\& collect_listener(stored, fd, name))/
listen: a socket of any protocol is taken; proxy/run:socket_unit_not_tcp; s/if (protocol != IPPROTO_TCP)/if (0)/
