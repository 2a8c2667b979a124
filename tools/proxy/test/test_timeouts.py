# SPDX-License-Identifier: GPL-2.0
"""That each timeout fires, in time and not early, and that bytes put it off."""

import ctypes
import select
import signal
import socket
import struct
import threading
import time

from harness import (PATIENCE, UNIT, Failure, Proxy, Server, Stalled, Steps, between, check, echo,
                     ended, free_port, full_server, in_own_network, in_time, late, pattern,
                     raise_descriptors, read_exactly, read_to_reset, reset, small_reader,
                     stopped)

LONG = '1h'


def test_idle():
    """A silent client: both sides see an end of file."""
    server = Server()
    proxy = Proxy(server.address, idle=2 * UNIT)
    began = time.monotonic()
    client = proxy.connect()
    far = server.accept()
    at, how = ended(client, 10)
    between(at - began, 2 * UNIT, 2 * UNIT + late(), 'the client was closed after')
    check(how == 'eof', 'the client saw a reset')
    check(ended(far, 5)[1] == 'eof', 'the server saw a reset')
    proxy.wait_metric('connections', 0)
    m = proxy.metrics()
    check(m['closed_total{end="idle-timeout"}'] == 1, 'not counted as idle')


def test_cookies_downwards():
    """A connection whose cookie is negative ends in time, too."""
    server = Server()
    proxy = Proxy(server.address, threads=1, idle=2 * UNIT)
    steps = Steps(proxy.serving_threads()[0])
    with in_time(2 * UNIT):
        client = proxy.connect()
        steps.cookies_downwards(lambda: select.select([server.socket], [], [], 0)[0])
        far = server.accept()
        sent = time.monotonic()
        client.sendall(b'x')
        read_exactly(far, 1)
    at, _ = ended(client, 10)
    between(at - sent, 2 * UNIT, 2 * UNIT + late(), 'closed after the last byte by')


def idle_after_bytes(talker, listener, began):
    """When the last byte was sent: each within 2 * UNIT of the one before, or of @began."""
    sent = began
    for _ in range(8):
        with in_time(2 * UNIT, sent):
            # Before: the proxy may pass the byte on before this process runs again.
            sent = time.monotonic()
            talker.sendall(b'x')
            read_exactly(listener, 1)
        time.sleep(UNIT / 2)
    return sent


def test_refresh_by_client():
    """Twice as long as the idle time with a byte now and then, then silence."""
    server = Server()
    proxy = Proxy(server.address, idle=2 * UNIT)
    began = time.monotonic()
    client = proxy.connect()
    far = server.accept()
    sent = idle_after_bytes(client, far, began)
    at, _ = ended(client, 10)
    between(at - sent, 2 * UNIT, 2 * UNIT + late(), 'closed after the last byte by')


def test_refresh_by_server():
    server = Server()
    proxy = Proxy(server.address, idle=2 * UNIT)
    began = time.monotonic()
    client = proxy.connect()
    far = server.accept()
    sent = idle_after_bytes(far, client, began)
    at, _ = ended(client, 10)
    between(at - sent, 2 * UNIT, 2 * UNIT + late(), 'closed after the last byte by')


def test_half_close():
    """Sooner than the idle time once one side has said all."""
    server = Server()
    proxy = Proxy(server.address, idle=LONG, half_closed=2 * UNIT)
    client = proxy.connect()
    far = server.accept()
    time.sleep(UNIT)
    began = time.monotonic()
    client.shutdown(socket.SHUT_WR)
    check(ended(far, 5)[1] == 'eof', 'the end of file was not passed on')
    at, how = ended(client, 10)
    between(at - began, 2 * UNIT, 2 * UNIT + late(), 'closed after')
    check(how == 'eof', 'the client saw a reset')
    proxy.wait_metric('closed_total{end="half-closed-timeout"}', 1)


