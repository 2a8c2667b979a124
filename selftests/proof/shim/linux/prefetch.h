/* SPDX-License-Identifier: GPL-2.0 */
/* Stub: a prefetch changes nothing. */
#ifndef PROOF_PREFETCH_H
#define PROOF_PREFETCH_H

#define prefetch(x)	((void)(x))
#define prefetchw(x)	((void)(x))

#endif /* PROOF_PREFETCH_H */
