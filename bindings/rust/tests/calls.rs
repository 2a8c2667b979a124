// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Calls on timers, the clock, the deadline table, queues

mod common;

use common::*;
use std::os::unix::io::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use timerwheel::*;

#[test]
fn add_and_what_was_before() {
    let wheel = manual();
    let results: Vec<_> = wheel
        .add(&mut [
            Add::new(1, 10, HOUR),
            Add::new(1, 11, HOUR),
            Add::new(1, 12, HOUR).exclusive(),
            Add::new(1, 13, HOUR).if_value(10),
            Add::new(1, 14, HOUR).if_value(11),
            Add::new(2, 0, HOUR).if_value(0),
            Add::new(2, 0, HOUR).exclusive().if_value(0),
            Add::new(2, 0, HOUR).exclusive(),
        ])
        .unwrap()
        .iter()
        .map(|added| (added.key(), added.was()))
        .collect();
    assert_eq!(
        results,
        [
            (1, Ok(Was::Absent)),
            (1, Ok(Was::Pending)),
            (1, Err(Error::Exists)),
            (1, Err(Error::Changed)),
            (1, Ok(Was::Pending)),
            (2, Err(Error::NotFound)),
            (2, Err(Error::Invalid)),
            (2, Ok(Was::Absent)),
        ]
    );
    assert_eq!(wheel.get_one(1).unwrap().value(), 14);
    assert!(balanced(&wheel));
}

#[test]
fn never_early() {
    let wheel = manual();
    add(&wheel, 1, 1000);
    wheel.add_one(Add::new(2, 0, ns(2000))).unwrap();
    assert_eq!(wheel.advance(ns(999)), Ok(0));
    assert_eq!(keys(&wheel), []);
    assert_eq!(wheel.advance(ns(1)), Ok(1));
    assert_eq!(keys(&wheel), [1]);
    assert_eq!(wheel.now(), at(1000));
    // after a duration: from the call on
    wheel.add_one(Add::new(3, 0, ns(1500))).unwrap();
    assert_eq!(wheel.advance(ns(1000)), Ok(1));
    assert_eq!(wheel.advance(ns(499)), Ok(0));
    assert_eq!(wheel.advance(ns(1)), Ok(1));
    assert_eq!(keys(&wheel), [2, 3]);
}

#[test]
fn events_say_all() {
    let wheel = manual();
    wheel.add_one(Add::new(5, 55, at(100)).period(ns(10))).unwrap();
    wheel.advance(ns(125)).unwrap();
    let mut events = Events::with_capacity(0);
    assert_eq!(wheel.take(&mut events), Ok(1));
    let event = events.get(0).unwrap();
    assert_eq!((event.key(), event.value(), event.overruns()), (5, 55, 2));
    assert_eq!((event.deadline(), event.fired()), (at(100), at(100)));
    assert!(event.is_periodic() && !event.is_clock_set() && !event.is_missed());
    assert!(!event.is_connection());
    assert_eq!(wheel.take(&mut events), Ok(0));
    assert!(events.is_empty() && events.get(0).is_none());
    assert_eq!(wheel.get_one(5).unwrap().deadline(), at(130));
    assert_eq!(wheel.get_one(5).unwrap().period(), Some(ns(10)));
}

#[test]
fn the_end_of_time() {
    let wheel = manual();
    wheel.add_one(Add::new(1, 0, Duration::MAX)).unwrap();
    wheel.add_one(Add::new(2, 0, Time::MAX)).unwrap();
    wheel.advance(ns(5)).unwrap();
    wheel.add_one(Add::new(3, 0, ns(u64::MAX >> 1))).unwrap();
    for key in 1..4 {
        assert_eq!(wheel.get_one(key).unwrap().deadline(), Time::MAX);
    }
    assert_eq!(wheel.advance(Duration::MAX), Ok(3));
}

