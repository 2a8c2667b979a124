// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What `timerwheel.h` and `linux/timerwheel.h` declare, as far as this crate needs it. The test
//! `layout` compares all of it with the headers.

use std::os::raw::{c_char, c_int, c_long, c_short, c_uint, c_ulong, c_void};

pub const TIME_MAX: u64 = i64::MAX as u64;
pub const BATCH_MAX: usize = 65536;

pub const ABS: u32 = 1 << 0;
pub const EXCL: u32 = 1 << 1;
pub const MATCH: u32 = 1 << 2;
pub const SLACK: u32 = 1 << 3;
pub const LINGER: u32 = 1 << 4;
pub const DRAIN_CLOSE: u32 = 1 << 0;

pub const WAS_NONE: i32 = 0;
pub const WAS_PENDING: i32 = 1;
pub const WAS_DUE: i32 = 2;
pub const WAS_PARKED: i32 = 3;

pub const EVENT_PERIODIC: u32 = 1 << 0;
pub const EVENT_MISSED: u32 = 1 << 1;
pub const EVENT_CLOCK_SET: u32 = 1 << 2;
pub const EVENT_WARNING: u32 = 1 << 3;
pub const EVENT_ABORTED: u32 = 1 << 4;
pub const EVENT_GONE: u32 = 1 << 5;

pub const ARMED: u64 = 1;
#[cfg(test)]
pub const CANCELLED: u64 = 0;
#[cfg(test)]
pub const PARKED: u64 = 2;
pub const FIRED: u64 = 3;

pub const INFO_RESIDENT: u32 = 1 << 4;

pub const RING_OVERFLOW: u32 = 1 << 0;
pub const RING_EVENTS: usize = 128;
pub const MMAP_RING: i64 = 1 << 40;
// Offsets in struct timerwheel_ring
pub const RING_TAIL: usize = 0;
pub const RING_FLAGS: usize = 8;
pub const RING_HEAD: usize = 64;
pub const RING_WAITING: usize = 68;

pub const IOC_ADD: c_ulong = 0xf502;
pub const IOC_MOVE: c_ulong = 0xf503;
pub const IOC_REMOVE: c_ulong = 0xf504;
pub const IOC_FLOW: c_ulong = 0xf50a;

pub const MONITOR_CLOEXEC: u32 = 1 << 0;
pub const MONITOR_NONBLOCK: u32 = 1 << 1;

pub const ANSWER_DONE: c_int = 0;
pub const ANSWER_TOO_LATE: c_int = 1;
pub const ANSWER_NEEDS_CALL: c_int = 2;
pub const ANSWER_NOT_ARMED: c_int = 3;

pub const BACKEND_AUTO: c_int = 0;
pub const BACKEND_DEVICE: c_int = 1;
pub const BACKEND_PROCESS: c_int = 2;

pub const CLOCK_MONOTONIC: u32 = 0;
pub const CLOCK_BOOTTIME: u32 = 1;
pub const CLOCK_REALTIME: u32 = 2;
pub const CLOCK_MANUAL: u32 = 3;

/// Declares structures of C, all fields of which are numbers, and for the test what they are.
macro_rules! structures {
    ($($c:literal $name:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy, Debug, Default)]
            pub struct $name {
                $(pub $field: $type,)*
            }
        )*

        /// Name in C, size, and name, offset and size of each field.
        #[cfg(test)]
        pub fn layouts() -> Vec<(&'static str, usize, Vec<(&'static str, usize, usize)>)> {
            vec![$({
                let it = $name::default();
                let base = std::ptr::addr_of!(it) as usize;
                let fields = vec![$((
                    stringify!($field),
                    std::ptr::addr_of!(it.$field) as usize - base,
                    std::mem::size_of::<$type>(),
                ),)*];
                ($c, std::mem::size_of::<$name>(), fields)
            },)*]
        }
    };
}

