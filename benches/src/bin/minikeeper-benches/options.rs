//! Options that several commands have.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use minikeeper_benches::{
    Error, IoContext as _,
    process::{self, Pin, Server},
    table::say,
};
use serde_json::Value;

/// What is measured, and where it runs.
#[derive(clap::Args)]
pub(crate) struct Measured {
    /// Placement; without a value: split.
    #[arg(long, value_enum, default_value = "none", num_args = 0..=1, default_missing_value = "split")]
    pub(crate) pin: Pin,
    /// Program to measure [default: minikeeper next to this program].
    #[arg(long, value_name = "PATH")]
    minikeeper: Option<PathBuf>,
    /// Further argument for minikeeper; may be repeated.
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    minikeeper_arg: Vec<String>,
}

impl Measured {
    /// The path of minikeeper.
    pub(crate) fn program(&self) -> Result<PathBuf, Error> {
        let program = self.minikeeper.as_ref();
        program.map_or_else(|| process::sibling("minikeeper"), |path| Ok(path.clone()))
    }

    /// The command for a minikeeper, pinned to its core.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = self.pin.server(program);
        command.args(&self.minikeeper_arg);
        command
    }

    pub(crate) fn start(&self) -> Result<Server, Error> {
        Server::start_minikeeper(self.command(&self.program()?))
    }

    /// Starts this program as a server: the echo, or the floor of the fan-out.
    pub(crate) fn start_own(&self, args: &[&str]) -> Result<Server, Error> {
        let mut command = self.pin.server(own()?);
        command.args(args);
        Server::start_printing(command)
    }

    /// The command for the load generator, pinned to its core.
    pub(crate) fn generator(&self) -> Result<Command, Error> {
        let mut command = self.pin.generator(own()?);
        command.arg("load");
        Ok(command)
    }
}

fn own() -> Result<PathBuf, Error> {
    std::env::current_exe().context(|| "cannot find the path of this program".into())
}

/// The rows that are measured.
#[derive(clap::Args)]
pub(crate) struct Only {
    /// Only rows whose name contains this; may be repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
}

impl Only {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| name.contains(only))
    }

    /// Returns the rows that are wanted.
    ///
    /// # Errors
    /// None is.
    pub(crate) fn of<'a, T>(
        &self,
        rows: impl IntoIterator<Item = &'a T>,
        name: impl Fn(&T) -> &'static str,
    ) -> Result<Vec<&'a T>, Error> {
        let mut names = Vec::new();
        let mut wanted = Vec::new();
        for row in rows {
            names.push(name(row));
            if self.has(name(row)) {
                wanted.push(row);
            }
        }
        if wanted.is_empty() {
            return Err(Error::Setup(format!(
                "unknown row {}; one of: {}",
                self.only.join(", "),
                names.join(", ")
            )));
        }
        Ok(wanted)
    }
}

/// The form of the results.
#[derive(clap::Args)]
pub(crate) struct Output {
    /// Also write the results as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// End with code 1 when a goal is missed.
    #[arg(long)]
    strict: bool,
}

impl Output {
    /// Prints the report and writes the JSON file. Returns whether the program succeeds, given
    /// whether the goals hold.
    pub(crate) fn finish(
        &self,
        report: &str,
        json: &Value,
        mut goals: impl Iterator<Item = Option<bool>>,
    ) -> Result<bool, Error> {
        say(report).context(|| "cannot print the report".into())?;
        if let Some(path) = &self.json {
            fs::write(path, format!("{json:#}\n"))
                .context(|| format!("cannot write {:?}", path.display()))?;
        }
        Ok(!self.strict || goals.all(|holds| holds != Some(false)))
    }
}
