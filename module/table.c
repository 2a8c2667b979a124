// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers by index and by key, and their memory.
 *
 * By index: a directory of pages with TW_PAGE_TIMERS timers each. Pages are freed only with the
 * file, so any timer may be read by its index at any time, although the value may be stale. When
 * the directory is full, a copy of twice the size replaces it. Old directories are freed with the
 * file, like the pages, so code that has read one may continue to use it. Together they are smaller
 * than the new one. Directories are replaced under tw_file.mutex.
 *
 * By key: a hash table. A bucket is a cache line: a lock and TW_CHAINS hash chains. The table grows
 * with the timers, one bucket at a time (linear hashing: Litwin, 1980). With 2^k to 2^(k+1)
 * buckets, a key's bucket is given by the low k + 1 bits of its hash or, if that bucket does not
 * exist yet, by the low k bits. A new bucket takes its share of the timers from a single old
 * bucket, under that bucket's lock. Therefore no operation ever waits for a resize.
 *
 * The hash has a seed for each file. As with any hash, an attacker who measures for long enough can
 * still find colliding keys. Therefore a chain has a maximum length (TW_CHAIN_MAX), which limits
 * every walk under a bucket's lock; see "The hash" in Documentation/design/memory.md.
 *
 * The deadline table (deadlines.h) is created by SETUP, before the first timer, and grows with the
 * timers. So every timer has its entry, and expiry and user space can rely on that.
 *
 * Free timers are moved in magazines of TW_MAGAZINE. Each base keeps up to two magazines
 * (tw_cpu_alloc(), tw_cpu_free()); the table keeps the others. Every existing index is either a
 * timer or free. Therefore a file is full exactly when there is no free timer and no more may be
 * created.
 *
 * Locks: tw_file.mutex for growth; bucket locks are inside base locks; tw_table.lock is a leaf.
 */
#include <linux/kmsan-checks.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "cpu.h"
#include "deadlines.h"
#include "internal.h"
#include "memory.h"
#include "pages.h"
#include "table.h"

/* The room of the first directory of each kind. */
#define TW_DIR_FIRST	7U

/* tw_table_grow() makes at most a page of timers, and pushes them as one magazine. */
static_assert(TW_PAGE_TIMERS <= TW_MAGAZINE);
/* The bucket of a chain is found by aligning the chain's address: tw_table_lock(). */
static_assert(sizeof(struct tw_bucket) == 64);

/**
 * tw_magazine_pop - take a magazine of free timers
 * @table: the table
 * @count: set to the number of timers in it
 *
 * Context: bottom halves off; a base's lock is held.
 * Return: its first timer; 0: there is no magazine.
 */
