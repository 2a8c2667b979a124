# SPDX-License-Identifier: GPL-2.0
send: it waits; proxy/run:full_notify_socket; s/MSG_DONTWAIT | MSG_NOSIGNAL/MSG_NOSIGNAL/
again: what could not be sent is forgotten; proxy/run:full_notify_socket; s/if (err == -EAGAIN)/if (0)/
again: all lines of what could not be sent are said; proxy/run:no_notify_socket; s/(int)strcspn(unsent, "\\n"), unsent/255, unsent/
notify: the next message replaces that the guard is ready; guard/run:ready_is_kept; s/first ? ready : ""/""/
