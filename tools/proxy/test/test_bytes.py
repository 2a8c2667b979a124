# SPDX-License-Identifier: GPL-2.0
"""That bytes come through: all, in order, both ways, whoever closes first."""

import contextlib
import socket
import threading
import time

from harness import (PATIENCE, UNIT, Proxy, Server, check, digest, echo, ended, free_port,
                     full_server, in_own_network, pattern, read_all, read_exactly, read_to_reset,
                     reset, small_reader, stopped)

MB = 1 << 20


def test_large_both_ways():
    """Both directions at once, and more than all buffers hold."""
    server = Server()
    proxy = Proxy(server.address)
    client = proxy.connect()
    far = server.accept()
    up, down = pattern(24 * MB, 'up'), pattern(24 * MB, 'down')
    got = {}

    def send(sock, data):
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)

    def receive(name, sock):
        got[name] = read_all(sock)

    threads = [threading.Thread(target=send, args=(client, up)),
               threading.Thread(target=send, args=(far, down)),
               threading.Thread(target=receive, args=('up', far)),
               threading.Thread(target=receive, args=('down', client))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60 + PATIENCE)
    check(digest(got['up']) == digest(up), 'other bytes came to the server')
    check(digest(got['down']) == digest(down), 'other bytes came to the client')
    proxy.wait_metric('connections', 0)
    m = proxy.metrics()
    check(m['bytes_total{from="client"}'] == len(up), 'bytes of the client not counted')
    check(m['bytes_total{from="server"}'] == len(down), 'bytes of the server not counted')
    check(m['closed_total{end="client"}'] + m['closed_total{end="server"}'] == 1,
          'not counted as done')
    check(m['blocked'] == 0, 'a direction is still blocked')


def test_small_writes():
    """One byte to seven at a time, each answered before the next."""
    server = Server(echo)
    proxy = Proxy(server.address)
    client = proxy.connect()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for i in range(3000):
        data = pattern(1 + i % 7, i)
        client.sendall(data)
        check(read_exactly(client, len(data)) == data, f'message {i} came back as another')


def test_small_segments():
    """Many tiny segments that wait together."""
    server = Server()
    proxy = Proxy(server.address)
    client = proxy.connect()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    far = server.accept()
    data = pattern(20000, 'segments')
    for i in range(0, len(data), 2):
        client.sendall(data[i:i + 2])
    check(read_exactly(far, len(data)) == data, 'other bytes came')


def test_client_closes_first():
    """The request's end of file is passed on; the whole answer comes afterwards."""
    answer = pattern(3 * MB, 'answer')

    def serve(conn):
        request = read_all(conn)
        time.sleep(0.1)
        conn.sendall(digest(request).encode() + answer)

    server = Server(serve)
    proxy = Proxy(server.address)
    client = proxy.connect()
    request = pattern(MB, 'request')
    client.sendall(request)
    client.shutdown(socket.SHUT_WR)
    got = read_all(client)
    check(got == digest(request).encode() + answer, 'another answer came')


def test_server_closes_first():
    """The server has said all, and still listens."""
    server = Server()
    proxy = Proxy(server.address)
    client = proxy.connect()
    far = server.accept()
    far.sendall(b'welcome')
    far.shutdown(socket.SHUT_WR)
    check(read_all(client) == b'welcome', 'another welcome came')
    data = pattern(2 * MB, 'late')
    sender = threading.Thread(target=client.sendall, args=(data,))
    sender.start()
    check(read_exactly(far, len(data)) == data, 'other bytes came')
    sender.join()
    client.close()
    check(ended(far, 5)[1] == 'eof', 'the client\'s end came as a reset')


def test_at_once():
    """Sent and closed before the server has been reached."""
    server = Server()
    proxy = Proxy(server.address)
    client = proxy.connect()
    client.sendall(b'short')
    client.close()
    far = server.accept()
    check(read_all(far) == b'short', 'other bytes came')


