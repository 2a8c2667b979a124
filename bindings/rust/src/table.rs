// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The deadline table: timers that are armed, refreshed and cancelled in memory
//!
//! All operations are a compare-and-swap on one 64-bit entry, which other threads, other processes
//! and the kernel change at the same time. An entry is
//!
//! ```text
//! (deadline rounded up to a multiple of 2^bits) | generation | state
//! ```
//!
//! An entry can contain any number. This crate compares it, and never uses it as an address or an
//! index.

use crate::sys;
use crate::time::Time;
use crate::timer::Handle;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The mapping of a table, and the part of it that is in use
pub(crate) struct Mapping {
    entries: NonNull<AtomicU64>,
    bits: u32,
    capacity: u32,
    /// The largest index that the wheel has reported. Entries up to this index have memory. Entries
    /// beyond it may have none, and an access would raise SIGBUS.
    used: AtomicU32,
}

// SAFETY: the memory is accessed by atomic operations only, and mapped until the wheel is closed.
unsafe impl Send for Mapping {}
// SAFETY: the same.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// # Safety
    ///
    /// `table` comes from the library, and is not used after the wheel was closed.
    pub(crate) unsafe fn new(table: &sys::Table, capacity: u32) -> Option<Mapping> {
        Some(Mapping {
            entries: NonNull::new(table.entries.cast())?,
            bits: table.bits,
            capacity,
            used: AtomicU32::new(0),
        })
    }

    /// The wheel has reported this index, so its entry has memory.
    pub(crate) fn learn(&self, index: u32) {
        // Relaxed: this orders no other memory.
        if index > self.used.load(Ordering::Relaxed) && index <= self.capacity {
            self.used.fetch_max(index, Ordering::Relaxed);
        }
    }

    /// Returns whether the entry of this handle may be accessed.
    #[inline]
    pub(crate) fn has(&self, handle: Handle) -> bool {
        handle.index <= self.used.load(Ordering::Relaxed)
    }

    /// Returns the entry of a handle, or `None` if the handle belongs to another wheel.
    #[inline]
    fn entry(&self, handle: Handle) -> Option<&AtomicU64> {
        if !self.has(handle) {
            return None;
        }
        // SAFETY: the mapping has room for all indices up to the capacity, and learn() checks that
        // entries up to `used` are in there and have memory.
        Some(unsafe { &*self.entries.as_ptr().add(handle.index as usize) })
    }

    /// The low bits of an entry: generation and state
    #[inline]
    fn mask(&self) -> u64 {
        (1 << self.bits) - 1
    }

    /// The entry for a deadline, without a state
    #[inline]
    fn word(&self, deadline: Time, handle: Handle) -> u64 {
        // Deadlines are less than 2^63, so rounding up does not overflow.
        ((deadline.as_nanos() + self.mask()) & !self.mask()) | u64::from(handle.generation)
    }
}

/// The outcome of an operation in the deadline table. Only `Done` means that the operation changed
/// something and ordered memory.
///
/// A thread that takes the event of an arming, or that cancels the arming, sees everything that was
/// written before the timer was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Answer {
    /// The operation was done. After a cancel no event is delivered for that arming.
    Done,
    /// Refresh, cancel: the last arming has fired. Its event will be delivered, was taken, or was
    /// withdrawn by a call.
    TooLate,
    /// Arm: the timer has fired, is parked, or has a later deadline; refresh: it has a later
    /// deadline. A [`Move`](crate::Move) arms it, or an [`Add`](crate::Add) if it is not resident
    /// and its event was delivered. From a [`Queue`](crate::Queue): the move is queued.
    NeedsCall,
    /// Refresh, cancel: the timer is not armed, because it was cancelled, or because it has a
    /// linger and its event was taken.
    NotArmed,
    /// The timer has ended.
    Gone,
}

/// The deadline table of a wheel, from [`Wheel::table`](crate::Wheel::table). Copies refer to the
/// same table.
///
/// Deadlines are rounded up to a multiple of 2^12 to 2^20 nanoseconds. This is less than a tick,
/// unless ticks are shorter than 4,096 nanoseconds.
///
/// The operations make no system call and take no lock. Any thread of any process that has the
/// wheel may use them, whichever thread has added the timer.
///
/// ```
/// use std::time::Duration;
/// use timerwheel::{Add, Answer, Wheel};
///
/// let wheel = Wheel::builder().resident().open()?;
/// let request = wheel.add_one(Add::new(1, 0, Duration::from_secs(30)))?;
/// let timers = wheel.table().unwrap();
///
/// // The answer came in time.
/// assert_eq!(timers.cancel(request), Answer::Done);
/// // The next request
/// assert_eq!(timers.arm(request, wheel.now() + Duration::from_secs(31)), Answer::Done);
/// # Ok::<(), timerwheel::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Table<'w>(pub(crate) &'w Mapping);

