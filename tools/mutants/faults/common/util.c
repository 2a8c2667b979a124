# SPDX-License-Identifier: GPL-2.0
commas in other places; timerwheel/wheels; s/digits % 3 == 0/digits % 4 == 0/
