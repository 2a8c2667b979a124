// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers by index and by key, and the memory they live in.
 *
 * By index: a directory of pages, each of TW_PAGE_TIMERS timers. Pages are never given
 * back before the file is closed, so a timer found by index may be looked at (not trusted)
 * at any time. When the directory is full a copy of twice the size replaces it and the
 * old one is freed after a grace period (all users run with bottom halves off, which RCU
 * waits for on every kernel).
 *
 * By key: a hash table. A bucket is a cache line: a lock and TW_CHAINS chains. The table
 * grows with the timers, a bucket at a time (linear hashing: Litwin, 1980): with 2^k to
 * 2^(k+1) buckets a key's bucket is the low k + 1 bits of its hash or, where that bucket does
 * not exist yet, the low k bits; the next new bucket takes its share from just one old one,
 * under that one's lock. So no operation ever waits for the table to be resized. The
 * hash has a seed for each file. Who measures for long enough finds keys that collide all the
 * same, as with any hash. So a chain has a maximum length (TW_CHAIN_MAX), which bounds every
 * walk under a bucket's lock; see "The hash" in README.md.
 *
 * The deadline table (deadlines.h) is made when somebody maps it, for all timers that there are,
 * and grows with them from then on: where there is a timer there is its word, so that neither
 * expiry nor user space ever misses one.
 *
 * Free timers travel in magazines of TW_MAGAZINE. Each CPU part keeps up to two
 * (tw_cpu_alloc(), tw_cpu_free()), the rest is here. All indices ever made are either
 * timers or free, so a file is full exactly when no free one is left and no more may be
 * made.
 *
 * Locks: tw_file.mutex for growth; bucket locks nest inside those of CPU parts;
 * tw_table.lock is a leaf.
 */
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "clock.h"
#include "deadlines.h"
#include "internal.h"
#include "table.h"

static_assert(TW_PAGE_TIMERS * sizeof(struct tw_timer) <= PAGE_SIZE);
/* Which bucket a chain is in is told by its address. */
static_assert(sizeof(struct tw_bucket) == 64);

/* A cgroup at its limit gets -ENOMEM, not the OOM killer. */
#define TW_GFP	(GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_RETRY_MAYFAIL)

/**
 * tw_table_get - take a magazine
 * @table: the table
 * @count: is set to how many timers are in it
 *
 * Context: bottom halves off; a CPU part's lock is held.
 * Return: its first timer, 0: there is none.
 */
u32 tw_table_get(struct tw_table *table, u32 *count)
{
	struct tw_timer *t;
	u32 first;

	/* A look without the lock: who misses one just put here comes again. */
	if (!READ_ONCE(table->full))
		return 0;
	raw_spin_lock(&table->lock);
	first = table->full;
	if (first) {
		t = tw_timer_at(&table->pool, first);
		WRITE_ONCE(table->full, t->hash_next);
		*count = t->slack;
	}
	raw_spin_unlock(&table->lock);
	return first;
}

/**
 * tw_table_put - give a magazine
 * @table: the table
 * @first: its first timer
 * @count: how many are in it, not 0
 *
 * Context: bottom halves off.
 */
void tw_table_put(struct tw_table *table, u32 first, u32 count)
{
	struct tw_timer *t = tw_timer_at(&table->pool, first);

	raw_spin_lock(&table->lock);
	t->slack = count;
	tw_table_set_link(&t->hash_next, table->full);
	WRITE_ONCE(table->full, first);
	raw_spin_unlock(&table->lock);
}

/*
 * Replace a directory that has @room entries by a copy with twice as many.
 * Returns the new one, NULL without memory. The old one is freed after a grace
 * period, so @dir must be published by then: the caller does that at once.
 */
static void *tw_dir_grow(void *old, u32 *room)
{
	u32 more = *room ? *room * 2 : 8;
	void **dir = kvcalloc(more, sizeof(*dir), TW_GFP);

	if (!dir)
		return NULL;
	if (old)
		memcpy(dir, old, *room * sizeof(*dir));
	*room = more;
	return dir;
}

/* Make room for page number @page of timers, and the page. */
static int tw_add_page(struct tw_table *table, u32 page)
{
	struct tw_timer **dir = rcu_dereference_raw(table->pool.page);
	struct tw_timer **old = dir;
	struct tw_timer *timers;

	if (page == table->pages_room) {
		dir = tw_dir_grow(old, &table->pages_room);
		if (!dir)
			return -ENOMEM;
		rcu_assign_pointer(table->pool.page, dir);
		kvfree_rcu_mightsleep(old);
	}
	timers = (void *)get_zeroed_page(TW_GFP);
	if (!timers)
		return -ENOMEM;
	dir[page] = timers;
	table->pages++;
	return 0;
}

