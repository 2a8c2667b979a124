# SPDX-License-Identifier: GPL-2.0
remove: what cannot be printed is not put back; timerwheel/wheels:remove; s/back += put_back(wheel, entry, 1);/back += 0;/
no room for how many were parked; timerwheel/wheels:a_parked_timer; s/TIMERWHEEL_WAS_PARKED + 1\], nr_failed/TIMERWHEEL_WAS_DUE + 1], nr_failed/
remove: a parked timer is put back armed; timerwheel/wheels:is_parked; s/^\t\tentry->result = change->add.result;/\t\tentry->result = TIMERWHEEL_WAS_DUE;/