#[test]
fn set_and_remove() {
    let wheel = manual();
    let first = add(&wheel, 1, 100);
    add(&wheel, 2, 200);
    let was: Vec<_> = wheel
        .set(&mut [
            Move::new(1, at(300)),
            Move::new(3, at(300)),
            Move::new(2, at(300)).if_value(7),
            Move::new(2, at(10)).if_value(!2),
            Move::new(2, at(10)).unless_armed(),
        ])
        .unwrap()
        .iter()
        .map(|moved| moved.was())
        .collect();
    let expected = [
        Ok(Was::Pending),
        Err(Error::NotFound),
        Err(Error::Changed),
        Ok(Was::Pending),
        Err(Error::Invalid),
    ];
    assert_eq!(was, expected);
    assert_eq!(wheel.advance(ns(10)), Ok(1));
    // its event is withdrawn
    assert_eq!(wheel.set_one(Move::new(2, at(20))), Ok(Was::Due));
    assert_eq!(keys(&wheel), []);
    let removed = wheel.remove_one(Remove::new(1)).unwrap();
    assert_eq!(removed.value(), Ok(!1));
    assert_eq!(removed.left(), Ok(ns(290)));
    assert_eq!(wheel.remove_one(Remove::new(1)).unwrap_err(), Error::NotFound);
    assert_eq!(wheel.remove_one(Remove::new(2).if_value(9)).unwrap_err(), Error::Changed);
    wheel.advance(ns(15)).unwrap();
    let removed = wheel.remove_one(Remove::new(2)).unwrap();
    assert_eq!((removed.was(), removed.left()), (Ok(Was::Due), Ok(Duration::ZERO)));
    assert_eq!(
        wheel.set_handles(&mut [MoveHandle::new(first, at(1))]).unwrap()[0].was(),
        Err(Error::NotFound)
    );
    assert!(balanced(&wheel));
}

#[test]
fn by_handle() {
    let wheel = manual();
    let handles = [add(&wheel, 1, 100), add(&wheel, 2, 100), add(&wheel, 3, 100)];
    let mut moves = handles.map(|handle| MoveHandle::new(handle, at(200)));
    let moved = wheel.set_handles(&mut moves).unwrap();
    assert!(moved.iter().all(|moved| moved.was() == Ok(Was::Pending)));
    assert_eq!(wheel.advance(ns(199)), Ok(0));
    let mut removes = [RemoveHandle::new(handles[1]); 2];
    let removed = wheel.remove_handles(&mut removes).unwrap();
    assert_eq!(removed[0].value(), Ok(!2));
    assert_eq!(removed[1].was(), Err(Error::NotFound));
    assert_eq!(wheel.advance(ns(1)), Ok(2));
    assert_eq!(keys(&wheel), [1, 3]);
}

#[test]
fn list_and_drain() {
    const TIMERS: u64 = 10_000;
    let wheel = manual();
    let mut adds: Vec<_> = (0..TIMERS).map(|key| Add::new(key, key, at(key + 1))).collect();
    assert_eq!(wheel.add(&mut adds).unwrap().len(), TIMERS as usize);
    let mut listed: Vec<_> = Wheel::list(&wheel).unwrap().iter().map(|entry| entry.key()).collect();
    listed.sort_unstable();
    assert!(listed.into_iter().eq(0..TIMERS));
    let some = wheel.drain(3000).unwrap();
    assert_eq!(some.len(), 3000);
    assert!(some.iter().all(|entry| entry.was() == Ok(Was::Pending)));
    assert!(some.iter().all(|entry| entry.deadline() == at(entry.value() + 1)));
    let mut rest = 0;
    loop {
        let n = wheel.drain_and_close(usize::MAX).unwrap().len();
        rest += n as u64;
        if n == 0 {
            break;
        }
    }
    assert_eq!(rest, TIMERS - 3000);
    assert_eq!(wheel.add_one(Add::new(1, 0, HOUR)), Err(Error::Closed));
    assert!(balanced(&wheel));
}

