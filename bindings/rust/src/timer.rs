// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The elements of calls, and events

use crate::error::Error;
use crate::sys;
use crate::time::{nanos, Deadline, Time};
use std::fmt;
use std::time::Duration;

/// A timer's place in its wheel: what the deadline table and the calls by handle take instead of
/// the key.
///
/// It is valid until the timer ends: until it is removed or drained or, if it fires once and is
/// not resident, until its event was taken. After that the place may get a new owner, which a
/// handle of the former one does not reach, unless there were thousands of owners in between.
///
/// A handle is of one wheel. In another one it names some timer or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// What a timer was before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Was {
    /// There was no timer with this key.
    Absent,
    /// It was pending.
    Pending,
    /// It was due. Its event was withdrawn, except by [`Wheel::get`](crate::Wheel::get) and
    /// [`Wheel::list`](crate::Wheel::list).
    Due,
    /// A resident timer that was not armed: its last arming was cancelled, or its event was taken.
    Parked,
}

/// Of the result of an element: the state before, or the error.
fn was(result: i32) -> Result<Was, Error> {
    match result {
        sys::WAS_NONE => Ok(Was::Absent),
        sys::WAS_PENDING => Ok(Was::Pending),
        sys::WAS_DUE => Ok(Was::Due),
        sys::WAS_PARKED => Ok(Was::Parked),
        error => Err(Error::from_errno(error.wrapping_neg())),
    }
}

