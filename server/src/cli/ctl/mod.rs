//! `minikeeper ctl`: calls the verbs of a running server. `minikeeper advise` is one of them, and reads files, too.
//!
//! `command` makes the command line from the table of verbs, `values` reads its values, `http` sends the
//! request, and `render` prints the answer.

pub(crate) mod command;

pub(crate) mod http;
mod render;
mod values;

use std::{
    fmt,
    io::{self, IsTerminal as _, Read as _, Write as _},
    path::PathBuf,
    time::Duration,
};

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use minikeeper::{Advice, Secret, control::Verb};
use minikeeper_core::files;
use minikeeper_shell::{print_on_stderr, print_on_stdout, without_controls};
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
    /// The form of the output; by default, text on a terminal and JSON elsewhere.
    form: Option<Form>,
    /// The only field of the answer to print.
    field: Option<String>,
    verb: &'static Verb,
    /// The arguments of the verb.
    given: ArgMatches,
}

impl CtlArgs {
    /// Calls the verb and prints its answer.
    ///
    /// # Errors
    /// When the server answers with an error, or cannot be reached.
    pub(crate) fn run(&self) -> Result<(), String> {
        let (fields, longest) = command::fields(self.verb, &self.given)?;
        let token = match &self.token_file {
            Some(file) => Some(token::read(file)?),
            None => self.token.clone().or_else(token::of_environment),
        };
        let call = HttpCall {
            server: &self.server,
            token: token.as_deref(),
            universe: self.universe.as_deref(),
            verb: self.verb,
            fields: &fields,
            longest,
        };
        let warning = self.warning(&call);
        let form = self.form;
        let is_terminal = io::stdout().is_terminal();
        let is_text = form == Some(Form::Text) || form.is_none() && is_terminal;
        let answer = if self.verb.is_stream() {
            http::follow(&call, |line| print_entry(line, is_text, is_terminal))?
        } else {
            Some(http::call(&call)?)
        };
        if let Some(text) = warning
            && answer.as_ref().is_some_and(|answer| answer.status == 200)
        {
            print_on_stderr(&format!("minikeeper: warning: {}", without_controls(&text)));
        }
        match answer {
            Some(answer) => self.print(answer, is_text, is_terminal),
            None => Ok(()),
        }
    }

    /// Returns what to say once a server of the ensemble is down that has the only address of `--server`: the next call
    /// would not reach any.
    fn warning(&self, call: &HttpCall<'_>) -> Option<String> {
        let is_given = |name: &str, value: Value| call.fields.get(name) == Some(&value);
        let is_alone = !self.server.contains(',');
        if self.verb.name != "set_server" || !is_given("mode", "down".into()) || !is_alone {
            return None;
        }
        let answer = http::call(&HttpCall {
            verb: command::find("servers")?,
            fields: &Map::new(),
            ..*call
        });
        let value: Value = serde_json::from_str(&answer.ok()?.body).ok()?;
        let servers = value.get("servers")?.as_array()?;
        let (down, others): (Vec<_>, Vec<_>) = servers
            .iter()
            .partition(|server| call.fields.get("server") == server.get("id"));
        let address = |server: &Value| Some(server.get("address")?.as_str()?.to_owned());
        let port = |address: &str| Some(address.rsplit_once(':')?.1.to_owned());
        let (id, lost) = (down.first()?.get("id")?, address(down.first()?)?);
        // The host may be written in several ways, and a port for control alone is another one.
        if port(&lost) != port(&self.server) {
            return None;
        }
        let up = others
            .iter()
            .find(|it| it.get("mode") != Some(&"down".into()));
        let up = address(up?)?;
        Some(format!(
            "server {id} was the one at {}, the only address of --server; to take it up again: minikeeper ctl --server {up} \
             set-server {id} up",
            self.server
        ))
    }

    /// Prints an answer.
    ///
    /// # Errors
    /// The error that it has.
    fn print(&self, answer: Answer, is_text: bool, is_terminal: bool) -> Result<(), String> {
        let Answer { status, body } = answer;
        let form = self.form;
        let value: Value = serde_json::from_str(&body)
            .map_err(|_| format!("{} did not answer with JSON: {body:?}", self.server))?;
        if status != 200 {
            let sentence = value.get("error").and_then(Value::as_str);
            return Err(sentence.map_or_else(|| format!("status {status}: {body}"), str::to_owned));
        }
        if let Some(field) = &self.field
            && value.get(field).is_none()
        {
            let fields: Vec<_> = value.as_object().into_iter().flat_map(Map::keys).collect();
            return Err(format!(
                "the answer has no field {field:?}; it has {fields:?}"
            ));
        }
        let alone = self.field.as_deref().or(self.verb.plain);
        let shown = match alone.and_then(|field| value.get(field)) {
            _ if form == Some(Form::Json) => body,
            Some(Value::String(text)) => text.clone(),
            Some(other) => format!("{other:#}"),
            None if is_text => render::render(self.verb, &value),
            None => body,
        };
        let shown = if is_terminal {
            without_controls(&shown)
        } else {
            shown
        };
        print_on_stdout(&format!("{}\n", shown.trim_end_matches('\n')))
    }
}

