# SPDX-License-Identifier: GPL-2.0
# How much of the CPU turns may use
pace: turns cost nothing; icount/many:share.users_64_clocks_3.of_a_task; /^static void tw_pace_spend(/,/^}/s/this_cpu_write(tw_pace.next, .*/;/
pace: a share of 80 %; icount/many:share.users_64_clocks_3.of_a_task; s/^\(#define TW_SHARE\t*\)40U/\180U/
pace: a share of 55 %; icount/many:share.users_64_clocks_3.of_a_task; s/^\(#define TW_SHARE\t*\)40U/\155U/
pace: saved without limit; equivalent: it is only compared with less, and tw_pace_spend() limits it, too; it keeps the product from overflowing after 14 years; /^static u64 tw_pace_saved(/,/^}/s/min_t(u64, now - next, tw_pace_earn(TW_SAVED_NS))/(now - next)/
pace: saved for as long as nothing runs; icount/many:share.users_64_clocks_3.of_a_task; /^static void tw_pace_spend(/,/^}/s/next = max(next, .*/;/
pace: nothing is saved for firings; icount/many:innocent.burst_rings.*; s/#define TW_RESERVE_NS\t(20 \* NSEC_PER_USEC)/#define TW_RESERVE_NS\t0/
pace: who is alone is not forgiven; icount/many:alone.*; s/^\t\ttw_pace_forgive(now);$/\t\t;/
pace: no rest after a firing; icount/many:rest.*; s/this_cpu_write(tw_pace.rest, now + .*/;/
# How much one user may use
user: turns cost nothing; icount/many:share.timers_2000.of_a_task; /^static void tw_share_spend(/,/^}/s/ + tw_share_earn(ns);/;/
user: a share of 20 %; icount/many:share.timers_2000.of_a_task; s/^\(#define TW_USER_SHARE\t*\)10U/\120U/
user: a share of 5 %; icount/many:share.timers_2000.of_a_task; s/^\(#define TW_USER_SHARE\t*\)10U/\15U/
user: half a second is saved; icount/many:share.timers_2000.of_a_task; s/^\(#define TW_USER_SAVED_NS\t*\)(5 \*/\1(500 */
user: a turn of the thread costs nothing; icount/many:share.timers_2000.of_a_task; s/^\t\ttw_share_spend(share, now, now - before);/\t\t;/
user: an idle CPU is not noticed; icount/many:global.reader_on_an_idle_cpu; s/if (queue->paused \&\& is_idle_task(current))/if (0)/
user: a user pauses although no other task wants the CPU; icount/many:alone.*; /^static void tw_thread_quantum(/,/^}/s/if (single_task_running())/if (0)/
# Firings and turns
fire: no limit; icount/many:rest.*; s/min_t(u64, tw_pace_saved(began), TW_BUDGET_NS)/U64_MAX/
fire: ten times the budget; icount/many:rest.*; s/#define TW_BUDGET_NS\t(50 \*/#define TW_BUDGET_NS\t(500 */
fire: in spite of the pace; icount/many:rest.*,gaps.users_1000.*; s/if (!tw_pace_wait()) {/if (1) {/
fire: the thread is not woken; icount/many:gaps.read_1.*; s/^\t\twake_up_process(thread);/\t\t;/
fire: the next one is not started; icount/time:running.*.periodic,idle.one_timer icount/many:gaps.read_1.*; /^static enum hrtimer_restart tw_engine_fire(/,/^}/s/^\ttw_engine_program(engine);/\t;/
fire: it says that it is still started; time:running.*.periodic,running.*.now; /^static enum hrtimer_restart tw_engine_fire(/,/^}/s/^\tclock->programmed = TW_NEVER;/\t;/
turns: no queue is ever deferred; icount/many:global.thread_sleeps,share.wheels_4.of_a_fifo_task; s/list = engine->threaded \&\& (share->spent/list = 0 \&\& (share->spent/
turns: each queue is deferred at once; icount/many:global.thread_sleeps; s/share->spent >= quantum/share->spent/
turns: what was spent in the firing before counts; icount/many:global.thread_sleeps; /^static bool tw_engine_turns(/,/^}/s/share->spent = 0;/;/
turns: a queue is charged for those before it in the firing; icount/many:waiters.60.charged_to_their_user; /^static bool tw_engine_turns(/,/^}/s/before = now;/before = began;/
turns: deferred where no thread is; lifetime race:offline.*; s/list = engine->threaded \&\& /list = /
turn: it goes first again; icount/many:order.*; /^static u64 tw_engine_turn(/,/^}/s/tw_entity_list(entity, &queue->ready);/list_add(\&entity->list, \&queue->ready); entity->place = TW_LISTED;/
turn: what is left is forgotten; icount/time:burst.one_tick; s/if (more \&\& (entity->place == TW_NOWHERE/if (0 \&\& (entity->place == TW_NOWHERE/
turn: a base that was removed goes on; race:global.closed_in_its_turn; s/if (more \&\& (entity->place == TW_NOWHERE || entity->place == TW_TIMED))/if (more \&\& entity->place != TW_LISTED)/
due: one at a time; icount/many:order.*; s/#define TW_DUE_MAX\t2U/#define TW_DUE_MAX\t1U/
due: all at once; icount/many:order.*,gaps.read_1000.*; s/#define TW_DUE_MAX\t2U/#define TW_DUE_MAX\tU32_MAX/
due: one ns late; equivalent: the hrtimer is started for that ns again, and a listed queue has another turn: it is found as soon as the clock goes on; s/tw_first_time(timed) <= now; n++/tw_first_time(timed) < now; n++/
settle: a queue with work now waits for its next base; icount/many:gaps.read_100.*; s/if (!list_empty(&queue->ready) || first <= now)/if (first <= now)/
settle: work that is due waits in the tree; icount/many:share.wheels_1.of_a_fifo_task; s/if (!list_empty(&queue->ready) || first <= now)/if (!list_empty(\&queue->ready))/
next: monotonic only; icount/time:running.boottime.relative; /^static struct tw_queue \*tw_engine_next(/,/^}/s/for (i = 0; i < TW_CLOCKS; i++)/for (i = 0; i < 1; i++)/
program: ready queues start nothing; icount/many:rest.*; s/if (nr == TIMERWHEEL_CLOCK_MONOTONIC \&\& !list_empty(&engine->ready))/if (0)/
program: at once, whatever the pace; icount/many:gaps.users_1000.*; s/if (wait || !at)/if (!at)/
program: an earlier time does not count; time:running.*.move_earlier,running.*.now; /^static void tw_engine_program(/,/^}/s/if (at >= clock->programmed)/if (clock->programmed != TW_NEVER)/
program: from wherever one is; race:elsewhere.*; s/if (unlikely(engine->threaded \&\& smp_processor_id() != engine->nr)) {/if (0) {/
program: the thread is not kicked; race:elsewhere.*; /^static void tw_engine_kick(/,/^}/s/wake_up_process(.*/;/
kicked: the hrtimers stay where they are; race:offline.timers_fire_at_home_after_return; /^static u64 tw_thread_kicked(/,/^}/s/engine->clock\[i\].programmed = TW_NEVER;/;/
# The thread
thread: it never sleeps; icount/many:share.users_8.of_a_task; /^static u64 tw_thread_wait(/,/^}/s/return tw_pace_until(now, TW_RESERVE_NS + TW_BUDGET_NS);/return 0;/
thread: alone it does not run on; icount/many:alone.*; s/if (single_task_running()) {/if (0) {/
thread: alone it never sleeps; icount/many:alone.*; s/return now - began < TW_ALONE_NS ? 0 : TW_ALONE_NS \/ 2;/return 0;/
thread: turns cost nothing; icount/many:share.users_64_clocks_3.of_a_task; /^static void tw_thread_turns(/,/^}/s/tw_pace_spend(now, now - before);/;/
thread: an ordinary task; icount/many:global.thread_priority many:global.thread_priority; s/^\tsched_set_fifo_low(current);/\t;/
thread: of high priority; icount/many:global.thread_priority many:global.thread_priority; s/^\tsched_set_fifo_low(current);/\tsched_set_fifo(current);/
thread: it does not start the hrtimers; icount/many:gaps.read_10.*,innocent.burst.*; /^static void tw_thread_turns(/,/^}/s/^\t\t\ttw_engine_program(engine);/\t\t\t;/
park: what was deferred is forgotten; race:busy.*; s/^\tlist_splice_tail_init(&engine->deferred, &engine->ready);/\t;/
park: no hrtimer is started; race:busy.*; /^static void tw_thread_park(/,/^}/s/^\ttw_engine_program(engine);/\t;/
unpark: still without thread; race:elsewhere.fires_at_home; /^static void tw_thread_unpark(/,/^}/s/engine->threaded = true;/;/
# Bases and queues
start: a base whose turn is under way is left out; race:race.*.exactly_once,race.*.fires* icount/time:running.*; /^void tw_engine_start(/,/^}/s/if (cpu->entity.place == TW_NOWHERE || cpu->entity.place == TW_TIMED)/if (cpu->entity.place == TW_TIMED)/
start: the queue keeps its time; time:running.*.move_earlier; /^void tw_engine_start(/,/^}/s/^\t\t\t\ttw_queue_settle(queue, tw_queue_list(queue), 0);/\t\t\t\t;/
start: the hrtimer keeps its time; time:running.*.relative,running.*.absolute; /^void tw_engine_start(/,/^}/s/^\t\ttw_engine_program(engine);/\t\t;/
remove: it may be put back; race:global.closed_in_its_turn; /^void tw_engine_remove(/,/^}/s/cpu->entity.place = TW_REMOVED;/;/
remove: the queue stays; lifetime:wheel.close*,module.*; /^void tw_engine_remove(/,/^}/s/^\t\t\ttw_queue_settle(queue, tw_queue_list(queue), 0);/\t\t\t;/
remove: a queue that is listed is settled, too; icount/many:neighbour.* many:neighbour.*; /^void tw_engine_remove(/,/^}/{s/if ((queue->entity.place == TW_TIMED \&\& !queue->paused) ||/if (1 ||/}
remove: an empty clock stays started; lifetime:wheel.close_stops_the_hrtimer; s/hrtimer_try_to_cancel(&clock->timer) >= 0)/0)/
remove: what was cancelled counts as started; lifetime:wheel.close_and_arm_later; /^void tw_engine_remove(/,/^}/s/clock->programmed = TW_NEVER;/;/
queue: it never ends; lifetime:wheel.queues_end; /^void tw_engine_queue_put(/,/^}/s/^\ttw_queue_free(queue);/\t;/
queue: it ends with the first base; lifetime:wheels.*,module.*; s/last = !--queue->members;/last = true;/
queue: another base is not counted; lifetime:wheel.close_leaves_the_others; s/^\t\tqueue->members++;/\t\t\t;/
container: the users take turns with others; icount/many:container.counts_as_one_user; s/if (user->container) {/if (0) {/
container: it keeps its time when a user's comes; icount/many:container.counts_as_one_user; /^void tw_engine_start(/,/^}/s/for (; queue; queue = queue->parent)/for (; queue; queue = NULL)/
container: it stays when its last wheel is closed; many:container.has_the_cap_of_a_user; /^void tw_engine_remove(/,/^}/s/for (; queue; queue = queue->parent)/for (; queue; queue = NULL)/
exit: hrtimers go on; equivalent: each is cancelled with the last base that it was for, and a firing that is under way then has ended when the base is freed, a grace period later; /^void tw_engine_exit(/,/^}/s/hrtimer_cancel(.*/;/