/// Declares an element of a call, and what it is when it was processed: the same memory.
macro_rules! element {
    ($type:ident, $(#[$doc:meta])* $name:ident, $(#[$done_doc:meta])* $done:ident) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy)]
        pub struct $name(pub(crate) sys::$type);

        $(#[$done_doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy)]
        pub struct $done(pub(crate) sys::$type);

        impl $name {
            /// The first `count` elements, which the library has processed.
            pub(crate) fn done(elems: &[$name], count: usize) -> &[$done] {
                let done = &elems[..count];
                // SAFETY: both types are transparent, and have the same structure inside.
                unsafe { std::slice::from_raw_parts(done.as_ptr().cast(), done.len()) }
            }
        }
    };
}

element! {
    Add,
    /// Arm a timer: an element of [`Wheel::add`](crate::Wheel::add).
    ///
    /// ```
    /// use std::time::Duration;
    /// use timerwheel::Add;
    ///
    /// let add = Add::new(7, 100, Duration::from_secs(30)).period(Duration::from_secs(1));
    /// ```
    Add,
    /// An [`Add`] that was processed
    Added
}

impl Add {
    /// A timer named `key`. A timer that has this key already is replaced: it gets the new value,
    /// deadline, period and slack, and its event is withdrawn if it has not been taken.
    pub fn new(key: u64, value: u64, deadline: impl Into<Deadline>) -> Add {
        let (deadline, flags) = deadline.into().parts();
        Add(sys::Add { key, value, deadline, flags, ..sys::Add::default() })
    }

    /// Fire again, every `period` from the deadline on. Not for resident timers.
    pub fn period(mut self, period: Duration) -> Add {
        self.0.period = nanos(period);
        self
    }

    /// Of a resident timer: for that long after its event was taken, it can be armed for the end of
    /// that time or a later one without a call. It must not be zero.
    pub fn linger(mut self, linger: Duration) -> Add {
        self.0.period = nanos(linger);
        self.0.flags |= sys::LINGER;
        self
    }

    /// How much later it may fire to share a wake-up with others. It is rounded down to ticks.
    pub fn slack(mut self, slack: Duration) -> Add {
        self.0.slack = nanos(slack);
        self.0.flags |= sys::SLACK;
        self
    }

    /// Fail with [`Error::Exists`] if the key has a timer.
    pub fn exclusive(mut self) -> Add {
        self.0.flags |= sys::EXCL;
        self
    }

    /// Only replace a timer with this value: fail with [`Error::NotFound`] if there is no timer and
    /// with [`Error::Changed`] if it has another value. Not together with
    /// [`exclusive`](Add::exclusive).
    pub fn if_value(mut self, value: u64) -> Add {
        self.0.match_ = value;
        self.0.flags |= sys::MATCH;
        self
    }
}

impl Added {
    /// Its key.
    pub fn key(&self) -> u64 {
        self.0.key
    }

    /// What the key's timer was before. Errors: [`Error::Invalid`], [`Error::Exists`],
    /// [`Error::NotFound`], [`Error::Changed`], [`Error::Full`], [`Error::Quota`],
    /// [`Error::Collision`], [`Error::NoMemory`], [`Error::Closed`].
    pub fn was(&self) -> Result<Was, Error> {
        was(self.0.result)
    }

    /// The timer's handle, or the error.
    pub fn handle(&self) -> Result<Handle, Error> {
        self.was()?;
        Ok(Handle { index: self.0.index, generation: self.0.generation })
    }
}

element! {
    Move,
    /// Change the deadline of a timer: an element of [`Wheel::set`](crate::Wheel::set).
    Move,
    /// A [`Move`] that was processed
    Moved
}

impl Move {
    /// A new deadline for the timer `key`. Its event is withdrawn if it has not been taken. Value,
    /// period and slack stay.
    pub fn new(key: u64, deadline: impl Into<Deadline>) -> Move {
        let (deadline, flags) = deadline.into().parts();
        Move(sys::Move { key, deadline, flags, ..sys::Move::default() })
    }

    /// Of a resident timer: fail with [`Error::Exists`] if it is armed or due.
    pub fn unless_armed(mut self) -> Move {
        self.0.flags |= sys::EXCL;
        self
    }

    /// Fail with [`Error::Changed`] if it has another value.
    pub fn if_value(mut self, value: u64) -> Move {
        self.0.match_ = value;
        self.0.flags |= sys::MATCH;
        self
    }
}

impl Moved {
    /// Its key.
    pub fn key(&self) -> u64 {
        self.0.key
    }

    /// What the timer was before. Errors: [`Error::NotFound`], [`Error::Changed`],
    /// [`Error::Exists`], [`Error::Invalid`].
    pub fn was(&self) -> Result<Was, Error> {
        was(self.0.result)
    }
}

element! {
    Remove,
    /// Remove a timer: an element of [`Wheel::remove`](crate::Wheel::remove).
    Remove,
    /// A [`Remove`] that was processed
    Removed
}

impl Remove {
    /// Remove the timer `key`.
    pub fn new(key: u64) -> Remove {
        Remove(sys::Remove { key, ..sys::Remove::default() })
    }

    /// Fail with [`Error::Changed`] if it has another value.
    pub fn if_value(mut self, value: u64) -> Remove {
        self.0.match_ = value;
        self.0.flags |= sys::MATCH;
        self
    }
}

impl Removed {
    /// Its key.
    pub fn key(&self) -> u64 {
        self.0.key
    }

    /// What the timer was before. Errors: [`Error::NotFound`], [`Error::Changed`].
    pub fn was(&self) -> Result<Was, Error> {
        was(self.0.result)
    }

    /// The timer's value, or the error.
    pub fn value(&self) -> Result<u64, Error> {
        self.was().map(|_| self.0.value)
    }

    /// The time that was left until its deadline, zero if that had passed; or the error.
    pub fn left(&self) -> Result<Duration, Error> {
        self.was().map(|_| Duration::from_nanos(self.0.left.max(0) as u64))
    }
}

element! {
    MoveHandle,
    /// Change the deadline of a timer by its handle: an element of
    /// [`Wheel::set_handles`](crate::Wheel::set_handles).
    MoveHandle,
    /// A [`MoveHandle`] that was processed
    MovedHandle
}

impl MoveHandle {
    /// As [`Move::new`], for the timer with this handle.
    pub fn new(handle: Handle, deadline: Time) -> MoveHandle {
        MoveHandle(sys::MoveHandle {
            deadline: deadline.as_nanos(),
            index: handle.index,
            generation: handle.generation,
        })
    }
}

impl MovedHandle {
    /// What the timer was before; [`Error::NotFound`]: it has ended.
    pub fn was(&self) -> Result<Was, Error> {
        // The kernel stores the result where the generation was.
        was(self.0.generation as i32)
    }
}

element! {
    RemoveHandle,
    /// Remove a timer by its handle: an element of
    /// [`Wheel::remove_handles`](crate::Wheel::remove_handles).
    RemoveHandle,
    /// A [`RemoveHandle`] that was processed
    RemovedHandle
}

impl RemoveHandle {
    /// Remove the timer with this handle.
    pub fn new(handle: Handle) -> RemoveHandle {
        RemoveHandle(sys::RemoveHandle {
            value: 0,
            index: handle.index,
            generation: handle.generation,
        })
    }
}

impl RemovedHandle {
    /// What the timer was before; [`Error::NotFound`]: it has ended.
    pub fn was(&self) -> Result<Was, Error> {
        was(self.0.generation as i32)
    }

    /// The timer's value, or the error.
    pub fn value(&self) -> Result<u64, Error> {
        self.was().map(|_| self.0.value)
    }
}

element! {
    Entry,
    /// Describe a timer: an element of [`Wheel::get`](crate::Wheel::get).
    Get,
    /// The description of a timer, from [`Wheel::get`](crate::Wheel::get),
    /// [`Wheel::list`](crate::Wheel::list) and [`Wheel::drain`](crate::Wheel::drain)
    Entry
}

impl Get {
    /// Describe the timer `key`.
    pub fn new(key: u64) -> Get {
        Get(sys::Entry { key, ..sys::Entry::default() })
    }
}

impl Entry {
    /// Its key.
    pub fn key(&self) -> u64 {
        self.0.key
    }

    /// Its state; [`Error::NotFound`]: there is no timer with this key.
    pub fn was(&self) -> Result<Was, Error> {
        was(self.0.result)
    }

    /// Its value.
    pub fn value(&self) -> u64 {
        self.0.value
    }

    /// Its deadline.
    pub fn deadline(&self) -> Time {
        Time::from_nanos(self.0.deadline)
    }

    /// The time until its deadline, zero if that has passed.
    pub fn left(&self) -> Duration {
        Duration::from_nanos(self.0.left.max(0) as u64)
    }

    /// Its period, of a resident timer its linger; `None`: it fires once, or has no linger.
    pub fn period(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.0.period)).filter(|period| !period.is_zero())
    }

    /// Its slack.
    pub fn slack(&self) -> Duration {
        Duration::from_nanos(self.0.slack)
    }

    /// Its handle, or the error.
    pub fn handle(&self) -> Result<Handle, Error> {
        self.was()?;
        Ok(Handle { index: self.0.index, generation: self.0.generation })
    }
}

