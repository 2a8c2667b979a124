# SPDX-License-Identifier: GPL-2.0
"""What the tests of the proxy stand on: a proxy under test, servers and clients, and a service
manager that keeps descriptors as systemd does."""

import array
import collections
import contextlib
import ctypes
import fcntl
import glob
import hashlib
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

BACKEND = os.environ.get('TIMERWHEEL_BACKEND', 'auto')
DEVICE = BACKEND != 'process' and os.path.exists('/dev/timerwheel')
# How late something may be seen on a machine that is busy, or emulated: see late().
LATE = float(os.environ.get('PROXY_TEST_LATE', '0.5'))
# All waits for what must come are longer by that.
PATIENCE = float(os.environ.get('PROXY_TEST_PATIENCE', '1'))
# Times in the tests are multiples of this: long beside LATE's usual part, short for people.
UNIT = float(os.environ.get('PROXY_TEST_UNIT', '0.3'))


class Failure(Exception):
    pass


class Stalled(Exception):
    """It says nothing of the proxy: the test is repeated with a longer UNIT."""


class Pauses:
    """When each CPU of this machine did not run what is to run every 10 ms."""

    def __init__(self):
        self.began = 0          # when the test that runs began
        self.seen = {cpu: collections.deque(maxlen=10000) for cpu in os.sched_getaffinity(0)}

    def start(self):
        for cpu in self.seen:
            threading.Thread(target=self.watch, args=(cpu,), daemon=True).start()

    def watch(self, cpu):
        os.sched_setaffinity(0, {cpu})      # of this thread
        now = time.monotonic()
        while True:
            last = now
            time.sleep(0.01)
            now = time.monotonic()
            if now - last > 0.02:
                self.seen[cpu].append((now, now - last))

    def since(self, began):
        """The sum of their pauses, of the CPU that had the longest."""
        time.sleep(0.02)        # one that has just ended
        return max(sum(length for end, length in list(seen) if end > began)
                   for seen in self.seen.values())


pauses = Pauses()


def late():
    """How late something may be seen, s: LATE, and as long as the machine has paused in this test."""
    return LATE + pauses.since(pauses.began)


@contextlib.contextmanager
def in_time(limit, began=None, many=False):
    """What is in here must be done @limit s after @began, or after now, as something ends then. If
    it fails later than that the machine has stood still, unless no CPU had a pause: then a byte was
    lost, and the connection idle for that reason. @many: of so many things that a slow machine needs
    no pauses to be late."""
    if began is None:
        began = time.monotonic()
    try:
        yield
    except (Failure, OSError) as e:
        if time.monotonic() - began >= limit and (many or pauses.since(began) >= limit / 10):
            raise Stalled(f'not within {limit:.1f} s: {e}') from e
        raise
    if time.monotonic() - began >= limit:
        raise Stalled(f'not within {limit:.1f} s')


def check(condition, text):
    if not condition:
        raise Failure(text)


def between(value, low, high, what):
    check(low <= value <= high, f'{what}: {value:.3f}, not within {low:.3f} to {high:.3f}')


def free_port():
    """A port that nothing uses, and that no earlier call has returned."""
    for _ in range(1000):
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            port = s.getsockname()[1]
        if port not in given_ports:
            given_ports.add(port)
            return port
    raise Failure(f'free_port() found only ports that it has returned before, the last one {port}: '
                  'choose a port below net.ipv4.ip_local_port_range')


given_ports = set()


