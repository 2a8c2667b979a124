# SPDX-License-Identifier: GPL-2.0
"""What survives the proxy, with a service manager that keeps descriptors. Needs /dev/timerwheel."""

import ctypes
import fcntl
import glob
import itertools
import os
import re
import select
import signal
import socket
import struct
import threading
import time

from harness import (PATIENCE, UNIT, Manager, Proxy, Server, Steps, between, check, digest, echo,
                     ended, free_port, full_server, in_time, keep_busy, late, pattern,
                     raise_descriptors, read_all, read_exactly, read_to_reset, reset,
                     small_reader)

MB = 1 << 20


class Wheel:
    """One that is kept."""

    ADD, REMOVE, LIST = 2, 4, 7
    ABS = 1

    def __init__(self, manager, number):
        self.fd = next(fd for fd, (name, _) in manager.store.items() if name == f'wheel{number}')

    def call(self, what, elements, size, n):
        """How many were done, and what became of them."""
        buffer = ctypes.create_string_buffer(elements, size * n)
        batch = struct.pack('IIQIIQ', 32, 0, ctypes.addressof(buffer), n, size, 0)
        return fcntl.ioctl(self.fd, 0xf500 | what, bytearray(batch)), buffer.raw

    def timers(self):
        """Key: value, deadline."""
        n, entries = self.call(self.LIST, b'', 64, 100)
        return {key: rest for key, *rest in (
            struct.unpack_from('QQQ', entries, 64 * i) for i in range(n))}

    def set(self, timers):
        """These, and no others."""
        for key in self.timers():
            self.call(self.REMOVE, struct.pack('QQQqIi', key, 0, 0, 0, 0, 0), 40, 1)
        for key, (value, deadline) in timers.items():
            self.call(self.ADD, struct.pack('QQQQQQIiII', key, value, deadline, 0, 0, 0, self.ABS,
                                            0, 0, 0), 64, 1)


class Kept:
    """A proxy whose connections are kept at once, with a server that hands them out."""

    def __init__(self, serve=None, manager=None, store_after='0', **times):
        self.manager = manager or Manager()
        self.server = Server(serve)
        self.proxy = Proxy(self.server.address, manager=self.manager, store_after=store_after,
                           **times)
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
    k.proxy.wait_log('1 connection continues')
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
    with in_time(4 * UNIT):
        client, far = k.connect()
        time.sleep(2 * UNIT)
        sent = time.monotonic()
        client.sendall(b'x')
        read_exactly(far, 1)
    with in_time(4 * UNIT, sent):
        time.sleep(UNIT)
        k.restart()
    at, _ = ended(client, 10)
    between(at - sent, 4 * UNIT, 4 * UNIT + late(), 'closed after')
    check(k.proxy.metrics()['closed_total{end="idle-timeout"}'] == 1, 'not closed as idle')


def test_refresh_after_restart():
    """A byte after the restart postpones the old deadline."""
    k = Kept(idle=4 * UNIT)
    sent = time.monotonic()
    client, far = k.connect()
    k.restart()
    for _ in range(6):
        with in_time(4 * UNIT, sent):
            sent = time.monotonic()
            client.sendall(b'x')
            read_exactly(far, 1)
        time.sleep(UNIT)
    at, _ = ended(client, 10)
    between(at - sent, 4 * UNIT, 4 * UNIT + late(), 'closed after')


def test_cookies_downwards_kept():
    """Cookies that the kernel counts downwards are found again, with and without a header."""
    for header in ({}, {'proxy_protocol': 'v1'}, {'proxy_protocol': 'v2'}):
        k = Kept(threads=1, lifetime='1h', **header)
        steps = Steps(k.proxy.serving_threads()[0])
        client = k.proxy.connect()
        steps.cookies_downwards(
            lambda: select.select([k.server.socket], [], [], 0)[0] and k.sockets() == 2)
        far = k.server.accept()
        if header:
            check(far.recv(1000), 'no header came')
        k.proxy.kill()
        read, write = os.pipe()
        k.proxy.start(gate=read)
        steps = Steps(k.proxy.pid)
        os.write(write, b'x')
        steps.cookies_downwards(lambda: ' threads, at most ' in k.proxy.log)
        os.close(read)
        os.close(write)
        client.sendall(b'x')
        check(read_exactly(far, 1, 5) == b'x', f'{header}: another byte came')
        check(k.proxy.metrics()['wheel_pending'] == 2, f'{header}: other timers are there')
        k.manager.close()


def set_idle(k, time):
    k.proxy.args[k.proxy.args.index('--idle') + 1] = time


def test_shorter_idle_after_restart():
    """A kept connection has the new idle time from its next byte on."""
    for former in ('1h', 'none'):
        k = Kept(idle=former)
        client, far = k.connect()
        # A connection that is still connecting gets the new time when it is connected.
        k.proxy.wait_metric('wheel_armed_total', 2)
        set_idle(k, f'{2 * UNIT * 1000:.0f}ms')
        k.restart()
        time.sleep(3 * UNIT)
        sent = None
        for _ in range(6):
            with in_time(2 * UNIT, sent):
                sent = time.monotonic()
                client.sendall(b'x')
                read_exactly(far, 1)
            time.sleep(UNIT)
        at, _ = ended(client, 10)
        between(at - sent, 2 * UNIT, 2 * UNIT + late(), f'{former} before: closed after')
        k.manager.close()