/// Prints an element as the structure that it is.
macro_rules! debug {
    ($($name:ident)*) => {
        $(impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        })*
    };
}

debug! {
    Add Added Move Moved Remove Removed MoveHandle MovedHandle RemoveHandle RemovedHandle Get Entry
}

/// The event of a timer that has fired
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Event(pub(crate) sys::Event);

impl Event {
    /// The timer's key.
    pub fn key(&self) -> u64 {
        self.0.key
    }

    /// The timer's value.
    pub fn value(&self) -> u64 {
        self.0.value
    }

    /// The deadline that was reached.
    pub fn deadline(&self) -> Time {
        Time::from_nanos(self.0.deadline)
    }

    /// When the timer was found due, never before [`deadline`](Event::deadline).
    pub fn fired(&self) -> Time {
        Time::from_nanos(self.0.fired)
    }

    /// Of a periodic timer: how many more deadlines had passed. They have no event of their own.
    /// Of [`is_missed`](Event::is_missed): how many events are missing.
    pub fn overruns(&self) -> u64 {
        self.0.overruns
    }

    /// The timer is periodic, and was armed again.
    pub fn is_periodic(&self) -> bool {
        self.0.flags & sys::EVENT_PERIODIC != 0
    }

    /// Not of a timer: the clock was set ([`Builder::clock_set`](crate::Builder::clock_set)).
    pub fn is_clock_set(&self) -> bool {
        self.0.flags & sys::EVENT_CLOCK_SET != 0
    }

    /// Not of a timer, from a [`Monitor`](crate::Monitor): it was too slow.
    pub fn is_missed(&self) -> bool {
        self.0.flags & sys::EVENT_MISSED != 0
    }

    /// Of a timer that watches a TCP connection, which another program has armed: the connection
    /// will be aborted, was aborted, or had ended.
    pub fn is_connection(&self) -> bool {
        self.0.flags & (sys::EVENT_WARNING | sys::EVENT_ABORTED | sys::EVENT_GONE) != 0
    }
}

/// Memory for the events that one call takes
///
/// ```
/// use timerwheel::{Add, Events, Wheel};
/// use std::time::Duration;
///
/// let wheel = Wheel::open()?;
/// let mut events = Events::with_capacity(64);
/// wheel.add_one(Add::new(1, 100, Duration::from_millis(10)))?;
/// wheel.wait(&mut events, None)?;
/// for event in &events {
///     assert_eq!((event.key(), event.value()), (1, 100));
///     assert!(event.fired() >= event.deadline());
/// }
/// # Ok::<(), timerwheel::Error>(())
/// ```
pub struct Events(Vec<sys::Event>);

impl Events {
    /// Memory for `count` events, at least one.
    pub fn with_capacity(count: usize) -> Events {
        Events(Vec::with_capacity(count.max(1)))
    }

    /// How many the last call has taken.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The last call has taken none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One of them.
    pub fn get(&self, nr: usize) -> Option<Event> {
        self.0.get(nr).copied().map(Event)
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Event> + '_ {
        self.0.iter().copied().map(Event)
    }

    /// Replaces the events by those that `take` stores. It is given the address and the number of
    /// events that fit, and returns how many it has stored.
    pub(crate) fn fill<F>(&mut self, take: F) -> Result<usize, Error>
    where
        F: FnOnce(*mut sys::Event, usize) -> Result<usize, Error>,
    {
        self.0.clear();
        let n = take(self.0.as_mut_ptr(), self.0.capacity())?;
        assert!(n <= self.0.capacity());
        // SAFETY: so many have been stored.
        unsafe { self.0.set_len(n) };
        Ok(n)
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Events {
    type Item = Event;
    type IntoIter = std::iter::Map<
        std::iter::Copied<std::slice::Iter<'a, sys::Event>>,
        fn(sys::Event) -> Event,
    >;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().copied().map(Event)
    }
}
