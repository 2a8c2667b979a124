# SPDX-License-Identifier: GPL-2.0
signals stay as the parent had them; timerwheel/wheels:SIGCHLD; s/^\tsignals_reset();/\t;/
--help that cannot be written; timerwheel/host:--help; s/^\tout_check();/\t;/
