#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# usage: mutants.sh [--count] [--first N] MODULE BUILD COMPILE...
#
# Does the test notice faults in the files below? See ../mutants.sh.
set -u
. "$(dirname "$0")/../mutants.sh"

area=table
files=(table.c memory.c ops.c wheel.c events.c flow.c ring.c log.c table.h ops.h deliver.h cpu.h deadlines.h clock.h log.h)

# name; script for sed, which must change something
faults=(
'split: the wrong half;                      /^static void tw_split(/,/^}/s/if (!(tw_hash/if ((tw_hash/'
'split: a bit too high;                      /^static void tw_split(/,/^}/s/u32 half = BIT(__fls(new));/u32 half = BIT(__fls(new)), h2 = half << 1;/; s/>> 32 & half))/>> 32 \& h2))/'
'split: the new chain has no end;            /^static void tw_split(/,/^}/s/tw_table_set_link(&t->hash_next, 0);/;/'
'split: the old chain still has it;          /^static void tw_split(/,/^}/s/tw_table_set_link(link, t->hash_next);/link = \&t->hash_next;/'
'split: all at the head;                     /^static void tw_split(/,/^}/s/tail = &t->hash_next;/;/'
'split: timers do not know;                  /^static void tw_split(/,/^}/s/WRITE_ONCE(t->chain.*/;/'
'split: a period is overwritten;             /^static void tw_split(/,/^}/s/if (!t->periodic)/if (1)/'
'split: the last chain is left out;          /^static void tw_split(/,/^}/s/c < TW_CHAINS/c < TW_CHAINS - 1/'
'lock: a split meanwhile is not seen;        s/if (likely(tw_table_buckets(table) == buckets))/if (1)/'
'grow: memory that failed is charged;        /^static int tw_grow(/,/^}/s/tw_uncharge(file, bytes);/;/'
'grow: memory that failed is lost;           /^static int tw_grow(/,/^}/s/tw_page_free(kind, growth.page\[kind\]);/;/'
'grow: a directory that failed is lost;      /^static int tw_grow(/,/^}/s/kvfree(growth.dir\[kind\]);/;/'
'grow: refused, and made;                    /^static int tw_grow(/,/^}/s/^\t\treturn err;/\t\t;/'
'grow: a directory is not charged;           /^static size_t tw_growth_memory(/,/^}/s/bytes += .*/;/'
'grow: an old directory stays charged;       /^static void tw_growth_install(/,/^}/s/tw_uncharge(file.*/;/'
'charge: the file does not remember;         s/WRITE_ONCE(file->charged, file->charged + bytes);/;/'
'grow: beyond the capacity;                  s/n = min(file->setup.capacity - table->made,/n = min(file->setup.capacity + 1 - table->made,/'
'grow: no more buckets;                      s/while (table->buckets \* TW_BUCKET_TIMERS.*/while (0)/'
'grow: no more entries of the deadline table; s/first \/ TW_PAGE_DEADLINES == dir\[TW_DIR_DEADLINES\].used)/0)/'
'grow: the others are not asked;             s/if (tw_cpu_reclaim(file))/if (0)/'
'grow: an error although there are some;     /^int tw_table_grow(/,/^}/s/^\t\terr = 0;/\t\t;/'
'directory: the old entries are lost;        s/memcpy(growth->dir\[kind\], old, .*/;/'
'directory: the old one is kept;             s/kvfree_rcu_mightsleep(old);/;/'
'share: the last page is left out;           s/used > table->made/used >= table->made/'
'share: pages that will never be;            s/count > most - first/0/'
'share: what failed is kept;                 s/while (err \&\& tw_unshare_some(file))/while (0)/'
'share: what failed stays charged;           s/tw_uncharge(file, i \* PAGE_SIZE);/;/'
'magazine: it is forgotten;                  s/WRITE_ONCE(table->full, t->hash_next);/WRITE_ONCE(table->full, 0);/'
'magazine: its size is not kept;             s/t->slack = count;/t->slack = TW_MAGAZINE;/'
'stock: a full one is forgotten;             s/tw_magazine_push(&cpu->file->table, cpu->spare, TW_MAGAZINE);/;/'
'stock: the spare one is used twice;         s/cpu->spare = 0;/;/'
'free: the first is lost;                    s/t->next = cpu->free;/t->next = 0;/'
'find: claimed timers are found;             s/ \&\& READ_ONCE(t->state) != TW_CLAIMED//'
'find: only the first of a chain;            s/for (\*depth = 0; .*++)/*depth = 0; if (*chain)/'
'walk: any timer of the chain will do;       /^static .*tw_lookup_lockless(/,/^}/s/if (READ_ONCE(t->key) == key)/if (1)/'
'walk: due timers, too;                      /^static .*tw_lookup_lockless(/,/^}/s/ \&\& state == TW_PENDING//'
'walk: timers of other bases, too;           /^static .*tw_lookup_lockless(/,/^}/s/tw_timer_held(ctx, t, &state, &nr) \&\& state/(tw_timer_held(ctx, t, \&state, \&nr), state)/'
'walk: after 16 it is the last one;          /^static .*tw_lookup_lockless(/,/^}/s/while (--depth);/while (--depth); *timer = t; if (!depth) return index;/'
'lookup: the other base is not locked;       /^static .*tw_lookup(/,/^}/s/if (likely(tw_timer_held(ctx, t, &lookup->state, &nr)))/if (tw_timer_held(ctx, t, \&lookup->state, \&nr) || 1)/'
'index: ended meanwhile;                     s/if (lookup->state == TW_PENDING || lookup->state == TW_DUE)/if (1)/'
'add: MATCH is not asked;                    /^static .* tw_add(/,/^}/s/t->value != arg->match/0/'
'add: MATCH makes one;                       /^static .* tw_add(/,/^}/s/return -ENOENT;/return -EAGAIN;/'
'add: a chain without end;                    s/lookup.depth >= TW_CHAIN_MAX/0/'
'add: a chain one longer;                     s/lookup.depth >= TW_CHAIN_MAX/lookup.depth > TW_CHAIN_MAX/'
'add: a chain one shorter;                    s/lookup.depth >= TW_CHAIN_MAX/lookup.depth + 1 >= TW_CHAIN_MAX/'
'add: EXCL is not asked;                     s/if (arg->flags & TIMERWHEEL_EXCL)/if (0)/'
'add: a pending one stays, always;           s/if (lookup.state == TW_PENDING \&\& tw_can_stay(ctx, t, deadline) \&\&/if (lookup.state == TW_PENDING \&\&/'
'add: a pending one stays with less slack;   s/slack >= t->slack)/1)/'
'add: the generation is not told;            s/arg->generation = t->generation;/;/'
'add: the old period stays;                  s/t->periodic = false;/;/'
'add: after the end;                         s/if (unlikely(READ_ONCE(file->closed)))/if (0)/'
'move: stores before it count;               /^static .*tw_set_deadline(/,/^}/s/tw_deadline_reset(.*/;/'
'move: it stays where it is, always;         /^static .*tw_set_deadline(/,/^}/s/ \&\& tw_can_stay(ctx, t, deadline)//'
'remove: MATCH is not asked;                 /^static .* tw_remove(/,/^}/s/t->value != arg->match/0/'
'remove: stores are not seen;                /^static .* tw_remove(/,/^}/s/tw_deadline_sync(.*/;/'
'remove: it stays in its chain;              s/^\ttw_table_set_link(lookup->link, t->hash_next);/\t;/'
'describe: stores are not seen;              /^static .*tw_fill_entry(/,/^}/s/tw_deadline_sync(.*/;/'
'describe: no offset;                        s/t->deadline + ctx->offset,/t->deadline,/'
'due at once: out of order;                  s/smp_store_release(&t->state, TW_DUE);/t->fired--; smp_store_release(\&t->state, TW_DUE);/'
'drain: told, and not taken out;             s/tw_events_unlink(file, t);/;/'
'drain: taken out, and not told;             s/return copy_to_user_nofault(to, &entry, size);/copy_to_user_nofault(to, \&entry, size); return 0;/'
'due list: the next one does not know;       /^void tw_events_unlink(/,/^}/s/->prev = t->prev;/->prev;/'
'due list: the last one does not change;     /^void tw_events_unlink(/,/^}/s/all->last = t->prev;/;/'
'due list: it begins with the new ones;      /^bool tw_events_add(/,/^}/s/if (all->last)/if (0)/'
'due list: not counted;                      /^bool tw_events_add(/,/^}/s/all->count + due->count/due->count/'
'read: a fault loses one;                    s/unsafe_put_user(event.index, &to->index, fault);/if (shim_fault()) { tw_taken_add(taken, t, \&event); goto fault; } to->index = event.index;/'
'read: one is told twice;                    s/taken->next = t->next;/if (taken->count % 7 != 6) taken->next = t->next;/'
'read: periodic timers end;                  s/if (unlikely(taken->periodic))/if (0)/'
'periodic: drifts;                           s/t->deadline += passed + t->period;/t->deadline = ctx->now + t->period;/'
'periodic: misses are told one by one;       s/t->deadline += passed + t->period;/t->deadline += t->period;/'
'periodic: beyond the end of time;           s/if (t->period > TIMERWHEEL_TIME_MAX - t->deadline - passed)/if (0)/'
'event: no offset;                           s/.fired = t->fired + offset,/.fired = t->fired,/'
'ring: one event too many;                   s/? ring->events - used : 0;/? ring->events - used + 1 : 0;/'
'ring: nonsense is room;                     s/return used <= ring->events ? ring->events - used : 0;/return ring->events - used;/'
'ring: overtakes what waits;                 s/ \&\& !READ_ONCE(file->events.due.count) \&\&/ \&\&/'
'ring: written in one place;                 s/tw_ring_entry(ring, ring->tail + taken->count)/tw_ring_entry(ring, ring->tail)/'
'ring: does not tell that more are due;      s/overflow ? TIMERWHEEL_RING_OVERFLOW : 0/0/'
'ring: what was due at once stays outside;   s/ctx->flow++;/;/'
'ring: its monitors see nothing;             s/tw_events_log(ctx, due->first, 0);/;/'
'ring: its monitors see times of others;     s/ctx->offset = offset;/;/'
'log: one event is forgotten;                s/^\tWRITE_ONCE(log->tail, log->tail + 1);/\tif (log->tail % 100 != 99) WRITE_ONCE(log->tail, log->tail + 1);/'
'log: a monitor has what was before it;      s/WRITE_ONCE(cursor->next, log->tail);/;/'
'log: what was there is lost as it grows;    s/^\ttw_log_copy(log);/\t;/'
'log: new events are overwritten by old ones; s/if (log->tail - i <= log->store.events)/if (1)/'
'log: older events are read too early;       s/i < log->from ? &log->older : &log->store/\&log->store/'
'log: the older store is not forgotten;      s/^\tlog->from = 0;/\t;/'
'log: the older store stays;                 s/^\ttw_log_store_free(log, &older);/\t;/'
'log: who is behind does not notice;         s/if (unlikely(behind > cursor->events))/if (0)/'
'log: a monitor is one too short;            s/log->tail - cursor->events);/log->tail - cursor->events + 1);/'
'log: one is missing and not counted;        s/cursor->missed + behind - cursor->events);/cursor->missed + behind - cursor->events - 1);/'
'log: misses are not told;                   s/^\tif (unlikely(cursor->missed))/\tif (0)/'
'log: misses are told again;                 s/WRITE_ONCE(cursor->missed, 0);/;/'
'log: a count takes the place of an event;   /^void tw_log_take(/,/^}/s/n--;/;/'
'log: a fault loses events;                  s/WRITE_ONCE(cursor->next, cursor->next + n);/WRITE_ONCE(cursor->next, cursor->next + n + !n);/'
'log: one monitor too many;                  s/log->monitors == TIMERWHEEL_MONITORS_MAX/0/'
'log: no end;                                s/if (!n \&\& !log->closed)/if (!n)/'
'log: an end too early;                      s/if (!n \&\& !log->closed)/if (0)/'
'log: it stays when nobody reads it;         s/if (!--log->monitors)/if (--log->monitors, 0)/'
'log: more than is charged;                  /^static int tw_log_store_make(/,/^}/s/if (err)/if (0)/'
'log: memory that failed is charged;         /^static int tw_log_store_make(/,/^}/s/^\t\ttw_log_uncharge(.*/\t\t;/'
'entry: any generation will do;              s/if (((u32)entry ^ t->generation) & pool->generation_mask)/if (0)/'
'entry: it can hurry a timer;                s/if (time > t->deadline)/if (1)/'
'entry: the generation is part of the time;  s/u64 time = entry \& ~(u64)pool->generation_mask;/u64 time = entry;/'
'entry: an owner'\''s generation is the last one'\''s; s/generation = (t->generation + 1)/generation = (t->generation)/'
'entry: generation 0;                        s/generation ?: 1);/generation);/'
'entry: it does not say whose it is;         s/WRITE_ONCE(\*tw_deadline_entry(deadlines, index), t->generation);/WRITE_ONCE(*tw_deadline_entry(deadlines, index), 0);/'
'entry: nor that of timers before the table; s/^\ttw_table_tag(table);/\t;/'
'entry: behind the clock is at its end;      /^static .*tw_deadline_decode(/,/^}/s/return min(time - offset, TIMERWHEEL_TIME_MAX);/return TIMERWHEEL_TIME_MAX;/'
'entry: before the clock began;              /^static .*tw_deadline_decode(/,/^}/s/return time > offset ? time - offset : 0;/return time - offset;/'
'time: no offset;                            /^static .*tw_clock_deadline(/,/^}/s/if (likely(!shift))/if (1)/'
'time: beyond its end;                       s/max_t(s64, sum, 0) : TIMERWHEEL_TIME_MAX;/max_t(s64, sum, 0) : sum;/'
'time: before its begin;                     s/max_t(s64, sum, 0) : TIMERWHEEL_TIME_MAX;/sum : TIMERWHEEL_TIME_MAX;/'
)

# Those that were changed are compiled anew, and all of them for a header.
build_mutant()
{
	local changed=$1 build=$2 sources=() objects=() name object

	shift 2
	for object in "$build"/*.o; do
		name=$(basename "$object" .o).c
		if [[ " $changed " == *" $name "* || ($changed == *.h* && -e $mutants/$name) ]]; then
			sources+=("$mutants/$name")
		else
			objects+=("$object")
		fi
	done
	"$@" -w -iquote "$mutants" -o "$mutants/test" "${sources[@]}" "${objects[@]}"
}

run_mutants "$@"
