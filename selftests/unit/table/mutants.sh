#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# usage: mutants.sh MODULE BUILD COMPILE...
#
# Does the test detect faults in the files below? See ../mutants.sh.
set -u
. "$(dirname "$0")/../mutants.sh"

area=table
files=(table.c memory.c batch.c scan.c ops.c handle.c wheel.c resident.c events.c flow.c ring.c log.c table.h ops.h deliver.h cpu.h deadlines.h clock.h log.h)

# name; script for sed, which must change something
faults=(
'split: the wrong half;                      /^static void tw_split(/,/^}/s/if (!(tw_hash/if ((tw_hash/'
'split: a bit too high;                      /^static void tw_split(/,/^}/s/u32 half = BIT(__fls(new));/u32 half = BIT(__fls(new)), h2 = half << 1;/; s/>> 32 & half))/>> 32 \& h2))/'
'split: the new chain is not terminated;     /^static void tw_split(/,/^}/s/tw_table_set_link(&t->hash_next, 0);/;/'
'split: the old chain keeps the timer;       /^static void tw_split(/,/^}/s/tw_table_set_link(link, t->hash_next);/link = \&t->hash_next;/'
'split: each timer becomes the head;         /^static void tw_split(/,/^}/s/tail = &t->hash_next;/;/'
'split: timers keep their old chain pointer; /^static void tw_split(/,/^}/s/WRITE_ONCE(t->chain.*/;/'
'split: the period of a timer is overwritten; /^static void tw_split(/,/^}/s/if (t->stay == TW_ENDS)/if (1)/'
'split: the last chain is skipped;           /^static void tw_split(/,/^}/s/c < TW_CHAINS/c < TW_CHAINS - 1/'
'lock: a concurrent split goes unnoticed;    s/if (likely(tw_table_buckets(table) == buckets))/if (1)/'
'grow: a failed step stays charged;          /^static int tw_grow(/,/^}/s/tw_uncharge(file, bytes);/;/'
'grow: a failed step leaks a page;           /^static int tw_grow(/,/^}/s/tw_page_free(kind, growth.page\[kind\]);/;/'
'grow: a failed step leaks a directory;      /^static int tw_grow(/,/^}/s/tw_dir_free(growth.dir\[kind\], .*/;/'
'grow: grows although the charge was refused; /^static int tw_grow(/,/^}/s/^\t\treturn err;/\t\t;/'
'grow: a directory is not charged;           /^static size_t tw_growth_memory(/,/^}/s/bytes += .*/;/'
'charge: not recorded in the file;           s/WRITE_ONCE(file->charged, file->charged + bytes);/;/'
'grow: beyond the capacity;                  s/n = min(file->setup.capacity - table->made,/n = min(file->setup.capacity + 1 - table->made,/'
'grow: no more buckets;                      s/while (table->buckets \* TW_BUCKET_TIMERS.*/while (0)/'
'grow: no more entries of the deadline table; s/first \/ TW_PAGE_DEADLINES == dir\[TW_DIR_DEADLINES\].used)/0)/'
'grow: other bases are not reclaimed;        s/if (tw_cpu_reclaim(file))/if (0)/'
'grow: an error although timers are free;    /^int tw_table_grow(/,/^}/s/^\t\terr = 0;/\t\t;/'
'directory: old entries are not copied;      /^static void tw_dir_copy(/,/^}/s/memcpy(.*/;/'
'directory: the old ones leak;               /^static void tw_dir_free(/,/^}/s/old = dir\[-1\];/old = NULL;/'
'start over: in the same base;                s/ctx->wants = nr;/ctx->wants = ctx->cpu->nr;/'
'chunk: the base that is wanted is not locked; /^static .* tw_batch_chunk(/,/^}/s/other = ctx.wants;/other = TW_NO_CPU;/'
'chunk: a killed task goes on;                s/if (i ? tw_batch_interrupted(flags) : fatal_signal_pending(current))/if (0)/'
'chunk: what was done before a signal is not reported; s/return i ? i : -EINTR;/return -EINTR;/'
'chunk: all that is left is looked up for each element; s/most = 2 \* done + 2;/most = n;/'
'list: the base that is wanted is not locked; /^static int tw_list_chunk(/,/^}/s/\*other = ctx.wants;/*other = TW_NO_CPU;/'
'drain: the base that is wanted is not locked; /^static int tw_drain_chunk(/,/^}/s/\*other = ctx.wants;/*other = TW_NO_CPU;/'
'list: the cursor is not limited;             s/next = array_index_nospec(next, end);/;/'
'list: a cursor behind the end is limited;    s/if (next < end)$/if (1)/'
'share: page numbers are not limited;         s/nr = array_index_nospec(nr, used);/;/'
'magazine: the others are lost;              s/WRITE_ONCE(table->full, t->hash_next);/WRITE_ONCE(table->full, 0);/'
'magazine: its size is not stored;           s/t->slack = count;/t->slack = TW_MAGAZINE;/'
'stock: a full magazine is lost;             s/tw_magazine_push(&cpu->file->table, cpu->spare, TW_MAGAZINE);/;/'
'stock: the spare magazine is used twice;    s/cpu->spare = 0;/;/'
'free: the rest of the list is lost;         s/t->next = cpu->free;/t->next = 0;/'
'lookup: claimed timers are found;           s/ \&\& READ_ONCE(t->state) != TW_CLAIMED//'
'lookup: only the first of a chain;          s/for (\*depth = 0; .*++)/*depth = 0; if (*chain)/'
'lockless: any timer of the chain will do;   /^static .*tw_lookup_lockless(/,/^}/s/if (READ_ONCE(t->key) == key)/if (1)/'
'lockless: due timers, too;                  /^static .*tw_lookup_lockless(/,/^}/s/ \&\& state == TW_PENDING//'
'lockless: timers of other bases, too;       /^static .*tw_lookup_lockless(/,/^}/s/tw_timer_held(ctx, t, &state, &nr) \&\& state/(tw_timer_held(ctx, t, \&state, \&nr), state)/'
'lockless: after 16 steps the last one is returned; /^static .*tw_lookup_lockless(/,/^}/s/while (--depth);/while (--depth); *timer = t; if (!depth) return index;/'
'lookup: the other base is not locked;       /^static .*tw_lookup(/,/^}/s/likely(tw_timer_held(ctx, t, &lookup->state, &nr)) ||/tw_timer_held(ctx, t, \&lookup->state, \&nr) || 1 ||/'
'index: timers that have ended;              s/if (lookup->state == TW_PENDING || lookup->state == TW_DUE ||/if (1 ||/'
'add: MATCH is ignored;                      /^static .* __tw_add(/,/^}/s/t->value != arg->match/0/'
'add: MATCH creates a timer;                 /^static .* __tw_add(/,/^}/s/return -ENOENT;/return -EAGAIN;/'
'add: no limit on the length of chains;       s/lookup.depth >= TW_CHAIN_MAX/0/'
'add: chains are one timer longer;            s/lookup.depth >= TW_CHAIN_MAX/lookup.depth > TW_CHAIN_MAX/'
'add: chains are one timer shorter;           s/lookup.depth >= TW_CHAIN_MAX/lookup.depth + 1 >= TW_CHAIN_MAX/'
'add: EXCL is ignored;                       s/if (flags & TIMERWHEEL_EXCL)/if (0)/'
'add: a pending timer always stays in its slot; s/if (lookup.state == TW_PENDING \&\& tw_can_stay(ctx, t, deadline) \&\&/if (lookup.state == TW_PENDING \&\&/'
'add: a pending timer stays with less slack; s/slack >= t->slack)/1)/'
'add: the generation is not reported;        s/arg->generation = t->generation;/;/'
'add: the old period is kept;                s/t->stay = resident ? TW_RESIDENT : TW_ENDS;/;/'
'add: after DRAIN_CLOSE;                     s/if (unlikely(READ_ONCE(file->closed)))/if (0)/'
'move: the entry stays;                      /^static .*tw_deadline_set(/,/^}/s/if (unlikely(tw_pool_table(pool)))/if (tw_pool_table(pool) \&\& was != TIMERWHEEL_WAS_PENDING)/'
'move: the timer always stays in its slot;   /^static .*tw_set_deadline(/,/^}/s/ \&\& deadline >= t->deadline//'
'remove: MATCH is ignored;                   /^static .* tw_remove(/,/^}/s/t->value != arg->match/0/'
'remove: the entry stays;                    /^static .*tw_remove_found(/,/^}/s/if (unlikely(tw_pool_table(.*/if (0)/'
'remove: the timer stays in its chain;       s/^\ttw_table_set_link(lookup->link, t->hash_next);/\t;/'
'handle: any generation will do;             /^static .*tw_handle_pending(/,/^}/s/ \&\&$/;/; /^static .*tw_handle_pending(/,/^}/s/^\t       t->generation == generation;//'
'handle: any generation will do, looked up;  /^static .*tw_lookup_handle(/,/^}/s/if (!IS_ERR_OR_NULL(t) \&\& t->generation != generation)/if (0)/'
'handle: any generation of a timer with another state; /^static .*tw_handle_pending(/,/^}/s/state == TW_PENDING/state/'
'handle: timers of other bases, too;         /^static .*tw_handle_pending(/,/^}/s/tw_timer_held(ctx, t, &state, &nr) \&\& state/(tw_timer_held(ctx, t, \&state, \&nr), state)/'
'handle: the highest index is none;          /^static .*tw_handle_index(/,/^}/s/most + 1/most/'
'handle: one index too many;                 /^static .*tw_handle_index(/,/^}/s/most + 1/most + 2/'
'handle: indices are not limited;            /^static .*tw_handle_index(/,/^}/s/array_index_nospec(index, most + 1)/index/'
'handle: without any timer;                  s/if (unlikely(!most))/if (0)/'
'handle: MOVE: absolute times are relative;  /^static .*tw_move_handle(/,/^}/s/ctx->flags \& TIMERWHEEL_ABS/0/'
'handle: MOVE: EXCL is ignored;              s/if (unlikely(tw_move_excl_invalid(ctx, ctx->flags)))/if (0)/'
'handle: REMOVE: the chain of a periodic timer; s/ || t->stay != TW_ENDS))/))/'
'handle: REMOVE: no value;                   /^static .* tw_remove_handle(/,/^}/s/elem->value = t->value;/;/'
'handle: REMOVE: no value, looked up;        /^static .*tw_remove_handle_slow(/,/^}/s/elem->value = t->value;/;/'
'handle: REMOVE: the first of the chain;     /^static .* tw_remove_handle(/,/^}/s/tw_table_link_to(table, lookup.chain, index)/lookup.chain/'
'look: stores are ignored;                   /^static .*tw_deadline_stored(/,/^}/s/tw_deadline_apply(.*/;/'
'fill_entry: no offset;                      s/t->deadline + ctx->offset,/t->deadline,/'
'due at once: out of order;                  s/smp_store_release(&t->state, TW_DUE);/t->fired--; smp_store_release(\&t->state, TW_DUE);/'
'drain: reported, but not removed;           /^int tw_drain_index(/,/^}/s/tw_events_unlink(ctx, t);/;/'
'drain: removed, but not reported;           s/return copy_to_user_nofault(to, &entry, sizeof(entry));/copy_to_user_nofault(to, \&entry, sizeof(entry)); return 0;/'
'due list: the prev link of the next timer;  /^void tw_events_unlink(/,/^}/s/->prev = t->prev;/->prev;/'
'due list: the last one is not updated;      /^void tw_events_unlink(/,/^}/s/all->last = t->prev;/;/'
'due list: new timers replace the old ones;  /^bool tw_events_add(/,/^}/s/if (all->last)/if (0)/'
'due list: new timers are not counted;       /^bool tw_events_add(/,/^}/s/all->count + due->count/due->count/'
'read: a fault loses one;                    s/unsafe_put_user(event.index, &to->index, fault);/if (shim_fault()) { tw_taken_add(taken, t); goto fault; } to->index = event.index;/'
'read: an event is delivered twice;          s/taken->next = t->next;/if (taken->count % 7 != 6) taken->next = t->next;/'
'read: periodic timers end;                  s/if (unlikely(taken->stay))/if (0)/'
'periodic: drifts;                           s/return t->deadline + passed + t->period;/return t->fired + t->period;/'
'periodic: overruns are separate events;     s/return t->deadline + passed + t->period;/return t->deadline + t->period;/'
'periodic: beyond TIMERWHEEL_TIME_MAX;       s/if (t->period > TIMERWHEEL_TIME_MAX - t->deadline - passed)/if (0)/'
'event: no offset;                           s/.fired = t->fired + offset,/.fired = t->fired,/'
'ring: one event too many;                   s/? ring->events - used : 0;/? ring->events - used + 1 : 0;/'
'flow: events overtake that of the clock;   s/n = events->clock_sets ? 0 : min(/n = min(/'
'ring: an invalid head counts as room;       s/return used <= ring->events ? ring->events - used : 0;/return ring->events - used;/'
'ring: overtakes waiting events;             s/ \&\& !READ_ONCE(file->events.due.count) \&\&/ \&\&/'
'ring: all events in one place;              s/tw_ring_entry(ring, ring->tail + taken->count)/tw_ring_entry(ring, ring->tail)/'
'ring: OVERFLOW is not set;                  s/overflow ? TIMERWHEEL_RING_OVERFLOW : 0/0/'
'ring: timers due at once are not moved into it; /^void tw_enqueue_due(/,/^}/s/ctx->flow++;/;/'
'ring: OVERFLOW stays when the last waiting timer is withdrawn; /^void tw_events_unlink(/,/^}/s/ctx->flow++;/;/'
'ring: page numbers are not limited;          /^struct page .tw_ring_page(/,/^}/s/nr = array_index_nospec(nr, pages);/;/'
'ring: its events are not logged;            s/tw_events_log(ctx, due->first, 0);/;/'
'ring: monitors get times of its namespace;  s/ctx->offset = offset;/;/'
'log: one event in a hundred is lost;        s/^\tWRITE_ONCE(log->tail, log->tail + 1);/\tif (log->tail % 100 != 99) WRITE_ONCE(log->tail, log->tail + 1);/'
'log: a new monitor reads older events;      s/WRITE_ONCE(cursor->next, log->tail);/;/'
'log: growth loses old events;               s/^\ttw_log_copy(log);/\t;/'
'log: growth overwrites new events with old ones; s/if (log->tail - i <= log->store.events)/if (1)/'
'log: the new store is read before the copy; s/i < log->from ? &log->older : &log->store/\&log->store/'
'log: the older store stays in use;          s/^\tlog->from = 0;/\t;/'
'log: the older store leaks;                 s/^\ttw_log_store_free(log, &older);/\t;/'
'log: a slow monitor does not notice;        s/if (unlikely(behind > cursor->events))/if (0)/'
'log: a slow monitor misses one event more;  s/log->tail - cursor->events);/log->tail - cursor->events + 1);/'
'log: one missed event is not counted;       s/cursor->missed + behind - cursor->events);/cursor->missed + behind - cursor->events - 1);/'
'log: missed events are not reported;        s/^\tif (unlikely(cursor->missed))/\tif (0)/'
'log: missed events are reported twice;      s/WRITE_ONCE(cursor->missed, 0);/;/'
'log: the count of missed events replaces an event; /^void tw_log_take(/,/^}/s/n--;/;/'
'log: a fault loses events;                  s/WRITE_ONCE(cursor->next, cursor->next + n);/WRITE_ONCE(cursor->next, cursor->next + n + !n);/'
'log: one monitor too many;                  s/log->monitors == TIMERWHEEL_MONITORS_MAX/0/'
'log: no end of file;                        s/if (!n \&\& !log->closed)/if (!n)/'
'log: end of file too early;                 s/if (!n \&\& !log->closed)/if (0)/'
'log: kept after the last monitor;           s/if (!--log->monitors)/if (--log->monitors, 0)/'
'log: memory although the charge was refused; /^static int tw_log_store_make(/,/^}/s/if (err)/if (0)/'
'log: a failed allocation stays charged;     /^static int tw_log_store_make(/,/^}/s/^\t\ttw_log_uncharge(.*/\t\t;/'
'drain: a resident one that changes is left; s/stored = tw_resident_seize(pool, index, t);/return -EFAULT;/'
'drain: what was in its entry at first counts; s/^\t\t\*was = tw_deadline_stored(pool, t, stored);/\t\t;/'
'drain: one that changes is described once;  /tw_resident_seize(/,/^}/s/if (tw_copy_entry(/if (0 \&\& tw_copy_entry(/'
'drain: after a fault the entry stays taken; s/tw_resident_release(pool, index, stored);/;/'
'drain: the entry of one that changed stays; s/tw_resident_release(pool, index, 0);/;/'
'seize: programs may still change it;        /^u64 tw_resident_seize(/,/^}/s/return xchg(\(.*\), t->generation.*/return READ_ONCE(*\1);/'
'index: the key is compared before the state is read; /^struct tw_timer \*tw_lookup_index(/,/^}/{s/^\theld = tw_timer_held.*/\tif (READ_ONCE(t->key) != key) { tw_lookup_unlock(ctx, lookup); return ERR_PTR(tw_start_over(ctx, 0)); }\n&/; s/^\tif (READ_ONCE(t->key) != key) {$/\tif (0) {/}'
'deadline: any generation will do;           s/return !(((u32)entry ^ t->generation) & owner);/return true;/'
'deadline: a store makes a timer earlier;    s/if (time > t->deadline)/if (1)/'
'deadline: the generation is part of the time; s/u64 time = entry \& ~(u64)pool->generation_mask;/u64 time = entry;/'
'deadline: a new owner keeps the generation;  s/generation = (t->generation + step)/generation = (t->generation)/'
'deadline: generation 0;                     s/generation ?: step;/generation;/'
'deadline: a namespace behind the clock: the end of time; /^static .*tw_deadline_decode(/,/^}/s/return min(time - offset, TIMERWHEEL_TIME_MAX);/return TIMERWHEEL_TIME_MAX;/'
'deadline: before time 0;                    /^static .*tw_deadline_decode(/,/^}/s/return time > offset ? time - offset : 0;/return time - offset;/'
'time: no offset;                            /^static .*tw_clock_deadline(/,/^}/s/if (likely(!shift))/if (1)/'
'time: beyond TIMERWHEEL_TIME_MAX;           s/max_t(s64, sum, 0) : TIMERWHEEL_TIME_MAX;/max_t(s64, sum, 0) : sum;/'
'time: before 0;                             s/max_t(s64, sum, 0) : TIMERWHEEL_TIME_MAX;/sum : TIMERWHEEL_TIME_MAX;/'
'read: faults without an end;                 s/if (likely(!faults))/if (1)/'
)

# Compile the files that were changed; if a header was, all of them.
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
