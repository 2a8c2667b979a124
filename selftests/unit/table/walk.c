// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>

#include "walk.h"

#include "deadlines.h"
#include "fail.h"
#include "log.h"
#include "memory.h"
#include "monitors.h"
#include "rig.h"
#include "table.h"

/* Where an index was found */
enum { UNSEEN, CHAINED, STOCKED };

/*
 * Walk all hash chains. Each timer must be in exactly one chain, the chain of its key. Returns the
 * length of the longest chain.
 */
static u32 walk_chains(struct model *m, u8 *seen)
{
	const struct tw_table *table = &m->file->table;
	const struct tw_bucket *bucket;
	const struct tw_timer *t;
	u32 b, index, found = 0, length, longest = 0;
	unsigned int c;
	u64 hash;

	for (b = 0; b < table->buckets; b++) {
		bucket = tw_bucket_at(table, b);
		CHECK(!bucket->lock, "bucket %u is locked", b);
		for (c = 0; c < TW_CHAINS; c++) {
			length = 0;
			for (index = bucket->head[c]; index; index = t->hash_next) {
				CHECK(index <= table->made, "bucket %u, chain %u: index %u of %u",
				      b, c, index, table->made);
				CHECK(!seen[index], "index %u is in two places", index);
				seen[index] = CHAINED;
				length++;
				t = tw_timer_at(&table->pool, index);
				hash = tw_hash(table, t->key);
				CHECK(tw_bucket_of(hash, table->buckets) == b &&
				      tw_chain_of(hash) == c,
				      "key %llx is in bucket %u, chain %u, not in %u, %u", t->key,
				      b, c, tw_bucket_of(hash, table->buckets), tw_chain_of(hash));
				CHECK(t->stay || t->chain == &bucket->head[c],
				      "key %llx: the timer does not know its chain", t->key);
				CHECK(m->owner[index], "key %llx, index %u: was removed", t->key,
				      index);
				CHECK(m->entry[m->owner[index] - 1].index == index,
				      "key %llx has two timers", t->key);
			}
			found += length;
			longest = max(longest, length);
		}
	}
	CHECK(found == m->timers, "%u timers in chains, not %u", found, m->timers);
	return longest;
}

/* Walk a magazine of @count timers. @ends: its last link must be 0. */
static void walk_magazine(const struct tw_pool *pool, u32 first, u32 count, bool ends, u8 *seen)
{
	const struct tw_timer *t;
	u32 index = first;

	CHECK(count && count <= TW_MAGAZINE, "%u timers in a magazine", count);
	for (; count; count--, index = t->next) {
		CHECK(index, "a magazine with %u timers less than it should have", count);
		CHECK(!seen[index], "free index %u is in two places", index);
		seen[index] = STOCKED;
		t = tw_timer_at(pool, index);
		CHECK(t->state == TW_FREE, "free index %u is in state %u", index, t->state);
	}
	CHECK(!ends || !index, "a magazine is longer than its count");
}

/* Walk all free timers: each index that is not in a hash chain is in exactly one magazine. */
static void walk_stocks(struct model *m, u8 *seen)
{
	const struct tw_table *table = &m->file->table;
	const struct tw_pool *pool = &table->pool;
	const struct tw_cpu *cpu;
	unsigned int nr;
	u32 index;

	for (nr = 0; nr < RIG_BASES; nr++) {
		cpu = m->file->cpu[nr];
		if (!cpu)
			continue;
		CHECK(!cpu->lock.word, "base %u is locked", nr);
		CHECK(!cpu->free == !cpu->nr_free, "base %u: first free %u, %u of them", nr,
		      cpu->free, cpu->nr_free);
		if (cpu->free)
			walk_magazine(pool, cpu->free, cpu->nr_free, true, seen);
		if (cpu->spare)
			walk_magazine(pool, cpu->spare, TW_MAGAZINE, true, seen);
	}
	for (index = table->full; index; index = tw_timer_at(pool, index)->hash_next)
		walk_magazine(pool, index, tw_timer_at(pool, index)->slack, true, seen);
	for (index = 1; index <= table->made; index++)
		CHECK(seen[index], "index %u is nowhere", index);
}

