# SPDX-License-Identifier: GPL-2.0
bold with NO_COLOR; timerwheel/host:NO_COLOR; s/return !no || !\*no;/return true;/
