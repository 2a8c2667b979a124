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
#include <linux/atomic.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "clock.h"
#include "cpu.h"
#include "deadlines.h"
#include "internal.h"
#include "memory.h"
#include "table.h"

/* Pages that are freed between two pauses: some us. */
#define TW_FREE_PAGES	16U

/* Bounds how many timers are made under one hold of a lock. */
static_assert(TW_PAGE_TIMERS <= TW_MAGAZINE);
/* Which bucket a chain is in is told by its address. */
static_assert(sizeof(struct tw_bucket) == 64);

/* Pages of the deadline table that are made under one hold of tw_file.mutex. */
#define TW_SHARE_PAGES	(SZ_256K / PAGE_SIZE)

/**
 * tw_magazine_pop - take a magazine
 * @table: the table
 * @count: is set to how many timers are in it
 *
 * Context: bottom halves off; a CPU part's lock is held.
 * Return: its first timer, 0: there is none.
 */
u32 tw_magazine_pop(struct tw_table *table, u32 *count)
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
 * tw_magazine_push - give a magazine
 * @table: the table
 * @first: its first timer
 * @count: how many are in it, not 0
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

/* The directory of pages of kind @kind. */
static void **tw_dir(const struct tw_table *table, enum tw_dirs kind)
{
	switch (kind) {
	case TW_DIR_TIMERS:
		return (void **)rcu_dereference_raw(table->pool.page);
	case TW_DIR_BUCKETS:
		return (void **)rcu_dereference_raw(table->bucket);
	default:
		return (void **)table->deadlines;
	}
}

static void tw_dir_publish(struct tw_table *table, enum tw_dirs kind, void **dir)
{
	switch (kind) {
	case TW_DIR_TIMERS:
		rcu_assign_pointer(table->pool.page, (struct tw_timer **)dir);
		break;
	case TW_DIR_BUCKETS:
		rcu_assign_pointer(table->bucket, (struct tw_bucket **)dir);
		break;
	default:
		table->deadlines = (u64 **)dir;
		if (rcu_access_pointer(table->pool.deadlines))
			rcu_assign_pointer(table->pool.deadlines, (u64 **)dir);
		break;
	}
}

/* How much memory a directory of @room pages takes. */
static size_t tw_dir_memory(u32 room)
{
	return room ? tw_alloc_size(room * sizeof(void *)) : 0;
}

/* How many pages a directory has room for after the present one of @room. */
static u32 tw_dir_more(u32 room)
{
	return room ? room * 2 : 8;
}

/*
 * Is a page one of the kernel's? Those of the deadline table are, since they are mapped, and all
 * where the kernel's have our size: slab pages are freed in groups, for which the page allocator
 * may give back all that it has collected at once.
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
	return tw_page_whole(kind) ? (void *)get_zeroed_page(TW_GFP) : tw_alloc(TW_PAGE);
}

static void tw_page_free(enum tw_dirs kind, void *page)
{
	if (tw_page_whole(kind))
		free_page((unsigned long)page);
	else
		kvfree(page);
}

/**
 * struct tw_growth - memory for a step of growth: all that is needed, or nothing is changed
 * @page: a page for each directory that gets one
 * @dir: a larger directory, where the present one is full
 */
struct tw_growth {
	void *page[TW_DIRS];
	void **dir[TW_DIRS];
};

/* How much memory one more page of kind @kind takes, with the directory that it may need. */
static size_t tw_growth_memory(const struct tw_table *table, enum tw_dirs kind)
{
	const struct tw_dir *dir = &table->dir[kind];
	size_t bytes = tw_page_memory(kind);

	if (dir->used == dir->room)
		bytes += tw_dir_memory(tw_dir_more(dir->room));
	return bytes;
}

static bool tw_growth_alloc(const struct tw_table *table, enum tw_dirs kind,
			    struct tw_growth *growth)
{
	const struct tw_dir *dir = &table->dir[kind];

	if (dir->used == dir->room) {
		growth->dir[kind] = tw_alloc(tw_dir_more(dir->room) * sizeof(void *));
		if (!growth->dir[kind])
			return false;
	}
	growth->page[kind] = tw_page_alloc(kind);
	return growth->page[kind];
}

/*
 * A larger directory is a copy that replaces the old one, which is freed after a grace period.
 * It is small beside what it leads to, and counted as freed at once.
 */
