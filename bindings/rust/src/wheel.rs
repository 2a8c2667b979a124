// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Wheels, and how they are opened

use crate::error::{check, check_int, Error};
use crate::sys;
use crate::table::{Mapping, Table};
use crate::time::{nanos, Time};
use crate::timer::*;
use std::ffi::CString;
use std::fmt;
use std::ops::Deref;
use std::os::raw::{c_int, c_long};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The back end of a wheel
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The back end that the environment variable `TIMERWHEEL_BACKEND` names, `device` or
    /// `process`. Without the variable: the device, or this process if there is no device.
    #[default]
    Auto,
    /// The kernel module, `/dev/timerwheel`. The wheel can be shared with other processes, and
    /// survives this process as long as another process has the descriptor.
    Device,
    /// This process: a wheel of libtimerwheel, which uses a timerfd. It cannot be shared. A child
    /// created by fork must not use it.
    Process,
}

/// The clock of a wheel
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`, which stops during suspend
    #[default]
    Monotonic,
    /// `CLOCK_BOOTTIME`, which continues during suspend
    Boottime,
    /// `CLOCK_REALTIME`, which can be set
    Realtime,
    /// A clock for tests, which starts at 0 and moves only when [`Wheel::advance`] is called
    Manual,
}

impl Clock {
    fn number(self) -> u32 {
        match self {
            Clock::Monotonic => sys::CLOCK_MONOTONIC,
            Clock::Boottime => sys::CLOCK_BOOTTIME,
            Clock::Realtime => sys::CLOCK_REALTIME,
            Clock::Manual => sys::CLOCK_MANUAL,
        }
    }
}

/// The settings of a new wheel. Settings that you do not change have the library's defaults.
///
/// ```
/// use timerwheel::{Clock, Wheel};
///
/// let wheel = Wheel::builder().clock(Clock::Boottime).capacity(100_000).table().open()?;
/// assert_eq!(wheel.capacity(), 100_000);
/// # Ok::<(), timerwheel::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Builder {
    backend: Backend,
    device: Option<PathBuf>,
    clock: Clock,
    capacity: u32,
    tick: Duration,
    slots: u32,
    wake: (u32, Duration),
    slack: Duration,
    ring: u32,
    table: bool,
    clock_set: bool,
    alarm: bool,
    resident: bool,
}

impl Builder {
    /// Sets the back end. Default: [`Backend::Auto`].
    pub fn backend(&mut self, backend: Backend) -> &mut Builder {
        self.backend = backend;
        self
    }

    /// Sets the path of the device. Default: the environment variable `TIMERWHEEL_DEVICE`, or
    /// `/dev/timerwheel` if that is not set.
    pub fn device(&mut self, path: impl Into<PathBuf>) -> &mut Builder {
        self.device = Some(path.into());
        self
    }

    /// Sets the clock. Default: [`Clock::Monotonic`].
    pub fn clock(&mut self, clock: Clock) -> &mut Builder {
        self.clock = clock;
        self
    }

    /// Sets the maximum number of timers, up to 134,217,728. Default: 4,194,304. Memory is
    /// allocated as timers are added.
    pub fn capacity(&mut self, timers: u32) -> &mut Builder {
        self.capacity = timers;
        self
    }

    /// Sets the length of a tick: 1 us to 1 h, or 1 ns to 1 h with [`Clock::Manual`]. Default: 1
    /// ms.
    pub fn tick(&mut self, tick: Duration) -> &mut Builder {
        self.tick = tick;
        self
    }

    /// Sets the number of slots of each level: 8 to 4096, rounded up to a power of two. Default:
    /// 256.
    pub fn slots(&mut self, slots: u32) -> &mut Builder {
        self.slots = slots;
        self
    }

    /// Wakes a reader only when this many events wait, or when this time has passed since the first
    /// of them. Default: every event wakes a reader at once.
    pub fn wake(&mut self, events: u32, within: Duration) -> &mut Builder {
        self.wake = (events, within);
        self
    }

