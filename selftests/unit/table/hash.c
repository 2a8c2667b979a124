// SPDX-License-Identifier: GPL-2.0
/*
 * Do keys in patterns have longer hash chains than random keys? Each pattern is tested with many
 * seeds, because a weak hash fails with few of them. Two weaker hashes must fail the test.
 */
#include <stdio.h>
#include <string.h>

#include "fail.h"
#include "hash.h"
#include "internal.h"
#include "source.h"
#include "table.h"

#define BUCKETS		64U
#define KEYS		(BUCKETS * TW_CHAINS)

/* Expected pairs of keys in one chain for a random function; the standard deviation is 21. */
#define PAIRS		(KEYS * (KEYS - 1ULL) / 2 / KEYS)
/* Of 10^8 sets of random keys less than one exceeds either. */
#define PAIRS_MAX	(PAIRS * 7 / 5)
#define CHAIN_MAX	16U

/* Left shifts with which all keys stay different */
#define SHIFTS		55U

enum {
	BACKWARDS = SHIFTS, INVERTED, TWO_COUNTERS, TWO_HIGH, SQUARES, GRAY, DIGITS, DOUBLES,
	TWICE, SPARSE, GOLDEN, ONES, PATTERNS,
};

typedef u64 hash_fn(const struct tw_table *table, u64 key);

/* Key number @i of a pattern */
static u64 pattern_key(unsigned int pattern, u64 i)
{
	double number = i + 1;
	u64 key = 0, bit;

	switch (pattern) {
	case BACKWARDS:
		return -i;
	case INVERTED:
		return i & 1 ? ~(i >> 1) : i >> 1;
	case TWO_COUNTERS:
		return i / 32 << 32 | i % 32;
	case TWO_HIGH:
		return i / 32 << 48 | (i % 32) << 16;
	case SQUARES:
		return i * i;
	case GRAY:
		return (i ^ i >> 1) << 20;
	case DIGITS:
		for (; i || !key; i /= 10)
			key = key << 8 | ('0' + i % 10);
		return key;
	case DOUBLES:
		memcpy(&key, &number, sizeof(key));
		return key;
	case TWICE:
		return i << 32 | i;
	case SPARSE:
		for (bit = 0; bit < 10; bit++)
			key |= (i >> bit & 1) << (6 * bit);
		return key;
	case GOLDEN:
		return i * 0x9e3779b97f4a7c15ULL;
	case ONES:
		return i * 0xffffffffULL;
	default:
		return i << pattern;
	}
}

/* The weaker hashes: without a fold, and with one */
static u64 no_fold(const struct tw_table *table, u64 key)
{
	return (key ^ table->seed[0]) * table->seed[1];
}

static u64 one_fold(const struct tw_table *table, u64 key)
{
	return tw_hash_fold(key ^ table->seed[0], table->seed[1]) * table->seed[1];
}

struct chains {
	u64 pairs;
	u32 longest;
};

static struct chains measure(hash_fn *fn, const struct tw_table *table, const u64 *key)
{
	u32 chain[BUCKETS][TW_CHAINS] = {};
	struct chains chains = {};
	unsigned int i;
	u32 *length;
	u64 hash;

	for (i = 0; i < KEYS; i++) {
		hash = fn(table, key[i]);
		length = &chain[tw_bucket_of(hash, BUCKETS)][tw_chain_of(hash)];
		chains.pairs += (*length)++;
		chains.longest = max(chains.longest, *length);
	}
	return chains;
}

static bool is_random(struct chains chains)
{
	return chains.pairs <= PAIRS_MAX && chains.longest <= CHAIN_MAX;
}

void hash_run(unsigned int seeds, u64 state)
{
	struct source source = { .state = state };
	unsigned int pattern, seed, i, none = 0, one = 0;
	struct tw_table table = {};
	struct chains all = {}, chains;
	u64 key[KEYS];

	for (pattern = 0; pattern < PATTERNS; pattern++) {
		for (i = 0; i < KEYS; i++)
			key[i] = pattern_key(pattern, i);
		for (seed = 0; seed < seeds; seed++) {
			table.seed[0] = source_word(&source);
			table.seed[1] = source_word(&source) | 1;
			chains = measure(tw_hash, &table, key);
			CHECK(is_random(chains),
			      "pattern %u, seed %llx, %llx: %llu pairs, not %llu; longest chain %u",
			      pattern, table.seed[0], table.seed[1], chains.pairs, PAIRS,
			      chains.longest);
			all.pairs = max(all.pairs, chains.pairs);
			all.longest = max(all.longest, chains.longest);
			none += !is_random(measure(no_fold, &table, key));
			one += !is_random(measure(one_fold, &table, key));
		}
	}
	printf("# at most %llu pairs in a chain, %llu expected, longest chain %u; ", all.pairs,
	       PAIRS, all.longest);
	printf("no fold: %u of %u sets are bad, one fold: %u\n", none, PATTERNS * seeds, one);
	CHECK(none && one, "a weaker hash passes");
}
