# SPDX-License-Identifier: GPL-2.0
histogram: not cumulative; proxy/run:metrics; s/total += SUM(lateness\[i\]);/total = SUM(lateness[i]);/
