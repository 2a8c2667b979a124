# SPDX-License-Identifier: GPL-2.0
"""Many connections, and many that break."""

import os
import random
import resource
import select
import socket
import tempfile
import time

from harness import (PATIENCE, UNIT, Proxy, Server, between, check, echo, in_time, late,
                     raise_descriptors, reset)

# Each needs two descriptors of the proxy, and this process has both ends of all.
ALLOWED = (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 1000) // 4
# Bytes of version 2 of the PROXY protocol's header for IPv4, the ports at its end.
HEADER = 28
CONNECTIONS = int(os.environ.get('PROXY_TEST_CONNECTIONS', min(20000, ALLOWED)))


def open_pairs(proxy, server, n):
    """Clients and what the server sees of them, in any order."""
    clients, far = [], []
    server.socket.settimeout(30 + PATIENCE)
    for i in range(n):
        clients.append(proxy.connect())
        if len(clients) - len(far) >= 256 or i == n - 1:
            while len(far) < len(clients):
                conn, _ = server.socket.accept()
                far.append(conn)
    return clients, far


def got_all(clients, far):
    """What each client has sent has come, once, behind its header."""
    seen = set()
    poll = select.epoll()
    by_fd = {conn.fileno(): conn for conn in far}
    got = dict.fromkeys(by_fd, b'')
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    while len(seen) < CONNECTIONS:
        ready = poll.poll(20 + PATIENCE)
        check(ready, f'only {len(seen)} of {CONNECTIONS} messages came')
        for fd, _ in ready:
            part = by_fd[fd].recv(100)
            check(part, 'an end of file came instead of a message')
            got[fd] += part
            if len(got[fd]) < HEADER + 4:
                continue
            check(len(got[fd]) == HEADER + 4, f'{len(got[fd])} bytes came')
            n = int.from_bytes(got[fd][HEADER:], 'big')
            port = int.from_bytes(got[fd][HEADER - 4:HEADER - 2], 'big')
            check(port == clients[n].getsockname()[1], f'{port} is the port of another client')
            seen.add(n)
            poll.unregister(fd)
    poll.close()
    check(seen == set(range(CONNECTIONS)), 'a message came twice')


def test_thousands():
    """All open, all served, all closed in time, and nothing of them stays: with the log and the
    PROXY protocol."""
    raise_descriptors(4 * CONNECTIONS + 1000)
    server = Server()
    # Long enough for opening all of them, one by one.
    idle = max(20 * UNIT, CONNECTIONS * UNIT / 200)
    log = tempfile.NamedTemporaryFile('r')
    proxy = Proxy(server.address, '--max-connections', str(CONNECTIONS + 100), '--log', log.name,
                  '--proxy-protocol', 'v2', idle=idle, threads=2)
    before = proxy.descriptors()
    with in_time(idle, many=True):
        clients, far = open_pairs(proxy, server, CONNECTIONS)
        check(proxy.metrics()['connections'] == CONNECTIONS, 'not all are open')
        for i, client in enumerate(clients):
            client.sendall(i.to_bytes(4, 'big'))
        got_all(clients, far)
    sent = time.monotonic()
    poll = select.epoll()
    by_fd = {client.fileno(): client for client in clients}
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN | select.EPOLLRDHUP)
    while by_fd:
        ready = poll.poll(idle + 20 + PATIENCE)
        check(ready, f'{len(by_fd)} are still open')
        for fd, _ in ready:
            poll.unregister(fd)
            by_fd.pop(fd).close()
    # Each had its last byte before `sent', but all within the time it takes to send them.
    between(time.monotonic() - sent, 0, idle + 4 * late(), 'the last was closed after')
    proxy.wait_metric('connections', 0)
    m = proxy.metrics()
    check(m['closed_total{end="idle-timeout"}'] == CONNECTIONS, 'not all were closed as idle')
    proxy.wait_metric('wheel_pending', 0)
    # Connecting and open, and no more: bytes were stores.
    check(m['wheel_armed_total'] == 2 * CONNECTIONS + m['postponed_total'],
          'timers were armed anew for bytes')
    proxy.wait_descriptors(before)
    lines = sum(' from_client=4 from_server=0 ' in line and ' end=idle-timeout' in line
                for line in log)
    check(lines == CONNECTIONS, f'the log has {lines} of {CONNECTIONS}')
    for conn in far:
        conn.close()


