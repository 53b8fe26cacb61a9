//! `minikeeper-cli`, which `minikeeper cli` starts: the arguments of the shell. The shell itself is in the
//! crate minikeeper-shell.
//!
//! A program of its own: the server's would be 0.8 MB larger with it.

mod args;

use std::{env, process::ExitCode, time::Duration};

use clap::Parser as _;
use minikeeper_shell::{Options, print_on_stderr};

use crate::args::{CliArgs, with_two_dashes};

fn main() -> ExitCode {
    let mut args = CliArgs::parse_from(with_two_dashes(env::args_os()));
    if let Some(first) = args.command.first()
        && first.starts_with('-')
    {
        // It would be read as the name of a command.
        print_on_stderr(&format!(
            "minikeeper: unknown option {first}; see minikeeper cli --help"
        ));
        return ExitCode::from(2);
    }
    let outcome = minikeeper_shell::run(Options {
        server: args.server(),
        timeout: Duration::from_millis(args.timeout.into()),
        accepts_read_only: args.readonly,
        waits_for_connection: args.waitforconnection,
        command: args.command,
    });
    match outcome {
        Ok(exit_code) => ExitCode::from(exit_code),
        Err(text) => {
            print_on_stderr(&format!("minikeeper: {text}"));
            ExitCode::from(1)
        }
    }
}
