# SPDX-License-Identifier: GPL-2.0
"""Scripts of the differential test: what a client and a server do, as text, generated, and shrunk.

A script is a list of lines in the order in which they could be done one after the other. Each end
does its own lines in this order. Nothing else orders the two ends, except `sync': wait until the
other end has done all of its lines that stand above.
"""

import random

HELP = """\
A script has one step a line, `client' or `server' and then:

  buffers RCV SND   set SO_RCVBUF and SO_SNDBUF before the connection is made (0: do not)
  nodelay           set TCP_NODELAY
  write N           write N bytes
  write N K         the same, K bytes at a time
  urgent            write one byte as urgent data
  transfer N        write N bytes while the other end reads all that comes
  transfer N K MS   the same; the other end reads K bytes at a time and pauses for MS ms after each
  fill              write until the other end takes no more (or 2 MB)
  read N [K MS]     read N bytes; K at a time, pausing for MS ms
  readall [K MS]    read all that the other end has written above
  arrive            wait until all that was written above can be read, and do not read it
  drain [K MS]      read to the end
  flush             wait until the other end's kernel has acknowledged all that was written
  hup               wait until the kernel reports that the other end has closed, and do not read
  push              write until that fails
  sync              wait until the other end has done its steps above
  sleep MS
  shut              shut down sending
  close             close; with unread bytes this makes the kernel send a reset
  reset             close with SO_LINGER and a time of 0, which sends a reset

The first line can be `lane NAME', which says how the server listens: plain, small (with a small
receive buffer), late (it accepts only in its first step), or refuse (nothing listens).
"""

OTHER = {'client': 'server', 'server': 'client'}
LANES = 'plain', 'small', 'late', 'refuse'
# Bytes that fit into the buffers of a receiver that does not read.
ROOM = 16384
SMALL_ROOM = 1024
SMALL = 8192
LIMIT = 3 << 20         # bytes of one direction


class Invalid(Exception):
    pass


class Script:
    """A legal script: @lane, @lines, and the @steps of each end."""

    def __init__(self, lane, lines):
        self.lane = lane
        self.lines = lines
        self.steps = {'client': [], 'server': []}
        for end, op, *args in lines:
            other = self.steps[OTHER[end]]
            if op in ('sync', 'readall', 'arrive'):
                self.steps[end].append((op, len(other), *args))
            elif op == 'transfer':
                self.steps[end].append(('write', args[0]))
                # Bytes that were written before it are also read.
                other.append(('readall', len(self.steps[end]), *args[1:]))
            else:
                self.steps[end].append((op, *args))

    def __str__(self):
        return '\n'.join([f'lane {self.lane}'] +
                         [' '.join(map(str, line)) for line in self.lines]) + '\n'


def small_room(lane, buffers, end):
    """Has the receiver @end little room?"""
    return buffers[end] or (end == 'server' and lane == 'small')


