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

/// Becomes the shell: the program beside this one, else that of the search path, else the one that cargo builds, since
/// `cargo run` builds only the program that it runs.
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
    let folder = this.as_deref().and_then(Path::parent);
    let beside = folder
        .map(|folder| folder.join(file_name))
        .filter(|path| path.exists());
    let program = beside.as_deref().unwrap_or_else(|| Path::new(SHELL));
    let mut error = replace_by(Command::new(program).args(args));
    if error.kind() == io::ErrorKind::NotFound
        && let Some(mut cargo) = folder.and_then(cargo_run)
    {
        error = replace_by(cargo.args(args));
    }
    Err(format!(
        "cannot start {}: {error}; minikeeper cli needs it beside minikeeper or in PATH, and cargo \
         build --release makes both",
        program.display()
    ))
}

/// Returns the command that builds and runs the shell, if this folder is one of cargo's in a checkout of the source.
fn cargo_run(folder: &Path) -> Option<Command> {
    let target = folder.parent()?;
    let manifest = target.parent()?.join("Cargo.toml");
    let is_checkout = manifest
        .with_file_name("server/src/cli/shell/main.rs")
        .exists();
    // Cargo marks its folder with this file.
    if !is_checkout || !target.join("CACHEDIR.TAG").exists() {
        return None;
    }
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.arg("run").arg("--manifest-path").arg(manifest);
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    cargo.args(["--bin", SHELL, "--"]);
    Some(cargo)
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
