# SPDX-License-Identifier: GPL-2.0
--help that cannot be written; guard/run:help_not_written; s/^\tout_check();/\t;/
