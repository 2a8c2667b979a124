# SPDX-License-Identifier: GPL-2.0
a command inherits blocked signals; timerwheel/wheels:--block-signal; s/ | POSIX_SPAWN_SETSIGMASK//
a command inherits ignored signals; timerwheel/wheels:--ignore-signal; s/POSIX_SPAWN_SETSIGDEF | //
what nohup ignores is not ignored by a command; timerwheel/wheels:--ignore-signal; s/^\t\tsigdelset(&set, kept\[i\]);/\t\t;/