/* Make room for page number @page of buckets, and the page. */
static int tw_add_buckets(struct tw_table *table, u32 page)
{
	struct tw_bucket **dir = rcu_dereference_raw(table->bucket);
	struct tw_bucket **old = dir;
	struct tw_bucket *buckets;

	if (page == table->bucket_room) {
		dir = tw_dir_grow(old, &table->bucket_room);
		if (!dir)
			return -ENOMEM;
		rcu_assign_pointer(table->bucket, dir);
		kvfree_rcu_mightsleep(old);
	}
	if (dir[page])
		return 0;
	buckets = kcalloc(TW_PAGE_BUCKETS, sizeof(*buckets), TW_GFP);
	if (!buckets)
		return -ENOMEM;
	dir[page] = buckets;
	return 0;
}

/*
 * One more bucket: it exists in memory, and takes its share of the timers from
 * the one that it splits. Others see it only when that is done, and whoever waits
 * for the old bucket's lock looks again at how many buckets there are.
 */
static void tw_split(struct tw_table *table)
{
	u32 new = table->buckets;
	u32 half = BIT(__fls(new));
	u32 old = new & ~half;
	struct tw_bucket *from = tw_bucket_at(table, old);
	struct tw_bucket *to = tw_bucket_at(table, new);
	struct tw_timer *t;
	u32 *link, *tail;
	unsigned int c;

	local_bh_disable();
	tw_bucket_lock(table, from);
	/* For those who find it by tw_timer.chain while we fill it. Lockdep knows of the other. */
	bit_spin_lock(0, &to->lock);
	for (c = 0; c < TW_CHAINS; c++) {
		link = &from->head[c];
		tail = &to->head[c];
		while (*link) {
			t = tw_timer_at(&table->pool, *link);
			/* All here have the lower bits of both numbers. */
			if (!(tw_hash(table, t->key) >> 32 & half)) {
				link = &t->hash_next;
				continue;
			}
			tw_table_set_link(tail, *link);
			tw_table_set_link(link, t->hash_next);
			tw_table_set_link(&t->hash_next, 0);
			tail = &t->hash_next;
			if (!t->periodic)
				WRITE_ONCE(t->chain, &to->head[c]);
		}
	}
	/* Pairs with the acquire in tw_table_lock(). */
	smp_store_release(&table->buckets, new + 1);
	bit_spin_unlock(0, &to->lock);
	tw_bucket_unlock(table, from);
	local_bh_enable();
}

/* The words of the deadline table for the timers of page number @page of it. */
static int tw_add_words(struct tw_table *table, u32 page)
{
	u64 **old = table->words;
	u64 *words;

	if (page == table->words_room) {
		u64 **dir = tw_dir_grow(old, &table->words_room);

		if (!dir)
			return -ENOMEM;
		table->words = dir;
		if (rcu_access_pointer(table->pool.words))
			rcu_assign_pointer(table->pool.words, dir);
		if (old)
			kvfree_rcu_mightsleep(old);
	}
	words = (void *)get_zeroed_page(TW_GFP);
	if (!words)
		return -ENOMEM;
	table->words[page] = words;
	table->words_pages++;
	return 0;
}

/**
 * tw_table_share - make the deadline table
 * @file: whose
 * @first: first page of it that somebody wants to map
 * @count: how many pages
 *
 * It is too late for SETUP from then on.
 *
 * Context: process, may sleep. Takes tw_file.mutex.
 * Return: 0 (if it is there already, too); -EINVAL: there will never be as many pages; -ENOMEM.
 */
int tw_table_share(struct tw_file *file, unsigned long first, unsigned long count)
{
	struct tw_table *table = &file->table;
	unsigned long most;
	int err = 0;

	mutex_lock(&file->mutex);
	/* Index 0 has a word, too. */
	most = file->setup.capacity / TW_PAGE_WORDS + 1;
	if (first >= most || count > most - first)
		err = -EINVAL;
	if (err || rcu_access_pointer(table->pool.words))
		goto unlock;
	/* A page at least: those who look for the table look whether there is one. */
	while (!err && table->words_pages <= table->made / TW_PAGE_WORDS)
		err = tw_add_words(table, table->words_pages);
	if (err)
		goto unlock;
	file->setup_done = true;
	table->pool.words_offset = tw_clock_offset(file->setup.clock);
	rcu_assign_pointer(table->pool.words, table->words);
unlock:
	mutex_unlock(&file->mutex);
	return err;
}

