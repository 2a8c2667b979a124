#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# usage: mutants.sh MODULE BUILD COMPILE...
#
# Does the test detect faults in wheel.c, resident.c and slots.h? See ../mutants.sh.
set -u
. "$(dirname "$0")/../mutants.sh"

area=wheel
files=(wheel.c resident.c slots.h)

# name; script for sed, which must change something
faults=(
'place: the level ends one slot early;       s/\(b - (w->cursor >> shift) >= w->level_size\)/\1 - 1/'
'place: the level ends one slot late;        s/\(b - (w->cursor >> shift)\) >= w->level_size/\1 > w->level_size/'
'place: the end of the level is not checked; s/if (unlikely(b - (w->cursor >> shift) >= w->level_size))/if (0)/'
'levels: one too high;                       s/\(reach.bit..list = \)level/\1(level + 1)/'
'place: work is not announced;               s/^\t\tw->work = work;/;/'
'place: sooner is not set;                   s/w->sooner = true;/;/'
'place: one tick too many is on level 0;     s/delta >= w->level_size/delta > w->level_size/'
'levels: slots of upper levels too short;    s/\(reach.bit..shift = \)level/\1!!level/'
'place: the level is not marked busy;        s/w->busy |= BIT(level);/;/'
'fire tick: rounded down;                    s/ + w->tick - 1, w->tick)/, w->tick)/'
'fire tick: no bias;                         s/t->deadline + w->bias/t->deadline/'
'fire tick: slack rounds wrongly;            s/(first - 1) ^ last/first ^ last/'
'open slot: bit not set;                     /^void tw_wheel_open_slot(/,/^}/s/__set_bit(.*/;/'
'place: prev of the next not set;            /^static .*tw_place(/,/^}/s/->prev = index;/->prev;/'
'set first: bit not cleared;                 /^void tw_wheel_set_first(/,/^}/s/__clear_bit(.*/;/'
'set first: prev not set;                    /^void tw_wheel_set_first(/,/^}/s/->prev = TW_HEAD | strand;/->prev;/'
'remove: prev of the next not set;           /^static .*tw_wheel_remove(/,/^}/s/->prev = prev;/->prev;/'
'remove: next of the previous not set;       /^static .*tw_wheel_remove(/,/^}/s/->next = next;/->next;/'
'remove: not counted;                        /^static .*tw_wheel_remove(/,/^}/s/w->pending--;/;/'
'catch up: cursor too far;                   s/w->cursor = now + 1;/w->cursor = now + 2;/'
'catch up: although there is work;           s/if (w->work > now \&\& w->cursor <= now)/if (w->cursor <= now)/'
'first: each level has a limit of its own;   /^static u64 tw_slot_tick(/,/^}/s/--\*left;/;/'
'first slot: place 0 is skipped;             s/base + place, base);/base + place, base + 1);/'
'first slot: the slot of the cursor is skipped; s/base + size, base + place);/base + size, base + place + 1);/'
'work: cascades begin late;                  s/level ? (b - 1) << /level ? b << /'
'work: cascades begin too early;             s/level ? (b - 1) << /level ? (b - 2) << /'
'next job: the latest first;                 s/late <= job->late/late >= job->late/'
'visit: not at the deadline itself;          s/if (late > now_ns)/if (late - 1 >= now_ns)/'
'visit: one tick early;                      s/if (late > now_ns)/if (late > now_ns \&\& t->deadline > now_ns + w->tick)/'
'visit: prev on the due list;                s/t->prev = prev;/t->prev = 0;/'
'visit: the due list is not terminated;      s/\*link = 0;/;/'
'visit: the rest of the slot is lost;        /^static .*tw_visit(/,/^}/s/tw_walk_end(w, list, turn, many);/turn->index = 0; &/'
'visit: over budget;                         /^static .*tw_visit(/,/^}/s/left = budget, /left = budget + 1, /'
'visit: entries are ignored;                  /^static .*tw_visit(/,/^}/s/if (unlikely(deadlines)) {/if (0) {/'
'visit: not counted;                         s/w->pending -= expired;/;/'
'cascade: stores are ignored;                 /^static .*tw_cascade(/,/^}/s/tw_deadline_sync(.*/;/'
'cascade: over budget;                       /^static .*tw_cascade(/,/^}/s/left = budget;/left = budget + 1;/'
'detach: bit not set;                        /^static .*tw_detach(/,/^}/s/__set_bit(.*/;/'
'detach: no limit on backlogs;               s/if (w->backlogs == TW_BACKLOGS)/if (0)/'
'backlogs: the index does not wrap;          s/(w->backlog_first + 1) % TW_BACKLOGS/w->backlog_first + 1/'
'collect: cursor does not advance;           s/w->cursor = max(w->cursor, min(now + 1, job.late));/;/'
'collect: cursor too far;                    s/min(now + 1, job.late)/min(now + 2, job.late)/'
'collect: cursor behind the slot;            s/min(now + 1, job.late)/now + 1/'
'collect: manual time jumps;                 s/manual ? job.slot \* w->tick/manual ? now * w->tick/'
'collect: detach when manual;                s/ \&\& !manual//'
'collect: backlogs do not count as work;     s/w->work <= now || w->backlogs;/w->work <= now;/'
'collect: backlogs are not visited;          s/if (w->work > now \&\& !w->backlogs)/if (w->work > now)/'
'collect: a late cascade is not detached;     s/if (last \&\& !manual/if (last \&\& !job.level \&\& !manual/'
'collect: the search is free;                s/left -= min(left, job.cost);/;/'
'search: slots cost nothing;                 s/levels + levels \* w->level_size/levels + levels/'
'search: only one level costs;               s/searched++;/searched = 1;/'
'resident: one try less;                     s/unsigned int tries = TW_RESIDENT_TRIES;/unsigned int tries = TW_RESIDENT_TRIES - 1;/'
'resident: one try more;                     s/unsigned int tries = TW_RESIDENT_TRIES;/unsigned int tries = TW_RESIDENT_TRIES + 1;/'
'resident: tries without end;                s/} while (--tries);/} while (1);/'
'resident: after lost races fired anyway;    s/return TW_VISITED_AGAIN;/return TW_VISITED_FIRED;/'
'resident: after lost races two ticks later; /^static .*tw_place_next(/,/^}/s/ + 1);/ + 2);/'
'resident: after lost races the next tick is its deadline; /^static .*tw_place_next(/,/^}/s/^{/{\n\tt->deadline = now_ns + 1;/'
'resident: after lost races not counted;      /TW_VISITED_AGAIN/,/}/s/postponed++;/;/'
'resident: a lost race is not noticed;       s/likely(try_cmpxchg(entry, &old, old | TW_ENTRY_KERNEL))/(try_cmpxchg(entry, \&old, old | TW_ENTRY_KERNEL), 1)/'
'resident: an earlier entry makes a timer early; s/^\t\ttw_deadline_apply(pool, t, old);/\t\tif (tw_deadline_valid(pool, t, old)) t->deadline = tw_deadline_decode(pool, old);/'
'resident: a later entry does not postpone;   s/^\t\ttw_deadline_apply(pool, t, old);/\t\t;/'
'resident: looked at once;                   s/if (unlikely(!tw_deadline_valid(pool, t, old))) {/if (tries == TW_RESIDENT_TRIES \&\& !tw_deadline_valid(pool, t, old)) {/'
'visit: parked ones are pending;              s/w->pending -= parked;/;/'
'cascade: the rest of the slot is lost;       /^static .*tw_cascade(/,/^}/s/tw_walk_end(w, list, turn, many);/turn->index = 0; &/'
'strands: in the next one;                    s/w->strand\[index % TW_STRANDS\]/w->strand[(index + 1) % TW_STRANDS]/'
'strands: the bit of a strand is set;         s/tw_wheel_open_slot(w, list, b);/tw_wheel_open_slot(w, strand, b);/'
'strands: none in a new wheel;                s/w->strands = 1;/w->strands = 0;/'
'spread: no heads are copied;                 s/memcpy(head, w->head, .*/;/'
'spread: half of the heads are copied;        s/memcpy(head, w->head, w->lists/memcpy(head, w->head, w->lists \/ 2/'
'spread: strands of different lists are the same; s/w->strand\[i\] = i \* w->lists;/w->strand[i] = i * w->level_size;/'
'spread: the last strand is not walked;       s/w->strands = TW_STRANDS;/w->strands = TW_STRANDS - 1;/'
'spread: only the first strand is walked;     s/w->strands = TW_STRANDS;/;/'
'set first: the bit is cleared too early;     s/if (!tw_list_empty(w, list))/if (0)/'
'set first: the bit of a large list stays set; s/if (!tw_list_empty(w, list))/if (1)/'
'set first: the bit of the strand is cleared;  s/list %= w->lists;/;/'
'list empty: the last strand is overlooked;   /^static bool tw_list_empty(/,/^}/s/i < w->strands/i < w->strands - 1/'
'slot tick: only the first strand;            /^static u64 tw_slot_tick(/,/^}/s/i < w->strands/i < 1/'
'slot tick: a limit for each strand;          /^static u64 tw_slot_tick(/,/^}/s/return begin;/break;/'
'walk: timers stay in the list;               /tw_walk_begin(struct/,/^}/s/w->head\[number\] = 0;/;/'
'walk: the last strand is overlooked;         /tw_walk_begin(struct/,/^}/s/i < w->strands/i < w->strands - 1/'
'walk: the last strand has all turns;         s/end\[-1\].after = strand;/end[-1].after = end - 1;/'
'walk: all strands are the first one;         s/end->number = number;/end->number = list;/'
'walk: no turns;                              /tw_walk_on(struct/,/^}/s/many ? strand->after : strand/strand/'
'walk: ends with its first strand;            s/return before == strand ? NULL : strand->after;/return NULL;/'
'walk: does not end;                          s/return before == strand ? NULL : strand->after;/return strand->after;/'
'walk: a strand that has ended has turns;     s/before->after = strand->after;/;/'
'walk: a timer is visited twice;              /tw_walk_on(struct/,/^}/s/tw_strand_to(strand, pages, next);/strand->index = next;/'
'walk: the index of the former timer;         /tw_strand_to(struct/,/^}/s/strand->index = index;/;/'
'walk end: only one strand is put back;       s/} while (many .*/} while (0);/'
'walk end: prev not set;                      s/at->t->prev = TW_HEAD | at->number;/;/'
'walk end: prev is the list;                  s/at->t->prev = TW_HEAD | at->number;/at->t->prev = TW_HEAD | list;/'
'walk end: bit not cleared;                   /tw_walk_end(struct/,/^}/s/__clear_bit(.*/;/'
'detach: only the first strand;               /^static void tw_detach(/,/^}/s/i < w->strands/i < 1/'
'detach: the slot keeps its timers;           s/tw_wheel_set_first(w, list + w->strand\[i\], 0);/;/'
'detach: only if the first strand has timers; s/!left \&\& test_bit(list, w->occupied)/!left \&\& w->head[list]/'
'backlogs: end with their first strand;       s/if (test_bit(base + w->backlog_first, w->occupied))/if (w->head[base + w->backlog_first])/'
'lateness: largest;                          s/late > w->late_max/late < w->late_max/'
'lateness: histogram;                        s/fls64(late)\]/fls64(late | 1)]/'
)

# All objects of the test except those that depend on the files
build_mutant()
{
	local others=() object

	for object in "$2"/*.o; do
		case $object in
		*/rig.o|*/resident.o) ;;
		*) others+=("$object") ;;
		esac
	done
	shift 2
	"$@" -w -iquote "$mutants" -o "$mutants/test" "$mutants/wheel.c" \
		"$mutants/resident.c" rig.c "${others[@]}"
}

run_mutants "$@"
