//! Becomes another program of this package: the shell is one of its own, so that no server carries it.

use std::{
    env,
    ffi::OsString,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// The program of `minikeeper cli`.
const SHELL: &str = "minikeeper-cli";

/// Replaces this process by the shell: the program beside this one, else that of the search path.
///
/// # Errors
/// When there is none. Does not return otherwise.
pub(crate) fn run_shell(args: &[OsString]) -> Result<(), String> {
    // Without /proc, as in a bare root directory, the system does not tell; the caller's word may.
    let this = env::current_exe()
        .and_then(|path| path.canonicalize())
        .ok()
        .or_else(|| env::args_os().next().map(PathBuf::from));
    let beside = this
        .and_then(|path| Some(path.parent()?.join(SHELL)))
        .filter(|path| path.exists());
    let program = beside.as_deref().unwrap_or_else(|| Path::new(SHELL));
    let error = Command::new(program).args(args).exec();
    Err(format!(
        "cannot start {}: {error}; minikeeper cli needs it beside minikeeper or in PATH, and cargo \
         build --release makes both",
        program.display()
    ))
}