@contextlib.contextmanager
def own_network():
    """This thread, and what it starts, has a network of its own, with a loopback interface."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open('/proc/thread-self/ns/net') as before:
        check(not libc.unshare(0x40000000), 'unshare(CLONE_NEWNET) failed')
        try:
            with socket.socket() as s:
                # SIOCSIFFLAGS, IFF_UP
                fcntl.ioctl(s, 0x8914, struct.pack('16sH22x', b'lo', 1))
            yield
        finally:
            check(not libc.setns(before.fileno(), 0), 'setns() failed')


def set_ports(first, last):
    """From which local ports are given."""
    with open('/proc/sys/net/ipv4/ip_local_port_range', 'w') as f:
        f.write(f'{first} {last}')


def raise_descriptors(want):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, want), max(hard, want)))
    except (ValueError, PermissionError) as e:
        raise Failure(f'{want} descriptors are needed and {hard} allowed: raise ulimit -n, or set '
                      f'PROXY_TEST_CONNECTIONS ({e})')


def read_all(sock, timeout=30):
    """Until end of file."""
    sock.settimeout(timeout + PATIENCE)
    parts = []
    while True:
        data = sock.recv(1 << 18)
        if not data:
            return b''.join(parts)
        parts.append(data)


def read_exactly(sock, n, timeout=30):
    sock.settimeout(timeout + PATIENCE)
    parts = []
    while n:
        data = sock.recv(min(n, 1 << 18))
        check(data, f'end of file, {n} bytes before the end')
        parts.append(data)
        n -= len(data)
    return b''.join(parts)


def ended(sock, timeout):
    """When the end of file came, or a reset: (time, 'eof' or 'reset')."""
    timeout += PATIENCE
    sock.settimeout(timeout)
    try:
        data = sock.recv(1)
    except ConnectionResetError:
        return time.monotonic(), 'reset'
    except socket.timeout:
        raise Failure(f'still open after {timeout:.1f} s')
    check(not data, 'bytes came where the end was expected')
    return time.monotonic(), 'eof'


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    sock.close()


@contextlib.contextmanager
def stopped(proxy):
    """What happens in here comes to the proxy at once."""
    proxy.signal(signal.SIGSTOP)
    # kill() returns before its threads have stopped.
    os.waitpid(proxy.pid, os.WUNTRACED)
    try:
        yield
    finally:
        proxy.signal(signal.SIGCONT)


def small_reader(proxy):
    """A client with room for few bytes."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    client.connect(('127.0.0.1', proxy.port))
    return client


def read_to_reset(sock, timeout=30):
    """All bytes that come before a reset."""
    sock.settimeout(timeout + PATIENCE)
    parts = []
    try:
        while data := sock.recv(1 << 18):
            parts.append(data)
    except ConnectionResetError:
        return b''.join(parts)
    raise Failure(f'an end of file came after {sum(map(len, parts))} bytes, not a reset')


def in_own_network(test):
    """Run a test in a network namespace with nothing but lo. Only root may make one."""
    def run():
        try:
            if libc.unshare(0x40000000):
                raise OSError(ctypes.get_errno(), 'unshare(CLONE_NEWNET)')
            with socket.socket() as s:
                # SIOCSIFFLAGS, IFF_UP
                fcntl.ioctl(s, 0x8914, struct.pack('16sh14x', b'lo', 1))
            test()
        except BaseException as e:
            trouble.append(e)

    libc = ctypes.CDLL(None, use_errno=True)
    trouble = []
    # Namespaces belong to threads, and what a thread starts inherits them.
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if trouble:
        raise trouble[0]


class Server:
    """A TCP server: each connection is handed out by accept(), or served by a function."""

    def __init__(self, serve=None, backlog=4096):
        self.socket = socket.create_server(('127.0.0.1', 0), backlog=backlog)
        self.address = '127.0.0.1:%d' % self.socket.getsockname()[1]
        self.serve = serve
        if serve:
            threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                conn, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.one, args=(conn,), daemon=True).start()

    def one(self, conn):
        try:
            self.serve(conn)
        except OSError:
            pass
        conn.close()

    def accept(self, timeout=10):
        self.socket.settimeout(timeout + PATIENCE)
        conn, _ = self.socket.accept()
        conn.settimeout(30 + PATIENCE)
        return conn

    def close(self):
        self.socket.close()


def full_server():
    """A server that does not answer: its queue is full of what also is returned."""
    server = Server(backlog=0)
    fill = []
    for _ in range(4):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(tuple(server.socket.getsockname()))
        fill.append(s)
    time.sleep(0.2)
    return server, fill


def echo(conn):
    while True:
        data = conn.recv(1 << 16)
        if not data:
            conn.shutdown(socket.SHUT_WR)
            return
        conn.sendall(data)


def cookie_of(fd):
    """The number by which the kernel knows a socket; None: it is none."""
    sock = None
    try:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fd)
        return sock.getsockopt(socket.SOL_SOCKET, 57, 8)
    except OSError:
        return None
    finally:
        if sock:
            sock.detach()


