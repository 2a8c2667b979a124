// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Wheels in tokio's event loop

mod common;

use common::*;
use futures_core::Stream;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use timerwheel::*;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(240);

/// As std::future::poll_fn, which is newer than the oldest Rust that the crate is for
struct PollFn<F>(F);

impl<T, F: FnMut(&mut Context<'_>) -> Poll<T> + Unpin> Future for PollFn<F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        (self.0)(cx)
    }
}

fn poll_fn<T, F: FnMut(&mut Context<'_>) -> Poll<T>>(function: F) -> PollFn<F> {
    PollFn(function)
}

async fn item<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    let next = poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx));
    timeout(LIMIT, next).await.expect("no wake-up")
}

#[tokio::test]
async fn wait() {
    let wheel = Arc::new(Wheel::open().unwrap());
    let fired = AsyncWheel::new(wheel.clone()).unwrap();
    let mut events = Events::with_capacity(3);
    for round in 0..20 {
        let begin = Instant::now();
        for key in 0..5 {
            wheel.add_one(Add::new(key, round, ms(5))).unwrap();
        }
        let mut got = 0;
        while got < 5 {
            got += timeout(LIMIT, fired.wait(&mut events)).await.expect("no wake-up").unwrap();
            assert!(events.iter().all(|event| event.value() == round));
        }
        assert!(begin.elapsed() >= ms(5));
    }
    assert!(timeout(ms(20), fired.wait(&mut events)).await.is_err());
    assert_eq!(fired.wheel().stats().delivered, 100);
}

/// Two tasks wait for the same wheel, in threads of their own; timers are armed while they sleep.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wait_in_two_tasks() {
    let wheel = Arc::new(Wheel::open().unwrap());
    let fired = Arc::new(AsyncWheel::new(wheel.clone()).unwrap());
    let mut tasks: Vec<_> = (0..2)
        .map(|_| {
            let fired = fired.clone();
            tokio::spawn(async move {
                let mut events = Events::with_capacity(4);
                let mut keys = Vec::new();
                // The last one wakes the other task.
                while !keys.contains(&u64::MAX) {
                    fired.wait(&mut events).await.unwrap();
                    keys.extend(events.iter().map(|event| event.key()));
                }
                fired.wheel().add_one(Add::new(u64::MAX, 0, ms(1))).unwrap();
                keys
            })
        })
        .collect();
    for key in 0..200 {
        wheel.add_one(Add::new(key, 0, ms(key % 7))).unwrap();
        tokio::time::sleep(ms(key % 3)).await;
    }
    wheel.add_one(Add::new(u64::MAX, 0, ms(50))).unwrap();
    let mut keys = Vec::new();
    for task in &mut tasks {
        keys.extend(timeout(LIMIT, task).await.expect("no wake-up").unwrap());
    }
    keys.retain(|key| *key != u64::MAX);
    keys.sort_unstable();
    assert!(keys.into_iter().eq(0..200));
}

#[tokio::test]
async fn events_as_a_stream() {
    let wheel = Arc::new(Wheel::open().unwrap());
    let mut fired = AsyncWheel::new(wheel.clone()).unwrap();
    // All are armed before the first is due, wherever this stands still.
    let mut soon = ms(100);
    loop {
        let base = wheel.now() + soon;
        for key in 0..10 {
            wheel.add_one(Add::new(key, 0, base + ms(10 * (10 - key)))).unwrap();
        }
        if wheel.now() < base {
            break;
        }
        wheel.remove(&mut (0..10).map(Remove::new).collect::<Vec<_>>()).unwrap();
        soon *= 2;
    }
    for key in (0..10).rev() {
        assert_eq!(item(&mut fired).await.unwrap().unwrap().key(), key);
    }
}

#[tokio::test]
async fn event_ring() {
    let wheel = Arc::new(Wheel::builder().ring(16).open().unwrap());
    let mut fired = AsyncWheel::new(wheel.clone()).unwrap();
    for key in 0..50 {
        wheel.add_one(Add::new(key, 0, ms(1 + key / 20))).unwrap();
        if key % 10 == 9 {
            for _ in 0..10 {
                item(&mut fired).await.unwrap().unwrap();
            }
        }
    }
    assert!(balanced(&wheel));
}

/// With an event ring there is one reader, and one task that waits.
#[tokio::test]
async fn event_ring_of_two_tasks() {
    let wheel = Arc::new(Wheel::builder().ring(16).open().unwrap());
    let fired = AsyncWheel::new(wheel.clone()).unwrap();
    let mut events = Events::with_capacity(3);
    assert_eq!(wheel.take(&mut events), Err(Error::Busy));
    assert_eq!(Ring::new(wheel.clone()).err(), Some(Error::Busy));
    let second = AsyncWheel::new(wheel.clone()).err().expect("a second reader");
    assert_eq!(second.raw_os_error(), Some(Error::Busy.errno()));
    {
        let mut first = Box::pin(fired.wait(&mut events));
        let sleeps = poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx).is_pending())).await;
        assert!(sleeps);
        let mut others = Events::with_capacity(3);
        assert_eq!(timeout(LIMIT, fired.wait(&mut others)).await.unwrap(), Err(Error::Busy));
        wheel.add_one(Add::new(1, 0, ms(1))).unwrap();
        assert_eq!(timeout(LIMIT, first).await.expect("no wake-up"), Ok(1));
    }
    // The first one has ended, and so has one that was dropped.
    assert!(timeout(ms(5), fired.wait(&mut events)).await.is_err());
    wheel.add_one(Add::new(2, 0, ms(1))).unwrap();
    assert_eq!(timeout(LIMIT, fired.wait(&mut events)).await.expect("no wake-up"), Ok(1));
    drop(fired);
    assert_eq!(wheel.take(&mut events), Ok(0));
    // A queue is the only reader of its wheel.
    let wheel = Wheel::builder().resident().ring(16).open().unwrap();
    let mut queue = DelayQueue::with_wheel(wheel).unwrap();
    queue.insert("value", ms(5));
    assert_eq!(item(&mut queue).await.unwrap().unwrap().into_inner(), "value");
}

