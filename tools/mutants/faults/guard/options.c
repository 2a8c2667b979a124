# SPDX-License-Identifier: GPL-2.0
empty: the control group of all processes; guard/run:options; s/if (!\*text)/if (0)/
--help that cannot be written; guard/run:help_not_written; s/^\tout_check();/\t;/
