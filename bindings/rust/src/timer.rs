// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The elements of calls, and events

use crate::error::Error;
use crate::sys;
use crate::time::{nanos, Deadline, Time};
use std::fmt;
use std::time::Duration;

/// A timer's place in its wheel. The deadline table and the calls by handle take it instead of the
/// key.
///
/// A handle is valid until the timer ends: until it is removed or drained or, for a one-shot timer
/// that is not resident, until its event is taken. After that the place can get a new owner. An old
/// handle does not reach the new owner, unless the place had 1,023 or more owners in between.
///
/// A handle belongs to one wheel. In another wheel it names an arbitrary timer, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// The state of a timer before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Was {
    /// There was no timer with this key.
    Absent,
    /// The timer was pending.
    Pending,
    /// The timer was due. Its event was withdrawn, except by [`Wheel::get`](crate::Wheel::get) and
    /// [`Wheel::list`](crate::Wheel::list).
    Due,
    /// The resident timer was not armed: its last arming was cancelled, or its event was taken.
    Parked,
}

/// Converts the result of an element to the previous state or the error.
fn was(result: i32) -> Result<Was, Error> {
    match result {
        sys::WAS_NONE => Ok(Was::Absent),
        sys::WAS_PENDING => Ok(Was::Pending),
        sys::WAS_DUE => Ok(Was::Due),
        sys::WAS_PARKED => Ok(Was::Parked),
        error => Err(Error::from_errno(error.wrapping_neg())),
    }
}

/// Declares an element of a call, and the type of a processed element, which has the same layout.
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
    /// Arms a timer named `key`. If the key already has a timer, that timer is replaced: it gets
    /// the new value, deadline, period and slack, and its event is withdrawn if it was not taken.
    pub fn new(key: u64, value: u64, deadline: impl Into<Deadline>) -> Add {
        let (deadline, flags) = deadline.into().parts();
        Add(sys::Add { key, value, deadline, flags, ..sys::Add::default() })
    }

    /// Makes the timer fire again every `period` after the deadline. Not for resident timers.
    pub fn period(mut self, period: Duration) -> Add {
        self.0.period = nanos(period);
        self
    }

    /// Sets the linger of a resident timer. For this long after its event was taken, the timer can
    /// be armed for the end of the linger, or a later time, without a call. It must not be zero.
    pub fn linger(mut self, linger: Duration) -> Add {
        self.0.period = nanos(linger);
        self.0.flags |= sys::LINGER;
        self
    }

    /// Sets how much later the timer may fire to share a wake-up with other timers. The slack is
    /// rounded down to ticks.
    pub fn slack(mut self, slack: Duration) -> Add {
        self.0.slack = nanos(slack);
        self.0.flags |= sys::SLACK;
        self
    }

    /// Fails with [`Error::Exists`] if the key has a timer.
    pub fn exclusive(mut self) -> Add {
        self.0.flags |= sys::EXCL;
        self
    }

    /// Replaces only a timer with this value. Fails with [`Error::NotFound`] if there is no timer,
    /// and with [`Error::Changed`] if the timer has another value. Cannot be combined with
    /// [`exclusive`](Add::exclusive).
    pub fn if_value(mut self, value: u64) -> Add {
        self.0.match_ = value;
        self.0.flags |= sys::MATCH;
        self
    }
}

impl Added {
    /// Returns the timer's key.
    pub fn key(&self) -> u64 {
        self.0.key
    }

    /// Returns the previous state of the key's timer. Errors: [`Error::Invalid`],
    /// [`Error::Exists`],
    /// [`Error::NotFound`], [`Error::Changed`], [`Error::Full`], [`Error::Quota`],
    /// [`Error::Collision`], [`Error::NoMemory`], [`Error::Closed`].
    pub fn was(&self) -> Result<Was, Error> {
        was(self.0.result)
    }

    /// Returns the timer's handle, or the error.
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
    /// Sets a new deadline for the timer `key`. Its event is withdrawn if it was not taken. Value,
    /// period and slack do not change.
    pub fn new(key: u64, deadline: impl Into<Deadline>) -> Move {
        let (deadline, flags) = deadline.into().parts();
        Move(sys::Move { key, deadline, flags, ..sys::Move::default() })
    }

    /// For a resident timer, fails with [`Error::Exists`] if it is armed or due.
    pub fn unless_armed(mut self) -> Move {
        self.0.flags |= sys::EXCL;
        self
    }

    /// Fails with [`Error::Changed`] if the timer has another value.
    pub fn if_value(mut self, value: u64) -> Move {
        self.0.match_ = value;
        self.0.flags |= sys::MATCH;
        self
    }
}

impl Moved {
    /// Returns the timer's key.
    pub fn key(&self) -> u64 {
        self.0.key
    }

    /// Returns the previous state of the timer. Errors: [`Error::NotFound`], [`Error::Changed`],
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
    /// Removes the timer `key`.
    pub fn new(key: u64) -> Remove {
        Remove(sys::Remove { key, ..sys::Remove::default() })
    }

    /// Fails with [`Error::Changed`] if the timer has another value.
    pub fn if_value(mut self, value: u64) -> Remove {
        self.0.match_ = value;
        self.0.flags |= sys::MATCH;
        self
    }
}