def test_half_close_by_server():
    server = Server()
    proxy = Proxy(server.address, idle=LONG, half_closed=2 * UNIT)
    client = proxy.connect()
    far = server.accept()
    client.sendall(b'x')
    read_exactly(far, 1)
    began = time.monotonic()
    far.shutdown(socket.SHUT_WR)
    check(ended(client, 5)[1] == 'eof', 'the end of file was not passed on')
    at, _ = ended(far, 10)
    between(at - began, 2 * UNIT, 2 * UNIT + late(), 'closed after')


def test_half_close_refresh():
    """An answer that takes longer than --half-closed, but flows."""
    server = Server()
    proxy = Proxy(server.address, idle=LONG, half_closed=2 * UNIT)
    client = proxy.connect()
    far = server.accept()
    began = time.monotonic()
    client.shutdown(socket.SHUT_WR)
    sent = idle_after_bytes(far, client, began)
    at, _ = ended(client, 10)
    between(at - sent, 2 * UNIT, 2 * UNIT + late(), 'closed after the last byte by')


def read_in_steps(client, far, data, last):
    """The client takes the bytes over a long time, a part within each idle time. The proxy has
    nothing to do: all bytes are in its socket, from which the kernel sends. @last: then the server
    does this."""
    far.sendall(data)
    last()
    got, steps = b'', 16
    for i in range(1, steps + 1):
        want = len(data) * i // steps - len(got)
        got += read_exactly(client, want)
        time.sleep(UNIT / 2)
    check(got == data, 'other bytes came')


def test_idle_slow_reader():
    """A reader that takes bytes keeps the connection, even if nobody writes."""
    server = Server()
    proxy = Proxy(server.address, idle=4 * UNIT)
    client = small_reader(proxy)
    far = server.accept()
    began = time.monotonic()
    with in_time(12 * UNIT, began, many=True):
        read_in_steps(client, far, pattern(2 << 20, 'steps'), lambda: None)
    check(time.monotonic() - began > 8 * UNIT, 'it did not last twice the idle time')
    far.sendall(b'z')
    check(read_exactly(client, 1) == b'z', 'another byte came')
    at, how = ended(client, 10)
    check(how == 'eof', 'the client saw a reset')
    proxy.wait_metric('closed_total{end="idle-timeout"}', 1)


def test_half_close_slow_reader():
    """So does a reader after the server has sent all and closed."""
    server = Server()
    proxy = Proxy(server.address, idle=LONG, half_closed=4 * UNIT)
    client = small_reader(proxy)
    far = server.accept()
    with in_time(12 * UNIT, many=True):
        read_in_steps(client, far, pattern(2 << 20, 'steps'), far.close)
    check(ended(client, 10)[1] == 'eof', 'the client saw a reset')
    client.close()
    proxy.wait_metric('closed_total{end="server"}', 1)


def test_idle_reader_stops():
    """A reader that takes nothing is reset, and so is the writer, after at most twice the idle
    time: half an answer must not end as a whole one."""
    idle = 8 * UNIT
    server = Server()
    proxy = Proxy(server.address, idle=idle)
    client = small_reader(proxy)
    far = server.accept()
    data = pattern(2 << 20, 'stops')
    began = time.monotonic()
    far.sendall(data)
    proxy.wait_metric('closed_total{end="idle-timeout"}', 1)
    between(time.monotonic() - began, idle, 2 * idle + late(), 'closed after')
    # Its answers to the kernel's probes do not count as progress. They can be mistaken for it once.
    check(proxy.metrics()['postponed_total'] <= 1, 'it was postponed more than once')
    got = read_to_reset(client)
    check(data.startswith(got) and len(got) < len(data), f'{len(got)} bytes came')
    check(ended(far, 5)[1] == 'reset', 'the server saw an end of file')


