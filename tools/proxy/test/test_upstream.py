# SPDX-License-Identifier: GPL-2.0
"""Several addresses to listen on, several servers, and the header of the PROXY protocol."""

import ipaddress
import os
import select
import socket
import struct
import time

from harness import (PATIENCE, UNIT, Proxy, Server, between, check, echo, ended, free_port,
                     full_server, late, own_network, read_exactly, reset, set_ports)


def served(address):
    with socket.create_connection(address, timeout=5 + PATIENCE) as client:
        client.sendall(b'x')
        check(read_exactly(client, 1) == b'x', f'another byte came back from {address}')


def test_several_listeners():
    """Each --listen is listened on, and said in the log."""
    ports = [free_port() for _ in range(3)]
    args = [word for port in ports for word in ('--listen', f'127.0.0.1:{port}')]
    proxy = Proxy(Server(echo).address, *args)
    for port in [proxy.port] + ports:
        served(('127.0.0.1', port))
        check(f'listening on 127.0.0.1:{port}\n' in proxy.log, proxy.log)


def test_dual_stack():
    """:PORT is any address of IPv4 and IPv6; [::]:PORT leaves IPv4 to others."""
    port, other = free_port(), free_port()
    proxy = Proxy(Server(echo).address, '--listen', f':{port}', '--listen', f'[::]:{other}')
    for address in ('127.0.0.1', '::1'):
        served((address, port))
    served(('::1', other))
    try:
        served(('127.0.0.1', other))
        check(False, 'IPv4 is served where IPv6 was asked for')
    except ConnectionRefusedError:
        pass
    for p in (port, other):
        check(f'listening on [::]:{p}\n' in proxy.log, proxy.log)


def test_round_robin():
    """Each of several servers gets as many clients."""
    servers = [Server() for _ in range(3)]
    proxy = Proxy([server.address for server in servers], threads=1)
    clients = [proxy.connect() for _ in range(9)]
    for server in servers:
        for _ in range(3):
            server.accept().close()
    for client in clients:
        client.close()
    proxy.wait_metric('connections', 0)


def test_next_server():
    """Where one refuses, the next one serves."""
    servers = [f'127.0.0.1:{free_port()}', Server(echo).address, f'127.0.0.1:{free_port()}']
    proxy = Proxy(servers)
    for _ in range(12):
        served(('127.0.0.1', proxy.port))
    proxy.wait_metric('connections', 0)
    m = proxy.metrics()
    check(m['closed_total{end="refused"}'] == 0, 'clients were refused')
    proxy.wait_log('is it running?')


def test_all_servers_refuse():
    proxy = Proxy([f'127.0.0.1:{free_port()}' for _ in range(3)], connect_timeout='1h')
    for _ in range(3):
        try:
            how = ended(proxy.connect(), 10)[1]
        except ConnectionResetError:
            how = 'reset'
        check(how == 'reset', 'the client saw an end of file')
    proxy.wait_metric('closed_total{end="refused"}', 3)
    # Timers are removed at the end of the turn, and not by falling due.
    proxy.wait_metric('wheel_pending', 0)


def test_connect_failures():
    """They are counted, whether the kernel knows at once or after a while."""
    proxy = Proxy(['255.255.255.255:1', f'127.0.0.1:{free_port()}'])
    for _ in range(3):
        try:
            ended(proxy.connect(), 10)
        except ConnectionResetError:
            pass
    proxy.wait_metric('closed_total{end="refused"}', 3)
    check(proxy.metrics()['connect_failures_total'] == 6, 'some are not counted')


def test_next_server_after_timeout():
    """Where one does not answer, the next one serves, after the time to connect and with its own."""
    silent, fill = full_server()
    proxy = Proxy([silent.address, Server(echo).address], threads=1, connect_timeout=2 * UNIT,
                  idle=10 * UNIT)
    longest = 0
    for _ in range(2):
        began = time.monotonic()
        served(('127.0.0.1', proxy.port))
        longest = max(longest, time.monotonic() - began)
    between(longest, 2 * UNIT, 2 * UNIT + late(), 'served after')
    check(proxy.metrics()['connect_failures_total'] == 1, 'not counted')
    for s in fill:
        s.close()


def test_reset_while_connecting():
    """A client that breaks the connection while the proxy still connects makes room at once; one
    that has only sent all it has to say does not."""
    silent, fill = full_server()
    proxy = Proxy(silent.address, '--max-connections', '4', threads=1, connect_timeout='1h')
    clients = [proxy.connect() for _ in range(4)]
    proxy.wait_metric('connections', 4)
    clients[0].shutdown(socket.SHUT_WR)
    for client in clients[1:]:
        reset(client)
    began = time.monotonic()
    proxy.wait_metric('connections', 1, 10)
    between(time.monotonic() - began, 0, late(), 'there was room after')
    proxy.wait_metric('closed_total{end="client-reset"}', 3)
    time.sleep(UNIT)
    check(proxy.metrics()['connections'] == 1, 'one that has said all was closed')
    for s in fill:
        s.close()


# ---- PROXY protocol ---------------------------------------------------------