def test_reset_storm():
    """2,000 connections, broken at any moment, from either side; the others do not notice."""
    rng = random.Random(1)
    raise_descriptors(10000)

    def serve(conn):
        n = 0
        while True:
            data = conn.recv(4096)
            if not data:
                return
            n += len(data)
            if data[0] % 5 == 0:
                reset(conn)
                return
            conn.sendall(data)

    server = Server(serve)
    proxy = Proxy(server.address, threads=4, idle='1h')
    before = proxy.descriptors()
    steady = proxy.connect()
    steady.sendall(b'\1')
    check(steady.recv(1) == b'\1', 'another byte came back')
    for _ in range(100):
        batch = [proxy.connect() for _ in range(20)]
        for client in batch:
            try:
                if rng.random() < 0.7:
                    client.sendall(bytes([rng.randrange(256)]) * rng.randrange(1, 30000))
                    if rng.random() < 0.4:
                        client.recv(100)
            except OSError:
                pass
        for client in batch:
            reset(client)
    steady.sendall(b'\2')
    check(steady.recv(1) == b'\2', 'another byte came back')
    proxy.wait_metric('connections', 1)
    m = proxy.metrics()
    check(m['accepted_total'] == 2001, 'not all were accepted')
    check(m['closed_total{end="client-reset"}'] + m['closed_total{end="server-reset"}'] > 500,
          'few resets were seen')
    check(m['blocked'] == 0, 'a direction is still blocked')
    proxy.wait_descriptors(before + 2)


def test_max_connections():
    """More than that wait until one ends; none is refused."""
    server = Server(echo)
    proxy = Proxy(server.address, '--max-connections', '4', threads=1)
    clients = [proxy.connect() for _ in range(5)]
    for client in clients[:4]:
        client.sendall(b'x')
        check(client.recv(1) == b'x', 'another byte came back')
    clients[4].sendall(b'y')
    clients[4].settimeout(2 * UNIT)
    try:
        clients[4].recv(1)
        check(False, 'a fifth was served')
    except socket.timeout:
        pass
    clients[0].close()
    clients[4].settimeout(5 + PATIENCE)
    check(clients[4].recv(1) == b'y', 'another byte came back')
    check(proxy.metrics()['connections'] == 4, 'not four are open')


def test_threads_balanced():
    """However they arrive: each thread has as many connections as any other one."""
    server = Server(echo)
    for pause, n in ((0.005, 200), (0, 400)):
        proxy = Proxy(server.address, threads=4)
        clients = []
        for _ in range(n):
            clients.append(proxy.connect())
            time.sleep(pause)
        proxy.wait_metric('connections', n)
        loads = proxy.loads()
        check(max(loads) - min(loads) <= 2, f'the threads have {loads}')
        # Old ones end, and not in all threads alike: new ones make up for that.
        for client in clients[::2] + clients[1::4]:
            client.close()
        proxy.wait_metric('connections', n // 4)
        more = [proxy.connect() for _ in range(n)]
        proxy.wait_metric('connections', n + n // 4)
        loads = proxy.loads()
        check(max(loads) - min(loads) <= 2, f'the threads have {loads}')
        for client in more + clients:
            client.close()


def test_threads_full():
    """A thread that is full gives to others, and none gets more than its share."""
    server = Server(echo)
    proxy = Proxy(server.address, '--max-connections', '40', threads=4)
    clients = [proxy.connect() for _ in range(60)]
    proxy.wait_metric('connections', 40)
    time.sleep(UNIT)
    check(proxy.loads() == [10, 10, 10, 10], f'the threads have {proxy.loads()}')
    for client in clients:
        client.close()
    proxy.wait_metric('connections', 0)
    check(proxy.metrics()['accepted_total'] == 60, 'some were not accepted')
