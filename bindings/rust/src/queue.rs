// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Queues of operations that are performed together

use crate::error::{check_int, Error};
use crate::sys;
use crate::table::Answer;
use crate::time::Time;
use crate::timer::{Add, Handle, Move, Remove};
use crate::wheel::Wheel;
use std::os::raw::{c_int, c_uint, c_ulong, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

/// The kind of a queued operation
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// An [`Add`]
    Add,
    /// A [`Move`], or an [`arm`](Queue::arm) or [`refresh`](Queue::refresh) that needed a call
    Move,
    /// A [`Remove`]
    Remove,
}

/// A queued operation that failed
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of the operation
    pub op: Op,
    /// The key of its timer
    pub key: u64,
    /// The reason
    pub error: Error,
}

/// The operations of one turn of an event loop, which [`flush`](Queue::flush) performs in at most
/// three system calls.
///
/// Operations on the same key are performed in the order in which they were queued. Operations on
/// different keys are performed in any order. Dropping a queue flushes it without reporting
/// failures.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use timerwheel::{Add, Error, Queue, Remove, Wheel};
///
/// let wheel = Arc::new(Wheel::open()?);
/// let mut queue = Queue::new(wheel.clone(), 256)?;
/// queue.add(Add::new(1, 0, Duration::from_secs(5)))?;
/// queue.remove(Remove::new(2))?;
/// queue.flush()?;
/// let failure = queue.failures().next().unwrap();
/// assert_eq!((failure.key, failure.error), (2, Error::NotFound));
/// # Ok::<(), timerwheel::Error>(())
/// ```
pub struct Queue {
    raw: NonNull<sys::Queue>,
    /// Written by `failed`, during the library's functions on the queue. From Box::into_raw().
    failures: NonNull<Vec<Failure>>,
    /// The queue is freed before it is closed.
    wheel: Arc<Wheel>,
}

// SAFETY: the queue may be used by one thread at a time: all methods that use it take &mut self.
unsafe impl Send for Queue {}
// SAFETY: the same. Through & there is only the wheel.
unsafe impl Sync for Queue {}

extern "C" fn failed(arg: *mut c_void, op: c_ulong, elem: *const c_void) {
    // SAFETY: the library passes the element that belongs to the operation, and `arg` is the list
    // of failures, which no other code accesses during a function on the queue.
    unsafe {
        let (op, key, result) = match op {
            sys::IOC_ADD => {
                let add = &*elem.cast::<sys::Add>();
                (Op::Add, add.key, add.result)
            }
            sys::IOC_MOVE => {
                let set = &*elem.cast::<sys::Move>();
                (Op::Move, set.key, set.result)
            }
            sys::IOC_REMOVE => {
                let remove = &*elem.cast::<sys::Remove>();
                (Op::Remove, remove.key, remove.result)
            }
            _ => return,
        };
        let error = Error::from_errno(result.wrapping_neg());
        (*arg.cast::<Vec<Failure>>()).push(Failure { op, key, error });
    }
}

impl Queue {
    /// Creates a queue for up to `room` operations of each kind, at most 65,536; 0: 256. An
    /// operation for which there is no room flushes the queue first.
    ///
    /// Errors: [`Error::Invalid`], [`Error::NoMemory`].
    pub fn new(wheel: Arc<Wheel>, room: u32) -> Result<Queue, Error> {
        let failures = NonNull::from(Box::leak(Box::<Vec<Failure>>::default()));
        let mut raw = std::ptr::null_mut();
        // SAFETY: the wheel is open until the queue was freed, and so is `failures` there.
        let ret = unsafe {
            let arg = failures.as_ptr().cast();
            sys::timerwheel_queue_new(&mut raw, wheel.raw(), room as c_uint, failed, arg)
        };
        match check_int(ret) {
            // SAFETY: the library has created it.
            Ok(_) => Ok(Queue { raw: unsafe { NonNull::new_unchecked(raw) }, failures, wheel }),
            Err(error) => {
                // SAFETY: it is from a box, and there is no queue that has its address.
                drop(unsafe { Box::from_raw(failures.as_ptr()) });
                Err(error)
            }
        }
    }

    /// Returns the wheel.
    pub fn wheel(&self) -> &Arc<Wheel> {
        &self.wheel
    }

    /// Arms a timer with the next flush. A relative deadline counts from the flush. The flush does
    /// not return the handle; use [`Wheel::get`].
    ///
    /// Errors: as for [`flush`](Queue::flush), if a flush was needed first; then the operation was
    /// not queued.
    pub fn add(&mut self, elem: Add) -> Result<(), Error> {
        // SAFETY: queue and element are valid; the library copies the element.
        check_int(unsafe { sys::timerwheel_queue_add(self.raw.as_ptr(), &elem.0) }).map(drop)
    }