static void tw_growth_install(struct tw_file *file, enum tw_dirs kind,
			      const struct tw_growth *growth)
{
	struct tw_table *table = &file->table;
	struct tw_dir *dir = &table->dir[kind];
	void **old = tw_dir(table, kind);

	if (growth->dir[kind]) {
		if (old)
			memcpy(growth->dir[kind], old, dir->used * sizeof(*old));
		tw_dir_publish(table, kind, growth->dir[kind]);
		if (old)
			kvfree_rcu_mightsleep(old);
		tw_uncharge(file, tw_dir_memory(dir->room));
		dir->room = tw_dir_more(dir->room);
	}
	tw_dir(table, kind)[dir->used++] = growth->page[kind];
}

/*
 * Add a page to each directory whose bit is set in @kinds. What that takes is charged first.
 * Returns 0, -EDQUOT or -ENOMEM; with an error nothing has changed.
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
			tw_growth_install(file, kind, &growth);
	return 0;
free:
	for (kind = 0; kind < TW_DIRS; kind++) {
		if (growth.page[kind])
			tw_page_free(kind, growth.page[kind]);
		kvfree(growth.dir[kind]);
	}
	tw_uncharge(file, bytes);
	return -ENOMEM;
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

/* Are there words for all timers? */
static bool tw_deadlines_complete(const struct tw_table *table)
{
	return table->dir[TW_DIR_DEADLINES].used > table->made / TW_PAGE_DEADLINES;
}

/*
 * Tell programs whose words they are, of the timers that were there before the table. Runs that did
 * not know of it have ended: who gets an index from now on puts its generation there, and whatever
 * we find in a word, our look at the generation may be older.
 */
static void tw_table_tag(struct tw_table *table)
{
	u64 **deadlines = rcu_dereference_raw(table->pool.deadlines);
	u32 i;

	for (i = 1; i <= table->made; i++) {
		cmpxchg64(tw_deadline_entry(deadlines, i), 0,
			  READ_ONCE(tw_timer_at(&table->pool, i)->generation));
		if (!(i % TW_PAGE_DEADLINES))
			cond_resched();
	}
}

/*
 * Make some pages of the deadline table, of which somebody wants to map @count from @first on.
 * Returns 0: all are there; -EAGAIN: go on; or an error.
 */
static int tw_share_some(struct tw_file *file, unsigned long first, unsigned long count)
{
	/* Index 0 has a word, too. */
	unsigned long most = file->setup.capacity / TW_PAGE_DEADLINES + 1;
	u64 offset = tw_clock_offset(file->setup.clock);
	struct tw_table *table = &file->table;
	unsigned int i;
	int err;

	if (first >= most || count > most - first)
		return -EINVAL;
	if (rcu_access_pointer(table->pool.deadlines))
		return table->pool.deadlines_offset == offset ? 0 : -EXDEV;
	/* A page at least: those who look for the table look whether there is one. */
	for (i = 0; i < TW_SHARE_PAGES && !tw_deadlines_complete(table); i++) {
		err = tw_grow(file, BIT(TW_DIR_DEADLINES));
		if (err)
			return err;
	}
	if (!tw_deadlines_complete(table))
		return fatal_signal_pending(current) ? -EINTR : -EAGAIN;
	WRITE_ONCE(file->setup_done, true);
	table->pool.deadlines_offset = offset;
	rcu_assign_pointer(table->pool.deadlines, table->deadlines);
	tw_cpu_barrier(file);
	tw_table_tag(table);
	return 0;
}

/*
 * Give back some pages of a deadline table that was not completed, unless somebody else has done
 * that or is at it. Returns 0: nothing is left to do; -EAGAIN: go on.
 */
static int tw_unshare_some(struct tw_file *file)
{
	struct tw_table *table = &file->table;
	struct tw_dir *dir = &table->dir[TW_DIR_DEADLINES];
	unsigned int i;

	if (rcu_access_pointer(table->pool.deadlines) || table->sharers)
		return 0;
	for (i = 0; i < TW_SHARE_PAGES && dir->used; i++)
		tw_page_free(TW_DIR_DEADLINES, table->deadlines[--dir->used]);
	tw_uncharge(file, i * PAGE_SIZE);
	if (dir->used)
		return -EAGAIN;
	kvfree(table->deadlines);
	tw_uncharge(file, tw_dir_memory(dir->room));
	table->deadlines = NULL;
	dir->room = 0;
	return 0;
}

