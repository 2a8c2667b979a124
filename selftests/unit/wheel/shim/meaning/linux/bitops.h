/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Same meaning as in the kernel: a bitmap is an array of unsigned long, and in a bitmap of @size
 * bits no word behind the word of bit @size - 1 is accessed.
 */
#ifndef SHIM_BITOPS_H
#define SHIM_BITOPS_H

#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/types.h>

#define BITS_TO_LONGS(nr)	(((nr) + BITS_PER_LONG - 1) / BITS_PER_LONG)

#define DECLARE_BITMAP(name, bits)	unsigned long name[BITS_TO_LONGS(bits)]

static inline unsigned long __fls(unsigned long word)
{
	return BITS_PER_LONG - 1 - __builtin_clzl(word);
}

static inline void __set_bit(unsigned long nr, unsigned long *addr)
{
	addr[BIT_WORD(nr)] |= BIT_MASK(nr);
}

static inline void __clear_bit(unsigned long nr, unsigned long *addr)
{
	addr[BIT_WORD(nr)] &= ~BIT_MASK(nr);
}

static inline bool test_bit(unsigned long nr, const unsigned long *addr)
{
	return addr[BIT_WORD(nr)] & BIT_MASK(nr);
}

/*
 * The first bit set at or after @offset; @size if there is none. Not inline, as in the kernel:
 * otherwise gcc would warn of reads behind a bitmap of one word that never happen.
 */
static __attribute__((__noinline__, unused)) unsigned long
find_next_bit(const unsigned long *addr, unsigned long size, unsigned long offset)
{
	unsigned long word, nr;

	if (offset >= size)
		return size;
	nr = BIT_WORD(offset);
	word = addr[nr] & (~0UL << (offset % BITS_PER_LONG));
	while (!word) {
		if (++nr * BITS_PER_LONG >= size)
			return size;
		word = addr[nr];
	}
	return min(nr * BITS_PER_LONG + __builtin_ctzl(word), size);
}

static inline unsigned long find_first_bit(const unsigned long *addr, unsigned long size)
{
	return find_next_bit(addr, size, 0);
}

#define for_each_set_bit(bit, addr, size)			\
	for ((bit) = find_first_bit((addr), (size));		\
	     (bit) < (size);					\
	     (bit) = find_next_bit((addr), (size), (bit) + 1))

static inline unsigned long __ffs(unsigned long word)
{
	return __builtin_ctzl(word);
}

/* 1 for bit 0 ... 64 for bit 63, 0 for 0 */
static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline int ilog2(u64 x)
{
	return fls64(x) - 1;
}

static inline bool is_power_of_2(unsigned long n)
{
	return n && !(n & (n - 1));
}

#endif /* SHIM_BITOPS_H */
