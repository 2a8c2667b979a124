// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One file descriptor for millions of timeouts: this crate uses `/dev/timerwheel`, the device of
//! the kernel module timerwheel, or a wheel inside the process if the module is not loaded.
//!
//! * A [`Wheel`] holds timers, each named by a key. Calls on slices of any length arm, move and
//!   remove timers ([`Add`], [`Move`], [`Remove`]). A [`Queue`] collects such operations.
//! * [`Wheel::take`] and [`Wheel::wait`] take the [`Events`] of timers that have fired. A [`Ring`]
//!   takes them from mapped memory. The wheel has a descriptor ([`AsFd`](std::os::unix::io::AsFd))
//!   to wait for with poll, epoll or io_uring.
//! * [`Table`] arms, refreshes and cancels timers by a compare-and-swap in mapped memory, without
//!   system calls.
//! * [`DelayQueue`] keeps values until their deadlines.
//! * [`Clock::Manual`] is for tests: its time moves only when [`Wheel::advance`] is called.
//! * The feature `tokio` adds `AsyncWheel`, and makes `DelayQueue` a `Stream`.
//!
//! Timers are never early. They are at most a tick late (1 ms unless [`Builder::tick`] sets another
//! length), plus the requested slack, plus the delay of the scheduler.
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
//! # Back ends
//!
//! libtimerwheel selects the back end when you open a wheel: the device if there is one, otherwise
//! this process. [`Wheel::backend`] reports which one it is. To force a back end, set the
//! environment variable `TIMERWHEEL_BACKEND` (`device` or `process`) or call [`Builder::backend`].
//! A wheel inside the process cannot be shared, does not survive the process, and has no monitors.
//! Otherwise both behave the same.
//!
//! # Missing features
//!
//! This crate does not have deadlines on TCP connections or commands for io_uring. Use
//! libtimerwheel for these.

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
pub use table::{Answer, Table};
pub use time::{Deadline, Time};
pub use timer::{
    Add, Added, Entry, Event, Events, Get, Handle, Move, MoveHandle, Moved, MovedHandle, Remove,
    RemoveHandle, Removed, RemovedHandle, Was,
};
pub use wheel::{Backend, Builder, Clock, Monitor, Stats, Wheel};
