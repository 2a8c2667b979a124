# SPDX-License-Identifier: GPL-2.0
# Visits
visit: a cancelled timer fires; resident:one.*.cancel; s/return old & TIMERWHEEL_TABLE_ARMED ? TW_VISITED_FIRED/return true ? TW_VISITED_FIRED/
visit: an armed timer is parked; resident:one.*.fires_and_stays; s/return old & TIMERWHEEL_TABLE_ARMED ? TW_VISITED_FIRED/return false ? TW_VISITED_FIRED/
visit: an earlier entry makes a timer early; resident:one.*.lowered; /^enum tw_visited tw_resident_visit(/,/^}/s/^\t\ttw_deadline_apply(pool, t, old);/\t\tif (tw_deadline_valid(pool, t, old)) t->deadline = tw_deadline_decode(pool, old);/
visit: a refreshed timer is early; resident:one.*.refresh; /^enum tw_visited tw_resident_visit(/,/^}/s/^\t\ttw_deadline_apply(pool, t, old);/\t\t;/
visit: the entry says that it is armed; resident:one.*.fires_and_stays; s/likely(try_cmpxchg(entry, &old, old | TW_ENTRY_KERNEL))/1/
visit: a store in between is lost; resident:race.read_8.*,race.read_64.*,race.owners_8.*; s/likely(try_cmpxchg(entry, &old, old | TW_ENTRY_KERNEL))/({ volatile int k; for (k = 0; k < 300; k++) ; WRITE_ONCE(*entry, old | TW_ENTRY_KERNEL); true; })/
visit: an entry of another owner counts; resident:one.*.nonsense; /^enum tw_visited tw_resident_visit(/,/^}/s/unlikely(!tw_deadline_valid(pool, t, old))/0/
visit: the entry of one that fires stays as it was written; resident:one.*.nonsense; /^enum tw_visited tw_resident_visit(/,/^}/s/^\t\t\tWRITE_ONCE(\*entry,/\t\t\tif (0) WRITE_ONCE(*entry,/
visit: the event has the deadline of the call; resident:one.*.refresh; /^enum tw_visited tw_resident_visit(/,/^}/s/^\t\ttw_deadline_apply(pool, t, old);/\t\tu64 call = t->deadline;\n&\n\t\tif (t->deadline <= now) t->deadline = call;/
visit: the slack is lost; resident:exact.slack_is_shared; /^enum tw_visited tw_resident_visit(/,/^}/s/if (t->deadline > now)/if (t->deadline > now \&\& !(t->slack = 0))/
visit: a tick too late; resident:exact.at_the_deadline,exact.in_order; /^enum tw_visited tw_resident_visit(/,/^}/s/if (t->deadline > now)/if (t->deadline >= now \&\& ++t->deadline)/
visit: time never goes back; resident:set.back; /^enum tw_visited tw_resident_visit(/,/^}/s/^\tdo {/\tstatic u64 latest;\n\tnow = latest = max(now, latest);\n\tdo {/
visit: a hammered timer is parked; resident:hammered.two_deadlines.*; s/likely(try_cmpxchg(entry, &old, old | TW_ENTRY_KERNEL))/({ volatile int k; for (k = 0; k < 300; k++) ; try_cmpxchg(entry, \&old, old | TW_ENTRY_KERNEL); })/; s/return TW_VISITED_AGAIN;/return TW_VISITED_PARKED;/
visit: entries of another CPU by the last call; resident:hotplug.offline.*; s/^#include <linux\/err.h>/&\n#include <linux\/smp.h>/; s/if (unlikely(!tw_deadline_valid(pool, t, old))) {/if (unlikely(t->cpu != raw_smp_processor_id() || !tw_deadline_valid(pool, t, old))) {/
# New deadlines
encode: times of the initial namespace; resident:namespace.*.*; s/u64 time = deadline + pool->deadlines_offset;/u64 time = deadline;/
encode: before the origin of the namespace: the end of time; resident:namespace.behind.made_there; s/if ((s64)pool->deadlines_offset < 0 \&\& deadline < -pool->deadlines_offset)/if (0)/
encode: the end of time is a time that has passed; resident:namespace.*.made_there; s/(min(time, TIMERWHEEL_TIME_MAX - mask) + mask) & ~mask/(time + mask) \& ~mask \& TIMERWHEEL_TIME_MAX/
encode: rounded down; resident:one.*.add; s/(min(time, TIMERWHEEL_TIME_MAX - mask) + mask) & ~mask/min(time, TIMERWHEEL_TIME_MAX - mask) \& ~mask/
set: an armed timer, too; resident:one.*.move_unless_armed; s/} else if (!unless_armed) {/} else if (1) {/
set: not even a cancelled one; resident:one.*.move_unless_armed; s/} else if (!tw_resident_cancelled(pool, t, old) ||/} else if (1 ||/
set: a cancelled timer was pending; resident:one.*.move; /^int tw_resident_set(/,/^}/s/return TIMERWHEEL_WAS_PARKED;/return was;/
set: armed for the past; resident:one.*.move_to_the_past; s/want |= deadline > now ? TIMERWHEEL_TABLE_ARMED :.*/want |= TIMERWHEEL_TABLE_ARMED;/
set: fired before its time; resident:one.*.add; s/want |= deadline > now ? TIMERWHEEL_TABLE_ARMED :/want |= 0 ? 0 :/
set: the entry of a parked timer stays; resident:one.*.fires_and_stays; /^int tw_resident_set(/,/^}/s/^\t\tsmp_store_release(entry, want);/\t\t;/
set: unless it was armed a moment ago; resident:against.move_excl.*; s/|| !try_cmpxchg(entry, \&old, want)) {/|| ({ volatile int k; for (k = 0; k < 300; k++) ; WRITE_ONCE(*entry, want); 0; })) {/
set: an arming in between is lost; resident:against.move.*,against.add.*; s/old = xchg(entry, want);/old = READ_ONCE(*entry); { volatile int k; for (k = 0; k < 300; k++) ; } WRITE_ONCE(*entry, want);/
set: not rounded; equivalent: the entry has the rounded deadline, which the first visit, GET and MOVE read; s/^\t\tdeadline = tw_deadline_decode(pool, time);/\t\t;/
linger: armed; resident:one.*.linger; /^void tw_resident_linger(/,/^}/s/TIMERWHEEL_TABLE_CANCELLED/TIMERWHEEL_TABLE_ARMED/
linger: counted from the deadline; resident:exact.linger,one.read.linger; /^void tw_resident_linger(/,/^}/s/now + min(t->period/t->deadline + min(t->period/
linger: for ever; resident:one.*.linger; /^void tw_resident_linger(/,/^}/s/now + min(t->period, TIMERWHEEL_TIME_MAX - now)/TIMERWHEEL_TIME_MAX/
# The end
take: whatever is there now; resident:against.drain.*; s/return try_cmpxchg(tw_resident_entry(pool, index), &old, 0);/{ volatile int k; for (k = 0; k < 300; k++) ; } WRITE_ONCE(*tw_resident_entry(pool, index), 0); return true;/
end: the entry stays armed; resident:one.*.remove; /^int tw_resident_end(/,/^}/s/xchg(tw_resident_entry(pool, index), 0)/READ_ONCE(*tw_resident_entry(pool, index))/
end: a cancelled timer was pending; resident:one.*.remove; /^int tw_resident_end(/,/^}/s/ ? TIMERWHEEL_WAS_PARKED : was;/ ? was : was;/
end: stores are ignored; resident:one.*.remove; /^int tw_resident_end(/,/^}/s/tw_deadline_apply(pool, t, old);/;/
end: an arming in between is lost; resident:against.remove.*; /^int tw_resident_end(/,/^}/s/u64 old = xchg(tw_resident_entry(pool, index), 0);/u64 old = READ_ONCE(*tw_resident_entry(pool, index)); { volatile int k; for (k = 0; k < 300; k++) ; } WRITE_ONCE(*tw_resident_entry(pool, index), 0);/
