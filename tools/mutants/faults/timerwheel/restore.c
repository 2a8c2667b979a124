# SPDX-License-Identifier: GPL-2.0
no clamp for what is overdue beyond all times; timerwheel/host:overdue; s/^\t\t\te->left = -(__s64)TIMERWHEEL_TIME_MAX;/\t\t\t;/
what was replaced is not put back; timerwheel/wheels:what_was_replaced; s/^\t\t\tput_back(wheel, &before\[i\], 1);/\t\t\t;/
