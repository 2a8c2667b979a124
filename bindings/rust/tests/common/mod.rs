// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What several tests need
#![allow(dead_code)]

use std::time::{Duration, Instant};
use timerwheel::{Add, Backend, Clock, Events, Time, Wheel};

pub const HOUR: Duration = Duration::from_secs(3600);
/// A test that waits for longer has failed.
pub const PATIENCE: Option<Duration> = Some(Duration::from_secs(240));

pub fn ns(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

pub fn on_device(wheel: &Wheel) -> bool {
    wheel.backend() == Backend::Device
}

/// A wheel whose times are exact, with a deadline table
pub fn manual() -> Wheel {
    Wheel::builder().clock(Clock::Manual).tick(ns(1)).open().unwrap()
}

/// The same, with a deadline table: deadlines are multiples of 4,096 ns
pub fn with_table() -> Wheel {
    Wheel::builder().clock(Clock::Manual).tick(ns(1)).table().open().unwrap()
}

/// The same, with resident timers
pub fn resident() -> Wheel {
    Wheel::builder().clock(Clock::Manual).tick(ns(1)).resident().open().unwrap()
}

/// The keys of all events that wait, sorted. None is early.
pub fn keys(wheel: &Wheel) -> Vec<u64> {
    let mut events = Events::with_capacity(7);
    let mut keys = Vec::new();
    while wheel.take(&mut events).unwrap() > 0 {
        for event in &events {
            assert!(event.fired() >= event.deadline(), "{:?}", event);
            keys.push(event.key());
        }
    }
    keys.sort_unstable();
    keys
}

/// Each arming ended in exactly one way, or not yet.
pub fn balanced(wheel: &Wheel) -> bool {
    let s = wheel.stats();
    s.armed + s.rearmed
        == s.delivered + s.removed + s.replaced + s.drained + s.pending + s.due + s.parked
}

/// All timers have fired, and `take(timeout)` has taken their events.
pub fn all_taken(wheel: &Wheel, take: impl Fn(Duration) -> usize) {
    let begin = Instant::now();
    loop {
        take(ms(20));
        let stats = wheel.stats();
        if stats.pending == 0 && stats.due == 0 {
            return;
        }
        assert!(begin.elapsed() < PATIENCE.unwrap(), "{:?}", stats);
    }
}

pub fn add(wheel: &Wheel, key: u64, deadline: u64) -> timerwheel::Handle {
    wheel.add_one(Add::new(key, !key, at(deadline))).unwrap()
}

/// xorshift64*, seeded by TW_SEED, or else by the clock; the seed is printed when a test fails
pub struct Random(u64);

impl Random {
    pub fn new(nr: u64) -> Random {
        let seed = match std::env::var("TW_SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => {
                let now = std::time::SystemTime::now();
                now.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64
            }
        };
        println!("TW_SEED={}", seed);
        Random((seed ^ (nr << 32)) | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % limit
    }
}
