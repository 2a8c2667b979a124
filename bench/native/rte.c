// SPDX-License-Identifier: GPL-2.0
/*
 * DPDK's rte_timer: a skip list. It reads the cycle counter of the CPU, which cannot be simulated.
 * So simulated times are mapped to cycles, in the same order: the timers of the row "expire" are
 * due after a few ms, and expire in a single call. The others are due after hours.
 */
#include "../facility/absent.h"

#ifdef HAVE_RTE
#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_timer.h>
#include <stdlib.h>

#include "../bench.h"
#include "native.h"
#include "peers.h"

static struct rte_timer *timers;

static void due(struct rte_timer *timer, void *arg)
{
	(void)arg;
	deliver(timer - timers);
}

static char *arguments[] = {
	"native", "--no-huge", "-m", "64", "--no-pci", "--no-telemetry", "--no-shconf",
	"--log-level=4", "--lcores", "0@(0-1)",
};

static void rte_open(__u32 capacity, __u64 timeout)
{
	__u32 i;

	(void)timeout;
	if (rte_eal_init(ARRAY_SIZE(arguments), arguments) < 0 || rte_timer_subsystem_init())
		die("DPDK does not start");
	timers = xcalloc(capacity, sizeof(*timers));
	for (i = 0; i < capacity; i++)
		rte_timer_init(&timers[i]);
}

static __u64 cycles_until(__u64 deadline, __u64 now)
{
	__u64 left = deadline - now;

	return left < 10 * NSEC_PER_SEC ? left / 1000 : left * 1000;
}

static void rte_arm(const struct change *c, __u32 n)
{
	unsigned int core = rte_lcore_id();
	__u64 now = now_ns();
	__u32 i;

	for (i = 0; i < n; i++)
		if (rte_timer_reset(&timers[c[i].id], cycles_until(c[i].deadline, now), SINGLE,
				    core, due, NULL))
			die("rte_timer_reset failed");
}

static void rte_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		if (rte_timer_stop(&timers[c[i].id]))
			die("rte_timer_stop failed");
}

static void rte_run(__u64 until)
{
	(void)until;
	if (expiring)
		rte_timer_manage();
}

const struct facility native_rte = {
	.name = "rte_timer",
	.most = 1048576,
	.why = "an operation takes several microseconds",
	.open = rte_open,
	.arm = rte_arm,
	.move = rte_arm,
	.refresh = rte_arm,
	.cancel = rte_cancel,
	.run = rte_run,
};
#else
FACILITY_ABSENT(native_rte, "rte_timer", "libdpdk-dev");
#endif
