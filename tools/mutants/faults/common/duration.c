# SPDX-License-Identifier: GPL-2.0
a time of 2^63 ns is accepted; timerwheel/host:too_long; s/ || sum >> 63;/;/
digits that overflow are not noticed; timerwheel/host:too_long; s/large |= __builtin_mul_overflow(whole, 10, &whole) ||/whole *= 10, large |=/
parts of a unit are cut off; timerwheel/wheels:part_of_a_unit; s/(part \* unit + 0.5)/(part * unit)/
too long a time is called no time; timerwheel/host:too_long; s/return fail(ERANGE);/return fail(EINVAL);/
