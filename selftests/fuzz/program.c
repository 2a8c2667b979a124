// SPDX-License-Identifier: GPL-2.0
/* Programs: create, mutate, print and read them. */
#include <stdio.h>

#include "fuzz.h"

const char * const op_names[OPS] = {
	"info", "setup", "add", "move", "remove", "drain", "get", "list", "stats", "advance",
	"move_handle", "remove_handle", "monitor",
	"bad_ioctl", "read", "readv", "uring", "pread", "write", "lseek", "poll", "epoll",
	"select", "flags", "mmap", "touch", "fdinfo", "dup", "scm", "reopen", "cap", "fork",
	"flow", "take", "watch", "unwatch",
};

/* Relative frequency of each. */
static const __u8 weights[OPS] = {
	[OP_INFO] = 4, [OP_SETUP] = 4, [OP_ADD] = 40, [OP_MOVE] = 20, [OP_REMOVE] = 16,
	[OP_DRAIN] = 6, [OP_GET] = 10, [OP_LIST] = 10, [OP_STATS] = 4, [OP_ADVANCE] = 24,
	[OP_MOVE_HANDLE] = 12, [OP_REMOVE_HANDLE] = 8,
	[OP_MONITOR] = 4, [OP_BAD_IOCTL] = 2, [OP_READ] = 24, [OP_READV] = 6, [OP_URING] = 3,
	[OP_PREAD] = 1, [OP_WRITE] = 1, [OP_LSEEK] = 1, [OP_POLL] = 3, [OP_EPOLL] = 1,
	[OP_SELECT] = 1, [OP_FLAGS] = 2, [OP_MMAP] = 1, [OP_TOUCH] = 16, [OP_FDINFO] = 1,
	[OP_DUP] = 1, [OP_SCM] = 1, [OP_REOPEN] = 1, [OP_CAP] = 1, [OP_FORK] = 1,
	[OP_FLOW] = 6, [OP_TAKE] = 16, [OP_WATCH] = 16, [OP_UNWATCH] = 2,
};

static bool op_is_for(unsigned int op, bool threads)
{
	return threads ? op < OP_FLOW : op != OP_CAP && op != OP_FORK;
}

static unsigned int choose_op(__u64 *random, bool threads)
{
	unsigned int sum = 0, op, at;

	for (op = 0; op < OPS; op++)
		sum += op_is_for(op, threads) ? weights[op] : 0;
	at = rnd_to(random, sum);
	for (op = 0; !op_is_for(op, threads) || at >= weights[op]; op++)
		at -= op_is_for(op, threads) ? weights[op] : 0;
	return op;
}

static unsigned int choose_place(__u64 *random, bool threads)
{
	if (!one_in(random, 6))
		return rnd_to(random, PLACE_EDGE + 1);
	return rnd_to(random, threads ? PLACES : PLACE_FLIP);
}

/* How many bytes of an array, or of an argument, are in the valid part. */
static unsigned int choose_cut(__u64 *random)
{
	switch (rnd_to(random, 4)) {
	case 0:
		return rnd_to(random, 80);
	case 1:
		return rnd_to(random, 20) * 64;
	case 2:
		return rnd_to(random, 20) * 48 + rnd_to(random, 3);
	default:
		return rnd_to(random, 1000) * 8;
	}
}

static unsigned int choose_count(__u64 *random)
{
	unsigned int most = one_in(random, 200) ? TIMERWHEEL_BATCH_MAX : 400;

	switch (rnd_to(random, 8)) {
	case 0:
		return 0;
	case 1:
	case 2:
		return 1;
	case 3:
		return rnd_to(random, most + 1);
	default:
		return rnd_to(random, 24);
	}
}

static void make_call(struct call *call, __u64 *random, bool threads)
{
	unsigned int i;

	*call = (struct call) {
		.op = choose_op(random, threads),
		.wheel = rnd_to(random, 256),
		.place = choose_place(random, threads),
		.elems = choose_place(random, threads),
		.cold = one_in(random, 8) ? rnd_to(random, 4) : 0,
		.cut = choose_cut(random),
		.elems_cut = choose_cut(random),
		.count = choose_count(random),
		.seed = rnd(random),
	};
	/* Valid arguments reach more code. */
	if (op_is_ioctl(call->op) && !one_in(random, 4))
		call->place = PLACE_PLAIN;
	if (one_in(random, 8))
		for (i = 0; i < MANGLE_BITS; i++)
			if (one_in(random, 4))
				call->mangle |= 1 << i;
}