#[test]
fn limits() {
    let wheel = Wheel::builder().capacity(3).open().unwrap();
    let mut adds: Vec<_> = (0..5).map(|key| Add::new(key, 0, HOUR)).collect();
    let full: Vec<_> = wheel.add(&mut adds).unwrap().iter().map(|added| added.handle()).collect();
    assert!(full[..3].iter().all(|handle| handle.is_ok()));
    assert_eq!(full[3..], [Err(Error::Full); 2]);
    assert_eq!(wheel.add(&mut []).unwrap().len(), 0);
    assert_eq!(Wheel::builder().tick(ns(1)).open().unwrap_err(), Error::Invalid);
    assert_eq!(Wheel::builder().device("\0").open().unwrap_err(), Error::Invalid);
    assert_eq!(wheel.advance(ns(1)), Err(Error::Invalid));
    let missing = Wheel::builder().backend(Backend::Device).device("/nowhere").open();
    assert_eq!(missing.unwrap_err(), Error::NotFound);
}

#[test]
fn errors_say_what_to_do() {
    assert!(Error::Full.to_string().contains("larger capacity"));
    assert!(Error::NoDevice.to_string().contains("modprobe"));
    assert_eq!(Error::from_errno(Error::Quota.errno()), Error::Quota);
    assert_eq!(Error::from_errno(5), Error::Other(5));
    assert_eq!(std::io::Error::from(Error::Full).raw_os_error(), Some(28));
}

#[test]
fn settings() {
    let mut builder = Wheel::builder();
    builder.clock(Clock::Realtime).capacity(50).tick(ms(2)).slack(ms(4));
    let wheel = builder.open().unwrap();
    assert_eq!((wheel.clock(), wheel.capacity(), wheel.tick()), (Clock::Realtime, 50, ms(2)));
    assert!(wheel.table().is_none());
    let before = Time::from(SystemTime::now());
    assert!(before <= wheel.now() && wheel.now() <= Time::from(SystemTime::now()) + ms(1));
    wheel.add_one(Add::new(1, 0, HOUR)).unwrap();
    wheel.add_one(Add::new(2, 0, HOUR).slack(ms(7))).unwrap();
    assert_eq!(wheel.get_one(1).unwrap().slack(), ms(4));
    assert_eq!(wheel.get_one(2).unwrap().slack(), ms(6));
    assert!(with_table().table().is_some() && resident().table().is_some());
}

#[test]
fn instants() {
    let wheel = Wheel::open().unwrap();
    for _ in 0..1000 {
        let before = wheel.now();
        let instant = Instant::now();
        let time = wheel.at(instant).unwrap();
        assert!(before <= time && time <= wheel.now());
        let later = wheel.at(instant + HOUR).unwrap();
        assert!(before + HOUR <= later && later <= wheel.now() + HOUR);
        let earlier = wheel.at(instant - ms(1)).unwrap();
        assert!(earlier <= wheel.now() && before - at(1_000_000) <= earlier - Time::ZERO);
    }
    assert_eq!(manual().at(Instant::now()), Err(Error::Invalid));
}

#[test]
fn refresh_postpones() {
    let wheel = with_table();
    let table = wheel.table().unwrap();
    let handle = add(&wheel, 1, 4096);
    assert_eq!(table.refresh(handle, at(8192)), Answer::Done);
    assert_eq!(wheel.advance(ns(8191)), Ok(0));
    // rounded up, never down
    assert_eq!(table.refresh(handle, at(8193)), Answer::Done);
    assert_eq!(wheel.advance(ns(2)), Ok(0));
    assert_eq!(wheel.advance(ns(8192)), Ok(1));
    // too late: its event comes
    assert_eq!(table.refresh(handle, at(100_000)), Answer::TooLate);
    let mut events = Events::with_capacity(1);
    wheel.take(&mut events).unwrap();
    assert_eq!(events.get(0).unwrap().deadline(), at(12_288));
    // it has ended
    assert_eq!(table.refresh(handle, at(100_000)), Answer::TooLate);
    assert_eq!(table.cancel(handle), Answer::TooLate);
    assert_eq!(wheel.get_one(1).unwrap_err(), Error::NotFound);
    // one that is cancelled exists until it is removed
    let again = add(&wheel, 1, 20_480);
    assert_eq!(table.refresh(handle, at(200_000)), Answer::Gone);
    assert_eq!(table.cancel(again), Answer::Done);
    assert_eq!(wheel.advance(ns(40_960)), Ok(0));
    assert_eq!(table.arm(again, at(1 << 20)), Answer::NeedsCall);
    wheel.remove_one(Remove::new(1)).unwrap();
    assert_eq!(table.arm(again, at(1 << 20)), Answer::Gone);
    let periodic = Add::new(2, 0, ns(1)).period(ns(1));
    assert_eq!(wheel.add_one(periodic).unwrap_err(), Error::Invalid);
}

