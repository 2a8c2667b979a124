# NAME; TESTS; SED SCRIPT
visit: a connection costs no more than a timer; icount/socket:socket.ip4.visits_cost_more; s/TW_SOCK_COST);/0U);/