def test_no_idle_after_restart():
    """A kept connection has no limit any more from its next byte on."""
    k = Kept(idle=3 * UNIT)
    with in_time(3 * UNIT):
        client, far = k.connect()
        set_idle(k, 'none')
        k.restart()
        client.sendall(b'x')
        read_exactly(far, 1, 5)
    time.sleep(4 * UNIT)
    client.sendall(b'x')
    read_exactly(far, 1, 5)


def test_lifetime_survives():
    """However often the proxy is killed."""
    k = Kept(echo, lifetime=12 * UNIT)
    began = time.monotonic()
    with in_time(12 * UNIT):
        client, _ = k.connect()
        for _ in range(3):
            time.sleep(UNIT)
            k.restart()
            client.sendall(b'x')
            check(read_exactly(client, 1) == b'x', 'another byte came back')
    at, _ = ended(client, 12 * UNIT + 10)
    between(at - began, 12 * UNIT, 12 * UNIT + late(), 'closed after')
    check(k.proxy.metrics()['closed_total{end="lifetime-timeout"}'] == 1, 'not closed by its lifetime')


def test_half_close_survives():
    """The phase is known to the next proxy, and its deadline is not set anew."""
    k = Kept(idle='1h', half_closed=4 * UNIT)
    client, far = k.connect()
    began = time.monotonic()
    with in_time(4 * UNIT):
        client.shutdown(socket.SHUT_WR)
        check(ended(far, 5)[1] == 'eof', 'the end of file was not passed on')
        time.sleep(UNIT)
        k.restart()
    at, _ = ended(client, 10)
    between(at - began, 4 * UNIT, 4 * UNIT + late(), 'closed after')
    check(k.proxy.metrics()['closed_total{end="half-closed-timeout"}'] == 1, 'not closed as half-closed')


def test_over_meanwhile():
    """What fell due while there was no proxy is closed by the next, at once."""
    k = Kept(idle=2 * UNIT)
    client, _ = k.connect()
    k.proxy.kill()
    time.sleep(3 * UNIT)
    began = time.monotonic()
    k.proxy.start()
    at, _ = ended(client, 5)
    between(at - began, 0, 2 * late(), 'closed after')


def test_bytes_under_way():
    """Killed while bytes waited for both readers: none is missing, none comes twice."""
    k = Kept()
    client, far = k.connect()
    up, down = pattern(16 * MB, 'up'), pattern(16 * MB, 'down')
    senders = [threading.Thread(target=lambda: (far.sendall(down), far.shutdown(socket.SHUT_WR))),
               threading.Thread(target=lambda: (client.sendall(up),
                                                client.shutdown(socket.SHUT_WR)))]
    for t in senders:
        t.start()
    wait_stuck(k.proxy, directions=2)
    k.restart()
    # Its threads may try the connection only after the metrics are served.
    wait_stuck(k.proxy, directions=2)
    got = {}
    reader = threading.Thread(target=lambda: got.update(up=read_all(far)))
    reader.start()
    got['down'] = read_all(client)
    reader.join()
    check(digest(got['down']) == digest(down), 'other bytes came to the client')
    check(digest(got['up']) == digest(up), 'other bytes came to the server')


def test_killed_again_and_again():
    """Ten kills at any moment of a transfer in both directions. Nobody says that he has ended
    before all is there: see killed_before_last_bytes."""
    k = Kept(echo)
    client, _ = k.connect()
    data = pattern(48 * MB, 'again')
    sender = threading.Thread(target=client.sendall, args=(data,))
    sender.start()
    got = []
    reader = threading.Thread(target=lambda: got.append(read_exactly(client, len(data), 60)))
    reader.start()
    for i in range(10):
        time.sleep(0.01 + 0.007 * i)
        k.restart()
    reader.join(120)
    sender.join()
    check(got and digest(got[0]) == digest(data), 'other bytes came back')
    client.shutdown(socket.SHUT_WR)
    check(ended(client, 10)[1] == 'eof', 'the end of file did not come back')


def wait_stuck(proxy, more=lambda: None, directions=1):
    """Until so many directions are blocked, and stay so."""
    stuck = 0
    until = time.monotonic() + 60 + PATIENCE
    while stuck < 5:
        more()
        time.sleep(0.02)
        now = proxy.metrics()['blocked']
        stuck = stuck + 1 if now == directions else 0
        check(time.monotonic() < until, f'{now:.0f} directions are blocked, not {directions}')


def hung_up(sock):
    poll = select.poll()
    poll.register(sock, 0)
    return bool(poll.poll(0))


