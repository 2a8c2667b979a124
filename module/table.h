/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lookup of timers by key. Every operation uses these functions, so all are inline. table.c
 * explains the table.
 */
#ifndef TW_TABLE_H
#define TW_TABLE_H

#include <linux/align.h>
#include <linux/bit_spinlock.h>
#include <linux/bitops.h>
#include <linux/kcsan-checks.h>
#include <linux/lockdep.h>
#include <linux/math64.h>

#include "internal.h"

/* Multiply, and XOR the halves of the product. Each bit of the result depends on all bits of @a. */
static inline u64 tw_hash_fold(u64 a, u64 factor)
{
#if defined(CONFIG_ARCH_SUPPORTS_INT128) && defined(__SIZEOF_INT128__)
	/* One multiplication. With mul_u64_u64_shr() and a 64-bit product, gcc uses two. */
	__uint128_t product = (__uint128_t)a * factor;

	return product ^ (product >> 64);
#else
	return (a * factor) ^ mul_u64_u64_shr(a, factor, 64);
#endif
}

/*
 * Use two folds. If the second were a plain multiplication, one seed in some thousands would put
 * keys in an arithmetic progression into long hash chains. See Documentation/design/memory.md.
 */
static inline u64 tw_hash(const struct tw_table *table, u64 key)
{
	return tw_hash_fold(tw_hash_fold(key ^ table->seed[0], table->seed[1]), table->seed[1]);
}

/* The number of the bucket of @hash if there are @buckets buckets, at least 1. */
static inline u32 tw_bucket_of(u64 hash, u32 buckets)
{
	u32 mask = (2U << __fls(buckets)) - 1;
	u32 b = (hash >> 32) & mask;

	return b < buckets ? b : b & (mask >> 1);
}

/* The number of the chain of @hash in its bucket. */
static inline u32 tw_chain_of(u64 hash)
{
	return ((hash & U32_MAX) * TW_CHAINS) >> 32;
}

static inline struct tw_bucket *tw_bucket_at(const struct tw_table *table, u32 b)
{
	/* Pairs with the release in tw_dir_publish(); litmus dependency. */
	struct tw_bucket **bucket = READ_ONCE(table->bucket);

	return &bucket[b / TW_PAGE_BUCKETS][b % TW_PAGE_BUCKETS];
}

/**
 * tw_table_buckets - read the number of buckets
 * @table: the table
 *
 * Return: the number, which may have grown since. A directory that is read later has all of them.
 */
static inline u32 tw_table_buckets(const struct tw_table *table)
{
	/* Pairs with the release in tw_split(); litmus split-unlocked. */
	return smp_load_acquire(&table->buckets);
}

/* The highest index. The pages of all timers up to it exist. */
static inline u32 tw_index_max(const struct tw_table *table)
{
	/* Pairs with the release in tw_table_grow(); litmus made. */
	return smp_load_acquire(&table->made);
}

/**
 * tw_table_chain - find the hash chain of a key
 * @table: the table
 * @key: the key
 * @buckets: what tw_table_buckets() returned
 *
 * Return: the head of the chain.
 */
static __always_inline u32 *tw_table_chain(const struct tw_table *table, u64 key, u32 buckets)
{
	u64 hash = tw_hash(table, key);

	return &tw_bucket_at(table, tw_bucket_of(hash, buckets))->head[tw_chain_of(hash)];
}

/* Lock a bucket, and report that to lockdep, which does not see bit locks. */
static inline void tw_bucket_lock(struct tw_table *table, struct tw_bucket *bucket)
{
	lock_map_acquire(&table->bucket_map);
	/* Its acquire pairs with the release in tw_bucket_unlock(); litmus bucket. */
	bit_spin_lock(0, &bucket->lock);
}

static inline void tw_bucket_unlock(struct tw_table *table, struct tw_bucket *bucket)
{
	lock_map_release(&table->bucket_map);
	/*
	 * There are no other bits in it, so no atomic operation is needed; litmus bucket. A
	 * waiting CPU sets the bit, which is set already. KCSAN would report that.
	 */
	kcsan_disable_current();
	__bit_spin_unlock(0, &bucket->lock);
	kcsan_enable_current();
}

/**
 * tw_table_lock - lock the bucket of a key
 * @table: the table
 * @key: the key
 * @buckets: what tw_table_buckets() returned
 * @chain: what tw_table_chain() returned for @buckets; set to the key's current chain
 *
 * Context: bottom halves off; a base's lock may be held.
 * Return: the bucket, to be unlocked by tw_bucket_unlock().
 */
static __always_inline struct tw_bucket *tw_table_lock(struct tw_table *table, u64 key,
						       u32 buckets, u32 **chain)
{
	struct tw_bucket *bucket;
	u32 *right;

	for (;;) {
		bucket = PTR_ALIGN_DOWN((struct tw_bucket *)*chain, sizeof(*bucket));
		tw_bucket_lock(table, bucket);
		/* If a bucket was split in the meantime, the key may have moved; litmus split. */
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
 * @t: the timer: in the table, TW_ENDS, and no other code can remove it
 * @chain: set to its hash chain
 *
 * Context: as tw_table_lock().
 * Return: the bucket, to be unlocked by tw_bucket_unlock().
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
		/* If the bucket was split in the meantime, the timer may have moved. */
		if (likely(READ_ONCE(t->chain) == *chain))
			return bucket;
		tw_bucket_unlock(table, bucket);
	}
}

/**
 * tw_table_lookup - look up a key
 * @table: the table
 * @chain: the key's hash chain, its bucket locked
 * @key: the key
 * @link: set to the link that leads to the timer: the chain's head, or the link in the previous
 *	timer. If there is no timer, set to the last link, which is 0.
 * @depth: set to the number of timers before that link
 *
 * Skips timers that a reader has claimed, because the reader is about to free them.
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
 * tw_table_set_link - change a link of a hash chain
 * @link: the link. Its bucket is locked, or it belongs to a timer that is in no chain.
 * @index: the index that it leads to from now on
 *
 * Links are also read without a lock. A reader must then find the page of the timer.
 */
static inline void tw_table_set_link(u32 *link, u32 index)
{
	/* Pairs with the acquires in tw_lookup_lockless(), tw_ops_prefetch(); litmus link. */
	smp_store_release(link, index);
}

/**
 * tw_table_link_to - find the link that leads to a timer
 * @table: the table
 * @chain: the timer's hash chain, its bucket locked
 * @index: the timer
 *
 * Return: the link.
 */
static inline u32 *tw_table_link_to(const struct tw_table *table, u32 *chain, u32 index)
{
	while (*chain != index)
		chain = &tw_timer_at(&table->pool, *chain)->hash_next;
	return chain;
}

#endif /* TW_TABLE_H */
