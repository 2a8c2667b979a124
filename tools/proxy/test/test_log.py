# SPDX-License-Identifier: GPL-2.0
"""The connection log: a line for each connection that has ended."""

import contextlib
import datetime
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from harness import (PATIENCE, UNIT, Proxy, Server, Steps, between, check, echo, ended, free_port,
                     full_server, late, read_exactly, reset)

LINE = re.compile(r'^(<6>)?(?P<time>\S+Z) client=(?P<client>\S+) server=(?P<server>\S+) '
                  r'from_client=(?P<from_client>\d+) from_server=(?P<from_server>\d+) '
                  r'seconds=(?P<seconds>\d+\.\d{6}) end=(?P<end>[a-z-]+)(?P<restored> restored)?$')


class Logged:
    """A proxy that logs to a file."""

    def __init__(self, to, *args, **options):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, 'log')
        self.json = '--json' in args
        self.proxy = Proxy(to, '--log', self.path, *args, **options)

    def lines(self, n, timeout=10):
        """The first @n, as dictionaries; there are no more."""
        until = time.monotonic() + timeout + PATIENCE
        while True:
            with open(self.path) as f:
                lines = f.read().splitlines()
            if len(lines) >= n or time.monotonic() > until:
                break
            time.sleep(0.01)
        check(len(lines) == n, f'{len(lines)} lines and not {n}: {lines}')
        if self.json:
            return [json.loads(line) for line in lines]
        for line in lines:
            check(LINE.match(line), f'this is no line: {line}')
        return [LINE.match(line).groupdict() for line in lines]


def name_of(sock):
    return '%s:%d' % sock.getsockname()


def talk(log, server, number):
    """A connection in which 3 bytes go there and 5 come back."""
    client = log.proxy.connect()
    name = name_of(client)
    far = server.accept()
    client.sendall(b'abc')
    read_exactly(far, 3)
    far.sendall(b'defgh')
    read_exactly(client, 5)
    time.sleep(UNIT)
    client.close()
    far.close()
    line = log.lines(number)[-1]
    check(line['client'] == name, f'the client is {line["client"]}, not {name}')
    check(line['server'] == server.address, f'the server is {line["server"]}')
    check((int(line['from_client']), int(line['from_server'])) == (3, 5), f'the bytes: {line}')
    between(float(line['seconds']), UNIT, UNIT + late(), 'seconds')
    ended_at = datetime.datetime.fromisoformat(line['time'].replace('Z', '+00:00'))
    between(time.time() - ended_at.timestamp(), -0.1, 5 + late(), 'the time of day')
    check(line['end'] == 'client' and not line.get('restored'), f'the end: {line}')


def test_log_text():
    server = Server()
    log = Logged(server.address)
    talk(log, server, 1)
    talk(log, server, 2)
    check(os.stat(log.path).st_mode & 0o7 == 0, 'everybody may read the log')


def test_log_json():
    server = Server()
    log = Logged(server.address, '--json')
    talk(log, server, 1)
    check(type(log.lines(1)[0]['seconds']) is float, 'a number is text')


def test_log_journal():
    """To standard error, with a priority; IPv6 as such."""
    port = free_port()
    proxy = Proxy(Server(echo).address, '--log', '-', '--listen', f'[::1]:{port}')
    client = socket.create_connection(('::1', port))
    name = '[::1]:%d' % client.getsockname()[1]
    client.sendall(b'x')
    read_exactly(client, 1)
    client.close()
    proxy.wait_log('end=client')
    line = [line for line in proxy.log.splitlines() if 'client=' in line]
    check(len(line) == 1 and LINE.match(line[0]) and line[0].startswith('<6>'), f'{line}')
    check(f'client={name} ' in line[0], f'the client is not {name}: {line}')


def end_of(how, *args, to=None, **options):
    """What the log says of a connection with which this was done."""
    server = Server()
    log = Logged(to or server.address, *args, **options)
    client = socket.socket()
    # Where the server refuses, the reset may come before this returns.
    client.connect_ex(('127.0.0.1', log.proxy.port))
    how(log.proxy, client, None if to else server.accept())
    return log.lines(1)[0]['end']