def slow_client(k):
    """A client whose kernel takes little that it does not read, and the far end."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(('127.0.0.1', k.proxy.port))
    far = k.server.accept()
    k.manager.wait('the sockets', lambda m: k.sockets() == 2)
    return client, far


def test_killed_before_last_bytes():
    """The server has ended, and so had the client: the service manager drops the server's socket,
    with bytes that the client has not taken. It must see that they are missing."""
    k = Kept()
    client, far = slow_client(k)
    client.shutdown(socket.SHUT_WR)
    check(ended(far, 5)[1] == 'eof', 'the end of file was not passed on')
    wait_stuck(k.proxy, lambda: far.sendall(bytes(1 << 16)))
    far.close()
    k.manager.wait("the server's socket to go", lambda m: k.sockets() == 1)
    k.restart()
    try:
        read_all(client)
    except ConnectionResetError:
        return
    check(False, 'an end of file came before all bytes')


def test_killed_after_last_bytes():
    """All was passed on, and is under way; the service manager had no time yet to drop the
    sockets: the next proxy, to whom they come, must not break them."""
    k = Kept()
    client, far = slow_client(k)
    data = pattern(1 << 18, 'last')
    with k.manager.lock:
        client.shutdown(socket.SHUT_WR)
        far.sendall(data)
        far.close()
        k.proxy.wait_metric('connections', 0)
        k.restart()
    check(digest(read_all(client)) == digest(data), 'other bytes came')


def passes_well(n):
    """A connection's life, from when it is kept, with the proxy killed before its thread's @n-th
    system call. False: it has not so many."""
    k = Kept(threads=1)
    client, far = k.connect()
    up, down = pattern(1 << 17, 'up'), pattern(1 << 17, 'down')
    trouble = []

    def guarded(steps):
        try:
            for step in steps:
                step()
        except Exception as e:
            trouble.append(e)

    def end(sock):
        # All is there. A reset is allowed now: see killed_before_last_bytes.
        sock.shutdown(socket.SHUT_WR)
        ended(sock, 30)

    def expect(sock, data):
        check(digest(read_exactly(sock, len(data))) == digest(data), 'other bytes came')

    there = threading.Thread(target=guarded, args=([
        lambda: expect(far, up), lambda: far.sendall(down),
        lambda: check(ended(far, 30)[1] == 'eof', 'the end of file was not passed on'),
        lambda: far.close()],))
    here = threading.Thread(target=guarded, args=([
        lambda: client.sendall(up), lambda: expect(client, down), lambda: end(client)],))
    came = k.proxy.kill_at(n, lambda: (there.start(), here.start()),
                           lambda: not here.is_alive() and not there.is_alive())
    k.proxy.start()
    here.join()
    there.join()
    check(not trouble, f'killed before system call {n}: {trouble}')
    k.proxy.wait_metric('connections', 0)
    k.manager.wait('the sockets to go', lambda m: k.sockets() == 0)
    k.manager.close()
    k.proxy.stop()
    return came


def test_killed_anywhere():
    """Before each system call of a connection's life, that is, between any two of them: no byte
    is missing, none comes twice."""
    n = 1
    while passes_well(n):
        n += 1
    check(n > 10, f'only {n} system calls')


def resets_well(n, at):
    """The server resets a connection before the @at-th system call since it said something, and the
    proxy is killed before the @n-th."""
    k = Kept(threads=1)
    client, far = k.connect()
    # The service manager has no time to drop a socket.
    with k.manager.lock:
        k.proxy.kill_at(n, lambda: far.sendall(b'x'), lambda: hung_up(client),
                        lambda i: i == at and reset(far))
        k.proxy.start()
    try:
        read_all(client)
        check(False, f'reset at {at}, killed at {n}: an end of file came')
    except ConnectionResetError:
        pass
    client.close()
    k.proxy.stop()
    k.manager.close()


def test_killed_resetting():
    """A reset is passed on as a reset, also by the next proxy."""
    # It waits, and is woken; it looks, sends, takes; it waits again.
    for at in range(1, 6):
        for n in range(at + 1, at + 4):
            resets_well(n, at)


def ends_while_draining(number, store_after):
    """A server has reset its connection, and the client has not taken the bytes before that, when
    the proxy gets this signal."""
    k = Kept(threads=1, store_after=store_after, half_closed='1h', grace='1h')
    client = small_reader(k.proxy)
    far = k.server.accept()
    if store_after == '0':
        k.manager.wait('the sockets', lambda m: k.sockets() == 2)
    data = pattern(200000, 'draining')
    far.sendall(data)
    # More than the client's kernel takes. SIOCOUTQ: nothing is left on the server's side.
    until = time.monotonic() + 10 + PATIENCE
    while struct.unpack('i', fcntl.ioctl(far, 0x5411, bytes(4)))[0]:
        check(time.monotonic() < until, 'the proxy does not take the bytes')
        time.sleep(0.02)
    reset(far)
    if store_after == '0':
        k.manager.wait('the failed socket to go', lambda m: k.sockets() == 1)
    k.proxy.signal(number)
    if number == signal.SIGTERM:
        k.proxy.wait_log('stopping')
    else:
        k.proxy.after_kill()
        k.proxy.start()
    got = read_to_reset(client)
    check(data.startswith(got), f'{number}: other bytes came')
    check(number != signal.SIGTERM or got == data, f'only {len(got)} bytes came')
    if number == signal.SIGTERM:
        check(k.proxy.wait() == 0, 'it ended badly')
    else:
        m = k.proxy.metrics()
        check(m['connections'] == 0 and m['wheel_pending'] == 0, f'{number}: something is left')
    k.manager.close()


def test_ends_while_draining():
    """The client gets a reset, after all bytes if the proxy may wait for it."""
    for number in signal.SIGKILL, signal.SIGHUP, signal.SIGTERM:
        for store_after in '0', '1h':
            if (number, store_after) != (signal.SIGKILL, '1h'):
                ends_while_draining(number, store_after)


def test_killed_after_end():
    """The last bytes of a connection that has ended well wait for a slow client. They come, although
    the service manager has closed its copy of the socket, and the proxy is killed."""
    for kill in False, True:
        k = Kept(threads=1)
        client = small_reader(k.proxy)
        far = k.server.accept()
        k.manager.wait('the sockets', lambda m: k.sockets() == 2)
        client.shutdown(socket.SHUT_WR)
        check(ended(far, 5)[1] == 'eof', 'the end of file was not passed on')
        data = pattern(200000, 'last')
        far.sendall(data)
        far.close()
        k.proxy.wait_metric('connections', 0)
        if not kill:
            k.manager.wait('the sockets to go', lambda m: k.sockets() == 0)
        else:
            k.restart()
        check(read_all(client) == data, 'other bytes came')
        k.manager.close()


def closes_well(n):
    """Stopped with bytes that wait, and killed before its thread's @n-th system call. False: it
    has not so many."""
    k = Kept(threads=1, grace='0')
    # So that most wait where the proxy reads.
    k.server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    client, far = k.connect()
    data = pattern(8 * MB, 'closing')

    def send():
        try:
            client.sendall(data)
        except OSError:
            pass

    sender = threading.Thread(target=send)
    sender.start()
    wait_stuck(k.proxy)
    came = k.proxy.kill_at(n, lambda: k.proxy.signal(signal.SIGTERM))
    k.proxy.start()
    at = 0
    try:
        while at < len(data):
            part = far.recv(1 << 18)
            if not part:
                break
            check(part == data[at:at + len(part)],
                  f'killed before system call {n}: bytes are missing')
            at += len(part)
    except ConnectionResetError:
        pass
    far.close()
    client.close()
    sender.join()
    k.proxy.stop()
    k.manager.close()
    return came


def test_killed_closing():
    """Killed while it ends a connection with bytes that wait: what is left of it does not go on
    without them."""
    n = 1
    while closes_well(n):
        n += 1
    check(n > 3, f'only {n} system calls')


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
    k.server, fill = full_server()
    k.proxy.stop()
    k.proxy = Proxy(k.server.address, manager=Manager(), store_after='0',
                    connect_timeout=4 * UNIT)
    k.manager = k.proxy.manager
    began = time.monotonic()
    with in_time(4 * UNIT):
        client = k.proxy.connect()
        k.manager.wait('the sockets', lambda m: k.sockets() == 2)
        k.restart()
    at, _ = ended(client, 10)
    between(at - began, 4 * UNIT, 4 * UNIT + late(), 'closed after')
    check(k.proxy.metrics()['closed_total{end="connect-timeout"}'] == 1, 'not closed by connect')
    for s in fill:
        s.close()


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


def starts_well(n):
    """Started with more threads, and killed at the @n-th place where a wheel is open that the
    service manager has not got. False: there are not so many."""
    k = Kept(echo, threads=1, lifetime='1h')
    clients = [k.connect()[0] for _ in range(6)]
    k.proxy.kill()
    k.proxy.args += ['--threads', '3']
    places = 0

    def here():
        nonlocal places
        places += k.proxy.wheels() > sum(name.startswith('wheel') for name in k.manager.names())
        return places == n

    came = k.proxy.kill_starting(here)
    k.proxy.start()
    for client in clients:
        client.sendall(b'x')
        try:
            check(read_exactly(client, 1) == b'x', 'another byte came back')
        except ConnectionResetError:
            check(False, f'killed at place {n}: a connection was reset')
    check(k.proxy.metrics()['wheel_pending'] == 12, f'killed at place {n}: other timers are there')
    check(k.proxy.loads() == [2, 2, 2], f'the threads have {k.proxy.loads()}')
    k.proxy.stop()
    k.manager.close()
    return came


def test_killed_starting():
    """With more threads than before, while the service manager has not yet got the new wheels:
    nothing was moved into them."""
    n = 1
    while starts_well(n):
        n += 1
    check(n > 5, f'only {n} system calls')


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


def store_is_full(k, clients, kept):
    """So many of these are kept. All are served, and this is what the proxy says."""
    k.manager.wait('the sockets', lambda m: k.sockets() == 2 * kept)
    for i, client in enumerate(clients):
        client.sendall(bytes([i]))
        check(read_exactly(client, 1) == bytes([i]), 'another byte came back')
    k.proxy.wait_metric('store_waiting', len(clients) - kept)
    # With the wheel and the listening socket.
    check(k.proxy.metrics()['store_descriptors'] == 2 * kept + 2, k.proxy.get()[1])
    check(k.sockets() == 2 * kept, f'{k.sockets()} sockets are kept')


def one_by_one(k, n):
    """So many clients, of which each one is served before the next one comes."""
    clients = []
    for _ in range(n):
        clients.append(k.proxy.connect())
        clients[-1].sendall(b'x')
        read_exactly(clients[-1], 1)
    return clients


def only_these_go_on(k, clients, kept):
    """Also after another restart. The others see a reset."""
    for client in clients[kept:]:
        check(ended(client, 5)[1] == 'reset', 'a connection beyond the limit saw an end of file')
    for _ in range(2):
        check(k.proxy.metrics()['restored_total'] == kept, k.proxy.get()[1])
        store_is_full(k, clients[:kept], kept)
        k.restart()
    for client in clients:
        client.close()
    # The places are free again, some time later.
    k.proxy.wait_metric('store_descriptors', 2)


def test_store_limit():
    """The store has room for 17 connections, besides the wheel, the listening socket and 64 for
    what restarts add. The youngest are not kept, which is said once; a killed proxy resets them."""
    k = Kept(echo, threads=1, store_max='100')
    clients = one_by_one(k, 40)
    store_is_full(k, clients, 17)
    check(k.proxy.log.count("store is full") == 1, k.proxy.log)
    k.restart()
    only_these_go_on(k, clients, 17)
    k.manager.close()


def test_store_limit_hand_over():
    """The same for those that are put there at the last moment: the log has the others."""
    k = Kept(echo, threads=1, store_max='100', store_after='1h', log='-')
    clients = one_by_one(k, 40)
    k.proxy.wait_metric('store_waiting', 40)
    check(k.sockets() == 0, 'young connections are kept already')
    k.proxy.end(signal.SIGHUP)
    said = k.proxy.log
    check(said.count('end=not-kept') == 23 and 'store is full: 23;' in said, said)
    k.proxy.after_kill()
    k.proxy.args[k.proxy.args.index('--store-after') + 1] = '0'
    k.proxy.start()
    only_these_go_on(k, clients, 17)
    k.manager.close()


def test_store_limit_of_unit():
    """The service manager says that its store is smaller than --store-max."""
    k = Kept(echo, threads=1, env={'FDSTORE': '80'})
    clients = one_by_one(k, 20)
    store_is_full(k, clients, 7)
    check('FileDescriptorStoreMax= is only 80' in k.proxy.log, k.proxy.log)
    k.manager.close()


def test_store_rate():
    """At most 50 places per second are given to other connections, in the second after the one in
    which the former ones ended or later: 267 in no less than 6 s."""
    k = Kept(echo, threads=1, store_max='600')
    former = [k.proxy.connect() for _ in range(300)]
    k.manager.wait('the sockets', lambda m: k.sockets() == 534)
    began = time.monotonic()
    for client in former:
        client.close()
    k.proxy.wait_metric('connections', 0)
    k.manager.wait('the sockets to go', lambda m: k.sockets() == 0)
    clients = [k.proxy.connect() for _ in range(300)]
    k.manager.wait('the sockets', lambda m: k.sockets() == 534, 60)
    between(time.monotonic() - began, 6, 60 + 2 * PATIENCE, 'the places were given after')
    for client in clients:
        client.close()
    k.manager.close()


def watches(proxy):
    """How many descriptors its threads watch."""
    n = 0
    for name in glob.glob(f'/proc/{proxy.pid}/fdinfo/*'):
        with open(name) as f:
            n += sum(line.startswith('tfd:') for line in f)
    return n


def busy_manager():
    """A service manager with whom one message may wait, so that a second one finds it busy."""
    name = '/proc/sys/net/unix/max_dgram_qlen'
    with open(name) as f:
        before = f.read()
    try:
        with open(name, 'w') as f:
            f.write('1')
        return Manager()
    finally:
        with open(name, 'w') as f:
            f.write(before)


def test_hand_over_busy():
    """SIGHUP while the service manager is busy: tried again at once, not after --store-after."""
    raise_descriptors(4000)
    k = Kept(manager=busy_manager(), store_after='1h')
    pairs = [(k.proxy.connect(), k.server.accept()) for _ in range(300)]
    with k.manager.lock:
        k.proxy.signal(signal.SIGHUP)
        time.sleep(UNIT)
    check(k.proxy.wait() == 0, 'it ended badly')
    k.manager.wait('the sockets', lambda m: k.sockets() == 600)
    k.proxy.start()
    for client, far in pairs:
        client.sendall(b'x')
        check(read_exactly(far, 1) == b'x', 'another byte came')


def test_stop_while_handing_over():
    """SIGTERM while a hand-over waits for a busy service manager: the proxy ends with its last
    connection."""
    k = Kept(manager=busy_manager(), threads=1, store_after='1h', grace='1h')
    client = k.proxy.connect()
    k.server.accept()
    with k.manager.lock:
        keep_busy(k.manager)
        before = watches(k.proxy)
        k.proxy.signal(signal.SIGHUP)
        k.proxy.wait_log('handing connections over')
        # It no longer accepts.
        until = time.monotonic() + 10 + PATIENCE
        while watches(k.proxy) == before:
            check(time.monotonic() < until, 'the listening socket is still watched')
            time.sleep(0.02)
        k.proxy.signal(signal.SIGTERM)
        k.proxy.wait_log('stopping')
        reset(client)
        check(k.proxy.wait() == 0, 'it ended badly')
    k.manager.close()


def test_places_after_pause():
    """Places that became free long ago are there for a hand-over, whether or not something has
    happened since."""
    # One connection, beside the wheel, the listening socket and 64 for what restarts add.
    k = Kept(threads=1, store_max='68')
    client, far = k.connect()
    client.close()
    far.close()
    k.manager.wait('the sockets to go', lambda m: k.sockets() == 0)
    time.sleep(3)
    client = k.proxy.connect()
    far = k.server.accept()
    k.proxy.end(signal.SIGHUP)
    k.proxy.after_kill()
    k.proxy.start()
    client.sendall(b'x')
    check(read_exactly(far, 1) == b'x', 'another byte came')
    k.manager.close()


def test_more_connections():
    """A kept wheel has the room of the former --max-connections: who is beyond that waits."""
    k = Kept(lifetime='1h', max_connections='10')
    k.manager.wait('the wheels', lambda m: sum(
        name.startswith('wheel') for name, _ in m.store.values()) == 2)
    k.proxy.kill()
    k.proxy.args[k.proxy.args.index('--max-connections') + 1] = '1000'
    k.proxy.start()
    k.proxy.wait_log('stop and start for more')
    clients = [k.proxy.connect() for _ in range(300)]
    time.sleep(UNIT)
    check(k.proxy.metrics()['closed_total{end="failed"}'] == 0, 'some were reset')
    for client in clients:
        client.close()


def test_balanced_after_restart():
    """More threads than before: the connections are spread over them, with their deadlines."""
    k = Kept(echo, threads=1, idle=12 * UNIT, lifetime='1h')

    def others_speak():
        for client in clients[1:]:
            client.sendall(b'y')
            check(read_exactly(client, 1) == b'y', 'another byte came back')

    with in_time(12 * UNIT, many=True):
        clients = [k.proxy.connect() for _ in range(40)]
        for client in reversed(clients):
            sent = time.monotonic()
            client.sendall(b'x')
            read_exactly(client, 1)
        k.manager.wait('the sockets', lambda m: k.sockets() == 80)
        k.proxy.args[k.proxy.args.index('--threads') + 1] = '4'
        k.restart()
        check(k.proxy.loads() == [10, 10, 10, 10], f'the threads have {k.proxy.loads()}')
        check(k.proxy.metrics()['wheel_pending'] == 80, 'some timers are there twice')
        spoke = time.monotonic()
        others_speak()
    with in_time(12 * UNIT, spoke):
        time.sleep(max(0, sent + 8 * UNIT - time.monotonic()))
        spoke = time.monotonic()
        others_speak()
    with in_time(12 * UNIT, spoke):
        at, _ = ended(clients[0], 12 * UNIT + 10)
        between(at - sent, 12 * UNIT, 12 * UNIT + late(), 'the silent one was closed after')
        spoke = time.monotonic()
        others_speak()
    with in_time(12 * UNIT, spoke):
        k.restart()
        check(k.proxy.loads() == [10, 10, 10, 9] or sorted(k.proxy.loads()) == [9, 10, 10, 10],
              f'the threads have {k.proxy.loads()}')


def test_other_listen_after_restart():
    """A changed --listen is used, and the former one is refused."""
    k = Kept(echo)
    client, _ = k.connect()
    k.manager.wait('the listening socket', lambda m: 'listener' in m.names())
    former = k.proxy.port
    k.proxy.port = free_port()
    k.proxy.args[k.proxy.args.index('--listen') + 1] = f'127.0.0.1:{k.proxy.port}'
    k.restart()
    client.sendall(b'x')
    check(read_exactly(client, 1) == b'x', 'another byte came back')
    second, _ = k.connect()
    try:
        socket.create_connection(('127.0.0.1', former))
        check(False, 'the former address is still listened on')
    except ConnectionRefusedError:
        pass
    k.manager.wait('the former socket to go', lambda m: m.names().count('listener') == 1)
    k.restart()
    third, _ = k.connect()
    for client in (client, second, third):
        client.sendall(b'y')
        check(read_exactly(client, 1) == b'y', 'another byte came back')


def kept_socket(k, peer):
    """A duplicate of the socket that is connected to this address."""
    for fd, (name, _) in k.manager.store.items():
        if name == 's':
            sock = socket.socket(fileno=socket.dup(fd))
            if sock.getpeername() == peer:
                return sock
            sock.close()
    raise AssertionError('it is not kept')


def test_lost_bytes():
    """Somebody has read from a kept socket: the connection does not go on without these bytes."""
    k = Kept()
    client, far = k.connect()
    k.proxy.kill()
    client.sendall(b'abc')
    with kept_socket(k, client.getsockname()) as stolen:
        check(read_exactly(stolen, 1) == b'a', 'another byte came')
    k.proxy.start()
    check(ended(client, 5)[1] == 'reset', 'the client saw an end of file')
    check(ended(far, 5)[1] == 'reset', 'the server saw an end of file')
    check(k.proxy.metrics()['closed_total{end="failed"}'] == 1, 'not counted')


def test_killed_before_taking():
    """Bytes that the killed proxy had sent, and not yet taken from the other side, come once."""
    for end_of_file in (False, True):
        k = Kept()
        client, far = k.connect()
        client.sendall(b'12')
        read_exactly(far, 2)
        k.proxy.kill()
        client.sendall(b'abcdef')
        if end_of_file:
            client.shutdown(socket.SHUT_WR)
        with kept_socket(k, far.getsockname()) as sent:
            sent.sendall(b'abcd')
        k.proxy.start()
        check(read_exactly(far, 6, 5) == b'abcdef', 'other bytes came')
        if end_of_file:
            check(ended(far, 5)[1] == 'eof', 'the end of file was not passed on')
        else:
            client.sendall(b'g')
            check(read_exactly(far, 1, 5) == b'g', 'another byte came')
        far.sendall(b'answer')
        check(read_exactly(client, 6, 5) == b'answer', 'other bytes came')
        k.manager.close()


def test_header_and_restart():
    """The header of the PROXY protocol comes once, whatever the next proxy is asked for."""
    k = Kept(proxy_protocol='v1')
    client, far = k.connect()
    header = 'PROXY TCP4 127.0.0.1 127.0.0.1 %d %d\r\n' % (client.getsockname()[1], k.proxy.port)
    for version in ('v2', 'v1'):
        client.sendall(b'x')
        check(read_exactly(far, len(header) + 1, 5) == header.encode() + b'x', 'other bytes came')
        header = ''
        k.proxy.args[k.proxy.args.index('--proxy-protocol') + 1] = version
        k.restart()
    far.sendall(b'y')
    check(read_exactly(client, 1, 5) == b'y', 'another byte came')


def test_next_server_kept():
    """A connection that was kept while a server did not answer is kept with the next one."""
    silent, fill = full_server()
    manager = Manager()
    proxy = Proxy([silent.address, Server(echo).address], manager=manager, threads=1,
                  store_after='0', connect_timeout=3 * UNIT, lifetime='1h')
    clients = [proxy.connect() for _ in range(2)]
    for client in clients:
        client.sendall(b'x')
        check(read_exactly(client, 1) == b'x', 'another byte came back')
    manager.wait('the sockets', lambda m: m.names().count('s') == 4)
    proxy.kill()
    proxy.start()
    proxy.wait_log('2 connections continue')
    for client in clients:
        client.sendall(b'y')
        check(read_exactly(client, 1) == b'y', 'another byte came back')
    for s in fill:
        s.close()


def test_next_server_after_restart():
    """Killed while a server does not answer: when its time is over the next one serves."""
    silent, fill = full_server()
    manager = Manager()
    proxy = Proxy([Server(echo).address, silent.address], manager=manager, threads=1,
                  store_after='0', connect_timeout=4 * UNIT)
    # The first one goes to the second server.
    with in_time(4 * UNIT):
        client = proxy.connect()
        manager.wait('the sockets', lambda m: m.names().count('s') == 2)
        proxy.kill()
    proxy.start()
    client.sendall(b'x')
    check(read_exactly(client, 1) == b'x', 'another byte came back')
    check(f'server {silent.address} does not answer' in proxy.log, proxy.log)
    for s in fill:
        s.close()


def test_killed_moving():
    """Killed while a connection's timers go to another thread's wheel: they are in both, all of
    them in one. Whichever wheel is looked at first, it goes on, and they are there once."""
    k = Kept(echo, idle='1h', lifetime='1h')
    client, _ = k.connect()
    both = {}
    for number in range(2):
        both.update(Wheel(k.manager, number).timers())
    check(len(both) == 2, f'{len(both)} timers')
    some = [{key: both[key]} for key in both]
    places = list(itertools.product([both], some + [both])) + list(itertools.product(some, [both]))
    for there in places:
        k.proxy.kill()
        for number in range(2):
            Wheel(k.manager, number).set(there[number])
        k.proxy.start()
        client.sendall(b'x')
        check(read_exactly(client, 1) == b'x', f'{there}: another byte came back')
        check(k.proxy.metrics()['wheel_pending'] == 2, f'{there}: other timers are there')
        check(sum(k.proxy.loads()) == 1, f'{there}: the threads have {k.proxy.loads()}')


def taken(life, begin=lambda client: None, full=False):
    """What the log says of a connection whose event was taken before the proxy was killed."""
    server, fill = full_server() if full else (Server(), [])
    manager = Manager()
    proxy = Proxy(server.address, '--log', '-', manager=manager, threads=1, store_after='0',
                  idle='1h', half_closed='1h', lifetime='1h', connect_timeout='1h')
    client = proxy.connect()
    manager.wait('the sockets', lambda m: m.names().count('s') == 2)
    begin(client)
    proxy.kill()
    wheel = Wheel(manager, 0)
    wheel.set({key: rest for key, rest in wheel.timers().items() if key & 1 != life})
    proxy.start()
    check(ended(client, 5)[1] == 'eof', 'the client saw a reset')
    proxy.wait_log('end=')
    for s in fill:
        s.close()
    return re.search('end=([a-z-]*)', proxy.log)[1]


def test_killed_with_event():
    """It ends as what it is, although its timer is no longer there to say so."""
    def half_close(client):
        client.shutdown(socket.SHUT_WR)
        time.sleep(UNIT)

    for want, args in (('idle', (0,)), ('half-closed', (0, half_close)), ('lifetime', (1,)),
                       ('lifetime', (1, half_close)),
                       ('connect', (0, lambda client: None, True))):
        got = taken(*args)
        check(got == want + '-timeout', f'{got}, not {want}-timeout')


def test_other_ids():
    """A proxy that keeps nothing gives ids that those that were kept do not have."""
    k = Kept(echo, threads=1, idle='1h')
    first, _ = k.connect()
    k.proxy.args[k.proxy.args.index('--store-after') + 1] = 'none'
    k.restart()
    clients = [first] + [k.proxy.connect() for _ in range(3)]
    for client in clients:
        client.sendall(b'x')
        check(read_exactly(client, 1) == b'x', 'another byte came back')
    ids = {key >> 1 for key in Wheel(k.manager, 0).timers()}
    check(len(ids) == 4 and ids <= k.proxy.cookies(), f'the ids {ids} are no cookies')


def no_server_answers(manager, what):
    """A kept connection goes on to its second server while the service manager reads nothing, and
    then what(client) happens. Its new socket was not sent, and its client's was."""
    silent = [full_server() for _ in range(2)]
    proxy = Proxy([server.address for server, _ in silent], manager=manager, threads=1,
                  store_after='0', connect_timeout=4 * UNIT)
    began = time.monotonic()
    with in_time(4 * UNIT, began):
        client = proxy.connect()
        manager.wait('the sockets', lambda m: m.names().count('s') == 2)
    with manager.lock:
        with in_time(4 * UNIT, began):
            keep_busy(manager)
        proxy.wait_metric('connect_failures_total', 1)
        what(client)
        proxy.wait_metric('connections', 0)
    manager.wait('the sockets to go', lambda m: 's' not in m.names())
    # Free places are used again.
    others = [proxy.connect() for _ in range(20)]
    proxy.wait_metric('connections', len(others))
    for _, fill in silent:
        for s in fill:
            s.close()


