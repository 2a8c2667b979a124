// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! usage: timers [NUMBER OF TIMERS]...
//!
//! What it takes to insert, reset, remove and expire a timer, in nanoseconds: with this crate, with
//! tokio's Sleep and with tokio-util's DelayQueue. Prints a table; best of three. In a guest with
//! instruction-counted time a nanosecond is an instruction, and one run is enough.
//!
//! Timers are due 30 to 60 s after they were inserted. They are reset to 10 s later and removed in
//! another order than that of insertion. Expire: all are due at the same time; from that time on
//! until the last of them was delivered, which includes up to a tick (1 ms) in all. One thread,
//! which does nothing else.

use futures_core::Stream;
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use timerwheel::*;
use tokio::time::Sleep;

/// Elements of a call
const BATCH: usize = 256;

/// A time for each phase
type Times = [Duration; 4];

/// Timers due in the far future, and all at the same time soon
const FAR: Duration = Duration::from_secs(30);

fn far(i: usize, count: usize) -> Duration {
    FAR + FAR.mul_f64(place(i, count) as f64 / count as f64)
}

/// A number below `count`, another one for each `i`
fn place(i: usize, count: usize) -> usize {
    // A prime, which divides no count that is a power of ten
    (i * 7_368_787) % count
}

/// Time for all to be inserted before they are due
fn soon(count: usize) -> Duration {
    Duration::from_millis(200) + Duration::from_micros(20) * count as u32
}

fn timed(phase: &mut Duration, run: impl FnOnce()) {
    let begin = Instant::now();
    run();
    *phase = begin.elapsed();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Calls on arrays, by handle
fn wheel(count: usize) -> Times {
    let mut times = Times::default();
    let wheel = Wheel::open().unwrap();
    let mut handles = Vec::with_capacity(count);
    let keys: Vec<usize> = (0..count).collect();
    let add = |deadline: &dyn Fn(usize) -> Deadline, handles: &mut Vec<Handle>| {
        for chunk in keys.chunks(BATCH) {
            let mut elems = [Add::new(0, 0, Duration::ZERO); BATCH];
            for (elem, i) in elems.iter_mut().zip(chunk) {
                *elem = Add::new(*i as u64, 0, deadline(*i));
            }
            let done = wheel.add(&mut elems[..chunk.len()]).unwrap();
            handles.extend(done.iter().map(|added| added.handle().unwrap()));
        }
    };
    timed(&mut times[0], || add(&|i| far(i, count).into(), &mut handles));
    timed(&mut times[1], || {
        let later = wheel.now() + Duration::from_secs(10);
        for chunk in keys.chunks(BATCH) {
            let mut elems = [MoveHandle::new(handles[0], later); BATCH];
            for (elem, i) in elems.iter_mut().zip(chunk) {
                let i = place(*i, count);
                *elem = MoveHandle::new(handles[i], later + far(i, count));
            }
            wheel.set_handles(&mut elems[..chunk.len()]).unwrap();
        }
    });
    timed(&mut times[2], || {
        for chunk in keys.chunks(BATCH) {
            let mut elems = [RemoveHandle::new(handles[0]); BATCH];
            for (elem, i) in elems.iter_mut().zip(chunk) {
                *elem = RemoveHandle::new(handles[place(*i, count)]);
            }
            wheel.remove_handles(&mut elems[..chunk.len()]).unwrap();
        }
    });
    assert_eq!(wheel.stats().removed, count as u64);
    let due = Instant::now() + soon(count);
    let deadline = wheel.at(due).unwrap();
    handles.clear();
    add(&|_| deadline.into(), &mut handles);
    let mut events = Events::with_capacity(BATCH);
    let mut got = 0;
    while got < count {
        got += wheel.wait(&mut events, None).unwrap();
    }
    times[3] = due.elapsed();
    times
}

/// Resident timers: armed, refreshed and cancelled in memory. Inserting is arming them again.
fn residents(count: usize) -> Times {
    let mut times = Times::default();
    let wheel = Wheel::builder().resident().open().unwrap();
    let timers = wheel.residents().unwrap();
    let mut handles = Vec::with_capacity(count);
    for i in 0..count {
        let handle = wheel.add_one(Add::new(i as u64, 0, FAR)).unwrap();
        assert_eq!(timers.cancel(handle), Answer::Done);
        handles.push(handle);
    }
    let begin = wheel.now() + Duration::from_secs(5);
    timed(&mut times[0], || {
        for (i, handle) in handles.iter().enumerate() {
            black_box(timers.arm(*handle, begin + far(i, count)) == Answer::Done);
        }
    });
    timed(&mut times[1], || {
        let later = begin + Duration::from_secs(10);
        for i in 0..count {
            let i = place(i, count);
            black_box(timers.refresh(handles[i], later + far(i, count)) == Answer::Done);
        }
    });
    timed(&mut times[2], || {
        for i in 0..count {
            let answer = timers.cancel(handles[place(i, count)]);
            assert_eq!(answer, Answer::Done);
        }
    });
    let due = Instant::now() + soon(count);
    let deadline = wheel.at(due).unwrap();
    let mut moves: Vec<_> =
        handles.iter().map(|handle| MoveHandle::new(*handle, deadline)).collect();
    wheel.set_handles(&mut moves).unwrap();
    let mut events = Events::with_capacity(BATCH);
    let mut got = 0;
    while got < count {
        got += wheel.wait(&mut events, None).unwrap();
    }
    times[3] = due.elapsed();
    times
}

/// This crate's DelayQueue, as a stream. The second time, when its slots are there, counts.
fn delay_queue(count: usize) -> Times {
    let mut times = Times::default();
    let mut queue = DelayQueue::new().unwrap();
    let mut keys = Vec::with_capacity(count);
    for round in 0..2 {
        let later = Duration::from_secs(20) * round;
        keys.clear();
        timed(&mut times[0], || {
            keys.extend((0..count).map(|i| queue.insert(i, later + far(i, count))));
            queue.flush().unwrap();
        });
        timed(&mut times[1], || {
            for i in 0..count {
                let i = place(i, count);
                queue.reset(keys[i], later + Duration::from_secs(10) + far(i, count));
            }
            queue.flush().unwrap();
        });
        timed(&mut times[2], || {
            for i in 0..count {
                black_box(queue.remove(keys[place(i, count)]));
            }
        });
        assert!(queue.is_empty());
    }
    runtime().block_on(async {
        let due = Instant::now() + soon(count);
        let deadline = queue.wheel().at(due).unwrap();
        (0..count).for_each(|i| drop(queue.insert_at(i, deadline)));
        queue.flush().unwrap();
        while Next(&mut queue).await.is_some() {}
        times[3] = due.elapsed();
    });
    times
}

/// tokio-util's
fn tokio_delay_queue(count: usize) -> Times {
    let mut times = Times::default();
    runtime().block_on(async {
        let mut queue = tokio_util::time::DelayQueue::new();
        let mut keys = Vec::with_capacity(count);
        timed(&mut times[0], || {
            keys.extend((0..count).map(|i| queue.insert(i, far(i, count))));
        });
        timed(&mut times[1], || {
            for i in 0..count {
                let i = place(i, count);
                queue.reset(&keys[i], Duration::from_secs(10) + far(i, count));
            }
        });
        timed(&mut times[2], || {
            for i in 0..count {
                black_box(queue.remove(&keys[place(i, count)]));
            }
        });
        let due = Instant::now() + soon(count);
        (0..count).for_each(|i| drop(queue.insert_at(i, due.into())));
        while Next(&mut queue).await.is_some() {}
        times[3] = due.elapsed();
    });
    times
}

/// tokio's Sleep, each in a box, polled once so that it is registered
fn tokio_sleep(count: usize) -> Times {
    let mut times = Times::default();
    runtime().block_on(async {
        let mut sleeps: Vec<Pin<Box<Sleep>>> = Vec::with_capacity(count);
        let begin = Instant::now();
        for i in 0..count {
            let mut sleep = Box::pin(tokio::time::sleep(far(i, count)));
            Once(sleep.as_mut()).await;
            sleeps.push(sleep);
        }
        times[0] = begin.elapsed();
        timed(&mut times[1], || {
            for i in 0..count {
                let i = place(i, count);
                let deadline = Instant::now() + Duration::from_secs(10) + far(i, count);
                sleeps[i].as_mut().reset(deadline.into());
            }
        });
        let mut sleeps: Vec<_> = sleeps.into_iter().map(Some).collect();
        timed(&mut times[2], || {
            for i in 0..count {
                drop(sleeps[place(i, count)].take());
            }
        });
        let due = Instant::now() + soon(count);
        let mut sleeps = Vec::with_capacity(count);
        for _ in 0..count {
            let mut sleep = Box::pin(tokio::time::sleep_until(due.into()));
            Once(sleep.as_mut()).await;
            sleeps.push(sleep);
        }
        for sleep in sleeps {
            sleep.await;
        }
        times[3] = due.elapsed();
    });
    times
}

/// The next item of a stream
struct Next<'a, S>(&'a mut S);

