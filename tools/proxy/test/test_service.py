# SPDX-License-Identifier: GPL-2.0
"""The proxy as a service: stop, messages to the service manager, metrics, log, options."""

import ctypes
import fcntl
import os
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

from harness import (BACKEND, DEVICE, METRIC, PATIENCE, UNIT, Manager, Proxy, Server, Steps,
                     between, check, cookie_of, echo, ended, free_port, in_own_network, in_time,
                     keep_busy, late, read_all, read_exactly, reset)


def test_graceful_stop():
    """No new ones; those that are there go on; it ends with the last."""
    server = Server(echo)
    proxy = Proxy(server.address, grace='1h')
    client = proxy.connect()
    client.sendall(b'x')
    read_exactly(client, 1)
    listener = socket.create_connection(('127.0.0.1', proxy.port))
    listener.close()
    proxy.signal(signal.SIGTERM)
    proxy.wait_log('stopping')
    time.sleep(UNIT)
    proxy.refuses()
    client.sendall(b'y')
    check(read_exactly(client, 1) == b'y', 'another byte came back')
    began = time.monotonic()
    client.close()
    check(proxy.wait() == 0, 'it ended badly')
    between(time.monotonic() - began, 0, 1 + late(), 'it ended after')


def test_grace_is_over():
    server = Server(echo)
    proxy = Proxy(server.address, grace=2 * UNIT)
    client = proxy.connect()
    client.sendall(b'x')
    read_exactly(client, 1)
    began = time.monotonic()
    proxy.signal(signal.SIGTERM)
    at, how = ended(client, 10)
    check(how == 'eof', 'the client saw a reset')
    between(at - began, 2 * UNIT, 2 * UNIT + late(), 'closed after')
    check(proxy.wait() == 0, 'it ended badly')


def test_second_signal():
    """Whoever is in a hurry sends it twice."""
    server = Server(echo)
    proxy = Proxy(server.address, grace='1h')
    client = proxy.connect()
    client.sendall(b'x')
    read_exactly(client, 1)
    proxy.signal(signal.SIGTERM)
    proxy.wait_log('stopping')
    proxy.signal(signal.SIGINT)
    ended(client, 5)
    check(proxy.wait(5) == 0, 'it ended badly')


def test_notify():
    """READY, the watchdog for as long as all threads turn, STOPPING with its time."""
    manager = Manager()
    server = Server(echo)
    proxy = Proxy(server.address, manager=manager, grace='7s', start=False,
                  env={'WATCHDOG_USEC': '300000'})
    proxy.start()
    manager.wait_message('READY', '1')
    # Three times as often as it must; fewer only while the machine stands still.
    until = time.monotonic() + 10 + PATIENCE
    rate = 0
    while rate < 4 and time.monotonic() < until:
        manager.names()         # reads what has come
        manager.forget()
        began = time.monotonic()
        time.sleep(1)
        manager.names()
        with manager.lock:
            barks = sum('WATCHDOG' in m for m in manager.messages)
            rate = barks / (time.monotonic() - began)
    between(rate, 4, 12, 'messages to the watchdog in a second')
    client = proxy.connect()
    client.sendall(b'x')
    read_exactly(client, 1)
    proxy.signal(signal.SIGTERM)
    manager.wait_message('STOPPING', '1')
    manager.wait_message('EXTEND_TIMEOUT_USEC', '12000000')
    client.close()
    check(proxy.wait() == 0, 'it ended badly')
    manager.close()


def test_socket_unit():
    """The listening socket may come from the service manager."""
    listener = socket.create_server(('127.0.0.1', 0))
    server = Server(echo)
    proxy = Proxy(server.address, passed=[(listener.fileno(), 'proxy.socket')])
    name = '%s:%d' % listener.getsockname()
    check(f'listening on {name}\n' in proxy.log, f'the log says another address: {proxy.log}')
    client = socket.create_connection(listener.getsockname(), timeout=5)
    client.sendall(b'x')
    check(read_exactly(client, 1) == b'x', 'another byte came back')


def test_socket_unit_any_name():
    """The name of the socket can be like the name of a wheel or of a connection's socket."""
    for name in 'wheel0', 's':
        listener = socket.create_server(('127.0.0.1', 0))
        Proxy(Server(echo).address, passed=[(listener.fileno(), name)])
        client = socket.create_connection(listener.getsockname(), timeout=5)
        client.sendall(b'x')
        check(read_exactly(client, 1) == b'x', 'another byte came back')


