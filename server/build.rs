//! Links a release build on Linux with glibc such that an idle server needs less memory.
#![allow(
    clippy::print_stdout,
    reason = "cargo reads the output of a build script"
)]

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| env::var(name).unwrap_or_default();
    let is_glibc = variable("CARGO_CFG_TARGET_OS") == "linux"
        && variable("CARGO_CFG_TARGET_ENV") == "gnu"
        && !variable("CARGO_CFG_TARGET_FEATURE").contains("crt-static");
    let has_programs = env::var_os("CARGO_FEATURE_CLI").is_some();
    if !is_glibc || !has_programs || variable("PROFILE") != "release" {
        return;
    }
    // A fixed address needs no relocations: 3 % of the program, and 0.1 MB of memory. `.ci/release` does the same for static
    // programs.
    println!("cargo::rustc-link-arg-bins=-no-pie");
    // The shared library is 0.1 MB of memory, and what is needed of its static form is 24 kB.
    if has_static_unwinder() {
        println!("cargo::rustc-link-arg-bins=-Wl,--whole-archive,-lgcc_eh,--no-whole-archive");
    }
}

/// Returns whether the linker has libgcc_eh. It prints the path of a library it finds, otherwise the name it was given.
fn has_static_unwinder() -> bool {
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let found = Command::new(linker)
        .arg("-print-file-name=libgcc_eh.a")
        .output();
    found.is_ok_and(|it| Path::new(String::from_utf8_lossy(&it.stdout).trim()).is_absolute())
}