#[test]
fn refresh_of_the_next_owner() {
    let wheel = with_table();
    let table = wheel.table().unwrap();
    let old = add(&wheel, 1, 4096);
    wheel.remove_one(Remove::new(1)).unwrap();
    // Places are reused at once, or soon.
    let new: Vec<_> = (2..100).map(|key| add(&wheel, key, 4096)).collect();
    assert_eq!(table.refresh(old, at(1 << 40)), Answer::Gone);
    assert!(new.iter().all(|new| *new != old));
    assert_eq!(wheel.advance(ns(4096)), Ok(98));
}

/// A handle of a wheel with many timers, in one with none: no access beyond the table's memory
#[test]
fn handle_of_another_wheel() {
    let many = manual();
    let last = (0..20_000).map(|key| add(&many, key, 1)).last().unwrap();
    let (plain, timers) = (with_table(), resident());
    assert_eq!(plain.table().unwrap().refresh(last, at(5)), Answer::Gone);
    assert_eq!(timers.table().unwrap().arm(last, at(5)), Answer::Gone);
    let mut queue = Queue::new(Arc::new(timers), 0).unwrap();
    assert_eq!(queue.cancel(1, last), Ok(Answer::Gone));
    assert_eq!(queue.arm(1, last, at(5)), Ok(Answer::Gone));
    assert_eq!(queue.refresh(1, last, at(5)), Ok(Answer::Gone));
}

#[test]
fn queue_in_order() {
    let wheel = Arc::new(manual());
    let mut queue = Queue::new(wheel.clone(), 4).unwrap();
    for key in 0..10 {
        queue.add(Add::new(key, 0, at(100))).unwrap();
    }
    queue.set(Move::new(9, at(50))).unwrap();
    queue.remove(Remove::new(9)).unwrap();
    queue.add(Add::new(9, 1, at(200))).unwrap();
    queue.set(Move::new(77, at(1))).unwrap();
    queue.remove(Remove::new(78)).unwrap();
    queue.add(Add::new(8, 1, at(200)).if_value(5)).unwrap();
    queue.flush().unwrap();
    let mut failures: Vec<_> = queue.failures().collect();
    failures.sort_by_key(|failure| failure.key);
    let failure = |op, key, error| Failure { op, key, error };
    assert_eq!(
        failures,
        [
            failure(Op::Add, 8, Error::Changed),
            failure(Op::Move, 77, Error::NotFound),
            failure(Op::Remove, 78, Error::NotFound),
        ]
    );
    assert_eq!(queue.failures().len(), 0);
    assert_eq!(wheel.advance(ns(100)), Ok(9));
    assert_eq!(wheel.get_one(9).unwrap().deadline(), at(200));
    let handle = wheel.get_one(9).unwrap().handle().unwrap();
    assert_eq!(queue.arm(9, handle, at(1)), Err(Error::Invalid));
    assert_eq!(Queue::new(wheel, 65_537).err(), Some(Error::Invalid));
}

#[test]
fn queue_is_flushed_when_dropped() {
    let wheel = Arc::new(manual());
    let mut queue = Queue::new(wheel.clone(), 0).unwrap();
    queue.add(Add::new(1, 0, at(100))).unwrap();
    queue.remove(Remove::new(2)).unwrap();
    assert_eq!(wheel.stats().pending, 0);
    drop(queue);
    assert_eq!(wheel.stats().pending, 1);
}

