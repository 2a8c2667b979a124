// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Finds libtimerwheel: in TIMERWHEEL_LIB_DIR, else with pkg-config, else as the linker does.

use std::env;
use std::path::Path;
use std::process::Command;

/// The options of pkg-config, or nothing if it does not know the library.
fn pkg_config() -> Option<String> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let output = Command::new(program).args(["--libs", "timerwheel"]).output().ok()?;
    if !output.status.success() {
        return None;
    }
    String::from_utf8(output.stdout).ok()
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for name in ["TIMERWHEEL_LIB_DIR", "PKG_CONFIG", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={}", name);
    }
    if let Ok(dir) = env::var("TIMERWHEEL_LIB_DIR") {
        // A folder with nothing but the static library, as a build without installation has.
        let shared = Path::new(&dir).join("libtimerwheel.so").exists();
        println!("cargo:rerun-if-changed={}", dir);
        println!("cargo:rustc-link-search=native={}", dir);
        println!("cargo:rustc-link-lib={}timerwheel", if shared { "dylib=" } else { "static=" });
        return;
    }
    match pkg_config() {
        None => println!("cargo:rustc-link-lib=timerwheel"),
        Some(options) => {
            for option in options.split_whitespace() {
                if let Some(dir) = option.strip_prefix("-L") {
                    println!("cargo:rustc-link-search=native={}", dir);
                } else if let Some(name) = option.strip_prefix("-l") {
                    println!("cargo:rustc-link-lib={}", name);
                }
            }
        }
    }
}
