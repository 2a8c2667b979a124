// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! usage: timers [NUMBER OF TIMERS]...
//!
//! The time to insert, reset, remove and expire a timer, in nanoseconds, with this crate, with
//! tokio's Sleep and with tokio-util's DelayQueue. Prints a table with the best of three runs. In a
//! guest with instruction-counted time a nanosecond is an instruction, and one run is enough.
//!
//! Timers are due 30 to 60 s after they were inserted. They are reset to 10 s later and removed in
//! a different order. Expire: all are due at the same time; measured from that time
//! until the last of them was delivered, which includes up to a tick (1 ms) in all. One thread,
//! which does nothing else.

// black_box() needs Rust 1.66; all loops have the same form.
#![allow(clippy::incompatible_msrv, clippy::needless_range_loop, clippy::type_complexity)]

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

/// When timers are due, and in which order they are reset and removed
struct Plan {
    count: usize,
    far: Vec<Duration>,
    order: Vec<usize>,
}

impl Plan {
    fn new(count: usize) -> Plan {
        // A prime, which divides no count that is a power of ten: each number comes once.
        let order: Vec<usize> = (0..count).map(|i| i * 7_368_787 % count).collect();
        let far = order.iter().map(|place| FAR + FAR.mul_f64(*place as f64 / count as f64));
        Plan { count, far: far.collect(), order }
    }
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
fn wheel(plan: &Plan) -> Times {
    let mut times = Times::default();
    let (count, far, order) = (plan.count, &plan.far, &plan.order);
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
    timed(&mut times[0], || add(&|i| far[i].into(), &mut handles));
    timed(&mut times[1], || {
        let later = wheel.now() + Duration::from_secs(10);
        for chunk in keys.chunks(BATCH) {
            let mut elems = [MoveHandle::new(handles[0], later); BATCH];
            for (elem, i) in elems.iter_mut().zip(chunk) {
                let i = order[*i];
                *elem = MoveHandle::new(handles[i], later + far[i]);
            }
            wheel.set_handles(&mut elems[..chunk.len()]).unwrap();
        }
    });
    timed(&mut times[2], || {
        for chunk in keys.chunks(BATCH) {
            let mut elems = [RemoveHandle::new(handles[0]); BATCH];
            for (elem, i) in elems.iter_mut().zip(chunk) {
                *elem = RemoveHandle::new(handles[order[*i]]);
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
fn residents(plan: &Plan) -> Times {
    let mut times = Times::default();
    let (count, far, order) = (plan.count, &plan.far, &plan.order);
    let wheel = Wheel::builder().resident().open().unwrap();
    let timers = wheel.table().unwrap();
    let mut handles = Vec::with_capacity(count);
    for i in 0..count {
        let handle = wheel.add_one(Add::new(i as u64, 0, FAR)).unwrap();
        assert_eq!(timers.cancel(handle), Answer::Done);
        handles.push(handle);
    }
    let begin = wheel.now() + Duration::from_secs(5);
    timed(&mut times[0], || {
        for (i, handle) in handles.iter().enumerate() {
            black_box(timers.arm(*handle, begin + far[i]) == Answer::Done);
        }
    });
    timed(&mut times[1], || {
        let later = begin + Duration::from_secs(10);
        for i in 0..count {
            let i = order[i];
            black_box(timers.refresh(handles[i], later + far[i]) == Answer::Done);
        }
    });
    timed(&mut times[2], || {
        for i in 0..count {
            let answer = timers.cancel(handles[order[i]]);
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
fn delay_queue(plan: &Plan) -> Times {
    let mut times = Times::default();
    let (count, far, order) = (plan.count, &plan.far, &plan.order);
    let mut queue = DelayQueue::new().unwrap();
    let mut keys = Vec::with_capacity(count);
    for round in 0..2 {
        let later = Duration::from_secs(20) * round;
        keys.clear();
        timed(&mut times[0], || {
            keys.extend((0..count).map(|i| queue.insert(i, later + far[i])));
            queue.flush().unwrap();
        });
        timed(&mut times[1], || {
            for i in 0..count {
                let i = order[i];
                queue.reset(keys[i], later + Duration::from_secs(10) + far[i]);
            }
            queue.flush().unwrap();
        });
        timed(&mut times[2], || {
            for i in 0..count {
                black_box(queue.remove(keys[order[i]]));
            }
        });
        assert!(queue.is_empty());
    }
    runtime().block_on(async {
        let due = Instant::now() + soon(count);
        let deadline = queue.wheel().at(due).unwrap();
        for i in 0..count {
            let _ = queue.insert_at(i, deadline);
        }
        queue.flush().unwrap();
        while Next(&mut queue).await.is_some() {}
        times[3] = due.elapsed();
    });
    times
}

/// tokio-util's
fn tokio_delay_queue(plan: &Plan) -> Times {
    let mut times = Times::default();
    let (count, far, order) = (plan.count, &plan.far, &plan.order);
    runtime().block_on(async {
        let mut queue = tokio_util::time::DelayQueue::new();
        let mut keys = Vec::with_capacity(count);
        timed(&mut times[0], || {
            keys.extend((0..count).map(|i| queue.insert(i, far[i])));
        });
        timed(&mut times[1], || {
            for i in 0..count {
                let i = order[i];
                queue.reset(&keys[i], Duration::from_secs(10) + far[i]);
            }
        });
        timed(&mut times[2], || {
            for i in 0..count {
                black_box(queue.remove(&keys[order[i]]));
            }
        });
        let due = Instant::now() + soon(count);
        for i in 0..count {
            let _ = queue.insert_at(i, due.into());
        }
        while Next(&mut queue).await.is_some() {}
        times[3] = due.elapsed();
    });
    times
}

/// tokio's Sleep, each in a box, polled once so that it is registered
fn tokio_sleep(plan: &Plan) -> Times {
    let mut times = Times::default();
    let (count, far, order) = (plan.count, &plan.far, &plan.order);
    runtime().block_on(async {
        let mut sleeps: Vec<Pin<Box<Sleep>>> = Vec::with_capacity(count);
        let begin = Instant::now();
        for i in 0..count {
            let mut sleep = Box::pin(tokio::time::sleep(far[i]));
            Once(sleep.as_mut()).await;
            sleeps.push(sleep);
        }
        times[0] = begin.elapsed();
        timed(&mut times[1], || {
            for i in 0..count {
                let i = order[i];
                let deadline = Instant::now() + Duration::from_secs(10) + far[i];
                sleeps[i].as_mut().reset(deadline.into());
            }
        });
        let mut sleeps: Vec<_> = sleeps.into_iter().map(Some).collect();
        timed(&mut times[2], || {
            for i in 0..count {
                drop(sleeps[order[i]].take());
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
    let facilities: [(&str, fn(&Plan) -> Times); 5] = [
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
        let plan = Plan::new(count);
        for (name, run) in facilities {
            let mut best = [u128::MAX; 4];
            for _ in 0..runs {
                for (best, time) in best.iter_mut().zip(run(&plan)) {
                    *best = (*best).min(time.as_nanos() / count as u128);
                }
            }
            let [insert, reset, remove, expire] = best;
            println!("| {name} | {count} | {insert} | {reset} | {remove} | {expire} |");
        }
    }
}
