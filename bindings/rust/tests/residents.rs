// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Resident timers: what becomes of an arming, and races with a ledger

mod common;

use common::*;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicU8, Ordering};
use std::time::{Duration, Instant};
use timerwheel::*;

const UNIT: u64 = 4096;

/// The deadlines of the events that wait, in units
fn fired(wheel: &Wheel) -> Vec<u64> {
    let mut events = Events::with_capacity(10);
    wheel.take(&mut events).unwrap();
    events.iter().map(|event| event.deadline().as_nanos() / UNIT).collect()
}

#[test]
fn fires_and_stays() {
    let wheel = resident();
    let timers = wheel.table().unwrap();
    let handle = add(&wheel, 1, 10 * UNIT);
    assert_eq!(wheel.advance(ns(10 * UNIT - 1)), Ok(0));
    assert_eq!(wheel.advance(ns(1)), Ok(1));
    for taken in [false, true] {
        assert_eq!(timers.cancel(handle), Answer::TooLate);
        assert_eq!(timers.refresh(handle, at(20 * UNIT)), Answer::TooLate);
        assert_eq!(timers.arm(handle, at(20 * UNIT)), Answer::NeedsCall);
        if !taken {
            assert_eq!(fired(&wheel), [10]);
        }
    }
    assert_eq!(wheel.set_one(Move::new(1, at(20 * UNIT)).unless_armed()), Ok(Was::Parked));
    assert_eq!(wheel.set_one(Move::new(1, at(21 * UNIT)).unless_armed()), Err(Error::Exists));
    assert_eq!(timers.refresh(handle, at(30 * UNIT)), Answer::Done);
    assert_eq!(wheel.advance(ns(20 * UNIT - 1)), Ok(0));
    assert_eq!(wheel.advance(ns(1)), Ok(1));
    assert_eq!(fired(&wheel), [30]);
    wheel.remove_one(Remove::new(1)).unwrap();
    assert_eq!(timers.arm(handle, at(40 * UNIT)), Answer::Gone);
    assert!(balanced(&wheel));
}

#[test]
fn cancelled() {
    let wheel = resident();
    let timers = wheel.table().unwrap();
    let handle = add(&wheel, 1, 10 * UNIT);
    assert_eq!(timers.cancel(handle), Answer::Done);
    assert_eq!(timers.cancel(handle), Answer::NotArmed);
    assert_eq!(timers.refresh(handle, at(20 * UNIT)), Answer::NotArmed);
    assert_eq!(timers.arm(handle, at(9 * UNIT)), Answer::NeedsCall);
    assert_eq!(timers.arm(handle, at(10 * UNIT)), Answer::Done);
    assert_eq!(timers.cancel(handle), Answer::Done);
    assert_eq!(wheel.advance(ns(10 * UNIT)), Ok(0));
    assert_eq!(fired(&wheel), []);
    // parked
    assert_eq!(timers.arm(handle, at(20 * UNIT)), Answer::NeedsCall);
    assert_eq!(wheel.get_one(1).unwrap().was(), Ok(Was::Parked));
    assert!(balanced(&wheel));
}

#[test]
fn linger() {
    let wheel = resident();
    let timers = wheel.table().unwrap();
    let add = Add::new(1, 0, at(10 * UNIT));
    assert_eq!(wheel.add_one(add.linger(Duration::ZERO)), Err(Error::Invalid));
    let handle = wheel.add_one(add.linger(ns(5 * UNIT))).unwrap();
    wheel.advance(ns(10 * UNIT)).unwrap();
    assert_eq!(fired(&wheel), [10]);
    assert_eq!(timers.arm(handle, at(14 * UNIT)), Answer::NeedsCall);
    assert_eq!(timers.arm(handle, at(15 * UNIT)), Answer::Done);
    assert_eq!(wheel.advance(ns(5 * UNIT)), Ok(1));
}

