#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""usage: test_aio.py

Tests of aio.py with the back end that TIMERWHEEL_BACKEND names, and the library that
TIMERWHEEL_LIBRARY does. Only order and "never early" count, so a slow machine does not
matter. Output is KTAP.
"""
import asyncio
import sys
import time
import traceback

import aio

MANY = 500
PATIENCE = 240      # s: longer than anything takes


async def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"no end after {PATIENCE} s")
        await asyncio.sleep(0.01)


async def in_order_and_not_early(wheel):
    """each callback comes once, in the order of the deadlines, and not before"""
    came, early, timers = [], [], []

    def back(number, deadline):
        came.append(number)
        if time.monotonic_ns() < deadline:
            early.append(number)

    # All must be armed before the first is due, so a slow machine has longer.
    for seconds in (2, 10, 50):
        base = wheel.after(seconds)
        for number in range(MANY):
            # 7 has no factor in common with MANY, so each ms has one timer.
            deadline = base + number * 7 % MANY * 1_000_000
            timers.append(wheel.timer(3600, back, number * 7 % MANY, deadline))
            # The time that is read in arm() is later, and so is the deadline.
            timers[-1].arm((deadline - time.monotonic_ns()) / 1e9)
        if time.monotonic_ns() < base:
            break
        while timers:
            timers.pop().close()
    else:
        raise AssertionError("not armed in time, with 50 s for it")
    await until(lambda: len(came) >= MANY)
    await asyncio.sleep(0.05)
    assert not early, f"early: {early}"
    assert sorted(came) == list(range(MANY)), "lost or twice"
    far = [(a, b) for a, b in zip(came, came[1:]) if b < a - 100]
    assert not far, f"out of order: {far}"


async def armed_again(wheel):
    """arm() before the deadline: one callback, at the new deadline, later or earlier"""
    # If it was armed again too late, or the first came so late, a slow machine has longer.
    for seconds in (0.3, 3, 30):
        came, late = [], False
        deadline = wheel.after(seconds)
        last = wheel.timer(seconds, came.append, "last")
        for _ in range(20):
            await asyncio.sleep(seconds / 15)
            former, deadline = deadline, wheel.after(seconds)
            last.arm(seconds)
            late = late or time.monotonic_ns() >= former
        first = wheel.timer(3600, came.append, "first")
        first.arm(0.001)
        await until(lambda: came)
        if not late and time.monotonic_ns() < deadline:
            break
        last.close()
        first.close()
    else:
        raise AssertionError("never in time, with 30 s for it")
    assert came == ["first"], came
    await until(lambda: len(came) > 1)
    assert time.monotonic_ns() >= deadline, "early"
    first.arm(0.01)
    await until(lambda: len(came) > 2)
    assert came == ["first", "last", "first"], came


async def cancelled(wheel):
    """cancel() and close(): no callback, not even of an event that was taken already"""
    pending, came, stopped, armed = [], [], [], []

    def stop_other(number):
        stopped.append(number)
        both[1 - number].cancel()

    def arm_other(number):
        armed.append((number, time.monotonic_ns()))
        if len(armed) == 1:
            others[1 - number].arm(0.2)

    for _ in range(100):
        pending.append(wheel.timer(0.05, came.append, "pending"))
    pending[50].close()
    for timer in pending[:50] + pending[51:]:
        timer.cancel()
    # All are due when the loop looks again. Whichever comes first stops or delays the other.
    both = [wheel.timer(0.01, stop_other, number) for number in range(2)]
    others = [wheel.timer(0.01, arm_other, number) for number in range(2)]
    late = wheel.timer(0.01, came.append, "late")
    time.sleep(0.1)
    late.cancel()
    await until(lambda: len(armed) > 1)
    await asyncio.sleep(0.3)
    assert not came, f"cancelled, but fired: {came}"
    assert len(stopped) == 1, stopped
    (first, began), (second, ended) = armed
    assert first != second and ended - began >= 200_000_000, "the event of the former arming"


async def late_answer(wheel):
    """a failed arm() is reported to the loop's exception handler"""
    seen = []
    wheel.loop.set_exception_handler(lambda loop, context: seen.append(context["exception"]))
    timer = wheel.timer(3600, seen.append, None)
    # behind the back of the wheel
    aio.library.timerwheel_remove(wheel.pointer, aio.ctypes.byref(aio.Remove(key=timer.key)),
                                  aio.ctypes.c_size_t(1))
    wheel.needs(aio.checked(aio.library.timerwheel_queue_move(
        wheel.queue, aio.ctypes.byref(aio.Move(key=timer.key, deadline=1)))))
    wheel.needs(aio.TIMERWHEEL_NEEDS_CALL)
    await until(lambda: seen)
    assert isinstance(seen[0], FileNotFoundError), seen


async def closed(wheel):
    """after close() of the wheel timers can be cancelled and closed, as when a server ends"""
    came = []
    timers = [wheel.timer(0.01, came.append, number) for number in range(3)]
    timers[0].arm(0.02)
    wheel.close()
    wheel.close()
    timers[0].cancel()
    timers[1].close()
    for call in (lambda: timers[2].arm(0.01), lambda: wheel.timer(0.01, came.append, 3)):
        try:
            call()
        except RuntimeError:
            continue
        raise AssertionError("armed in a closed wheel")
    await asyncio.sleep(0.1)
    assert not came, came


async def echo_server(_wheel):
    """the server of the example closes an idle connection, and only that"""
    for seconds in (0.5, 5, 50):
        server = asyncio.create_task(aio.main(0, seconds))
        port = asyncio.get_running_loop().create_future()
        aio.print = lambda *words, port=port, **_: port.set_result(words[-1])
        began = spoke = time.monotonic()
        busy, idle = [await asyncio.open_connection("127.0.0.1", await port) for _ in range(2)]
        lost = asyncio.create_task(idle[0].read())
        try:
            while not lost.done() or time.monotonic() - began < 2 * seconds:
                last, spoke = spoke, time.monotonic()
                busy[1].write(b"x")
                assert await busy[0].readexactly(1) == b"x"
                await asyncio.sleep(0.02)
                assert time.monotonic() - began < PATIENCE, "the idle connection was not closed"
            break
        except (asyncio.IncompleteReadError, ConnectionError):
            assert time.monotonic() - last >= seconds, "the busy connection was closed"
            # The machine stood still, and it was idle.
            server.cancel()
    else:
        raise AssertionError("never busy, with 50 s for it")
    try:
        assert await lost == b""
    except ConnectionResetError:
        pass
    server.cancel()


async def one(test):
    wheel = aio.Wheel(10000)
    try:
        await asyncio.wait_for(test(wheel), 2 * PATIENCE)
    finally:
        wheel.close()


def run():
    tests = [in_order_and_not_early, armed_again, cancelled, late_answer, closed, echo_server]
    failed = False
    print("TAP version 13")
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        result = "ok"
        try:
            asyncio.run(one(test))
        except Exception:
            failed, result = True, "not ok"
            for line in traceback.format_exc().splitlines():
                print("#", line)
        print(f"{result} {number} {test.__name__}: {test.__doc__}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(run())