impl Table<'_> {
    /// The difference between an entry and the armed entry of the handle: the state, or the
    /// generation.
    #[inline]
    fn differs(&self, old: u64, armed: u64) -> u64 {
        (old ^ armed) & self.0.mask()
    }

    /// The answer of refresh and cancel for a timer that is not armed
    #[inline]
    fn not_armed(differs: u64) -> Answer {
        if differs > sys::FIRED {
            Answer::Gone
        } else if differs & sys::ARMED != 0 {
            Answer::NotArmed
        } else {
            Answer::TooLate
        }
    }

    /// Arms a timer, whether or not it is armed. If it was armed, no event is delivered for its
    /// previous deadline.
    ///
    /// The deadline must not be earlier than the deadline of the last arming, even if that arming
    /// was cancelled.
    ///
    /// Returns [`Answer::Done`], [`Answer::NeedsCall`] or [`Answer::Gone`].
    #[inline]
    pub fn arm(&self, handle: Handle, deadline: Time) -> Answer {
        let entry = match self.0.entry(handle) {
            Some(entry) => entry,
            None => return Answer::Gone,
        };
        let want = self.0.word(deadline, handle) | sys::ARMED;
        let mut old = entry.load(Ordering::Relaxed);
        loop {
            let differs = self.differs(old, want);
            if differs & !sys::ARMED != 0 {
                return if differs > sys::FIRED { Answer::Gone } else { Answer::NeedsCall };
            }
            // The state is in the lowest bits: cancelled is less than armed.
            if want < old {
                return Answer::NeedsCall;
            }
            // A thread that takes the event sees what was written before; litmus
            // c11/resident-publish.
            match entry.compare_exchange_weak(old, want, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Answer::Done,
                Err(now) => old = now,
            }
        }
    }

    /// Postpones a timer if it is armed. No event is then delivered for its previous deadline.
    ///
    /// A program that did not run for a while refreshes too late: the timer fires, and the program
    /// reads the message that postpones it only afterwards. So if the answer is
    /// [`Answer::TooLate`], arm the timer again, and remember its deadline. At an event, receive
    /// what has arrived, and ignore the event if its deadline is earlier than the deadline that you
    /// remember. [The loop](crate#the-loop) shows the order.
    ///
    /// Returns any answer; [`Answer::NeedsCall`]: the deadline is earlier than the timer's
    /// deadline.
    #[inline]
    pub fn refresh(&self, handle: Handle, deadline: Time) -> Answer {
        let entry = match self.0.entry(handle) {
            Some(entry) => entry,
            None => return Answer::Gone,
        };
        let want = self.0.word(deadline, handle) | sys::ARMED;
        let mut old = entry.load(Ordering::Relaxed);
        loop {
            let differs = self.differs(old, want);
            if differs != 0 {
                return Table::not_armed(differs);
            }
            if want < old {
                return Answer::NeedsCall;
            }
            // As in arm(); litmus c11/resident-publish.
            match entry.compare_exchange_weak(old, want, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Answer::Done,
                Err(now) => old = now,
            }
        }
    }

    /// Cancels a timer, so that no event is delivered. The timer continues to exist until it is
    /// removed, and can be armed again.
    ///
    /// Returns [`Answer::Done`], [`Answer::TooLate`], [`Answer::NotArmed`] or [`Answer::Gone`].
    #[inline]
    pub fn cancel(&self, handle: Handle) -> Answer {
        let entry = match self.0.entry(handle) {
            Some(entry) => entry,
            None => return Answer::Gone,
        };
        let armed = u64::from(handle.generation) | sys::ARMED;
        let mut old = entry.load(Ordering::Relaxed);
        loop {
            let differs = self.differs(old, armed);
            if differs != 0 {
                return Table::not_armed(differs);
            }
            // The deadline stays: the timer is still queued for it. Order: see Answer; litmus
            // c11/resident-cancel, c11/resident-rearm.
            let cancelled = old - sys::ARMED;
            match entry.compare_exchange_weak(old, cancelled, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Answer::Done,
                Err(now) => old = now,
            }
        }
    }
}

/// A table without a wheel
#[cfg(test)]
mod tests {
    use super::*;

    const BITS: u32 = 12;
    const UNIT: u64 = 1 << BITS;
    const GENERATION: u32 = 8;

