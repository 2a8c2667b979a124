#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""usage: aio.py PORT SECONDS

An echo server with asyncio, which closes connections that have sent nothing for SECONDS.
Other programs can use class Wheel: timers for an asyncio event loop, as resident timers in a
wheel of libtimerwheel. arm() and cancel() usually only write to memory. Operations that need a
system call are gathered, and performed once in each iteration of the loop.
"""
import asyncio
import contextvars
import ctypes
import itertools
import math
import os
import sys
import time
from ctypes import c_int, c_uint32, c_uint64, c_void_p

TIMERWHEEL_ABS = 1
TIMERWHEEL_NEEDS_CALL = 2   # answer of timerwheel_queue_arm()
TIME_MAX = 2 ** 63 - 1      # TIMERWHEEL_TIME_MAX
NEVER = 2 ** 64 - 1         # later than the deadline of any event
ROOM = 64                   # events taken at once


def structure(**types):
    """Define a C structure. The arguments are the names of the fields of each type, in order."""
    fields = [(name, getattr(ctypes, kind.rstrip("_"))) for kind, names in types.items()
              for name in names.split()]
    return type("Structure", (ctypes.Structure,), {"_fields_": fields})


Config = structure(c_int="backend", c_char_p="device", c_uint32="clock capacity",
                   c_uint64="tick", c_uint32_="slots wake_events", c_uint64_="wake_ns slack",
                   c_uint32__="ring", c_bool="table clock_set alarm resident")
Add = structure(c_uint64="key value deadline period slack match", c_uint32="flags",
                c_int32="result", c_uint32_="index generation")
Move = structure(c_uint64="key deadline match", c_uint32="flags", c_int32="result")
Remove = structure(c_uint64="key match value left", c_uint32="flags", c_int32="result")
Event = structure(c_uint64="key value deadline fired overruns", c_uint32="flags index")
library = ctypes.CDLL(os.environ.get("TIMERWHEEL_LIBRARY", "libtimerwheel.so.1"))
library.timerwheel_strerror.restype = ctypes.c_char_p
library.timerwheel_take.restype = library.timerwheel_add.restype = ctypes.c_long


def checked(result):
    if result < 0:
        raise OSError(-result, library.timerwheel_strerror(c_int(result)).decode())
    return result


class Timer:
    """A timer, created by Wheel.timer(). Each arming calls the callback once, unless the timer is
    armed again or cancelled before that. Exceptions of the callback go to the loop's exception
    handler. Only the thread of the loop may use it."""

    def __init__(self, wheel, key, callback, args):
        self.wheel, self.key, self.callback, self.args = wheel, key, callback, args
        self.handle = None      # handle of the callback, once the event was taken
        self.name = None        # key, index and generation

    def arm(self, seconds, *, context=None):
        """Call back after this number of seconds, and not at the previous deadline. The callback
        runs in the given context, or in a copy of the current one. As with call_later(), math.inf
        means never, and a negative number means immediately."""
        self.wheel.must_be_open(self)
        self.set(seconds, context)
        self.wheel.needs(checked(library.timerwheel_queue_arm(
            self.wheel.queue, *self.name, c_uint64(self.deadline))))

    def cancel(self):
        """Do not call back. The timer can be armed again."""
        self.forget(NEVER)
        self.is_cancelled = True
        if self.wheel.queue and self.key in self.wheel.timers:
            checked(library.timerwheel_queue_cancel(self.wheel.queue, *self.name))

    def cancelled(self):
        """Whether the timer was cancelled since it was armed."""
        return self.is_cancelled

    def when(self):
        """The last deadline of the timer, a time of time.monotonic()."""
        return self.time

    def close(self):
        """Do not call back, and free the timer's memory. It cannot be armed again."""
        self.forget(NEVER)
        self.is_cancelled, self.callback, self.args, self.context = True, None, None, None
        if self.wheel.timers.pop(self.key, None) and self.wheel.queue:
            checked(library.timerwheel_queue_remove(
                self.wheel.queue, ctypes.byref(Remove(key=self.key))))
            self.wheel.needs(TIMERWHEEL_NEEDS_CALL)

    def set(self, seconds, context):
        # If this raises an exception, nothing has changed.
        self.time, deadline = time.monotonic() + seconds, self.wheel.after(seconds)
        self.forget(deadline)
        self.is_cancelled = False
        self.context = contextvars.copy_context() if context is None else context

    def forget(self, deadline):
        # An event that was or will be taken has an earlier deadline, so expired() drops it.
        self.deadline = deadline
        if self.handle:
            self.handle.cancel()
            self.handle = None


