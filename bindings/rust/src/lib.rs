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
//! # The loop
//!
//! A program that was stopped for longer than a timeout finds messages that arrived in time, and
//! also events of the timers that these messages would have restarted. This loop closes no live
//! connection:
//!
//! ```
//! use std::collections::{HashMap, VecDeque};
//! use std::sync::Arc;
//! use std::time::Duration;
//! use timerwheel::{Add, Clock, Error, Events, Queue, Time, Wheel};
//!
//! /// A connection; a queue stands for its socket.
//! struct Conn {
//!     messages: VecDeque<&'static str>,
//!     deadline: Time,
//! }
//!
//! /// Reads without blocking, and restarts the timer for each message.
//! fn receive(key: u64, conn: &mut Conn, queue: &mut Queue) -> Result<(), Error> {
//!     while conn.messages.pop_front().is_some() {
//!         // Read the clock after the message, and remember the absolute deadline.
//!         conn.deadline = queue.wheel().now() + Duration::from_secs(60);
//!         queue.add(Add::new(key, 0, conn.deadline))?;
//!     }
//!     Ok(())
//! }
//!
//! let wheel = Arc::new(Wheel::builder().clock(Clock::Manual).open()?);
//! let mut queue = Queue::new(wheel.clone(), 0)?;
//! let mut events = Events::with_capacity(64);
//! let hello = Conn { messages: VecDeque::from(["hello"]), deadline: Time::MAX };
//! let mut conns = HashMap::from([(1, hello)]);
//! while !conns.is_empty() {
//!     for (&key, conn) in &mut conns {
//!         receive(key, conn, &mut queue)?;
//!     }
//!     loop {
//!         // A restart withdraws an event that was not taken.
//!         queue.flush()?;
//!         if wheel.take(&mut events)? == 0 {
//!             break;
//!         }
//!         for event in &events {
//!             if let Some(conn) = conns.get_mut(&event.key()) {
//!                 receive(event.key(), conn, &mut queue)?;
//!                 // An event with an earlier deadline belongs to an earlier arming.
//!                 if event.deadline() >= conn.deadline {
//!                     conns.remove(&event.key());
//!                 }
//!             }
//!         }
//!     }
//!     // This stands for a wait for the connections and the wheel.
//!     wheel.advance(Duration::from_secs(40))?;
//! }
//! # Ok::<(), timerwheel::Error>(())
//! ```
//!
//! * Flush before each take, because handling an event can restart timers, and their operations
//!   must not wait in the queue while the program waits.
//! * Receive at each event, because the message can have arrived since the last turn.
//! * Compare the deadlines afterwards, because the event can belong to an earlier arming.
//! * Restart timers with [`Add`]. A [`Move`] fails with [`Error::NotFound`] after the event was taken,
//!   unless the timer is resident.
//! * Wait only after a take has returned 0. [`Wheel::wait`] does this.
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