/// How long a race lasts: TW_RACE_SECONDS, and until all has happened that can. It takes longer
/// where one thread runs at a time (valgrind), or the machine stands still.
struct Race(Instant, Duration);

impl Race {
    fn begin() -> Race {
        let seconds = std::env::var("TW_RACE_SECONDS").map_or(1, |s| s.parse().unwrap());
        Race(Instant::now(), Duration::from_secs(seconds))
    }

    fn goes_on(&self, happened: bool) -> bool {
        let past = self.0.elapsed();
        past < self.1 || !happened && past < self.1 + LONGER
    }
}

const LONGER: Duration = Duration::from_secs(60);

/// What became of an arming
const NOTHING: u8 = 0;
const ARMED: u8 = 1;
const ENDED: u8 = 2;
const FIRED: u8 = 3;

/// Deadlines of a race, in units of the table from its begin on: 68 s of 2^19 ns
const DEADLINES: usize = 130_000;
const BITS: u32 = 19;

/// Each timer has an owner, a thread that arms, refreshes and cancels it, while another thread takes
/// the events. Each arming has a deadline of its own, so that an event names its arming. In the end
/// each arming that its owner has not ended had exactly one event.
struct Ledger {
    wheel: Wheel,
    handles: Vec<Handle>,
    begin: u64,
    armings: Vec<Vec<AtomicU8>>,
    /// Armed, refreshed, cancelled, too late, calls
    done: [AtomicU64; 5],
    stop: AtomicBool,
}

impl Ledger {
    fn sum(&self, i: usize) -> u64 {
        self.done[i].load(Ordering::Relaxed)
    }

    fn happened(&self) -> bool {
        (0..4).all(|i| self.sum(i) > 0)
    }
}

struct Owner<'a> {
    ledger: &'a Ledger,
    random: Random,
    /// By timer: the deadline of the last arming, and whether that may be pending
    last: Vec<(usize, bool)>,
    /// By timer: it is left alone until then, so that some fire on a machine of any speed
    alone: Vec<u64>,
}