class Manager:
    """A service manager's end of sd_notify(3): keeps descriptors, drops those that hang up
    unless it was told FDPOLL=0, and hands all to the next start."""

    def __init__(self):
        self.path = '\0proxy-test-%d-%d' % (os.getpid(), id(self))
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.store = {}         # descriptor: (name, watched)
        self.cookies = {}       # of those that are sockets: descriptor
        self.messages = []
        self.lock = threading.Condition()
        self.poll = select.epoll()
        self.poll.register(self.socket, select.EPOLLIN)
        self.stopped = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stopped:
            for fd, events in self.poll.poll(0.2):
                with self.lock:
                    if fd == self.socket.fileno():
                        self.receive()
                    elif events & (select.EPOLLHUP | select.EPOLLERR):
                        self.drop(fd)
                    self.lock.notify_all()

    def drop(self, fd):
        self.cookies.pop(cookie_of(fd), None)
        if self.store.pop(fd)[1]:
            self.poll.unregister(fd)
        os.close(fd)

    def receive(self):
        """A message. False: there was none."""
        try:
            text, control, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(253 * 4),
                                                      socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        fields = dict(line.split('=', 1) for line in text.decode().splitlines())
        fds = array.array('i')
        for level, kind, data in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(data[:len(data) - len(data) % 4])
        self.messages.append(fields)
        for fd in fds:
            if fields.get('FDSTORE') != '1':
                os.close(fd)
                continue
            # Like systemd it keeps nothing twice; only sockets come again.
            cookie = cookie_of(fd)
            if cookie in self.cookies:
                os.close(fd)
                continue
            if cookie:
                self.cookies[cookie] = fd
            watched = fields.get('FDPOLL') != '0'
            self.store[fd] = (fields['FDNAME'], watched)
            if watched:
                self.poll.register(fd, 0)
        return True

    def wait(self, what, condition, timeout=20):
        with self.lock:
            check(self.lock.wait_for(lambda: condition(self), timeout + PATIENCE),
                  f'the service manager waited for {what} in vain')

    def wait_message(self, key, value, timeout=20):
        self.wait(f'{key}={value}',
                  lambda m: any(f.get(key) == value for f in m.messages), timeout)

    def names(self):
        """Also of what waits to be read."""
        with self.lock:
            while self.receive():
                pass
            return [name for name, _ in self.store.values()]

    def kept(self):
        """For the next start: duplicates, since what hangs up is dropped at any time. What the
        former process had sent before it ended is read first, as systemd does: its messages
        come before its death."""
        with self.lock:
            while self.receive():
                pass
            return [(os.dup(fd), name) for fd, (name, _) in self.store.items()]

    def forget(self):
        with self.lock:
            self.messages.clear()

    def close(self):
        self.stopped = True
        self.thread.join()
        for fd in list(self.store):
            self.drop(fd)
        self.socket.close()
        self.poll.close()


