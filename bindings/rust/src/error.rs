// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Errors of calls and of elements

use crate::sys;
use std::ffi::CStr;
use std::os::raw::{c_int, c_long};
use std::{fmt, io};

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $errno:literal,)*) => {
        /// An error of a call, which did nothing, or of an element of a call, which changed
        /// nothing.
        ///
        /// When displayed, it is libtimerwheel's description of the error and of what to do about
        /// it.
        ///
        /// ```
        /// let mut wheel = timerwheel::Wheel::builder();
        /// let error = wheel.device("/dev/null").backend(timerwheel::Backend::Device).open();
        /// assert_eq!(error.unwrap_err(), timerwheel::Error::NotAWheel);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Error {
            $($(#[$doc])* $name,)*
            /// Another error, by its errno
            Other(i32),
        }

        impl Error {
            /// Returns the error for an errno, such as `ENOENT`.
            pub fn from_errno(errno: i32) -> Error {
                match errno {
                    $($errno => Error::$name,)*
                    _ => Error::Other(errno),
                }
            }

            /// Returns the errno, a positive number.
            pub fn errno(self) -> i32 {
                match self {
                    $(Error::$name => $errno,)*
                    Error::Other(errno) => errno,
                }
            }
        }
    };
}

// The numbers are valid on all architectures except MIPS, SPARC, Alpha and PA-RISC; the test layout
// checks them.
errors! {
    /// `EPERM`: not allowed to use the device, or to wake the machine
    NotPermitted = 1,
    /// `ENOENT`: no timer has this key or handle; [`open`](crate::Builder::open): no device
    NotFound = 2,
    /// `EINTR`: a signal arrived
    Interrupted = 4,
    /// `ENXIO`: no device
    NoDriver = 6,
    /// `EBADF`: not an open descriptor
    BadDescriptor = 9,
    /// `ENOMEM`: no memory
    NoMemory = 12,
    /// `EACCES`: not allowed to use the device
    AccessDenied = 13,
    /// `EBUSY`: the wheel has an event ring, and another reader takes its events
    Busy = 16,
    /// `EEXIST`: the key already has a timer; or the resident timer is armed or due
    Exists = 17,
    /// `EXDEV`: the deadline table is mapped in another time namespace
    OtherNamespace = 18,
    /// `ENODEV`: no device
    NoDevice = 19,
    /// `EINVAL`: a value is outside the limits, or the wheel does not support it
    Invalid = 22,
    /// `ENFILE`: the system has too many open files
    TooManyFiles = 23,
    /// `EMFILE`: the process has too many open descriptors
    TooManyDescriptors = 24,
    /// `ENOTTY`: not a wheel, or the module is too old for this call
    NotAWheel = 25,
    /// `ENOSPC`: the wheel is full
    Full = 28,
    /// `EMLINK`: too many keys collide with this one
    Collision = 31,
    /// `EPROTO`: a newer program has set up the wheel for larger events
    Protocol = 71,
    /// `EOPNOTSUPP`: this back end, or this machine, does not support the request
    Unsupported = 95,
    /// `ESHUTDOWN`: the wheel accepts no new timers
    Closed = 108,
    /// `ESTALE`: the timer has another value
    Changed = 116,
    /// `EDQUOT`: the user has reached the limit on memory for wheels
    Quota = 122,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the function takes any number and returns a constant string.
        let text = unsafe { CStr::from_ptr(sys::timerwheel_strerror(self.errno())) };
        f.write_str(&text.to_string_lossy())
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        io::Error::from_raw_os_error(error.errno())
    }
}

/// Converts the return value of a library function to a number or an error.
pub(crate) fn check(ret: c_long) -> Result<usize, Error> {
    if ret < 0 {
        Err(Error::from_errno(-ret as i32))
    } else {
        Ok(ret as usize)
    }
}

/// Does the same for functions that return an int.
pub(crate) fn check_int(ret: c_int) -> Result<i32, Error> {
    if ret < 0 {
        Err(Error::from_errno(-ret))
    } else {
        Ok(ret)
    }
}
