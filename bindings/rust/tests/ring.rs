// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The event ring

mod common;

use common::*;
use std::os::raw::{c_int, c_void};
use std::os::unix::io::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use timerwheel::*;

fn wheel_with_ring(events: u32) -> Arc<Wheel> {
    Arc::new(Wheel::builder().clock(Clock::Manual).tick(ns(1)).ring(events).open().unwrap())
}

/// All events that there are, also those that wait because the ring was full
fn all(ring: &mut Ring) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        events.extend(std::iter::from_fn(|| ring.next()));
        if ring.may_sleep().unwrap() {
            return events;
        }
    }
}

/// Many times round, and more at once than it has room for: each comes once, and in order.
#[test]
fn round_and_full() {
    let wheel = wheel_with_ring(8);
    let mut ring = Ring::new(wheel.clone()).unwrap();
    let mut time = 0;
    for n in (1..60).chain([0, 1000, 8, 9, 16]) {
        for i in 1..=n {
            let deadline = at(time + i);
            wheel.add_one(Add::new(i, time + i, deadline)).unwrap();
        }
        time += n;
        assert_eq!(wheel.advance(ns(n)), Ok(n as usize));
        let events = all(&mut ring);
        assert_eq!(events.len(), n as usize);
        for (i, event) in (1..).zip(&events) {
            let deadline = at(time - n + i);
            assert_eq!((event.key(), event.value()), (i, time - n + i));
            assert_eq!((event.deadline(), event.fired()), (deadline, deadline));
        }
    }
    assert!(balanced(&wheel));
}

#[test]
fn one_reader() {
    let wheel = wheel_with_ring(8);
    let mut events = Events::with_capacity(3);
    assert_eq!(wheel.take(&mut events), Ok(0));
    let ring = Ring::new(wheel.clone()).unwrap();
    assert_eq!(wheel.take(&mut events), Err(Error::Busy));
    assert_eq!(wheel.wait(&mut events, None), Err(Error::Busy));
    assert_eq!(Ring::new(wheel.clone()).err(), Some(Error::Busy));
    drop(ring);
    assert_eq!(wheel.take(&mut events), Ok(0));
    assert!(Ring::new(wheel).is_ok());
    assert_eq!(Ring::new(Arc::new(manual())).err(), Some(Error::Invalid));
}

/// The next reader, of either kind, gets the events that a reader has not returned.
#[test]
fn the_next_reader() {
    let wheel = wheel_with_ring(16);
    for key in 1..=9 {
        add(&wheel, key, key);
    }
    wheel.advance(ns(9)).unwrap();
    let mut got = Vec::new();
    for _ in 0..3 {
        let mut ring = Ring::new(wheel.clone()).unwrap();
        got.extend([ring.next().unwrap().key(), ring.next().unwrap().key()]);
        drop(ring);
        let mut events = Events::with_capacity(1);
        assert_eq!(wheel.take(&mut events), Ok(1));
        got.push(events.get(0).unwrap().key());
    }
    assert!(got.into_iter().eq(1..=9));
}

/// A reader that sleeps is woken, each time.
#[test]
fn wakes() {
    let wheel = Arc::new(Wheel::builder().ring(64).open().unwrap());
    let mut ring = Ring::new(wheel.clone()).unwrap();
    assert!(ring.wait(Some(Duration::ZERO)).unwrap().is_none());
    let begin = Instant::now();
    assert!(ring.wait(Some(ms(20))).unwrap().is_none());
    assert!(begin.elapsed() >= ms(20));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for key in 0..50 {
                wheel.add_one(Add::new(key, 0, ms(key % 4))).unwrap();
                std::thread::sleep(ms(key % 5));
            }
        });
        let mut keys: Vec<_> =
            (0..50).map(|_| ring.wait(PATIENCE).unwrap().expect("no wake-up").key()).collect();
        keys.sort_unstable();
        assert!(keys.into_iter().eq(0..50));
    });
}

/// Returns when a thread is in `wait`.
fn until_one_waits(wheel: &Arc<Wheel>) {
    let begin = Instant::now();
    while Ring::new(wheel.clone()).is_ok() {
        assert!(begin.elapsed() < PATIENCE.unwrap(), "a ring, and a thread that waits");
        std::thread::sleep(ms(1));
    }
}

