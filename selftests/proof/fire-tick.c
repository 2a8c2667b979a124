// SPDX-License-Identifier: GPL-2.0
/*
 * slots.h, tw_fire_tick(); ops.h, tw_slack_ticks(): the tick at which a timer fires does not begin
 * before its deadline. Without slack it is the first such tick, with slack at most the slack later.
 * No sum overflows, and neither does the time of the tick, even at the largest time.
 *
 * Assumed: deadlines up to TIMERWHEEL_TIME_MAX (clock.h, deadlines.h), ticks up to TW_TICK_MAX
 * (setup.c), a bias up to TW_BIAS_MAX (cpu.c); any slack.
 */
#include "proof.h"
#include "internal.h"
#include "ops.h"
#include "slots.h"

int main(void)
{
	struct tw_file file = { .setup.tick = proof_within(1, TW_TICK_MAX) };
	struct tw_ctx ctx = { .file = &file };
	struct tw_wheel w = {
		.tick = file.setup.tick,
		.bias = proof_within(0, TW_BIAS_MAX),
	};
	struct tw_timer t = { .deadline = proof_within(0, TIMERWHEEL_TIME_MAX) };
	u64 slack_asked = nondet_u64(), fire, first, begin, slack, slack_ns;

	slack = tw_slack_ticks(&ctx, slack_asked);
	slack_ns = slack_asked ? proof_division.product : 0;
	PROVE(slack_ns <= slack_asked && slack_ns <= TW_SLACK_MAX,
	      "slack: not more than asked for");

	first = tw_fire_tick(&w, &t);
	begin = proof_division.product;
	PROVE((wide)begin >= (wide)t.deadline + w.bias, "never early");
	PROVE((wide)begin < (wide)t.deadline + w.bias + w.tick, "less than a tick late");
	PROVE((wide)begin + slack_ns + w.tick <= U64_MAX, "the end of the last tick does not wrap");

	t.slack = slack;
	fire = tw_fire_tick(&w, &t);
	PROVE(fire >= first, "slack: never early");
	PROVE(fire - first <= slack, "slack: at most that much later");
	CASE(fire > first && w.bias && w.tick > TW_TICK_MIN);
	CASE(t.deadline == TIMERWHEEL_TIME_MAX && w.bias == TW_BIAS_MAX &&
	     slack_asked == TW_SLACK_MAX && w.tick == TW_TICK_MIN);
	CASE(first == fire && slack > 1);
	CASE(!fire);
	return 0;
}
