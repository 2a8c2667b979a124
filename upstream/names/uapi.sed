# SPDX-License-Identifier: GPL-2.0
# The header says what the module outside of the tree does with older kernels.
/^ \* Before Linux 6\.5 a task that enters one just then makes all aborts/,/^ \* wheel wait, and a socket/d
/ In a ring with$/{
N
s/ In a ring with\n \* IORING_SETUP_IOPOLL older kernels fail with EOPNOTSUPP\.//
}