def test_log_ends():
    """Which end or which timeout ended it."""
    def server_first(proxy, client, far):
        far.close()
        ended(client, 5)
        client.close()

    def both_half(proxy, client, far):
        far.shutdown(socket.SHUT_WR)
        ended(client, 5)
        client.close()

    def client_resets(proxy, client, far):
        client.sendall(b'x')
        read_exactly(far, 1)
        reset(client)

    def server_resets(proxy, client, far):
        client.sendall(b'x')
        read_exactly(far, 1)
        reset(far)

    def silence(proxy, client, far):
        ended(client, 10)

    def half(proxy, client, far):
        client.shutdown(socket.SHUT_WR)
        ended(far, 5)
        ended(client, 5)

    def stop(proxy, client, far):
        client.sendall(b'x')
        read_exactly(far, 1)
        proxy.signal(signal.SIGTERM)
        ended(client, 5)

    silent, fill = full_server()
    for want, args in (
            ('server', (server_first,)), ('server', (both_half,)),
            ('client-reset', (client_resets,)), ('server-reset', (server_resets,))):
        got = end_of(*args)
        check(got == want, f'{args[0].__name__}: {got}, not {want}')
    for want, how, options in (
            ('idle-timeout', silence, {'idle': UNIT}),
            ('half-closed-timeout', half, {'half_closed': UNIT}),
            ('lifetime-timeout', silence, {'lifetime': UNIT}),
            ('stopped', stop, {'grace': '0'}),
            ('connect-timeout', silence, {'connect_timeout': UNIT, 'to': silent.address}),
            ('refused', lambda *_: None, {'to': f'127.0.0.1:{free_port()}'})):
        got = end_of(how, **options)
        check(got == want, f'{options}: {got}, not {want}')
    for s in fill:
        s.close()


def test_log_of_many():
    """A line for each, in several threads."""
    log = Logged(Server(echo).address, threads=4)
    names = set()
    for _ in range(20):
        clients = [log.proxy.connect() for _ in range(20)]
        for client in clients:
            names.add(name_of(client))
            client.sendall(b'x')
            read_exactly(client, 1)
            client.close()
    # Many in one turn, too.
    clients = [log.proxy.connect() for _ in range(200)]
    for client in clients:
        names.add(name_of(client))
        client.sendall(b'x')
        read_exactly(client, 1)
    log.proxy.signal(signal.SIGSTOP)
    for client in clients:
        reset(client)
    log.proxy.signal(signal.SIGCONT)
    lines = log.lines(600)
    check({line['client'] for line in lines} == names, 'other clients are logged')
    check(log.proxy.metrics()['log_lost_total'] == 0, 'lines were lost')


def test_log_that_nobody_reads():
    """A journal that takes no more keeps nobody waiting; what it did not get is counted."""
    server = Server(echo)
    proxy = Proxy(server.address, '--log', '-', threads=1, read_log=False)
    steady = proxy.connect()
    for _ in range(60):
        clients = [proxy.connect() for _ in range(20)]
        for client in clients:
            client.sendall(b'x')
            read_exactly(client, 1, 5)
            client.close()
    steady.sendall(b'y')
    check(read_exactly(steady, 1, 5) == b'y', 'another byte came back')
    proxy.wait_metric('closed_total{end="client"}', 1200)
    check(proxy.metrics()['log_lost_total'] > 0, 'nothing is said to be lost')
    proxy.signal(signal.SIGTERM)
    steady.close()
    check(proxy.wait(5) == 0, 'it ended badly')


def come_and_go(proxy, trouble):
    try:
        for _ in range(4):
            with proxy.connect() as client:
                client.sendall(b'x')
                check(read_exactly(client, 1, 5) == b'x', 'another byte came back')
    except Exception as e:
        trouble.append(e)


def pipe_is_full(which, server, fifo=None):
    """Connections come and go, and the pipe of the log is full in each second system call."""
    proxy = Proxy(server.address, '--log', fifo or '-', threads=1, read_log=False)
    pipe = os.open(fifo or f'/proc/{proxy.pid}/fd/2', os.O_RDWR | os.O_NONBLOCK)
    trouble = []
    clients = threading.Thread(target=come_and_go, args=(proxy, trouble))
    steps = Steps(proxy.serving_threads()[0])
    clients.start()
    stops = 0
    # The beginning of a system call, and its end.
    while steps.next(lambda: not clients.is_alive()):
        stops += 1
        try:
            while True:
                if stops // 2 % 2 == which:
                    os.write(pipe, b'\n' * 4096)
                else:
                    os.read(pipe, 1 << 16)
        except BlockingIOError:
            pass
    lost = proxy.metrics()['log_lost_total']
    proxy.signal(signal.SIGKILL)
    steps.over()
    os.close(pipe)
    proxy.after_kill()
    check(not trouble, f'{trouble}')
    return lost