def test_socket_unit_not_tcp():
    """An AF_UNIX socket cannot pass on a reset, so the proxy does not start with one."""
    server = Server(echo)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind('\0proxy-test-unix-%d' % os.getpid())
        listener.listen()
        proxy = Proxy(server.address, passed=[(listener.fileno(), 'web.socket')], start=False)
        Proxy.all.remove(proxy)
        read, write = os.pipe()
        os.write(write, b'x')
        proxy.start(gate=read)
        os.close(read)
        os.close(write)
        try:
            check(proxy.wait(10) == 2, f'the proxy ended with {proxy.status}')
        finally:
            if proxy.status is None:
                proxy.kill()
    check("the socket unit's socket 'web.socket' is not TCP" in proxy.log, proxy.log)


def test_killed_while_accepting():
    """A client connects and sends nothing, and the proxy is killed before any of its system calls:
    the client sees a reset and no empty answer."""
    ends = []
    came = True
    while came:
        server = Server()
        proxy = Proxy(server.address, threads=1)
        client = socket.socket()
        came = proxy.kill_at(len(ends) + 1, lambda: client.connect(('127.0.0.1', proxy.port)),
                             lambda: select.select([server.socket], [], [], 0)[0])
        ends.append(ended(client, 5)[1])
        client.close()
        server.close()
    check(len(ends) > 5 and set(ends) == {'reset'}, f'the client saw {ends}')


def test_killed_before_thread_takes():
    """The client of a socket unit, too, if its thread has not taken it from the other thread."""
    server = Server()
    with socket.create_server(('127.0.0.1', 0)) as listener:
        proxy = Proxy(server.address, passed=[(listener.fileno(), 'web.socket')])
        held = Steps(proxy.serving_threads()[1])
        first = socket.create_connection(listener.getsockname())
        server.accept()
        before = proxy.descriptors()
        client = socket.create_connection(listener.getsockname())
        # It is accepted after all work of the other thread for the one before.
        third = socket.create_connection(listener.getsockname())
        until = time.monotonic() + 10 + PATIENCE
        while proxy.descriptors() < before + 2:
            check(time.monotonic() < until, 'the proxy does not accept the clients')
            time.sleep(0.02)
        proxy.signal(signal.SIGKILL)
        held.over()
        proxy.after_kill()
    check(ended(client, 5)[1] == 'reset', 'the client saw an end of file')
    first.close()
    third.close()


def test_listening_socket_closed():
    """Another program ends the listening socket: the proxy listens again and does not spin."""
    server = Server(echo)
    proxy = Proxy(server.address)
    before = proxy.connect()
    before.sendall(b'x')
    read_exactly(before, 1)
    for fd in proxy.copies():
        if cookie_of(fd):
            with socket.socket(fileno=fd) as copy:
                if (copy.family == socket.AF_INET and copy.getsockname()[1] == proxy.port and
                        copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)):
                    copy.shutdown(socket.SHUT_RDWR)
        else:
            os.close(fd)
    proxy.wait_log(f'closed the socket on 127.0.0.1:{proxy.port}; listening again')
    proxy.sleeps()
    for client in before, proxy.connect():
        client.sendall(b'y')
        check(read_exactly(client, 1) == b'y', 'another byte came back')


def test_metrics():
    """The format, line by line; a histogram whose buckets add up."""
    server = Server()
    proxy = Proxy(server.address, idle=UNIT)
    client = proxy.connect()
    ended(client, 10)
    head, body = proxy.get()
    check(head.startswith('HTTP/1.1 200 OK\r\n'), f'the answer is {head}')
    check(f'Content-Length: {len(body)}' in head, 'the length is another')
    types = {}
    for line in body.splitlines():
        if line.startswith('# TYPE '):
            _, _, name, kind = line.split(' ')
            check(name not in types, f'{name} comes twice')
            types[name] = kind
        elif not line.startswith('# HELP '):
            check(METRIC.match(line), f'this is no metric: {line}')
            name = line.split('{')[0].split(' ')[0]
            family = [t for t in types if name == t or
                      (types[t] == 'histogram' and name.startswith(t + '_'))]
            check(family, f'{name} has no type')
            check((types[family[0]] == 'counter') == name.endswith('_total'),
                  f'{name} is a {types[family[0]]}')
    m = proxy.metrics()
    buckets = [v for k, v in m.items() if k.startswith('timeout_lateness_seconds_bucket')]
    check(buckets == sorted(buckets), 'the buckets do not grow')
    check(buckets[-1] == m['timeout_lateness_seconds_count'] == 1, 'the buckets do not add up')
    between(m['timeout_lateness_seconds_sum'], 0.000000001, late(), 'lateness')
    check(proxy.get('/')[0].startswith('HTTP/1.1 404'), 'there is something else')


