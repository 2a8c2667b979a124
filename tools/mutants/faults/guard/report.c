# SPDX-License-Identifier: GPL-2.0
stdout: it waits for the reader of a terminal; guard/run:report_terminal; s/^\t\tlog_unblock(STDOUT_FILENO);/\t\t;/
lost: all lines of a write; guard/run:report_terminal; s/for (; at < length; at++)/for (at = at < length ? 0 : at; at < length; at++)/