structures! {
    "timerwheel_add" Add {
        key: u64,
        value: u64,
        deadline: u64,
        period: u64,
        slack: u64,
        match_: u64,
        flags: u32,
        result: i32,
        index: u32,
        generation: u32,
    }
    "timerwheel_move" Move {
        key: u64,
        deadline: u64,
        match_: u64,
        flags: u32,
        result: i32,
    }
    "timerwheel_remove" Remove {
        key: u64,
        match_: u64,
        value: u64,
        left: i64,
        flags: u32,
        result: i32,
    }
    "timerwheel_move_handle" MoveHandle {
        deadline: u64,
        index: u32,
        generation: u32,
    }
    "timerwheel_remove_handle" RemoveHandle {
        value: u64,
        index: u32,
        generation: u32,
    }
    "timerwheel_entry" Entry {
        key: u64,
        value: u64,
        deadline: u64,
        left: i64,
        period: u64,
        slack: u64,
        flags: u32,
        result: i32,
        index: u32,
        generation: u32,
    }
    "timerwheel_event" Event {
        key: u64,
        value: u64,
        deadline: u64,
        fired: u64,
        overruns: u64,
        flags: u32,
        index: u32,
    }
    "timerwheel_info" Info {
        size: u32,
        flags: u32,
        abi_version: u32,
        batch_max: u32,
        features: u64,
        errata: u64,
        tick_min: u64,
        tick_max: u64,
        slots_min: u32,
        slots_max: u32,
        capacity_max: u32,
        clock: u32,
        tick: u64,
        slots: u32,
        capacity: u32,
        slack: u64,
        wake_ns: u64,
        wake_events: u32,
        generation_bits: u32,
        user_memory: u64,
        user_memory_max: u64,
        now: u64,
        ring: u32,
        ring_max: u32,
        event_size: u32,
        event_size_max: u32,
    }
    "timerwheel_stats" Stats {
        size: u32,
        flags: u32,
        pending: u64,
        due: u64,
        armed: u64,
        rearmed: u64,
        moved: u64,
        removed: u64,
        replaced: u64,
        drained: u64,
        delivered: u64,
        overruns: u64,
        withdrawn: u64,
        cascades: u64,
        requeues: u64,
        wakeups: u64,
        firings: u64,
        passes: u64,
        pass_max_timers: u64,
        pass_max_ns: u64,
        memory: u64,
        late_max: u64,
        lateness: Lateness,
        parked: u64,
        sockets: u64,
        aborted: u64,
    }
}

/// The histogram of `struct timerwheel_stats`
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Lateness(pub [u64; 40]);

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness([0; 40])
    }
}

#[repr(C)]
pub struct Config {
    pub backend: c_int,
    pub device: *const c_char,
    pub clock: u32,
    pub capacity: u32,
    pub tick: u64,
    pub slots: u32,
    pub wake_events: u32,
    pub wake_ns: u64,
    pub slack: u64,
    pub ring: u32,
    pub table: bool,
    pub clock_set: bool,
    pub alarm: bool,
    pub resident: bool,
}

#[repr(C)]
pub struct Table {
    pub entries: *mut u64,
    pub bits: c_uint,
}

/// A structure that only the library knows
#[repr(C)]
pub struct Wheel {
    _private: [u8; 0],
}

/// The same
#[repr(C)]
pub struct Queue {
    _private: [u8; 0],
}

pub type Failed = extern "C" fn(arg: *mut c_void, op: c_ulong, elem: *const c_void);