class Wheel:
    """The timers of the running event loop: at most `capacity' (0: 4,194,304)."""

    def __init__(self, capacity=0):
        self.loop = asyncio.get_running_loop()
        self.keys, self.timers, self.failed = itertools.count(), {}, 0
        self.pointer, self.queue = c_void_p(), c_void_p()
        self.events, self.flushing = (Event * ROOM)(), False
        # Keep it in the object, because the library has its address.
        self.report = ctypes.CFUNCTYPE(None, c_void_p, ctypes.c_ulong, c_void_p)(self.note)
        config = Config(capacity=capacity, resident=True)
        checked(library.timerwheel_open(ctypes.byref(self.pointer), ctypes.byref(config)))
        checked(library.timerwheel_queue_new(ctypes.byref(self.queue), self.pointer, 0,
                                             self.report, None))
        self.fd = library.timerwheel_fd(self.pointer)
        self.loop.add_reader(self.fd, self.expired)

    def timer(self, seconds, callback, *args, context=None):
        """Return a timer that calls callback(*args) after this time: see Timer.arm()."""
        timer = Timer(self, next(self.keys), callback, args)
        self.must_be_open(timer)
        timer.set(seconds, context)
        add = Add(key=timer.key, deadline=timer.deadline, flags=TIMERWHEEL_ABS)
        checked(library.timerwheel_add(self.pointer, ctypes.byref(add), ctypes.c_size_t(1)))
        checked(add.result)
        timer.name = c_uint64(timer.key), c_uint32(add.index), c_uint32(add.generation)
        self.timers[timer.key] = timer
        return timer

    def close(self):
        """End all timers. They can still be cancelled and closed, but not armed."""
        if not self.queue:
            return
        self.loop.remove_reader(self.fd)
        library.timerwheel_queue_free(self.queue)
        library.timerwheel_close(self.pointer)
        self.queue = self.pointer = None
        for timer in self.timers.values():
            timer.forget(NEVER)

    def must_be_open(self, timer):
        if not self.queue:
            raise RuntimeError("the wheel is closed")
        if timer.name and timer.key not in self.timers:
            raise RuntimeError("the timer is closed")
        if self.loop.get_debug():
            # The loop checks the thread and the callback.
            self.loop.call_later(0, timer.callback, *timer.args).cancel()

    @staticmethod
    def after(seconds):
        # max() returns 0 for NaN, so the timer is due immediately, as with call_later().
        if max(0, seconds) > TIME_MAX / 1e9:
            return TIME_MAX
        return min(TIME_MAX, time.monotonic_ns() + math.ceil(max(0, seconds) * 1e9))

    def needs(self, answer):
        if answer == TIMERWHEEL_NEEDS_CALL and not self.flushing:
            self.flushing = True
            self.loop.call_soon(self.flush)

    def flush(self):
        self.flushing = False
        if self.queue:
            checked(library.timerwheel_queue_flush(self.queue))
            # Errors of arm() that appear only now go to the loop's exception handler.
            failed, self.failed = self.failed, 0
            checked(failed)

    def note(self, _arg, _operation, element):
        # Only a MOVE of arm() can fail. An exception cannot be raised through the library.
        self.failed = Move.from_address(element).result

    def expired(self):
        while taken := checked(library.timerwheel_take(self.pointer, self.events, c_uint64(ROOM))):
            for event in self.events[:taken]:
                timer = self.timers.get(event.key)
                if timer and event.deadline >= timer.deadline:
                    timer.forget(NEVER)
                    self.call(timer)

    def call(self, timer):
        try:
            timer.handle = self.loop.call_soon(timer.callback, *timer.args, context=timer.context)
        except TypeError as error:
            # The loop's debug mode was switched on since and rejects the callback. Continue with
            # the others.
            self.loop.call_exception_handler({"message": "invalid callback", "exception": error})


class Echo(asyncio.Protocol):
    def __init__(self, wheel, seconds):
        self.wheel, self.seconds = wheel, seconds

    def connection_made(self, transport):
        self.transport = transport
        self.idle = self.wheel.timer(self.seconds, transport.abort)

    def data_received(self, data):
        self.idle.arm(self.seconds)
        self.transport.write(data)

    def connection_lost(self, _error):
        self.idle.close()


async def main(port, seconds):
    wheel = Wheel()
    server = await asyncio.get_running_loop().create_server(
        lambda: Echo(wheel, seconds), "127.0.0.1", port)
    print("listening on port", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
