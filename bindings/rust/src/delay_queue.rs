// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A queue of values with deadlines
//!
//! Each value is in a slot, and each slot has a resident timer whose key is the slot's number. The
//! timer stays when the slot gets another value, so most insertions, all removals and most resets
//! are a compare-and-swap. Operations that need a call (a new slot, a timer that has fired, an
//! earlier deadline) are queued, and performed together when the program waits.
//!
//! An event can belong to a previous arming: it was taken, and is buffered here, when the slot gets
//! a new deadline. Invariant: an event counts only if its deadline is not earlier than the slot's
//! deadline. So no value is early. No value is lost either, because an arming is never for an
//! earlier time than the slot's deadline, and its event is delivered unless a cancel or a new
//! arming has ended it. An empty slot has no deadline, so its events are dropped.

use crate::error::Error;
use crate::table::Answer;
use crate::time::Time;
use crate::timer::{Add, Event, Events, Handle, MoveHandle};
#[cfg(feature = "tokio")]
use crate::tokio::AsyncWheel;
use crate::wheel::{sleep, Wheel};
use std::fmt;
use std::os::unix::io::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// Names a value in a [`DelayQueue`]. It becomes invalid when the value is removed or expires, even
/// if another value gets its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    slot: u32,
    /// The number of values that the slot had before. It wraps after 2^32.
    turn: u32,
}

/// A value that has expired
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired<T> {
    value: T,
    key: Key,
    deadline: Time,
}

impl<T> Expired<T> {
    /// The value.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// The value.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// Returns the key that the value had.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Returns the value's deadline, a time of the wheel's clock.
    pub fn deadline(&self) -> Time {
        self.deadline
    }
}

/// The position of the next call that a slot needs
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// At this place of `adds`
    Add(usize),
    /// At this place of `moves`
    Move(usize),
}

struct Slot<T> {
    /// `None`: the slot is free
    value: Option<T>,
    turn: u32,
    /// `None`: its timer was not added yet
    handle: Option<Handle>,
    deadline: Time,
    needs: Needs,
}

/// A queue that keeps values until their deadlines, like `DelayQueue` of tokio-util, with the
/// timers in a wheel.
///
/// Values stay in this process. Inserting, removing and resetting a value mostly needs no system
/// call. Operations that need a call are queued, and the next [`wait`](DelayQueue::wait),
/// [`next`](DelayQueue::next), [`flush`](DelayQueue::flush) or poll performs them. A value never
/// expires early, and at most a tick late. The number of timers is the largest number of values
/// that the queue has held at once.
///
/// With the feature `tokio` the queue is a `Stream`. Poll it within a tokio runtime. The stream
/// ends when the queue is empty, and continues when there are values again.
///
/// ```
/// use std::time::Duration;
/// use timerwheel::DelayQueue;
///
/// let mut queue = DelayQueue::new()?;
/// let slow = queue.insert("slow", Duration::from_secs(3600));
/// let gone = queue.insert("gone", Duration::from_millis(1));
/// queue.insert("fast", Duration::from_millis(10));
/// assert_eq!(queue.remove(gone), Some("gone"));
/// assert!(queue.reset(slow, Duration::from_millis(20)));
/// assert_eq!(queue.wait(None)?.unwrap().into_inner(), "fast");
/// assert_eq!(queue.wait(None)?.unwrap().into_inner(), "slow");
/// assert!(queue.is_empty());
/// # Ok::<(), timerwheel::Error>(())
/// ```
pub struct DelayQueue<T> {
    slots: Vec<Slot<T>>,
    /// Free slots, whose timers are not armed
    free: Vec<u32>,
    len: usize,
    /// The operations that need a call, and their slots
    adds: Vec<Add>,
    adds_of: Vec<u32>,
    /// `adds` were refused, and the program knows it. They wait until something has changed.
    refused: bool,
    moves: Vec<MoveHandle>,
    moves_of: Vec<u32>,
    events: Events,
    /// The number of `events` that were processed
    seen: usize,
    /// The task that waits for the wheel. It does not know of operations queued since then, nor
    /// that the queue is empty
    waker: Option<Waker>,
    #[cfg(feature = "tokio")]
    registered: Option<AsyncWheel>,
    wheel: Arc<Wheel>,
}

/// The maximum number of queued operations of a kind. The next one performs them even if the
/// program does not wait
const ROOM: usize = 1024;

impl<T> DelayQueue<T> {
    /// Creates a queue with its own wheel, which has the default settings.
    ///
    /// # Errors
    ///
    /// As for [`Builder::open`](crate::Builder::open).
    pub fn new() -> Result<DelayQueue<T>, Error> {
        DelayQueue::with_wheel(Wheel::builder().resident().open()?)
    }

