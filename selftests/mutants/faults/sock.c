# NAME; TESTS; SED SCRIPT
visit: the connection is not looked at; socket:socket.ip4.sockmap; s/if (left > 0) {$/if (0) {/
visit: a closed socket is not noticed; socket:socket.ip4.closed_before; s/tw_tcp_gone(ts->sk)/0/
visit: it is not handed to the worker; socket:socket.ip4.event_only; s/^\ttw_sock_queue(ts, 0);/;/
left: data received does not count; icount/socket:socket.ip4.kinds; s/tw_sock_age(now, tw_tcp_received(ts->sk))/age/
left: data sent does not count; icount/socket:socket.ip4.kinds; s/tw_sock_age(now, tw_tcp_sent(ts->sk))/age/
left: a jiffy early; icount/socket:socket.ip4.data_postpones; s/(age ? age - 1 : 0)/(age + 1)/
left: half closed from the start; socket:socket.ip4.half_closed; /case TIMERWHEEL_SOCKET_HALF_CLOSED:/,/break;/s/age = 0;/;/
left: half closed, data does not count; icount/socket:socket.ip4.half_closed_in_use; /case TIMERWHEEL_SOCKET_HALF_CLOSED:/,/fallthrough;/s/fallthrough;/break;/
left: half closed, acknowledged data does not count; icount/socket:socket.ip4.half_closed_acknowledged; s/ || acked != ts->acked) {/) {/
queue: ended but not queued; socket:socket.ip4.memory_is_charged_and_given_back; s/tw_sock_queue(ts, TW_SOCK_ENDED);/;/
warn: not counted; socket:socket.ip4.nobody_reads,socket.ip4.move_withdraws_the_warning; s/events.warnings++;/events.warnings += 0;/
calm: the warning stays; socket:socket.ip4.*_withdraws_the_warning; s/if (ts->warned) {/if (0) {/
calm: the grace goes on; socket:socket.ip4.move_withdraws_the_warning; s/^\tts->grace_end = 0;/;/
move: the grace goes on; socket:socket.ip4.move_withdraws_the_warning; /^u64 tw_sock_move/,/^}/s/tw_sock_calm(ctx, ts);/;/
end: the timer of the warning is lost; socket:socket.ip4.room_for_two; /^void tw_sock_end/,/^}/s/tw_sock_free_warning(ctx, ts);/;/
end: not counted; socket:socket.ip4.event_only; s/atomic_dec(&ctx->file->socks->count);/;/
decide: an event is all; socket:socket.ip4.abort_at_once; s/} else if (!ts->abort) {/} else if (1) {/
decide: no grace; socket:socket.ip4.warning_then_abort; s/ts->grace && !ts->grace_end/0/
decide: data in the grace does not count; icount/socket:socket.ip4.data_withdraws_the_warning; s/if (ts->grace_end \&\& (left > 0 || ts->since != ts->warned_at))/if (0)/
handle: no abort; socket:socket.ip4.abort_at_once; s/ : tw_tcp_abort(ts->sk);/ : 0;/
handle: not counted; socket:socket.ip4.abort_at_once; s/atomic64_inc(&file->socks->aborted);/;/
held: each timer of a socket is tried; icount/socket:socket.ip4.many_wait_for_a_lock; s/^\t\t\theld->from++;/\t\t\t;/
held: one round after the other; icount/socket:socket.ip4.many_wait_for_a_lock; /^static void tw_held_round(/,/^}/s/held->at = jiffies + held->delay;/held->at = jiffies;/
held: no pace; icount/socket:socket.ip4.many_wait_for_a_lock; s/held->next += TW_SOCK_HELD_NS;/;/
held: one round is all; icount/socket:socket.ip4.many_wait_for_a_lock; s/^\tqueue_delayed_work(tw_socks_wq, &user->sock_work,$/\t(void)(0,/
held: a new one waits for the next round of the others; icount/socket:socket.ip4.new_one_is_tried_soon; s/if (RB_EMPTY_ROOT(&held->tree) || (!held->from .*/if (RB_EMPTY_ROOT(\&held->tree))/
held: a new one waits as long between tries; icount/socket:socket.ip4.new_one_is_tried_soon; s/^\theld->delay = 1;/\tif (RB_EMPTY_ROOT(\&held->tree))\n\t\theld->delay = 1;/
held: closed wheels stay; socket:socket.ip4.postponed_while_held; s/^\t\ttw_held_purge(held);/\t\t;/
held: what has ended stays; socket:socket.ip4.postponed_while_held; /^static void tw_sock_handle/,/^}/s/tw_held_remove(held, ts);/;/
drop: not uncharged; socket:socket.ip4.memory_is_charged_and_given_back; s/tw_user_uncharge(file->user, bytes);/;/
turn: the rest is forgotten; socket:socket.ip4.all_at_once; s/return socks->taken ||.*/return false;/
free all: attached connections are forgotten; socket:socket.ip4.close_the_wheel; s/i <= file->table.made \&\& /i <= 0 \&\& /
invalid: times are not checked; socket:socket.ip4.fields; s/arg->deadline - 1 >= TIMERWHEEL_SOCKET_TIME_MAX/0/
add: tries for ever; socket:socket.ip4.room_for_two; s/if (!was \&\& !--tries)/if (0)/
let go: closed sockets stay; icount/socket:socket.ip4.closed_are_let_go; s/^\t\tswap(sk, t->sock->sk);/\t\t;/
let go: open ones as well; icount/socket:socket.ip4.closed_are_let_go; s/t->sock->sk \&\& tw_tcp_closed(t->sock->sk)/t->sock->sk/
let go: what is dropped stays charged; icount/socket:socket.ip4.closed_are_let_go; /^static void tw_sock_let_go/,/^}/s/tw_sock_uncharge(file, bytes);/;/
sweep: the worker is not told; icount/socket:socket.ip4.closed_are_let_go; /^static void tw_sock_sweep_begin/,/^}/s/tw_sock_kick(socks->file);/;/
sweep: the first timers only; icount/socket:socket.ip4.closed_are_let_go; s/^\tWRITE_ONCE(socks->sweep, index);/\tWRITE_ONCE(socks->sweep, 0);/
sweep: once; icount/socket:socket.ip4.closed_are_let_go; s/if (atomic_read(&socks->count))$/if (0)/
