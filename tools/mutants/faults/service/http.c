# SPDX-License-Identifier: GPL-2.0
clients: a few silent ones keep others waiting; proxy/run:metrics_silent_clients; s/LIMIT, HTTP_CLIENTS/LIMIT, 8/
path: everything is there; proxy/run:metrics; s/strcmp(url, "\/metrics") || /0 || /
