//! Reads options of the server from the environment, for containers: `MINIKEEPER_TICK_TIME=200` stands for
//! `--tick-time 200`.
//!
//! clap's feature `env` would do it too, with a larger program, and without a word about a misspelt variable.

use std::{
    env,
    ffi::{OsStr, OsString},
};

use clap::{ArgAction, Command};

/// Arguments with the options that the environment adds to them.
pub(crate) struct Arguments {
    pub(crate) args: Vec<OsString>,
    /// The variables that were read.
    pub(crate) variables: Vec<String>,
    /// What to say about variables that stand for no option.
    pub(crate) warnings: Vec<String>,
}

/// Adds an option for each variable that is set, unless the arguments have that option or start no server.
///
/// # Errors
/// When the variable of an option without a value is neither true nor false.
pub(crate) fn add_options(command: &Command, mut args: Vec<OsString>) -> Result<Arguments, String> {
    let mut variables = Vec::new();
    let mut warnings = Vec::new();
    let at = match args.get(1).and_then(|arg| arg.to_str()) {
        None => args.len(),
        Some("serve") => 2,
        Some(first) if first.starts_with('-') && !is_question(first) => 1,
        // A subcommand is only accepted as the first argument.
        Some(_) => {
            return Ok(Arguments {
                args,
                variables,
                warnings,
            });
        }
    };
    let mut known = Vec::new();
    for option in command.get_arguments() {
        let Some((name, variable)) = option.get_long().and_then(variable) else {
            continue;
        };
        let value = env::var_os(&variable).filter(|value| is_set(value));
        known.push(variable);
        let Some((variable, value)) = known.last().zip(value) else {
            continue;
        };
        // `token` reads this variable, which does not turn control on.
        if name == "--control-token" || args.iter().any(|arg| is_option(arg, &name)) {
            continue;
        }
        let mut added = OsString::from(name);
        if !matches!(option.get_action(), ArgAction::SetTrue) {
            added.push("=");
            added.push(value);
        } else if !is_true(variable, &value)? {
            continue;
        }
        args.insert(at, added);
        variables.push(variable.clone());
    }
    for (name, value) in env::vars_os().filter(|(_, value)| is_set(value)) {
        if let Some(name) = name.to_str() {
            warnings.extend(warning(name, &value, &known));
        }
    }
    Ok(Arguments {
        args,
        variables,
        warnings,
    })
}

/// Returns whether an argument asks for help or the version.
fn is_question(arg: &str) -> bool {
    matches!(arg, "-h" | "--help" | "-V" | "--version")
}

/// Returns an option as it is written, and its variable; `None` for one that starts no server.
pub(crate) fn variable(option: &str) -> Option<(String, String)> {
    let suffix = match option {
        "help" | "version" => return None,
        // MINIKEEPER_SEED is the seed of the random tests.
        "seed" => "SEED_PATH".to_owned(),
        _ => option.to_uppercase().replace('-', "_"),
    };
    Some((format!("--{option}"), format!("{PREFIX}{suffix}")))
}

const PREFIX: &str = "MINIKEEPER_";

/// Variables that stand for no option: of the packages, of sweeps, of the tests of this repository.
const OTHERS: &[&str] = &[
    "ALL_VERBS",
    "BIN",
    "CONNECT",
    "DAMAGE_VARIANTS",
    "EFFORT",
    "EXPIRE_COUNT",
    "IMAGE_VARIANTS",
    "JARS",
    "LICENCES",
    "OPTIONS",
    "ORIGINAL_JARS",
    "PAGES",
    "PLANTED",
    "RELEASES",
    "REPOSITORY",
    "STORIES",
    "TEST_PROGRAMS",
    "VERSION",
];

/// Returns whether a variable counts as set. An empty one does not, because many users clear a variable that way. Nor do
/// those that Kubernetes and Docker set beside a service named minikeeper, as in `MINIKEEPER_PORT=tcp://10.0.0.1:2181`.
fn is_set(value: &OsStr) -> bool {
    let value = value.as_encoded_bytes();
    !value.is_empty() && !value.starts_with(b"tcp://") && !value.starts_with(b"udp://")
}

