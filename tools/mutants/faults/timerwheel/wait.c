# SPDX-License-Identifier: GPL-2.0
more events are taken than are wanted; timerwheel/wheels:--count; s/limit->left < most ? limit->left : most);/most);/
events that cannot be written are forgotten; timerwheel/wheels; s/put_back_events(wheel, events + out, count - out)/0/
the event of a command that cannot be started is forgotten; timerwheel/wheels:event_is_due; s/put_back_events(wheel, event, 1)/0/
a reader that has gone is not noticed; timerwheel/wheels:nobody_reads; s/\.fd = opt\.exec ? -1 : STDOUT_FILENO/.fd = -1/
the time of --timeout never ends; timerwheel/wheels:--timeout; s/events_timeout(limit)) {/events_timeout(limit) + 1) {/