    /// Creates a queue with this wheel, which can have another clock, shorter ticks, or a larger
    /// capacity.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`]: the wheel was opened without
    /// [`Builder::resident`](crate::Builder::resident).
    ///
    /// ```
    /// use std::time::Duration;
    /// use timerwheel::{Clock, DelayQueue, Wheel};
    ///
    /// let wheel = Wheel::builder().clock(Clock::Manual).resident().open()?;
    /// let mut queue = DelayQueue::with_wheel(wheel)?;
    /// queue.insert("value", Duration::from_secs(60));
    /// queue.wheel().advance(Duration::from_secs(59))?;
    /// assert!(queue.next()?.is_none());
    /// queue.wheel().advance(Duration::from_secs(2))?;
    /// assert_eq!(queue.next()?.unwrap().into_inner(), "value");
    /// # Ok::<(), timerwheel::Error>(())
    /// ```
    pub fn with_wheel(wheel: Wheel) -> Result<DelayQueue<T>, Error> {
        if !wheel.is_resident() || wheel.table().is_none() {
            return Err(Error::Invalid);
        }
        Ok(DelayQueue {
            slots: Vec::new(),
            free: Vec::new(),
            len: 0,
            adds: Vec::new(),
            adds_of: Vec::new(),
            refused: false,
            moves: Vec::new(),
            moves_of: Vec::new(),
            events: Events::with_capacity(256),
            seen: 0,
            waker: None,
            #[cfg(feature = "tokio")]
            registered: None,
            wheel: Arc::new(wheel),
        })
    }

    /// Returns the wheel, for its clock, its counters and [`Wheel::advance`]. The timers in the
    /// wheel belong to the queue.
    pub fn wheel(&self) -> &Wheel {
        &self.wheel
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the queue has no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts a value that expires after this duration.
    pub fn insert(&mut self, value: T, timeout: Duration) -> Key {
        let deadline = self.wheel.now() + timeout;
        self.insert_at(value, deadline)
    }

    /// Inserts a value that expires at this time of the wheel's clock.
    ///
    /// # Panics
    ///
    /// Panics if there are 2^32 values.
    pub fn insert_at(&mut self, value: T, deadline: Time) -> Key {
        let nr = match self.free.pop() {
            Some(nr) => nr,
            None => {
                let nr = u32::try_from(self.slots.len()).expect("too many values");
                self.slots.push(Slot {
                    value: None,
                    turn: 0,
                    handle: None,
                    deadline,
                    needs: Needs::Nothing,
                });
                nr
            }
        };
        self.len += 1;
        self.slots[nr as usize].value = Some(value);
        self.arm(nr, deadline);
        Key { slot: nr, turn: self.slots[nr as usize].turn }
    }

    /// Removes a value and returns it. `None`: it has expired, or was already removed.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.slot(key)?;
        self.disarm(key.slot);
        self.vacate(key.slot)
    }

    /// Changes the deadline of a value to this duration from now. Returns false if the value has
    /// expired or was removed.
    pub fn reset(&mut self, key: Key, timeout: Duration) -> bool {
        let deadline = self.wheel.now() + timeout;
        self.reset_at(key, deadline)
    }

    /// Changes the deadline of a value to this time of the wheel's clock. Returns false if the
    /// value has expired or was removed.
    pub fn reset_at(&mut self, key: Key, deadline: Time) -> bool {
        if self.slot(key).is_none() {
            return false;
        }
        self.arm(key.slot, deadline);
        true
    }

