#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""usage: test_aio.py

Tests of aio.py with the back end that TIMERWHEEL_BACKEND names, and the library that
TIMERWHEEL_LIBRARY does. Only order and "never early" count, so a slow machine does not
matter. Output is KTAP.
"""
import asyncio
import contextvars
import math
import random
import sys
import threading
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


def ways(wheel):
    """Functions that arm as loop.call_later() does, and return what cancels; this is the first."""
    def again(seconds, callback, *args, context=None):
        timer = wheel.timer(3600, callback, *args)
        timer.arm(seconds, context=context)
        return timer

    return wheel.loop.call_later, wheel.timer, again


def same(results):
    assert all(result == results[0] for result in results), results


SHORT = (-math.inf, -sys.maxsize, -1, -0.0, 0, 1e-9, 0.01, True)
LONG = (3600, 9.2e9, 9.3e9, 1e10, 2 ** 63 / 1e9, 2 ** 64 / 1e9, threading.TIMEOUT_MAX, 1e300,
        sys.maxsize, math.inf)


async def delays(wheel):
    """any delay: a callback, or none, as with call_later()"""
    for number, arm in enumerate(ways(wheel)):
        came, nan = [], []
        for seconds in SHORT + LONG:
            before = time.monotonic()
            when = arm(seconds, came.append, seconds).when()
            assert before + seconds <= when <= time.monotonic() + seconds, (number, seconds, when)
        # It comes only if no other timer of call_later() is before it.
        if number:
            arm(math.nan, nan.append, 1)
        await until(lambda: len(came) >= len(SHORT) and len(nan) == bool(number))
        await asyncio.sleep(0.05)
        assert sorted(came) == sorted(SHORT), (number, came)
    errors = []
    for arm in ways(wheel):
        errors.append([])
        for seconds in None, "1", 2 ** 5000:
            try:
                arm(seconds, print, "called")
            except (TypeError, OverflowError) as error:
                errors[-1].append(type(error))
    same(errors)
    assert len(errors[0]) == 3, errors
    # The former arming counts if the new one is invalid.
    came = []
    timer = wheel.timer(0.01, came.append, 1)
    try:
        timer.arm("1")
    except TypeError:
        pass
    await until(lambda: came)


async def contexts(wheel):
    """callbacks run in the context in which they were armed, or in that which was given"""
    variable, results = contextvars.ContextVar("variable", default="none"), []
    given = contextvars.copy_context()

    def back(came, name):
        came.append((name, variable.get()))
        variable.set("changed")

    given.run(variable.set, "given")
    for arm in ways(wheel):
        came = []
        results.append(came)
        variable.set("first")
        arm(0.01, back, came, 1)
        arm(0.03, back, came, 3)
        variable.set("second")
        arm(0.02, back, came, 2)
        variable.set("third")
        await until(lambda came=came: len(came) == 3)
        came.append(variable.get())
        came.sort(key=str)
        context = given.copy()
        arm(0, back, came, 4, context=context)
        await until(lambda came=came: len(came) == 5)
        came.append(context[variable])
    same(results)
    # What counts is where it was armed last.
    variable.set("before")
    timer = wheel.timer(3600, back, came, 5)
    variable.set("after")
    timer.arm(0)
    variable.set("now")
    await until(lambda: len(came) == 7)
    assert came[-1] == (5, "after"), came


async def handles(wheel):
    """cancel(), cancelled() and when(), before and after the callback, as of a TimerHandle"""
    results = []
    for arm in ways(wheel):
        came, states = [], []
        results.append((came, states))
        fired, stopped = [arm(0, came.append, number) for number in range(2)]
        far = arm(3600, came.append, 2)
        states.append([timer.cancelled() for timer in (fired, stopped, far)])
        stopped.cancel()
        stopped.cancel()
        far.cancel()
        states.append([timer.cancelled() for timer in (fired, stopped, far)])
        await until(lambda came=came: came)
        when = fired.when()
        states.append(fired.cancelled())
        fired.cancel()
        states += [fired.cancelled(), fired.when() == when, when <= time.monotonic()]
        await asyncio.sleep(0.05)
    same(results)
    timer = wheel.timer(3600, came.append, 3)
    timer.cancel()
    timer.arm(0)
    assert not timer.cancelled()
    await until(lambda: 3 in came)
    # The memory goes back once, and what the callback needs goes, too.
    timer.close()
    timer.close()
    timer.cancel()
    assert timer.cancelled()
    try:
        timer.arm(0)
    except RuntimeError:
        return
    raise AssertionError("a closed timer was armed")


async def exceptions(wheel):
    """exceptions of callbacks, of any kind, go where call_later() sends them; others are called"""
    results, seen = [], []

    def fail(number):
        raise LookupError(number)

    wheel.loop.set_exception_handler(lambda loop, context: seen.append(context))
    for arm in ways(wheel):
        came = []
        for number in range(3):
            arm(0, fail, number)
            arm(0, came.append, number)
            # in debug mode a coroutine is refused, else never awaited
            arm(0, None, number)
        await until(lambda came=came: len(seen) == 6 and len(came) == 3)
        results.append((sorted(came), sorted((context["message"], repr(context["exception"]),
                                              sorted(context)) for context in seen)))
        seen.clear()
    same(results)


async def debug(wheel):
    """in debug mode what call_later() refuses is refused"""
    async def coroutine():
        pass

    def other_thread(arm):
        try:
            arm(3600, print)
        except RuntimeError as error:
            return str(error)
        return "armed"

    results, seen, came = [], [], []
    # It was armed before the debug mode was switched on, among others.
    for callback in came.append, coroutine, came.append:
        wheel.timer(0.01, callback, *[1] * (callback is not coroutine))
    time.sleep(0.05)
    wheel.loop.set_exception_handler(lambda loop, context: seen.append(context["exception"]))
    wheel.loop.set_debug(True)
    await until(lambda: len(came) == 2 and seen)
    assert isinstance(seen[0], TypeError) and len(seen) == 1, seen
    for arm in ways(wheel):
        results.append([await asyncio.to_thread(other_thread, arm)])
        for callback in coroutine, 1, None:
            try:
                arm(0, callback)
            except TypeError:
                results[-1].append(callback)
    same(results)
    assert len(results[0]) == 4 and "thread" in results[0][0], results


async def random_scripts(wheel):
    """timers at random, of which some are cancelled: the callbacks of call_later()"""
    for seed in range(50):
        results = []
        for arm in ways(wheel):
            draw, came, timers, expected = random.Random(seed), [], [], []
            for number in range(100):
                seconds = draw.choice(SHORT[:-1] + LONG)
                timers.append(arm(seconds, came.append, number))
                expected.append(seconds in SHORT)
                if draw.random() < 0.3:
                    victim = draw.randrange(len(timers))
                    timers[victim].cancel()
                    expected[victim] = False
            await until(lambda came=came, expected=expected: len(came) >= sum(expected))
            results.append(sorted(came))
            for timer in timers:
                timer.cancel()
        same(results)
        assert results[0] == [n for n, e in enumerate(expected) if e], (seed, results[0])


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
    tests = [in_order_and_not_early, armed_again, cancelled, delays, contexts, handles, exceptions,
             debug, random_scripts, late_answer, closed, echo_server]
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