def legal(lane, lines):
    """Make a Script of @lines that can be done to its end, whatever TCP does: leave out or change
    what would wait for ever."""
    result = []
    unread = {'client': 0, 'server': 0}         # bytes for this end
    total = {'client': 0, 'server': 0}
    filled = {'client': False, 'server': False}         # more bytes for this end than it has room
    closed = {'client': False, 'server': False}
    shut = {'client': False, 'server': False}
    drained = {'client': False, 'server': False}
    hup = {'client': False, 'server': False}
    buffers = {'client': False, 'server': False}
    sending = {'client': False, 'server': False}
    began = {'client': False, 'server': False}

    def room(end):
        if small_room(lane, buffers, end) or sending[OTHER[end]]:
            return SMALL_ROOM
        return ROOM

    def fits(end):
        """Has the kernel of @end room for all that it does not read? After more than that was read,
        no: the rest of a large segment takes as much memory as the whole."""
        return not filled[end] and (not unread[end] or total[OTHER[end]] <= room(end))

    for end, op, *args in lines:
        other = OTHER[end]
        if closed[end] or (lane == 'refuse' and end == 'server'):
            continue
        if op == 'buffers':
            if began[end] or (end == 'server' and args[0]):
                continue
            buffers[end], sending[end] = 0 < args[0], 0 < args[1]
        elif op in ('write', 'urgent', 'transfer'):
            n = 1 if op == 'urgent' else args[0]
            if shut[end] or filled[other] or n < 1 or total[end] + n > LIMIT:
                continue
            if op == 'transfer':
                if closed[other] or drained[other]:
                    continue
                if small_room(lane, buffers, other) and n > 65536:
                    args[0] = n = 65536
            elif unread[other] + n > room(other):
                continue
            total[end] += n
            unread[other] = 0 if op == 'transfer' else unread[other] + n
        elif op == 'fill':
            if shut[end] or filled[other] or total[end] > 1 << 20:
                continue
            filled[other] = True
            total[end] += 2 << 20
        elif op == 'read':
            if drained[end] or filled[end]:
                continue
            args[0] = min(args[0], unread[end])
            if not args[0]:
                continue
            unread[end] -= args[0]
        elif op == 'readall':
            if drained[end]:
                continue
            unread[end] = 0
            filled[end] = False
        elif op == 'arrive':
            if drained[end] or not unread[end] or not fits(end):
                continue
        elif op == 'drain':
            if drained[end] or not (shut[other] or closed[other] or lane == 'refuse'):
                continue
            drained[end] = True
            unread[end] = 0
            filled[end] = False
        elif op == 'flush':
            if not fits(other):
                continue
        elif op == 'hup':
            if not fits(end) or not (shut[other] or closed[other]):
                continue
        elif op == 'push':
            if not fits(end) or shut[end] or not closed[other]:
                continue
            shut[end] = True
        elif op == 'shut':
            if shut[end]:
                continue
            shut[end] = True
        elif op in ('close', 'reset'):
            closed[end] = True
        elif op not in ('sync', 'sleep', 'nodelay'):
            raise Invalid(f'unknown step {op}')
        began[end] = True
        result.append((end, op, *args))
    for end in 'client', 'server':
        if not closed[end] and not (lane == 'refuse' and end == 'server'):
            result.append((end, 'close'))
    return Script(lane, result)


def parse(text):
    lane, lines = 'plain', []
    for line in text.splitlines():
        words = line.split('#')[0].split()
        if not words:
            continue
        if words[0] == 'lane' and len(words) == 2 and words[1] in LANES:
            lane = words[1]
            continue
        if words[0] not in OTHER or len(words) < 2:
            raise Invalid(f'not a step: {line}')
        try:
            args = [float(w) if '.' in w else int(w) for w in words[2:]]
        except ValueError:
            raise Invalid(f'not a number: {line}') from None
        want = {'buffers': (2, 2), 'write': (1, 2), 'transfer': (1, 3), 'read': (1, 3),
                'readall': (0, 2), 'drain': (0, 2), 'sleep': (1, 1)}.get(words[1], (0, 0))
        if not want[0] <= len(args) <= want[1]:
            raise Invalid(f'wrong number of values: {line}')
        lines.append((words[0], words[1], *args))
    return legal(lane, lines)


# ---- generating ---------------------------------------------------------------------


def amount(rng, most):
    return min(most, int(2 ** rng.uniform(0, 20)))


def pace(rng):
    """How the other end reads: all at once, or in pieces with pauses."""
    if rng.random() < 0.6:
        return []
    return [rng.choice((100, 1000, 5000, 30000)), rng.choice((0, 0, 0.1, 1))]


