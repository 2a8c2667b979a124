# SPDX-License-Identifier: GPL-2.0
park: not counted; resident:one.*.cancel; s/w->parked++;/;/
park: not published; resident:one.*.cancel,one.*.move,one.*.arm_again; s/smp_store_release(&t->state, TW_PARKED);/;/
park: counted twice; abi_fuzz; s/w->parked++;/w->parked += 2;/