    /// Sets how much later timers may fire to share a wake-up, unless [`Add::slack`] sets another
    /// slack. Default: 0.
    pub fn slack(&mut self, slack: Duration) -> &mut Builder {
        self.slack = slack;
        self
    }

    /// Delivers events in mapped memory, in a ring of this many events, up to 65,536. Read it with
    /// a [`Ring`](crate::Ring).
    pub fn ring(&mut self, events: u32) -> &mut Builder {
        self.ring = events;
        self
    }

    /// Creates the deadline table, for [`Wheel::table`]: timers are armed, refreshed and cancelled in
    /// memory, and have no periods.
    pub fn table(&mut self) -> &mut Builder {
        self.table = true;
        self
    }

    /// Makes the timers resident: they continue to exist after they have fired. This includes
    /// [`Builder::table`].
    pub fn resident(&mut self) -> &mut Builder {
        self.resident = true;
        self
    }

    /// Delivers an event when [`Clock::Realtime`] is set. The process back end does not support
    /// this.
    pub fn clock_set(&mut self) -> &mut Builder {
        self.clock_set = true;
        self
    }

    /// Lets timers wake the machine from suspend. The process back end does not support this.
    pub fn alarm(&mut self) -> &mut Builder {
        self.alarm = true;
        self
    }

    /// Creates a wheel.
    ///
    /// Errors: [`Error::Invalid`]: a setting is outside its limits; [`Error::Unsupported`]: the
    /// back end does not support a setting; [`Error::NotFound`], [`Error::NoDriver`],
    /// [`Error::NoDevice`]: no device; [`Error::AccessDenied`], [`Error::NotPermitted`];
    /// [`Error::NotAWheel`];
    /// [`Error::Quota`], [`Error::NoMemory`], [`Error::TooManyDescriptors`],
    /// [`Error::TooManyFiles`].
    pub fn open(&self) -> Result<Wheel, Error> {
        let device = match &self.device {
            Some(path) => {
                let bytes = path.clone().into_os_string().into_vec();
                Some(CString::new(bytes).map_err(|_| Error::Invalid)?)
            }
            None => None,
        };
        let config = sys::Config {
            backend: match self.backend {
                Backend::Auto => sys::BACKEND_AUTO,
                Backend::Device => sys::BACKEND_DEVICE,
                Backend::Process => sys::BACKEND_PROCESS,
            },
            device: device.as_ref().map_or(std::ptr::null(), |path| path.as_ptr()),
            clock: self.clock.number(),
            capacity: self.capacity,
            tick: nanos(self.tick),
            slots: self.slots,
            wake_events: self.wake.0,
            wake_ns: nanos(self.wake.1),
            slack: nanos(self.slack),
            ring: self.ring,
            table: self.table,
            clock_set: self.clock_set,
            alarm: self.alarm,
            resident: self.resident,
        };
        let mut raw = std::ptr::null_mut();
        // SAFETY: both addresses are valid, and so is the path in there.
        check_int(unsafe { sys::timerwheel_open(&mut raw, &config) })?;
        // SAFETY: the library has created it.
        Ok(unsafe { Wheel::from_raw(raw, self.ring != 0) })
    }
}

/// A wheel: timers, each named by a key, and the events of timers that have fired.
///
/// Any thread may use it. Dropping it closes the wheel. Its timers then end, unless another process
/// has the descriptor.
///
/// Calls on slices process the elements in order, and each element has its own result. They return
/// the processed elements with their results. If an error stops a call, it returns fewer elements,
/// and the next call on the remaining elements returns the error.
///
/// [`AsFd`] gives the descriptor to wait for with poll, epoll or io_uring. It becomes readable when
/// there are events, after [`take`](Wheel::take) has returned 0. Do not read from it.
pub struct Wheel {
    raw: NonNull<sys::Wheel>,
    table: Option<Mapping>,
    info: sys::Info,
    /// It was opened with an event ring, or has one: only one thread may take events.
    ring: bool,
    /// The reader that has the turn to take events of a wheel with a ring. It is locked during
    /// `take`.
    reader: Mutex<Reader>,
    /// The turn of a `wait` has ended.
    ended: Condvar,
}