def intent(rng, end):
    """One random line."""
    op = rng.choices(
        ('write', 'urgent', 'transfer', 'fill', 'read', 'readall', 'arrive', 'flush', 'sync',
         'sleep', 'shut', 'drain', 'hup', 'push', 'close', 'reset'),
        (20, 1, 5, 2, 8, 6, 4, 6, 14, 4, 5, 6, 4, 4, 4, 4))[0]
    args = []
    if op == 'write':
        n = amount(rng, ROOM)
        args = [n] if rng.random() < 0.7 else [n, max(1, n // rng.randint(2, 8))]
    elif op == 'transfer':
        n = amount(rng, 1 << 20)
        args = [n, *pace(rng)]
        if len(args) > 1:
            # Not for seconds.
            args[1] = max(args[1], n // 50)
    elif op == 'read':
        args = [amount(rng, ROOM)]
    elif op == 'sleep':
        args = [rng.choice((0.1, 0.5, 1, 2, 5))]
    return (end, op, *args)


def generate(seed):
    rng = random.Random(seed)
    lane = rng.choices(LANES, (80, 12, 6, 2))[0]
    lines = []
    if rng.random() < 0.15:
        lines.append(('client', 'buffers', rng.choice((0, SMALL)), rng.choice((0, 4608))))
    if rng.random() < 0.1:
        lines.append(('server', 'buffers', 0, 4608))
    for end in OTHER:
        if rng.random() < 0.2:
            lines.append((end, 'nodelay'))
    if lane == 'refuse':
        for _ in range(rng.randint(0, 4)):
            lines.append(intent(rng, 'client'))
        return legal(lane, lines + [('client', 'drain')])
    ends = ['client', 'server']
    for _ in range(rng.randint(1, 14)):
        lines.append(intent(rng, rng.choice(ends)))
    # How it ends: mostly so that both see all.
    rng.shuffle(ends)
    first, second = ends
    lines += rng.choice((
        [(first, 'shut'), (second, 'drain', *pace(rng)), (second, 'close'), (first, 'drain'),
         (first, 'close')],
        [(first, 'close'), (second, 'drain', *pace(rng)), (second, 'close')],
        [(first, 'reset'), (second, 'drain', *pace(rng)), (second, 'close')],
        [(first, 'flush'), (first, 'reset'), (second, 'drain', *pace(rng)), (second, 'close')],
        [(first, 'flush'), (first, 'close'), (second, 'hup'), (second, 'drain'),
         (second, 'close')],
        [(first, 'flush'), (first, 'close'), (second, 'push'), (second, 'drain'),
         (second, 'close')],
        [(second, 'write', amount(rng, 2000)), (first, 'arrive'), (first, 'close'),
         (second, 'drain', *pace(rng)), (second, 'close')],
    ))
    return legal(lane, lines)


# ---- shrinking ----------------------------------------------------------------------


def shrink(script, fails):
    """A script that has fewer and smaller steps, and for which @fails() still is true."""
    lane, lines = script.lane, list(script.lines)

    def attempt(new_lane, new_lines):
        nonlocal lane, lines
        candidate = legal(new_lane, new_lines)
        if (candidate.lane, candidate.lines) == (lane, lines) or \
           len(candidate.lines) > len(lines) or not fails(candidate):
            return False
        lane, lines = candidate.lane, list(candidate.lines)
        return True

    if lane not in ('plain', 'refuse'):
        attempt('plain', lines)
    changed = True
    while changed:
        changed = False
        size = max(1, len(lines) // 2)
        while size:
            i = 0
            while i < len(lines):
                if attempt(lane, lines[:i] + lines[i + size:]):
                    changed = True
                else:
                    i += size
            size //= 2
        for i, (end, op, *args) in enumerate(lines):
            if i >= len(lines) or lines[i] != (end, op, *args):
                continue
            if len(args) > 1 and op != 'buffers':
                changed |= attempt(lane, lines[:i] + [(end, op, args[0])] + lines[i + 1:])
            if args and args[0] > 1 and op in ('write', 'transfer', 'read', 'sleep'):
                for less in 1, 100, args[0] // 10, args[0] // 2:
                    if 0 < less < args[0] and attempt(
                            lane, lines[:i] + [(end, op, int(less))] + lines[i + 1:]):
                        changed = True
                        break
    return Script(lane, lines)