def parse_v1(conn):
    """Source and destination, each (address, port)."""
    line = b''
    while not line.endswith(b'\r\n'):
        line += read_exactly(conn, 1, 5)
        check(len(line) <= 107, f'too long a header: {line}')
    words = line.decode().split()
    check(words[0] == 'PROXY' and words[1] in ('TCP4', 'TCP6'), f'the header is {line}')
    family = socket.AF_INET if words[1] == 'TCP4' else socket.AF_INET6
    for word in words[2:4]:
        socket.inet_pton(family, word)
    return (words[2], int(words[4])), (words[3], int(words[5]))


def parse_v2(conn):
    head = read_exactly(conn, 16, 5)
    check(head[:12] == b'\r\n\r\n\0\r\nQUIT\n', f'the signature is {head[:12]}')
    check(head[12] == 0x21, f'version and command are {head[12]:x}')
    length = struct.unpack('>H', head[14:])[0]
    check((head[13], length) in ((0x11, 12), (0x21, 36)), f'family {head[13]:x}, {length} bytes')
    data = read_exactly(conn, length, 5)
    n = (length - 4) // 2
    hosts = [str(ipaddress.ip_address(data[i * n:(i + 1) * n])) for i in range(2)]
    ports = struct.unpack('>HH', data[-4:])
    return (hosts[0], ports[0]), (hosts[1], ports[1])


def check_header(parse, version):
    server = Server()
    port = free_port()
    proxy = Proxy(server.address, '--listen', f':{port}', proxy_protocol=version)
    for address in (('127.0.0.1', proxy.port), ('127.0.0.1', port), ('::1', port)):
        client = socket.create_connection(address, timeout=5 + PATIENCE)
        # Before the header is there, and after.
        client.sendall(b'early')
        far = server.accept()
        check(parse(far) == (client.getsockname()[:2], address), 'another address came')
        check(read_exactly(far, 5, 5) == b'early', 'other bytes came')
        client.sendall(b'late')
        check(read_exactly(far, 4, 5) == b'late', 'other bytes came')
        far.sendall(b'answer')
        check(read_exactly(client, 6, 5) == b'answer', 'other bytes came')
        client.close()
        far.close()
    proxy.wait_metric('connections', 0)
    check(proxy.metrics()['bytes_total{from="client"}'] == 27, 'the header was counted')


def test_proxy_protocol_v1():
    check_header(parse_v1, 'v1')


def test_proxy_protocol_v2():
    check_header(parse_v2, 'v2')


def test_proxy_protocol_next_server():
    """The header goes to the server that has taken the connection, once."""
    server = Server()
    proxy = Proxy([f'127.0.0.1:{free_port()}', server.address], proxy_protocol='v1')
    for _ in range(4):
        client = proxy.connect()
        client.sendall(b'x')
        far = server.accept()
        check(parse_v1(far)[0] == client.getsockname(), 'another address came')
        check(read_exactly(far, 1, 5) == b'x', 'another byte came')


if os.geteuid() == 0:
    def with_ports(what, *args, to=('127.0.0.1',)):
        """What a proxy does that has 8 local ports."""
        with own_network():
            servers = [socket.create_server((host, 9000)) for host in to]
            proxy = Proxy([f'{host}:9000' for host in to], *args, threads=1, start=False)
            set_ports(40000, 40007)
            proxy.start()
            what(proxy)
            proxy.stop()
            for server in servers:
                server.close()

    def test_local_ports_used_up():
        """More connections than local ports: a warning at the start, and advice when it happens."""
        def what(proxy):
            check('<4>--max-connections is 20, but there are local ports for only 8 connections' in
                  proxy.log, proxy.log)
            clients = [socket.create_connection(('127.0.0.1', proxy.port),
                                                source_address=('127.0.0.1', 600 + i))
                       for i in range(9)]
            proxy.wait_metric('connections', 8)
            proxy.wait_log('all local ports are in use')
            check('widen net.ipv4.ip_local_port_range or add server' in proxy.log, proxy.log)
            got = select.select(clients, [], [], 5 + PATIENCE)[0]
            check(len(got) == 1 and ended(got[0], 5)[1] == 'reset', 'there is no client with a reset')

        with_ports(what, '--max-connections', '20')

    def test_advice_depends_on_error():
        """A network that cannot be reached is not taken for a server that is not running."""
        with own_network():
            proxy = Proxy('192.0.2.1:9000')
            check(ended(proxy.connect(), 5)[1] == 'reset', 'the client saw an end of file')
            proxy.wait_log('Network is unreachable; check the address, the route and firewalls')
            proxy.stop()

    def test_local_ports_limit():
        """Without --max-connections there are as many connections as ports, for each server."""
        for to, most in ((['127.0.0.1'], 8), (['127.0.0.1', '127.0.0.2'], 16)):
            with_ports(lambda proxy: check(f'at most {most} connections' in proxy.log, proxy.log),
                       to=to)

    def test_local_ports_same_server():
        """A server that is named twice has its ports once."""
        with_ports(lambda proxy: check('at most 8 connections' in proxy.log, proxy.log),
                   '--to', '127.0.0.1:9000')

    def test_local_ports_suffice():
        """No word about it."""
        with_ports(lambda proxy: check('local ports' not in proxy.log, proxy.log),
                   '--max-connections', '8')
