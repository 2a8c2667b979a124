/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Code that the proofs share. For CBMC, a function nondet_* without a body may return any value.
 */
#ifndef PROOF_H
#define PROOF_H

#include <linux/types.h>

/* A guarantee of the module before the code in question; the proof names the place. */
#define ASSUME(condition)	__CPROVER_assume(condition)
/* The proved statement. */
#define PROVE(condition, what)	__CPROVER_assert(condition, what)
/* A case that the assumptions must admit: "check" asks for an example of it in a run of its own. */
#ifdef PROOF_CASES
#define CASE(condition)		__CPROVER_cover(condition)
#else
#define CASE(condition)		((void)(condition))
#endif

/* Large enough for exact sums and products of 64-bit numbers. */
typedef __int128 wide;

u64 nondet_u64(void);
u32 nondet_u32(void);
u8 nondet_u8(void);
bool nondet_bool(void);

/* A number from @low to @high */
static inline u64 proof_within(u64 low, u64 high)
{
	u64 n = nondet_u64();

	ASSUME(n >= low && n <= high);
	return n;
}

/* The kernel, for a single thread */
#include <shim.h>

#endif /* PROOF_H */