    /// Changes the deadline of a timer with the next flush.
    ///
    /// Errors: as for [`add`](Queue::add).
    pub fn set(&mut self, elem: Move) -> Result<(), Error> {
        // SAFETY: as above.
        check_int(unsafe { sys::timerwheel_queue_move(self.raw.as_ptr(), &elem.0) }).map(drop)
    }

    /// Removes a timer with the next flush.
    ///
    /// Errors: as for [`add`](Queue::add).
    pub fn remove(&mut self, elem: Remove) -> Result<(), Error> {
        // SAFETY: as above.
        check_int(unsafe { sys::timerwheel_queue_remove(self.raw.as_ptr(), &elem.0) }).map(drop)
    }

    /// Calls a function that accesses the entry of a handle, if the handle belongs to this wheel.
    fn answer<F>(&mut self, handle: Handle, function: F) -> Result<Answer, Error>
    where
        F: FnOnce(*mut sys::Queue) -> c_int,
    {
        let table = self.wheel.mapping();
        if !table.ok_or(Error::Invalid)?.has(handle) {
            return Ok(Answer::Gone);
        }
        Ok(match check_int(function(self.raw.as_ptr()))? {
            sys::ANSWER_DONE => Answer::Done,
            sys::ANSWER_TOO_LATE => Answer::TooLate,
            sys::ANSWER_NEEDS_CALL => Answer::NeedsCall,
            sys::ANSWER_NOT_ARMED => Answer::NotArmed,
            _ => Answer::Gone,
        })
    }

    /// Arms a timer in memory, or else with the next flush.
    ///
    /// Returns [`Answer::Done`], [`Answer::NeedsCall`] (a move is queued) or [`Answer::Gone`]. A
    /// queued move withdraws an event that was not taken. An event that was taken before belongs to
    /// the previous arming: its deadline is earlier than `deadline`. If the timer is not resident and
    /// its event was taken, the move fails because the timer does not exist.
    ///
    /// Errors: [`Error::Invalid`]: the wheel has no deadline table; otherwise as for [`add`](Queue::add).
    pub fn arm(&mut self, key: u64, handle: Handle, deadline: Time) -> Result<Answer, Error> {
        // SAFETY: the queue is valid, and the entry is there; the same below.
        self.answer(handle, |queue| unsafe {
            let Handle { index, generation } = handle;
            sys::timerwheel_queue_arm(queue, key, index, generation, deadline.as_nanos())
        })
    }

    /// Postpones a timer in memory if it is armed. If operations on its key are queued,
    /// the queue is flushed first. If the deadline is earlier than the timer's deadline, a [`Move`]
    /// is queued, which arms the timer even if it fires before the flush.
    ///
    /// Returns any answer; [`Answer::NeedsCall`]: the move is queued.
    ///
    /// Errors: as for [`arm`](Queue::arm).
    pub fn refresh(&mut self, key: u64, handle: Handle, deadline: Time) -> Result<Answer, Error> {
        self.answer(handle, |queue| unsafe {
            let Handle { index, generation } = handle;
            sys::timerwheel_queue_refresh(queue, key, index, generation, deadline.as_nanos())
        })
    }

    /// Cancels a timer in memory. If operations on its key are queued, the queue is
    /// flushed first.
    ///
    /// Returns an answer of [`Table::cancel`](crate::Table::cancel).
    ///
    /// Errors: as for [`arm`](Queue::arm).
    pub fn cancel(&mut self, key: u64, handle: Handle) -> Result<Answer, Error> {
        self.answer(handle, |queue| unsafe {
            sys::timerwheel_queue_cancel(queue, key, handle.index, handle.generation)
        })
    }

    /// Performs all queued operations. In an event loop, call it before each
    /// [`Wheel::take`](crate::Wheel::take).
    ///
    /// Errors: as for [`Wheel::add`]; then the remaining operations stay queued. Failed operations
    /// are not errors of the flush; [`failures`](Queue::failures) returns them.
    pub fn flush(&mut self) -> Result<(), Error> {
        // SAFETY: the queue is valid.
        check_int(unsafe { sys::timerwheel_queue_flush(self.raw.as_ptr()) }).map(drop)
    }

    /// Returns the operations that failed since the previous call. The queue keeps failures until
    /// then, without a limit, so call this after each flush.
    pub fn failures(&mut self) -> std::vec::Drain<'_, Failure> {
        // SAFETY: it is from a box. `failed` writes to it only during methods with &mut self.
        unsafe { &mut *self.failures.as_ptr() }.drain(..)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: both are valid, and this is their last use. The flush may still add failures.
        unsafe {
            sys::timerwheel_queue_free(self.raw.as_ptr());
            drop(Box::from_raw(self.failures.as_ptr()));
        }
    }
}
