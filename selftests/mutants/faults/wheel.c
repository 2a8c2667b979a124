# NAME; TESTS; SED SCRIPT
visit: a connection costs no more than a timer; icount/socket:socket.ip4.visits_cost_more; s/TW_SOCK_COST);/0U);/
collect: the search for the next tick is free; icount/time:span.plain.advance; s/left -= min(left, job.cost);/;/