def test_idle_keepalive():
    """Probes that a silent client sends are not bytes: they do not put off its end."""
    idle = 8 * UNIT
    server = Server()
    proxy = Proxy(server.address, idle=idle)
    client = proxy.connect()
    for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1)):
        client.setsockopt(socket.IPPROTO_TCP, option, value)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    far = server.accept()
    began = time.monotonic()
    at, how = ended(client, 10 * idle)
    between(at - began, idle, idle + late(), 'closed after')
    check(how == 'eof', 'the client saw a reset')
    far.close()


def losing_listener(byte):
    """A listening socket, at which each segment that begins with @byte is lost."""
    def step(code, if_true, if_false, value):
        return struct.pack('HBBI', code, if_true, if_false, value)

    program = [
        step(0x30, 0, 0, 12),           # the length of the header is in this byte
        step(0x54, 0, 0, 0xf0),
        step(0x74, 0, 0, 2),
        step(0x07, 0, 0, 0),
        step(0x80, 0, 0, 0),            # the length of the segment
        step(0x1c, 0, 0, 0),
        step(0x15, 2, 0, 0),            # a segment without bytes
        step(0x50, 0, 0, 0),            # the first byte
        step(0x15, 1, 0, byte[0]),
        step(0x06, 0, 0, 0xffffffff),
        step(0x06, 0, 0, 0),
    ]
    listener = socket.create_server(('127.0.0.1', 0))
    code = ctypes.create_string_buffer(b''.join(program))
    # SO_ATTACH_FILTER. The accepted sockets inherit it.
    listener.setsockopt(socket.SOL_SOCKET, 26,
                        struct.pack('HP', len(program), ctypes.addressof(code)))
    return listener


def test_end_after_loss():
    """A client sends three segments, and the network loses the second one. Each timeout must end in a
    reset, because the third segment has arrived, and the server does not have its bytes."""
    for timeout in 'idle', 'half-closed', 'lifetime':
        listener = losing_listener(b'2')
        server = Server()
        proxy = Proxy(server.address, f'--{timeout}', f'{3 * UNIT * 1000:.0f}ms',
                      passed=[(listener.fileno(), 'proxy.socket')])
        client = socket.create_connection(listener.getsockname())
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        far = server.accept()
        if timeout == 'half-closed':
            far.shutdown(socket.SHUT_WR)
            check(ended(client, 5)[1] == 'eof', 'the end of file was not forwarded')
        for segment in b'1', b'2', b'3':
            client.sendall(1000 * segment)
        check(read_to_reset(far) == 1000 * b'1', 'the server has other bytes')
        if timeout != 'half-closed':
            check(ended(client, 5)[1] == 'reset', 'the client saw an end of file')
        check(proxy.metrics()[f'closed_total{{end="{timeout}-timeout"}}'] == 1,
              f'not counted as {timeout}')


def test_end_after_repair():
    """The network loses a segment and delivers it later. The client then shuts down sending. All
    bytes have arrived, so --half-closed ends the connection with an end of file."""
    listener = losing_listener(b'2')
    server = Server()
    proxy = Proxy(server.address, half_closed=2 * UNIT,
                  passed=[(listener.fileno(), 'proxy.socket')])
    client = socket.create_connection(listener.getsockname())
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    far = server.accept()
    for segment in b'1', b'2', b'3':
        client.sendall(1000 * segment)
    read_exactly(far, 1000)
    for fd in proxy.copies():
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fd) as s:
                # SO_DETACH_FILTER
                s.setsockopt(socket.SOL_SOCKET, 27, 0)
        except OSError:
            pass                # no socket, or no filter
    read_exactly(far, 2000)
    # Otherwise the kernel may merge the end of file with bytes that the proxy has not yet taken.
    proxy.wait_metric('bytes_total{from="client"}', 3000)
    client.shutdown(socket.SHUT_WR)
    check(ended(far, 5)[1] == 'eof', 'the end of file was not forwarded')
    check(ended(client, 5)[1] == 'eof', 'the client saw a reset')
    check(proxy.metrics()['closed_total{end="half-closed-timeout"}'] == 1,
          'not counted as half-closed')


