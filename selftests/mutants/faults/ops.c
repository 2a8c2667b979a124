# SPDX-License-Identifier: GPL-2.0
# What differs for resident timers; for others, and for the rest of the file, see ../../unit/table.
move: of a parked timer, whatever its value; resident:one.*.match; /^int tw_move_slow(/,/^}/s/t->value != arg->match/0/
drain: a parked timer is counted still; resident:one.*.list_and_drain; s/^\t\t\tctx->cpu->wheel.parked--;/\t\t\t;/
drain: the entry of a due or parked one stays; resident:one.*.list_and_drain; s/^\t\ttw_resident_end(&file->table.pool, index, t, was);/\t\t;/