def keep_busy(manager):
    """With messages, as long as its lock is held."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.setblocking(False)
        try:
            while True:
                other.sendto(b'X=1', manager.path)
        except BlockingIOError:
            pass


def launch(args, env, fds, limit=None, gate=None):
    """Start a program with these descriptors at 3 and up, and LISTEN_PID its own. It begins when
    there is a byte in the pipe @gate."""
    pid = os.fork()
    if pid:
        return pid
    try:
        # Out of the way of where they are to go.
        high = 3 + len(fds) + 100
        moved = []
        gate = gate and fcntl.fcntl(gate, fcntl.F_DUPFD_CLOEXEC, high)
        for fd in fds:
            moved.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, high))
        for i, fd in enumerate(moved):
            os.dup2(fd, 3 + i, inheritable=True)
        env = dict(env, LISTEN_PID=str(os.getpid()))
        # Python ignores these signals, a service manager does not.
        for number in signal.SIGPIPE, signal.SIGXFSZ:
            signal.signal(number, signal.SIG_DFL)
        if gate:
            os.read(gate, 1)
        os.closerange(3 + len(fds), high)
        if limit:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        os.execve(args[0], args, env)
    finally:
        os._exit(127)


class Steps:
    """Stops a thread of a process before each of its system calls."""

    SYSCALL, SEIZE, INTERRUPT, DETACH, INFO = 24, 0x4206, 0x4207, 17, 0x420e
    TRACESYSGOOD = 1
    WALL = 0x40000000

    def __init__(self, tid):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p,
                                     ctypes.c_void_p]
        self.tid = tid
        self.ptrace(self.SEIZE, self.TRACESYSGOOD)
        self.ptrace(self.INTERRUPT)
        os.waitpid(tid, self.WALL)

    def ptrace(self, request, data=0, address=None):
        if self.libc.ptrace(request, self.tid, address, data) < 0:
            raise Failure(f'ptrace: {os.strerror(ctypes.get_errno())}')

    def next(self, done):
        """On to the next stop: at the beginning of a system call, and at its end. False: done()
        came true before."""
        self.ptrace(self.SYSCALL)
        until = time.monotonic() + 60 + PATIENCE
        while True:
            check(time.monotonic() < until, 'the thread makes no more system calls')
            pid, status = os.waitpid(self.tid, self.WALL | os.WNOHANG)
            if pid and os.WIFSTOPPED(status):
                return True
            if pid or done():
                return False
            time.sleep(0.0002)

    def cookies_downwards(self, done):
        """Until done(), then it runs on: each cookie is -1, -2 ... instead of 1, 2 ..., as if the
        kernel had given it in an interrupt."""
        info, place = ctypes.create_string_buffer(88), None
        while self.next(done):
            self.ptrace(self.INFO, ctypes.addressof(info), len(info))
            end = info.raw[0] == 2
            if end and place:
                with open(f'/proc/{self.tid}/mem', 'r+b', buffering=0) as memory:
                    memory.seek(place)
                    cookie = int.from_bytes(memory.read(8), sys.byteorder, signed=True)
                    memory.seek(place)
                    memory.write((-cookie).to_bytes(8, sys.byteorder, signed=True))
            # Arguments of getsockopt(): SOL_SOCKET, SO_COOKIE, where to.
            number, _, level, option, at, length = struct.unpack_from('6Q', info.raw, 24)
            place = at if not end and length and (level, option) == (1, 57) else None
        self.ptrace(self.INTERRUPT)
        os.waitpid(self.tid, self.WALL)
        self.go_on()

    def go_on(self):
        """Let it run again, untraced."""
        self.ptrace(self.DETACH)

    def over(self):
        """After the process was killed: who waits for it must not wait for this thread."""
        try:
            os.waitpid(self.tid, self.WALL)
        except ChildProcessError:
            pass


class Proxy:
    """The proxy under test. Each one must have ended well when its test ends."""

    program = None
    all = []

    def __init__(self, to, *args, manager=None, passed=(), threads=2, start=True, env=None,
                 port=None, metrics_port=None, limit=None, read_log=True, **times):
        """@to: a server, or several. @passed: pairs of a descriptor and its name, besides what
        @manager keeps. @limit: of descriptors. @read_log: beyond its beginning, too."""
        self.port = port or free_port()
        self.metrics_port = metrics_port or free_port()
        self.args = [self.program, '--listen', f'127.0.0.1:{self.port}',
                     '--metrics', f'127.0.0.1:{self.metrics_port}', '--threads', str(threads)]
        for server in [to] if isinstance(to, str) else to:
            self.args += ['--to', server]
        for name, value in times.items():
            self.args += ['--' + name.replace('_', '-'),
                          value if isinstance(value, str) else f'{value * 1000:.0f}ms']
        self.args += args
        self.manager = manager
        self.passed = passed
        self.limit = limit
        self.read_log = read_log
        self.env = env or {}
        self.log = ''
        self.former = ''        # what those said that were killed
        self.log_lock = threading.Condition()
        self.pid = None
        self.status = None
        Proxy.all.append(self)
        if start:
            self.start()

    def start(self, gate=None):
        env = dict(os.environ, **self.env)
        env['TSAN_OPTIONS'] = 'exitcode=66'
        env['ASAN_OPTIONS'] = 'exitcode=67'
        kept = self.manager.kept() if self.manager else []
        kept = [(os.dup(fd), name) for fd, name in self.passed] + kept
        for name in ('NOTIFY_SOCKET', 'LISTEN_FDS', 'LISTEN_FDNAMES', 'WATCHDOG_USEC',
                     'FDSTORE'):
            if name not in self.env:
                env.pop(name, None)
        if self.manager:
            self.manager.forget()
            env['NOTIFY_SOCKET'] = self.manager.path.replace('\0', '@')
        if kept:
            env['LISTEN_FDS'] = str(len(kept))
            env['LISTEN_FDNAMES'] = ':'.join(name for _, name in kept)
        read, write = os.pipe()
        saved = os.dup(2)
        os.dup2(write, 2)
        try:
            self.pid = launch(self.args, env, [fd for fd, _ in kept], self.limit, gate)
        finally:
            for fd, _ in kept:
                os.close(fd)
            os.dup2(saved, 2)
            os.close(saved)
            os.close(write)
        self.status = None
        self.reader = threading.Thread(target=self.collect, args=(read,), daemon=True)
        self.reader.start()
        if not gate:
            self.wait_log(' threads, at most ', 20)

    def collect(self, fd):
        with os.fdopen(fd, 'r', errors='replace') as lines:
            for line in lines:
                with self.log_lock:
                    self.log += line
                    self.log_lock.notify_all()
                while not self.read_log and ' threads, at most ' in line and self.status is None:
                    time.sleep(0.01)
        with self.log_lock:
            self.log_lock.notify_all()

    def wait_log(self, text, timeout=10):
        with self.log_lock:
            self.log_lock.wait_for(
                lambda: text in self.log or not self.reader.is_alive(), timeout + PATIENCE)
            check(text in self.log, f'the log does not say "{text}": {self.log}')

    def connect(self, timeout=30):
        return socket.create_connection(('127.0.0.1', self.port), timeout=timeout + PATIENCE)

    def refuses(self):
        """Wait until it takes no more clients."""
        until = time.monotonic() + 10 + PATIENCE
        try:
            while True:
                self.connect().close()
                check(time.monotonic() < until, 'a new client was not refused')
                time.sleep(0.02)
        except (ConnectionRefusedError, ConnectionResetError):
            pass

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.after_kill()

    def kill_at(self, n, begin, done=lambda: False, meanwhile=lambda i: None):
        """Killed before the @n-th system call of its thread, of which it has one, since begin(),
        or when done() comes true. False: that was first, or the thread's end. Before each that
        it may do meanwhile() is called, with its number."""
        steps = Steps(self.serving_threads()[0])
        begin()
        for i in range(1, n + 1):
            # The end of the one before, and the beginning of this one.
            came = (i == 1 or steps.next(done)) and steps.next(done)
            if not came:
                break
            if i < n:
                meanwhile(i)
        os.kill(self.pid, signal.SIGKILL)
        steps.over()
        self.after_kill()
        return came

    def kill_starting(self, here):
        """Started, and killed between two system calls of its main thread when here() says so.
        False: it did not."""
        read, write = os.pipe()
        self.start(gate=read)
        steps = Steps(self.pid)
        os.write(write, b'x')
        os.close(read)
        os.close(write)
        came = False
        while not came and ' threads, at most ' not in self.log:
            # The beginning of a system call, and its end.
            came = (steps.next(lambda: False) and steps.next(lambda: False) and
                    os.path.samefile(f'/proc/{self.pid}/exe', self.program) and here())
        os.kill(self.pid, signal.SIGKILL)
        self.after_kill()
        return came

    def wheels(self):
        """How many are open."""
        links = [os.readlink(fd) for fd in glob.glob(f'/proc/{self.pid}/fd/*')]
        return links.count('/dev/timerwheel')

    def after_kill(self):
        self.wait()
        self.former += self.log + '(killed)\n'
        self.log = ''

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, timeout=30):
        """Until it has ended: its exit status."""
        timeout += PATIENCE
        until = time.monotonic() + timeout
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                self.reader.join(10 + PATIENCE)
                break
            check(time.monotonic() < until, f'the proxy has not ended after {timeout} s')
            time.sleep(0.005)
        return self.status

    def end(self, number=15):
        """Asked once, it must end well, and by itself."""
        self.signal(number)
        check(self.wait() == 0, 'it ended badly')

    def stop(self):
        """Twice: the second ends the time of grace."""
        if self.status is None:
            self.signal(signal.SIGTERM)
            try:
                self.signal(signal.SIGTERM)
                time.sleep(0.02)
                if os.waitpid(self.pid, os.WNOHANG)[0] == 0:
                    self.signal(signal.SIGTERM)
                else:
                    self.status = 0
            except (ProcessLookupError, ChildProcessError):
                self.status = 0
            self.wait()
        check(self.status in (0, -signal.SIGKILL), f'the proxy ended with {self.status}')
        check('Sanitizer' not in self.log, 'a sanitizer has found something')

    def descriptors(self):
        return len(os.listdir(f'/proc/{self.pid}/fd'))

    def copies(self):
        """Copies of its descriptors."""
        libc = ctypes.CDLL(None)
        pidfd = os.pidfd_open(self.pid)
        # pidfd_getfd()
        fds = [libc.syscall(438, pidfd, int(fd), 0) for fd in os.listdir(f'/proc/{self.pid}/fd')]
        os.close(pidfd)
        return [fd for fd in fds if fd >= 0]

    def cookies(self):
        """Of its sockets."""
        cookies = set()
        for fd in self.copies():
            cookie = cookie_of(fd)
            if cookie:
                cookies.add(int.from_bytes(cookie, sys.byteorder))
            os.close(fd)
        return cookies

    def serving_threads(self):
        """Their numbers, in order."""
        tids = {}
        for tid in os.listdir(f'/proc/{self.pid}/task'):
            try:
                with open(f'/proc/{self.pid}/task/{tid}/comm') as f:
                    name = f.read().strip()
            except (FileNotFoundError, ProcessLookupError):
                continue        # it has just ended
            if name.startswith('proxy-'):
                tids[int(name[6:])] = int(tid)
        return [tids[i] for i in sorted(tids)]

    def wait_descriptors(self, most):
        """Until there are no more than that: the connection that has asked for metrics, too, is
        closed some time after the answer."""
        until = time.monotonic() + 5 + PATIENCE
        while self.descriptors() > most:
            check(time.monotonic() < until, f'{self.descriptors() - most} descriptors stay open')
            time.sleep(0.02)

    def cpu(self):
        """s that its threads have run or waited for a processor so far: a thread that spins is
        noticed on a busy machine, too."""
        total = 0
        for tid in os.listdir(f'/proc/{self.pid}/task'):
            with open(f'/proc/{self.pid}/task/{tid}/schedstat') as f:
                total += sum(int(field) for field in f.read().split()[:2])
        return total / 1e9

    def sleeps(self, period=0.5, part=0.2):
        """Wait until its threads have slept for most of a period: who spins never does."""
        until = time.monotonic() + 5 + PATIENCE
        while True:
            used = self.cpu()
            time.sleep(period)
            used = self.cpu() - used
            if used < part * period:
                break
            check(time.monotonic() < until,
                  f'it is busy for {used:.2f} of {period:.2f} s while it has to wait')

    def get(self, path='/metrics'):
        with socket.create_connection(('127.0.0.1', self.metrics_port), timeout=10 + PATIENCE) as s:
            s.sendall(f'GET {path} HTTP/1.1\r\nHost: x\r\n'
                      'Connection: close\r\n\r\n'.encode())
            head, body = read_all(s).decode().split('\r\n\r\n', 1)
        return head, body

    def metrics(self):
        values = {}
        for line in self.get()[1].splitlines():
            if not line.startswith('#'):
                name, value = line.rsplit(' ', 1)
                values[name.replace('timerwheel_proxy_', '', 1)] = float(value)
        return values

    def loads(self):
        """Connections of each thread."""
        return [int(v) for k, v in self.metrics().items() if k.startswith('thread_connections')]

    def wait_metric(self, name, value, timeout=20):
        until = time.monotonic() + timeout + PATIENCE
        while True:
            now = self.metrics()[name]
            if now == value:
                return
            check(time.monotonic() < until, f'{name} is {now}, not {value}')
            time.sleep(0.02)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def pattern(n, seed):
    """Random bytes, the same for the same seed."""
    return hashlib.shake_128(str(seed).encode()).digest(n)


METRIC = re.compile(r'^timerwheel_proxy_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? '
                    r'([0-9.e+-]+|\+Inf)$')