u32 tw_magazine_pop(struct tw_table *table, u32 *count)
{
	struct tw_timer *t;
	u32 first;

	/* No lock needed: a caller that misses a new magazine tries again after tw_table_grow(). */
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
 * tw_magazine_push - give a magazine of free timers to the table
 * @table: the table
 * @first: its first timer
 * @count: the number of timers in it, not 0
 *
 * Context: bottom halves off.
 */
void tw_magazine_push(struct tw_table *table, u32 first, u32 count)
{
	struct tw_timer *t = tw_timer_at(&table->pool, first);

	raw_spin_lock(&table->lock);
	t->slack = count;
	tw_table_set_link(&t->hash_next, table->full);
	WRITE_ONCE(table->full, first);
	raw_spin_unlock(&table->lock);
}

/* The address of @kind's directory. Context: tw_file.mutex, or no other code uses the table. */
static void ***tw_dir(struct tw_table *table, enum tw_dirs kind)
{
	switch (kind) {
	case TW_DIR_TIMERS:
		return (void ***)&table->pool.page;
	case TW_DIR_BUCKETS:
		return (void ***)&table->bucket;
	default:
		return (void ***)&table->pool.deadlines;
	}
}

static void tw_dir_publish(struct tw_table *table, enum tw_dirs kind, void **dir)
{
	/*
	 * Pairs with the address dependencies in tw_pool_pages(), tw_bucket_at() and
	 * tw_pool_deadlines(); litmus dependency.
	 */
	smp_store_release(tw_dir(table, kind), dir);
}

/* Entry -1 of a directory is a link to the directory that it has replaced. */
static size_t tw_dir_bytes(u32 room)
{
	return (room + 1) * sizeof(void *);
}

/* The room of the directory that replaces one with @room. With the link it is a power of two. */
static u32 tw_dir_more(u32 room)
{
	return room ? room * 2 + 1 : TW_DIR_FIRST;
}

static void **tw_dir_alloc(u32 room)
{
	void **dir = tw_alloc(tw_dir_bytes(room));

	return dir ? dir + 1 : NULL;
}

/* Free a directory with room for @room pages, and those that it has replaced. */
static void tw_dir_free(void **dir, u32 room)
{
	void **old;

	for (; dir; dir = old, room /= 2) {
		old = dir[-1];
		tw_free(dir - 1, tw_dir_bytes(room));
	}
}

/*
 * Is a page of this kind allocated as one page of the kernel? Pages of the deadline table are,
 * because they are mapped. If TW_PAGE is the kernel's page size, all are.
 */
static bool tw_page_whole(enum tw_dirs kind)
{
	return kind == TW_DIR_DEADLINES || TW_PAGE == PAGE_SIZE;
}

static size_t tw_page_memory(enum tw_dirs kind)
{
	return tw_page_whole(kind) ? PAGE_SIZE : tw_alloc_size(TW_PAGE);
}

static void *tw_page_alloc(enum tw_dirs kind)
{
	void *page;

	if (!tw_page_whole(kind))
		return tw_alloc(TW_PAGE);
	page = (void *)get_zeroed_page(TW_GFP);
	if (page && kind == TW_DIR_DEADLINES)
		tw_page_map(virt_to_page(page));
	return page;
}

static void tw_page_free(enum tw_dirs kind, void *page)
{
	/* As in tw_map_fault(), but check the values that were stored while the page was mapped. */
	if (kind == TW_DIR_DEADLINES)
		kmsan_check_memory(page, PAGE_SIZE);
	if (tw_page_whole(kind))
		tw_free_page(page);
	else
		tw_free(page, TW_PAGE);
}

/**
 * struct tw_growth - the memory for one step of growth, which happens completely or not at all
 * @page: a page for each directory that gets one
 * @dir: a larger directory for each full directory
 */
struct tw_growth {
	void *page[TW_DIRS];
	void **dir[TW_DIRS];
};

/* The memory of one more page of @kind, and of a larger directory if it needs one. */
static size_t tw_growth_memory(const struct tw_table *table, enum tw_dirs kind)
{
	const struct tw_dir *dir = &table->dir[kind];
	size_t bytes = tw_page_memory(kind);

	if (dir->used == dir->room)
		bytes += tw_alloc_size(tw_dir_bytes(tw_dir_more(dir->room)));
	return bytes;
}

static bool tw_growth_alloc(const struct tw_table *table, enum tw_dirs kind,
			    struct tw_growth *growth)
{
	const struct tw_dir *dir = &table->dir[kind];

	if (dir->used == dir->room) {
		growth->dir[kind] = tw_dir_alloc(tw_dir_more(dir->room));
		if (!growth->dir[kind])
			return false;
	}
	growth->page[kind] = tw_page_alloc(kind);
	return growth->page[kind];
}

/* Copy a directory, which may have megabytes. No other code changes it now. */
static void tw_dir_copy(void **to, void **from, u32 used)
{
	u32 n;

	for (; used; used -= n, to += n, from += n) {
		n = min_t(u32, used, TW_PAGE / sizeof(*to));
		memcpy(to, from, n * sizeof(*to));
		cond_resched();
	}
}

/* Install the larger directory, if any, and then a page. */
static void tw_growth_install(struct tw_table *table, enum tw_dirs kind,
			      const struct tw_growth *growth)
{
	struct tw_dir *dir = &table->dir[kind];
	void **old = *tw_dir(table, kind);

	if (growth->dir[kind]) {
		tw_dir_copy(growth->dir[kind], old, dir->used);
		growth->dir[kind][-1] = old;
		tw_dir_publish(table, kind, growth->dir[kind]);
		dir->room = tw_dir_more(dir->room);
	}
	(*tw_dir(table, kind))[dir->used] = growth->page[kind];
	/* Pairs with the acquire in tw_table_deadlines_page(); litmus made. */
	smp_store_release(&dir->used, dir->used + 1);
}

/*
 * Add a page to each directory whose bit is set in @kinds. Memory is charged before it is
 * allocated. Returns 0, -EDQUOT or -ENOMEM; after an error nothing has changed.
 */
static int tw_grow(struct tw_file *file, unsigned int kinds)
{
	struct tw_table *table = &file->table;
	struct tw_growth growth = {};
	enum tw_dirs kind;
	size_t bytes = 0;
	int err;

	for (kind = 0; kind < TW_DIRS; kind++)
		if (kinds & BIT(kind))
			bytes += tw_growth_memory(table, kind);
	err = tw_charge(file, bytes);
	if (err)
		return err;
	for (kind = 0; kind < TW_DIRS; kind++)
		if (kinds & BIT(kind) && !tw_growth_alloc(table, kind, &growth))
			goto free;
	for (kind = 0; kind < TW_DIRS; kind++)
		if (kinds & BIT(kind))
			tw_growth_install(table, kind, &growth);
	return 0;
free:
	for (kind = 0; kind < TW_DIRS; kind++) {
		if (growth.page[kind])
			tw_page_free(kind, growth.page[kind]);
		tw_dir_free(growth.dir[kind], tw_dir_more(table->dir[kind].room));
	}
	tw_uncharge(file, bytes);
	return -ENOMEM;
}

/*
 * Add a bucket, whose memory exists. It takes its share of the timers from the bucket that it
 * splits. Other CPUs see it only after that: an operation that waits for the old bucket's lock then
 * reads the number of buckets again.
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
	/*
	 * tw_timer.chain may lead to the new bucket while it is filled. Lockdep sees only the old
	 * bucket's lock, which decides; litmus split.
	 */
	bit_spin_lock(0, &to->lock);
	for (c = 0; c < TW_CHAINS; c++) {
		link = &from->head[c];
		tail = &to->head[c];
		while (*link) {
			t = tw_timer_at(&table->pool, *link);
			/* All hashes here have the bits below @half in common. */
			if (!(tw_hash(table, t->key) >> 32 & half)) {
				link = &t->hash_next;
				continue;
			}
			tw_table_set_link(tail, *link);
			tw_table_set_link(link, t->hash_next);
			tw_table_set_link(&t->hash_next, 0);
			tail = &t->hash_next;
			if (t->stay == TW_ENDS)
				WRITE_ONCE(t->chain, &to->head[c]);
		}
	}
	/* Pairs with the acquire in tw_table_buckets(); litmus split-unlocked. */
	smp_store_release(&table->buckets, new + 1);
	bit_spin_unlock(0, &to->lock);
	tw_bucket_unlock(table, from);
	local_bh_enable();
}

