// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The delay queue

mod common;

use common::*;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use timerwheel::*;

fn queue<T>() -> DelayQueue<T> {
    DelayQueue::with_wheel(resident()).unwrap()
}

fn next<T>(queue: &mut DelayQueue<T>) -> Option<T> {
    queue.next().unwrap().map(Expired::into_inner)
}

#[test]
fn life_of_a_value() {
    let mut queue = queue();
    let key = queue.insert("a", ns(100_000));
    assert_eq!((queue.len(), queue.get(key)), (1, Some(&"a")));
    assert_eq!(queue.deadline(key), Some(at(100_000)));
    queue.wheel().advance(ns(99_999)).unwrap();
    assert_eq!(next(&mut queue), None);
    queue.wheel().advance(ns(5000)).unwrap();
    let expired = queue.next().unwrap().unwrap();
    assert_eq!((*expired.get_ref(), expired.key(), expired.deadline()), ("a", key, at(100_000)));
    assert!(queue.is_empty() && next(&mut queue).is_none());
    // Its key is of no use, also not for the next value in its place.
    let other = queue.insert("b", HOUR);
    assert_eq!((queue.remove(key), queue.reset(key, HOUR)), (None, false));
    assert_eq!((queue.get(key), queue.deadline(key)), (None, None));
    assert_eq!(queue.remove(other), Some("b"));
    assert_eq!(queue.remove(other), None);
    assert!(DelayQueue::<()>::with_wheel(manual()).is_err());
}

/// An event that waits here is of a former arming: the value was reset, or removed and its place
/// used again.
#[test]
fn events_of_former_armings() {
    let mut queue = queue();
    let keys: Vec<_> = (0..6).map(|i| queue.insert(i, ns(10_000))).collect();
    queue.flush().unwrap();
    queue.wheel().advance(ns(20_000)).unwrap();
    // The events of all are taken at once, and one is returned.
    let first = next(&mut queue).unwrap();
    let rest: Vec<i32> = (0..6).filter(|i| *i != first).collect();
    queue.reset(keys[rest[0] as usize], ns(50_000));
    queue.remove(keys[rest[1] as usize]).unwrap();
    queue.insert(10, ns(60_000));
    queue.remove(keys[rest[2] as usize]).unwrap();
    // to a time that has passed: once
    queue.reset_at(keys[rest[3] as usize], at(1));
    let mut got = vec![next(&mut queue).unwrap(), next(&mut queue).unwrap()];
    got.sort_unstable();
    assert_eq!(got, rest[3..]);
    assert_eq!(next(&mut queue), None);
    queue.wheel().advance(ns(55_000)).unwrap();
    assert_eq!(next(&mut queue), Some(rest[0]));
    queue.wheel().advance(ns(10_000)).unwrap();
    assert_eq!(next(&mut queue), Some(10));
    assert!(queue.is_empty());
}

#[test]
fn mostly_without_calls() {
    let mut queue = queue();
    for i in 0..1000 {
        queue.insert(i, HOUR);
    }
    queue.flush().unwrap();
    let before = queue.wheel().stats();
    for round in 1..5 {
        queue.clear();
        assert!(queue.is_empty());
        for i in 0..1000 {
            let key = queue.insert(i, HOUR + ms(10 * round));
            assert!(queue.reset(key, HOUR + ms(10 * round + 5)));
        }
        queue.flush().unwrap();
    }
    let after = queue.wheel().stats();
    assert_eq!((after.armed, after.moved), (before.armed, before.moved));
    queue.wheel().advance(HOUR + ms(50)).unwrap();
    assert_eq!(std::iter::from_fn(|| next(&mut queue)).count(), 1000);
}

/// The wheel is full: the error is told, other values expire, and no value is lost.
#[test]
fn full() {
    let mut builder = Wheel::builder();
    builder.clock(Clock::Manual).tick(ns(1)).resident().capacity(4);
    let mut queue = DelayQueue::with_wheel(builder.open().unwrap()).unwrap();
    let keys: Vec<_> = (0..6).map(|i| queue.insert(i, ns(10_000 * (i + 1)))).collect();
    assert_eq!(queue.next().unwrap_err(), Error::Full);
    assert_eq!(queue.len(), 6);
    queue.wheel().advance(ns(100_000)).unwrap();
    assert_eq!((0..4).map(|_| next(&mut queue).unwrap()).sum::<u64>(), 6);
    assert_eq!(queue.flush().unwrap_err(), Error::Full);
    assert_eq!(queue.remove(keys[4]), Some(4));
    assert_eq!(queue.remove(keys[5]), Some(5));
    assert_eq!(queue.flush(), Ok(()));
}

#[test]
fn waits() {
    let mut queue = DelayQueue::new().unwrap();
    assert!(queue.wait(None).unwrap().is_none());
    let begin = Instant::now();
    let late = queue.insert("late", HOUR);
    queue.insert("soon", ms(20));
    // Not at once, unless this stood still for so long.
    let mut soon = queue.wait(Some(Duration::ZERO)).unwrap();
    if soon.is_none() {
        soon = queue.wait(PATIENCE).unwrap();
    }
    assert_eq!(soon.unwrap().into_inner(), "soon");
    assert!(begin.elapsed() >= ms(20));
    assert!(queue.wait(Some(ms(10))).unwrap().is_none());
    // to an earlier time, which needs a call
    assert!(queue.reset(late, ms(10)));
    assert_eq!(queue.wait(PATIENCE).unwrap().unwrap().into_inner(), "late");
}