impl Owner<'_> {
    fn did(&self, i: usize) {
        self.ledger.done[i].fetch_add(1, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        (self.ledger.wheel.now().as_nanos() >> BITS) - self.ledger.begin
    }

    /// A deadline soon, later than the last
    fn soon(&mut self, key: usize) -> Option<usize> {
        let soon = (self.now() + 1 + self.random.below(32)) as usize;
        Some(soon).filter(|soon| *soon > self.last[key].0 && *soon < DEADLINES)
    }

    fn time(&self, deadline: usize) -> Time {
        at((self.ledger.begin + deadline as u64) << BITS)
    }

    /// An arming has a new state. Returns the former one.
    fn state(&self, key: usize, deadline: usize, state: u8) -> u8 {
        self.ledger.armings[key][deadline].swap(state, Ordering::SeqCst)
    }

    fn arm(&mut self, key: usize) {
        let (ledger, handle) = (self.ledger, self.ledger.handles[key]);
        let deadline = match self.soon(key) {
            Some(deadline) => deadline,
            None => return,
        };
        let time = self.time(deadline);
        // Announced first, so that its event is expected.
        assert_eq!(self.state(key, deadline, ARMED), NOTHING);
        let armed = match ledger.wheel.table().unwrap().arm(handle, time) {
            Answer::Done => true,
            Answer::NeedsCall => {
                self.did(4);
                match ledger.wheel.set_one(Move::new(key as u64, time).unless_armed()) {
                    Ok(Was::Parked) => true,
                    // Its event waits.
                    Err(Error::Exists) => false,
                    other => panic!("MOVE: {:?}", other),
                }
            }
            other => panic!("arm: {:?}", other),
        };
        if armed {
            self.last[key] = (deadline, true);
            if self.random.below(4) == 0 {
                self.alone[key] = deadline as u64 + self.random.below(4);
            }
            self.did(0);
        } else {
            assert_eq!(self.state(key, deadline, NOTHING), ARMED);
        }
    }

    fn refresh(&mut self, key: usize) {
        let deadline = match self.soon(key) {
            Some(deadline) => deadline,
            None => return,
        };
        assert_eq!(self.state(key, deadline, ARMED), NOTHING);
        let timers = self.ledger.wheel.table().unwrap();
        match timers.refresh(self.ledger.handles[key], self.time(deadline)) {
            Answer::Done => {
                let (old, _) = std::mem::replace(&mut self.last[key], (deadline, true));
                assert_eq!(self.state(key, old, ENDED), ARMED, "refreshed, but had fired");
                self.did(1);
            }
            Answer::TooLate => {
                assert_eq!(self.state(key, deadline, NOTHING), ARMED);
                self.last[key].1 = false;
                self.did(3);
            }
            other => panic!("refresh: {:?}", other),
        }
    }

    fn cancel(&mut self, key: usize) {
        let timers = self.ledger.wheel.table().unwrap();
        match timers.cancel(self.ledger.handles[key]) {
            Answer::Done => {
                let old = self.last[key].0;
                assert_eq!(self.state(key, old, ENDED), ARMED, "cancelled, but had fired");
                self.did(2);
            }
            Answer::TooLate => self.did(3),
            other => panic!("cancel: {:?}", other),
        }
        self.last[key].1 = false;
    }

    fn run(mut self, keys: std::ops::Range<usize>) {
        while !self.ledger.stop.load(Ordering::Relaxed) {
            let key = keys.start + self.random.below(keys.len() as u64) as usize;
            if self.alone[key] > self.now() {
                continue;
            }
            match (self.last[key].1, self.random.below(3)) {
                (false, _) => self.arm(key),
                (true, 0) => self.cancel(key),
                (true, _) => self.refresh(key),
            }
        }
    }
}

#[test]
fn exactly_once() {
    const OWNERS: usize = 2;
    const EACH: usize = 8;
    let wheel = Wheel::builder().resident().capacity(64).open().unwrap();
    let handles = (0..OWNERS * EACH).map(|key| {
        let handle = wheel.add_one(Add::new(key as u64, 0, HOUR)).unwrap();
        assert_eq!(wheel.table().unwrap().cancel(handle), Answer::Done);
        // An hour is the deadline of the last arming: begin with an earlier one.
        wheel.set_one(Move::new(key as u64, Duration::ZERO)).unwrap();
        handle
    });
    let handles: Vec<_> = handles.collect();
    assert_eq!(keys(&wheel).len(), OWNERS * EACH);
    let row = || (0..DEADLINES).map(|_| AtomicU8::new(NOTHING)).collect();
    let ledger = Ledger {
        begin: wheel.now().as_nanos() >> BITS,
        armings: (0..OWNERS * EACH).map(|_| row()).collect(),
        done: Default::default(),
        stop: AtomicBool::new(false),
        wheel,
        handles,
    };
    let race = Race::begin();
    let events = AtomicI64::new(0);
    let take = |timeout| {
        let mut taken = Events::with_capacity(32);
        let n = ledger.wheel.wait(&mut taken, Some(timeout)).unwrap();
        for event in &taken {
            assert!(event.fired() >= event.deadline());
            let deadline = (event.deadline().as_nanos() >> BITS) - ledger.begin;
            let arming = &ledger.armings[event.key() as usize][deadline as usize];
            let was = arming.swap(FIRED, Ordering::SeqCst);
            assert_eq!(was, ARMED, "an event of an arming that has ended: {:?}", event);
        }
        events.fetch_add(n as i64, Ordering::Relaxed);
        n
    };
    std::thread::scope(|scope| {
        let owners: Vec<_> = (0..OWNERS)
            .map(|nr| {
                let owner = Owner {
                    ledger: &ledger,
                    random: Random::new(nr as u64),
                    last: vec![(0, false); OWNERS * EACH],
                    alone: vec![0; OWNERS * EACH],
                };
                scope.spawn(move || owner.run(nr * EACH..(nr + 1) * EACH))
            })
            .collect();
        while race.goes_on(ledger.happened()) && !owners.iter().any(|owner| owner.is_finished()) {
            take(ms(5));
        }
        ledger.stop.store(true, Ordering::Relaxed);
    });
    // All armings that are left fall due within 32 units.
    all_taken(&ledger.wheel, take);
    let mut counts = [0; 4];
    for arming in ledger.armings.iter().flatten() {
        counts[arming.load(Ordering::SeqCst) as usize] += 1;
    }
    let done = &ledger.done;
    println!("armed, refreshed, cancelled, too late, calls: {:?}; states: {:?}", done, counts);
    assert_eq!(counts[ARMED as usize], 0, "armings without an event");
    let sum = |i| ledger.sum(i);
    assert_eq!(counts[ENDED as usize], sum(1) + sum(2));
    assert_eq!(counts[FIRED as usize], sum(0) + sum(1) - sum(1) - sum(2));
    assert_eq!(counts[FIRED as usize] as i64, events.load(Ordering::Relaxed));
    assert!(ledger.happened(), "nothing was raced for");
    assert!(balanced(&ledger.wheel));
}

