#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# usage: selftests/lib/mutants.sh LIB BUILD COMPILE...
#
# Do the tests of the library notice faults in it, with wheels inside the process? LIB is the folder
# lib. See ../unit/mutants.sh; `lib/check-host mutants' runs this.
set -u
cd "$(dirname "$0")/../.." || exit
. selftests/unit/mutants.sh

area=library
files=(device.c error.c process.c queue.c store.c wheel.c backend.h keyhash.h store.h timerwheel.h
       timerwheel-mapped.h examples/server.c)

# name; script for sed, which must change something
faults=(
# The wheel inside the process
'REALTIME set back: not armed again;         s/if (!n \&\& wheel->clock == TIMERWHEEL_CLOCK_REALTIME)/if (0)/'
'REALTIME set back: left grows again;        s/timer->state == LTW_DUE \&\& timer->fired > now/0/'
'end: never set for later;                   s/wake < p->wake || (wake > p->wake \&\& p->wake <= now)/wake < p->wake/'
'end: not set for earlier;                   s/if (wake < p->wake || (wake/if ((wake/'
'wake: in seconds only;                      s/at.it_value.tv_nsec = wake % 1000000000;/;/'
'wake: due ones are not seen at once;        s/if (p->store.due)$/if (0)/'
'wake: a MANUAL clock sets the timerfd;      s/if (p->store.pending \&\& p->wheel.clock != TIMERWHEEL_CLOCK_MANUAL)/if (p->store.pending)/'
'fire: the lateness has a bit too many;      s/int bits = late ? 64/int bits = late ? 65/'
'fire: the largest lateness is the last;     s/if (late > p->stats.late_max)/if (1)/'
'expire: one tick early;                     s/heap\[0\].deadline <= now;/heap[0].deadline <= now + 1;/'
'expire: not at the very deadline;           s/heap\[0\].deadline <= now;/heap[0].deadline < now;/'
'visit: stores are not seen;                 s/armed = ltw_postpone(store, index, stored);/armed = stored \& 1;/'
'expire: a MANUAL clock jumps;               s/manual ? deadline : now/now/'
'expire: twice at the same time;             s/return now != p->expired \&\&/return/'
'expire: without a limit;                    s/ltw_expire(p, now, LTW_EXPIRE);/ltw_expire(p, now, UINT64_MAX);/'
'take: it ends at those that are not due;    s/behind = !n \&\& count \&\& ltw_behind(p, now);/behind = false;/'
'deadline: beyond the end of time;           s/now + ltw_least(deadline, TIMERWHEEL_TIME_MAX - .*);/now + deadline;/'
'deadline: absolute, beyond the end;         s/return ltw_least(deadline, TIMERWHEEL_TIME_MAX);/return deadline;/'
'deadline: before time began;                s/now > -deadline ? now + deadline : 0/now + deadline/'
'slack: rounded up;                          s/ltw_least(slack, LTW_SLACK_MAX) \/ p->tick/(ltw_least(slack, LTW_SLACK_MAX) + p->tick - 1) \/ p->tick/'
'slack: the default of the wheel for all;    s/add->flags \& TIMERWHEEL_SLACK ? add->slack : p->slack/p->slack/'
'unqueue: a due one is not counted;          s/p->stats.withdrawn++;/;/'
'describe: stores are not seen;              /^static void ltw_look(/,/^}/s/ltw_store_touched(.*/true;/'
'describe: slack in ticks;                   s/timer->slack \* p->tick/timer->slack/'
'add: EXCL and MATCH at once;                s/(add->flags & either) == either/0/'
'add: any period;                            s/add->period > TIMERWHEEL_TIME_MAX ||/0 ||/'
'add: a closed wheel takes those it has;     s/if (p->closed)$/if (p->closed \&\& !index)/'
'add: the former value stays;                /^static int ltw_process_add(/,/^}/s/timer->value = add->value;/;/'
'move, remove: any value matches;            s/if (flags & TIMERWHEEL_MATCH \&\& p->store/if (0 \&\& p->store/'
'remove: left is not set;                    s/remove->left = entry.left;/;/'
'batch: one too many in each run;            s/ltw_least(count, done + LTW_CHUNK); done < end/ltw_least(count, done + LTW_CHUNK) + (count > LTW_CHUNK); done < end/'
'list: the last one is not seen;             s/ltw_least(p->store.made + 1ULL, index + LTW_CHUNK)/ltw_least(p->store.made, index + LTW_CHUNK)/'
'drain: some indices are left out;           s/^\t\t\tnext++;/\t\t\tnext += 2;/'
'drain: it does not come round;              s/if (next > end || !next)/if (!next)/'
'drain: it comes round at the end of today;  s/if (next > end || !next)/if (next > p->store.made || !next)/'
'table: all of it can be accessed;           s/PROT_NONE,/PROT_READ | PROT_WRITE,/'
'table: no more than at first;               s/ltw_more_deadlines(store, room) || ltw_more/ltw_more/'
'drain: not closed;                          s/p->closed = true;/;/'
'advance: to where it is: an error;          s/if (to >= now) {/if (to > now) {/'
'advance: back;                              s/if (to >= now) {/if (1) {/'
'rearm: beyond the end of time;              s/if (timer->period > TIMERWHEEL_TIME_MAX - timer->deadline - passed)/if (0)/'
'rearm: drifts;                              s/timer->deadline += passed + timer->period;/timer->deadline = ltw_time(p) + timer->period;/'
'take: no overruns;                          s/event->overruns = (now - timer->deadline) \/ timer->period;/;/'
'open: any tick;                             s/(config->tick \&\& (config->tick < tick_min .*)) ||/0 ||/'
'open: waits for ever;                       s/(config->wake_events > 1 \&\& !config->wake_ns)/0/'
'open: succeeds without a timerfd;           s/if (!err \&\& p->wheel.fd < 0)/if (0)/'
'generations: too few bits;                  s/if (bits < LTW_GENERATION_BITS_MIN)/if (0)/'
'the timerfd is inherited;                   s/TFD_CLOEXEC | TFD_NONBLOCK/TFD_NONBLOCK/'
# Its timers
'store: generations come round to 0;         s/if (!timer->generation)$/if (0)/'
'store: a generation has all owners;         s/timer->generation = (timer->generation + step)/timer->generation = (timer->generation + 0)/'
'store: touched by a former owner;           s/return !((stored ^ timer->generation) & .*/return true;/'
'store: touched to beyond the end;           s/return deadline < TIMERWHEEL_TIME_MAX ? deadline : TIMERWHEEL_TIME_MAX;/return deadline;/'
'store: touched to earlier;                  s/ \&\& entry.deadline > timer->deadline) {/) {/'
'store: one timer more than its capacity;    s/if (store->made == store->capacity)/if (store->made > store->capacity)/'
'store: a chain loses its end;               s/\*link = timer->chain;/*link = 0;/'
'store: a longer table without the last;     s/for (i = 1; i <= store->made; i++) {/for (i = 1; i < store->made; i++) {/'
'store: an index that is free is lost;       s/store->free = store->timer\[\*index\].next;/store->free = 0;/'
'heap: only down;                            s/if (last.deadline < deadline)$/if (0)/'
'heap: only up;                              s/if (last.deadline < deadline)$/if (1)/'
'heap: the last child is left out;           s/end = least + LTW_WAYS;/end = least + LTW_WAYS - 1;/'
'due: the last one is not known;             /^static void ltw_due_remove(/,/^}/s/store->due_last = timer->prev;/;/'
'due: the first one is not known;            /^static void ltw_due_remove(/,/^}/s/store->due_first = timer->next;/;/'
'memory: without the table;                  s/(store->deadlines ? store->made \* sizeof(\*store->deadlines) : 0)/0/'
# Resident timers of the process back end
'resident: no room for the state;            s/step = TIMERWHEEL_TABLE_FIRED + 1;/step = 1;/'
'resident: too few bits;                     s/define LTW_GENERATION_BITS_MIN\t12U/define LTW_GENERATION_BITS_MIN\t10U/'
'resident: no table;                         s/config->table || config->resident);/config->table);/'
'resident: INFO does not say so;             s/(p->store.resident ? TIMERWHEEL_INFO_RESIDENT : 0)/0/'
'resident: no feature;                       s/\.features = TIMERWHEEL_FEATURE_TABLE | TIMERWHEEL_FEATURE_HANDLE,/.features = TIMERWHEEL_FEATURE_HANDLE,/'
'handle: any generation;                     /^bool ltw_store_owned(/,/^}/s/timer\[index\].generation == generation/generation/'
'handle: timers that have ended;             /^bool ltw_store_owned(/,/^}/s/store->timer\[index\].state != LTW_FREE/1/'
'handle: EXCL in a wheel without a table;     s/if (p->flags \& TIMERWHEEL_EXCL \&\& !p->store.deadlines)/if (0)/'
'handle: no value;                           /^static int ltw_process_remove_handle(/,/^}/s/remove->value = entry.value;/;/'
'handle: any flag of the call;               s/if (flags \& ~kinds\[kind\].flags)/if (0)/'
'resident: parked ones are not counted;      /^static int ltw_process_stats(/,/^}/s/stats->parked = .*/;/'
'resident: parked for ever;                  s/store->parked--;/;/'
'valid: only what is cancelled;              s/ltw_low_bits(store) & ~(uint64_t)TIMERWHEEL_TABLE_ARMED;/ltw_low_bits(store);/'
'valid: the state of the back end, too;      s/~(uint64_t)TIMERWHEEL_TABLE_ARMED;/~(uint64_t)TIMERWHEEL_TABLE_FIRED;/'
'visit: a store;                             s/if (!ltw_swap(entry, stored, stored | kernels))/{ extern int usleep(unsigned int); usleep(1); } __atomic_store_n(entry, stored | kernels, __ATOMIC_SEQ_CST); if (0)/'
'visit: a cancelled one fires;               s/return armed ? LTW_FIRED : LTW_CANCELLED;/return LTW_FIRED;/'
'visit: nonsense stays;                      s/__atomic_store_n(entry, stored, __ATOMIC_RELAXED);/;/'
'visit: a parked one is due;                 s/if (visit == LTW_CANCELLED) {/if (0) {/'
'visit: it is lost;                          /^static unsigned int ltw_visit_timer(/,/^}/s/ltw_store_park(.*/;/'
'set: loaded and stored;                     s/old = __atomic_exchange_n(entry, want, __ATOMIC_SEQ_CST);/old = *entry; { extern int usleep(unsigned int); usleep(1); } __atomic_store_n(entry, want, __ATOMIC_SEQ_CST);/'
'set: EXCL looked at and stored;             s/ || !ltw_swap(entry, old, want))/ || (({ extern int usleep(unsigned int); usleep(1); }), __atomic_store_n(entry, want, __ATOMIC_SEQ_CST), 0))/'
'set: EXCL moves a due one;                  s/if (unless_armed \&\& timer->state == LTW_DUE)/if (0)/'
'set: EXCL moves an armed one;               s/if (unless_armed \&\& pending) {/if (0) {/'
'set: the deadline is not rounded;           s/^\t\tdeadline = ltw_stored_deadline(store, want);/\t\t;/'
'set: one that has passed is rounded;        /Near the maximum/,/want |=/s/if (deadline > now)/if (1)/'
'set: one that has passed is armed;          s/want |= deadline > now ? /want |= true ? /'
'set: a cancelled one was pending;           s/return pending \&\& ltw_stored_cancelled(store, timer, old) ?/return 0 ?/'
'encode: rounded down;                       s/(deadline < end ? deadline : end) + low) & ~low/(deadline < end ? deadline : end)) \& ~low/'
'encode: beyond the end of time;             s/((deadline < end ? deadline : end) + low)/(deadline + low)/'
'linger: armed;                              /^void ltw_store_linger(/,/^}/s/TIMERWHEEL_TABLE_CANCELLED/TIMERWHEEL_TABLE_ARMED/'
'linger: from the deadline on;               s/ltw_encode(store, timer, now + timer->period,/ltw_encode(store, timer, timer->deadline + timer->period,/'
'linger: none;                               s/if (!p->store.timer\[index\].period) {/if (1) {/'
'stay: not counted;                          /^static void ltw_stay(/,/^}/s/p->stats.rearmed++;/;/'
'deliver: ends as others do;                 s/^\tif (p->store.resident) {$/\tif (0) {/'
'disown: the entry stays;                    s/old = __atomic_exchange_n(&store->deadlines\[index\], 0, __ATOMIC_SEQ_CST);/old = store->deadlines[index];/'
'disown: it is not looked at;                s/return store->timer\[index\].state != LTW_PENDING || ltw_postpone(store, index, old);/(void)old; return true;/'
'describe: a cancelled one is pending;       s/int was = armed ? TIMERWHEEL_WAS_PENDING : TIMERWHEEL_WAS_PARKED;/int was = TIMERWHEEL_WAS_PENDING;/'
'describe: a parked one is pending;          s/else if (timer->state == LTW_PARKED)/else if (0)/'
'describe: no linger;                        s/lingers ? TIMERWHEEL_LINGER : 0/0/'
'add: a period, in a wheel with a table;     s/(p->store.deadlines \&\& !add->period == !!(add->flags & TIMERWHEEL_LINGER)) ||/0 ||/'
'add: a linger, in any wheel;                s/const uint32_t linger = p->store.resident ? TIMERWHEEL_LINGER : 0;/const uint32_t linger = TIMERWHEEL_LINGER;/'
'add: it is not armed in its entry;          /^static int ltw_process_add(/,/^}/s/^\t\tif (p->store.deadlines)$/\t\tif (0)/'
'move: EXCL, in any wheel;                   s/const uint32_t excl = p->store.deadlines ? TIMERWHEEL_EXCL : 0;/const uint32_t excl = TIMERWHEEL_EXCL;/'
'move: EXCL is forgotten;                    s/move->deadline, move->flags, now);/move->deadline, move->flags \& ~TIMERWHEEL_EXCL, now);/'
# Resident timers in memory
'resident: any wheel will do;                s/if (!wheel->table.entries)/if (0)/'
'arm: past the end of time;                  /timerwheel_table_arm(const/,/^}/s/if (__builtin_expect((int64_t)deadline < 0, 0))/if (0)/'
'refresh: past the end of time;              /timerwheel_table_refresh(const/,/^}/s/if (__builtin_expect((int64_t)deadline < 0, 0))/if (0)/'
'arm: those of others;                       s/if (differs & ~(__u64)TIMERWHEEL_TABLE_ARMED)/if (differs \& 2)/'
'arm: what has fired or is parked;           s/if (differs & ~(__u64)TIMERWHEEL_TABLE_ARMED)/if (differs > 3)/'
'arm: one that is gone needs a call;         s/return differs > TIMERWHEEL_TABLE_FIRED ? TIMERWHEEL_GONE :/return 0 ? TIMERWHEEL_GONE :/'
'arm: earlier;                               /^static inline enum timerwheel_answer timerwheel_mapped_arm(/,/^}/s/if (want < old)/if (0)/'
'arm: not for the same deadline;             /^static inline enum timerwheel_answer timerwheel_mapped_arm(/,/^}/s/if (want < old)/if (want <= old)/'
'arm: a store;                               /^static inline enum timerwheel_answer timerwheel_mapped_arm(/,/^}/s/while (!__atomic_compare_exchange_n(&table\[index\], &old, want,/while (({ extern int usleep(unsigned int); usleep(1); table[index] = want; 0; }) \&\& !__atomic_compare_exchange_n(\&table[index], \&old, want,/'
'refresh: what is not armed;                 /timerwheel_mapped_refresh(/,/^}/s/if (differs)$/if (differs > 3)/'
'refresh: earlier;                           /timerwheel_mapped_refresh(/,/^}/s/if (want < old)/if (0)/'
'refresh: a store;                           /timerwheel_mapped_refresh(/,/^}/s/while (!__atomic_compare_exchange_n(&table\[index\], &old, want,/while (({ extern int usleep(unsigned int); usleep(1); table[index] = want; 0; }) \&\& !__atomic_compare_exchange_n(\&table[index], \&old, want,/'
'cancel: what is not armed;                  /timerwheel_mapped_cancel(/,/^}/s/if (differs)$/if (differs > 3)/'
'cancel: those of others;                    /timerwheel_mapped_cancel(/,/^}/s/if (differs)$/if (differs \&\& differs < 4)/'
'cancel: a store;                            /timerwheel_mapped_cancel(/,/^}/s/while (!__atomic_compare_exchange_n(&table\[index\], &old,/while (({ extern int usleep(unsigned int); usleep(1); table[index] = old ^ 1; 0; }) \&\& !__atomic_compare_exchange_n(\&table[index], \&old,/'
'cancel: the deadline is lost;               s/old - TIMERWHEEL_TABLE_ARMED, 1,/generation, 1,/'
'refresh: never too late;                    /timerwheel_mapped_refresh(/,/^}/s/differs & TIMERWHEEL_TABLE_ARMED ?/1 ?/'
'refresh: those of others;                   /timerwheel_mapped_refresh(/,/^}/s/return differs > TIMERWHEEL_TABLE_FIRED ?/return 0 ?/'
'cancel: never too late;                     /timerwheel_mapped_cancel(/,/^}/s/differs & TIMERWHEEL_TABLE_ARMED ?/1 ?/'
'cancel: always too late;                    /timerwheel_mapped_cancel(/,/^}/s/differs & TIMERWHEEL_TABLE_ARMED ?/0 ?/'
'cancel: nothing is gone;                    /timerwheel_mapped_cancel(/,/^}/s/return differs > TIMERWHEEL_TABLE_FIRED ?/return 0 ?/'
# What is common to all wheels
'choose: any name is a back end;             /^static int ltw_choose(/,/^}/s/\t\treturn -EINVAL;/\t\treturn 0;/'
'choose: the environment goes first;         s/if (!config->device)$/if (getenv("TIMERWHEEL_DEVICE"))/'
'open: the process for each error;           s/(err == -ENOENT || err == -ENXIO || err == -ENODEV)/err/'
'open: errno is left behind;                 /^int timerwheel_open(/,/^}/s/errno = saved;/;/'
'take: more than a call may;                 s/wheel->ops->take(wheel, events, ltw_most(count))/wheel->ops->take(wheel, events, count + 1)/'
'drain: none is no reason to close;          /^long timerwheel_drain(/,/^}/s/^\tdo {$/\tif (count) do {/'
'list: one page;                             s/if (n != (long)want)$/if (1)/'
'sleep: whole ms;                            s/MONOTONIC) + timeout;/MONOTONIC) + timeout \/ 1000000 * 1000000;/'
'sleep: signals are forgotten;               s/return n < 0 ? n : 1;/return 1;/'
'sleep: for ever;                            s/ends ? \&left : NULL/NULL/'
'wait: 0 sleeps;                             s/if (n || !timeout)/if (n)/'
'table: there always is one;                 s/if (!wheel->table.entries)/if (0)/'
# Queues
'queue: any order;                           s/ltw_before(queue, other) & 1U << kind/0/'
'queue: only what is directly before;        s/before |= queue->after\[other\];/;/'
'queue: notes stay;                          /^static void ltw_queue_empty(/,/^}/s/queue->turn++;/;/'
'queue: failures of the first only;          s/for (; count; count--, elem += size)/if (count)/'
'queue: one too many;                        s/queue->count\[kind\] == queue->room ||/queue->count[kind] == queue->room + 1 ||/'
'queue: arm before what is queued;           s/if (!ltw_queued(queue, key))$/if (1)/'
'queue: arm does not queue;                  /^int timerwheel_queue_arm(/,/^}/s/return ltw_queue_deadline(.*/return answer;/'
'queue: refresh does not queue;              /^int timerwheel_queue_refresh(/,/^}/s/return ltw_queue_deadline(.*/return answer;/'
'queue: a relative deadline;                 /^static int ltw_queue_deadline(/,/^}/s/TIMERWHEEL_ABS/0/'
'queue: cancel before what is queued;        s/return ltw_queued(queue, key) ? timerwheel_queue_flush(queue) : 0;/return 0;/'
'queue: cancel flushes always;               s/return ltw_queued(queue, key) ? timerwheel_queue_flush(queue) : 0;/return timerwheel_queue_flush(queue);/'
# Memory that others write to
'table: beyond the end of time;              /timerwheel_table_refresh(const/,/^}/s/if (__builtin_expect((int64_t)deadline < 0, 0))/if (0)/'
'table: rounded down;                        s/(deadline + unit - 1) & ~(unit - 1)/deadline \& ~(unit - 1)/'
'table: the next owner is postponed;         /timerwheel_mapped_refresh(/,/^}/s/differs = (old ^ want) \& ((1ULL << bits) - 1);/differs = (old ^ want) \& TIMERWHEEL_TABLE_FIRED;/'
'ring: the length is that of the ring;       s/ring->events - 1/ring->ring->mask/'
'ring: the end is that of the ring;          s/to_end = ring->events - place/to_end = ring->ring->mask + 1 - place/'
'ring: the size is that of the ring;         s/place \* ring->event_size/place * ring->ring->event_size/'
'ring: the next one is where the ring says;  s/seen + ring->event_size/seen + ring->ring->event_size/'
'ring: behind its end;                       s/\(tail - ring->head\) < to_end ? tail - ring->head : to_end/\1/'
'ring: more than asked for;                  s/if (n > max - done)/if (n > max)/'
'ring: nothing is given back;                s/^\tring->head += n;/\t;/'
'ring: sleeps without a word;                s/__atomic_store_n(&ring->ring->waiting, 1, __ATOMIC_RELAXED);/;/'
'ring: sleeps while there is more;           s/& TIMERWHEEL_RING_OVERFLOW)$/\& 0)/'
'ring: it is looked at for ever;             s/looks < LTW_RING_LOOKS/1/'
'ring: it is not asked for more;             s/err = ltw_call(wheel, TIMERWHEEL_IOC_FLOW, NULL);/err = 0;/'
# What a descriptor to adopt answers
'adopt: a file is a wheel;                   s/if (!S_ISCHR(st.st_mode))/if (0)/'
'adopt: any device is a wheel;               s/return name \&\& !strcmp(name, "\/timerwheel") ? 0 : -ENOTTY;/return 0;/'
'adopt: a part of the name is enough;        s/!strcmp(name, "\/timerwheel")/strstr(name, "timerwheel")/'
'adopt: no sysfs, no wheel;                  /readlink(path/,/return/s/return 0;/return -ENOTTY;/'
'adopt: any clock;                           s/if (info->clock > TIMERWHEEL_CLOCK_MANUAL)/if (0)/'
'adopt: events of any size;                  s/info->event_size < known || info->event_size % 8 :/0 :/'
'adopt: small events;                        s/info->event_size < known || //'
'adopt: crooked events;                      s/ || info->event_size % 8 :/ :/'
'adopt: larger events, also from read;       s/info->event_size != known)/0)/'
'adopt: no larger events;                    s/info->ring ? info->event_size < known/info->ring ? info->event_size != known/'
'adopt: a ring of any length;                s/if (info->ring & (info->ring - 1))/if (0)/'
'adopt: no bits of a generation;             s/info->generation_bits > 2 \&\& //'
'adopt: a table that it does not have;       s/!(info.flags & TIMERWHEEL_INFO_TABLE))/0)/'
'adopt: the state needs no bits;             s/info->generation_bits > 2 /info->generation_bits > 0 /'
'adopt: any number of bits;                  s/ \&\& info->generation_bits <= 32//'
'adopt: bits of a table that is not mapped;  s/return !table || (info->gen/return (info->gen/'
# Errors, and the example
'errors: one is left out;                    s/\[EDQUOT\] =/[EXFULL] =/'
'errors: a number that is too large;         s/if (number < sizeof(ltw_errors).*/if (1)/'
'server: the event is believed;              s/if (conn->key \&\& event->deadline >= conn->deadline)/if (conn->key)/'
'server: not armed again;                    s/else if (!conn_arm(fd, conn->key, deadline))/else if (0)/'
)

