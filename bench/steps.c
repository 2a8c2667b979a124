// SPDX-License-Identifier: GPL-2.0
/* See steps.h. */
#include "bench.h"
#include "steps.h"

void steps_begin(struct steps *steps, __u64 length)
{
	const int tries = 1000;
	struct meter meter;
	int i;

	steps->length = length;
	steps->next = now_ns();
	/* never reached: steps end by time */
	expected.want = ~0U;
	meter_start(&meter);
	for (i = 0; i < tries; i++)
		steps_next(steps);
	steps->base = (double)meter_stop(&meter) / tries;
	steps->next = now_ns();
}

void steps_next(struct steps *steps)
{
	steps->next += steps->length;
	run_until(steps->next);
}