def test_metrics_without_address():
    """Nobody else's machine can ask: the numbers are at both addresses of the loopback interface."""
    port = free_port()
    Proxy('127.0.0.1:1', '--metrics', f':{port}')
    found = []
    for name in ('tcp', 'tcp6'):
        with open(f'/proc/net/{name}') as f:
            for line in f.readlines()[1:]:
                address, number = line.split()[1].split(':')
                if int(number, 16) == port and line.split()[3] == '0A':
                    found.append(address)
    check(sorted(found) == ['0' * 24 + '01000000', '0100007F'], f'it listens at {found}')
    for address in ('127.0.0.1', '::1'):
        with socket.create_connection((address, port), timeout=5) as s:
            s.sendall(b'GET /metrics HTTP/1.0\r\n\r\n')
            check(read_all(s).startswith(b'HTTP/1.'), f'no answer from {address}')


def test_metrics_silent_clients():
    """Those who ask for nothing keep nobody waiting."""
    server = Server()
    proxy = Proxy(server.address)
    silent = [socket.create_connection(('127.0.0.1', proxy.metrics_port)) for _ in range(30)]
    began = time.monotonic()
    proxy.get()
    between(time.monotonic() - began, 0, late(), 'an answer came after')
    for s in silent:
        s.close()


class SlowClients:
    """@n clients of an address, each of which comes again when it is disconnected. @kind: `silent'
    ones send nothing, `writing' ones an endless request, byte by byte, and `reading' ones read the
    answer byte by byte."""

    def __init__(self, port, n, kind):
        self.port, self.kind, self.stop = port, kind, False
        self.clients = [self.open() for _ in range(n)]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def open(self):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(('127.0.0.1', self.port))
        request = b'GET /metrics HTTP/1.1\r\nHost: x\r\n'
        if self.kind != 'silent':
            s.sendall(request)
        if self.kind == 'reading':
            s.sendall(b'\r\n')
        s.setblocking(False)
        return s

    def turn(self, s):
        """False: it was disconnected."""
        try:
            if self.kind == 'writing':
                s.send(b'x')
            return bool(s.recv(1))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def run(self):
        while not self.stop:
            for i, s in enumerate(self.clients):
                if not self.turn(s) and not self.stop:
                    s.close()
                    self.clients[i] = self.open()
            time.sleep(0.01)

    def close(self):
        self.stop = True
        self.thread.join()
        for s in self.clients:
            s.close()


def test_metrics_slow_clients():
    """More slow clients than there are places do not keep out one that is fast."""
    proxy = Proxy(Server().address)
    for kind in 'silent', 'writing', 'reading':
        slow = SlowClients(proxy.metrics_port, 64, kind)
        for _ in range(10):
            check('accepted_total' in proxy.metrics(), f'{kind}: half an answer')
        slow.close()


def test_metrics_deadline():
    """A request ends after 5 s, even if there is always another byte, and not before."""
    proxy = Proxy(Server().address)
    address = ('127.0.0.1', proxy.metrics_port)
    with socket.create_connection(address) as silent, socket.create_connection(address) as slow:
        began = time.monotonic()
        slow.sendall(b'GET /metrics HTTP/1.1\r\nHost: ')
        until = began + 30 + PATIENCE
        try:
            while not select.select([slow], [], [], 0.05)[0]:
                check(time.monotonic() < until, 'a request goes on for ever')
                slow.sendall(b'x')
        except (BrokenPipeError, ConnectionResetError):
            pass
        between(time.monotonic() - began, 4.9, 30 + PATIENCE, 'disconnected after')
        ended(silent, 30)


