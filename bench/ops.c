// SPDX-License-Identifier: GPL-2.0
/*
 * Each operation alone, with different numbers of pending timers of which none falls due.
 *
 * Cold: timers in a random order, a different one for each operation; when arming, memory
 * that was never used.
 * Warm: the same 1,024 timers repeatedly; when arming, memory that was used before. If time is
 * counted in instructions, cache misses are invisible, and only arming differs.
 */
#include <stdlib.h>

#include "bench.h"

#define WARM	1024

/* The timeout, for facilities with the same timeout for all timers */
#define TIMEOUT	HOUR

static __u64 cost_of_refresh;

/* All timers, in random order */
static __u32 *order;

static void order_open(__u32 n)
{
	__u32 i;

	order = xcalloc(n, sizeof(*order));
	for (i = 0; i < n; i++)
		order[i] = i;
}

static void shuffle(__u32 n)
{
	__u32 i, j, id;

	for (i = n - 1; i; i--) {
		j = random_below(&seed, i + 1);
		id = order[i];
		order[i] = order[j];
		order[j] = id;
	}
}

/* A walk that visits the first @n timers of the order, and begins again */
struct walk {
	__u32 place, n;
};

/*
 * Prepare changes with random deadlines within some hours. A refresh sets a later deadline than all
 * others, each later than the previous one.
 */
static void prepare(enum op op, struct walk *walk, __u32 n)
{
	__u64 now = now_ns();
	__u32 i;

	for (i = 0; i < n; i++) {
		changes[i].id = order[walk->place];
		walk->place = (walk->place + 1) % walk->n;
		if (op == REFRESH)
			changes[i].deadline = now + 5 * HOUR + i;
		else
			changes[i].deadline = now + HOUR / 2 + random_below(&seed, 4 * HOUR);
	}
}

/* The number of operations, and their time */
struct cost {
	__u64 n, ns;
};

static double each(struct cost cost)
{
	return (double)cost.ns / cost.n;
}

/*
 * Repeat an operation CHANGES times, or until the budget is spent. Cancelled timers are armed
 * again, which is also measured.
 */
static struct cost measure(enum op op, __u32 among, __u32 batch, struct cost *arming)
{
	struct walk walk = { .n = among };
	__u32 chunk = batch * (facility->threads ?: 1);
	__u32 most = among < CHANGES ? among : CHANGES;
	struct cost cost = { };

	if (chunk > most)
		chunk = most;
	while (cost.n < CHANGES && cost.ns < options.budget) {
		prepare(op, &walk, chunk);
		cost.ns += apply(op, changes, chunk, batch);
		if (op == CANCEL) {
			arming->ns += apply(ARM, changes, chunk, batch);
			arming->n += chunk;
		}
		cost.n += chunk;
		/* increase the chunk, so that reading the clock does not matter */
		chunk = 2 * chunk < most ? 2 * chunk : most;
	}
	return cost;
}

static void all_but_arming(__u32 n, __u32 batch)
{
	__u32 warm = n < WARM ? n : WARM;
	struct cost arming = { }, refresh;

	shuffle(n);
	result("move_cold", n, batch, each(measure(MOVE, n, batch, NULL)), "ns");
	result("move_warm", n, batch, each(measure(MOVE, warm, batch, NULL)), "ns");
	shuffle(n);
	refresh = measure(REFRESH, n, batch, NULL);
	if (batch == usual_batch())
		cost_of_refresh = each(refresh) + 1;
	result("refresh_cold", n, batch, each(refresh), "ns");
	result("refresh_warm", n, batch, each(measure(REFRESH, warm, batch, NULL)), "ns");
	shuffle(n);
	result("cancel_cold", n, batch, each(measure(CANCEL, n, batch, &arming)), "ns");
	result("arm_warm", n, batch, each(arming), "ns");
	arming = (struct cost) { };
	result("cancel_warm", n, batch, each(measure(CANCEL, warm, batch, &arming)), "ns");
}

/* The other sizes of batches, except sizes that would take too long */
static void batches(__u32 n)
{
	static const __u32 sizes[] = { 1, 16, 4096 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (sizes[i] > n)
			continue;
		if (sizes[i] * cost_of_refresh < 10 * options.budget)
			all_but_arming(n, sizes[i]);
		else
			skipped("ops", n, "a batch of %s takes more than %s", commas(sizes[i]),
				duration(10 * options.budget));
	}
}

static void at_size(__u32 n, bool largest)
{
	__u64 ns;

	progress("operations with %s timers pending", commas(n));
	/* before the memory of the facility is measured */
	order_open(n);
	facility_open(n, TIMEOUT);
	ns = arm_all(n, now_ns() + HOUR, HOUR);
	result("arm_cold", n, usual_batch(), (double)ns / n, "ns");
	if (largest)
		result("memory", n, 0, (double)facility_memory() / n, "bytes");
	all_but_arming(n, usual_batch());
	if (largest && facility->batches)
		batches(n);
	facility_close();
	free(order);
}

void bench_ops(void)
{
	__u32 most = bearable("ops", options.most), n;

	for (n = 1000; n < most; n *= 10)
		at_size(n, false);
	at_size(most, true);
}

__u64 refresh_cost(void)
{
	struct walk walk = { .n = 1000 };
	const __u32 n = walk.n;

	if (cost_of_refresh)
		return cost_of_refresh;
	/* the workload "ops" was not run: measure a few */
	order_open(n);
	facility_open(n, TIMEOUT);
	arm_all(n, now_ns() + HOUR, HOUR);
	prepare(REFRESH, &walk, n);
	cost_of_refresh = apply(REFRESH, changes, n, usual_batch()) / n + 1;
	facility_close();
	free(order);
	return cost_of_refresh;
}
