#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# usage: mutants.sh [--count] [--first N] MODULE BUILD COMPILE...
#
# Does the test notice faults in wheel.c and slots.h? See ../mutants.sh.
set -u
. "$(dirname "$0")/../mutants.sh"

area=wheel
files=(wheel.c slots.h)

# name; script for sed, which must change something
faults=(
'place: the level ends one slot early;       s/\(b - (w->cursor >> shift) >= w->level_size\)/\1 - 1/'
'place: the level ends one slot late;        s/\(b - (w->cursor >> shift)\) >= w->level_size/\1 > w->level_size/'
'place: one slot more is not seen;           s/if (unlikely(b - (w->cursor >> shift) >= w->level_size))/if (0)/'
'levels: one too high;                       s/\(reach.bit..list = \)level/\1(level + 1)/'
'place: work is not announced;               s/^\t\tw->work = work;/;/'
'place: nobody is told of work;              s/w->sooner = true;/;/'
'place: a tick too far is taken for near;    s/delta >= w->level_size/delta > w->level_size/'
'levels: slots too short;                    s/\(reach.bit..shift = \)level/\1!!level/'
'place: level is not busy;                   s/w->busy |= BIT(level);/;/'
'fire tick: rounded down;                    s/ + w->tick - 1, w->tick)/, w->tick)/'
'fire tick: no bias;                         s/t->deadline + w->bias/t->deadline/'
'fire tick: slack rounds wrongly;            s/(first - 1) ^ last/first ^ last/'
'open slot: bit not set;                     /^void tw_wheel_open_slot(/,/^}/s/__set_bit(.*/;/'
'place: prev of the next not set;            /^static .*tw_place(/,/^}/s/->prev = index;/->prev;/'
'first: bit not cleared;                     s/__clear_bit(.*/;/'
'first: prev not set;                        /^void tw_wheel_set_first(/,/^}/s/->prev = TW_HEAD | list;/->prev;/'
'remove: prev of the next not set;           /^static .*tw_wheel_remove(/,/^}/s/->prev = prev;/->prev;/'
'remove: next of the one before not set;     /^static .*tw_wheel_remove(/,/^}/s/->next = next;/->next;/'
'remove: not counted;                        /^static .*tw_wheel_remove(/,/^}/s/w->pending--;/;/'
'catch up: cursor too far;                   s/w->cursor = now + 1;/w->cursor = now + 2;/'
'catch up: while there is work;              s/if (w->work > now \&\& w->cursor <= now)/if (w->cursor <= now)/'
'first slot: place 0 is passed over;         s/base + place, base);/base + place, base + 1);/'
'first slot: the cursor'\''s is passed over; s/base + size, base + place);/base + size, base + place + 1);/'
'work: cascades begin late;                  s/level ? (b - 1) << /level ? b << /'
'work: cascades begin too early;             s/level ? (b - 1) << /level ? (b - 2) << /'
'next job: the last one first;               s/late <= job->late/late >= job->late/'
'visit: not at the very deadline;            s/t->deadline > now_ns/t->deadline >= now_ns/'
'visit: one tick early;                      s/t->deadline > now_ns/t->deadline > now_ns + w->tick/'
'visit: prev on the due list;                s/t->prev = prev;/t->prev = 0;/'
'visit: the due list has no end;             s/last->next = 0;/last->next = last->next;/'
'visit: the rest is forgotten;               /^static .*tw_visit(/,/^}/s/tw_wheel_set_first(w, list, index);/tw_wheel_set_first(w, list, 0);/'
'visit: over budget;                         /^static .*tw_visit(/,/^}/s/left = budget, /left = budget + 1, /'
'visit: stores are not seen;                  /^static .*tw_visit(/,/^}/s/__tw_deadline_sync(.*/;/'
'visit: not counted;                         s/w->pending -= expired;/;/'
'cascade: stores are not seen;                /^static .*tw_cascade(/,/^}/s/__tw_deadline_sync(.*/;/'
'cascade: over budget;                       /^static .*tw_cascade(/,/^}/s/left = budget;/left = budget + 1;/'
'detach: bit not set;                        /^static .*tw_detach(/,/^}/s/__set_bit(.*/;/'
'detach: no limit;                           s/if (w->backlogs == TW_BACKLOGS)/if (0)/'
'backlogs: they do not wrap;                 s/(w->backlog_first + 1) % TW_BACKLOGS/w->backlog_first + 1/'
'collect: cursor stands still;               s/w->cursor = max(w->cursor, min(now + 1, job.late));/;/'
'collect: cursor too far;                    s/min(now + 1, job.late)/min(now + 2, job.late)/'
'collect: cursor behind the slot;            s/min(now + 1, job.late)/now + 1/'
'collect: manual time jumps;                 s/manual ? job.slot \* w->tick/manual ? now * w->tick/'
'collect: detach when manual;                s/ \&\& !manual//'
'collect: backlogs wait for ever;            s/w->work <= now || w->backlogs;/w->work <= now;/'
'collect: backlogs are not visited;          s/if (w->work > now \&\& !w->backlogs)/if (w->work > now)/'
'collect: a late cascade is not detached;     s/if (last \&\& !manual/if (last \&\& !job.level \&\& !manual/'
'lateness: largest;                          s/late > w->late_max/late < w->late_max/'
'lateness: histogram;                        s/fls64(late)\]/fls64(late | 1)]/'
)

# All of the test but what is made of the two files.
build_mutant()
{
	local others=() object

	for object in "$2"/*.o; do
		case $object in
		*/rig.o) ;;
		*) others+=("$object") ;;
		esac
	done
	shift 2
	"$@" -w -iquote "$mutants" -o "$mutants/test" "$mutants/wheel.c" rig.c "${others[@]}"
}

run_mutants "$@"
