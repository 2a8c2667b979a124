// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Values that are kept until their time has come
//!
//! Each value is in a slot, and each slot has a resident timer whose key is the slot's number. The
//! timer stays when the slot gets another value, so most insertions, all removals and most resets
//! are a compare-and-swap. What needs a call (a new slot, a timer that has fired, an earlier
//! deadline) is gathered, and done in one call when the program waits.
//!
//! An event may be of a former arming: it was taken, and is buffered here, when the slot got a new
//! deadline. Invariant: an event is believed if its deadline is not before that of the slot. So no
//! value is early, and none gets lost, as an arming is never for an earlier time than the slot's
//! deadline, and its event comes unless a cancel or a new arming has ended it. An empty slot has no
//! deadline, so its events are dropped.

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

/// Names a value in a [`DelayQueue`]. It is of no use when the value was removed or has expired,
/// even if another value has its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    slot: u32,
    /// How many values the slot had before. They repeat after 2^32.
    turn: u32,
}

/// A value whose time has come
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

    /// The key that it had.
    pub fn key(&self) -> Key {
        self.key
    }

    /// When it was to expire, by the clock of the queue's wheel.
    pub fn deadline(&self) -> Time {
        self.deadline
    }
}

/// Where the next call that a slot needs is
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

/// Values that are kept until their time has come: as `DelayQueue` of tokio-util, with the timers
/// in a wheel.
///
/// Values stay in this process. To insert, remove or reset one mostly needs no system call; what
/// needs one is gathered and done by the next [`wait`](DelayQueue::wait),
/// [`next`](DelayQueue::next), [`flush`](DelayQueue::flush) or poll. No timer is early; it may be a
/// tick late. The queue has as many timers as it has had values at once.
///
/// With the feature `tokio` it is a `Stream`, which is polled within a runtime of tokio's. It ends
/// when the queue is empty, and goes on when there are values again.
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
    /// What is to be done by a call, and for which slots
    adds: Vec<Add>,
    adds_of: Vec<u32>,
    /// `adds` were refused, which the program knows: they wait until something has changed.
    refused: bool,
    moves: Vec<MoveHandle>,
    moves_of: Vec<u32>,
    events: Events,
    /// How many of `events` were looked at
    seen: usize,
    /// The task that waits for the wheel, and does not know of what was gathered since, nor that
    /// the queue is empty
    waker: Option<Waker>,
    #[cfg(feature = "tokio")]
    registered: Option<AsyncWheel>,
    wheel: Arc<Wheel>,
}

/// Gathered operations of a kind, before they are done whether or not the program waits
const ROOM: usize = 1024;

impl<T> DelayQueue<T> {
    /// A queue with a wheel of its own, with the default settings.
    ///
    /// # Errors
    ///
    /// Those of [`Builder::open`](crate::Builder::open).
    pub fn new() -> Result<DelayQueue<T>, Error> {
        DelayQueue::with_wheel(Wheel::builder().resident().open()?)
    }

    /// A queue with this wheel: of another clock, with shorter ticks, or for more values.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`]: it was opened without [`Builder::resident`](crate::Builder::resident).
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
        wheel.residents().ok_or(Error::Invalid)?;
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

    /// Its wheel: for its clock, its counters, [`Wheel::advance`]. The timers in there are the
    /// queue's.
    pub fn wheel(&self) -> &Wheel {
        &self.wheel
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// There are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keeps a value for so long, from now on.
    pub fn insert(&mut self, value: T, timeout: Duration) -> Key {
        let deadline = self.wheel.now() + timeout;
        self.insert_at(value, deadline)
    }

    /// Keeps a value until then, by the clock of the wheel.
    ///
    /// # Panics
    ///
    /// If there are 2^32 values.
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

    /// Takes a value back. `None`: it has expired, or was taken back before.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.slot(key)?;
        self.disarm(key.slot);
        self.vacate(key.slot)
    }

    /// Keeps a value for so long from now on, instead of until its deadline. False: it has expired,
    /// or was taken back.
    pub fn reset(&mut self, key: Key, timeout: Duration) -> bool {
        let deadline = self.wheel.now() + timeout;
        self.reset_at(key, deadline)
    }

    /// Keeps a value until then, by the clock of the wheel, instead of until its deadline. False: it
    /// has expired, or was taken back.
    pub fn reset_at(&mut self, key: Key, deadline: Time) -> bool {
        if self.slot(key).is_none() {
            return false;
        }
        self.arm(key.slot, deadline);
        true
    }

    /// A value that is kept.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.slot(key)?.value.as_ref()
    }

    /// The deadline of a value that is kept.
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

    /// The next value whose time has come; `None`: none for now. Does not block.
    ///
    /// # Errors
    ///
    /// Those of [`flush`](DelayQueue::flush) and [`Wheel::take`].
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

    /// The next value whose time has come; sleeps until there is one, or the timeout has passed, or
    /// the queue is empty: `None`. Values whose timers were refused, which was told before (see
    /// [`flush`](DelayQueue::flush)), do not end the sleep.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`]: a signal arrived; those of [`next`](DelayQueue::next).
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Expired<T>>, Error> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let next = self.next()?;
            if next.is_some() || self.is_empty() || !sleep(self.wheel.as_fd(), end)? {
                return Ok(next);
            }
        }
    }

    /// Does what was gathered, mostly in at most two calls. The other methods do it when it is needed;
    /// call it before waiting for the descriptor by other means.
    ///
    /// # Errors
    ///
    /// Those of [`Wheel::add_one`]: [`Error::Full`], [`Error::Quota`], [`Error::NoMemory`],
    /// [`Error::Collision`]. Nothing is lost: values whose timers could not be added are kept. It is
    /// tried again by this method, and by the other ones when a value has expired or was removed, or
    /// another one needs a timer; if it fails again, that is told once more. A wheel of n timers is
    /// for n values.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.refused = false;
        self.flush_new()
    }

    /// The same, without what was refused. The caller tells the program of an error.
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

    /// The slot of a value that is kept.
    fn slot(&self, key: Key) -> Option<&Slot<T>> {
        let slot = self.slots.get(key.slot as usize)?;
        Some(slot).filter(|slot| slot.turn == key.turn && slot.value.is_some())
    }

    /// The slot's timer is to fire at this time, and not before.
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
                let answer = self.wheel.residents().map(|timers| timers.arm(handle, deadline));
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

    /// Something was gathered, one of `count` of its kind: somebody must do it.
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

    /// The slot's timer is not to fire. If it has fired, its event is dropped later.
    fn disarm(&mut self, nr: u32) {
        if let (Some(handle), Some(timers)) =
            (self.slots[nr as usize].handle, self.wheel.residents())
        {
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

    /// The value of a slot, which is free then.
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
        /// The next value whose time has come; `None`: the queue is empty. Must be called within a
        /// runtime of tokio's with I/O enabled; it panics otherwise.
        ///
        /// # Errors
        ///
        /// Those of [`next`](DelayQueue::next).
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
    /// It becomes readable when a time has come, after [`next`](DelayQueue::next) has returned
    /// `None`.
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