def test_slow_reader():
    """Who reads slowly slows down who writes; nothing is piled up in between."""
    server = Server()
    proxy = Proxy(server.address)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    client.connect(('127.0.0.1', proxy.port))
    far = server.accept()
    data = pattern(64 * MB, 'slow')
    far.setblocking(False)
    sent, quiet = 0, 0
    until = time.monotonic() + 30 + PATIENCE
    # If it has only stood still it takes more.
    while (quiet < 20 or not proxy.metrics()['blocked']) and sent < len(data):
        check(time.monotonic() < until, 'it is not blocked')
        try:
            sent += far.send(data[sent:sent + MB])
            quiet = 0
        except BlockingIOError:
            quiet += 1
            time.sleep(0.01)
    check(sent < 32 * MB, f'{sent} bytes were taken that nobody reads')
    proxy.sleeps()
    check(proxy.metrics()['blocked'] == 1, 'one direction should be blocked')
    far.setblocking(True)
    rest = threading.Thread(target=lambda: (far.sendall(data[sent:]), far.close()))
    rest.start()
    check(digest(read_all(client)) == digest(data), 'other bytes came')
    rest.join()
    client.close()
    proxy.wait_metric('blocked', 0)


def test_blocked_reader_resets():
    """What waits for a reader that is gone waits no more, and is not counted."""
    server = Server()
    proxy = Proxy(server.address)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    client.connect(('127.0.0.1', proxy.port))
    far = server.accept()
    fill(far, proxy)
    reset(client)
    proxy.wait_metric('connections', 0)
    check(proxy.metrics()['blocked'] == 0, 'it is still counted')


def test_blocked_reader_idle():
    """Nor is what waits for a reader whose time is over."""
    server = Server()
    proxy = Proxy(server.address, idle=2 * UNIT)
    client = small_reader(proxy)
    fill(server.accept(), proxy)
    proxy.wait_metric('connections', 0)
    check(proxy.metrics()['blocked'] == 0, 'it is still counted')
    client.close()


def test_slow_reader_server_gone():
    """The server has closed, the client still has all to read: no busy loop, no byte missing."""
    server = Server()
    proxy = Proxy(server.address, idle='none')
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    client.connect(('127.0.0.1', proxy.port))
    far = server.accept()
    client.shutdown(socket.SHUT_WR)
    check(ended(far, 5)[1] == 'eof', 'no end of file came')
    data = pattern(12 * MB, 'gone')
    sender = threading.Thread(target=lambda: (far.sendall(data), far.close()))
    sender.start()
    time.sleep(0.3)
    proxy.sleeps()
    check(digest(read_all(client)) == digest(data), 'other bytes came')
    sender.join()


