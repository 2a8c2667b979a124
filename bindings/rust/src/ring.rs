// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The event ring: events in mapped memory

use crate::error::Error;
use crate::sys;
use crate::timer::{Event, Events};
use crate::wheel::{sleep, Turn, Wheel};
use std::os::raw::c_int;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The words of an event
const WORDS: usize = std::mem::size_of::<sys::Event>() / 8;

/// The mapped memory.
///
/// Every process that has the wheel can write to it at any time. So this crate reads its head and
/// its events only with atomic operations, uses the length and the event size that the kernel has
/// reported, and reduces positions to the length. Invalid contents can only result in wrong events.
struct Mapped {
    head: NonNull<u8>,
    bytes: usize,
    /// Its length, a power of two
    events: u32,
    event_size: u32,
    /// Events up to here were taken.
    taken: u32,
    /// Events up to here may be taken.
    tail: u32,
}

// SAFETY: the memory is accessed by atomic operations only, and mapped until this is dropped.
unsafe impl Send for Mapped {}

impl Mapped {
    fn new(wheel: &Wheel) -> Result<Mapped, Error> {
        let (events, event_size) = wheel.ring_settings();
        Mapped::map(wheel.as_raw_fd(), sys::MAP_SHARED, sys::MMAP_RING, events, event_size)
    }

    fn map(fd: RawFd, flags: c_int, at: i64, events: u32, size: u32) -> Result<Mapped, Error> {
        if !events.is_power_of_two() || size % 8 != 0 || (size as usize) < WORDS * 8 {
            return Err(Error::Protocol);
        }
        let bytes = sys::RING_EVENTS + events as usize * size as usize;
        // SAFETY: this maps memory where there is none.
        let head =
            unsafe { sys::mmap(std::ptr::null_mut(), bytes, sys::PROT_READ_WRITE, flags, fd, at) };
        if head == sys::MAP_FAILED {
            let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
            return Err(Error::from_errno(errno));
        }
        // SAFETY: a mapping is never at address 0.
        let head = unsafe { NonNull::new_unchecked(head.cast()) };
        let mut ring = Mapped { head, bytes, events, event_size: size, taken: 0, tail: 0 };
        // Continue where the last reader stopped.
        ring.taken = ring.word(sys::RING_HEAD).load(Ordering::Relaxed);
        ring.tail = ring.taken;
        Ok(ring)
    }

    /// A word of the head, by its offset.
    fn word(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset + 4 <= sys::RING_EVENTS);
        // SAFETY: it is in the mapping, and aligned.
        unsafe { &*self.head.as_ptr().add(offset).cast() }
    }

    /// Gives the space of taken events back to the kernel.
    fn release(&self) {
        // Pairs with the kernel's acquire: it may overwrite them now; litmus c11/ring-room.
        self.word(sys::RING_HEAD).store(self.taken, Ordering::Release);
    }

    /// Looks for more events if all known events were taken.
    fn look(&mut self) -> bool {
        if self.taken != self.tail {
            return true;
        }
        self.release();
        // This thread is awake and needs no wake-ups.
        if self.word(sys::RING_WAITING).load(Ordering::Relaxed) != 0 {
            self.word(sys::RING_WAITING).store(0, Ordering::Relaxed);
        }
        // Pairs with the kernel's release: the events are there; litmus c11/ring-publish.
        let tail = self.word(sys::RING_TAIL).load(Ordering::Acquire);
        let found = tail.wrapping_sub(self.taken).min(self.events);
        self.tail = self.taken.wrapping_add(found);
        found != 0
    }

    fn next(&mut self) -> Option<Event> {
        if !self.look() {
            return None;
        }
        let place = (self.taken & (self.events - 1)) as usize;
        let mut words = [0; WORDS];
        // SAFETY: `place` is less than the length, so the event is in the mapping; sizes of events
        // are multiples of 8.
        let event: &[AtomicU64; WORDS] = unsafe {
            let offset = sys::RING_EVENTS + place * self.event_size as usize;
            &*self.head.as_ptr().add(offset).cast()
        };
        for (to, from) in words.iter_mut().zip(event) {
            *to = from.load(Ordering::Relaxed);
        }
        self.taken = self.taken.wrapping_add(1);
        // SAFETY: both are 48 bytes, and any bytes are an event.
        Some(Event(unsafe { std::mem::transmute::<[u64; WORDS], sys::Event>(words) }))
    }

    /// Before sleeping, requests a wake-up and checks the ring again. Returns true if there is
    /// nothing to do.
    fn may_sleep(&mut self, wheel: RawFd) -> Result<bool, Error> {
        self.release();
        self.word(sys::RING_WAITING).store(1, Ordering::Relaxed);
        // Pairs with the kernel's barrier: either it sees `waiting`, or we see its changes;
        // litmus c11/ring-waiting.
        fence(Ordering::SeqCst);
        if self.word(sys::RING_TAIL).load(Ordering::Relaxed) != self.taken {
            return Ok(false);
        }
        if self.word(sys::RING_FLAGS).load(Ordering::Relaxed) & sys::RING_OVERFLOW == 0 {
            return Ok(true);
        }
        // SAFETY: the call has no argument.
        if unsafe { sys::ioctl(wheel, sys::IOC_FLOW) } < 0 {
            let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
            return Err(Error::from_errno(errno));
        }
        Ok(false)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: no address in the mapping is used any more.
        unsafe { sys::munmap(self.head.as_ptr().cast(), self.bytes) };
    }
}

