// SPDX-License-Identifier: GPL-2.0
/* Entries of a cache: each lives from a second to a day (quick: an hour); all expire. */
#include "bench.h"

#define SHORTEST_LIFE	NSEC_PER_SEC

/* Arm the timers of some new entries, and run the event loop once. */
static void live(__u32 first, __u32 count, __u64 longest)
{
	__u64 start = now_ns();
	__u32 i;

	for (i = 0; i < count; i++) {
		changes[i].id = first + i;
		changes[i].deadline = start + SHORTEST_LIFE +
				      random_below(&seed, longest - SHORTEST_LIFE);
	}
	own_ns += now_ns() - start;
	apply(ARM, changes, count, usual_batch());
	/* the first timers fall due before the last timers are armed */
	run_until(now_ns());
}

void bench_cache(void)
{
	__u64 longest = options.longest_life;
	__u32 n = bearable("cache", options.most / 10);
	struct meter meter;
	__u32 done;

	progress("%s entries of a cache live for up to %s", commas(n),
		 duration(longest));
	facility_open(n, 0);
	expected.want = ~0U;
	meter_start(&meter);
	for (done = 0; done < n; done += BATCH)
		live(done, n - done < BATCH ? n - done : BATCH, longest);
	expected_come(n, now_ns() + longest);
	result("cache", n, usual_batch(), (double)meter_stop(&meter) / n, "ns");
	facility_close();
}