/**
 * tw_table_add_deadlines - create the deadline table of a file without timers
 * @file: the file
 *
 * From then on it grows with the timers.
 *
 * Context: process, may sleep; tw_file.mutex is held.
 * Return: 0; -EDQUOT, -ENOMEM.
 */
int tw_table_add_deadlines(struct tw_file *file)
{
	lockdep_assert_held(&file->mutex);
	/* Index 0 has an entry, too. With a directory there is a table. */
	return tw_grow(file, BIT(TW_DIR_DEADLINES));
}

/**
 * tw_table_deadlines_page - find a page of the deadline table
 * @file: the file; its deadline table exists
 * @nr: the number of the page, from a program
 *
 * Takes no lock: the holder of tw_file.mutex may wait for memory or a grace period, and a page
 * fault would wait for it with the address space locked. The table only grows.
 *
 * Context: any.
 * Return: the page; NULL: none of its timers exists.
 */
struct page *tw_table_deadlines_page(struct tw_file *file, unsigned long nr)
{
	/* Pairs with the release in tw_growth_install(): the page is there; litmus made. */
	u32 used = smp_load_acquire(&file->table.dir[TW_DIR_DEADLINES].used);

	if (nr >= used)
		return NULL;
	nr = array_index_nospec(nr, used);
	return virt_to_page(tw_pool_deadlines(&file->table.pool)[nr]);
}

