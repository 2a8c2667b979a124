// SPDX-License-Identifier: GPL-2.0
/*
 * The deadline table: what its entries must be, and the programs that change them. Everything that
 * depends on the form of an entry is in this file.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../lib/timerwheel-mapped.h"
#include "test.h"

/* --- The model --------------------------------------------------------------- */

bool model_table(const struct model *m)
{
	return m->setup.flags & (TIMERWHEEL_SETUP_TABLE | TIMERWHEEL_SETUP_RESIDENT);
}

bool model_resident(const struct model *m)
{
	return m->setup.flags & TIMERWHEEL_SETUP_RESIDENT;
}

unsigned int generation_bits(const struct timerwheel_setup *setup)
{
	unsigned int bits = 12;

	while (bits < 20 && setup->tick >> (bits + 1))
		bits++;
	return bits;
}

static __u64 mask_of(const struct model *m)
{
	return (1ULL << generation_bits(&m->setup)) - 1;
}

static __u64 rounded(const struct model *m, __u64 deadline)
{
	__u64 mask = mask_of(m);

	/* Later ones would wrap around. */
	if (deadline > TIMERWHEEL_TIME_MAX - mask)
		deadline = TIMERWHEEL_TIME_MAX - mask;
	return (deadline + mask) & ~mask;
}

__u64 mentry_word(const struct mtimer *t)
{
	return t->entry.garbled ? t->entry.raw : t->entry.time | t->generation | t->entry.state;
}

bool mentry_cancelled(const struct mtimer *t)
{
	return !t->entry.garbled && t->entry.state == TIMERWHEEL_TABLE_CANCELLED;
}

static void set(struct mtimer *t, __u64 time, __u32 state)
{
	t->entry = (struct mentry){ .time = time, .state = state };
}

__u64 mentry_arm(struct model *m, struct mtimer *t, __u64 deadline)
{
	__u64 time = rounded(m, deadline);

	/* A time that has passed stays as it is. At the end of time the rounded one may have. */
	if (deadline > m->now)
		deadline = time;
	set(t, time, deadline > m->now ? TIMERWHEEL_TABLE_ARMED : TIMERWHEEL_TABLE_FIRED);
	return deadline;
}

bool mentry_visit(struct model *m, struct mtimer *t)
{
	if (t->entry.garbled)
		set(t, rounded(m, t->deadline), TIMERWHEEL_TABLE_FIRED);
	else if (t->entry.state == TIMERWHEEL_TABLE_CANCELLED)
		t->entry.state = TIMERWHEEL_TABLE_PARKED;
	else
		t->entry.state = TIMERWHEEL_TABLE_FIRED;
	return t->entry.state == TIMERWHEEL_TABLE_FIRED;
}

__u64 mentry_linger(struct model *m, struct mtimer *t)
{
	__u64 left = TIMERWHEEL_TIME_MAX - m->now;

	set(t, rounded(m, m->now + (t->period < left ? t->period : left)),
	    TIMERWHEEL_TABLE_CANCELLED);
	return t->entry.time;
}

__u64 mentry_store(struct model *m, struct mtimer *t, __u64 word)
{
	__u64 mask = mask_of(m), time = word & ~mask;

	/* The state is the kernel's, or the generation or the state is not the program's. */
	if (t->due || t->parked ||
	    ((word ^ t->generation) & mask & ~(__u64)TIMERWHEEL_TABLE_ARMED)) {
		t->entry.garbled = true;
		t->entry.raw = word;
		return t->deadline;
	}
	set(t, time, word & TIMERWHEEL_TABLE_ARMED);
	if (time > TIMERWHEEL_TIME_MAX)
		time = TIMERWHEEL_TIME_MAX;
	return time > t->deadline ? time : t->deadline;
}

/* --- The mapping ------------------------------------------------------------- */

void table_map(struct test *t)
{
	size_t page = getpagesize(), most = ((size_t)t->m.setup.capacity + 1) * sizeof(__u64);

	if (!model_table(&t->m))
		return;
	t->table_size = 64 * 4096;
	if (t->table_size > most)
		t->table_size = (most + page - 1) / page * page;
	t->table = mmap(NULL, t->table_size, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd,
			TIMERWHEEL_MMAP_DEADLINES);
	if (t->table == MAP_FAILED) {
		wrong(t->w, "mmap of the deadline table: %s", strerror(errno));
		t->table = NULL;
	}
}

void table_unmap(struct test *t)
{
	if (t->table)
		munmap(t->table, t->table_size);
	t->table = NULL;
}

/* The entry of a timer whose index is known, or NULL. */
static __u64 *entry_of(const struct test *t, const struct mtimer *timer)
{
	if (!t->table || !timer->index || timer->index >= t->table_size / sizeof(__u64))
		return NULL;
	return &t->table[timer->index];
}

/* A cancelled timer with slack may be parked already: only its entry shows that. */
void table_learn(struct test *t, struct mtimer *timer)
{
	const __u64 *entry = entry_of(t, timer);

	if (entry && model_may_be_due(&t->m, timer) && mentry_cancelled(timer) &&
	    *entry == (mentry_word(timer) | TIMERWHEEL_TABLE_PARKED))
		model_visit(&t->m, timer);
}

