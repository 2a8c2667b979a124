# SPDX-License-Identifier: GPL-2.0
uring: a positive result cuts links in 6.1; uring:way.plain.links; s/if (result > 0) {/if (0) {/
smpboot: the thread of an offline CPU is parked again; lifetime:module.rmmod_while_cpu_offline; /^static inline void tw_smpboot_unregister(/,/^}/s/for_each_online_cpu/for_each_possible_cpu/
smpboot: the threads are not parked; equivalent: 6.1 does not warn about such threads, but 5.10 does in lifetime:module.*; /^static inline void tw_smpboot_unregister(/,/^}/s/^\t\tkthread_park(.*/\t\t;/
