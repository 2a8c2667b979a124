# SPDX-License-Identifier: GPL-2.0
each descriptor of a wheel is another wheel; timerwheel/wheels:live_screen; s/if (!syscall(SYS_kcmp/if (0 \&\& !syscall(SYS_kcmp/
