//! Completion scripts and manual pages, made from the command line's own description.
//!
//! Behind a feature: packagers run this once, and the program that users get is smaller without it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use minikeeper_shell::print_on_stdout;

use crate::{args::Args, help, shell_args::CliArgs};

const NAME: &str = "minikeeper";

/// Prints the completion script for a shell.
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn print(shell: Shell) -> Result<(), String> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), NAME, &mut script);
    print_on_stdout(&String::from_utf8_lossy(&script))
}

/// Writes a page for the program and one for each of its subcommands. The verbs of `ctl` have none: its
/// page lists them, and each has `--help`.
///
/// # Errors
/// When a file cannot be written.
pub(crate) fn write_pages(dir: &Path) -> Result<(), String> {
    let write = |path: PathBuf, command: Command| {
        let mut page = Vec::new();
        Man::new(command)
            .render(&mut page)
            .and_then(|()| fs::write(&path, page))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    fs::create_dir_all(dir)
        .map_err(|error| format!("cannot write to {}: {error}", dir.display()))?;
    let mut program = command().disable_help_subcommand(true);
    program.build();
    for command in program.get_subcommands() {
        let name = format!("{NAME}-{}", command.get_name());
        let command = command
            .clone()
            .name(name.clone())
            .disable_help_subcommand(true);
        write(dir.join(format!("{name}.1")), command)?;
    }
    write(dir.join(format!("{NAME}.1")), program)
}

/// Returns the description of the command line of a program without this feature, which is what users get. That of the
/// shell is in a program of its own.
fn command() -> Command {
    let of_packager = help::complete(Args::command());
    let own = ["completions", "man"];
    let subcommands = of_packager
        .get_subcommands()
        .filter(|it| !own.contains(&it.get_name()))
        .cloned();
    let command = Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .args(of_packager.get_arguments().cloned())
        .subcommands(subcommands)
        .args_conflicts_with_subcommands(true);
    let about = of_packager.get_about().cloned().unwrap_or_default();
    let after_help = of_packager
        .get_after_long_help()
        .cloned()
        .unwrap_or_default();
    command
        .about(about)
        .after_help(after_help)
        .mut_subcommand("cli", |_| CliArgs::command().name("cli"))
}
