/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The source of the driver's decisions: a pseudo-random generator, reproducible by its seed, or a
 * fuzzer's bytes
 */
#ifndef SOURCE_H
#define SOURCE_H

#include <linux/types.h>

/**
 * struct source - a stream of decisions
 * @state: state of the generator
 * @bytes: the next byte; NULL: use the generator
 * @end: the end of the bytes
 */
struct source {
	u64 state;
	const u8 *bytes;
	const u8 *end;
};

static inline u64 source_word(struct source *s)
{
	u64 z;

	if (s->bytes) {
		unsigned int i;

		for (i = 0, z = 0; i < 8 && s->bytes < s->end; i++)
			z = z << 8 | *s->bytes++;
		return z;
	}
	/* splitmix64 */
	s->state += 0x9e3779b97f4a7c15ULL;
	z = s->state;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* A number below @n, from as few bytes as possible. @n is at most 2^32. */
static inline u64 source_pick(struct source *s, u64 n)
{
	u64 z = 0, reach;

	if (!s->bytes)
		return (source_word(s) >> 32) * n >> 32;
	for (reach = 1; reach < n && s->bytes < s->end; reach <<= 8)
		z = z << 8 | *s->bytes++;
	return z % n;
}

/* True in one of @n cases, on average */
static inline bool source_once_in(struct source *s, u64 n)
{
	return source_pick(s, n) == n - 1;
}

static inline bool source_empty(const struct source *s)
{
	return s->bytes && s->bytes >= s->end;
}

#endif /* SOURCE_H */
