# SPDX-License-Identifier: GPL-2.0
"""Runs scripts of differ_script, many at once in one thread, and judges what each end saw."""

import collections
import errno
import fcntl
import heapq
import random
import select
import socket
import struct
import termios
import time

from differ_script import OTHER, SMALL

SIOCOUTQNSD = 0x894B
FILL = 2 << 20          # what `fill' writes at most
LENGTH = 8 << 20        # more than a script sends in one direction, and the largest base
LOST = 10               # how long an end waits for a reset that may be lost, s
PAUSES = 50             # what a read pauses at most
PATTERN = random.Random(35).randbytes(LENGTH)
HEADER = 28             # of the PROXY protocol, version 2, for IPv4
TAG = b'\0sentinel of differ'
FAILURES = select.EPOLLERR | select.EPOLLHUP
HUP = FAILURES | select.EPOLLRDHUP


def queued(sock, what):
    return struct.unpack('i', fcntl.ioctl(sock, what, b'\0\0\0\0'))[0]


class Loop:
    """Tasks are generators. Each yields (socket or None, events, seconds or None) and goes on after
    an event of the socket, after that time, or when it is woken."""

    def __init__(self):
        self.epoll = select.epoll()
        self.ready = collections.deque()
        self.timers = []
        self.waits = {}         # descriptor: task
        self.turn = 0

    def start(self, generator):
        task = Task(generator)
        self.wake(task)
        return task

    def wake(self, task):
        if not task.queued and not task.done:
            task.queued = True
            self.ready.append(task)

    def run(self, until):
        while not until():
            if not self.ready:
                self.wait()
            while self.ready:
                self.step(self.ready.popleft())

    def wait(self):
        timeout = 1
        now = time.monotonic()
        if self.timers:
            timeout = max(0, min(timeout, self.timers[0][0] - now))
        for fd, _ in self.epoll.poll(timeout):
            task = self.waits.get(fd)
            if task:
                self.wake(task)
        now = time.monotonic()
        while self.timers and self.timers[0][0] <= now:
            _, _, task, number = heapq.heappop(self.timers)
            if task.number == number:
                self.wake(task)

    def step(self, task):
        task.queued = False
        if task.done:
            return
        task.number += 1
        if task.fd is not None:
            self.waits.pop(task.fd, None)
            try:
                self.epoll.modify(task.fd, 0)
            except OSError:
                pass
            task.fd = None
        try:
            sock, events, seconds = next(task.generator)
        except StopIteration:
            task.done = True
            return
        if sock is not None and sock.fileno() >= 0:
            fd = sock.fileno()
            task.fd = fd
            self.waits[fd] = task
            try:
                self.epoll.register(fd, events | select.EPOLLONESHOT)
            except FileExistsError:
                self.epoll.modify(fd, events | select.EPOLLONESHOT)
        if seconds is not None:
            self.turn += 1
            heapq.heappush(self.timers, (time.monotonic() + seconds, self.turn, task, task.number))


class Task:
    def __init__(self, generator):
        self.generator = generator
        self.queued = self.done = False
        self.number = 0
        self.fd = None


class Lane:
    """A listening socket, and the address that clients connect to. One client connects at a time,
    so that the next connection at the listener is known to be its own. @header: the proxy sends the
    client's address (--proxy-protocol v2), which is needed where connections can overtake."""

    def __init__(self, name, listener, to, header=False):
        self.name = name
        self.listener = listener
        self.to = to
        self.header = header
        self.free = True
        self.waiting = collections.deque()