def test_next_server_not_kept_yet():
    """It ends for its client, and for the service manager, too."""
    def wait(client):
        check(ended(client, 30)[1] == 'eof', 'the client saw a reset')

    no_server_answers(busy_manager(), wait)
    no_server_answers(busy_manager(), reset)


def test_restored_is_logged():
    """With all its bytes, and that its seconds are not all."""
    k = Kept(log='-')
    client, far = k.connect()
    client.sendall(b'abc')
    read_exactly(far, 3)
    k.restart()
    client.sendall(b'd')
    read_exactly(far, 1)
    client.close()
    far.close()
    k.proxy.wait_log('from_client=4 from_server=0')
    line = [line for line in k.proxy.log.splitlines() if 'from_client=' in line][0]
    check(line.endswith('end=client restored'), line)


def test_hand_over_loses_none():
    """Restarts while clients come and go: each one is served, by this proxy or by the next."""
    k = Kept(echo, threads=4)
    stop = threading.Event()
    trouble, served = [], []

    def come_and_go():
        while not stop.is_set():
            try:
                with k.proxy.connect() as client:
                    for data in (b'a', b'bc'):
                        client.sendall(data)
                        check(read_exactly(client, len(data)) == data, 'other bytes came back')
                served.append(1)
            except Exception as e:
                trouble.append(e)
                return

    clients = [threading.Thread(target=come_and_go) for _ in range(8)]
    for client in clients:
        client.start()
    for _ in range(5):
        time.sleep(UNIT)
        k.proxy.end(signal.SIGHUP)
        k.proxy.after_kill()
        k.proxy.start()
    until = time.monotonic() + 10 + PATIENCE
    while len(served) <= 50 and not trouble and time.monotonic() < until:
        time.sleep(UNIT)
    stop.set()
    for client in clients:
        client.join()
    check(not trouble, f'after {len(served)} connections: {trouble[:1]}')
    check(len(served) > 50, f'only {len(served)} connections')