impl<S: Stream + Unpin> Future for Next<'_, S> {
    type Output = Option<S::Item>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        Pin::new(&mut *self.0).poll_next(cx)
    }
}

/// Polls a future once.
struct Once<'a>(Pin<&'a mut Sleep>);

impl Future for Once<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let _ = self.0.as_mut().poll(cx);
        Poll::Ready(())
    }
}

fn main() {
    let mut counts: Vec<usize> =
        std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    if counts.is_empty() {
        counts = vec![10_000, 100_000, 1_000_000];
    }
    let facilities: [(&str, fn(usize) -> Times); 5] = [
        ("timerwheel, 256 in a call, by handle", wheel),
        ("timerwheel, resident", residents),
        ("timerwheel, DelayQueue", delay_queue),
        ("tokio-util, DelayQueue", tokio_delay_queue),
        ("tokio, Sleep", tokio_sleep),
    ];
    // Counted instructions are the same each time.
    let runs = if std::env::var_os("TW_ICOUNT").is_some() { 1 } else { 3 };
    println!("wheels in the {:?}", Wheel::open().unwrap().backend());
    println!("| ns for a timer | timers | insert | reset | remove | expire |");
    println!("|---|---:|---:|---:|---:|---:|");
    for count in counts {
        for (name, run) in facilities {
            let mut best = [u128::MAX; 4];
            for _ in 0..runs {
                for (best, time) in best.iter_mut().zip(run(count)) {
                    *best = (*best).min(time.as_nanos() / count as u128);
                }
            }
            let [insert, reset, remove, expire] = best;
            println!("| {name} | {count} | {insert} | {reset} | {remove} | {expire} |");
        }
    }
}