/// All threads arm (by MOVE, unless it is armed) and cancel the same timers: each arming is either
/// cancelled by one of them, or has its event.
#[test]
fn exactly_one_winner() {
    const TIMERS: u64 = 4;
    let wheel = Wheel::builder().resident().open().unwrap();
    let handles: Vec<_> =
        (0..TIMERS).map(|key| wheel.add_one(Add::new(key, 0, Duration::ZERO)).unwrap()).collect();
    assert_eq!(keys(&wheel).len(), TIMERS as usize);
    let (armed, cancelled, events) = (AtomicI64::new(0), AtomicI64::new(0), AtomicI64::new(0));
    let race = Race::begin();
    let happened = || [&armed, &cancelled, &events].iter().all(|n| n.load(Ordering::Relaxed) > 0);
    let take = |timeout| {
        let mut taken = Events::with_capacity(8);
        let n = wheel.wait(&mut taken, Some(timeout)).unwrap();
        events.fetch_add(n as i64, Ordering::Relaxed);
        n
    };
    std::thread::scope(|scope| {
        for nr in 0..3 {
            let (wheel, handles, armed, cancelled) = (&wheel, &handles, &armed, &cancelled);
            let (race, happened) = (&race, &happened);
            scope.spawn(move || {
                let mut random = Random::new(nr);
                let timers = wheel.table().unwrap();
                while race.goes_on(happened()) {
                    let key = random.below(TIMERS);
                    let handle = handles[key as usize];
                    match random.below(3) {
                        0 => {
                            let after = ns(random.below(3_000_000));
                            match wheel.set_one(Move::new(key, after).unless_armed()) {
                                Ok(was) => {
                                    assert_eq!(was, Was::Parked);
                                    armed.fetch_add(1, Ordering::Relaxed);
                                }
                                Err(error) => assert_eq!(error, Error::Exists),
                            }
                        }
                        1 => {
                            let _ = timers.refresh(handle, wheel.now() + ms(2));
                        }
                        _ => {
                            if timers.cancel(handle) == Answer::Done {
                                cancelled.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                }
            });
        }
        while race.goes_on(happened()) {
            take(ms(1));
        }
    });
    all_taken(&wheel, take);
    let counts = [&armed, &cancelled, &events].map(|count| count.load(Ordering::Relaxed));
    println!("armed, cancelled, events: {:?}", counts);
    assert!(happened(), "nothing was raced for");
    assert_eq!(counts[0], counts[1] + counts[2]);
    assert!(balanced(&wheel));
}