/// The reader that takes events from a ring, now and after a sleep. The kernel wakes only the last
/// reader that has found no events, so no other thread may look for events while a reader sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Nobody,
    /// A thread in `wait`
    Wait,
    /// A Ring or an AsyncWheel, as long as it exists
    Sole,
}

/// The turn to take events from a ring. Dropping it ends the turn.
pub(crate) struct Turn<W: Deref<Target = Wheel>>(pub(crate) W);

impl<W: Deref<Target = Wheel>> Turn<W> {
    /// The turn of a reader that is the only reader as long as it exists.
    pub(crate) fn sole(wheel: W) -> Result<Turn<W>, Error> {
        let mut reader = wheel.reader();
        if *reader != Reader::Nobody {
            return Err(Error::Busy);
        }
        *reader = Reader::Sole;
        drop(reader);
        Ok(Turn(wheel))
    }

    /// The turn of a thread in `wait`, after the turn of another thread has ended. `None`: that did
    /// not happen before `end`.
    fn wait(wheel: W, end: Option<Instant>) -> Result<Option<Turn<W>>, Error> {
        let mut reader = wheel.reader();
        loop {
            match *reader {
                Reader::Nobody => break,
                Reader::Wait => (),
                Reader::Sole => return Err(Error::Busy),
            }
            reader = match end.map(|end| end.saturating_duration_since(Instant::now())) {
                None => wheel.ended.wait(reader).unwrap_or_else(|poisoned| poisoned.into_inner()),
                Some(left) if left.is_zero() => return Ok(None),
                Some(left) => {
                    let woken = wheel.ended.wait_timeout(reader, left);
                    woken.unwrap_or_else(|poisoned| poisoned.into_inner()).0
                }
            };
        }
        *reader = Reader::Wait;
        drop(reader);
        Ok(Some(Turn(wheel)))
    }
}

impl<W: Deref<Target = Wheel>> Drop for Turn<W> {
    fn drop(&mut self) {
        *self.0.reader() = Reader::Nobody;
        // All of them: the next one may be a Ring, and then they are to fail.
        self.0.ended.notify_all();
    }
}

// SAFETY: several threads may call the library's functions on a wheel, with two exceptions: taking
// events from a ring, for which there are turns, and close, which only drop calls. So each call
// here is safe as long as its arrays exist.
unsafe impl Send for Wheel {}
// SAFETY: the same.
unsafe impl Sync for Wheel {}

impl Wheel {
    /// Creates a wheel with the default settings.
    ///
    /// Errors: as for [`Builder::open`].
    pub fn open() -> Result<Wheel, Error> {
        Builder::default().open()
    }

    /// Returns default settings, from which [`Builder::open`] creates a wheel.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Uses a wheel that another process has created, through its descriptor. If `table` is true,
    /// maps its deadline table. Events continue where the last reader stopped.
    ///
    /// On error the function returns the descriptor together with the error: [`Error::NotAWheel`],
    /// [`Error::BadDescriptor`], [`Error::NoMemory`], [`Error::Protocol`], [`Error::Quota`],
    /// [`Error::OtherNamespace`].
    pub fn adopt(fd: OwnedFd, table: bool) -> Result<Wheel, (Error, OwnedFd)> {
        let mut raw = std::ptr::null_mut();
        let fd = fd.into_raw_fd();
        // SAFETY: the address is valid. The library owns the descriptor only if it succeeds.
        match check_int(unsafe { sys::timerwheel_adopt(&mut raw, fd, table) }) {
            // SAFETY: the library has created it.
            Ok(_) => Ok(unsafe { Wheel::from_raw(raw, false) }),
            // SAFETY: it was owned before.
            Err(error) => Err((error, unsafe { OwnedFd::from_raw_fd(fd) })),
        }
    }