enum Source {
    Mapped(Mapped),
    /// The process back end has no ring. One event, so that none are left here in the end
    Process(Events),
}

/// The reader of a wheel's event ring. It takes events from mapped memory, and makes a system call
/// only to sleep, or if the ring was full.
///
/// A wheel has at most one reader. As long as the reader exists, [`Wheel::take`] and
/// [`Wheel::wait`] fail with [`Error::Busy`]. It cannot be created while a thread is in
/// [`Wheel::wait`]. When it is dropped, the next reader gets the events that it has not returned.
/// In the process back end it works the same way, without mapped memory.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use timerwheel::{Add, Ring, Wheel};
///
/// let wheel = Arc::new(Wheel::builder().ring(1024).open()?);
/// let mut ring = Ring::new(wheel.clone())?;
/// wheel.add_one(Add::new(1, 0, Duration::from_millis(10)))?;
/// let event = ring.wait(None)?.unwrap();
/// assert_eq!(event.key(), 1);
/// assert!(ring.next().is_none());
/// # Ok::<(), timerwheel::Error>(())
/// ```
pub struct Ring {
    source: Source,
    /// Behind `source`: that is dropped first.
    turn: Turn<Arc<Wheel>>,
}

impl Ring {
    /// Creates the reader of a wheel that was opened with [`Builder::ring`](crate::Builder::ring).
    ///
    /// Errors: [`Error::Invalid`]: the wheel has no ring; [`Error::Busy`]: the wheel already has a
    /// reader, or a thread is in [`Wheel::wait`]; [`Error::NoMemory`], [`Error::AccessDenied`].
    pub fn new(wheel: Arc<Wheel>) -> Result<Ring, Error> {
        if !wheel.has_ring() {
            return Err(Error::Invalid);
        }
        let turn = Turn::sole(wheel)?;
        let source = if turn.0.ring_settings().0 == 0 {
            Source::Process(Events::with_capacity(1))
        } else {
            Source::Mapped(Mapped::new(&turn.0)?)
        };
        Ok(Ring { source, turn })
    }

    /// Returns the wheel.
    pub fn wheel(&self) -> &Arc<Wheel> {
        &self.turn.0
    }

    /// Returns the next event, or `None` if no events are waiting. It does not block. After it has
    /// returned all events that it found, it gives their space in the ring back to the kernel.
    ///
    /// In the process back end it also returns `None` on an error of the library (no memory).
    // Not an iterator: it goes on after None.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Option<Event> {
        match &mut self.source {
            Source::Mapped(mapped) => mapped.next(),
            Source::Process(events) => {
                self.turn.0.take_in_turn(events).ok()?;
                events.get(0)
            }
        }
    }

    /// Call this before you wait for the descriptor by other means, such as epoll. If it returns
    /// true, wait. If it returns false, call [`next`](Ring::next) again.
    ///
    /// Without this call the kernel does not wake the reader.
    ///
    /// Errors: [`Error::NoMemory`], [`Error::Quota`].
    pub fn may_sleep(&mut self) -> Result<bool, Error> {
        match &mut self.source {
            Source::Mapped(mapped) => mapped.may_sleep(self.turn.0.as_raw_fd()),
            // next() has found none, and from then on the descriptor becomes readable.
            Source::Process(_) => Ok(true),
        }
    }

    /// Sleeps until there is an event, and returns it. Returns `None` if the timeout has passed.
    ///
    /// Errors: [`Error::Interrupted`]: a signal arrived; otherwise as for
    /// [`may_sleep`](Ring::may_sleep).
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Event>, Error> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            if let Some(event) = self.next() {
                return Ok(Some(event));
            }
            if self.may_sleep()? && !sleep(self.turn.0.as_fd(), end)? {
                return Ok(None);
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Before the next reader may begin: the turn ends after this.
        if let Source::Mapped(mapped) = &self.source {
            mapped.release();
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.turn.0.as_fd()
    }
}