/// While a thread sleeps for events, no other thread takes events or becomes the reader, because it
/// would not be woken. No thread waits for the sleeper longer than requested.
#[test]
fn one_thread_sleeps() {
    let wheel = wheel_with_ring(8);
    let woken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for round in 0..20 {
            let (wheel, wait) = (&wheel, || {
                let mut events = Events::with_capacity(3);
                // Busy: until_one_waits() has a ring just then.
                let mut waited = Err(Error::Busy);
                while waited == Err(Error::Busy) {
                    waited = wheel.wait(&mut events, PATIENCE);
                }
                assert_eq!(waited, Ok(1), "no wake-up");
                woken.fetch_add(1, Ordering::Relaxed);
                events.get(0).unwrap().key()
            });
            let (one, other) = (scope.spawn(wait), scope.spawn(wait));
            until_one_waits(wheel);
            let mut events = Events::with_capacity(3);
            let begin = Instant::now();
            assert_eq!(wheel.wait(&mut events, Some(Duration::ZERO)), Ok(0));
            assert_eq!(wheel.wait(&mut events, Some(ms(5))), Ok(0));
            assert!(begin.elapsed() >= ms(5));
            wheel.add_one(Add::new(1, 0, ns(1))).unwrap();
            wheel.advance(ns(1)).unwrap();
            // One of the two has it, or will have it.
            assert_eq!(wheel.take(&mut events), Ok(0), "round {}", round);
            while woken.load(Ordering::Relaxed) <= 2 * round {
                std::thread::sleep(ms(1));
            }
            wheel.add_one(Add::new(2, 0, ns(1))).unwrap();
            wheel.advance(ns(1)).unwrap();
            let mut keys = [one.join().unwrap(), other.join().unwrap()];
            keys.sort_unstable();
            assert_eq!(keys, [1, 2]);
            assert!(begin.elapsed() < PATIENCE.unwrap() / 2, "a wake-up came late");
        }
    });
    assert!(Ring::new(wheel).is_ok());
}

/// Several threads wait while another one takes events: all come, and each once.
#[test]
fn many_threads() {
    const LAST: u64 = u64::MAX;
    let wheel = Arc::new(Wheel::builder().ring(16).open().unwrap());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut events = Events::with_capacity(1);
                    let mut keys = Vec::new();
                    loop {
                        assert_eq!(wheel.wait(&mut events, PATIENCE), Ok(1), "no wake-up");
                        match events.get(0).unwrap().value() {
                            LAST => return keys,
                            _ => keys.push(events.get(0).unwrap().key()),
                        }
                    }
                })
            })
            .collect();
        let mut events = Events::with_capacity(1);
        let mut keys = Vec::new();
        for key in 0..300 {
            wheel.add_one(Add::new(key, 0, ms(key % 3))).unwrap();
            for _ in 0..20 {
                wheel.take(&mut events).unwrap();
                keys.extend(events.iter().map(|event| event.key()));
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        std::thread::sleep(ms(50));
        for key in 300..303 {
            wheel.add_one(Add::new(key, LAST, ms(1))).unwrap();
        }
        for thread in threads {
            keys.extend(thread.join().unwrap());
        }
        keys.sort_unstable();
        assert!(keys.into_iter().eq(0..300));
    });
}

extern "C" {
    fn mmap(a: *mut c_void, n: usize, prot: c_int, flags: c_int, fd: c_int, at: i64)
        -> *mut c_void;
}

/// Another process writes nonsense into the ring: wrong events, and no access outside of it.
#[test]
fn nonsense() {
    let wheel = wheel_with_ring(8);
    if !on_device(&wheel) {
        return;
    }
    let mut ring = Ring::new(wheel.clone()).unwrap();
    // SAFETY: mapped like in another process, and accessed as numbers by atomic operations.
    let words: &[std::sync::atomic::AtomicU32] = unsafe {
        let map = mmap(std::ptr::null_mut(), 4096, 3, 1, wheel.as_raw_fd(), 1 << 40);
        assert_ne!(map as isize, -1);
        std::slice::from_raw_parts(map.cast(), (128 + 8 * 48) / 4)
    };
    let mut random = Random::new(0);
    for _ in 0..1000 {
        for word in words {
            word.store(random.below(1 << 32) as u32, std::sync::atomic::Ordering::Relaxed);
        }
        std::iter::from_fn(|| ring.next()).take(20).for_each(drop);
    }
}
