//! `minikeeper ctl`: calls the verbs of a running server.

mod command;
mod http;
mod values;

use std::{
    io::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use minikeeper::{Secret, control::Verb};
use serde_json::{Map, Value};

use crate::{
    ctl::http::{Answer, HttpCall},
    token,
};

/// The command line after `ctl`.
#[derive(Debug)]
pub(crate) struct CtlArgs {
    server: String,
    token: Option<Secret>,
    token_file: Option<PathBuf>,
    universe: Option<String>,
    verb: &'static Verb,
    /// The arguments of the verb.
    given: ArgMatches,
}

impl CtlArgs {
    /// Calls the verb and prints its answer.
    ///
    /// # Errors
    /// When the server answers with an error, or cannot be reached.
    pub(crate) fn run(self) -> Result<(), String> {
        let (fields, longest) = command::fields(self.verb, &self.given)?;
        let token = match &self.token_file {
            Some(file) => Some(token::read(file)?),
            None => self.token.or_else(token::of_environment),
        };
        let call = HttpCall {
            server: &self.server,
            token: token.as_deref(),
            universe: self.universe.as_deref(),
            verb: self.verb,
            fields: &fields,
            longest,
        };
        let Answer { status, body } = http::call(&call)?;
        let value: Value = serde_json::from_str(&body)
            .map_err(|_| format!("{} did not answer with JSON: {body:?}", self.server))?;
        if status != 200 {
            let sentence = value.get("error").and_then(Value::as_str);
            return Err(sentence.map_or_else(|| format!("status {status}: {body}"), str::to_owned));
        }
        let shown = match self.verb.plain.and_then(|field| value.get(field)) {
            None => body,
            Some(Value::String(text)) => text.clone(),
            Some(other) => format!("{other:#}"),
        };
        // The reader may have closed stdout; that is no reason to fail.
        let _ = writeln!(io::stdout(), "{}", shown.trim_end_matches('\n'));
        Ok(())
    }
}

impl Args for CtlArgs {
    fn augment_args(command: Command) -> Command {
        // Deferred, so that starting a server does not build the command line of every verb.
        command.defer(command::describe)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CtlArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let missing = || Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (name, given) = matches.subcommand().ok_or_else(missing)?;
        let text = |id: &str| matches.get_one::<String>(id).cloned();
        Ok(Self {
            server: text("server").unwrap_or_default(),
            token: text("token").map(Secret::from),
            token_file: text("token_file").map(PathBuf::from),
            universe: text("universe"),
            verb: command::find(name).ok_or_else(missing)?,
            given: given.clone(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The fields of a request, and the longest duration among them: the server may take that long.
type VerbFields = (Map<String, Value>, Duration);