def test_kept_syn():
    """The kernel keeps the SYN of an IPv6 client while the connection is open, because it sends the
    client's flow label back. The SYN has no bytes, so an idle connection ends with an end of file."""
    in_own_network(kept_syn)


def kept_syn():
    with open('/proc/sys/net/ipv6/flowlabel_reflect', 'w') as f:
        f.write('1')
    listener = socket.create_server(('::1', 0), family=socket.AF_INET6)
    server = Server()
    proxy = Proxy(server.address, idle=2 * UNIT, passed=[(listener.fileno(), 'proxy.socket')])
    client = socket.create_connection(listener.getsockname()[:2])
    far = server.accept()
    check(ended(client, 5)[1] == 'eof', 'the client saw a reset')
    check(ended(far, 5)[1] == 'eof', 'the server saw a reset')
    check(proxy.metrics()['closed_total{end="idle-timeout"}'] == 1, 'not counted as idle')


def test_lifetime_resets():
    """The lifetime ends while bytes are under way: a reset; else an end of file."""
    server = Server()
    proxy = Proxy(server.address, lifetime=3 * UNIT)
    client, quiet = small_reader(proxy), None
    far = server.accept()
    quiet = proxy.connect()
    server.accept()
    data = pattern(2 << 20, 'life')
    far.sendall(data)
    proxy.wait_metric('closed_total{end="lifetime-timeout"}', 2)
    check(len(read_to_reset(client)) < len(data), 'all bytes came')
    check(ended(quiet, 5)[1] == 'eof', 'a connection with nothing under way was reset')


def test_stop_resets():
    """So does a stop whose time of grace is over."""
    server = Server()
    proxy = Proxy(server.address, grace=UNIT)
    client = small_reader(proxy)
    far = server.accept()
    data = pattern(2 << 20, 'stop')
    far.sendall(data)
    proxy.stop()
    check(len(read_to_reset(client)) < len(data), 'all bytes came')


def ends_in_transfer(proxy, server, stop):
    """A server sends, and the client has read each byte so far when the proxy ends the connection.
    The next byte can be in the network, so the client must see a reset. stop() is called after some
    bytes."""
    client = proxy.connect()
    far = server.accept()
    for n in range(4000):
        sent = time.monotonic()
        try:
            far.sendall(b'x')
            if not client.recv(1):
                # Without a byte for this time, which is the shortest retransmission timeout, the
                # transfer has paused.
                with in_time(0.2, sent):
                    raise Failure(f'the client saw an end of file after {n} bytes')
        except ConnectionResetError:
            return
        except BrokenPipeError:
            with in_time(0.2, sent):
                check(ended(client, 5)[1] == 'reset', f'an end of file came after {n} bytes')
            return
        if n == 20:
            stop()
        time.sleep(0.005)
    raise Failure('the connection has not ended')


def test_lifetime_in_transfer():
    """The lifetime ends in the middle of an answer, while no byte is in a socket."""
    server = Server()
    proxy = Proxy(server.address, lifetime=3 * UNIT)
    for _ in range(3):
        ends_in_transfer(proxy, server, lambda: None)


def test_stop_in_transfer():
    """So does the grace time of a stop."""
    server = Server()
    proxy = Proxy(server.address, grace='0')
    ends_in_transfer(proxy, server, lambda: proxy.signal(signal.SIGTERM))


def servers_reset(proxy, server, later):
    """Servers take a byte each and reset, and the proxy has seen few of the resets when it ends the
    connections: the clients must see a reset, because their bytes were not read. later() is called
    while the proxy is stopped."""
    pairs = []
    # More than the events of a turn hold.
    for _ in range(1200):
        client = proxy.connect()
        client.sendall(b'x')
        far = server.accept()
        far.recv(1, socket.MSG_PEEK)
        pairs.append((client, far))
    with stopped(proxy):
        later(pairs)
    hows = [ended(client, 10)[1] for client, _ in pairs]
    check(hows.count('eof') == 0, f'{hows.count("eof")} clients saw an end of file')


