# SPDX-License-Identifier: GPL-2.0
no clamp for what is overdue beyond all times; timerwheel/host:overdue; s/^\t\t\te->left = -(__s64)TIMERWHEEL_TIME_MAX;/\t\t\t;/
