// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target: bytes choose a configuration, then operations. The Makefile renames tw_fuzz()
 * to LLVMFuzzerTestOneInput().
 */
#include <linux/kernel.h>

#include "driver.h"

int tw_fuzz(const u8 *bytes, size_t size);

int tw_fuzz(const u8 *bytes, size_t size)
{
	static const unsigned int slots[] = { 8, 8, 8, 16, 16, 32, 64, 256 };
	static const u64 ticks[] = { 1, 1000, 997, 1000000, 1048577, 999999937, 3600000000000ULL };
	static const unsigned int timers[] = { 2, 8, 32, 200 };
	struct source s = { .bytes = bytes, .end = bytes + size };
	struct config config = { .ops = U64_MAX, .walk = 1 };

	if (!size)
		return 0;
	config.slots = slots[source_pick(&s, ARRAY_SIZE(slots))];
	config.tick = ticks[source_pick(&s, ARRAY_SIZE(ticks))];
	config.timers = timers[source_pick(&s, ARRAY_SIZE(timers))];
	config.manual = source_pick(&s, 3) == 2;
	config.bits = source_pick(&s, 21);
	if (config.bits < 3)
		config.bits = 0;
	driver_run_bytes(&config, s.bytes, s.end - s.bytes);
	return 0;
}
