# SPDX-License-Identifier: GPL-2.0
top counts itself; timerwheel/wheels:not_an_owner; s/ && pid != getpid() &&/ \&\&/
each descriptor of a wheel is another wheel; timerwheel/wheels:live_screen; s/if (!syscall(SYS_kcmp/if (0 \&\& !syscall(SYS_kcmp/
