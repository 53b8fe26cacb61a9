//! Becomes another program of this package: the shell is one of its own, so that no server carries it.

use std::{
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::Command,
};

/// The program of `minikeeper cli`.
const SHELL: &str = "minikeeper-cli";

/// Becomes the shell: the program beside this one, else that of the search path.
///
/// # Errors
/// When there is none. Does not return otherwise.
pub(crate) fn run_shell(args: &[OsString]) -> Result<(), String> {
    // Without /proc, as in a bare root directory, the system does not tell; the caller's word may.
    let this = env::current_exe()
        .and_then(|path| path.canonicalize())
        .ok()
        .or_else(|| env::args_os().next().map(PathBuf::from));
    // `.exe` on Windows.
    let file_name = format!("{SHELL}{}", env::consts::EXE_SUFFIX);
    let beside = this
        .and_then(|path| Some(path.parent()?.join(file_name)))
        .filter(|path| path.exists());
    let program = beside.as_deref().unwrap_or_else(|| Path::new(SHELL));
    let error = replace_by(Command::new(program).args(args));
    Err(format!(
        "cannot start {}: {error}; minikeeper cli needs it beside minikeeper or in PATH, and cargo \
         build --release makes both",
        program.display()
    ))
}

/// Replaces this process. Returns only if that fails.
#[cfg(unix)]
fn replace_by(command: &mut Command) -> io::Error {
    use std::os::unix::process::CommandExt as _;
    command.exec()
}

/// Windows cannot replace a process: this one waits for the other, and ends with its exit code.
#[cfg(windows)]
fn replace_by(command: &mut Command) -> io::Error {
    // Ctrl-C reaches both; with a listener it does not end this one.
    let _listener = tokio::signal::windows::ctrl_c();
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}
