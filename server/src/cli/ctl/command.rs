//! Builds the command line of `minikeeper ctl` from the table of verbs.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use minikeeper::control::{self, Parameter, ParameterKind, Verb};
use serde_json::{Map, Value, json};

use crate::ctl::{VerbFields, values};

/// The argument of `minikeeper advise`, and the end of the help of `minikeeper ctl`.
pub(super) const FILE: &str = "--file";
const EXAMPLES: &str = "Examples:
  minikeeper ctl sessions
  minikeeper ctl tree /services
  minikeeper ctl advance 5s
  minikeeper ctl expire 0x1000a2b3c0001
  minikeeper ctl --server 127.0.0.1:4711 get /a
  minikeeper ctl go-down        prints the address to use for come-up
  minikeeper ctl --field html story >story.html

Prints tables and text on a terminal, and JSON elsewhere. dump, export-tree and the verbs that return one
path or address print text everywhere.
Exit codes: 0 done, 1 not done, with the reason on stderr, 2 wrong usage.";

/// Adds the options of `ctl`, and a subcommand for each verb.
pub(crate) fn describe(command: Command) -> Command {
    let command = options(command)
        .subcommand_required(true)
        .subcommand_value_name("VERB")
        .subcommand_help_heading("Verbs");
    command
        .after_help(EXAMPLES)
        .subcommands(control::verbs().map(subcommand))
}

/// Adds the arguments of `minikeeper advise`: those of the verb, a file, and the options of `ctl`.
pub(crate) fn describe_advise(command: Command) -> Command {
    let arguments = find("advise").into_iter().flat_map(|verb| verb.parameters);
    let file = Arg::new(FILE).value_name("FILE").help(
        "What minikeeper ctl journal --json printed, or the JSON of a story; - is stdin [default: ask the server]",
    );
    options(command.args(arguments.map(argument)).arg(file))
}

/// Adds the options that all verbs have.
fn options(command: Command) -> Command {
    // Their ids begin with hyphens, which no parameter of a verb does.
    let options = [
        Arg::new("--server")
            .long("server")
            .value_name("HOST:PORT")
            .default_value("127.0.0.1:2181")
            .help(
                "The server's address, or several with commas, of which the first that listens is used; a \
                 server that other machines reach must run with --control",
            ),
        Arg::new("--token")
            .long("token")
            .value_name("TOKEN")
            .conflicts_with("--token-file")
            .allow_hyphen_values(true)
            .help("The server's --control-token [env: MINIKEEPER_CONTROL_TOKEN]"),
        Arg::new("--token-file")
            .long("token-file")
            .value_name("FILE")
            .help("A file with the token, which keeps it out of the process list"),
        Arg::new("--universe")
            .long("universe")
            .value_name("NAME")
            .help("The universe to control [default: the server's own]"),
        Arg::new("--json")
            .long("json")
            .action(ArgAction::SetTrue)
            .conflicts_with("--text")
            .help("Print the server's answer as JSON, on a terminal too"),
        Arg::new("--text")
            .long("text")
            .action(ArgAction::SetTrue)
            .help("Print tables and text, in a pipe too"),
        Arg::new("--field")
            .long("field")
            .value_name("NAME")
            .conflicts_with_all(["--json", "--text"])
            .help("Print only this field of the answer: text as it is, anything else as JSON"),
    ];
    options
        .into_iter()
        .fold(command, |command, option| command.arg(option.global(true)))
}

/// Returns the verb of this subcommand.
pub(crate) fn find(name: &str) -> Option<&'static Verb> {
    control::verbs().find(|verb| dashed(verb.name) == name)
}

