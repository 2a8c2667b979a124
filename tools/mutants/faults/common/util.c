# SPDX-License-Identifier: GPL-2.0
commas in other places; timerwheel/wheels; s/digits % 3 == 0/digits % 4 == 0/
output that cannot be written; timerwheel/host:cannot_be_written; s/if (fflush(stdout) || ferror(stdout))/if (fflush(stdout) \&\& errno != ENOSPC)/
advice: the package with headers is not named; guard/run:no_device; s/if (access(build, F_OK))/if (0)/
