//! Reads options of the server from the environment, for containers: `MINIKEEPER_TICK_TIME=200` stands for
//! `--tick-time 200`.
//!
//! clap's feature `env` would do it too, with a larger program.

use std::{env, ffi::OsString};

use clap::{ArgAction, Command};

/// Arguments with the options that the environment adds to them.
pub(crate) struct Arguments {
    pub(crate) args: Vec<OsString>,
    /// The variables that were read.
    pub(crate) variables: Vec<String>,
}

/// Adds an option for each variable that is set, unless the arguments have that option or start no server.
///
/// # Errors
/// When the variable of an option without a value is neither true nor false.
pub(crate) fn add_options(command: &Command, mut args: Vec<OsString>) -> Result<Arguments, String> {
    let mut variables = Vec::new();
    let at = match args.get(1).and_then(|arg| arg.to_str()) {
        None => args.len(),
        Some("serve") => 2,
        Some("-h" | "--help" | "-V" | "--version") => return Ok(Arguments { args, variables }),
        Some(first) if first.starts_with('-') => 1,
        // A subcommand is only accepted as the first argument.
        Some(_) => return Ok(Arguments { args, variables }),
    };
    for option in command.get_arguments() {
        let Some((name, variable)) = option.get_long().and_then(variable) else {
            continue;
        };
        // An empty variable counts as none, because many users clear a variable that way.
        let Some(value) = env::var_os(&variable).filter(|value| !value.is_empty()) else {
            continue;
        };
        if args.iter().any(|arg| is_option(arg, &name)) {
            continue;
        }
        let mut added = OsString::from(name);
        if !matches!(option.get_action(), ArgAction::SetTrue) {
            added.push("=");
            added.push(value);
        } else if !is_true(&variable, &value)? {
            continue;
        }
        args.insert(at, added);
        variables.push(variable);
    }
    Ok(Arguments { args, variables })
}

/// Returns an option as it is written, and its variable; `None` for one that has none.
fn variable(option: &str) -> Option<(String, String)> {
    let suffix = match option {
        // Kubernetes and Docker set MINIKEEPER_PORT in the containers beside a service of this name.
        "port" => return None,
        // `token` reads this variable, which does not turn control on.
        "control-token" => return None,
        // MINIKEEPER_SEED is the seed of the random tests.
        "seed" => "SEED_PATH".to_owned(),
        _ => option.to_uppercase().replace('-', "_"),
    };
    Some((format!("--{option}"), format!("MINIKEEPER_{suffix}")))
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