/* The directories that need another page for @n more timers, one bit each. */
static unsigned int tw_grow_kinds(const struct tw_table *table, u32 n)
{
	const struct tw_dir *dir = table->dir;
	u32 first = table->made + 1;
	unsigned int kinds = 0;

	if (first / TW_PAGE_TIMERS == dir[TW_DIR_TIMERS].used)
		kinds |= BIT(TW_DIR_TIMERS);
	if (table->pool.deadlines &&
	    first / TW_PAGE_DEADLINES == dir[TW_DIR_DEADLINES].used)
		kinds |= BIT(TW_DIR_DEADLINES);
	if (DIV_ROUND_UP(table->made + n, TW_BUCKET_TIMERS) >
	    dir[TW_DIR_BUCKETS].used * TW_PAGE_BUCKETS)
		kinds |= BIT(TW_DIR_BUCKETS);
	return kinds;
}

/**
 * tw_table_grow - create more timers
 * @file: the file
 *
 * Creates up to a page of timers and pushes them as a magazine. If that is not allowed or there is
 * no memory, it pushes the free timers of bases instead.
 *
 * Context: process, may sleep, no locks held. Takes tw_file.mutex.
 * Return: 0: try again, though other callers may take the timers first; -ENOSPC, -EDQUOT, -ENOMEM.
 */
int tw_table_grow(struct tw_file *file)
{
	struct tw_table *table = &file->table;
	int err = -ENOSPC;
	u32 first, n, i;

	mutex_lock(&file->mutex);
	first = table->made + 1;
	n = min(file->setup.capacity - table->made,
		TW_PAGE_TIMERS - first % TW_PAGE_TIMERS);
	if (n)
		err = tw_grow(file, tw_grow_kinds(table, n));
	if (err)
		goto full;
	while (table->buckets * TW_BUCKET_TIMERS < table->made + n)
		tw_split(table);

	local_bh_disable();
	for (i = first; i < first + n - 1; i++)
		tw_timer_at(&table->pool, i)->next = i + 1;
	/* Pairs with the acquire in tw_index_max(): the page is there; litmus made. */
	smp_store_release(&table->made, table->made + n);
	tw_magazine_push(table, first, n);
	local_bh_enable();
	tw_cpu_spread(file);
	goto unlock;
full:
	if (tw_cpu_reclaim(file))
		err = 0;
unlock:
	mutex_unlock(&file->mutex);
	return err;
}

/**
 * tw_table_init - initialise an empty table
 * @file: the file, with a zeroed table
 *
 * Context: process, may sleep; tw_file.mutex is held.
 * Return: 0, -EDQUOT or -ENOMEM: nothing has changed.
 */
int tw_table_init(struct tw_file *file)
{
	static struct lock_class_key bucket_key;
	struct tw_table *table = &file->table;
	int err;

	err = tw_grow(file, BIT(TW_DIR_BUCKETS));
	if (err)
		return err;
	raw_spin_lock_init(&table->lock);
	lockdep_init_map_wait(&table->bucket_map, "tw_bucket.lock", &bucket_key, 0,
			      LD_WAIT_SPIN);
	get_random_bytes(table->seed, sizeof(table->seed));
	table->seed[1] |= 1;
	table->buckets = 1;
	return 0;
}

/**
 * tw_table_free - free the table and all timers
 * @table: the table, which is no longer in use
 *
 * Freeing millions of timers takes a while. Other tasks may run in between.
 *
 * Context: process, may sleep.
 */
void tw_table_free(struct tw_table *table)
{
	enum tw_dirs kind;
	void **dir;
	u32 i;

	for (kind = 0; kind < TW_DIRS; kind++) {
		dir = *tw_dir(table, kind);
		for (i = 0; i < table->dir[kind].used; i++)
			tw_page_free(kind, dir[i]);
		tw_dir_free(dir, table->dir[kind].room);
	}
}