def test_log_full_meanwhile():
    """Whoever else writes to the same pipe may fill it at any moment: nobody waits."""
    server = Server(echo)
    check(sum(pipe_is_full(which, server) for which in range(2)) > 0, 'nothing is said to be lost')


def test_log_pipe_full():
    """The same of a named pipe."""
    server = Server(echo)
    with tempfile.TemporaryDirectory() as folder:
        fifo = os.path.join(folder, 'log')
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
        lost = sum(pipe_is_full(which, server, fifo) for which in range(2))
        os.close(reader)
    check(lost > 0, 'nothing is said to be lost')


def test_log_file_limit():
    """A log that has reached RLIMIT_FSIZE loses lines; the proxy continues."""
    server = Server(echo)
    log = Logged(server.address)
    resource.prlimit(log.proxy.pid, resource.RLIMIT_FSIZE, (1, 1))
    for _ in range(2):
        client = log.proxy.connect()
        client.sendall(b'x')
        check(read_exactly(client, 1) == b'x', 'another byte came back')
        client.close()
    log.proxy.wait_metric('log_lost_total', 2)


if os.geteuid() == 0 and shutil.which('mkfs.ext4') and os.path.exists('/dev/loop-control'):
    @contextlib.contextmanager
    def file_system():
        """A file system that can be frozen."""
        with tempfile.TemporaryDirectory() as folder:
            image, at = os.path.join(folder, 'image'), os.path.join(folder, 'at')
            os.mkdir(at)
            with open(image, 'wb') as f:
                f.truncate(16 << 20)
            subprocess.run(['mkfs.ext4', '-q', image], check=True)
            subprocess.run(['mount', '-o', 'loop', image, at], check=True)
            try:
                yield at
            finally:
                subprocess.run(['umount', at], check=True)

    @contextlib.contextmanager
    def frozen(at):
        folder = os.open(at, os.O_RDONLY)
        try:
            # FIFREEZE, FITHAW
            fcntl.ioctl(folder, 0xc0045877, 0)
            try:
                yield
            finally:
                fcntl.ioctl(folder, 0xc0045878, 0)
        finally:
            os.close(folder)

    def one_byte(client):
        client.sendall(b'x')
        check(read_exactly(client, 1, 5) == b'x', 'another byte came back')

    def test_log_file_frozen():
        """A write to the log waits, as during a snapshot: connections do not wait, and the log gets
        the lines later."""
        with file_system() as at:
            proxy = Proxy(Server(echo).address, '--log', os.path.join(at, 'log'), threads=1)
            try:
                steady = proxy.connect()
                with frozen(at):
                    for _ in range(3):
                        with proxy.connect() as client:
                            one_byte(client)
                    proxy.wait_metric('closed_total{end="client"}', 3)
                    one_byte(steady)
                steady.close()
                proxy.end()
                with open(os.path.join(at, 'log')) as f:
                    lines = f.read().splitlines()
                check(len(lines) == 4 and all(map(LINE.match, lines)), f'the lines: {lines}')
            finally:
                if proxy.status is None:
                    proxy.kill()


def test_log_without_standard_descriptors():
    """The log has no other lines, even if the proxy was started without a stderr."""
    server = Server()
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'log')
        proxy = subprocess.Popen([Proxy.program, '--listen', f'127.0.0.1:{port}', '--to',
                                  server.address, '--log', path, '--threads', '2'],
                                 preexec_fn=lambda: os.closerange(0, 3))
        try:
            until = time.monotonic() + 10 + PATIENCE
            with socket.socket() as client:
                while client.connect_ex(('127.0.0.1', port)):
                    check(time.monotonic() < until, 'the proxy does not listen')
                    time.sleep(0.02)
                server.accept().close()
            proxy.terminate()
            check(proxy.wait(10 + PATIENCE) == 0, f'the proxy ended with {proxy.returncode}')
        finally:
            proxy.kill()
            proxy.wait()
        with open(path) as f:
            lines = f.read().splitlines()
        check(len(lines) == 1 and LINE.match(lines[0]), f'the log has other lines: {lines}')


def test_log_file_refused():
    try:
        Proxy('127.0.0.1:1', '--log', '/nonexistent/log')
        check(False, 'it started')
    except Exception as e:
        check('--log /nonexistent/log: No such file or directory' in str(e), f'{e}')
    Proxy.all[-1].wait()
    Proxy.all.clear()
