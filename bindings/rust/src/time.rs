// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Times of a wheel's clock

use crate::sys;
use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A time of a wheel's clock, in nanoseconds. The clock defines its zero: the start of the machine,
/// 1970 with [`Clock::Realtime`](crate::Clock::Realtime), or the creation of the wheel with
/// [`Clock::Manual`](crate::Clock::Manual).
///
/// Times end after 292 years, at [`Time::MAX`]. A sum that would be later is `Time::MAX`.
///
/// ```
/// use std::time::Duration;
/// use timerwheel::Time;
///
/// let time = Time::from_nanos(1_000) + Duration::from_micros(2);
/// assert_eq!(time.as_nanos(), 3_000);
/// assert_eq!(time - Time::from_nanos(4_000), Duration::ZERO);
/// assert_eq!(time + Duration::MAX, Time::MAX);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// When the clock began
    pub const ZERO: Time = Time(0);

    /// The latest time; "never" for practical purposes
    pub const MAX: Time = Time(sys::TIME_MAX);

    /// Returns the time this many nanoseconds after the clock's zero, at most [`Time::MAX`].
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(if nanos > sys::TIME_MAX { sys::TIME_MAX } else { nanos })
    }

    /// Returns the nanoseconds since the clock's zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
}

/// A duration in nanoseconds, at most `TIME_MAX`.
pub(crate) fn nanos(duration: Duration) -> u64 {
    duration.as_nanos().min(u128::from(sys::TIME_MAX)) as u64
}

impl Add<Duration> for Time {
    type Output = Time;

    /// At most [`Time::MAX`].
    fn add(self, duration: Duration) -> Time {
        // Both are less than 2^63.
        Time::from_nanos(self.0 + nanos(duration))
    }
}

impl Sub<Time> for Time {
    type Output = Duration;

    /// Returns the duration since another time, or zero if the other time is later.
    fn sub(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl From<SystemTime> for Time {
    /// The time of [`Clock::Realtime`](crate::Clock::Realtime); [`Time::ZERO`] before 1970.
    fn from(time: SystemTime) -> Time {
        Time(nanos(time.duration_since(UNIX_EPOCH).unwrap_or_default()))
    }
}

/// When a timer falls due: a [`Duration`] after the call, or at a [`Time`]. A time that has passed
/// makes the timer due at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// This long after the call, at most 292 years
    After(Duration),
    /// At this time
    At(Time),
}

impl Deadline {
    /// The number for an element, and its flag.
    pub(crate) fn parts(self) -> (u64, u32) {
        match self {
            Deadline::After(duration) => (nanos(duration), 0),
            Deadline::At(time) => (time.0, sys::ABS),
        }
    }
}

impl From<Duration> for Deadline {
    fn from(duration: Duration) -> Deadline {
        Deadline::After(duration)
    }
}

impl From<Time> for Deadline {
    fn from(time: Time) -> Deadline {
        Deadline::At(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_end_at_the_end() {
        let last = Time::from_nanos(sys::TIME_MAX - 1);
        assert_eq!((last + Duration::from_nanos(1)).as_nanos(), sys::TIME_MAX);
        assert_eq!(last + Duration::from_nanos(2), Time::MAX);
        assert_eq!(Time::MAX + Duration::MAX, Time::MAX);
        assert_eq!(Time::from_nanos(u64::MAX), Time::MAX);
    }

    #[test]
    fn durations_are_never_negative_elements() {
        for duration in [Duration::MAX, Duration::from_nanos(sys::TIME_MAX + 1)] {
            assert_eq!(Deadline::from(duration).parts(), (sys::TIME_MAX, 0));
        }
        assert_eq!(Deadline::from(Duration::from_nanos(7)).parts(), (7, 0));
        assert_eq!(Deadline::from(Time::from_nanos(7)).parts(), (7, sys::ABS));
    }

    #[test]
    fn system_times() {
        let after = UNIX_EPOCH + Duration::from_nanos(5);
        assert_eq!(Time::from(after).as_nanos(), 5);
        assert_eq!(Time::from(UNIX_EPOCH - Duration::from_nanos(5)), Time::ZERO);
    }
}