def test_metrics_by_host():
    """The host with most clients loses one, not another host whose client is older."""
    proxy = Proxy(Server().address)
    address = ('127.0.0.1', proxy.metrics_port)
    # The other host's request has 5 s.
    with in_time(5):
        other = socket.create_connection(address, source_address=('127.0.0.2', 0))
        slow = SlowClients(proxy.metrics_port, 64, 'silent')
        for _ in range(3):
            proxy.metrics()
        other.sendall(b'GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
        check(b'accepted_total' in read_all(other), 'no answer')
    slow.close()


def test_metrics_many_addresses():
    """All who may ask at all of them leave descriptors for all connections."""
    args = [word for _ in range(5) for word in ('--metrics', f'127.0.0.1:{free_port()}')]
    proxy = Proxy(Server(echo).address, *args, limit=1024, threads=1)
    ports = [proxy.metrics_port] + [int(word.split(':')[1]) for word in args[1::2]]
    silent = [socket.create_connection(('127.0.0.1', port)) for port in ports for _ in range(32)]
    most = int(re.search(r'enough for (\d+) connections', proxy.log)[1])
    clients = [proxy.connect() for _ in range(most)]
    for client in clients:
        client.sendall(b'x')
        check(read_exactly(client, 1, 5) == b'x', 'another byte came back')
    check('cannot accept' not in proxy.log, proxy.log)
    for s in silent:
        s.close()


def run(*args, **env):
    return subprocess.run([Proxy.program, *args], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True, timeout=20 + PATIENCE, env=dict(os.environ, **env))


def test_options():
    """What is not understood is said, with what to do; the status tells if trying again may help."""
    good = ['--listen', '127.0.0.1:0', '--to', '127.0.0.1:1']
    own = f'127.0.0.1:{free_port()}'
    mapped = own.replace('127.0.0.1', '[::ffff:127.0.0.1]')
    for args, word in (
            ([], '--listen and --to are required'),
            (['--listen', '127.0.0.1:0'], '--listen and --to are required'),
            (['--to', '127.0.0.1:1'], '--listen and --to are required'),
            (good + ['--proxy-protocol', 'v3'], '--proxy-protocol needs v1 or v2'),
            (good + ['--json'], '--json is the format of --log'),
            (good + ['--to', 'x'], '--to needs ADDRESS:PORT'),
            (good * 65, 'may be given 64 times'),
            (good + ['--idle', 'soon'], '--idle needs a time'),
            (good + ['--idle', '0'], '--idle must be greater than 0'),
            (good + ['--connect-timeout', '-1s'], '--connect-timeout needs a time'),
            (good + ['--half-closed', '1 week'], '--half-closed needs a time'),
            (good + ['--lifetime', '0s'], '--lifetime must be greater than 0'),
            (good + ['--grace', 'x'], '--grace needs a time'),
            (good + ['--store-after', 'x'], '--store-after needs a time'),
            (good + ['--threads', '0'], '--threads needs a number'),
            (good + ['--max-connections', '1e9'], '--max-connections needs a number'),
            (good + ['--metrics', 'here'], '--metrics needs ADDRESS:PORT'),
            (good + ['--listen', '127.0.0.1:'], '--listen needs ADDRESS:PORT'),
            (good + ['--to', '127.0.0.1:'], '--to needs ADDRESS:PORT'),
            (good + ['--to', '[::1]:0'], '--to [::1]:0: no server can listen on port 0'),
            (good + ['more'], "unexpected argument 'more'"),
            (good + ['--such'], 'unrecognized option'),
            (['--to', '127.0.0.1:99999999', '--listen', ':0'], '--to needs ADDRESS:PORT'),
            (['--to', own, '--listen', own], 'an address that the proxy itself listens on'),
            (['--to', own, '--listen', own[own.index(':'):]], f'--to {own} is an address'),
            (['--to', mapped, '--listen', own], f'--to {mapped} is an address'),
            (['--to', own.replace('127.0.0.1', '0.0.0.0'), '--listen', own], 'is an address')):
        r = run(*args)
        check(r.returncode == 2, f'{args}: status {r.returncode}')
        check(word in r.stderr, f'{args}: {r.stderr}')
    # Addresses of two families are not the same one.
    r = run('--listen', f'0.0.0.0:{own[10:]}', '--listen', own, '--to', f'[::1]:{own[10:]}')
    check(r.returncode == 1 and 'Address already in use' in r.stderr, r.stderr)
    r = run('--to', 'nowhere.invalid:80', '--listen', ':0')
    check(r.returncode == 1, f'a name that is not known: status {r.returncode}')
    check('--to nowhere.invalid:80' in r.stderr, r.stderr)
    for args in [], good + ['--such']:
        r = run(*args, OPTIONS_FILE='/etc/default/some')
        check('set OPTIONS in /etc/default/some, then run: systemctl restart timerwheel-proxy' in r.stderr,
              r.stderr)
    r = run('--help')
    check(r.returncode == 0 and '--half-closed' in r.stdout, '--help')


def test_no_device():
    """Without a device, the log says how to get one."""
    if os.path.exists('/dev/timerwheel'):
        return
    backend = os.environ.pop('TIMERWHEEL_BACKEND', None)
    try:
        proxy = Proxy(Server(echo).address)
    finally:
        if backend:
            os.environ['TIMERWHEEL_BACKEND'] = backend
    proxy.wait_log('there is no /dev/timerwheel; load the module: modprobe timerwheel')


def test_own_address():
    """An address of this machine, which is not one of lo's by default, is the proxy itself, too."""
    in_own_network(own_address)


def own_address():
    # To the second address of a network the kernel connects from the first.
    for name, address in (b'lo:1', '192.0.2.9'), (b'lo:2', '192.0.2.10'):
        with socket.socket() as s:
            # SIOCSIFADDR
            fcntl.ioctl(s, 0x8916, struct.pack('16sHH4s16x', name, socket.AF_INET, 0,
                                               socket.inet_aton(address)))
        for listen in ':80', '0.0.0.0:80', f'{address}:80':
            r = run('--listen', listen, '--to', f'{address}:80')
            check(r.returncode == 2 and f'--to {address}:80 is an address' in r.stderr, r.stderr)
    for listen in '127.0.0.1:80', '192.0.2.10:80', ':81':
        proxy = Proxy('192.0.2.9:80', '--listen', listen)
        proxy.stop()
    # Any program may listen at this address, and connect to it, but no connection comes back.
    inet = struct.pack('H14x', socket.AF_INET)
    device = ctypes.create_string_buffer(b'lo')
    with socket.socket() as s:
        # SIOCADDRT, a struct rtentry: RTF_UP, the default route
        fcntl.ioctl(s, 0x890b, struct.pack('@L16s16s16sHhLPhPLLH', 0, inet, inet, inet, 1, 0, 0, 0,
                                           0, ctypes.addressof(device), 0, 0, 0))
    with open('/proc/sys/net/ipv4/ip_nonlocal_bind', 'w') as f:
        f.write('1')
    proxy = Proxy('127.0.0.1:1', '--listen', '198.51.100.1:80', '--to', '198.51.100.1:80')
    proxy.stop()


def test_other_namespace():
    """A socket unit's socket is outside of the network namespace of a service that has one: the
    same address is another one there."""
    # Both are outside, whoever uses them.
    with socket.create_server(('127.0.0.1', 0)) as listener, socket.socket() as client:
        in_own_network(lambda: other_namespace(listener, client))


def other_namespace(listener, client):
    address = listener.getsockname()
    with socket.create_server(address) as server:
        proxy = Proxy('%s:%d' % address, passed=[(listener.fileno(), 'x.socket')])
        client.connect(address)
        client.sendall(b'x')
        server.settimeout(10 + PATIENCE)
        far, _ = server.accept()
        check(read_exactly(far, 1) == b'x', 'another byte came')
        far.close()
        client.close()
        proxy.stop()


def test_port_taken():
    taken = socket.create_server(('127.0.0.1', 0))
    r = run('--listen', '127.0.0.1:%d' % taken.getsockname()[1], '--to', '127.0.0.1:1')
    check(r.returncode == 1 and 'choose another port' in r.stderr, r.stderr)
    r = run('--listen', '192.0.2.1:9000', '--to', '127.0.0.1:1')
    check(r.returncode == 1 and 'no interface of this machine has this address' in r.stderr, r.stderr)


def test_messages():
    """Each line begins with a priority; where the deadlines are kept is among them."""
    server = Server(echo)
    proxy = Proxy(server.address)
    client = proxy.connect()
    client.sendall(b'x')
    read_exactly(client, 1)
    client.close()
    proxy.wait_metric('connections', 0)
    backend = 'device' if DEVICE else 'process'
    check(f'backend="{backend}"' in proxy.get()[1], 'the metrics do not say what keeps the deadlines')
    proxy.end()
    for line in proxy.log.splitlines():
        check(line[0] == '<' and line[1] in '3456' and line[2] == '>', f'no priority: {line}')
    check(f'deadlines in the {backend};' in proxy.log, proxy.log)
    check('client=' not in proxy.log, f'a connection was logged: {proxy.log}')


def test_hang_up_unkept():
    """SIGHUP where nobody would keep the connections ends none."""
    server = Server(echo)
    proxy = Proxy(server.address)
    client = proxy.connect()
    proxy.signal(signal.SIGHUP)
    proxy.wait_log('SIGHUP')
    client.sendall(b'x')
    check(read_exactly(client, 1) == b'x', 'another byte came back')


def test_hang_up_managed():
    """SIGHUP of a service manager ends the proxy where nothing can be kept."""
    manager = Manager()
    server = Server(echo)
    proxy = Proxy(server.address, manager=manager, env={'TIMERWHEEL_BACKEND': 'process'})
    proxy.signal(signal.SIGHUP)
    check(proxy.wait() == 0, 'it ended badly')
    manager.close()


def test_stop_with_watchdog():
    """While the last connection is waited for, and one thread has ended, the main thread sleeps."""
    server = Server(echo)
    proxy = Proxy(server.address, env={'WATCHDOG_USEC': '100000'})
    client = proxy.connect()
    client.sendall(b'x')
    check(read_exactly(client, 1) == b'x', 'another byte came back')
    idle = proxy.loads().index(0)
    proxy.signal(signal.SIGTERM)
    proxy.wait_log('stopping')
    until = time.monotonic() + 10 + PATIENCE
    while len(proxy.serving_threads()) > 1:
        check(time.monotonic() < until, 'no thread has ended')
    # Until then it may be told to hang, on a machine that stands still.
    said = len(proxy.log)
    time.sleep(UNIT)
    proxy.sleeps(2 * UNIT, 0.5)
    client.close()
    check(proxy.wait() == 0, 'it ended badly')
    check(f'thread {idle} hangs' not in proxy.log[said:], 'who has ended is said to hang')


def test_other_listener_kept():
    """Another --listen than that of the former proxy is used, and its socket is not."""
    server = Server(echo)
    kept = socket.create_server(('127.0.0.1', 0))
    proxy = Proxy(server.address, passed=[(kept.fileno(), 'listener')])
    client = proxy.connect()
    client.sendall(b'x')
    check(read_exactly(client, 1) == b'x', 'another byte came back')
    check(f'listening on 127.0.0.1:{proxy.port}\n' in proxy.log, 'the log says another address')
    try:
        socket.create_connection(('127.0.0.1', kept.getsockname()[1]))
        check(False, 'the former address is still listened on')
    except OSError:
        pass
    check('no longer listening on 127.0.0.1' in proxy.log, proxy.log)


def test_same_listener_kept():
    """The same --listen: clients who wait at the kept socket are served."""
    server = Server(echo)
    kept = socket.create_server(('127.0.0.1', 0))
    early = socket.create_connection(kept.getsockname())
    early.sendall(b'x')
    Proxy(server.address, passed=[(kept.fileno(), 'listener')], port=kept.getsockname()[1])
    check(read_exactly(early, 1) == b'x', 'another byte came back')


def test_strange_descriptors():
    """What the service manager passes and the proxy never stored is closed, with a warning."""
    server = Server(echo)
    with open('/dev/null') as null:
        proxy = Proxy(server.address, passed=[(null.fileno(), name) for name in (
            'wheel9x', 'wheel 0', 'wheel256', 'wheel4000000000', 'ledger0', 's', 'p', 'x')])
    for name in ('wheel9x', 'wheel 0', 'wheel256', 'wheel4000000000', 'ledger0', 'p', 'x'):
        check(f"unknown descriptor '{name}'" in proxy.log, f'{name} was accepted: {proxy.log}')
    check('>2 threads' in proxy.log, proxy.log)
    client = proxy.connect()
    client.sendall(b'x')
    check(read_exactly(client, 1) == b'x', 'another byte came back')


def test_drain_takes_waiting():
    """A client that the kernel has accepted before the stop is served, not reset."""
    server = Server(echo)
    proxy = Proxy(server.address, grace='1h', threads=1)
    first = proxy.connect()
    first.sendall(b'x')
    read_exactly(first, 1)
    proxy.signal(signal.SIGSTOP)
    clients = [proxy.connect() for _ in range(300)]
    for client in clients:
        client.sendall(b'y')
    proxy.signal(signal.SIGTERM)
    proxy.signal(signal.SIGCONT)
    for client in clients:
        check(read_exactly(client, 1, 5) == b'y', 'another byte came back')
        client.close()
    first.close()
    check(proxy.wait() == 0, 'it ended badly')


def test_drain_when_full():
    """Who waits since there is no room is not taken for the stop: the server has its limit."""
    server = Server(echo)
    proxy = Proxy(server.address, '--max-connections', '2', grace='1h', threads=1)
    clients = [proxy.connect() for _ in range(5)]
    proxy.wait_metric('connections', 2)
    proxy.signal(signal.SIGTERM)
    for client in clients[2:]:
        check(ended(client, 5)[1] == 'reset', 'an end of file came')
    check(proxy.metrics()['accepted_total'] == 2, 'they were taken')
    for client in clients[:2]:
        client.sendall(b'x')
        check(read_exactly(client, 1) == b'x', 'another byte came back')


def test_drain_ends():
    """Clients that come while it stops, as fast as they are taken, do not keep it from that."""
    proxy = Proxy('127.0.0.1:1', threads=1, grace='1h')
    held = Steps(proxy.serving_threads()[0])
    steps = Steps(proxy.pid)
    proxy.signal(signal.SIGTERM)
    came, refused = 0, False
    while came < 6000 and not refused:
        try:
            proxy.connect().close()
            came += 1
            # The beginning of a system call, and its end.
            steps.next(lambda: False)
            steps.next(lambda: False)
        except ConnectionRefusedError:
            refused = True
    proxy.signal(signal.SIGKILL)
    held.over()
    proxy.after_kill()
    check(refused, f'{came} clients were taken')


def test_drain_frees_the_port():
    """The next proxy may listen while this one ends."""
    server = Server(echo)
    proxy = Proxy(server.address, grace='1h')
    old = proxy.connect()
    old.sendall(b'x')
    read_exactly(old, 1)
    proxy.signal(signal.SIGTERM)
    proxy.wait_log('stopping')
    Proxy(server.address, port=proxy.port)
    new = proxy.connect()
    for client in (old, new):
        client.sendall(b'y')
        check(read_exactly(client, 1, 5) == b'y', 'another byte came back')
    old.close()
    check(proxy.wait() == 0, 'it ended badly')


def test_full_notify_socket():
    """A service manager that does not read: signals are obeyed all the same, and what it was to
    hear comes when it reads."""
    server = Server(echo)
    manager = Manager()
    # After it has read that the proxy is ready it reads no more.
    proxy = Proxy(server.address, manager=manager, env={'WATCHDOG_USEC': '60000'}, grace='1h')
    manager.wait_message('READY', '1')
    client = proxy.connect()
    client.sendall(b'x')
    read_exactly(client, 1)
    with manager.lock:
        time.sleep(UNIT)
        keep_busy(manager)
        time.sleep(UNIT)
        proxy.signal(signal.SIGTERM)
        proxy.wait_log('stopping', 5)
        proxy.refuses()
    manager.wait_message('STOPPING', '1')
    client.close()
    check(proxy.wait(5) == 0, 'it ended badly')
    manager.close()


def test_no_notify_socket():
    """What could not be sent is said, in a line that has a priority like all others."""
    manager = Manager()
    proxy = Proxy(Server(echo).address, manager=manager)
    manager.wait_message('READY', '1')
    manager.close()
    proxy.end()
    check("cannot send 'STOPPING=1' to the service manager" in proxy.log, proxy.log)
    for line in proxy.log.splitlines():
        check(re.match('<[3-6]>', line), f'no priority: {line}')


def test_watchdog_barks():
    """While a thread hangs the watchdog is told nothing, and the log says which thread."""
    manager = Manager()
    server = Server(echo)
    proxy = Proxy(server.address, manager=manager, env={'WATCHDOG_USEC': '300000'})
    manager.wait_message('WATCHDOG', '1')
    hung = Steps(proxy.serving_threads()[0])
    proxy.wait_log('thread 0 hangs', 5)
    with manager.lock:
        while manager.receive():
            pass
        manager.messages.clear()
    time.sleep(1)
    with manager.lock:
        check(not any('WATCHDOG' in m for m in manager.messages), 'all is said to be well')
    hung.go_on()
    manager.wait_message('WATCHDOG', '1')
    manager.close()


def test_copied_descriptors():
    """Another process has copies of the sockets, as timerwheel-guard has for a moment, when the
    connections end: the proxy hears no more of them."""
    server = Server(echo)
    proxy = Proxy(server.address, threads=1)
    pairs = [proxy.connect() for _ in range(20)]
    for client in pairs:
        client.sendall(b'x')
        read_exactly(client, 1)
    copies = proxy.copies()
    for client in pairs:
        reset(client)
    proxy.wait_metric('connections', 0)
    proxy.sleeps()
    client = proxy.connect()
    client.sendall(b'y')
    check(read_exactly(client, 1) == b'y', 'another byte came back')
    for fd in copies:
        os.close(fd)


def no_more_descriptors(proxy):
    open_ones = {int(fd) for fd in os.listdir(f'/proc/{proxy.pid}/fd')}
    free = min(set(range(1000)) - open_ones)
    resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE, (free, 20000))