    /// Returns a value in the queue.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.slot(key)?.value.as_ref()
    }

    /// Returns the deadline of a value in the queue.
    pub fn deadline(&self, key: Key) -> Option<Time> {
        self.slot(key).map(|slot| slot.deadline)
    }

    /// Drops all values.
    pub fn clear(&mut self) {
        for nr in 0..self.slots.len() as u32 {
            if self.slots[nr as usize].value.is_some() {
                self.disarm(nr);
                self.vacate(nr);
            }
        }
    }

    /// Returns the next expired value, or `None` if no value has expired. It does not block.
    ///
    /// # Errors
    ///
    /// As for [`flush`](DelayQueue::flush) and [`Wheel::take`].
    #[allow(clippy::should_implement_trait)] // It can fail, and goes on after None.
    pub fn next(&mut self) -> Result<Option<Expired<T>>, Error> {
        // If it fails, other values may expire all the same.
        let flushed = self.flush_new();
        loop {
            while let Some(event) = self.events.get(self.seen) {
                self.seen += 1;
                if let Some(expired) = self.expire(event) {
                    return Ok(Some(expired));
                }
            }
            self.seen = 0;
            match self.wheel.take(&mut self.events) {
                Ok(0) => return flushed.map(|()| None),
                Ok(_) => (),
                Err(error) => return flushed.and(Err(error)),
            }
        }
    }

    /// Sleeps until a value has expired, and returns it. Returns `None` if the timeout has passed
    /// or the queue is empty. Values whose timers were refused, which an error has reported before
    /// (see [`flush`](DelayQueue::flush)), do not end the sleep.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`]: a signal arrived; otherwise as for [`next`](DelayQueue::next).
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Expired<T>>, Error> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let next = self.next()?;
            if next.is_some() || self.is_empty() || !sleep(self.wheel.as_fd(), end)? {
                return Ok(next);
            }
        }
    }

    /// Performs the queued operations, usually in at most two calls. The other methods do this when
    /// needed. Call it before you wait for the descriptor by other means.
    ///
    /// # Errors
    ///
    /// As for [`Wheel::add_one`]: [`Error::Full`], [`Error::Quota`], [`Error::NoMemory`],
    /// [`Error::Collision`]. No value is lost: the queue keeps values whose timers could not be
    /// added. This method tries again to add them. The other methods try again when a value has
    /// expired or was removed, or when another value needs a timer. If that fails again, the error
    /// is reported again. A wheel with a capacity of n timers is sufficient for n values.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.refused = false;
        self.flush_new()
    }

    /// Performs the queued operations except those that were refused. The caller reports an error
    /// to the program.
    fn flush_new(&mut self) -> Result<(), Error> {
        let adds = if self.adds.is_empty() || self.refused { Ok(()) } else { self.flush_adds() };
        let moves = if self.moves.is_empty() { Ok(()) } else { self.flush_moves() };
        self.refused |= adds.is_err();
        adds.and(moves)
    }

    fn flush_adds(&mut self) -> Result<(), Error> {
        let mut kept = 0;
        let mut error = None;
        let mut handles = Vec::with_capacity(self.adds.len());
        // A call that has stopped says why when it is made for the rest.
        while error.is_none() && handles.len() < self.adds.len() {
            match self.wheel.add(&mut self.adds[handles.len()..]) {
                Ok([]) => break,
                Ok(done) => handles.extend(done.iter().map(|added| added.handle())),
                Err(failed) => error = Some(failed),
            }
        }
        for i in 0..self.adds.len() {
            let slot = &mut self.slots[self.adds_of[i] as usize];
            match handles.get(i) {
                Some(Ok(handle)) => {
                    slot.handle = Some(*handle);
                    slot.needs = Needs::Nothing;
                    continue;
                }
                Some(Err(failed)) => error = Some(*failed),
                None => (),
            }
            slot.needs = Needs::Add(kept);
            self.adds[kept] = self.adds[i];
            self.adds_of[kept] = self.adds_of[i];
            kept += 1;
        }
        self.adds.truncate(kept);
        self.adds_of.truncate(kept);
        error.map_or(Ok(()), Err)
    }

    fn flush_moves(&mut self) -> Result<(), Error> {
        // The elements stay as they are if the call fails. Each of a timer that exists succeeds.
        let done = self.wheel.set_handles(&mut self.moves)?.len();
        for (i, nr) in self.moves_of.iter().enumerate() {
            let needs = if i < done { Needs::Nothing } else { Needs::Move(i - done) };
            self.slots[*nr as usize].needs = needs;
        }
        self.moves.drain(..done);
        self.moves_of.drain(..done);
        Ok(())
    }

    /// Returns the slot of a value in the queue.
    fn slot(&self, key: Key) -> Option<&Slot<T>> {
        let slot = self.slots.get(key.slot as usize)?;
        Some(slot).filter(|slot| slot.turn == key.turn && slot.value.is_some())
    }

    /// Makes the slot's timer fire at this time, and not before.
    fn arm(&mut self, nr: u32, deadline: Time) {
        let slot = &mut self.slots[nr as usize];
        slot.deadline = deadline;
        match (slot.needs, slot.handle) {
            // It is not known to the wheel, or to be moved: for that time, then.
            (Needs::Add(place), _) => self.adds[place] = Add::new(nr.into(), 0, deadline),
            (Needs::Move(place), Some(handle)) => {
                self.moves[place] = MoveHandle::new(handle, deadline);
            }
            (Needs::Nothing, Some(handle)) => {
                let answer = self.wheel.table().map(|timers| timers.arm(handle, deadline));
                if answer != Some(Answer::Done) {
                    slot.needs = Needs::Move(self.moves.len());
                    self.moves.push(MoveHandle::new(handle, deadline));
                    self.moves_of.push(nr);
                    self.gathered(self.moves.len());
                }
            }
            (_, None) => {
                slot.needs = Needs::Add(self.adds.len());
                self.adds.push(Add::new(nr.into(), 0, deadline));
                self.adds_of.push(nr);
                self.refused = false;
                self.gathered(self.adds.len());
            }
        }
    }

    /// An operation was queued, one of `count` of its kind, and must be performed.
    fn gathered(&mut self, count: usize) {
        if count % ROOM == 0 {
            // An error stays until the program waits, and the operations, too.
            let told = self.refused;
            let _ = self.flush_new();
            self.refused = told;
        }
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Keeps the slot's timer from firing. If it has fired, its event is dropped later.
    fn disarm(&mut self, nr: u32) {
        if let (Some(handle), Some(timers)) = (self.slots[nr as usize].handle, self.wheel.table()) {
            let _ = timers.cancel(handle);
        }
        self.ungather(nr);
    }

    /// The slot needs no call.
    fn ungather(&mut self, nr: u32) {
        match std::mem::replace(&mut self.slots[nr as usize].needs, Needs::Nothing) {
            Needs::Nothing => (),
            Needs::Add(place) => {
                self.adds.swap_remove(place);
                self.adds_of.swap_remove(place);
                if let Some(last) = self.adds_of.get(place) {
                    self.slots[*last as usize].needs = Needs::Add(place);
                }
            }
            Needs::Move(place) => {
                self.moves.swap_remove(place);
                self.moves_of.swap_remove(place);
                if let Some(last) = self.moves_of.get(place) {
                    self.slots[*last as usize].needs = Needs::Move(place);
                }
            }
        }
    }

    /// Takes the value of a slot, and frees the slot.
    fn vacate(&mut self, nr: u32) -> Option<T> {
        let slot = &mut self.slots[nr as usize];
        slot.turn = slot.turn.wrapping_add(1);
        let value = slot.value.take();
        self.len -= 1;
        self.free.push(nr);
        if std::mem::take(&mut self.refused) {
            // It is tried again.
            self.wake();
        }
        if self.len == 0 {
            // The stream ends, and no event comes.
            self.wake();
        }
        value
    }

    /// The value that an event is for.
    fn expire(&mut self, event: Event) -> Option<Expired<T>> {
        let nr = u32::try_from(event.key()).ok()?;
        let slot = self.slots.get(nr as usize)?;
        if slot.value.is_none() || event.deadline() < slot.deadline {
            return None;
        }
        let (key, deadline) = (Key { slot: nr, turn: slot.turn }, slot.deadline);
        // It may have been reset to an earlier time, which has passed as well.
        self.ungather(nr);
        self.vacate(nr).map(|value| Expired { value, key, deadline })
    }
}

