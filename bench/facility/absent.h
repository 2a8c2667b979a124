/* SPDX-License-Identifier: GPL-2.0 */
/* Placeholder for a facility whose library was missing when the bench was built */
#ifndef ABSENT_H
#define ABSENT_H

#include "../facility.h"

#define FACILITY_ABSENT(symbol, name_of_it, package)	\
	const struct facility symbol = { .name = (name_of_it), .missing = (package) }

#endif /* ABSENT_H */
