/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's divisions, by their definition: quotient * divisor + remainder = dividend, with a
 * remainder below the divisor. There is exactly one such pair. A solver finds that out of the
 * equation in seconds, and out of the circuit of a divider in hours, if at all.
 *
 * With PROOF_ANY_QUOTIENT the product may be any number in the range that the remainder leaves:
 * then the proof is for every quotient, and faster.
 */
#ifndef PROOF_MATH64_H
#define PROOF_MATH64_H

#include "proof.h"

/**
 * struct proof_division - the last division
 * @product: @quotient * @divisor: what a proof compares with
 */
static struct proof_division {
	u64 dividend;
	u64 divisor;
	u64 quotient;
	u64 product;
} proof_division;

static inline u64 proof_divide(u64 dividend, u64 divisor)
{
	struct proof_division *last = &proof_division;

	PROVE(divisor, "no division by zero");
	/* Else the solver would have to find out that the same division has the same result. */
	if (dividend == last->dividend && divisor == last->divisor)
		return last->quotient;
	last->dividend = dividend;
	last->divisor = divisor;
	last->quotient = nondet_u64();
	last->product = nondet_u64();
#ifndef PROOF_ANY_QUOTIENT
	ASSUME(last->product == (unsigned __int128)last->quotient * divisor);
#endif
	ASSUME(last->product <= dividend && dividend - last->product < divisor);
	return last->quotient;
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return proof_divide(dividend, divisor);
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return proof_divide(dividend, divisor);
}

#endif /* PROOF_MATH64_H */
