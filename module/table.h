/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looking up a timer by its key: part of each operation, so it is all inline. How the table
 * works is told in table.c.
 */
#ifndef TW_TABLE_H
#define TW_TABLE_H

#include <linux/align.h>
#include <linux/bit_spinlock.h>
#include <linux/bitops.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>

#include "internal.h"

/* Multiply, and fold the product: each bit of the result depends on all bits of @a. */
static inline u64 tw_hash_fold(u64 a, u64 factor)
{
#if defined(CONFIG_ARCH_SUPPORTS_INT128) && defined(__SIZEOF_INT128__)
	/* One multiplication; gcc makes two of mul_u64_u64_shr() and a product of 64 bits. */
	__uint128_t product = (__uint128_t)a * factor;

	return product ^ (product >> 64);
#else
	return (a * factor) ^ mul_u64_u64_shr(a, factor, 64);
#endif
}

/*
 * Two folds: with a multiplication in the place of the second, one seed in some thousands makes
 * long hash chains of keys in an arithmetic progression. See "The hash" in README.md.
 */
static inline u64 tw_hash(const struct tw_table *table, u64 key)
{
	return tw_hash_fold(tw_hash_fold(key ^ table->seed[0], table->seed[1]), table->seed[1]);
}

/* Which of @buckets buckets, of which there is at least one, @hash belongs to. */
static inline u32 tw_bucket_of(u64 hash, u32 buckets)
{
	u32 mask = (2U << __fls(buckets)) - 1;
	u32 b = (hash >> 32) & mask;

	return b < buckets ? b : b & (mask >> 1);
}

/* Which chain in its bucket. */
static inline u32 tw_chain_of(u64 hash)
{
	return ((hash & U32_MAX) * TW_CHAINS) >> 32;
}

static inline struct tw_bucket *tw_bucket_at(const struct tw_table *table, u32 b)
{
	struct tw_bucket **bucket = rcu_dereference_raw(table->bucket);

	return &bucket[b / TW_PAGE_BUCKETS][b % TW_PAGE_BUCKETS];
}

/**
 * tw_table_buckets - how many buckets there are, and so are they
 * @table: the table
 *
 * Return: the number. More may have come since.
 */
static inline u32 tw_table_buckets(const struct tw_table *table)
{
	/* Pairs with the release in tw_split(). */
	return smp_load_acquire(&table->buckets);
}

/**
 * tw_table_chain - where a key is looked for
 * @table: the table
 * @key: the key
 * @buckets: what tw_table_buckets() said
 *
 * Return: the head of its chain.
 */
static __always_inline u32 *tw_table_chain(const struct tw_table *table, u64 key, u32 buckets)
{
	u64 hash = tw_hash(table, key);

	return &tw_bucket_at(table, tw_bucket_of(hash, buckets))->head[tw_chain_of(hash)];
}

/* Lock a bucket. Lockdep does not see bit locks: it is told. */
static inline void tw_bucket_lock(struct tw_table *table, struct tw_bucket *bucket)
{
	lock_map_acquire(&table->bucket_map);
	bit_spin_lock(0, &bucket->lock);
}

static inline void tw_bucket_unlock(struct tw_table *table, struct tw_bucket *bucket)
{
	lock_map_release(&table->bucket_map);
	/* Nothing else is in the word. So a store will do, as for any spinlock. */
	smp_store_release(&bucket->lock, 0);
	preempt_enable();
	__release(bitlock);
}

/**
 * tw_table_lock - lock the bucket of a key
 * @table: the table
 * @key: the key
 * @buckets: what tw_table_buckets() said
 * @chain: tw_table_chain() for that; is set to where it really is
 *
 * Context: bottom halves off; a CPU part's lock may be held.
 * Return: the bucket; tw_bucket_unlock() it when done.
 */
static __always_inline struct tw_bucket *tw_table_lock(struct tw_table *table, u64 key,
						       u32 buckets, u32 **chain)
{
	struct tw_bucket *bucket;
	u32 *right;

	for (;;) {
		bucket = PTR_ALIGN_DOWN((struct tw_bucket *)*chain, sizeof(*bucket));
		tw_bucket_lock(table, bucket);
		/* Was it split before we had it? Then it may be the other one now. */
		if (likely(tw_table_buckets(table) == buckets))
			return bucket;
		buckets = tw_table_buckets(table);
		right = tw_table_chain(table, key, buckets);
		if (right == *chain)
			return bucket;
		tw_bucket_unlock(table, bucket);
		*chain = right;
	}
}

/**
 * tw_table_lock_timer - lock the bucket of a timer
 * @table: the table
 * @t: the timer: in the table, not periodic, and nobody else takes it out
 * @chain: is set to its chain
 *
 * Context: as tw_table_lock().
 * Return: the bucket; tw_bucket_unlock() it when done.
 */
static __always_inline struct tw_bucket *tw_table_lock_timer(struct tw_table *table,
							     const struct tw_timer *t,
							     u32 **chain)
{
	struct tw_bucket *bucket;

	for (;;) {
		*chain = READ_ONCE(t->chain);
		bucket = PTR_ALIGN_DOWN((struct tw_bucket *)*chain, sizeof(*bucket));
		tw_bucket_lock(table, bucket);
		/* Was it split before we had it, and the timer went to the other one? */
		if (likely(READ_ONCE(t->chain) == *chain))
			return bucket;
		tw_bucket_unlock(table, bucket);
	}
}

/**
 * tw_table_lookup - look a key up
 * @table: the table
 * @chain: the key's chain, its bucket locked
 * @key: the key
 * @link: is set to the link to the timer, its head or that of the one before it in the chain; to
 *	the last link, which is 0, if there is none
 * @depth: is set to the number of timers before that link
 *
 * Passes over timers that a reader has claimed: they are gone.
 *
 * Return: the timer; NULL: there is none.
 */
static __always_inline struct tw_timer *tw_table_lookup(const struct tw_table *table, u32 *chain,
							u64 key, u32 **link, u32 *depth)
{
	struct tw_timer *t;

	for (*depth = 0; *chain; chain = &t->hash_next, (*depth)++) {
		t = tw_timer_at(&table->pool, *chain);
		if (t->key == key && READ_ONCE(t->state) != TW_CLAIMED) {
			*link = chain;
			return t;
		}
	}
	*link = chain;
	return NULL;
}

/**
 * tw_table_set_link - change a link of a chain
 * @link: the link: its bucket is locked, or the timer that it belongs to is in no chain
 * @index: where it leads from now on
 *
 * Some read it without a lock, and must find the page that the timer is in.
 */
static inline void tw_table_set_link(u32 *link, u32 index)
{
	/* Pairs with the acquires in tw_lookup_lockless() and tw_ops_prefetch(). */
	smp_store_release(link, index);
}

/**
 * tw_table_link_to - find a timer's place in its chain
 * @table: the table
 * @chain: the chain, its bucket locked
 * @index: the timer, which is in the chain
 *
 * Return: the link to it.
 */
static inline u32 *tw_table_link_to(const struct tw_table *table, u32 *chain, u32 index)
{
	while (*chain != index)
		chain = &tw_timer_at(&table->pool, *chain)->hash_next;
	return chain;
}

#endif /* TW_TABLE_H */