/// A refusal is told once, and then it waits, until something has changed.
#[test]
fn waits_although_one_is_refused() {
    let mut after = ms(300);
    let (mut queue, refused, begin) = loop {
        let wheel = Wheel::builder().resident().capacity(1).open().unwrap();
        let mut queue = DelayQueue::with_wheel(wheel).unwrap();
        let begin = Instant::now();
        queue.insert("first", after);
        let refused = queue.insert("refused", ms(10));
        let first = queue.wait(PATIENCE);
        // Else the expiry may be told first, and the refusal after it.
        if begin.elapsed() < after {
            assert_eq!(first.unwrap_err(), Error::Full);
            break (queue, refused, begin);
        }
        after *= 4;
    };
    let mut first = queue.wait(Some(ms(5))).unwrap();
    if first.is_none() {
        first = queue.wait(PATIENCE).unwrap();
    }
    assert_eq!(first.unwrap().into_inner(), "first");
    assert!(begin.elapsed() >= after);
    // The timer belongs to the place, which the next value gets.
    assert_eq!(queue.wait(PATIENCE).unwrap_err(), Error::Full);
    let begin = Instant::now();
    assert_eq!(queue.wait(Some(ms(10))), Ok(None));
    assert!(begin.elapsed() >= ms(10));
    assert_eq!(queue.flush(), Err(Error::Full));
    queue.insert("next", ms(10));
    assert_eq!(queue.wait(PATIENCE).unwrap().unwrap().into_inner(), "next");
    assert_eq!(queue.wait(PATIENCE).unwrap_err(), Error::Full);
    assert_eq!(queue.remove(refused), Some("refused"));
    assert_eq!(queue.wait(PATIENCE), Ok(None));
}

/// Refused values are tried again after an expiry or a removal, with another timer, and by flush.
#[test]
fn refused_and_tried_again() {
    for what in 0..5 {
        let mut builder = Wheel::builder();
        builder.clock(Clock::Manual).tick(ns(1)).resident().capacity(3);
        let mut queue = DelayQueue::with_wheel(builder.open().unwrap()).unwrap();
        let other = queue.wheel().add_one(Add::new(u64::MAX, 0, HOUR)).unwrap();
        queue.insert("soon", ms(10));
        let late = queue.insert("late", HOUR);
        queue.insert("refused", ms(20));
        assert_eq!(queue.next(), Err(Error::Full));
        queue.wheel().remove_handles(&mut [RemoveHandle::new(other)]).unwrap();
        // It is not known that there is room now.
        let armed = queue.wheel().stats().armed;
        assert_eq!((queue.next(), queue.wheel().stats().armed), (Ok(None), armed));
        match what {
            0 => assert_eq!(queue.flush(), Ok(())),
            1 => assert_eq!(queue.remove(late), Some("late")),
            2 => {
                queue.wheel().advance(ms(11)).unwrap();
                assert_eq!(next(&mut queue), Some("soon"));
            }
            3 => {
                queue.insert("more", ms(30));
                assert_eq!(queue.next(), Err(Error::Full));
            }
            // so many that it is tried at once; that the others were refused is told by the next call
            _ => {
                (0..1023).for_each(|_| {
                    queue.insert("more", ms(30));
                });
                assert_eq!(queue.wheel().stats().armed, armed + 1);
                assert_eq!(queue.next(), Err(Error::Full));
            }
        }
        assert_eq!(queue.next(), Ok(None), "{}", what);
        assert_eq!(queue.wheel().stats().armed, armed + 1, "{}", what);
        queue.wheel().advance(ms(25)).unwrap();
        let mut values = Vec::new();
        while let Ok(Some(expired)) = queue.next() {
            values.push(expired.into_inner());
        }
        assert!(values.contains(&"refused"), "{}", what);
    }
}

/// Random operations against a model: never early, at most a unit of the table late, exactly once
#[test]
fn like_a_model() {
    const UNIT: u64 = 4096;
    let mut random = Random::new(0);
    let mut queue = queue();
    let mut model: HashMap<u64, (Key, u64)> = HashMap::new();
    let mut now = 0;
    let mut expired = 0;
    for value in 0..60_000u64 {
        let after = random.below(4) * random.below(100_000);
        let any = model.keys().nth(random.below(8) as usize).copied();
        match (random.below(6), any) {
            (0, Some(any)) => {
                let (key, _) = model.remove(&any).unwrap();
                assert_eq!(queue.remove(key), Some(any));
            }
            (1 | 2, Some(any)) => {
                let (key, deadline) = model.get_mut(&any).unwrap();
                assert!(queue.reset(*key, ns(after)));
                *deadline = now + after;
            }
            (3, _) => {
                let by = random.below(20_000);
                queue.flush().unwrap();
                queue.wheel().advance(ns(by)).unwrap();
                now += by;
            }
            (4, _) => {
                // Some of those that have expired: the others stay buffered.
                for _ in 0..random.below(20) {
                    let expired_now = match queue.next().unwrap() {
                        Some(expired) => expired,
                        None => {
                            assert!(model.values().all(|(_, at)| *at + UNIT > now), "lost");
                            break;
                        }
                    };
                    let value = *expired_now.get_ref();
                    let (key, deadline) = model.remove(&value).expect("twice");
                    assert_eq!(expired_now.key(), key);
                    assert_eq!(expired_now.deadline().as_nanos(), deadline);
                    assert!(deadline <= now, "early");
                    expired += 1;
                }
            }
            _ => {
                model.insert(value, (queue.insert(value, ns(after)), now + after));
            }
        }
        assert_eq!(queue.len(), model.len());
    }
    queue.flush().unwrap();
    queue.wheel().advance(ns(1_000_000)).unwrap();
    while let Some(value) = next(&mut queue) {
        assert!(model.remove(&value).is_some());
    }
    assert!(model.is_empty() && queue.is_empty() && expired > 1000);
    assert!(balanced(queue.wheel()));
}