def test_no_descriptors():
    """accept() fails: the proxy pauses, instead of trying on and on, and then serves."""
    server = Server(echo)
    proxy = Proxy(server.address, threads=1)
    steady = proxy.connect()
    steady.sendall(b'x')
    read_exactly(steady, 1)
    no_more_descriptors(proxy)
    late = proxy.connect()
    proxy.wait_log('cannot accept: Too many open files', 5)
    proxy.sleeps(1, 0.3)
    steady.sendall(b'y')
    check(read_exactly(steady, 1) == b'y', 'another byte came back')
    resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE, (20000, 20000))
    late.sendall(b'z')
    check(read_exactly(late, 1, 5) == b'z', 'another byte came back')


def test_drain_without_descriptors():
    """A stop while the proxy pauses since it has no descriptor: it sleeps until its connection
    ends."""
    server = Server()
    proxy = Proxy(server.address, grace='1h', threads=1)
    client = proxy.connect()
    far = server.accept()
    no_more_descriptors(proxy)
    waiting = proxy.connect()
    proxy.wait_log('cannot accept')
    proxy.signal(signal.SIGTERM)
    proxy.wait_log('stopping')
    # Longer than the pause.
    time.sleep(0.5)
    proxy.sleeps()
    for s in client, far, waiting:
        s.close()


