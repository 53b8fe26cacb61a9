//! The command line of `minikeeper cli`.

use std::{env, ffi::OsString};

/// A ZooKeeper shell, with the commands and the output of zkCli.sh
///
/// Works with every ZooKeeper server. Without a command it reads commands from stdin: with an editor on a
/// terminal, else line by line. The long options may have one dash, as in zkCli.sh.
#[derive(clap::Parser, Debug)]
#[command(
    bin_name = "minikeeper cli",
    version,
    after_help = "Examples:
  minikeeper cli                                        a session with a server on this machine
  minikeeper cli -server zk1:2181,zk2:2181/app          a session with an ensemble, below /app
  minikeeper cli -server zk1:2181 ls -R /services       one command
  minikeeper cli help                                   list the commands
  minikeeper cli <commands.txt                          the commands in a file

Exit codes: that of the last command, 0 done, 1 failed, 127 no such command; 2 wrong usage."
)]
pub(crate) struct CliArgs {
    /// Servers to connect to, as HOST:PORT,HOST:PORT/CHROOT [env: MINIKEEPER_CONNECT, which
    /// minikeeper sweep sets] [default: 127.0.0.1:2181]
    #[arg(long, value_name = "HOST:PORT")]
    server: Option<String>,
    /// Session timeout to ask for, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 30_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) timeout: u32,
    /// Accept a read-only server too
    #[arg(short, long)]
    pub(crate) readonly: bool,
    /// Wait for the connection before the first command
    #[arg(long)]
    pub(crate) waitforconnection: bool,
    /// One command to run instead of a session
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
}

impl CliArgs {
    /// Returns the connect string: that of the option, else of the environment, else of this machine.
    pub(crate) fn server(&mut self) -> String {
        let is_set = |server: &String| !server.is_empty();
        let of_environment = || env::var("MINIKEEPER_CONNECT").ok().filter(is_set);
        let server = self.server.take().or_else(of_environment);
        server.unwrap_or_else(|| "127.0.0.1:2181".to_owned())
    }
}

/// Rewrites zkCli's spelling of the long options, one dash, to that of other programs.
pub(crate) fn with_two_dashes(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<_> = args.collect();
    let mut rest = args.iter_mut().skip(1);
    while let Some(arg) = rest.next() {
        match arg.to_str() {
            Some("-server" | "-timeout") => {
                arg.push_front_dash();
                rest.next();
            }
            Some("-waitforconnection" | "-readonly") => arg.push_front_dash(),
            Some("--server" | "--timeout") => {
                rest.next();
            }
            Some(text) if text.starts_with('-') => {}
            // The command begins here.
            _ => break,
        }
    }
    args
}

/// Adds a dash in front.
trait PushFrontDash {
    fn push_front_dash(&mut self);
}

impl PushFrontDash for OsString {
    fn push_front_dash(&mut self) {
        let mut dashed = Self::from("-");
        dashed.push(&self);
        *self = dashed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_options_may_have_one_dash_before_the_command() {
        let rewritten = |line: &str| {
            let words = line.split(' ').map(OsString::from);
            let words = with_two_dashes(words).into_iter();
            let words: Vec<_> = words.map(|word| word.into_string().unwrap()).collect();
            words.join(" ")
        };
        for (line, expected) in [
            (
                "minikeeper-cli -server a:1 -timeout 5 -r ls -server /",
                "minikeeper-cli --server a:1 --timeout 5 -r ls -server /",
            ),
            (
                "minikeeper-cli -waitforconnection -server -server",
                "minikeeper-cli --waitforconnection --server -server",
            ),
            (
                "minikeeper-cli --server ls -server",
                "minikeeper-cli --server ls --server",
            ),
            ("minikeeper-cli", "minikeeper-cli"),
        ] {
            assert_eq!(rewritten(line), expected);
        }
    }
}