#[cfg(feature = "tokio")]
mod stream {
    use super::*;
    use crate::tokio::failed;
    use futures_core::Stream;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    impl<T> DelayQueue<T> {
        /// Returns the next expired value, or `None` if the queue is empty. Call it within a tokio
        /// runtime with I/O enabled; otherwise it panics.
        ///
        /// # Errors
        ///
        /// As for [`next`](DelayQueue::next).
        pub fn poll_expired(
            &mut self,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Expired<T>, Error>>> {
            loop {
                match self.next() {
                    Ok(Some(expired)) => return Poll::Ready(Some(Ok(expired))),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                    Ok(None) => (),
                }
                if self.is_empty() {
                    return Poll::Ready(None);
                }
                match self.poll_readable(cx) {
                    Poll::Ready(Ok(())) => (),
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                    Poll::Pending => {
                        self.waker = Some(cx.waker().clone());
                        return Poll::Pending;
                    }
                }
            }
        }

        fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
            if self.registered.is_none() {
                match AsyncWheel::for_queue(self.wheel.clone()) {
                    Ok(registered) => self.registered = Some(registered),
                    Err(error) => return Poll::Ready(Err(failed(error))),
                }
            }
            match &self.registered {
                Some(registered) => registered.poll_readable(cx),
                None => Poll::Pending,
            }
        }
    }

    impl<T: Unpin> Stream for DelayQueue<T> {
        type Item = Result<Expired<T>, Error>;

        fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            self.get_mut().poll_expired(cx)
        }
    }
}

impl<T> AsFd for DelayQueue<T> {
    /// The descriptor becomes readable when a value has expired, after [`next`](DelayQueue::next)
    /// has returned `None`.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wheel.as_fd()
    }
}

impl<T: fmt::Debug> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = self.slots.iter().enumerate();
        let values = slots.filter_map(|(nr, slot)| slot.value.as_ref().map(|value| (nr, value)));
        f.debug_map().entries(values).finish()
    }
}
