// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A wheel in tokio's event loop

use crate::error::Error;
use crate::timer::{Event, Events};
use crate::wheel::{Turn, Wheel};
use futures_core::Stream;
use std::io;
use std::os::unix::io::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;

/// The descriptor of a wheel, for tokio
struct Readable(Arc<Wheel>);

impl AsRawFd for Readable {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Converts an error of tokio. An error without an errno means that the runtime is gone:
/// `ECANCELED`.
pub(crate) fn failed(error: io::Error) -> Error {
    Error::from_errno(error.raw_os_error().unwrap_or(125))
}

/// A wheel in tokio's event loop.
///
/// It is a [`Stream`] of events, and [`wait`](AsyncWheel::wait) takes many events at once. Arm and
/// remove timers through the [`Wheel`], which never blocks.
///
/// If the wheel has an event ring, this is its only reader. As long as it exists, [`Wheel::take`],
/// [`Wheel::wait`] and [`Ring::new`](crate::Ring::new) fail with [`Error::Busy`], and only one task
/// at a time may wait.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use timerwheel::{Add, AsyncWheel, Events, Wheel};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let wheel = Arc::new(Wheel::open()?);
/// let fired = AsyncWheel::new(wheel.clone())?;
/// wheel.add_one(Add::new(1, 100, Duration::from_millis(10)))?;
/// let mut events = Events::with_capacity(64);
/// fired.wait(&mut events).await?;
/// assert_eq!(events.get(0).unwrap().value(), 100);
/// # Ok(())
/// # }
/// ```
pub struct AsyncWheel {
    fd: AsyncFd<Readable>,
    /// Of a wheel with a ring
    turn: Option<Turn<Arc<Wheel>>>,
    /// A task is in `wait`, and has the turn.
    waits: Mutex<bool>,
    events: Events,
    /// How many of `events` the stream has returned
    returned: usize,
}

impl AsyncWheel {
    /// Registers a wheel with the event loop. Call it within a tokio runtime with I/O enabled;
    /// otherwise it panics.
    ///
    /// # Errors
    ///
    /// As for `epoll_ctl`; `EBUSY`: the wheel has an event ring, and it already has a reader or a
    /// thread is in [`Wheel::wait`].
    pub fn new(wheel: Arc<Wheel>) -> io::Result<AsyncWheel> {
        let turn = if wheel.has_ring() { Some(Turn::sole(wheel.clone())?) } else { None };
        AsyncWheel::with_turn(wheel, turn)
    }

    /// Creates a wheel that only waits. Its user is the only reader that takes events.
    pub(crate) fn for_queue(wheel: Arc<Wheel>) -> io::Result<AsyncWheel> {
        AsyncWheel::with_turn(wheel, None)
    }

    fn with_turn(wheel: Arc<Wheel>, turn: Option<Turn<Arc<Wheel>>>) -> io::Result<AsyncWheel> {
        Ok(AsyncWheel {
            fd: AsyncFd::with_interest(Readable(wheel), Interest::READABLE)?,
            turn,
            waits: Mutex::new(false),
            events: Events::with_capacity(256),
            returned: 0,
        })
    }

    /// Returns the wheel.
    pub fn wheel(&self) -> &Arc<Wheel> {
        &self.fd.get_ref().0
    }

    /// Waits until there are events, takes as many as fit, and returns their number. No event is
    /// lost if the future is dropped.
    ///
    /// Several tasks may wait, unless the wheel has an event ring. A task that gets as many events
    /// as fit must wait again, because the other tasks are not woken for the remaining events.
    ///
    /// # Errors
    ///
    /// As for [`Wheel::take`]; [`Error::Busy`]: the wheel has an event ring, and another task
    /// waits; `ECANCELED`: the runtime with which the wheel was registered is gone.
    pub async fn wait(&self, events: &mut Events) -> Result<usize, Error> {
        let _waiter = match &self.turn {
            Some(_) => Some(Waiter::new(&self.waits)?),
            None => None,
        };
        loop {
            // Only after it has found none, the descriptor becomes readable for the next one.
            let n = self.wheel().take_in_turn(events)?;
            if n > 0 {
                return Ok(n);
            }
            match self.fd.readable().await {
                Ok(mut ready) => ready.clear_ready(),
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Waits until the descriptor may be readable. Then take events and wait again.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self.fd.poll_read_ready(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(mut ready)) => {
                ready.clear_ready();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(failed(error))),
        }
    }
}

/// The turn of the one task that may wait. Dropping it ends the turn
struct Waiter<'a>(&'a Mutex<bool>);

impl Waiter<'_> {
    fn new(waits: &Mutex<bool>) -> Result<Waiter<'_>, Error> {
        if std::mem::replace(&mut *waiting(waits), true) {
            return Err(Error::Busy);
        }
        Ok(Waiter(waits))
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        *waiting(self.0) = false;
    }
}

/// A panic cannot leave a wrong value.
fn waiting(waits: &Mutex<bool>) -> MutexGuard<'_, bool> {
    waits.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Stream for AsyncWheel {
    type Item = Result<Event, Error>;

    /// Does not end.
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(event) = this.events.get(this.returned) {
                this.returned += 1;
                return Poll::Ready(Some(Ok(event)));
            }
            this.returned = 0;
            let found = this.fd.get_ref().0.take_in_turn(&mut this.events);
            match found {
                Ok(0) => match this.poll_readable(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(())) => (),
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                },
                Ok(_) => (),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}