programs=(library library_queue library_random library_resident library_ring library_clock)
kselftest=$(scripts/vm/source)/tools/testing/selftests
wrapped=$(grep -o '__real_[a-z_0-9]*' selftests/lib/wrap.h | sed 's/__real_/-Wl,--wrap=/')
export TW_FAKE_CLOCK=1

# object SOURCE OBJECT COMPILE...: of the library, or of a test.
object()
{
	local source=$1 object=$2

	shift 2
	"$@" -w -DPROCESS -fPIC -I"$mutants" -Iuapi -iquote selftests -isystem "$kselftest" \
		-include "$mutants/timerwheel.h" -c -o "$object" "$source"
}

# Without a fault all is compiled, later only what has changed: of headers everything.
build_mutant()
{
	local changed=$1 plain=$2/plain into=$mutants tests name objects=() run=("${programs[@]}")

	shift 2
	if [[ $changed == "${files[*]}" ]]; then
		into=$plain
		run+=(library_examples)
	elif [[ $changed == *examples/* ]]; then
		run=(library_examples)
	fi
	tests=$plain
	[[ $changed != *.h* ]] || tests=$into
	mkdir -p "$into/lib"
	for name in "${files[@]}"; do
		[[ $name == *.c && $name != */* ]] || continue
		if [[ $tests == "$into" || " $changed " == *" $name "* ]]; then
			object "$mutants/$name" "$into/$name.o" "$@" || return
			objects+=("$into/$name.o")
		else
			objects+=("$plain/$name.o")
		fi
	done
	if [[ $tests == "$into" ]]; then
		for name in "${run[@]}" lib/wrap; do
			object "selftests/$name.c" "$tests/$name.o" "$@" || return
		done
	fi
	if [[ ${run[*]} == *library_examples* ]]; then
		"$@" -w -I"$mutants" -Iuapi -o "$mutants/examples/server" \
			"$mutants/examples/server.c" "${objects[@]}" || return
	fi
	# One after another: the first one notices most faults. A fault may make a test run for ever, in
	# a process group of its own, but in our session.
	{
		echo '#!/usr/bin/env -S setsid --wait bash'
		echo 'trap "pkill -KILL -s $$ -x library.\*" EXIT'
		echo "export TW_EXAMPLES=$PWD/$mutants/examples"
		for name in "${run[@]}"; do
			echo "$*" -o "$mutants/$name" "$tests/$name.o" "$tests/lib/wrap.o" \
				"${objects[*]}" "${wrapped//$'\n'/ }" '|| exit'
			echo "[ $name != library_examples ] || export TW_ONLY='server.*'"
			echo "timeout 20 $mutants/$name || exit"
		done
	} >"$mutants/test"
	chmod +x "$mutants/test"
}

mkdir -p "$2/mutants/examples"
run_mutants "$@"