/// Returns the given arguments as fields of a request.
pub(crate) fn fields(verb: &Verb, given: &ArgMatches) -> Result<VerbFields, String> {
    let mut fields = Map::new();
    let mut longest = Duration::ZERO;
    for parameter in verb.parameters {
        let mut put = |name: &str, value| fields.insert(name.to_owned(), value);
        let text = |id: &str| given.get_one::<String>(id).map(String::as_str);
        match parameter.kind {
            ParameterKind::DurationMs | ParameterKind::DurationMsOrNull => {
                match given.get_one::<Option<Duration>>(parameter.name) {
                    None => {}
                    Some(None) => {
                        put(parameter.name, Value::Null);
                    }
                    Some(Some(duration)) => {
                        longest = longest.max(*duration);
                        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
                        put(parameter.name, json!(millis));
                    }
                }
            }
            ParameterKind::Count(_) | ParameterKind::Fault => {
                if let Some(count) = given.get_one::<u64>(parameter.name) {
                    put(parameter.name, json!(count));
                }
            }
            ParameterKind::Flag => {
                if given.get_flag(parameter.name) {
                    put(parameter.name, json!(true));
                }
            }
            ParameterKind::SessionSelector => {
                if let Some(who) = text(parameter.name) {
                    put(values::who(who), json!(who));
                }
            }
            ParameterKind::Tree => {
                if let Some(file) = text(parameter.name) {
                    let (name, value) = values::tree(file)?;
                    put(name, value);
                }
            }
            ParameterKind::Data => {
                if let Some(text) = text(parameter.name) {
                    let (name, value) = values::data(text)?;
                    put(name, value);
                }
            }
            ParameterKind::Version => {
                if let Some(version) = given.get_one::<i64>(parameter.name) {
                    put(parameter.name, json!(version));
                }
            }
            ParameterKind::Words => {
                if let Some(words) = given.get_many::<String>(parameter.name) {
                    let words: Vec<_> = words.map(String::as_str).collect();
                    put(parameter.name, json!(words.join(",")));
                }
            }
            ParameterKind::Json(_) => {
                if let Some(text) = text(parameter.name) {
                    let value = serde_json::from_str(text)
                        .map_err(|error| format!("{} is not JSON: {error}", parameter.name))?;
                    put(parameter.name, value);
                }
            }
            _ => {
                if let Some(text) = text(parameter.name) {
                    put(parameter.name, json!(text));
                }
            }
        }
    }
    Ok((fields, longest))
}

fn subcommand(verb: &'static Verb) -> Command {
    let arguments = verb.parameters.iter().map(argument);
    let command = Command::new(dashed(verb.name)).about(verb.summary());
    match verb.details() {
        "" => command,
        details => command.after_help(details),
    }
    .args(arguments)
}

/// Creates the argument of a parameter: positional if it is required, a path or data; else an option.
fn argument(parameter: &'static Parameter) -> Arg {
    let name = parameter.name.trim_end_matches("_ms");
    let mut argument = Arg::new(parameter.name)
        .value_name(name.to_uppercase())
        .required(parameter.is_required)
        .help(help(parameter));
    let is_by_place = matches!(parameter.kind, ParameterKind::Path | ParameterKind::Data);
    if !parameter.is_required && !is_by_place {
        argument = argument.long(dashed(name));
    }
    match parameter.kind {
        ParameterKind::DurationMs => {
            argument.value_parser(|text: &str| values::duration(text).map(Some))
        }
        ParameterKind::DurationMsOrNull => argument.value_parser(values::duration_or_never),
        ParameterKind::Count(max) => argument.value_parser(clap::value_parser!(u64).range(..=max)),
        ParameterKind::Version => {
            let versions = clap::value_parser!(i64).range(-1..=i64::from(i32::MAX));
            argument.value_parser(versions).allow_negative_numbers(true)
        }
        ParameterKind::Data => argument.allow_hyphen_values(true),
        ParameterKind::Fault => argument.value_parser(clap::value_parser!(u64)),
        ParameterKind::Flag => argument.action(ArgAction::SetTrue),
        ParameterKind::Words => argument.action(ArgAction::Append),
        ParameterKind::OneOf(words) => argument.value_parser(words.to_vec()),
        _ => argument,
    }
}

fn help(parameter: &Parameter) -> String {
    let mut help = parameter.help.to_owned();
    match parameter.kind {
        ParameterKind::DurationMs => help.push_str(", as in 200ms, 5s, 1m or 1h"),
        ParameterKind::DurationMsOrNull => help.push_str(", as in 200ms, 5s, 1m or 1h, or never"),
        ParameterKind::Json(_) => help.push_str(", as JSON"),
        ParameterKind::Words => help.push_str("; may be given several times"),
        ParameterKind::Data => help.push_str("; - reads stdin"),
        _ => {}
    }
    if let Some(default) = parameter.default
        && !matches!(parameter.kind, ParameterKind::Flag | ParameterKind::Data)
    {
        let unit = if matches!(
            parameter.kind,
            ParameterKind::DurationMs | ParameterKind::DurationMsOrNull
        ) {
            "ms"
        } else {
            ""
        };
        help.push_str(&format!(" [default: {default}{unit}]"));
    }
    help
}

fn dashed(name: &str) -> String {
    name.replace('_', "-")
}
