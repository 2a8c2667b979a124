# SPDX-License-Identifier: GPL-2.0
"""What survives the proxy, with a service manager that keeps descriptors. Needs /dev/timerwheel."""

import signal
import socket
import threading
import time

from harness import (LATE, UNIT, Manager, Proxy, Server, between, check, digest, echo, ended,
                     pattern, raise_descriptors, read_all, read_exactly)

MB = 1 << 20


class Kept:
    """A proxy whose connections are kept at once, with a server that hands them out."""

    def __init__(self, serve=None, **times):
        self.manager = Manager()
        self.server = Server(serve)
        self.proxy = Proxy(self.server.address, manager=self.manager, store_after='0', **times)
        self.open = 0

    def connect(self):
        self.open += 1
        client = self.proxy.connect()
        far = None if self.server.serve else self.server.accept()
        self.manager.wait('the sockets', lambda m: self.sockets() == 2 * self.open)
        return client, far

    def sockets(self):
        return sum(name == 's' for name, _ in self.manager.store.values())

    def restart(self):
        self.proxy.kill()
        self.proxy.start()


def test_kill_and_go_on():
    """Both sides go on as if nothing had been, in both directions."""
    k = Kept()
    client, far = k.connect()
    client.sendall(b'one')
    check(read_exactly(far, 3) == b'one', 'other bytes came')
    k.restart()
    k.proxy.wait_log('1 connections go on')
    client.sendall(b'two')
    check(read_exactly(far, 3) == b'two', 'other bytes came')
    far.sendall(b'three')
    check(read_exactly(client, 5) == b'three', 'other bytes came')
    client.shutdown(socket.SHUT_WR)
    check(ended(far, 5)[1] == 'eof', 'the end of file was not passed on')
    far.close()
    check(ended(client, 5)[1] == 'eof', 'the end of file was not passed on')
    k.proxy.wait_metric('connections', 0)
    check(k.proxy.metrics()['restored_total'] == 1, 'not counted as restored')
    k.manager.wait('the sockets to go', lambda m: k.sockets() == 0)
    k.manager.close()


def test_new_clients_wait():
    """Who comes while there is no proxy is served by the next."""
    k = Kept(echo)
    k.connect()
    k.proxy.kill()
    late = k.proxy.connect()
    late.sendall(b'x')
    k.proxy.start()
    check(read_exactly(late, 1) == b'x', 'another byte came back')


def test_idle_deadline_survives():
    """The idle time counts from the last byte, not from the restart."""
    k = Kept(idle=4 * UNIT)
    client, far = k.connect()
    time.sleep(2 * UNIT)
    client.sendall(b'x')
    sent = time.monotonic()
    read_exactly(far, 1)
    time.sleep(UNIT)
    k.restart()
    at, _ = ended(client, 10)
    between(at - sent, 4 * UNIT, 4 * UNIT + LATE, 'closed after')
    check(k.proxy.metrics()['timeouts_total{kind="idle"}'] == 1, 'not closed as idle')


def test_refresh_after_restart():
    """A byte after the restart puts the old deadline off."""
    k = Kept(idle=4 * UNIT)
    client, far = k.connect()
    k.restart()
    for _ in range(6):
        client.sendall(b'x')
        sent = time.monotonic()
        read_exactly(far, 1)
        time.sleep(UNIT)
    at, _ = ended(client, 10)
    between(at - sent, 4 * UNIT, 4 * UNIT + LATE, 'closed after')


def test_lifetime_survives():
    """However often the proxy is killed."""
    k = Kept(echo, lifetime=8 * UNIT)
    began = time.monotonic()
    client, _ = k.connect()
    for _ in range(3):
        time.sleep(UNIT)
        k.restart()
        client.sendall(b'x')
        check(read_exactly(client, 1) == b'x', 'another byte came back')
    at, _ = ended(client, 10)
    between(at - began, 8 * UNIT, 8 * UNIT + LATE, 'closed after')
    check(k.proxy.metrics()['timeouts_total{kind="lifetime"}'] == 1, 'not closed by its lifetime')


def test_half_close_survives():
    """The phase is known to the next proxy, and its deadline is not set anew."""
    k = Kept(idle=100 * UNIT, half_close=4 * UNIT)
    client, far = k.connect()
    began = time.monotonic()
    client.shutdown(socket.SHUT_WR)
    check(ended(far, 5)[1] == 'eof', 'the end of file was not passed on')
    time.sleep(UNIT)
    k.restart()
    at, _ = ended(client, 10)
    between(at - began, 4 * UNIT, 4 * UNIT + LATE, 'closed after')
    check(k.proxy.metrics()['timeouts_total{kind="half-close"}'] == 1, 'not closed as half-closed')


def test_over_meanwhile():
    """What fell due while there was no proxy is closed by the next, at once."""
    k = Kept(idle=2 * UNIT)
    client, _ = k.connect()
    k.proxy.kill()
    time.sleep(3 * UNIT)
    began = time.monotonic()
    k.proxy.start()
    at, _ = ended(client, 5)
    between(at - began, 0, 2 * LATE, 'closed after')


