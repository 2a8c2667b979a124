# SPDX-License-Identifier: GPL-2.0
# Visits
visit: a cancelled timer fires; resident:one.*.cancel; s/return old & TIMERWHEEL_RESIDENT_ARMED;/return true;/
visit: an armed timer is parked; resident:one.*.fires_and_stays; s/return old & TIMERWHEEL_RESIDENT_ARMED;/return false;/
visit: a refreshed timer is early; resident:one.*.refresh; /^bool tw_resident_visit(/,/^}/s/if (deadline > now) {/if (0) {/
visit: the entry says that it is armed; resident:one.*.fires_and_stays; s/likely(try_cmpxchg(entry, &old, old | TW_ENTRY_KERNEL))/1/
visit: a store in between is lost; resident:race.read_8.*,race.read_64.*,race.owners_8.*; s/likely(try_cmpxchg(entry, &old, old | TW_ENTRY_KERNEL))/({ volatile int k; for (k = 0; k < 300; k++) ; WRITE_ONCE(*entry, old | TW_ENTRY_KERNEL); true; })/
visit: an entry of another owner counts; resident:one.*.nonsense; /^bool tw_resident_visit(/,/^}/s/unlikely(!tw_resident_valid(pool, t, old))/0/
visit: the entry of one that fires stays as it was written; resident:one.*.nonsense; /^bool tw_resident_visit(/,/^}/s/if (t->deadline <= now)/if (0)/
visit: the event has the deadline of the call; resident:one.*.refresh; /^bool tw_resident_visit(/,/^}/s/^\t\t\tt->deadline = deadline;$/\t\t\t;/
# New deadlines
encode: rounded down; resident:one.*.add; s/(min(time, TIMERWHEEL_TIME_MAX - mask) + mask) & ~mask/min(time, TIMERWHEEL_TIME_MAX - mask) \& ~mask/
set: an armed timer, too; resident:one.*.move_unless_armed; s/} else if (!unless_armed) {/} else if (1) {/
set: not even a cancelled one; resident:one.*.move_unless_armed; s/} else if (!tw_resident_cancelled(pool, t, old) ||/} else if (1 ||/
set: a cancelled timer was pending; resident:one.*.move; /^int tw_resident_set(/,/^}/s/return TIMERWHEEL_WAS_PARKED;/return was;/
set: armed for the past; resident:one.*.move_to_the_past; s/want |= deadline > now ? TIMERWHEEL_RESIDENT_ARMED :.*/want |= TIMERWHEEL_RESIDENT_ARMED;/
set: fired before its time; resident:one.*.add; s/want |= deadline > now ? TIMERWHEEL_RESIDENT_ARMED :/want |= 0 ? 0 :/
set: the entry of a parked timer stays; resident:one.*.arm_again; /^int tw_resident_set(/,/^}/s/^\t\tWRITE_ONCE(\*entry, want);/\t\t;/
set: not rounded; equivalent: the entry has the rounded deadline, which the first visit, GET and MOVE read; s/t->deadline = deadline > now ? tw_deadline_decode(pool, time) : deadline;/t->deadline = deadline;/
linger: armed; resident:one.*.linger; /^void tw_resident_linger(/,/^}/s/TIMERWHEEL_RESIDENT_CANCELLED/TIMERWHEEL_RESIDENT_ARMED/
linger: for ever; resident:one.*.linger; /^void tw_resident_linger(/,/^}/s/now + min(t->period, TIMERWHEEL_TIME_MAX - now)/TIMERWHEEL_TIME_MAX/
# The end
take: whatever is there now; resident:race.owners_8.*,race.owners_ring.*; s/return try_cmpxchg(tw_resident_entry(pool, index), &old, 0);/{ volatile int k; for (k = 0; k < 300; k++) ; } WRITE_ONCE(*tw_resident_entry(pool, index), 0); return true;/
end: the entry stays armed; resident:one.*.remove; /^int tw_resident_end(/,/^}/s/xchg(tw_resident_entry(pool, index), 0)/READ_ONCE(*tw_resident_entry(pool, index))/
end: a cancelled timer was pending; resident:one.*.remove; /^int tw_resident_end(/,/^}/s/ ? TIMERWHEEL_WAS_PARKED : was;/ ? was : was;/
end: stores are ignored; resident:one.*.remove; /^int tw_resident_end(/,/^}/s/tw_deadline_apply(pool, t, old);/;/
