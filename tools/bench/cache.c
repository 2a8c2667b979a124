// SPDX-License-Identifier: GPL-2.0
/* Entries of a cache: each lives from some seconds to a day (quick: an hour), all expire. */
#include "bench.h"

void bench_cache(void)
{
	__u64 longest = options.longest_life;
	__u32 n = bearable(options.most / 10);
	struct meter meter;

	if (facility->one_timeout)
		return;
	progress("%s entries of a cache live for up to %s", commas(n),
		 duration(longest));
	facility_open(n, 0);
	meter_start(&meter);
	/* The longest arming takes less than what is added to the second. */
	arm_all(n, now_ns() + 4 * NSEC_PER_SEC, longest - 4 * NSEC_PER_SEC);
	expected_come(n, now_ns() + longest);
	result("cache", n, usual_batch(), (double)meter_stop(&meter) / n, "ns");
	facility_close();
}