    /// # Safety
    ///
    /// `raw` is a wheel of the library that no other value refers to.
    unsafe fn from_raw(raw: *mut sys::Wheel, ring: bool) -> Wheel {
        let mut info = sys::Info::default();
        let mut table = sys::Table { entries: std::ptr::null_mut(), bits: 0 };
        // SAFETY: the addresses are valid. Neither fails for a wheel that is open: it may have no
        // table. The table is a part of the wheel, and used no longer.
        let (raw, table) = unsafe {
            sys::timerwheel_info(raw, &mut info);
            sys::timerwheel_table(raw, &mut table);
            (NonNull::new_unchecked(raw), Mapping::new(&table, info.capacity))
        };
        let ring = ring || info.ring != 0;
        let reader = Mutex::new(Reader::Nobody);
        Wheel { raw, table, info, ring, reader, ended: Condvar::new() }
    }

    pub(crate) fn raw(&self) -> *mut sys::Wheel {
        self.raw.as_ptr()
    }

    pub(crate) fn mapping(&self) -> Option<&Mapping> {
        self.table.as_ref()
    }

    pub(crate) fn ring_settings(&self) -> (u32, u32) {
        (self.info.ring, self.info.event_size)
    }

    /// The wheel was opened with an event ring, whether or not its back end has rings.
    pub(crate) fn has_ring(&self) -> bool {
        self.ring
    }

