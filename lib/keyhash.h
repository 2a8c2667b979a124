/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A seeded hash of keys. */
#ifndef LTW_KEYHASH_H
#define LTW_KEYHASH_H

#include <stdint.h>
#include <sys/random.h>

/**
 * ltw_keyhash_seed - a seed for ltw_keyhash()
 * @table: the hash table
 *
 * Each table has its own seed, so that an attacker cannot choose keys that collide. If random
 * numbers are not available yet, early during boot, the seed is the address of the table.
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
 * Uses two rounds of xor, shift and multiply, so that each bit of the result depends on the whole
 * key.
 *
 * Return: the hash; use any 32 bits of it.
 */
static inline uint64_t ltw_keyhash(uint64_t key, uint64_t seed)
{
	key = (key ^ seed) * 0x9e3779b97f4a7c15ULL;
	key = (key ^ key >> 32 ^ seed >> 7) * 0xd6e8feb86659fd93ULL;
	return key ^ key >> 32;
}

#endif /* LTW_KEYHASH_H */