/**
 * tw_table_words - a page of the deadline table
 * @file: whose
 * @nr: its number
 *
 * Context: process, may sleep; the table was made. Takes tw_file.mutex.
 * Return: the page; NULL: none of its timers exists.
 */
struct page *tw_table_words(struct tw_file *file, unsigned long nr)
{
	struct page *page = NULL;

	mutex_lock(&file->mutex);
	if (nr < file->table.words_pages)
		page = virt_to_page(file->table.words[nr]);
	mutex_unlock(&file->mutex);
	return page;
}

/**
 * tw_table_grow - make more timers
 * @file: the file
 *
 * Makes up to a page of them and puts them where tw_table_get() finds them; where that
 * is not allowed or there is no memory, gathers free ones that other CPU parts hold.
 *
 * Context: process, may sleep, no locks held. Takes tw_file.mutex.
 * Return: 0 (somebody may be faster in taking them: try again), -ENOSPC,
 * -EDQUOT, -ENOMEM.
 */
int tw_table_grow(struct tw_file *file)
{
	struct tw_table *table = &file->table;
	u32 first, charged, n, i;
	int err = 0;

	mutex_lock(&file->mutex);
	first = table->made + 1;
	n = min(file->setup.capacity - table->made,
		TW_PAGE_TIMERS - first % TW_PAGE_TIMERS);
	if (!n) {
		err = -ENOSPC;
		goto full;
	}
	charged = tw_user_charge(file->user, n);
	if (!charged) {
		err = -EDQUOT;
		goto full;
	}
	n = charged;

	if (first / TW_PAGE_TIMERS == table->pages)
		err = tw_add_page(table, table->pages);
	if (!err && rcu_access_pointer(table->pool.words) &&
	    first / TW_PAGE_WORDS == table->words_pages)
		err = tw_add_words(table, table->words_pages);
	while (!err && table->buckets * TW_BUCKET_TIMERS < table->made + n) {
		err = tw_add_buckets(table, table->buckets / TW_PAGE_BUCKETS);
		if (!err)
			tw_split(table);
	}
	if (err) {
		tw_user_uncharge(file->user, charged);
		goto full;
	}

	local_bh_disable();
	for (i = first; i < first + n - 1; i++)
		tw_timer_at(&table->pool, i)->next = i + 1;
	/* Pairs with the acquire in scan.c: the page is there. */
	smp_store_release(&table->made, table->made + n);
	tw_table_put(table, first, n);
	local_bh_enable();
	goto unlock;
full:
	if (tw_cpu_reclaim(file))
		err = 0;
unlock:
	mutex_unlock(&file->mutex);
	return err;
}

/**
 * tw_table_init - make an empty table
 * @table: zeroed
 *
 * Context: process, may sleep. On failure tw_table_free() is still to be called.
 * Return: 0 or -ENOMEM.
 */
int tw_table_init(struct tw_table *table)
{
	static struct lock_class_key bucket_key;
	int err;

	raw_spin_lock_init(&table->lock);
	lockdep_init_map_wait(&table->bucket_map, "tw_bucket.lock", &bucket_key, 0,
			      LD_WAIT_SPIN);
	get_random_bytes(table->seed, sizeof(table->seed));
	table->seed[1] |= 1;
	err = tw_add_buckets(table, 0);
	if (!err)
		table->buckets = 1;
	return err;
}

/**
 * tw_table_free - free the table and all timers
 * @table: nobody uses it any more
 */
void tw_table_free(struct tw_table *table)
{
	struct tw_timer **page = rcu_dereference_raw(table->pool.page);
	struct tw_bucket **bucket = rcu_dereference_raw(table->bucket);
	u32 i;

	for (i = 0; i < table->pages; i++)
		free_page((unsigned long)page[i]);
	for (i = 0; i < table->bucket_room; i++)
		kfree(bucket[i]);
	for (i = 0; i < table->words_pages; i++)
		free_page((unsigned long)table->words[i]);
	kvfree(page);
	kvfree(bucket);
	kvfree(table->words);
}

/**
 * tw_table_memory - how much memory the table occupies
 * @table: the table
 *
 * Context: tw_file.mutex held.
 * Return: bytes.
 */
size_t tw_table_memory(const struct tw_table *table)
{
	size_t bucket_pages = DIV_ROUND_UP(table->buckets, TW_PAGE_BUCKETS);

	return table->pages * PAGE_SIZE + table->pages_room * sizeof(void *) +
	       bucket_pages * TW_PAGE_BUCKETS * sizeof(struct tw_bucket) +
	       table->bucket_room * sizeof(void *) + table->words_pages * PAGE_SIZE +
	       table->words_room * sizeof(void *);
}