    /// A panic cannot leave a wrong value.
    fn reader(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn is_resident(&self) -> bool {
        self.info.flags & sys::INFO_RESIDENT != 0
    }

    /// Entries of the table up to this handle's have memory.
    fn learn(&self, handle: Result<Handle, Error>) {
        if let (Some(table), Ok(handle)) = (&self.table, handle) {
            table.learn(handle.index);
        }
    }

    /// Returns the back end: [`Backend::Device`] or [`Backend::Process`].
    pub fn backend(&self) -> Backend {
        match unsafe { sys::timerwheel_backend(self.raw()) } {
            sys::BACKEND_DEVICE => Backend::Device,
            _ => Backend::Process,
        }
    }

    /// Returns the maximum number of timers.
    pub fn capacity(&self) -> u32 {
        self.info.capacity
    }

    /// Returns the length of a tick.
    pub fn tick(&self) -> Duration {
        Duration::from_nanos(self.info.tick)
    }

    /// Returns the clock.
    pub fn clock(&self) -> Clock {
        match self.info.clock {
            sys::CLOCK_BOOTTIME => Clock::Boottime,
            sys::CLOCK_REALTIME => Clock::Realtime,
            sys::CLOCK_MANUAL => Clock::Manual,
            _ => Clock::Monotonic,
        }
    }

    /// Returns the time of the wheel's clock.
    pub fn now(&self) -> Time {
        Time::from_nanos(unsafe { sys::timerwheel_now(self.raw()) })
    }

    /// Converts an [`Instant`] to a time of the wheel's clock. The result is never before the
    /// instant, and later by at most the duration of this call.
    ///
    /// Errors: [`Error::Invalid`]: the clock is not [`Clock::Monotonic`].
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use timerwheel::{Add, Wheel};
    ///
    /// let wheel = Wheel::open()?;
    /// let timeout = wheel.at(Instant::now() + Duration::from_secs(5))?;
    /// wheel.add_one(Add::new(1, 0, timeout))?;
    /// # Ok::<(), timerwheel::Error>(())
    /// ```
    pub fn at(&self, instant: Instant) -> Result<Time, Error> {
        if self.clock() != Clock::Monotonic {
            return Err(Error::Invalid);
        }
        // In this order: what passes in between makes the result later, not earlier.
        let before = Instant::now();
        let now = self.now();
        Ok(match instant.checked_duration_since(before) {
            Some(ahead) => now + ahead,
            None => Time::from_nanos(
                now.as_nanos().saturating_sub(nanos(before.duration_since(instant))),
            ),
        })
    }

    /// Returns the counters since the wheel was created.
    pub fn stats(&self) -> Stats {
        let mut stats = sys::Stats::default();
        // Does not fail for a wheel that is open.
        unsafe { sys::timerwheel_stats(self.raw(), &mut stats) };
        Stats {
            pending: stats.pending,
            due: stats.due,
            parked: stats.parked,
            armed: stats.armed,
            rearmed: stats.rearmed,
            moved: stats.moved,
            removed: stats.removed,
            replaced: stats.replaced,
            drained: stats.drained,
            delivered: stats.delivered,
            memory: stats.memory,
        }
    }

    /// Arms timers.
    ///
    /// Errors, if one occurred before the first element: [`Error::NoMemory`], [`Error::Quota`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use timerwheel::{Add, Wheel};
    ///
    /// let wheel = Wheel::open()?;
    /// let mut timers: Vec<Add> =
    ///     (0..1000).map(|key| Add::new(key, 0, Duration::from_secs(30))).collect();
    /// for added in wheel.add(&mut timers)? {
    ///     added.handle()?;
    /// }
    /// # Ok::<(), timerwheel::Error>(())
    /// ```
    pub fn add<'a>(&self, elems: &'a mut [Add]) -> Result<&'a [Added], Error> {
        let n = check(unsafe {
            sys::timerwheel_add(self.raw(), elems.as_mut_ptr().cast(), elems.len())
        })?;
        let done = Add::done(elems, n);
        if self.table.is_some() {
            done.iter().for_each(|added| self.learn(added.handle()));
        }
        Ok(done)
    }

    /// Arms one timer.
    ///
    /// Errors: as for [`add`](Wheel::add) and [`Added::was`].
    pub fn add_one(&self, elem: Add) -> Result<Handle, Error> {
        self.add(&mut [elem])?[0].handle()
    }

    /// Changes the deadlines of timers (MOVE).
    ///
    /// Errors: [`Error::NoMemory`].
    pub fn set<'a>(&self, elems: &'a mut [Move]) -> Result<&'a [Moved], Error> {
        let n = check(unsafe {
            sys::timerwheel_move(self.raw(), elems.as_mut_ptr().cast(), elems.len())
        })?;
        Ok(Move::done(elems, n))
    }

    /// Changes the deadline of one timer.
    ///
    /// Errors: as for [`set`](Wheel::set) and [`Moved::was`].
    pub fn set_one(&self, elem: Move) -> Result<Was, Error> {
        self.set(&mut [elem])?[0].was()
    }

    /// Removes timers.
    ///
    /// Errors: [`Error::NoMemory`].
    pub fn remove<'a>(&self, elems: &'a mut [Remove]) -> Result<&'a [Removed], Error> {
        let n = check(unsafe {
            sys::timerwheel_remove(self.raw(), elems.as_mut_ptr().cast(), elems.len())
        })?;
        Ok(Remove::done(elems, n))
    }

    /// Removes one timer.
    ///
    /// Errors: as for [`remove`](Wheel::remove) and [`Removed::was`].
    pub fn remove_one(&self, elem: Remove) -> Result<Removed, Error> {
        let removed = self.remove(&mut [elem])?[0];
        removed.was().map(|_| removed)
    }

    /// Changes the deadlines of timers by their handles. This is faster than [`set`](Wheel::set),
    /// because it does not look up keys.
    ///
    /// Errors: as for [`set`](Wheel::set); [`Error::NotAWheel`]: the module is too old for this
    /// call.
    pub fn set_handles<'a>(&self, elems: &'a mut [MoveHandle]) -> Result<&'a [MovedHandle], Error> {
        let n = check(unsafe {
            let first = elems.as_mut_ptr().cast();
            sys::timerwheel_move_handles(self.raw(), first, elems.len(), sys::ABS)
        })?;
        Ok(MoveHandle::done(elems, n))
    }

    /// Removes timers by their handles.
    ///
    /// Errors: as for [`set_handles`](Wheel::set_handles).
    pub fn remove_handles<'a>(
        &self,
        elems: &'a mut [RemoveHandle],
    ) -> Result<&'a [RemovedHandle], Error> {
        let n = check(unsafe {
            sys::timerwheel_remove_handles(self.raw(), elems.as_mut_ptr().cast(), elems.len())
        })?;
        Ok(RemoveHandle::done(elems, n))
    }

    /// Describes timers.
    ///
    /// Errors: [`Error::NoMemory`].
    pub fn get<'a>(&self, elems: &'a mut [Get]) -> Result<&'a [Entry], Error> {
        let n = check(unsafe {
            sys::timerwheel_get(self.raw(), elems.as_mut_ptr().cast(), elems.len())
        })?;
        let done = Get::done(elems, n);
        done.iter().for_each(|entry| self.learn(entry.handle()));
        Ok(done)
    }

    /// Describes one timer.
    ///
    /// Errors: as for [`get`](Wheel::get) and [`Entry::was`].
    pub fn get_one(&self, key: u64) -> Result<Entry, Error> {
        let entry = self.get(&mut [Get::new(key)])?[0];
        entry.was().map(|_| entry)
    }

    /// Appends up to `count` entries that `call` stores.
    fn entries<F>(&self, to: &mut Vec<Entry>, count: usize, call: F) -> Result<usize, Error>
    where
        F: FnOnce(*mut sys::Entry) -> c_long,
    {
        to.reserve(count);
        let old = to.len();
        let n = check(call(to.spare_capacity_mut().as_mut_ptr().cast()))?;
        assert!(n <= count);
        // SAFETY: so many have been stored, in memory that was reserved.
        unsafe { to.set_len(old + n) };
        to[old..].iter().for_each(|entry| self.learn(entry.handle()));
        Ok(n)
    }

    /// Describes all timers, in no particular order. A timer that exists during the whole call is
    /// returned exactly once.
    ///
    /// Errors: [`Error::NoMemory`].
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        const COUNT: usize = 4096;
        let mut all = Vec::new();
        let mut cursor = 0;
        loop {
            let n = self.entries(&mut all, COUNT, |first| unsafe {
                sys::timerwheel_list(self.raw(), first, COUNT, &mut cursor)
            })?;
            if n == 0 {
                return Ok(all);
            }
        }
    }

    /// Removes up to `count` timers, in no particular order, and describes them. If it returns no
    /// timers, none are left.
    ///
    /// Errors: [`Error::NoMemory`].
    pub fn drain(&self, count: usize) -> Result<Vec<Entry>, Error> {
        self.drain_with(count, 0)
    }

    /// Removes timers as [`drain`](Wheel::drain) does. From now on the wheel accepts no new timers
    /// ([`Error::Closed`]).
    ///
    /// Errors: as for [`drain`](Wheel::drain).
    pub fn drain_and_close(&self, count: usize) -> Result<Vec<Entry>, Error> {
        self.drain_with(count, sys::DRAIN_CLOSE)
    }

    fn drain_with(&self, count: usize, flags: u32) -> Result<Vec<Entry>, Error> {
        // At most so many in a call, as memory for them is reserved.
        let count = count.min(sys::BATCH_MAX);
        let mut all = Vec::new();
        self.entries(&mut all, count, |first| unsafe {
            sys::timerwheel_drain(self.raw(), first, count, flags)
        })?;
        Ok(all)
    }

    /// Advances [`Clock::Manual`]. Timers fire in the order of their ticks. Returns the number of
    /// timers that fell due.
    ///
    /// Errors: [`Error::Invalid`]: the wheel has another clock; [`Error::Quota`],
    /// [`Error::NoMemory`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use timerwheel::{Add, Clock, Wheel};
    ///
    /// let wheel = Wheel::builder().clock(Clock::Manual).open()?;
    /// wheel.add_one(Add::new(1, 0, Duration::from_secs(3600)))?;
    /// assert_eq!(wheel.advance(Duration::from_secs(3599))?, 0);
    /// assert_eq!(wheel.advance(Duration::from_secs(1))?, 1);
    /// # Ok::<(), timerwheel::Error>(())
    /// ```
    pub fn advance(&self, by: Duration) -> Result<usize, Error> {
        check(unsafe { sys::timerwheel_advance(self.raw(), nanos(by), 0) })
    }

    /// Takes waiting events, as many as fit, and returns their number. It does not block. Take
    /// events until it returns 0, then wait for the descriptor.
    ///
    /// With an event ring the kernel wakes only the last reader that has found no events. So this
    /// function returns 0 while another thread is in [`wait`](Wheel::wait); that thread will take
    /// the events. If a thread waits for the descriptor by other means, no other thread may take
    /// events.
    ///
    /// Errors: [`Error::Busy`]: a [`Ring`](crate::Ring), or an `AsyncWheel` of a wheel with an
    /// event ring, takes the events; [`Error::NoMemory`]; with an event ring also [`Error::Quota`].
    pub fn take(&self, events: &mut Events) -> Result<usize, Error> {
        if !self.ring {
            return self.take_in_turn(events);
        }
        let reader = self.reader();
        match *reader {
            Reader::Nobody => self.take_in_turn(events),
            Reader::Wait => events.fill(|_, _| Ok(0)),
            Reader::Sole => Err(Error::Busy),
        }
    }

    /// Takes events. On a wheel with a ring the caller has the turn.
    pub(crate) fn take_in_turn(&self, events: &mut Events) -> Result<usize, Error> {
        events.fill(|first, count| check(unsafe { sys::timerwheel_take(self.raw(), first, count) }))
    }

    /// Sleeps until there are events, and takes them. Returns 0 if the timeout has passed. With
    /// `None` there is no timeout.
    ///
    /// Several threads may wait. With an event ring they wait one after another, and a signal
    /// interrupts only the thread whose turn it is.
    ///
    /// Errors: [`Error::Interrupted`]: a signal arrived; otherwise as for [`take`](Wheel::take).
    pub fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> Result<usize, Error> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let _turn = match self.ring {
            false => None,
            true => match Turn::wait(self, end)? {
                None => return events.fill(|_, _| Ok(0)),
                turn => turn,
            },
        };
        loop {
            let n = self.take_in_turn(events)?;
            if n > 0 || !sleep(self.as_fd(), end)? {
                return Ok(n);
            }
        }
    }

    /// Returns the deadline table, if the wheel was opened with [`Builder::table`] or
    /// [`Builder::resident`].
    pub fn table(&self) -> Option<Table<'_>> {
        self.table.as_ref().map(Table)
    }

    /// Returns a descriptor to pass on by inheritance, `SCM_RIGHTS`, or to a service manager.
    ///
    /// Errors: [`Error::Unsupported`]: the process back end.
    pub fn share(&self) -> Result<BorrowedFd<'_>, Error> {
        let fd = check_int(unsafe { sys::timerwheel_share(self.raw()) })?;
        // SAFETY: it is open until the wheel is closed.
        Ok(unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Opens a descriptor from which a copy of each event can be read. At most `events` events wait
    /// to be read; 0: 1024.
    ///
    /// Errors: [`Error::Unsupported`]: the process back end; [`Error::Invalid`], [`Error::Full`],
    /// [`Error::NoMemory`], [`Error::Quota`], [`Error::TooManyDescriptors`]; [`Error::Protocol`]: a
    /// newer program has set up the wheel for larger events.
    pub fn monitor(&self, events: u32) -> Result<Monitor, Error> {
        if self.info.event_size as usize != std::mem::size_of::<sys::Event>() {
            return Err(Error::Protocol);
        }
        let flags = sys::MONITOR_CLOEXEC | sys::MONITOR_NONBLOCK;
        let fd = check_int(unsafe { sys::timerwheel_monitor(self.raw(), events, flags) })?;
        // SAFETY: it is new, and ours.
        Ok(Monitor(unsafe { std::fs::File::from_raw_fd(fd) }))
    }
}