#[tokio::test]
async fn delay_queue_as_a_stream() {
    let mut queue = DelayQueue::new().unwrap();
    assert!(item(&mut queue).await.is_none());
    let begin = Instant::now();
    let slow = queue.insert("slow", HOUR);
    queue.insert("fast", ms(10));
    assert_eq!(item(&mut queue).await.unwrap().unwrap().into_inner(), "fast");
    assert!(begin.elapsed() >= ms(10));
    queue.reset(slow, ms(10));
    assert_eq!(item(&mut queue).await.unwrap().unwrap().into_inner(), "slow");
    assert!(begin.elapsed() >= ms(20));
    assert!(item(&mut queue).await.is_none());
}

/// A task waits for the queue while another one inserts and resets values: what that gathers is
/// done, as the first one is woken.
#[tokio::test]
async fn delay_queue_of_two_tasks() {
    let queue = Arc::new(Mutex::new(DelayQueue::new().unwrap()));
    let late = queue.lock().unwrap().insert(0, HOUR);
    let shared = queue.clone();
    let task = tokio::spawn(async move {
        let mut got = Vec::new();
        while got.len() < 3 {
            let expired = poll_fn(|cx| shared.lock().unwrap().poll_expired(cx)).await;
            got.push(expired.unwrap().unwrap().into_inner());
        }
        got
    });
    tokio::time::sleep(ms(20)).await;
    queue.lock().unwrap().insert(1, ms(10));
    tokio::time::sleep(ms(100)).await;
    queue.lock().unwrap().insert(2, ms(10));
    tokio::time::sleep(ms(100)).await;
    assert!(queue.lock().unwrap().reset(late, ms(10)));
    let got = timeout(LIMIT, task).await.expect("no wake-up").unwrap();
    assert_eq!(got, [1, 2, 0]);
}

/// A task waits for the queue while another one takes the last value back: the stream ends.
#[tokio::test]
async fn delay_queue_that_becomes_empty() {
    for clear in [false, true] {
        let queue = Arc::new(Mutex::new(DelayQueue::new().unwrap()));
        let key = queue.lock().unwrap().insert(0, HOUR);
        let shared = queue.clone();
        let task = tokio::spawn(async move {
            poll_fn(|cx| shared.lock().unwrap().poll_expired(cx)).await.is_none()
        });
        tokio::time::sleep(ms(20)).await;
        if clear {
            queue.lock().unwrap().clear();
        } else {
            assert_eq!(queue.lock().unwrap().remove(key), Some(0));
        }
        assert!(timeout(LIMIT, task).await.expect("no wake-up").unwrap());
    }
}

/// The wheel is full: the stream reports it once, and continues. Refused values are tried again
/// after another task has removed a value.
#[tokio::test]
async fn delay_queue_that_is_full() {
    let mut after = ms(200);
    let (mut queue, other, late) = loop {
        let wheel = Wheel::builder().resident().capacity(3).open().unwrap();
        let other = wheel.add_one(Add::new(u64::MAX, 0, HOUR)).unwrap();
        let mut queue = DelayQueue::with_wheel(wheel).unwrap();
        let begin = Instant::now();
        queue.insert("soon", after);
        let late = queue.insert("late", HOUR);
        queue.insert("refused", ms(10));
        let first = item(&mut queue).await;
        // Else the expiry may be told first, and the refusal after it.
        if begin.elapsed() < after {
            assert_eq!(first, Some(Err(Error::Full)));
            break (queue, other, late);
        }
        after *= 4;
    };
    assert_eq!(item(&mut queue).await.unwrap().unwrap().into_inner(), "soon");
    assert_eq!(item(&mut queue).await, Some(Err(Error::Full)));
    let queue = Arc::new(Mutex::new(queue));
    let shared = queue.clone();
    let task = tokio::spawn(async move {
        poll_fn(|cx| shared.lock().unwrap().poll_expired(cx))
            .await
            .unwrap()
            .map(Expired::into_inner)
    });
    tokio::time::sleep(ms(20)).await;
    {
        let mut queue = queue.lock().unwrap();
        queue.wheel().remove_handles(&mut [RemoveHandle::new(other)]).unwrap();
        assert_eq!(queue.remove(late), Some("late"));
    }
    assert_eq!(timeout(LIMIT, task).await.expect("no wake-up").unwrap(), Ok("refused"));
}

/// The runtime with which a wheel was registered is gone: an error, and one that says something.
#[test]
fn runtime_that_has_ended() {
    let first = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fired = {
        let _guard = first.enter();
        AsyncWheel::new(Arc::new(Wheel::open().unwrap())).unwrap()
    };
    drop(first);
    let second = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = second.block_on(async {
        let mut events = Events::with_capacity(1);
        timeout(LIMIT, fired.wait(&mut events)).await.expect("no wake-up").unwrap_err()
    });
    assert_ne!(error.errno(), 0, "{}", error);
}