def test_hangup_while_blocked():
    """The same, and the server's end of file has come, too: its socket has hung up."""
    server = Server()
    proxy = Proxy(server.address, half_closed='none')
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    client.connect(('127.0.0.1', proxy.port))
    far = server.accept()
    client.shutdown(socket.SHUT_WR)
    check(ended(far, 5)[1] == 'eof', 'no end of file came')
    sent = 0
    until = time.monotonic() + 30 + PATIENCE
    # Not more than that: the rest must fit into the socket of the proxy.
    while not (m := proxy.metrics())['blocked']:
        check(time.monotonic() < until, 'it is not blocked')
        if m['bytes_total{from="server"}'] < sent:
            continue
        far.sendall(bytes(MB // 4))
        sent += MB // 4
    far.close()
    time.sleep(0.3)
    proxy.sleeps()
    check(len(read_all(client)) == sent, 'bytes are missing')
    proxy.wait_metric('closed_total{end="client"}', 1)


def test_reset_by_client():
    """A reset is passed on as one: it is no end of file."""
    server = Server()
    proxy = Proxy(server.address)
    client = proxy.connect()
    client.sendall(b'x')
    far = server.accept()
    read_exactly(far, 1)
    reset(client)
    check(ended(far, 5)[1] == 'reset', 'the server saw an end of file')
    proxy.wait_metric('closed_total{end="client-reset"}', 1)


def test_reset_by_server():
    server = Server()
    proxy = Proxy(server.address)
    client = proxy.connect()
    far = server.accept()
    client.sendall(b'x')
    read_exactly(far, 1)
    reset(far)
    check(ended(client, 5)[1] == 'reset', 'the client saw an end of file')
    proxy.wait_metric('connections', 0)


def fill(sock, proxy):
    """Until nobody takes more, not even the proxy if it has stood still."""
    sock.setblocking(False)
    until = time.monotonic() + 30 + PATIENCE
    quiet = 0
    while quiet < 20 or not proxy.metrics()['blocked']:
        check(time.monotonic() < until, 'it is not blocked')
        try:
            sock.send(bytes(MB))
            quiet = 0
        except BlockingIOError:
            quiet += 1
            time.sleep(0.01)


def pair_of(proxy, server, swap):
    """A client and its server's end; the other way round if @swap."""
    client = proxy.connect()
    far = server.accept()
    return (far, client) if swap else (client, far)


def test_reset_while_blocked():
    """The other side reads nothing: it is reset after --half-closed, not later."""
    server = Server()
    proxy = Proxy(server.address, idle='none', half_closed=2 * UNIT)
    for swap, name in ((False, 'client'), (True, 'server')):
        talker, silent = pair_of(proxy, server, swap)
        fill(talker, proxy)
        proxy.sleeps()
        reset(talker)
        proxy.wait_metric(f'closed_total{{end="{name}-reset"}}', 1, 5)
        read_to_reset(silent, 5)


def test_bytes_before_reset():
    """A side sends and resets: the other side gets all of it, and then the reset."""
    server = Server()
    proxy = Proxy(server.address)
    data = pattern(1800, 'last words')
    for swap in (False, True):
        for pause in (False, True):
            talker, silent = pair_of(proxy, server, swap)
            with stopped(proxy) if pause else contextlib.nullcontext():
                talker.sendall(data)
                reset(talker)
            check(read_to_reset(silent) == data, 'other bytes came before the reset')
    proxy.wait_metric('connections', 0)


def test_answer_before_reset():
    """A server answers without reading the request, and closes: its kernel sends a reset."""
    answer = pattern(3000, '413')
    server = Server()
    proxy = Proxy(server.address)
    for swap in (False, True):
        for pause in (False, True):
            asker, answerer = pair_of(proxy, server, swap)
            asker.sendall(pattern(20000, 'request'))
            read_exactly(answerer, 100)
            with stopped(proxy) if pause else contextlib.nullcontext():
                answerer.sendall(answer)
                answerer.close()
                # The proxy may find the reset when it sends this.
                if pause:
                    asker.sendall(pattern(20000, 'more'))
            check(read_to_reset(asker) == answer, 'another answer came before the reset')
    proxy.wait_metric('connections', 0)


def test_reset_waits_for_reader():
    """The bytes before a reset are more than the reader has room for, and it is slow."""
    server = Server()
    proxy = Proxy(server.address, half_closed=6 * UNIT)
    client, data = small_reader(proxy), pattern(2 * MB, 'slow')
    far = server.accept()
    far.sendall(data)
    # All of it is in the sockets of the proxy.
    proxy.wait_metric('bytes_total{from="server"}', len(data))
    reset(far)
    time.sleep(UNIT)
    check(read_to_reset(client) == data, 'bytes are missing before the reset')
    proxy.wait_metric('closed_total{end="server-reset"}', 1)


def test_reset_waits_for_slow_reader():
    """The reader needs several times --half-closed, and takes some bytes within each."""
    server = Server()
    proxy = Proxy(server.address, half_closed=4 * UNIT)
    client, data = small_reader(proxy), pattern(2 * MB, 'steps')
    far = server.accept()
    far.sendall(data)
    proxy.wait_metric('bytes_total{from="server"}', len(data))
    reset(far)
    got = b''
    for i in range(1, 17):
        got += read_exactly(client, len(data) * i // 16 - len(got))
        time.sleep(UNIT / 2)
    check(got + read_to_reset(client) == data, 'other bytes came')


def test_reset_after_half_close():
    """The reader had stalled for a while when the reset came. It still gets the whole limit."""
    server = Server()
    proxy = Proxy(server.address, half_closed=4 * UNIT)
    client, data = small_reader(proxy), pattern(2 * MB, 'stalled')
    far = server.accept()
    far.sendall(data)
    far.shutdown(socket.SHUT_WR)
    proxy.wait_metric('postponed_total', 1)
    reset(far)
    time.sleep(UNIT)
    check(read_all(client) == data, 'other bytes came')


def test_reset_while_other_writes():
    """A client writes and does not read until it has written, and its server is gone: the client
    still gets all that the server had sent."""
    server = Server()
    proxy = Proxy(server.address, half_closed=20 * UNIT)
    data = pattern(2 * MB, 'both')
    client = small_reader(proxy)
    far = server.accept()
    fill(client, proxy)
    far.sendall(data)
    proxy.wait_metric('bytes_total{from="server"}', len(data))
    reset(far)
    client.setblocking(True)
    # More than all sockets hold: the proxy takes it, though it has no reader any more.
    client.sendall(bytes(32 * MB))
    check(read_to_reset(client) == data, 'bytes are missing before the reset')
    proxy.wait_metric('connections', 0)
    check(proxy.metrics()['blocked'] == 0, 'a direction is still blocked')


def test_reset_before_accept():
    """A client sends and resets before the proxy has accepted it."""
    server = Server()
    proxy = Proxy(server.address)
    data = pattern(1800, 'early')
    with stopped(proxy):
        client = proxy.connect()
        client.sendall(data)
        reset(client)
    check(read_to_reset(server.accept()) == data, 'other bytes came before the reset')
    proxy.wait_metric('closed_total{end="client-reset"}', 1)


def test_end_before_accept():
    """A client sends an end of file, and then resets, before the proxy has accepted it."""
    server = Server()
    proxy = Proxy(server.address)
    for data in b'', pattern(1800, 'early end'):
        with stopped(proxy):
            client = proxy.connect()
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            reset(client)
        check(read_all(server.accept()) == data, 'other bytes came before the end of file')
    proxy.wait_metric('closed_total{end="client-reset"}', 2)


def test_end_of_file_and_reset():
    """Bytes, an end of file and a reset that come together are passed on as three things."""
    server = Server()
    proxy = Proxy(server.address)
    data = pattern(5000, 'three')
    for swap in (False, True):
        talker, other = pair_of(proxy, server, swap)
        talker.sendall(b'x')
        read_exactly(other, 1)
        with stopped(proxy):
            other.sendall(b'x')
            talker.sendall(data)
            talker.shutdown(socket.SHUT_WR)
            reset(talker)
        check(read_all(other) == data, 'other bytes came before the end of file')
        try:
            for _ in range(100):
                other.sendall(b'x')
                time.sleep(0.01)
            check(False, 'the other side was not reset')
        except (ConnectionResetError, BrokenPipeError):
            pass


def test_reset_while_connected():
    """A server takes a connection, sends, and is gone before the proxy has seen it accepted."""
    data = pattern(5000, 'gone')
    for end_of_file in (True, False):
        server, filling = full_server()
        proxy = Proxy(server.address, connect_timeout='none')
        client = proxy.connect()
        proxy.wait_metric('wheel_armed_total', 1)
        with stopped(proxy):
            full = [s.getsockname() for s in filling]
            # The proxy's SYN comes again within a few seconds.
            while (far := server.accept(30)).getpeername() in full:
                far.close()
            far.sendall(data)
            if end_of_file:
                far.shutdown(socket.SHUT_WR)
            reset(far)
        got = read_all(client) if end_of_file else read_to_reset(client)
        check(got == data, 'other bytes came from the server')


def test_killed():
    """A proxy that is killed resets connections: half an answer does not end as a whole one."""
    server = Server()
    proxy = Proxy(server.address)
    client, far = pair_of(proxy, server, False)
    far.sendall(b'half')
    check(read_exactly(client, 4) == b'half', 'other bytes came')
    proxy.kill()
    check(ended(client, 5)[1] == 'reset', 'the client saw an end of file')
    check(ended(far, 5)[1] == 'reset', 'the server saw an end of file')


def test_connects_to_itself():
    """No server listens, and the only free local port is the one that the proxy connects to."""
    in_own_network(connects_to_itself)


def connects_to_itself():
    port = free_port()
    with open('/proc/sys/net/ipv4/ip_local_port_range', 'w') as f:
        f.write(f'{port} {port}')
    # Below the range, in which the proxy must find the one port.
    proxy = Proxy(f'127.0.0.1:{port}', port=700, metrics_port=701)
    with socket.socket() as client:
        client.bind(('127.0.0.1', 702))
        client.connect(('127.0.0.1', proxy.port))
        check(ended(client, 5)[1] == 'reset', 'the client saw no refusal')
    with socket.socket() as late:
        late.bind(('127.0.0.1', port))
        late.listen()
    proxy.wait_log('is it running?')


def test_reset_after_end_of_file():
    """A reset of a side that has said all before is passed on at once."""
    server = Server()
    proxy = Proxy(server.address, half_closed='none')
    for swap, name in ((False, 'client'), (True, 'server')):
        talker, silent = pair_of(proxy, server, swap)
        talker.shutdown(socket.SHUT_WR)
        check(ended(silent, 5)[1] == 'eof', 'no end of file came')
        reset(talker)
        proxy.wait_metric(f'closed_total{{end="{name}-reset"}}', 1, 5)
        # The end of file came first: the kernel tells of the reset whoever writes.
        try:
            for _ in range(100):
                silent.sendall(b'x')
                time.sleep(0.01)
            check(False, 'the other side was not reset')
        except (ConnectionResetError, BrokenPipeError):
            pass


def test_many_at_once():
    """200 echoing connections in several threads of the proxy, each with its own bytes."""
    server = Server(echo)
    proxy = Proxy(server.address, threads=4)
    bad = []

    def one(i):
        client = proxy.connect()
        for j in range(20):
            data = pattern(1 + (i * 7919 + j * 104729) % 40000, (i, j))
            client.sendall(data)
            if read_exactly(client, len(data)) != data:
                bad.append(i)
        client.close()

    threads = [threading.Thread(target=one, args=(i,)) for i in range(200)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60 + PATIENCE)
    check(not bad, f'other bytes came back in {len(bad)} connections')
    proxy.wait_metric('closed_total{end="client"}', 200)


def test_urgent_before_accept():
    """Urgent bytes that arrive before the proxy has accepted their client are not left out."""
    server = Server()
    proxy = Proxy(server.address)
    with stopped(proxy):
        client = proxy.connect()
        for byte in b'abc':
            client.send(bytes([byte]), socket.MSG_OOB)
    check(read_exactly(server.accept(), 3) == b'abc', 'other bytes came')
    client.close()


def test_urgent():
    """Urgent bytes, at which recv(2) stops, come in their place, and nothing spins."""
    server = Server()
    proxy = Proxy(server.address)
    client, far = proxy.connect(), server.accept()
    parts = [pattern(n * 977 % 70000 + 1, n) for n in range(100)]
    want = b''.join(part + b'!' for part in parts)

    def send(near):
        for part in parts:
            near.sendall(part)
            near.send(b'!', socket.MSG_OOB)

    for near, other in ((client, far), (far, client)):
        near.send(b'!', socket.MSG_OOB)
        check(read_exactly(other, 1, 5) == b'!', 'another byte came')
        sender = threading.Thread(target=send, args=(near,))
        sender.start()
        check(digest(read_exactly(other, len(want))) == digest(want), 'other bytes came')
        sender.join()
    proxy.sleeps()
