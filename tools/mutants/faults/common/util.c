# SPDX-License-Identifier: GPL-2.0
commas in other places; timerwheel/wheels; s/digits % 3 == 0/digits % 4 == 0/
output that cannot be written; timerwheel/host:cannot_be_written; s/if (fflush(stdout) || ferror(stdout))/if (fflush(stdout) \&\& errno != ENOSPC)/