/* Walk the due list: it is in the order of delivery, and its links agree in both directions. */
static void walk_due(struct model *m)
{
	const struct tw_events *events = &m->file->events;
	const struct tw_pool *pool = &m->file->table.pool;
	const struct tw_timer *t;
	u32 index, before = 0, count = 0;
	const struct entry *e;
	u64 turn = 0;

	CHECK(!events->lock.word, "the due list is locked");
	for (index = events->due.first; index; before = index, index = t->next) {
		CHECK(count++ < m->due, "more than %u timers on the due list", m->due);
		t = tw_timer_at(pool, index);
		CHECK(t->prev == before, "index %u on the due list: %u before it, not %u", index,
		      t->prev, before);
		CHECK(m->owner[index], "index %u is due and not a timer", index);
		e = &m->entry[m->owner[index] - 1];
		CHECK(e->state == TW_DUE && t->fired == e->fired && e->turn >= turn,
		      "key %llx on the due list: state %u, fired %llu, turn %llu after %llu",
		      e->key, e->state, t->fired, e->turn, turn);
		turn = e->turn;
	}
	CHECK(events->due.last == before && events->due.count == count && count == m->due,
	      "due list: last %u, not %u; %u and not %u of %u", events->due.last, before,
	      events->due.count, count, m->due);
}

/* Memory of a directory, of those that it has replaced, and of its pages */
static size_t dir_memory(const struct tw_dir *dir, size_t page)
{
	size_t small = PAGE_SIZE > 4096 ? 4096 : 256;
	size_t size, memory = dir->used * page;

	CHECK(dir->used <= dir->room, "%u pages, and room for %u", dir->used, dir->room);
	/* a link and 7 entries, a link and 15, ... */
	for (size = 64; dir->room && size <= (dir->room + 1) * sizeof(void *); size *= 2)
		memory += size <= small || size >= PAGE_SIZE ? tw_alloc_size(size) : PAGE_SIZE;
	return memory;
}

static size_t log_memory(const struct tw_file *file)
{
	size_t events = monitors_charged() * sizeof(struct timerwheel_event);

	return (file->events.log ? tw_alloc_size(sizeof(*file->events.log)) : 0) +
	       (events ? tw_alloc_size(events) : 0);
}

/* Exactly the memory of table and log is charged, and the table is as large as its timers need. */
static void walk_memory(struct model *m)
{
	const struct tw_table *table = &m->file->table;
	const struct tw_dir *dir = table->dir;
	size_t memory = dir_memory(&dir[TW_DIR_TIMERS], TW_PAGE) +
			dir_memory(&dir[TW_DIR_BUCKETS], TW_PAGE) +
			dir_memory(&dir[TW_DIR_DEADLINES], PAGE_SIZE);

	CHECK(rig_charged == memory + log_memory(m->file) && m->file->charged == memory,
	      "%llu bytes charged to the user, %zu to the file; the table has %zu, the log %zu",
	      rig_charged, m->file->charged, memory, log_memory(m->file));
	CHECK(table->made <= m->file->setup.capacity, "%u timers of at most %u", table->made,
	      m->file->setup.capacity);
	CHECK(table->buckets * TW_BUCKET_TIMERS >= table->made, "%u buckets for %u timers",
	      table->buckets, table->made);
	CHECK(!table->made || table->made / TW_PAGE_TIMERS + 1 == dir[TW_DIR_TIMERS].used,
	      "%u pages for %u timers", dir[TW_DIR_TIMERS].used, table->made);
	CHECK(dir[TW_DIR_DEADLINES].used ==
	      (table->pool.deadlines ? table->made / TW_PAGE_DEADLINES + 1 : 0),
	      "%u pages of the deadline table for %u timers", dir[TW_DIR_DEADLINES].used,
	      table->made);
	CHECK(DIV_ROUND_UP(table->buckets, TW_PAGE_BUCKETS) == dir[TW_DIR_BUCKETS].used,
	      "%u pages for %u buckets", dir[TW_DIR_BUCKETS].used, table->buckets);
	CHECK(!table->lock.word && !m->file->ring.lock.word, "a lock is held");
}

u32 walk(struct model *m)
{
	u8 *seen = calloc(m->file->table.made + 1, sizeof(*seen));
	u32 k, pending = 0, longest;
	unsigned int nr;

	CHECK(seen, "no memory");
	walk_memory(m);
	for (k = 0; k < m->keys; k++)
		model_look(m, &m->entry[k]);
	longest = walk_chains(m, seen);
	walk_stocks(m, seen);
	walk_due(m);
	for (nr = 0; nr < RIG_BASES; nr++)
		if (m->file->cpu[nr])
			pending += m->file->cpu[nr]->wheel.pending;
	CHECK(pending == m->timers - m->due, "%u timers in wheels, not %u", pending,
	      m->timers - m->due);
	free(seen);
	return longest;
}
