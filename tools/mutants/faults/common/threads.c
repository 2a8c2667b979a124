# SPDX-License-Identifier: GPL-2.0
threads: each is taken for the main one; guard/run:main_thread; s/tid == pid ? 0 : PIDFD_THREAD/0/
living: the first thread; timerwheel/wheels:main_thread_has_ended guard/run:main_thread; s/if (tid > 0 \&\& thread_fds(pid, tid))/if (tid == pid)/
