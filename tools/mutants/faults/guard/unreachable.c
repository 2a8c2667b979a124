# SPDX-License-Identifier: GPL-2.0
log: as many lines as there are processes; guard/run:few_lines; s/return lines++ < LINES_MAX;/return true;/