impl Drop for Wheel {
    fn drop(&mut self) {
        // SAFETY: this is the last use of it; what has its address borrows it or owns a part.
        unsafe { sys::timerwheel_close(self.raw()) };
    }
}

impl AsRawFd for Wheel {
    fn as_raw_fd(&self) -> RawFd {
        unsafe { sys::timerwheel_fd(self.raw()) }
    }
}

impl AsFd for Wheel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: it is open until the wheel is closed.
        unsafe { BorrowedFd::borrow_raw(self.as_raw_fd()) }
    }
}

impl fmt::Debug for Wheel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("backend", &self.backend())
            .field("clock", &self.clock())
            .field("fd", &self.as_raw_fd())
            .finish_non_exhaustive()
    }
}

/// Counters of a wheel. While no operation is in progress on the wheel, armed + rearmed = delivered
/// + removed + replaced + drained + pending + due + parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Timers that are pending now
    pub pending: u64,
    /// Timers that are due now
    pub due: u64,
    /// Resident timers that are neither pending nor due
    pub parked: u64,
    /// Successful ADDs
    pub armed: u64,
    /// Timers that stayed after their delivery
    pub rearmed: u64,
    /// Successful MOVEs
    pub moved: u64,
    /// Successful REMOVEs
    pub removed: u64,
    /// ADDs that replaced a timer
    pub replaced: u64,
    /// Timers that were drained
    pub drained: u64,
    /// Events that were delivered
    pub delivered: u64,
    /// Bytes that the wheel occupies
    pub memory: u64,
}

