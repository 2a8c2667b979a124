# SPDX-License-Identifier: GPL-2.0
--help that cannot be written; timerwheel/host:--help; s/^\tout_check();/\t;/
