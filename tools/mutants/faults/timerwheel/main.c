# SPDX-License-Identifier: GPL-2.0
signals stay as the parent had them; timerwheel/wheels:SIGCHLD; s/^\tsignals_reset();/\t;/
--help that cannot be written; timerwheel/host:--help; s/^\tout_check();/\t;/
no command is suggested; timerwheel/host:nearest; s/^\tc = nearest(name);/\tc = NULL;/
a letter that differs is free; timerwheel/host:command_that_does_not_exist; s/left + (a\[i\] != b\[j\])/left/
stat has no legend; timerwheel/wheels:explains; /  overruns  /d
