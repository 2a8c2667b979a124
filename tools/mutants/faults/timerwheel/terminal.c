# SPDX-License-Identifier: GPL-2.0
bold with NO_COLOR; timerwheel/host:nor_with; s/return !no || !\*no;/return true;/