class End:
    """A client or a server: what it did, and what it saw."""

    def __init__(self, run, name):
        self.run = run
        self.name = name
        self.steps = run.script.steps[name]
        self.sock = None
        self.at = 0             # steps that are done
        self.task = None
        self.sent = 0
        self.sent_at = [0]      # after each step
        self.got = 0
        self.fin = None         # 'yes', 'maybe', 'no'
        self.reset = False
        self.closed = False
        self.sure = 0           # bytes that are in the peer's kernel, when it was closed
        self.fin_sure = False
        self.ended = False      # nothing more can be read
        self.kind = None        # how reading ended: 'eof', 'reset'
        self.error = None       # the first error
        self.connected = None
        self.port = None
        self.finished = False
        self.log = []
        self.base = run.base if name == 'client' else run.base + 4321

    @property
    def other(self):
        return self.run.ends[OTHER[self.name]]

    def note(self, text):
        self.log.append(text)

    def wrong(self, text):
        self.run.wrong(f'{self.name}: {text}')

    # -- what it sees ---------------------------------------------------------------

    def reset_allowed(self):
        other = self.other
        return other.reset or (other.closed and (other.fin == 'no' or self.sent > other.got)) or \
            (self.run.lane.name == 'refuse' and self.run.proxied)

    def several_ends(self):
        """Are both an end of file and a reset right? They are if the other end closed before it had
        all bytes, or if it reset the connection while its end of file may have waited for room."""
        return self.other.fin in ('yes', 'maybe') and self.reset_allowed() and \
            not self.other.fin_sure

    def saw_bytes(self, data):
        other = self.other
        at = other.base + self.got
        if self.got + len(data) > other.sent or data != PATTERN[at:at + len(data)]:
            where = next((i for i, b in enumerate(data)
                          if self.got + i >= other.sent or b != PATTERN[at + i]), 0)
            self.wrong(f'wrong byte at {self.got + where} of {other.sent} that were sent')
            self.got = min(other.sent, self.got + len(data))
            self.kind = 'wrong'
            return
        self.got += len(data)

    def saw_eof(self):
        other = self.other
        if self.error:
            # The kernel reports an error only once. EPIPE: the end of file had come before.
            if self.error == 'EPIPE':
                self.ended_complete('end of file (EPIPE)')
            else:
                self.ended_by_reset()
            return
        self.kind = 'eof'
        self.note(f'eof after {self.got}')
        self.ended_complete('end of file')

    def ended_complete(self, what):
        other = self.other
        if other.fin not in ('yes', 'maybe'):
            self.wrong(f'{what} after {self.got} bytes, but the other end has not shut down')
        elif self.got != other.sent:
            self.wrong(f'{what} after {self.got} of {other.sent} bytes')

    def ended_by_reset(self):
        other = self.other
        if self.run.lane.name == 'refuse':
            return
        if self.got < other.sure:
            self.wrong(f'{other.sure - self.got} bytes lost before the reset: got {self.got} of '
                       f'{other.sent}, {other.sure} of them surely sent')
        elif other.fin_sure:
            self.wrong('a reset, although the end of file came before it')

    def saw_error(self, e, where):
        name = errno.errorcode.get(e.errno, str(e))
        self.note(f'{where}: {name} after {self.got} in, {self.sent} out')
        if not self.reset_allowed():
            self.wrong(f'{where}: {name}, but the other end did not cause a reset')
        first = not self.error
        self.error = self.error or name
        if not first:
            return
        if name == 'ECONNRESET':
            self.kind = 'reset'
            if where == 'recv':
                self.ended_by_reset()
        elif name == 'EPIPE':
            self.kind = 'eof'
            if self.other.fin not in ('yes', 'maybe'):
                self.wrong(f'{where}: EPIPE, but the other end has not shut down')
        else:
            self.wrong(f'{where}: {name}')

    # -- what it does -----------------------------------------------------------------

    def poll(self):
        p = select.poll()
        p.register(self.sock, HUP)
        return sum(events for _, events in p.poll(0))

    def do_read(self, until, chunk=1 << 17, pause=0):
        """Read until the function returns 0, or to the end: None. Only the first PAUSES pieces are
        small."""
        pieces = 0
        while not self.ended:
            most = until() if until else LENGTH
            if most == 0:
                return
            if most is None:
                most = LENGTH
            try:
                data = self.sock.recv(min(most, chunk))
            except BlockingIOError:
                yield self.sock, select.EPOLLIN, None
                continue
            except OSError as e:
                self.saw_error(e, 'recv')
                self.ended = True
                return
            if not data:
                self.saw_eof()
                self.ended = True
                return
            self.saw_bytes(data)
            if self.kind == 'wrong':
                self.ended = True
                return
            pieces += 1
            if pieces == PAUSES:
                chunk, pause = LENGTH, 0
            if pause:
                yield None, 0, pause / 1000

    def write(self, n, chunk, flags=0):
        """False: it failed."""
        end = self.sent + n
        while self.sent < end:
            if self.error:
                return False
            at = self.base + self.sent
            try:
                self.sent += self.sock.send(PATTERN[at:at + min(chunk, end - self.sent)],
                                            flags | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                yield self.sock, select.EPOLLOUT, None
            except OSError as e:
                self.saw_error(e, 'send')
                return False
        return True

    def outstanding(self):
        """(not acknowledged, not sent)"""
        return queued(self.sock, termios.TIOCOUTQ), queued(self.sock, SIOCOUTQNSD)

    def measure(self):
        """Before the socket is closed: find out what is surely in the peer's kernel. Without loss
        this is all that has left the socket; a small receive buffer can drop packets."""
        unacked, unsent = self.outstanding()
        small = self.run.small(self.other.name)
        unsure = unsent if self.run.lossless and not small else unacked
        # An end of file counts as one.
        self.fin_sure = self.fin == 'yes' and unsure == 0
        if not self.error:
            self.sure = max(self.sure, min(self.sent, self.sent + (self.fin == 'yes') - unsure))
        return unsure

    def step(self, op, *args):
        sock = self.sock
        if op == 'buffers':
            pass                # see prepare()
        elif op == 'nodelay':
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        elif op == 'write':
            yield from self.write(args[0], args[1] if len(args) > 1 else 1 << 17)
        elif op == 'urgent':
            yield from self.write(1, 1, socket.MSG_OOB)
        elif op == 'fill':
            began, blocked = self.sent, None
            while self.sent - began < FILL and not self.error:
                at = self.base + self.sent
                n = min(1 << 16, began + FILL - self.sent)
                try:
                    self.sent += sock.send(PATTERN[at:at + n], socket.MSG_NOSIGNAL)
                    blocked = None
                except BlockingIOError:
                    now = time.monotonic()
                    blocked = blocked or now
                    if now - blocked > 0.003:
                        break
                    yield sock, select.EPOLLOUT, 0.003
                except OSError as e:
                    self.saw_error(e, 'send')
        elif op == 'read':
            end = self.got + args[0]
            yield from self.do_read(lambda: end - self.got, *args[1:])
        elif op == 'readall':
            other, k = self.other, args[0]
            yield from self.do_read(
                lambda: other.sent_at[k] - self.got if other.at >= k else None, *args[1:])
        elif op == 'arrive':
            other, k = self.other, args[0]
            while not self.ended and not self.error and (
                    other.at < k or queued(sock, termios.FIONREAD) < other.sent_at[k] - self.got):
                if self.poll():
                    break
                yield None, 0, 0.0005
        elif op == 'drain':
            yield from self.do_read(None, *args)
        elif op == 'flush':
            while True:
                fin = self.fin == 'yes'
                unacked = self.outstanding()[0]
                # A proxy may have acknowledged them already.
                if self.run.slow or self.error or self.poll() & FAILURES:
                    break
                if not unacked:
                    self.sure = self.sent
                    self.fin_sure = fin
                    break
                yield None, 0, 0.0005
        elif op == 'hup':
            while not self.ended and not self.error and not self.poll():
                yield sock, HUP, 0.05
        elif op == 'push':
            while (yield from self.write(1000, 1000)):
                yield None, 0, 0.001
        elif op == 'sync':
            while self.other.at < args[0]:
                yield None, 0, None
        elif op == 'sleep':
            yield None, 0, args[0] / 1000
        elif op == 'shut':
            self.fin = 'yes'
            try:
                sock.shutdown(socket.SHUT_WR)
            except OSError as e:
                self.note(f'shutdown: {e}')
        elif op == 'close':
            self.close()
        elif op == 'reset':
            self.measure()
            self.reset = self.closed = True
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            sock.close()

    def close(self):
        unsure = self.measure()
        unread = queued(self.sock, termios.FIONREAD)
        self.closed = True
        if self.fin != 'yes':
            if unread:
                self.fin = 'no'
            elif self.other.sent > self.got:
                self.fin = 'maybe'
            else:
                self.fin = 'yes'
                # The end of file itself may be lost.
                self.fin_sure = self.run.lossless and not unsure
        self.note(f'close, {unread} unread')
        self.sock.close()

    def prepare(self, sock):
        for op, *args in self.steps:
            if op == 'buffers':
                for what, n in zip((socket.SO_RCVBUF, socket.SO_SNDBUF), args):
                    if n:
                        sock.setsockopt(socket.SOL_SOCKET, what, n)
        if self.run.slow:
            # As if the buffers of a proxy were there as well.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, FILL)
        # Urgent bytes are in sequence.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        sock.setblocking(False)

    def everything(self):
        for i, step in enumerate(self.steps):
            if self.run.slow == self.name:
                yield None, 0, self.run.rng.choice((0, 0, 0.0005, 0.002, 0.01))
            yield from self.step(*step)
            self.sent_at.append(self.sent)
            self.at = i + 1
            self.wake_other()
        self.finish()

    def finish(self):
        if self.sock is not None and self.sock.fileno() >= 0:
            self.sock.close()
        self.finished = True
        self.sent_at += [self.sent] * (len(self.steps) + 1 - len(self.sent_at))
        self.at = len(self.steps)
        self.wake_other()

    def wake_other(self):
        if self.other.task:
            self.run.loop.wake(self.other.task)


class Run:
    """One run of a script over a lane."""

    def __init__(self, script, lane, loop, *, proxied, lossless=True, slow=None, limit=20,
                 seed=0):
        self.script = script
        self.lane = lane
        self.loop = loop
        self.proxied = proxied
        self.lossless = lossless
        self.slow = slow
        self.limit = limit
        self.rng = random.Random(seed)
        self.base = self.rng.randrange(1 << 20)
        self.troubles = []
        self.ends = {name: End(self, name) for name in OTHER}
        self.finished_at = None         # the client
        self.held = False               # the lane

    def small(self, end):
        steps = self.script.steps[end]
        return (end == 'server' and self.lane.name == 'small') or \
            any(step[0] == 'buffers' and step[1] for step in steps)

    def wrong(self, text):
        self.troubles.append(text)

    def start(self, finished):
        self.finished = finished
        self.task = self.loop.start(self.main())
        return self

    def acquire(self):
        while not self.lane.free:
            self.lane.waiting.append(self.task)
            yield None, 0, None
        self.lane.free = False

    def release(self):
        if not self.held:
            return
        self.held = False
        self.lane.free = True
        if self.lane.waiting:
            self.loop.wake(self.lane.waiting.popleft())

    def client_task(self, client):
        sock = client.sock
        err = sock.connect_ex(self.lane.to)
        client.port = sock.getsockname()[1]
        if err == errno.EINPROGRESS:
            # It may have been connected and reset since.
            while True:
                yield sock, select.EPOLLOUT, None
                p = select.poll()
                p.register(sock, select.POLLOUT)
                if p.poll(0):
                    break
            err = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if err in (errno.ECONNRESET, errno.EPIPE):
            # It was established, and reset before this looked.
            client.connected = 'ok'
            client.saw_error(OSError(err, ''), 'connect')
        else:
            client.connected = errno.errorcode[err] if err else 'ok'
        if client.connected != 'ok':
            if client.connected != 'ECONNREFUSED' or self.lane.name != 'refuse':
                self.wrong(f'client: connect: {client.connected}')
            client.finish()
        else:
            yield from client.everything()
        self.loop.wake(self.task)

    def accept(self):
        sock, peer = self.lane.listener.accept()
        sock.setblocking(False)
        return sock, peer[1]

    def port_of(self, sock, port, deadline):
        """The client's port; None: it is not known."""
        if not self.lane.header:
            return port
        header = b''
        while len(header) < HEADER and time.monotonic() < deadline:
            try:
                data = sock.recv(HEADER - len(header))
            except BlockingIOError:
                yield sock, select.EPOLLIN, 1
                continue
            except OSError:
                break
            if not data:
                break
            header += data
        return struct.unpack_from('!H', header, 24)[0] if len(header) == HEADER else None

    def server_task(self, server, sock):
        server.sock = sock
        server.prepare(sock)
        yield from server.everything()
        self.loop.wake(self.task)

    def sentinel(self, deadline):
        """The client is done, and no connection has come to the server. Will one come? The proxy
        may connect for several clients of one turn in any order, but for those of one turn before
        those of the next. So if two more connections, one after the other, come through, nothing
        comes later. Return a list of the server's socket, or of None if it was reset at once."""
        found = []
        for _ in range(2):
            probe = socket.socket()
            probe.setblocking(False)
            try:
                probe.connect(self.lane.to)
            except BlockingIOError:
                pass
            try:
                if not (yield from self.wait_probe(probe, found, deadline)):
                    self.wrong('a second connection does not come through')
                    break
            finally:
                probe.close()
        return found

    def wait_probe(self, probe, found, deadline):
        """Accept connections until @probe comes. False: it does not."""
        sent = False
        sock = None
        while time.monotonic() < deadline:
            try:
                if not sent:
                    probe.send(TAG)
                    sent = True
            except BlockingIOError:
                pass
            try:
                sock = sock or self.accept()[0]
                data = sock.recv(HEADER + len(TAG), socket.MSG_PEEK)
            except BlockingIOError:
                yield sock or self.lane.listener, select.EPOLLIN, 0.002
                continue
            except OSError:
                # This has taken the error.
                data = sock = None
            if data and data.endswith(TAG):
                sock.close()
                return True
            found.append(sock)
            sock = None
        return False

    def main(self):
        yield from self.acquire()
        self.held = True
        client, server = self.ends['client'], self.ends['server']
        deadline = time.monotonic() + self.limit
        client.sock = socket.socket()
        client.prepare(client.sock)
        client.task = self.loop.start(self.client_task(client))
        late = None
        if self.lane.name == 'refuse':
            server.finish()
        elif self.lane.name == 'late':
            late = time.monotonic() + self.rng.choice((0, 0.001, 0.004))
        while not (client.finished and server.finished):
            now = time.monotonic()
            if now > deadline:
                break
            if server.finished or server.task:
                if self.reset_lost():
                    deadline = min(deadline, now + LOST)
                yield None, 0, min(1, deadline - now)
                continue
            if late and now < late:
                yield None, 0, late - now
                continue
            try:
                sock, port = self.accept()
            except BlockingIOError:
                sock = None
            if sock and (yield from self.port_of(sock, port, deadline)) != client.port and (
                    self.lane.header or not self.proxied):
                sock.close()            # a former client's
                continue
            if not sock and client.finished:
                sock = yield from self.look_for(client, now, deadline)
                if server.finished:
                    continue
            if not sock:
                yield self.lane.listener, select.EPOLLIN, 0.005
                continue
            self.release()
            server.task = self.loop.start(self.server_task(server, sock))
        lost = self.reset_lost()
        for end in client, server:
            if not end.finished:
                step = end.steps[end.at] if end.at < len(end.steps) else 'end'
                if not lost:
                    self.wrong(f'{end.name}: stuck in step {end.at + 1}, {step}: {end.got} of '
                               f'{end.other.sent} bytes read, {end.sent} written')
                if end.task:
                    end.task.done = True
                if end.sock is not None:
                    end.sock.close()
        self.release()
        self.finished(self)

    def reset_lost(self):
        """Does each end that is not done wait for a reset that the network may have lost? TCP never
        repeats a reset on its own."""
        return not self.lossless and all(end.finished or end.reset_allowed()
                                         for end in self.ends.values())

    def look_for(self, client, now, deadline):
        """The client is done, and no connection has come. Return the server's socket, or None. If
        none will come the server is finished."""
        server = self.ends['server']
        if client.connected != 'ok':
            server.finish()
            return None
        self.finished_at = self.finished_at or now
        if now - self.finished_at < 0.02:
            return None
        if not self.lossless:
            # It may be retransmitted for a while, unless nothing was to be seen of it.
            if not client.reset or client.sure or now - self.finished_at < 1:
                return None
            self.never_seen(False)
            return None
        found = yield from self.sentinel(deadline)
        if len(found) > 1:
            self.wrong(f'server: {len(found)} connections came')
        if found and found[0]:
            return found[0]
        self.never_seen(bool(found))
        self.release()
        return None

    def never_seen(self, reset):
        client = self.ends['client']
        if reset:
            self.ends['server'].kind = 'reset'
            self.ends['server'].ended_by_reset()
        if not client.reset and client.fin != 'no':
            self.wrong(f'server: no connection came, but the client closed ({client.fin})')
        elif client.sure:
            self.wrong(f'server: no connection came, but {client.sure} bytes were sent')
        self.ends['server'].finish()

    # -- the outcome -----------------------------------------------------------------

    def outcome(self):
        """What both ends saw, without what depends on when things happened: (how reading ended,
        whether all bytes came) of each end. None: it did not look, or several outcomes are right.
        """
        result = []
        for end in self.ends.values():
            other = end.other
            kind = None if end.several_ends() else end.kind
            complete = kind and end.got == other.sent
            if kind == 'reset' and other.sure < other.sent:
                complete = None
            result.append((kind, complete))
        return tuple(result)

    def describe(self):
        lines = list(self.troubles)
        for end in self.ends.values():
            lines.append(f'({end.name}: {end.sent} sent, {end.got} read, ended {end.kind}, '
                         f'error {end.error}; ' + '; '.join(end.log) + ')')
        return lines


def matches(proxied, direct):
    """Do both ends see the same in a run through the proxy as in a direct one? Through the proxy an
    end that sends may see a reset later, or not at all."""
    return all(a is None or b is None or a == b
               for one, other in zip(proxied, direct) for a, b in zip(one, other)
               if one[0] and other[0])


def make_listener(lane):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if lane == 'small':
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    sock.bind(('127.0.0.1', 0))
    if lane != 'refuse':
        sock.listen(1024)
    sock.setblocking(False)
    return sock
