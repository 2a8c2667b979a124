# SPDX-License-Identifier: GPL-2.0
value: no port with IPv6; guard/run:listens_no_more; s/\.sin6_port = htons(value)/.sin6_port = 0/
