# SPDX-License-Identifier: GPL-2.0
"""The proxy as a service: stop, messages to the service manager, metrics, log, options."""

import os
import signal
import socket
import subprocess
import time

from harness import (BACKEND, DEVICE, LATE, METRIC, UNIT, Manager, Proxy, Server, between, check,
                     echo, ended, free_port, read_exactly)


def test_graceful_stop():
    """No new ones; those that are there go on; it ends with the last."""
    server = Server(echo)
    proxy = Proxy(server.address, grace='60s')
    client = proxy.connect()
    client.sendall(b'x')
    read_exactly(client, 1)
    listener = socket.create_connection(('127.0.0.1', proxy.port))
    listener.close()
    proxy.signal(signal.SIGTERM)
    proxy.wait_log('stopping')
    time.sleep(UNIT)
    late = proxy.connect()
    late.sendall(b'z')
    client.sendall(b'y')
    check(read_exactly(client, 1) == b'y', 'another byte came back')
    late.settimeout(UNIT)
    try:
        late.recv(1)
        check(False, 'a new client was served')
    except (socket.timeout, ConnectionResetError):
        pass
    began = time.monotonic()
    client.close()
    check(proxy.wait() == 0, 'it ended badly')
    between(time.monotonic() - began, 0, 1 + LATE, 'it ended after')


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
    between(at - began, 2 * UNIT, 2 * UNIT + LATE, 'closed after')
    check(proxy.wait() == 0, 'it ended badly')


def test_second_signal():
    """Whoever is in a hurry sends it twice."""
    server = Server(echo)
    proxy = Proxy(server.address, grace='60s')
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
    time.sleep(1)
    with manager.lock:
        barks = sum('WATCHDOG' in m for m in manager.messages)
    between(barks, 4, 12, 'messages to the watchdog in a second')
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
    proxy = Proxy(server.address, listener=listener)
    client = socket.create_connection(listener.getsockname(), timeout=5)
    client.sendall(b'x')
    check(read_exactly(client, 1) == b'x', 'another byte came back')


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
    between(m['timeout_lateness_seconds_sum'], 0.000000001, LATE, 'lateness')
    check(proxy.get('/')[0].startswith('HTTP/1.1 404'), 'there is something else')


def test_metrics_without_address():
    """Nobody else's machine can ask: the numbers are on the loopback interface."""
    port = free_port()
    Proxy('127.0.0.1:1', '--metrics', f':{port}')
    found = []
    for name in ('tcp', 'tcp6'):
        with open(f'/proc/net/{name}') as f:
            for line in f.readlines()[1:]:
                address, number = line.split()[1].split(':')
                if int(number, 16) == port and line.split()[3] == '0A':
                    found.append(address)
    check(len(found) == 1 and found[0] in ('0100007F', '0' * 24 + '01000000'),
          f'it listens at {found}')


def test_metrics_slow_reader():
    """Who asks for nothing keeps others waiting, but not for long."""
    server = Server()
    proxy = Proxy(server.address)
    silent = socket.create_connection(('127.0.0.1', proxy.metrics_port))
    began = time.monotonic()
    proxy.get()
    between(time.monotonic() - began, 0, 2 + LATE, 'an answer came after')
    silent.close()


def run(*args, **env):
    return subprocess.run([Proxy.program, *args], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True, timeout=20, env=dict(os.environ, **env))


def test_options():
    """What is not understood is said, with what to do; the status tells if trying again may help."""
    good = ['--listen', '127.0.0.1:0', '--to', '127.0.0.1:1']
    for args, word in (
            ([], '--listen and --to are required'),
            (['--listen', '127.0.0.1:0'], '--listen and --to are required'),
            (good + ['--idle', 'soon'], '--idle needs a time'),
            (good + ['--idle', '0'], '--idle must be greater than 0'),
            (good + ['--connect-timeout', '-1s'], '--connect-timeout needs a time'),
            (good + ['--half-close', '1 week'], '--half-close needs a time'),
            (good + ['--lifetime', '0s'], '--lifetime must be greater than 0'),
            (good + ['--grace', 'x'], '--grace needs a time'),
            (good + ['--store-after', 'x'], '--store-after needs a time'),
            (good + ['--threads', '0'], '--threads needs a number'),
            (good + ['--max-connections', '1e9'], '--max-connections needs a number'),
            (good + ['--metrics', 'here'], '--metrics needs ADDRESS:PORT'),
            (good + ['more'], "unexpected argument 'more'"),
            (good + ['--such'], 'unrecognized option'),
            (['--to', '127.0.0.1:99999999', '--listen', ':0'], '--to needs ADDRESS:PORT')):
        r = run(*args)
        check(r.returncode == 2, f'{args}: status {r.returncode}')
        check(word in r.stderr, f'{args}: {r.stderr}')
    r = run('--to', 'nowhere.invalid:80', '--listen', ':0')
    check(r.returncode == 1, f'a name that is not known: status {r.returncode}')
    check('--to nowhere.invalid:80' in r.stderr, r.stderr)
    r = run('--help')
    check(r.returncode == 0 and '--half-close' in r.stdout, '--help')


def test_port_taken():
    taken = socket.create_server(('127.0.0.1', 0))
    r = run('--listen', '127.0.0.1:%d' % taken.getsockname()[1], '--to', '127.0.0.1:1')
    check(r.returncode == 1 and 'choose another port' in r.stderr, r.stderr)


def test_log():
    """Each line begins with a priority; one for each connection only if asked for."""
    server = Server(echo)
    for args, lines in (([], 0), (['--verbose'], 1)):
        proxy = Proxy(server.address, *args)
        client = proxy.connect()
        client.sendall(b'x')
        read_exactly(client, 1)
        client.close()
        proxy.wait_metric('connections', 0)
        proxy.signal(signal.SIGTERM)
        check(proxy.wait() == 0, 'it ended badly')
        for line in proxy.log.splitlines():
            check(line[0] == '<' and line[1] in '34567' and line[2] == '>', f'no priority: {line}')
        check(proxy.log.count('<7>') == lines, proxy.log)


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
    proxy.signal(signal.SIGTERM)
    proxy.wait_log('stopping')
    time.sleep(UNIT)
    used = proxy.cpu()
    time.sleep(2 * UNIT)
    check(proxy.cpu() - used < UNIT, 'it spins')
    client.close()
    check(proxy.wait() == 0, 'it ended badly')


def test_other_listener_kept():
    """A listening socket that was kept is used, and said not to be that of --listen."""
    server = Server(echo)
    with socket.create_server(('127.0.0.1', 0)) as kept:
        proxy = Proxy(server.address, listener=kept, listener_name='listener')
        proxy.wait_log('listens elsewhere')
        with socket.create_connection(kept.getsockname()) as client:
            client.sendall(b'x')
            check(read_exactly(client, 1) == b'x', 'another byte came back')



def test_no_device():
    """What must work without it, and what is said when it is wanted."""
    if BACKEND == 'process' or not DEVICE:
        r = run('--listen', f'127.0.0.1:{free_port()}', '--to', '127.0.0.1:1',
                TIMERWHEEL_BACKEND='device', TIMERWHEEL_DEVICE='/nonexistent')
        check(r.returncode == 1 and 'cannot open a wheel' in r.stderr, r.stderr)