def test_bytes_under_way():
    """Killed while bytes were in its pipes: none is missing, none comes twice."""
    k = Kept()
    client, far = k.connect()
    up, down = pattern(16 * MB, 'up'), pattern(16 * MB, 'down')
    senders = [threading.Thread(target=lambda: (far.sendall(down), far.shutdown(socket.SHUT_WR))),
               threading.Thread(target=lambda: (client.sendall(up),
                                                client.shutdown(socket.SHUT_WR)))]
    for t in senders:
        t.start()
    # Nobody reads: both pipes are full of bytes that are with neither side.
    time.sleep(UNIT)
    check(k.proxy.metrics()['pipes_used'] == 2, 'the pipes hold nothing')
    k.restart()
    check(k.proxy.metrics()['pipes_used'] == 2, 'the pipes did not come back')
    got = {}
    reader = threading.Thread(target=lambda: got.update(up=read_all(far)))
    reader.start()
    got['down'] = read_all(client)
    reader.join()
    check(digest(got['down']) == digest(down), 'other bytes came to the client')
    check(digest(got['up']) == digest(up), 'other bytes came to the server')


def test_killed_again_and_again():
    """Ten kills at any moment of a transfer in both directions."""
    k = Kept(echo)
    client, _ = k.connect()
    data = pattern(48 * MB, 'again')
    sender = threading.Thread(target=lambda: (client.sendall(data),
                                              client.shutdown(socket.SHUT_WR)))
    sender.start()
    got = []

    def receive():
        got.append(read_all(client, 60))

    reader = threading.Thread(target=receive)
    reader.start()
    for i in range(10):
        time.sleep(0.01 + 0.007 * i)
        k.restart()
    reader.join(120)
    sender.join()
    check(got and digest(got[0]) == digest(data), 'other bytes came back')


def test_hand_over():
    """SIGHUP: all goes into the store, the young too, and the proxy ends."""
    k = Kept()
    k.proxy.args += ['--store-after', '1h']
    k.proxy.kill()
    k.proxy.start()
    client = k.proxy.connect()
    far = k.server.accept()
    time.sleep(UNIT)
    check(k.sockets() == 0, 'a young connection is kept already')
    k.proxy.signal(signal.SIGHUP)
    check(k.proxy.wait() == 0, 'it ended badly')
    k.manager.wait('the sockets', lambda m: k.sockets() == 2)
    k.proxy.start()
    client.sendall(b'x')
    check(read_exactly(far, 1) == b'x', 'another byte came')


def test_not_kept():
    """Too young for the store: ends with the proxy, and its timers do not stay."""
    k = Kept()
    k.proxy.args += ['--store-after', '1h']
    k.proxy.kill()
    k.proxy.start()
    client = k.proxy.connect()
    k.server.accept()
    time.sleep(UNIT)
    k.proxy.kill()
    ended(client, 5)
    k.proxy.start()
    m = k.proxy.metrics()
    check(m['connections'] == 0, 'a connection came from nowhere')
    check(m['wheel_pending'] == 0, 'its timers are still there')


def test_connecting_survives():
    """Killed while the server had not answered: the connect timeout goes on."""
    k = Kept(connect_timeout=4 * UNIT)
    k.server.close()
    k.server = Server(backlog=0)
    fill = []
    for _ in range(4):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(tuple(k.server.socket.getsockname()))
        fill.append(s)
    k.proxy.stop()
    k.proxy = Proxy(k.server.address, manager=Manager(), store_after='0',
                    connect_timeout=4 * UNIT)
    k.manager = k.proxy.manager
    began = time.monotonic()
    client = k.proxy.connect()
    k.manager.wait('the sockets', lambda m: k.sockets() == 2)
    k.restart()
    at, _ = ended(client, 10)
    between(at - began, 4 * UNIT, 4 * UNIT + LATE, 'closed after')
    check(k.proxy.metrics()['timeouts_total{kind="connect"}'] == 1, 'not closed by connect')


def test_more_threads():
    """The wheels that were kept need a thread each; another one is added."""
    k = Kept(echo)
    client, _ = k.connect()
    for threads in ('1', '3'):
        k.proxy.args += ['--threads', threads]
        k.restart()
        client.sendall(b'x')
        check(read_exactly(client, 1) == b'x', 'another byte came back')
    check('3 threads' in k.proxy.log, k.proxy.log)
    wheels = [name for name in k.manager.names() if name.startswith('wheel')]
    check(sorted(wheels) == ['wheel0', 'wheel1', 'wheel2'], f'kept are {wheels}')


def test_hundreds():
    """All of 300 connections, half of them with a byte under way when it is killed."""
    n = 300
    raise_descriptors(4000)
    k = Kept(echo, threads=3)
    clients = [k.proxy.connect() for _ in range(n)]
    k.manager.wait('the sockets', lambda m: k.sockets() == 2 * n)
    for i, client in enumerate(clients):
        client.sendall(bytes([i % 256]))
        if i == n // 2:
            k.proxy.kill()
    k.proxy.start()
    for i, client in enumerate(clients):
        check(read_exactly(client, 1) == bytes([i % 256]), 'another byte came back')
    check(k.proxy.metrics()['restored_total'] == n, 'not all were restored')
