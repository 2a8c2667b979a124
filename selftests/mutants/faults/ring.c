# SPDX-License-Identifier: GPL-2.0
used: a head that makes no sense is room; ring:ring.head_out_of_bounds; s/return used <= ring->events ? ring->events - used : 0;/return ring->events - used;/
room: one less; ring:ring.overflows; s/return used <= ring->events ? ring->events - used : 0;/return used < ring->events ? ring->events - used - 1 : 0;/
publish: an overflow is never over; ring:ring.overflows; s/WRITE_ONCE(ring->shared->flags, overflow ? TIMERWHEEL_RING_OVERFLOW : 0);/if (overflow) WRITE_ONCE(ring->shared->flags, TIMERWHEEL_RING_OVERFLOW);/
publish: the tail that user space has written; ring:ring.tail_is_the_kernels; s/WRITE_ONCE(ring->tail, ring->tail + n);/WRITE_ONCE(ring->tail, READ_ONCE(ring->shared->tail) + n);/
wanted: always; ring:ring.wakes_who_waits; s/return READ_ONCE(ring->shared->waiting);/return true;/
wanted: cleared by the kernel; ring:ring.wakes_who_waits; s/return READ_ONCE(ring->shared->waiting);/return xchg(\&ring->shared->waiting, 0);/
make: mask is the length; ring:ring.empty; s/shared->mask = events - 1;/shared->mask = events;/
make: no size of an event; ring:global.event_size; s/shared->event_size = sizeof(struct timerwheel_event);/;/
pages: one less; ring:ring.periodic; s/tw_ring_size(ring->events) >> PAGE_SHIFT : 0/(tw_ring_size(ring->events) >> PAGE_SHIFT) - 1 : 0/
page: always the first; ring:running.long_ring.each_once; s/(void \*)ring->shared + (nr << PAGE_SHIFT)/(void *)ring->shared/
