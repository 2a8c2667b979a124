/* SPDX-License-Identifier: GPL-2.0 */
/*
 * With PROOF_SEARCH the guarantees of the kernel replace the search in a wheel's bitmap. A proof
 * may rely only on these guarantees, which hold for bitmaps of any size. A property of each bit in
 * a range is stated for one arbitrary bit, the witness.
 */
#ifndef PROOF_BITOPS_H
#define PROOF_BITOPS_H

#ifdef PROOF_SEARCH
#define find_next_bit	shim_find_next_bit
#include_next <linux/bitops.h>
#undef find_next_bit
#undef for_each_set_bit

/* Each bit in turn, so that it is a constant in the formula; the level, in loops of the wheel */
#define for_each_set_bit(bit, addr, size)					\
	for ((bit) = 0; proof_level = (bit), (bit) < (size); (bit)++)		\
		if (!test_bit(bit, addr))					\
			continue;						\
		else
static unsigned int proof_level;

#include "proof.h"

/* A bit that is set; and the one that the last search has found */
static unsigned long proof_witness, proof_found;

/* What is assumed of every bit that is set */
void proof_assume_set(unsigned long bit);

static inline unsigned long find_next_bit(const unsigned long *addr, unsigned long size,
					  unsigned long offset)
{
	proof_found = proof_within(0, size);
	ASSUME(proof_found >= offset || proof_found == size);
	ASSUME(proof_witness < offset || proof_witness >= size || proof_found <= proof_witness);
	if (proof_found < size)
		proof_assume_set(proof_found);
	return proof_found;
}
#else
#include_next <linux/bitops.h>
#endif

#endif /* PROOF_BITOPS_H */