impl Removed {
    /// Returns the timer's key.
    pub fn key(&self) -> u64 {
        self.0.key
    }

    /// Returns the previous state of the timer. Errors: [`Error::NotFound`], [`Error::Changed`].
    pub fn was(&self) -> Result<Was, Error> {
        was(self.0.result)
    }

    /// Returns the timer's value, or the error.
    pub fn value(&self) -> Result<u64, Error> {
        self.was().map(|_| self.0.value)
    }

    /// Returns the time that was left until the deadline, zero if the deadline had passed, or the
    /// error.
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
    /// Like [`Move::new`], for the timer with this handle.
    pub fn new(handle: Handle, deadline: Time) -> MoveHandle {
        MoveHandle(sys::MoveHandle {
            deadline: deadline.as_nanos(),
            index: handle.index,
            generation: handle.generation,
        })
    }
}

impl MovedHandle {
    /// Returns the previous state of the timer. [`Error::NotFound`]: the timer has ended.
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
    /// Removes the timer with this handle.
    pub fn new(handle: Handle) -> RemoveHandle {
        RemoveHandle(sys::RemoveHandle {
            value: 0,
            index: handle.index,
            generation: handle.generation,
        })
    }
}

impl RemovedHandle {
    /// Returns the previous state of the timer. [`Error::NotFound`]: the timer has ended.
    pub fn was(&self) -> Result<Was, Error> {
        was(self.0.generation as i32)
    }

    /// Returns the timer's value, or the error.
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
    /// Describes the timer `key`.
    pub fn new(key: u64) -> Get {
        Get(sys::Entry { key, ..sys::Entry::default() })
    }
}

impl Entry {
    /// Returns the timer's key.
    pub fn key(&self) -> u64 {
        self.0.key
    }

    /// Returns the timer's state. [`Error::NotFound`]: there is no timer with this key.
    pub fn was(&self) -> Result<Was, Error> {
        was(self.0.result)
    }

    /// Returns the timer's value.
    pub fn value(&self) -> u64 {
        self.0.value
    }

    /// Returns the timer's deadline.
    pub fn deadline(&self) -> Time {
        Time::from_nanos(self.0.deadline)
    }

    /// Returns the time until the deadline, zero if the deadline has passed.
    pub fn left(&self) -> Duration {
        Duration::from_nanos(self.0.left.max(0) as u64)
    }

    /// Returns the period or, for a resident timer, the linger. `None`: it fires once, or has no
    /// linger.
    pub fn period(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.0.period)).filter(|period| !period.is_zero())
    }

    /// Returns the timer's slack.
    pub fn slack(&self) -> Duration {
        Duration::from_nanos(self.0.slack)
    }

    /// Returns the timer's handle, or the error.
    pub fn handle(&self) -> Result<Handle, Error> {
        self.was()?;
        Ok(Handle { index: self.0.index, generation: self.0.generation })
    }
}

/// Prints an element like the structure that it contains.
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
    /// Returns the timer's key.
    pub fn key(&self) -> u64 {
        self.0.key
    }

    /// Returns the timer's value.
    pub fn value(&self) -> u64 {
        self.0.value
    }

    /// Returns the deadline that was reached.
    pub fn deadline(&self) -> Time {
        Time::from_nanos(self.0.deadline)
    }

    /// Returns when the wheel found the timer due, never before [`deadline`](Event::deadline).
    pub fn fired(&self) -> Time {
        Time::from_nanos(self.0.fired)
    }

    /// For a periodic timer, returns the number of later deadlines that had also passed. They have
    /// no events of their own. If [`is_missed`](Event::is_missed), returns the number of missing
    /// events.
    pub fn overruns(&self) -> u64 {
        self.0.overruns
    }

    /// Returns whether the timer is periodic, and was armed again.
    pub fn is_periodic(&self) -> bool {
        self.0.flags & sys::EVENT_PERIODIC != 0
    }

    /// Returns whether this is not the event of a timer, but the clock was set
    /// ([`Builder::clock_set`](crate::Builder::clock_set)).
    pub fn is_clock_set(&self) -> bool {
        self.0.flags & sys::EVENT_CLOCK_SET != 0
    }

    /// Returns whether this is not the event of a timer, but a [`Monitor`](crate::Monitor) was read
    /// too slowly and has lost events.
    pub fn is_missed(&self) -> bool {
        self.0.flags & sys::EVENT_MISSED != 0
    }

    /// Returns whether the event belongs to a timer that watches a TCP connection, which another
    /// program has armed. The connection will be aborted, was aborted, or had ended.
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
    /// Allocates memory for `count` events, at least one.
    pub fn with_capacity(count: usize) -> Events {
        Events(Vec::with_capacity(count.max(1)))
    }

    /// Returns the number of events that the last call has taken.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the last call has taken no events.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns one of the events.
    pub fn get(&self, nr: usize) -> Option<Event> {
        self.0.get(nr).copied().map(Event)
    }

    /// Returns an iterator over the events.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Event> + '_ {
        self.0.iter().copied().map(Event)
    }

    /// Replaces the events by the events that `take` stores. `take` gets the address and the number
    /// of events that fit, and returns the number of events that it has stored.
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