def test_lifetime_after_reset():
    """The lifetime ends before the proxy has seen that the server is gone."""
    raise_descriptors(8000)
    server = Server()
    proxy = Proxy(server.address, threads=1, lifetime=12 * UNIT)

    def later(pairs):
        # The timer is the first of all that epoll has to tell.
        time.sleep(13 * UNIT)
        for _, far in pairs:
            reset(far)

    with in_time(24 * UNIT, many=True):
        servers_reset(proxy, server, later)


def test_stop_after_reset():
    """So does a stop."""
    raise_descriptors(8000)
    server = Server()
    proxy = Proxy(server.address, threads=1, grace='0')

    def later(pairs):
        for _, far in pairs:
            reset(far)
        proxy.signal(signal.SIGTERM)

    servers_reset(proxy, server, later)


def test_connect_after_reset():
    """A client sends and resets while the server does not answer: the timeout is the same."""
    server, fill = full_server()
    proxy = Proxy(server.address, connect_timeout=2 * UNIT)
    began = time.monotonic()
    client = proxy.connect()
    client.sendall(b'x')
    proxy.wait_metric('wheel_armed_total', 1)
    reset(client)
    proxy.wait_metric('closed_total{end="connect-timeout"}', 1)
    check(time.monotonic() - began >= 2 * UNIT, 'it ended early')
    for s in fill:
        s.close()


def test_connect_resets():
    """A server that does not answer: a client that has sent bytes sees a reset, not an end."""
    server, fill = full_server()
    proxy = Proxy(server.address, connect_timeout=2 * UNIT)
    client = proxy.connect()
    client.sendall(b'x')
    check(ended(client, 10)[1] == 'reset', 'the client saw an end of file')
    for s in fill:
        s.close()


def test_lifetime():
    """However busy a connection is."""
    server = Server(echo)
    proxy = Proxy(server.address, idle=2 * UNIT, lifetime=5 * UNIT)
    began = sent = time.monotonic()
    client = proxy.connect()
    client.settimeout(10 + PATIENCE)
    try:
        while time.monotonic() < began + 20 * UNIT + PATIENCE:
            # It is not ended as idle.
            with in_time(2 * UNIT, sent):
                sent = time.monotonic()
                client.sendall(b'x')
                if not client.recv(1):
                    break
            time.sleep(UNIT / 10)
    except (ConnectionResetError, BrokenPipeError):
        pass
    between(time.monotonic() - began, 5 * UNIT, 5 * UNIT + late(), 'closed after')
    check(proxy.metrics()['closed_total{end="lifetime-timeout"}'] == 1, 'not counted as lifetime')


def test_connect():
    """A server that does not answer: its queue is full."""
    server, fill = full_server()
    proxy = Proxy(server.address, connect_timeout=2 * UNIT)
    began = time.monotonic()
    client = proxy.connect()
    at, _ = ended(client, 10)
    between(at - began, 2 * UNIT, 2 * UNIT + late(), 'closed after')
    check(proxy.metrics()['closed_total{end="connect-timeout"}'] == 1, 'not counted as connect')
    for s in fill:
        s.close()


def test_connect_not_later():
    """The connect timeout is over with the connect, not with the first byte."""
    server = Server()
    proxy = Proxy(server.address, connect_timeout=2 * UNIT, idle=LONG)
    with in_time(2 * UNIT):
        client = proxy.connect()
        far = server.accept()
        # For the connect, and for what follows.
        proxy.wait_metric('wheel_armed_total', 2)
    client.settimeout(4 * UNIT)
    try:
        client.recv(1)
    except socket.timeout:
        far.close()
        return
    raise Failure('closed by the connect timeout')