def test_limit_is_said():
    """How many connections the limit of descriptors allows, and how to raise it."""
    server = Server(echo)
    proxy = Proxy(server.address, limit=1024)
    said = re.search(r'1024 descriptors are allowed, which is enough for (\d+) connections; .*'
                     r'ulimit -n.*LimitNOFILE=', proxy.log)
    check(said, proxy.log)
    most = int(said[1])
    between(most, 440, 500, 'connections')
    clients = [proxy.connect() for _ in range(most)]
    for client in clients:
        client.sendall(b'x')
        check(read_exactly(client, 1) == b'x', 'another byte came back')
    check(proxy.descriptors() <= 1024 - 64, 'little is left for those who ask for metrics')
    check('no resources' not in proxy.log and 'cannot accept' not in proxy.log, proxy.log)


def complete(*words):
    """What bash offers for the last of these words."""
    here = os.path.dirname(os.path.abspath(__file__))
    r = subprocess.run(['bash', '-c', '. "$0"; _timerwheel_proxy "$1" "$2" "$3"; '
                        'printf "%s\\n" "${COMPREPLY[@]}"', os.path.join(here, '../completion.bash'),
                        Proxy.program, words[-1], words[-2]], stdout=subprocess.PIPE, text=True)
    return r.stdout.split()


