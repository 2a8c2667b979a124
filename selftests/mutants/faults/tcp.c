# NAME; TESTS; SED SCRIPT
check: a listening socket is accepted; socket:socket.ip4.fields; /case TCP_LISTEN:/,/EOPNOTSUPP/s/-EOPNOTSUPP/0/
check: an unconnected socket is accepted; socket:socket.ip4.other_sockets; s/return -ENOTCONN;/return 0;/
check: any protocol; socket:socket.ip4.other_sockets; s/sk->sk_type != SOCK_STREAM ||.*/0 ||/
gone: only by its state; socket:socket.ip4.closed_here; s,return tw_tcp_closed(sk) ||,return,
abort: with another error; socket:socket.ip4.abort_at_once; s/-EBUSY : abort(sk, ETIMEDOUT);/-EBUSY : abort(sk, ECONNABORTED);/
