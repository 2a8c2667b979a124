# SPDX-License-Identifier: GPL-2.0
clients: a few silent ones keep others waiting; proxy/run:metrics_silent_clients; s/LIMIT, HTTP_CLIENTS/LIMIT, 8/
clients: slow ones keep all places; proxy/run:metrics_slow_clients; s/shutdown(client->fd, SHUT_RDWR);/;/
clients: slow ones of the guard keep all places; guard/run:metrics_slow_clients; s/shutdown(client->fd, SHUT_RDWR);/;/
clients: slow ones keep their places to their deadlines; proxy/run:metrics_by_host; s/client == victim ? REQUEST_MIN : REQUEST_MAX/REQUEST_MAX/
clients: nobody is accepted after a place has become free; proxy/run:metrics_by_host; s/^\t\tserver->again = true;/\t\t;/
clients: the oldest of all hosts goes; proxy/run:metrics_by_host; s/n = clients_of(.*/n = 1;/
deadline: there is none; proxy/run:metrics_deadline; s/if (end <= now)/if (0)/
deadline: at once; proxy/run:metrics_deadline; s/if (end <= now)/if (1)/
path: everything is there; proxy/run:metrics; s/strcmp(url, "\/metrics") || /0 || /