def test_completion():
    """All options of --help, and values of some. The manual has the same ones."""
    here = os.path.dirname(os.path.abspath(__file__))
    manual = os.path.join(here, '../../../Documentation/man/timerwheel-proxy.8')
    # In a guest they are not.
    if not shutil.which('bash') or not os.path.exists(manual):
        return
    options = re.findall(r'^  -., (--[a-z-]+)', run('--help').stdout, re.M)
    with open(manual) as f:
        said = re.findall(r'^\.It Fl . , Fl (-[a-z-]+)', f.read(), re.M)
    check(['-' + name for name in said] == options, f'the manual has {said}')
    check(complete('timerwheel-proxy', '') == options, 'other options are offered')
    check(complete('timerwheel-proxy', '--pro') == ['--proxy-protocol'], 'a beginning')
    check(complete('--proxy-protocol', '') == ['v1', 'v2'], 'versions')
    check(complete('--idle', 'n') == ['none'], 'times')
    check('/dev/null' in complete('--log', '/dev/nul'), 'files')
    check(complete('--listen', '') == [], 'addresses')


def test_version():
    r = run('--version')
    check(r.returncode == 0 and re.match(r'timerwheel-proxy \d+\.\d+', r.stdout), r.stdout)


def test_help_not_written():
    for option in ('--help', '--version'):
        with open('/dev/full', 'w') as full:
            r = subprocess.run([Proxy.program, option], stdout=full, stderr=subprocess.PIPE, text=True)
        check(r.returncode == 1 and 'cannot write the output: No space left' in r.stderr,
              f'{option}: status {r.returncode}: {r.stderr}')


def test_no_device():
    """What must work without it, and what is said when it is wanted."""
    if BACKEND == 'process' or not DEVICE:
        r = run('--listen', f'127.0.0.1:{free_port()}', '--to', '127.0.0.1:1',
                TIMERWHEEL_BACKEND='device', TIMERWHEEL_DEVICE='/nonexistent')
        check(r.returncode == 1 and 'cannot open a wheel' in r.stderr, r.stderr)