/// A copy of each event of a wheel, from [`Wheel::monitor`]. The wheel does not wait for its
/// monitors. An event with [`Event::is_missed`] reports lost events.
#[derive(Debug)]
pub struct Monitor(std::fs::File);

impl Monitor {
    /// Takes waiting events without blocking. Returns `None` if the wheel was closed and no events
    /// remain.
    ///
    /// Errors: [`Error::NoMemory`].
    pub fn take(&self, events: &mut Events) -> Result<Option<usize>, Error> {
        use std::io::{ErrorKind, Read};
        let mut end = false;
        let n = events.fill(|first, count| {
            let size = std::mem::size_of::<sys::Event>();
            // SAFETY: the memory is there. It is zeroed, so that it is initialized.
            let bytes = unsafe {
                std::ptr::write_bytes(first, 0, count);
                std::slice::from_raw_parts_mut(first.cast::<u8>(), count * size)
            };
            loop {
                match (&self.0).read(bytes) {
                    Ok(n) => {
                        end = n == 0;
                        return Ok(n / size);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
                    Err(error) if error.kind() == ErrorKind::Interrupted => (),
                    Err(error) => return Err(Error::from_errno(error.raw_os_error().unwrap_or(0))),
                }
            }
        })?;
        Ok(if end { None } else { Some(n) })
    }
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sleeps until the descriptor is readable and returns true, or until `end` and returns false.
/// `None` means no end.
pub(crate) fn sleep(fd: BorrowedFd<'_>, end: Option<Instant>) -> Result<bool, Error> {
    let timeout = match end {
        None => -1,
        Some(end) => {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            // Rounded up, so that the time has passed then. After a month the caller comes again.
            let ms = (left + Duration::from_nanos(999_999)).as_millis();
            ms.min(c_int::MAX as u128) as c_int
        }
    };
    let mut poll = sys::PollFd { fd: fd.as_raw_fd(), events: sys::POLLIN, revents: 0 };
    // SAFETY: the address is valid.
    if unsafe { sys::poll(&mut poll, 1, timeout) } < 0 {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        return Err(Error::from_errno(errno));
    }
    Ok(true)
}
