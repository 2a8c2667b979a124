// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One file descriptor for millions of timeouts: `/dev/timerwheel`, the kernel module timerwheel,
//! or the same inside the process where that is not loaded.
//!
//! * A [`Wheel`] has timers. They are named by keys, and armed, moved and removed by calls on slices
//!   of up to 65,536 elements ([`Add`], [`Move`], [`Remove`]); a [`Queue`] gathers such operations.
//! * [`Events`] of those that have fired are taken by [`Wheel::take`] and [`Wheel::wait`], or from
//!   mapped memory by a [`Ring`]. The wheel is a descriptor ([`AsFd`](std::os::unix::io::AsFd)) to
//!   wait for with poll, epoll or io_uring.
//! * [`Table`] postpones timers by a compare-and-swap in mapped memory, [`Residents`] arms,
//!   refreshes and cancels them so: a request timeout or an idle timeout without system calls.
//! * [`DelayQueue`] keeps values until their time has come.
//! * [`Clock::Manual`] is for tests: time passes by [`Wheel::advance`] only.
//! * Feature `tokio`: `AsyncWheel`, and `DelayQueue` as a `Stream`.
//!
//! Timers are never early, and at most a tick late (1 ms unless [`Builder::tick`] says otherwise)
//! plus the slack asked for, plus what the scheduler adds.
//!
//! ```
//! use std::time::Duration;
//! use timerwheel::{Add, Events, Remove, Wheel};
//!
//! let wheel = Wheel::open()?;
//! for added in wheel.add(&mut [
//!     Add::new(1, 100, Duration::from_millis(30)),
//!     Add::new(2, 200, Duration::from_millis(10)),
//!     Add::new(3, 300, Duration::from_millis(20)),
//! ])? {
//!     added.was()?;
//! }
//! wheel.remove_one(Remove::new(3))?;
//!
//! let mut events = Events::with_capacity(64);
//! let mut fired = Vec::new();
//! while wheel.wait(&mut events, Some(Duration::from_millis(100)))? > 0 {
//!     fired.extend(events.iter().map(|event| (event.key(), event.value())));
//! }
//! assert_eq!(fired, [(2, 200), (1, 100)]);
//! # Ok::<(), timerwheel::Error>(())
//! ```
//!
//! # Where the wheel is
//!
//! libtimerwheel decides when a wheel is opened: the device if there is one, else this process.
//! [`Wheel::backend`] tells. The environment variable `TIMERWHEEL_BACKEND` (`device` or `process`)
//! and [`Builder::backend`] force one of them. In the process a wheel cannot be shared, does not
//! survive the process, and has no monitors; all else is the same.
//!
//! # What is not here
//!
//! Deadlines on TCP connections and commands for io_uring, which libtimerwheel has.

#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("timerwheel is for 64-bit Linux");

mod delay_queue;
mod error;
#[cfg(test)]
mod layout;
mod queue;
mod ring;
mod sys;
mod table;
mod time;
mod timer;
#[cfg(feature = "tokio")]
mod tokio;
mod wheel;

#[cfg(feature = "tokio")]
pub use crate::tokio::AsyncWheel;
pub use delay_queue::{DelayQueue, Expired, Key};
pub use error::Error;
pub use queue::{Failure, Op, Queue};
pub use ring::Ring;
pub use table::{Answer, Residents, Table};
pub use time::{Deadline, Time};
pub use timer::{
    Add, Added, Entry, Event, Events, Get, Handle, Move, MoveHandle, Moved, MovedHandle, Remove,
    RemoveHandle, Removed, RemovedHandle, Was,
};
pub use wheel::{Backend, Builder, Clock, Monitor, Stats, Wheel};