/// Returns the warning about a variable that stands for no option; `None` if it does, or belongs to others.
fn warning(name: &str, value: &OsStr, known: &[String]) -> Option<String> {
    let suffix = name.strip_prefix(PREFIX)?;
    // A number seeds the random tests; anything else was meant to be a file of znodes.
    let is_number = value
        .as_encoded_bytes()
        .iter()
        .all(u8::is_ascii_alphanumeric);
    let is_of_others = OTHERS.contains(&suffix)
        || suffix == "SEED" && is_number
        || ["SWEEP", "SIM_"].iter().any(|it| suffix.starts_with(it))
        // Of Kubernetes and Docker, as above.
        || ["NAME", "HOST"].contains(&suffix)
        || suffix.starts_with("ENV_")
        || ["SERVICE_", "PORT_"].iter().any(|it| suffix.contains(it));
    if is_of_others || known.iter().any(|it| it == name) {
        return None;
    }
    let likeness = |it: &String| strsim::jaro_winkler(&it[PREFIX.len()..], suffix);
    let nearest = known
        .iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    Some(format!(
        "{name} has no effect, because it stands for no option; the nearest variable is {nearest}"
    ))
}

/// Returns whether an argument is this option, with its value or before it.
fn is_option(arg: &OsString, name: &str) -> bool {
    let rest = arg.as_encoded_bytes().strip_prefix(name.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"="))
}

fn is_true(variable: &str, value: &OsString) -> Result<bool, String> {
    match value.as_encoded_bytes() {
        b"true" | b"1" => Ok(true),
        b"false" | b"0" => Ok(false),
        _ => Err(format!("{variable} is {value:?}; it must be true or false")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Args;

    fn warned(name: &str, value: &str) -> Option<String> {
        let command = Args::command();
        let known = command
            .get_arguments()
            .filter_map(|option| Some(variable(option.get_long()?)?.1));
        warning(name, OsStr::new(value), &known.collect::<Vec<_>>())
    }

    /// A misspelt variable had no effect and caused no message.
    #[test]
    fn unknown_variable_is_named_with_the_nearest() {
        for (name, value, nearest) in [
            ("MINIKEEPER_TICKTIME", "200", "MINIKEEPER_TICK_TIME"),
            ("MINIKEEPER_TICK_TIME_MS", "200", "MINIKEEPER_TICK_TIME"),
            ("MINIKEEPER_DATADIR", "/data", "MINIKEEPER_DATA_DIR"),
            ("MINIKEEPER_SEED", "/seed/tree.yaml", "MINIKEEPER_SEED_PATH"),
        ] {
            let text = format!(
                "{name} has no effect, because it stands for no option; the nearest variable is {nearest}"
            );
            assert_eq!(warned(name, value), Some(text));
        }
    }

    #[test]
    fn variables_of_options_and_of_others_cause_no_warning() {
        for (name, value) in [
            ("MINIKEEPER_PORT", "2182"),
            ("MINIKEEPER_CONTROL_TOKEN", "x"),
            ("MINIKEEPER_SEED", "17"),
            ("MINIKEEPER_BIN", "/usr/bin/minikeeper"),
            ("MINIKEEPER_SWEEP_RUN", "3"),
            ("MINIKEEPER_SERVICE_HOST", "10.0.0.1"),
            ("MINIKEEPER_SERVICE_PORT_CLIENT", "2181"),
            ("MINIKEEPER_PORT_2181_TCP_ADDR", "10.0.0.1"),
            ("MINIKEEPER_TEST_SERVICE_HOST", "10.0.0.1"),
            ("MINIKEEPER_ENV_PATH", "/bin"),
            ("MINIKEEPERS", "2"),
        ] {
            assert_eq!(warned(name, value), None, "{name}");
        }
        assert!(!is_set(OsStr::new("tcp://10.0.0.1:2181")));
    }
}
