// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Do the declarations in `sys` and the numbers of errors agree with the headers? A program in C
//! prints what the headers say. It is compiled with what `CC` and `CFLAGS` name; without a compiler
//! the test fails.

use crate::error::Error;
use crate::sys;
use std::fmt::Write as _;
use std::mem::{align_of, size_of};
use std::path::PathBuf;
use std::process::Command;

/// The headers of this source tree, unless the crate is elsewhere
fn includes() -> Vec<String> {
    let top = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    ["uapi", "lib"]
        .iter()
        .map(|folder| top.join(folder))
        .filter(|folder| folder.exists())
        .map(|folder| format!("-I{}", folder.display()))
        .collect()
}

/// Expressions of C, and the numbers that they must have
#[derive(Default)]
struct Expected(Vec<(String, i128)>);

impl Expected {
    fn number(&mut self, c: impl Into<String>, value: impl Into<i128>) {
        self.0.push((c.into(), value.into()));
    }

    /// `name` is the name of the test.
    fn check(&self, name: &str) {
        let mut program = String::from(
            "#include <errno.h>\n#include <poll.h>\n#include <stdio.h>\n#include <sys/mman.h>\n\
             #include <timerwheel.h>\nint main(void) {\n",
        );
        for (c, _) in &self.0 {
            writeln!(program, "printf(\"%llu\\n\", (unsigned long long)({}));", c).unwrap();
        }
        program.push_str("return 0; }\n");
        let folder =
            std::env::temp_dir().join(format!("timerwheel-{}.{}", name, std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let built = folder.join("layout");
        let source = built.with_extension("c");
        std::fs::write(&source, program).unwrap();
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let flags = std::env::var("CFLAGS").unwrap_or_default();
        let compiled = Command::new(compiler)
            .args(includes())
            .args(flags.split_whitespace())
            .arg("-o")
            .args([&built, &source])
            .status();
        assert!(compiled.unwrap().success());
        let output = Command::new(&built).output().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let found: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(found.len(), self.0.len());
        let wrong: Vec<String> = self
            .0
            .iter()
            .zip(&found)
            .filter(|((_, value), found)| *value as u64 != **found)
            .map(|((c, value), found)| format!("{}: {} here, {} in C", c, value, found))
            .collect();
        assert!(wrong.is_empty(), "{:#?}", wrong);
    }
}

/// The name of a field in C
fn in_c(field: &str) -> &str {
    field.trim_end_matches('_')
}

#[test]
fn structures() {
    let mut expected = Expected::default();
    for (name, size, fields) in sys::layouts() {
        expected.number(format!("sizeof(struct {})", name), size as i128);
        let mut end = 0;
        for (field, offset, bytes) in fields {
            let field = in_c(field);
            expected.number(format!("offsetof(struct {}, {})", name, field), offset as i128);
            expected.number(format!("sizeof(((struct {} *)0)->{})", name, field), bytes as i128);
            // No field is missing in between: there are no holes.
            assert_eq!(offset, end, "{} {}", name, field);
            end = offset + bytes;
        }
        assert_eq!(end, size, "{}", name);
    }
    expected.number("offsetof(struct timerwheel_move_handle, result)", 12);
    expected.number("offsetof(struct timerwheel_remove_handle, result)", 12);
    expected.check("structures");
}

/// Structures that have addresses, or are the C library's
#[test]
fn other_structures() {
    let mut expected = Expected::default();
    macro_rules! same {
        ($c:literal $type:ident { $($field:ident)* }) => {
            let it = std::mem::MaybeUninit::<sys::$type>::uninit();
            let base = it.as_ptr();
            expected.number(format!("sizeof({})", $c), size_of::<sys::$type>() as i128);
            expected.number(format!("_Alignof({})", $c), align_of::<sys::$type>() as i128);
            $(
                // SAFETY: only the address of the field is computed.
                let field = unsafe { std::ptr::addr_of!((*base).$field) };
                expected.number(
                    format!("offsetof({}, {})", $c, stringify!($field)),
                    (field as usize - base as usize) as i128,
                );
            )*
        };
    }
    same!("struct timerwheel_config" Config {
        backend device clock capacity tick slots wake_events wake_ns slack ring table clock_set
        alarm resident
    });
    same!("struct timerwheel_table" Table { entries bits });
    same!("struct pollfd" PollFd { fd events revents });
    expected.check("other");
}

#[test]
fn constants() {
    let mut expected = Expected::default();
    macro_rules! same {
        ($($prefix:literal: $($name:ident)*;)*) => {
            $($(expected.number(concat!($prefix, stringify!($name)), sys::$name as i128);)*)*
        };
        ($($c:ident = $name:ident;)*) => {
            $(expected.number(stringify!($c), sys::$name as i128);)*
        };
    }
    same! {
        "TIMERWHEEL_": TIME_MAX BATCH_MAX ABS EXCL MATCH SLACK LINGER DRAIN_CLOSE WAS_NONE
            WAS_PENDING WAS_DUE WAS_PARKED EVENT_PERIODIC EVENT_MISSED EVENT_CLOCK_SET
            EVENT_WARNING EVENT_ABORTED EVENT_GONE INFO_RESIDENT RING_OVERFLOW RING_EVENTS
            MMAP_RING IOC_ADD IOC_MOVE IOC_REMOVE IOC_FLOW MONITOR_CLOEXEC MONITOR_NONBLOCK
            BACKEND_AUTO BACKEND_DEVICE BACKEND_PROCESS CLOCK_MONOTONIC CLOCK_BOOTTIME
            CLOCK_REALTIME CLOCK_MANUAL;
        "TIMERWHEEL_TABLE_": ARMED CANCELLED PARKED FIRED;
        "": POLLIN MAP_SHARED;
    }
    same! {
        TIMERWHEEL_DONE = ANSWER_DONE;
        TIMERWHEEL_TOO_LATE = ANSWER_TOO_LATE;
        TIMERWHEEL_NEEDS_CALL = ANSWER_NEEDS_CALL;
        TIMERWHEEL_NOT_ARMED = ANSWER_NOT_ARMED;
    }
    for (field, offset) in [
        ("tail", sys::RING_TAIL),
        ("flags", sys::RING_FLAGS),
        ("head", sys::RING_HEAD),
        ("waiting", sys::RING_WAITING),
    ] {
        expected.number(format!("offsetof(struct timerwheel_ring, {})", field), offset as i128);
    }
    expected.number("PROT_READ | PROT_WRITE", sys::PROT_READ_WRITE);
    expected.check("constants");
}

#[test]
fn errors() {
    let mut expected = Expected::default();
    macro_rules! same {
        ($($errno:ident $name:ident,)*) => {
            $(expected.number(stringify!($errno), Error::$name.errno());)*
        };
    }
    same! {
        EPERM NotPermitted, ENOENT NotFound, EINTR Interrupted, ENXIO NoDriver, EBADF BadDescriptor,
        ENOMEM NoMemory, EACCES AccessDenied, EBUSY Busy, EEXIST Exists, EXDEV OtherNamespace,
        ENODEV NoDevice, EINVAL Invalid, ENFILE TooManyFiles, EMFILE TooManyDescriptors,
        ENOTTY NotAWheel, ENOSPC Full, EMLINK Collision, EPROTO Protocol, EOPNOTSUPP Unsupported,
        ESHUTDOWN Closed, ESTALE Changed, EDQUOT Quota,
    }
    expected.check("errors");
}