void program_make(struct program *p, __u64 *random, bool threads)
{
	unsigned int i;

	memset(p, 0, sizeof(*p));
	p->seed = rnd(random);
	p->n = 1 + rnd_to(random, PROGRAM_MAX);
	for (i = 0; i < p->n; i++)
		make_call(&p->call[i], random, threads);
}

static void mutate_call(struct call *call, __u64 *random, bool threads)
{
	struct call other;

	make_call(&other, random, threads);
	switch (rnd_to(random, 8)) {
	case 0:
		call->place = other.place;
		call->cut = other.cut;
		break;
	case 1:
		call->elems = other.elems;
		call->elems_cut = other.elems_cut;
		break;
	case 2:
		call->cold = rnd_to(random, 4);
		break;
	case 3:
		call->mangle ^= 1 << rnd_to(random, MANGLE_BITS);
		break;
	case 4:
		call->count = other.count;
		break;
	case 5:
		call->wheel = other.wheel;
		call->op = other.op;
		break;
	default:
		call->seed = other.seed;
	}
}

/* Change a program a little; calls may be taken from @other. */
void program_mutate(struct program *p, const struct program *other, __u64 *random, bool threads)
{
	unsigned int times = 1 + rnd_to(random, 4);
	unsigned int at, from, n;

	while (times--) {
		at = rnd_to(random, p->n);
		switch (rnd_to(random, 6)) {
		case 0:		/* insert a call */
			if (p->n == PROGRAM_MAX)
				break;
			memmove(&p->call[at + 1], &p->call[at], (p->n - at) * sizeof(*p->call));
			make_call(&p->call[at], random, threads);
			p->n++;
			break;
		case 1:		/* remove a call */
			if (p->n == 1)
				break;
			p->n--;
			memmove(&p->call[at], &p->call[at + 1], (p->n - at) * sizeof(*p->call));
			break;
		case 2:		/* replace the end by that of another program */
			from = rnd_to(random, other->n);
			n = other->n - from;
			if (n > PROGRAM_MAX - at)
				n = PROGRAM_MAX - at;
			memmove(&p->call[at], &other->call[from], n * sizeof(*p->call));
			p->n = at + n;
			break;
		case 3:
			p->seed = rnd(random);
			break;
		default:
			mutate_call(&p->call[at], random, threads);
		}
	}
}

/* The first calls of a program, as program_read() understands them. */
void program_print(const struct program *p, unsigned int until)
{
	const struct call *c;

	dprintf(1, "# program %llx\n", p->seed);
	for (c = p->call; c < p->call + until && c < p->call + p->n; c++)
		dprintf(1, "# call %s %x %x %x %x %x %x %x %x %llx\n", op_names[c->op], c->wheel,
			c->place, c->elems, c->cold, c->mangle, c->cut, c->elems_cut, c->count,
			c->seed);
}

bool program_read(struct program *p, const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned int v[5], op;
	char line[256], name[16];
	struct call c;

	if (!file)
		return false;
	memset(p, 0, sizeof(*p));
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "# program %llx", &p->seed) == 1 || p->n == PROGRAM_MAX)
			continue;
		if (sscanf(line, "# call %15s %x %x %x %x %x %x %x %x %llx", name, &v[0], &v[1],
			   &v[2], &v[3], &v[4], &c.cut, &c.elems_cut, &c.count, &c.seed) != 10)
			continue;
		for (op = 0; op < OPS && strcmp(name, op_names[op]); op++)
			;
		if (op == OPS || v[1] >= PLACES || v[2] >= PLACES)
			continue;
		c.op = op;
		c.wheel = v[0];
		c.place = v[1];
		c.elems = v[2];
		c.cold = v[3];
		c.mangle = v[4];
		p->call[p->n++] = c;
	}
	fclose(file);
	return p->n;
}