/// Prints an entry of the journal as it arrives.
///
/// # Errors
/// When nobody reads stdout any more.
fn print_entry(line: &str, is_text: bool, is_terminal: bool) -> io::Result<()> {
    let value: Option<Value> = is_text.then(|| serde_json::from_str(line).ok()).flatten();
    let text = value.as_ref().and_then(|entry| entry.get("text")?.as_str());
    let mut shown = text.unwrap_or(line).to_owned();
    if is_terminal {
        shown = without_controls(&shown);
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{shown}")?;
    out.flush()
}

/// A form of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// The answer of the server.
    Json,
    /// Tables and sentences.
    Text,
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
        Self::of(name, given, matches)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl CtlArgs {
    fn of(name: &str, given: &ArgMatches, matches: &ArgMatches) -> Result<Self, Error> {
        let missing = || Error::new(clap::error::ErrorKind::MissingSubcommand);
        let text = |id: &str| matches.get_one::<String>(id).cloned();
        Ok(Self {
            server: text("--server").unwrap_or_default(),
            token: text("--token").map(Secret::from),
            token_file: text("--token-file").map(PathBuf::from),
            universe: text("--universe"),
            form: match (matches.get_flag("--json"), matches.get_flag("--text")) {
                (true, _) => Some(Form::Json),
                (_, true) => Some(Form::Text),
                (false, false) => None,
            },
            field: text("--field"),
            verb: command::find(name).ok_or_else(missing)?,
            given: given.clone(),
        })
    }
}

/// The command line after `advise`.
#[derive(Debug)]
pub(crate) struct AdviseArgs {
    file: Option<PathBuf>,
    ctl: CtlArgs,
}

/// Reads a journal from stdin, within the limit of a file.
fn read_stdin() -> io::Result<String> {
    let mut text = String::new();
    let stdin = io::stdin().lock();
    stdin
        .take(files::SEED_BYTES_MAX + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > files::SEED_BYTES_MAX {
        let limit = files::SEED_BYTES_MAX;
        return Err(io::Error::other(format!("longer than {limit} bytes")));
    }
    Ok(text)
}

impl AdviseArgs {
    /// Prints advice on the journal in the file, or on that of the server.
    ///
    /// # Errors
    /// When there is no such journal.
    pub(crate) fn run(&self) -> Result<(), String> {
        let Some(file) = &self.file else {
            return self.ctl.run();
        };
        let text = if file.as_os_str() == "-" {
            read_stdin()
        } else {
            files::read_to_string(file, files::SEED_BYTES_MAX)
        };
        let cannot = |error: &dyn fmt::Display| format!("{}: {error}", file.display());
        let text = text.map_err(|error| cannot(&error))?;
        let (fields, _) = command::fields(self.ctl.verb, &self.ctl.given)?;
        let ignored = fields.get("ignore").and_then(Value::as_str);
        let ignored: Vec<_> = ignored.into_iter().flat_map(|it| it.split(',')).collect();
        let advice = Advice::of_json(&text, &ignored).map_err(|error| cannot(&error))?;
        let answer = Answer {
            status: 200,
            body: advice.to_json(),
        };
        let is_text = self.ctl.form == Some(Form::Text);
        self.ctl.print(answer, is_text, io::stdout().is_terminal())
    }
}

impl Args for AdviseArgs {
    fn augment_args(command: Command) -> Command {
        command.defer(command::describe_advise)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for AdviseArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut ctl = CtlArgs::of("advise", matches, matches)?;
        // People read it, in a pipe too.
        ctl.form = ctl.form.or(Some(Form::Text));
        let file = matches.get_one::<String>(command::FILE).map(PathBuf::from);
        Ok(Self { file, ctl })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The fields of a request, and the longest duration among them: the server may take that long.
type VerbFields = (Map<String, Value>, Duration);