/* Let others have tw_file.mutex between two steps of something long. */
static void tw_table_yield(struct tw_file *file)
{
	mutex_unlock(&file->mutex);
	cond_resched();
	mutex_lock(&file->mutex);
}

/**
 * tw_table_share - make the deadline table
 * @file: whose
 * @first: first page of it that somebody wants to map
 * @count: how many pages
 *
 * It is too late for SETUP from then on. Growth need not wait until all of it is made: the mutex is
 * given up every 256 kB.
 *
 * Context: process, may sleep. Takes tw_file.mutex.
 * Return: 0 (if it is there already, too); -EINVAL: there will never be as many pages; -EXDEV: it
 * is there, with the times of another time namespace; -EDQUOT, -ENOMEM; -EINTR: killed. With an
 * error nothing has changed.
 */
int tw_table_share(struct tw_file *file, unsigned long first, unsigned long count)
{
	int err;

	mutex_lock(&file->mutex);
	file->table.sharers++;
	while ((err = tw_share_some(file, first, count)) == -EAGAIN)
		tw_table_yield(file);
	file->table.sharers--;
	while (err && tw_unshare_some(file))
		tw_table_yield(file);
	mutex_unlock(&file->mutex);
	return err;
}

/**
 * tw_table_deadlines_page - a page of the deadline table
 * @file: whose
 * @nr: its number
 *
 * Context: process, may sleep; the table was made. Takes tw_file.mutex.
 * Return: the page; NULL: none of its timers exists.
 */
struct page *tw_table_deadlines_page(struct tw_file *file, unsigned long nr)
{
	struct page *page = NULL;

	mutex_lock(&file->mutex);
	if (nr < file->table.dir[TW_DIR_DEADLINES].used)
		page = virt_to_page(file->table.deadlines[nr]);
	mutex_unlock(&file->mutex);
	return page;
}

/* Which directories @n more timers need a page in: one bit each. */
static unsigned int tw_grow_kinds(const struct tw_table *table, u32 n)
{
	const struct tw_dir *dir = table->dir;
	u32 first = table->made + 1;
	unsigned int kinds = 0;

	if (first / TW_PAGE_TIMERS == dir[TW_DIR_TIMERS].used)
		kinds |= BIT(TW_DIR_TIMERS);
	if (rcu_access_pointer(table->pool.deadlines) &&
	    first / TW_PAGE_DEADLINES == dir[TW_DIR_DEADLINES].used)
		kinds |= BIT(TW_DIR_DEADLINES);
	if (DIV_ROUND_UP(table->made + n, TW_BUCKET_TIMERS) >
	    dir[TW_DIR_BUCKETS].used * TW_PAGE_BUCKETS)
		kinds |= BIT(TW_DIR_BUCKETS);
	return kinds;
}

/**
 * tw_table_grow - make more timers
 * @file: the file
 *
 * Makes up to a page of them and puts them where tw_magazine_pop() finds them; where that
 * is not allowed or there is no memory, gathers free ones that other CPU parts hold.
 *
 * Context: process, may sleep, no locks held. Takes tw_file.mutex.
 * Return: 0 (somebody may be faster in taking them: try again), -ENOSPC,
 * -EDQUOT, -ENOMEM.
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
	/* Pairs with the acquire in scan.c: the page is there. */
	smp_store_release(&table->made, table->made + n);
	tw_magazine_push(table, first, n);
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
 * @file: whose, with a zeroed table
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
 * @table: nobody uses it any more
 *
 * Context: process, may sleep. Millions of timers take a while: others run meanwhile.
 */
void tw_table_free(struct tw_table *table)
{
	enum tw_dirs kind;
	void **dir;
	u32 i;

	for (kind = 0; kind < TW_DIRS; kind++) {
		dir = tw_dir(table, kind);
		for (i = 0; i < table->dir[kind].used; i++) {
			tw_page_free(kind, dir[i]);
			if (!(i % TW_FREE_PAGES))
				tw_free_pause();
		}
		tw_free_pause();
		kvfree(dir);
	}
}
