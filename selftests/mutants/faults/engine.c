# SPDX-License-Identifier: GPL-2.0
# What turns may take of the CPU
pace: turns cost nothing; icount/many:share.wheels_4.*,steady.wheels_1.*; /^static void tw_pace_spend(/,/^}/s/this_cpu_write(tw_pace.next, .*/;/
pace: a share of 80 %; open: icount/many:share.wheels_4.*; s/^\(#define TW_SHARE\t*\)40U/\180U/
pace: a share of 55 %; open: icount/many:share.wheels_4.*,share.users_4.*; s/^\(#define TW_SHARE\t*\)40U/\155U/
pace: saved without limit; open: icount/many:gaps.read_100.*,share.wheels_4.*,innocent.burst.*; /^static u64 tw_pace_saved(/,/^}/s/min_t(u64, now - next, tw_pace_earn(TW_SAVED_NS))/(now - next)/
pace: nothing is saved for firings; open: icount/many:innocent.burst.*; s/#define TW_RESERVE_NS\t(20 \* NSEC_PER_USEC)/#define TW_RESERVE_NS\t0/
pace: who is alone is not forgiven; open: icount/many:gaps.read_100.*; s/^\t\ttw_pace_forgive(now);$/\t\t;/
pace: no rest after a firing; open: icount/many:share.wheels_4.*,steady.wheels_1.*; s/this_cpu_write(tw_pace.rest, now + .*/;/
# Firings and turns
fire: no limit; open: icount/many:gaps.read_100.*,gaps.read_1.*; s/min_t(u64, tw_pace_saved(began), TW_BUDGET_NS)/U64_MAX/
fire: ten times the budget; open: icount/many:gaps.read_100.*; s/#define TW_BUDGET_NS\t(50 \*/#define TW_BUDGET_NS\t(500 */
fire: in spite of the pace; open: icount/many:share.wheels_4.*; s/if (!tw_pace_wait()) {/if (1) {/
fire: the thread is not woken; icount/many:gaps.read_1.*; s/^\t\twake_up_process(thread);/\t\t;/
fire: the next one is not started; icount/time:running.*.periodic,idle.one_timer icount/many:gaps.read_1.*; /^static enum hrtimer_restart tw_engine_fire(/,/^}/s/^\ttw_engine_program(engine);/\t;/
fire: it says that it is still started; time:running.*.periodic,running.*.now; /^static enum hrtimer_restart tw_engine_fire(/,/^}/s/^\tclock->programmed = TW_NEVER;/\t;/
turns: no queue is ever deferred; open: icount/many:innocent.burst.*,gaps.read_100.*; s/list = engine->threaded \&\& queue->spent >= quantum/list = 0/
turns: each queue is deferred at once; open: icount/many:interrupt.wheels_100.*,innocent.burst.*,steady.wheels_1.*; s/queue->spent >= quantum/queue->spent/
turns: what was spent in the firing before counts; open: icount/many:innocent.burst.*,interrupt.wheels_100.*; /^static void tw_engine_turns(/,/^}/s/queue->spent = 0;/;/
turns: deferred where no thread is; lifetime race:offline.*; s/list = engine->threaded \&\& /list = /
turn: it goes first again; open: icount/many:innocent.burst.*; /^static u64 tw_engine_turn(/,/^}/s/tw_entity_list(entity, &queue->ready);/list_add(\&entity->list, \&queue->ready); entity->place = TW_LISTED;/
turn: what is left is forgotten; icount/time:burst.one_tick; s/if (more \&\& (entity->place == TW_NOWHERE/if (0 \&\& (entity->place == TW_NOWHERE/
turn: a base that was removed goes on; lifetime:wheel.close*,module.* many:closing.*; s/if (more \&\& (entity->place == TW_NOWHERE || entity->place == TW_TIMED))/if (more \&\& entity->place != TW_LISTED)/
due: one at a time; open: icount/many:gaps.read_100.*,innocent.burst.*; s/#define TW_DUE_MAX\t2U/#define TW_DUE_MAX\t1U/
due: all at once; open: icount/many:gaps.read_100.*,span.read.*; s/#define TW_DUE_MAX\t2U/#define TW_DUE_MAX\tU32_MAX/
due: one ns late; open: icount/time:running.*.absolute,turns.steps icount/many:steady.wheels_1.*; s/tw_first_time(timed) <= now; n++/tw_first_time(timed) < now; n++/
settle: a queue with work now waits for its next base; icount/many:gaps.read_100.*; s/if (!list_empty(&queue->ready) || first <= now)/if (first <= now)/
settle: work that is due waits in the tree; open: icount/many:gaps.read_100.*; s/if (!list_empty(&queue->ready) || first <= now)/if (!list_empty(\&queue->ready))/
next: monotonic only; open: icount/time:running.*; /^static struct tw_queue \*tw_engine_next(/,/^}/s/for (i = 0; i < TW_CLOCKS; i++)/for (i = 0; i < 1; i++)/
program: ready queues start nothing; open: icount/many:gaps.read_100.*; s/if (i == TIMERWHEEL_CLOCK_MONOTONIC \&\& !list_empty(&engine->ready))/if (0)/
program: at once, whatever the pace; open: icount/many:share.wheels_4.*; s/if (wait || !at)/if (!at)/
program: an earlier time does not count; time:running.*.move_earlier,running.*.now; /^static void tw_engine_program(/,/^}/s/if (at >= clock->programmed)/if (clock->programmed != TW_NEVER)/
program: from wherever one is; race:elsewhere.*; s/if (unlikely(engine->threaded \&\& smp_processor_id() != engine->nr)) {/if (0) {/
program: the thread is not kicked; race:elsewhere.*; /^static void tw_engine_program(/,/^}/s/wake_up_process(.*/;/
kicked: the hrtimers stay where they are; open: race:elsewhere.*; /^static void tw_thread_kicked(/,/^}/s/engine->clock\[i\].programmed = TW_NEVER;/;/
# The thread
thread: it never sleeps; open: icount/many:share.wheels_4.*,innocent.burst.*; /^static u64 tw_thread_wait(/,/^}/s/return tw_pace_until(now, TW_RESERVE_NS + TW_BUDGET_NS);/return 0;/
thread: alone it does not run on; open: icount/many:gaps.read_100.*,innocent.burst.*; s/if (single_task_running()) {/if (0) {/
thread: alone it never sleeps; open: icount/many:gaps.read_100.*; s/return now - began < TW_ALONE_NS ? 0 : TW_ALONE_NS \/ 2;/return 0;/
thread: turns cost nothing; open: icount/many:share.wheels_4.*; /^static void tw_thread_turns(/,/^}/s/tw_pace_spend(now, now - before);/;/
thread: an ordinary task; open: icount/many:gaps.read_10.*,innocent.burst.* icount/time:burst.*; s/^\tsched_set_fifo_low(current);/\t;/
thread: of high priority; open: icount/many:gaps.read_100.*; s/^\tsched_set_fifo_low(current);/\tsched_set_fifo(current);/
thread: it does not start the hrtimers; icount/many:gaps.read_10.*,innocent.burst.*; /^static void tw_thread_turns(/,/^}/s/^\t\t\ttw_engine_program(engine);/\t\t\t;/
thread: it wakes too early from its sleep; icount/many:share.wheels_4.*; s/^\t\ttw_thread_sleep(engine, wait);/\t\ttw_thread_sleep(engine, wait \/ 20);/
park: what was deferred is forgotten; open: race:offline.* many:neighbour.*; s/^\tlist_splice_tail_init(&engine->deferred, &engine->ready);/\t;/
park: no hrtimer is started; open: race:offline.*; /^static void tw_thread_park(/,/^}/s/^\ttw_engine_program(engine);/\t;/
unpark: still without thread; open: race:offline.*; /^static void tw_thread_unpark(/,/^}/s/engine->threaded = true;/;/
# Bases and queues
start: a base whose turn is under way is left out; race:race.*.exactly_once,race.*.fires* icount/time:running.*; /^void tw_engine_start(/,/^}/s/if (cpu->entity.place == TW_NOWHERE || cpu->entity.place == TW_TIMED)/if (cpu->entity.place == TW_TIMED)/
start: the queue keeps its time; time:running.*.move_earlier; /^void tw_engine_start(/,/^}/s/^\t\t\ttw_queue_settle(queue, &engine->ready, 0);/\t\t\t;/
start: the hrtimer keeps its time; time:running.*.relative,running.*.absolute; /^void tw_engine_start(/,/^}/s/^\t\ttw_engine_program(engine);/\t\t;/
remove: it may be put back; open: lifetime:wheel.close*,module.* many:closing.*; /^void tw_engine_remove(/,/^}/s/cpu->entity.place = TW_REMOVED;/;/
remove: the queue stays; lifetime:wheel.close*,module.*; /^void tw_engine_remove(/,/^}/s/^\t\ttw_queue_settle(queue, &engine->ready, 0);/\t\t;/
remove: a queue that is listed is settled, too; icount/many:neighbour.* many:neighbour.*; /^void tw_engine_remove(/,/^}/{s/if (queue->entity.place == TW_TIMED ||/if (1 ||/}
remove: an empty clock stays started; open: icount/time:idle.*; s/hrtimer_try_to_cancel(&clock->timer) >= 0)/0)/
remove: what was cancelled counts as started; time:running.*.now,running.*.absolute lifetime:wheel.close*; /^void tw_engine_remove(/,/^}/s/clock->programmed = TW_NEVER;/;/
queue: it never ends; open: lifetime:wheels.*,memcg.close_gives_back limits:told.*; /^void tw_engine_queue_put(/,/^}/s/^\tkvfree(queue);/\t;/
queue: it ends with the first base; lifetime:wheels.*,module.*; s/last = !--queue->bases;/last = true;/
queue: another base is not counted; lifetime:wheels.*,module.*; s/^\t\t\tqueue->bases++;/\t\t\t;/
exit: hrtimers go on; open: lifetime:module.*; /^void tw_engine_exit(/,/^}/s/hrtimer_cancel(.*/;/