/// A ring without a wheel: the tests are the kernel.
#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: u32 = 8;
    /// Larger than this crate knows
    const SIZE: u32 = 64;

    fn ring() -> Mapped {
        const MAP_ANONYMOUS: c_int = 0x20;
        let flags = sys::MAP_SHARED | MAP_ANONYMOUS;
        Mapped::map(-1, flags, 0, ROOM, SIZE).unwrap()
    }

    /// Writes an event with this key, and then the tail.
    fn push(ring: &Mapped, key: u64) {
        let tail = ring.word(sys::RING_TAIL).load(Ordering::Relaxed);
        let offset = sys::RING_EVENTS + (tail % ROOM * SIZE) as usize;
        for word in 0..u64::from(SIZE / 8) {
            // SAFETY: in the mapping, and aligned.
            let to: &AtomicU64 =
                unsafe { &*ring.head.as_ptr().add(offset + 8 * word as usize).cast() };
            to.store(key + 100 * word, Ordering::Relaxed);
        }
        // As the kernel does; litmus c11/ring-publish.
        ring.word(sys::RING_TAIL).store(tail.wrapping_add(1), Ordering::Release);
    }

    fn get(ring: &Mapped, offset: usize) -> u32 {
        ring.word(offset).load(Ordering::Relaxed)
    }

    #[test]
    fn events_in_order() {
        let mut ring = ring();
        let mut next = 0;
        for n in (0..=ROOM as u64).cycle().take(100) {
            for key in next..next + n {
                push(&ring, key);
            }
            for key in next..next + n {
                let event = ring.next().unwrap();
                assert_eq!(event.key(), key);
                assert_eq!((event.value(), event.deadline().as_nanos()), (key + 100, key + 200));
                assert_eq!((event.0.fired, event.overruns()), (key + 300, key + 400));
                assert_eq!(u64::from(event.0.flags), key + 500);
            }
            next += n;
            assert!(ring.next().is_none());
            assert_eq!(u64::from(get(&ring, sys::RING_HEAD)), next);
        }
    }

    #[test]
    fn room_is_given_back_after_the_events_were_copied() {
        let mut ring = ring();
        push(&ring, 0);
        push(&ring, 1);
        assert!(ring.next().is_some() && ring.next().is_some());
        assert_eq!(get(&ring, sys::RING_HEAD), 0);
        assert!(ring.may_sleep(-1).unwrap());
        assert_eq!(get(&ring, sys::RING_HEAD), 2);
    }

    #[test]
    fn sleeps_only_if_there_is_nothing() {
        let mut ring = ring();
        assert!(ring.next().is_none());
        assert!(ring.may_sleep(-1).unwrap());
        assert_eq!(get(&ring, sys::RING_WAITING), 1);
        push(&ring, 0);
        assert!(!ring.may_sleep(-1).unwrap());
        assert!(ring.next().is_some());
        assert_eq!(get(&ring, sys::RING_WAITING), 0);
        // Events wait in the kernel: it is asked for them.
        ring.word(sys::RING_FLAGS).store(sys::RING_OVERFLOW, Ordering::Relaxed);
        assert_eq!(ring.may_sleep(-1), Err(Error::BadDescriptor));
    }

    #[test]
    fn nonsense_makes_wrong_events_only() {
        let mut ring = ring();
        for tail in [1000, u32::MAX, ROOM + 1, 1 << 31] {
            let from = ring.taken;
            ring.word(sys::RING_TAIL).store(from.wrapping_add(tail), Ordering::Relaxed);
            ring.word(sys::RING_HEAD).store(77, Ordering::Relaxed);
            for _ in 0..ROOM {
                assert!(ring.next().is_some());
            }
            assert_eq!(ring.taken, ring.tail);
        }
    }

    #[test]
    fn settings_of_a_hostile_wheel() {
        for (events, size) in [(0, 48), (3, 48), (8, 40), (8, 50)] {
            let ring = Mapped::map(-1, sys::MAP_SHARED, 0, events, size);
            assert_eq!(ring.err(), Some(Error::Protocol));
        }
    }
}
