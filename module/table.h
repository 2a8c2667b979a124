/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looking up a timer by its key: part of each operation, so it is all inline. How the table
 * works is told in table.c.
 */
#ifndef TW_TABLE_H
#define TW_TABLE_H

#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>

#include "internal.h"

/* Multiply and fold: as good as needed for a table whose seed is secret. */
static inline u64 tw_hash(const struct tw_table *table, u64 key)
{
	u64 a = key ^ table->seed[0];

	return (a * table->seed[1]) ^ mul_u64_u64_shr(a, table->seed[1], 64);
}

/* Which of @buckets buckets @hash belongs to. */
static inline u32 tw_bucket_of(u64 hash, u32 buckets)
{
	u32 mask = (u32)(BIT_ULL(fls(buckets)) - 1);
	u32 b = hash & mask;

	return b < buckets ? b : b & (mask >> 1);
}

/* Which chain in its bucket. */
static inline u32 tw_chain_of(u64 hash)
{
	return ((hash >> 32) * TW_CHAINS) >> 32;
}

static inline struct tw_bucket *tw_bucket_at(const struct tw_table *table, u32 b)
{
	struct tw_bucket **bucket = rcu_dereference_raw(table->bucket);

	return &bucket[b / TW_PAGE_BUCKETS][b % TW_PAGE_BUCKETS];
}

/**
 * tw_table_lock - lock the bucket of a key
 * @table: the table
 * @key: the key
 * @chain: is set to the head of the key's chain
 *
 * Context: bottom halves off; a CPU part's lock may be held.
 * Return: the bucket; unlock its lock when done.
 */
static __always_inline struct tw_bucket *tw_table_lock(struct tw_table *table, u64 key, u32 **chain)
{
	u64 hash = tw_hash(table, key);
	struct tw_bucket *bucket;
	u32 buckets, b;

	for (;;) {
		/* Pairs with the release in tw_split(): the bucket is there. */
		buckets = smp_load_acquire(&table->buckets);
		b = tw_bucket_of(hash, buckets);
		bucket = tw_bucket_at(table, b);
		raw_spin_lock(&bucket->lock);
		/* Was it split while we waited? Then it may be the other one now. */
		if (likely(READ_ONCE(table->buckets) == buckets ||
			   tw_bucket_of(hash, READ_ONCE(table->buckets)) == b))
			break;
		raw_spin_unlock(&bucket->lock);
	}
	*chain = &bucket->head[tw_chain_of(hash)];
	return bucket;
}

/**
 * tw_table_find - look a key up
 * @table: the table
 * @chain: the key's chain, its bucket locked
 * @key: the key
 *
 * Passes over timers that a reader has claimed: they are gone.
 *
 * Return: the link to the timer, its head or that of the one before it in the chain; the
 * last link, which is 0, if there is none.
 */
static __always_inline u32 *tw_table_find(const struct tw_table *table, u32 *chain, u64 key)
{
	struct tw_timer *t;

	for (; *chain; chain = &t->hash_next) {
		t = tw_timer_at(&table->pool, *chain);
		if (t->key == key && READ_ONCE(t->state) != TW_CLAIMED)
			break;
	}
	return chain;
}

/**
 * tw_table_unhash - take a timer out of its chain
 * @table: the table
 * @chain: the chain, or any link of it before the timer; its bucket locked
 * @index: the timer, which is in the chain
 * @t: the same
 */
static inline void tw_table_unhash(struct tw_table *table, u32 *chain, u32 index,
				   const struct tw_timer *t)
{
	while (*chain != index)
		chain = &tw_timer_at(&table->pool, *chain)->hash_next;
	*chain = t->hash_next;
}

#endif /* TW_TABLE_H */
