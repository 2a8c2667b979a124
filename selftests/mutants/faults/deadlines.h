# SPDX-License-Identifier: GPL-2.0
# What only nonsense in an entry shows; for the rest of the file, see ../../unit/table.
decode: beyond the end of time; abi_fuzz; s/^\ttime = min(time, TIMERWHEEL_TIME_MAX);/\t;/
valid: any owner; resident:one.*.nonsense deadlines:table.*.other_generations_are_ignored; s/return !(((u32)entry ^ t->generation) & owner);/return true;/