#[test]
fn queue_with_resident_timers() {
    let wheel = Arc::new(resident());
    let mut queue = Queue::new(wheel.clone(), 0).unwrap();
    let handle = add(&wheel, 1, 10 << 12);
    assert_eq!(queue.arm(1, handle, at(20 << 12)), Ok(Answer::Done));
    assert_eq!(queue.refresh(1, handle, at(21 << 12)), Ok(Answer::Done));
    assert_eq!(queue.cancel(1, handle), Ok(Answer::Done));
    assert_eq!(queue.cancel(1, handle), Ok(Answer::NotArmed));
    assert_eq!(queue.arm(1, handle, at(5 << 12)), Ok(Answer::NeedsCall));
    assert_eq!(wheel.advance(ns(6 << 12)), Ok(0));
    queue.flush().unwrap();
    assert_eq!(keys(&wheel), [1]);
    assert_eq!(queue.cancel(1, handle), Ok(Answer::TooLate));
    wheel.remove_one(Remove::new(1)).unwrap();
    assert_eq!(queue.cancel(1, handle), Ok(Answer::Gone));
}

/// Threads arm and take at the same time: each timer has one event.
#[test]
fn threads() {
    const EACH: u64 = 5000;
    let wheel = Wheel::open().unwrap();
    let mut keys: Vec<u64> = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut events = Events::with_capacity(100);
                    let mut keys = Vec::new();
                    while wheel.stats().delivered < 3 * EACH {
                        wheel.wait(&mut events, Some(ms(20))).unwrap();
                        keys.extend(events.iter().map(|event| event.key()));
                    }
                    keys
                })
            })
            .collect();
        for nr in 0..3 {
            let wheel = &wheel;
            scope.spawn(move || {
                for key in nr * EACH..(nr + 1) * EACH {
                    wheel.add_one(Add::new(key, 0, ms(key % 50))).unwrap();
                }
            });
        }
        takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
    });
    keys.sort_unstable();
    assert!(keys.into_iter().eq(0..3 * EACH));
    assert!(balanced(&wheel));
}

#[test]
fn waiting() {
    let wheel = Wheel::open().unwrap();
    let mut events = Events::with_capacity(10);
    assert_eq!(wheel.wait(&mut events, Some(Duration::ZERO)), Ok(0));
    for _ in 0..20 {
        let begin = Instant::now();
        assert_eq!(wheel.wait(&mut events, Some(ms(3))), Ok(0));
        assert!(begin.elapsed() >= ms(3));
    }
    let begin = Instant::now();
    wheel.add_one(Add::new(1, 0, wheel.at(begin + ms(30)).unwrap())).unwrap();
    assert_eq!(wheel.wait(&mut events, PATIENCE), Ok(1));
    assert!(begin.elapsed() >= ms(30));
    assert_eq!(wheel.as_fd().as_raw_fd(), wheel.as_raw_fd());
}

#[test]
fn adopt_and_monitor() {
    let null = std::fs::File::open("/dev/null").unwrap();
    let fd = null.as_raw_fd();
    let (error, null) = Wheel::adopt(null.into(), false).unwrap_err();
    assert_eq!((error, null.as_raw_fd()), (Error::NotAWheel, fd));

    let wheel = with_table();
    if !on_device(&wheel) {
        assert_eq!(wheel.share().unwrap_err(), Error::Unsupported);
        assert_eq!(wheel.monitor(0).unwrap_err(), Error::Unsupported);
        return;
    }
    let monitor = wheel.monitor(4).unwrap();
    let handle = add(&wheel, 1, 4096);
    let other = Wheel::adopt(wheel.share().unwrap().try_clone_to_owned().unwrap(), true).unwrap();
    drop(wheel);
    let table = other.table().unwrap();
    // It has not told of any timer: the handle is not believed until it does.
    assert_eq!(table.refresh(handle, at(8192)), Answer::Gone);
    assert_eq!(other.get_one(1).unwrap().handle(), Ok(handle));
    assert_eq!(table.refresh(handle, at(8192)), Answer::Done);
    assert_eq!(other.advance(ns(8191)), Ok(0));
    assert_eq!(other.advance(ns(1)), Ok(1));
    let mut events = Events::with_capacity(3);
    assert_eq!(monitor.take(&mut events), Ok(Some(0)));
    assert_eq!(keys(&other), [1]);
    assert_eq!(monitor.take(&mut events), Ok(Some(1)));
    assert_eq!(events.get(0).unwrap().key(), 1);
    drop(other);
    assert_eq!(monitor.take(&mut events), Ok(None));
}
