// SPDX-License-Identifier: GPL-2.0
/*
 * table.h, tw_bucket_of(), tw_chain_of(): a hash belongs to an existing bucket and chain. When the
 * table grows by one bucket, only keys of the split bucket move, and they move to the new bucket.
 *
 * Assumed: at least one bucket, at most 2^31 (table.c); any hash.
 */
#include "proof.h"
#include "table.h"

int main(void)
{
	u32 buckets = proof_within(1, 1U << 31), before, after, split;
	u64 hash = nondet_u64();

	before = tw_bucket_of(hash, buckets);
	PROVE(before < buckets, "the bucket exists");
	PROVE(tw_chain_of(hash) < TW_CHAINS, "the chain exists");
	ASSUME(buckets < 1U << 31);
	after = tw_bucket_of(hash, buckets + 1);
	split = buckets - (1U << __fls(buckets));
	PROVE(after == before || after == buckets, "to the new bucket, or nowhere");
	PROVE(after == before || before == split, "from the bucket that is split");
	CASE(after != before && buckets > 5);
	CASE(after == before && before == split && buckets > 5);
	return 0;
}