def test_refused():
    """No server: the client hears at once, by a reset."""
    proxy = Proxy(f'127.0.0.1:{free_port()}')
    began = time.monotonic()
    try:
        at, how = ended(proxy.connect(), 10)
    except ConnectionResetError:
        # Before connect() has returned.
        at, how = time.monotonic(), 'reset'
    check(how == 'reset', 'the client saw an end of file')
    between(at - began, 0, late(), 'closed after')
    proxy.wait_metric('closed_total{end="refused"}', 1)
    # The advice. It is logged after the event is counted.
    proxy.wait_log('is it running?')


def test_stopped_for_longer():
    """Stopped for longer than the idle time: whoever has sent meanwhile is served, and stays. So
    many that the events of a turn do not hold all of them."""
    raise_descriptors(4000)
    server = Server(echo)
    proxy = Proxy(server.address, threads=1, idle=12 * UNIT)
    with in_time(12 * UNIT, many=True):
        clients = [proxy.connect() for _ in range(600)]
        for client in clients:
            client.sendall(b'x')
            read_exactly(client, 1)
        proxy.signal(signal.SIGSTOP)
    # The timeouts are the first of all that epoll has to tell.
    time.sleep(13 * UNIT)
    for client in clients:
        client.sendall(b'y')
    with in_time(12 * UNIT, many=True):
        proxy.signal(signal.SIGCONT)
        for client in clients:
            check(read_exactly(client, 1, 10) == b'y', 'another byte came back')
        for client in clients:
            client.sendall(b'z')
            check(read_exactly(client, 1, 10) == b'z', 'another byte came back')
    check(proxy.metrics()['closed_total{end="idle-timeout"}'] == 0, 'some were closed as idle')
    for client in clients:
        client.close()


def test_none():
    """No limit at all: nothing is closed, and bytes do not harm."""
    server = Server()
    proxy = Proxy(server.address, idle='none', half_closed='none', lifetime='none')
    client = proxy.connect()
    far = server.accept()
    client.sendall(b'x')
    read_exactly(far, 1)
    client.shutdown(socket.SHUT_WR)
    check(ended(far, 5)[1] == 'eof', 'the end of file was not passed on')
    time.sleep(2 * UNIT)
    far.sendall(b'y')
    check(read_exactly(client, 1) == b'y', 'another byte came')


def test_silent_and_slow():
    """50 silent ones are closed in time while 50 that speak now and then stay."""
    idle = 6 * UNIT
    server = Server(echo)
    proxy = Proxy(server.address, idle=idle, threads=3)
    times = []

    def be_silent():
        began = time.monotonic()
        times.append(ended(proxy.connect(), 20)[0] - began)

    silent = [threading.Thread(target=be_silent) for _ in range(50)]
    for t in silent:
        t.start()
    began = time.monotonic()
    slow = {proxy.connect(): began for _ in range(50)}
    stop = threading.Event()
    trouble = []

    def speak():
        while not stop.wait(UNIT):
            for client in slow:
                before, slow[client] = slow[client], time.monotonic()
                try:
                    with in_time(idle, before, many=True):
                        client.sendall(b'x')
                        read_exactly(client, 1)
                except (OSError, Failure, Stalled) as e:
                    trouble.append(e)
                    return

    speaker = threading.Thread(target=speak)
    speaker.start()
    for t in silent:
        t.join()
    time.sleep(idle)
    stop.set()
    speaker.join()
    check(len(times) == 50, 'not all silent ones were closed')
    for t in times:
        between(t, idle, idle + late(), 'a silent one was closed after')
    if trouble and isinstance(trouble[0], Stalled):
        raise trouble[0]
    check(not trouble, f'one that spoke was closed: {trouble[:1]}')
    with in_time(idle, min(slow.values())):
        check(proxy.metrics()['connections'] == 50, 'the slow ones are not all there')
