//! Runs the Rust code that the pages of `docs/` show, which `build.rs` has written.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the code is that of a user's tests"
)]

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

#[test]
fn pages_have_code() {
    println!("rust: {RUN} blocks run, {SHOWN_ONLY} shown only");
    const { assert!(RUN > 0, "no page has a block to run") };
}
