/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Where a key is looked for in a hash table. */
#ifndef LTW_KEYHASH_H
#define LTW_KEYHASH_H

#include <stdint.h>
#include <sys/random.h>

/**
 * ltw_keyhash_seed - a seed for ltw_keyhash()
 * @table: the table
 *
 * With another one for each table nobody can choose keys that all meet in one place. Without a
 * source of random numbers, early while a machine boots, the address of the table must do.
 *
 * Return: the seed.
 */
static inline uint64_t ltw_keyhash_seed(const void *table)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (uintptr_t)table;
	return seed;
}

/**
 * ltw_keyhash - mix the bits of a key
 * @key: the key
 * @seed: ltw_keyhash_seed()
 *
 * Two rounds of xor, shift and multiply: all bits of the result depend on all of the key.
 *
 * Return: a number of which any 32 bits will do.
 */
static inline uint64_t ltw_keyhash(uint64_t key, uint64_t seed)
{
	key = (key ^ seed) * 0x9e3779b97f4a7c15ULL;
	key = (key ^ key >> 32 ^ seed >> 7) * 0xd6e8feb86659fd93ULL;
	return key ^ key >> 32;
}

#endif /* LTW_KEYHASH_H */
