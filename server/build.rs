//! Links the programs of a release build at a fixed address on Linux with glibc. Without relocations they are 3 % smaller,
//! and an idle server needs 0.1 MB less memory. `.ci/release` does the same for the static programs.
#![allow(
    clippy::print_stdout,
    reason = "cargo reads the output of a build script"
)]

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| env::var(name).unwrap_or_default();
    let is_glibc = variable("CARGO_CFG_TARGET_OS") == "linux"
        && variable("CARGO_CFG_TARGET_ENV") == "gnu"
        && !variable("CARGO_CFG_TARGET_FEATURE").contains("crt-static");
    if is_glibc && variable("PROFILE") == "release" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