extern "C" {
    pub fn timerwheel_open(wheel: *mut *mut Wheel, config: *const Config) -> c_int;
    pub fn timerwheel_adopt(wheel: *mut *mut Wheel, fd: c_int, table: bool) -> c_int;
    pub fn timerwheel_close(wheel: *mut Wheel);
    pub fn timerwheel_backend(wheel: *const Wheel) -> c_int;
    pub fn timerwheel_fd(wheel: *const Wheel) -> c_int;
    pub fn timerwheel_share(wheel: *const Wheel) -> c_int;
    pub fn timerwheel_info(wheel: *mut Wheel, info: *mut Info) -> c_int;
    pub fn timerwheel_stats(wheel: *mut Wheel, stats: *mut Stats) -> c_int;
    pub fn timerwheel_now(wheel: *mut Wheel) -> u64;
    pub fn timerwheel_add(wheel: *mut Wheel, elems: *mut Add, count: usize) -> c_long;
    pub fn timerwheel_move(wheel: *mut Wheel, elems: *mut Move, count: usize) -> c_long;
    pub fn timerwheel_remove(wheel: *mut Wheel, elems: *mut Remove, count: usize) -> c_long;
    pub fn timerwheel_get(wheel: *mut Wheel, elems: *mut Entry, count: usize) -> c_long;
    pub fn timerwheel_move_handles(
        wheel: *mut Wheel,
        elems: *mut MoveHandle,
        count: usize,
        flags: u32,
    ) -> c_long;
    pub fn timerwheel_remove_handles(
        wheel: *mut Wheel,
        elems: *mut RemoveHandle,
        count: usize,
    ) -> c_long;
    pub fn timerwheel_list(
        wheel: *mut Wheel,
        elems: *mut Entry,
        count: usize,
        cursor: *mut u64,
    ) -> c_long;
    pub fn timerwheel_drain(
        wheel: *mut Wheel,
        elems: *mut Entry,
        count: usize,
        flags: u32,
    ) -> c_long;
    pub fn timerwheel_advance(wheel: *mut Wheel, time: u64, flags: u32) -> c_long;
    pub fn timerwheel_take(wheel: *mut Wheel, events: *mut Event, count: usize) -> c_long;
    pub fn timerwheel_monitor(wheel: *mut Wheel, events: u32, flags: u32) -> c_int;
    pub fn timerwheel_table(wheel: *const Wheel, table: *mut Table) -> c_int;
    pub fn timerwheel_strerror(error: c_int) -> *const c_char;

    pub fn timerwheel_queue_new(
        queue: *mut *mut Queue,
        wheel: *mut Wheel,
        room: c_uint,
        failed: Failed,
        arg: *mut c_void,
    ) -> c_int;
    pub fn timerwheel_queue_free(queue: *mut Queue);
    pub fn timerwheel_queue_add(queue: *mut Queue, elem: *const Add) -> c_int;
    pub fn timerwheel_queue_move(queue: *mut Queue, elem: *const Move) -> c_int;
    pub fn timerwheel_queue_remove(queue: *mut Queue, elem: *const Remove) -> c_int;
    pub fn timerwheel_queue_arm(
        queue: *mut Queue,
        key: u64,
        index: u32,
        generation: u32,
        deadline: u64,
    ) -> c_int;
    pub fn timerwheel_queue_refresh(
        queue: *mut Queue,
        key: u64,
        index: u32,
        generation: u32,
        deadline: u64,
    ) -> c_int;
    pub fn timerwheel_queue_cancel(
        queue: *mut Queue,
        key: u64,
        index: u32,
        generation: u32,
    ) -> c_int;
    pub fn timerwheel_queue_flush(queue: *mut Queue) -> c_int;
}

// The C library, which std links.

pub const POLLIN: c_short = 1;
pub const PROT_READ_WRITE: c_int = 3;
pub const MAP_SHARED: c_int = 1;
pub const MAP_FAILED: *mut c_void = !0usize as *mut c_void;

#[repr(C)]
pub struct PollFd {
    pub fd: c_int,
    pub events: c_short,
    pub revents: c_short,
}

extern "C" {
    pub fn poll(fds: *mut PollFd, count: c_ulong, timeout: c_int) -> c_int;
    pub fn ioctl(fd: c_int, request: c_ulong, ...) -> c_int;
    pub fn mmap(
        addr: *mut c_void,
        length: usize,
        prot: c_int,
        flags: c_int,
        fd: c_int,
        offset: i64,
    ) -> *mut c_void;
    pub fn munmap(addr: *mut c_void, length: usize) -> c_int;
}
