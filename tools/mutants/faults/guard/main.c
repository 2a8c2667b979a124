# SPDX-License-Identifier: GPL-2.0
status: one connection in the plural; guard/run:status; s/count == 1 ? "" : "s"/"s"/
status: it is told once; guard/run:status; s/^\tif (!strcmp(text, last))/\tif (*last)/
status: it does not name what the guard waits for; guard/run:status; s/scan_waits() ? /0 ? /