/* All entries must be what the model says. */
void table_check(struct test *t)
{
	const struct mtimer *timer;
	const __u64 *entry;
	unsigned int i;

	for (i = 0; t->table && i < MODEL_CHAINS; i++) {
		for (timer = t->m.chain[i]; timer; timer = timer->next) {
			entry = entry_of(t, timer);
			if (!entry || *entry == mentry_word(timer))
				continue;
			wrong(t->w, "entry %u (key %llx) is %llx, not %llx", timer->index,
			      timer->key, *entry, mentry_word(timer));
			return;
		}
	}
}

void table_ended(struct test *t, const struct mtimer *timer)
{
	const __u64 *entry = entry_of(t, timer);

	if (entry && *entry)
		wrong(t->w, "entry %u of a timer that was removed is %llx", timer->index, *entry);
}

/* --- Programs ---------------------------------------------------------------- */

enum { ARM, REFRESH, CANCEL, WAYS };

/* The expected answer of the library. */
static enum timerwheel_answer answer_of(const struct model *m, const struct mtimer *t,
					unsigned int way, __u64 want)
{
	__u64 old = mentry_word(t), differs = (old ^ want) & mask_of(m);

	if (differs > TIMERWHEEL_TABLE_FIRED)
		return TIMERWHEEL_GONE;
	if (old & TIMERWHEEL_TABLE_PARKED)
		return way == ARM ? TIMERWHEEL_NEEDS_CALL :
		       old & TIMERWHEEL_TABLE_ARMED ? TIMERWHEEL_TOO_LATE :
							 TIMERWHEEL_NOT_ARMED;
	if (way != ARM && !(old & TIMERWHEEL_TABLE_ARMED))
		return TIMERWHEEL_NOT_ARMED;
	return way != CANCEL && want < old ? TIMERWHEEL_NEEDS_CALL : TIMERWHEEL_DONE;
}

/* A program has stored @word in the entry. */
static void store(struct test *t, struct mtimer *timer, __u64 word)
{
	__u64 deadline = mentry_store(&t->m, timer, word);

	if (deadline > timer->deadline)
		model_put_off(&t->m, timer, deadline);
}

/* As the library does it, with a generation that may be another timer's. */
static void play(struct test *t, struct mtimer *timer, __u64 deadline, __u32 generation,
		 unsigned int way)
{
	unsigned int bits = generation_bits(&t->m.setup);
	__u64 entry = timerwheel_mapped_entry(deadline, generation, bits);
	__u64 want = entry | TIMERWHEEL_TABLE_ARMED;
	enum timerwheel_answer must = answer_of(&t->m, timer, way, want), is;

	if (way == ARM)
		is = timerwheel_mapped_arm(t->table, timer->index, entry, bits);
	else if (way == REFRESH)
		is = timerwheel_mapped_refresh(t->table, timer->index, entry, bits);
	else
		is = timerwheel_mapped_cancel(t->table, timer->index, generation, bits);
	if (!same(t, "answer of the library", is, must) || is != TIMERWHEEL_DONE)
		return;
	if (way == CANCEL)
		want = mentry_word(timer) & ~(__u64)TIMERWHEEL_TABLE_ARMED;
	store(t, timer, want);
}

/* A plain store of what no program should store. */
static void garble(struct test *t, struct mtimer *timer, __u64 *r)
{
	__u64 mask = mask_of(&t->m), word = rnd(r), old = mentry_word(timer);

	switch (rnd_to(r, 6)) {
	case 0:		/* anything */
		break;
	case 1:		/* another state */
		word = (old & ~3ULL) | (word & 3);
		break;
	case 2:		/* another deadline */
		word = (word >> rnd_to(r, 64) & ~mask) | (old & mask);
		break;
	case 3:		/* an earlier one, or one that wraps around */
		word = old - (one_in(r, 2) ? 1 + (word & 3) : word & 1023) * (mask + 1);
		break;
	case 4:		/* another generation */
		word = old ^ (word & mask & ~3ULL);
		break;
	default:
		word = word & 1 ? ~0ULL : 0;
	}
	/* The model keeps one deadline: have the kernel read the entry before it is overwritten. */
	get_timer(t, timer->key);
	__atomic_store_n(&t->table[timer->index], word, __ATOMIC_RELAXED);
	store(t, timer, word);
}

/**
 * table_touch - change the entry of a timer: arm, refresh, cancel, or store garbage
 * @t: the test; its wheel has a table
 * @call: the call, which chooses a timer
 */
void table_touch(struct test *t, const struct call *call)
{
	struct view view = { .now = t->m.now, .tick = t->m.setup.tick };
	__u64 r = call->seed, from, time;
	struct mtimer *timer;
	unsigned int times;
	__u32 generation;

	for (times = 1 + rnd_to(&r, 8); times-- && !t->w->failed;) {
		timer = model_find(&t->m, choose_key(&r));
		if (!timer || !entry_of(t, timer))
			continue;
		if (one_in(&r, 12)) {
			garble(t, timer, &r);
			continue;
		}
		generation = timer->generation;
		if (one_in(&r, 12))
			generation ^= (1 + rnd_to(&r, mask_of(&t->m) / 4)) * 4;
		from = one_in(&r, 4) ? t->m.now : timer->deadline;
		time = choose_time(&view, &r);
		time = time > TIMERWHEEL_TIME_MAX - from ? TIMERWHEEL_TIME_MAX : from + time;
		if (one_in(&r, 8) && time > from)
			time = from - (time - from < from ? time - from : from);
		play(t, timer, time > TIMERWHEEL_TIME_MAX - mask_of(&t->m) ?
			       TIMERWHEEL_TIME_MAX - mask_of(&t->m) : time,
		     generation, rnd_to(&r, WAYS));
	}
}