    struct Fake {
        /// Behind `mapping`, whose pointer is to here
        entries: Vec<AtomicU64>,
        mapping: Mapping,
    }

    /// Index 1 is in use. The table ends behind index 2, but there is memory for one more.
    fn fake(entry: u64) -> Fake {
        let entries: Vec<AtomicU64> = [0, entry, 0, 0].map(AtomicU64::new).into();
        let table = sys::Table { entries: entries.as_ptr() as *mut u64, bits: BITS };
        let mapping = unsafe { Mapping::new(&table, 2) }.unwrap();
        mapping.learn(1);
        Fake { entries, mapping }
    }

    fn handle() -> Handle {
        Handle { index: 1, generation: GENERATION }
    }

    fn entry(units: u64, low: u64) -> u64 {
        (units * UNIT) | low
    }

    fn at(units: u64) -> Time {
        Time::from_nanos(units * UNIT)
    }

    impl Fake {
        fn now(&self) -> u64 {
            self.entries[1].load(Ordering::Relaxed)
        }
    }

    #[test]
    fn rounding() {
        let fake = fake(entry(3, 8 | sys::ARMED));
        let table = Table(&fake.mapping);
        assert_eq!(table.refresh(handle(), Time::from_nanos(5 * UNIT - 1)), Answer::Done);
        assert_eq!(fake.now(), entry(5, 8 | sys::ARMED));
        assert_eq!(table.refresh(handle(), Time::MAX), Answer::Done);
        assert_eq!(fake.now() & !(UNIT - 1), 1 << 63);
        assert_eq!(fake.now() & (UNIT - 1), 8 | sys::ARMED);
    }

    #[test]
    fn handles_of_other_wheels() {
        let fake = fake(entry(3, 8 | sys::ARMED));
        let timers = Table(&fake.mapping);
        for index in [2, 3, u32::MAX] {
            let handle = Handle { index, generation: 0 };
            assert_eq!(timers.arm(handle, at(5)), Answer::Gone);
            assert_eq!(timers.refresh(handle, at(5)), Answer::Gone);
            assert_eq!(timers.cancel(handle), Answer::Gone);
        }
        // not even if the kernel named them
        fake.mapping.learn(3);
        assert_eq!(timers.arm(Handle { index: 3, generation: 0 }, at(5)), Answer::Gone);
        fake.mapping.learn(2);
        assert_eq!(timers.arm(Handle { index: 2, generation: 0 }, at(5)), Answer::Done);
        fake.mapping.learn(1);
        assert!(fake.mapping.has(Handle { index: 2, generation: 0 }));
    }

    /// All answers, for each state: of arm, refresh and cancel, and of the first two for an
    /// earlier deadline
    #[test]
    fn answers() {
        use Answer::*;
        let states = [
            (sys::CANCELLED, [Done, NotArmed, NotArmed, NeedsCall, NotArmed]),
            (sys::ARMED, [Done, Done, Done, NeedsCall, NeedsCall]),
            (sys::PARKED, [NeedsCall, NotArmed, NotArmed, NeedsCall, NotArmed]),
            (sys::FIRED, [NeedsCall, TooLate, TooLate, NeedsCall, TooLate]),
            (4 + sys::CANCELLED, [Gone; 5]),
            (4 + sys::ARMED, [Gone; 5]),
            (UNIT - 1 - 8, [Gone; 5]),
        ];
        for (state, [arm, refresh, cancel, arm_earlier, refresh_earlier]) in states {
            // Each is given a table of its own, and the entry that is to be in there afterwards.
            let check = |run: &dyn Fn(Table<'_>) -> Answer, answer, after| {
                let begin = entry(10, 8 + state);
                let fake = fake(begin);
                assert_eq!(run(Table(&fake.mapping)), answer, "state {}", state);
                assert_eq!(fake.now(), if answer == Done { after } else { begin });
            };
            let later = entry(11, 8 | sys::ARMED);
            check(&|timers| timers.arm(handle(), at(11)), arm, later);
            check(&|timers| timers.refresh(handle(), at(11)), refresh, later);
            let same = entry(10, 8 | sys::ARMED);
            check(&|timers| timers.arm(handle(), at(10)), arm, same);
            check(&|timers| timers.refresh(handle(), at(10)), refresh, same);
            check(&|timers| timers.cancel(handle()), cancel, entry(10, 8));
            check(&|timers| timers.arm(handle(), at(9)), arm_earlier, 0);
            check(&|timers| timers.refresh(handle(), at(9)), refresh_earlier, 0);
        }
    }
}
