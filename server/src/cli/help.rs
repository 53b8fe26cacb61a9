//! What the program's help has that its description lacks, because only those who ask for help need it: the variable of
//! each option, and a summary of one screen.

use std::ffi::OsString;

use clap::{Arg, Args as _, Command};

use crate::{args::ServeArgs, environment};

/// The options in the summary.
const SUMMARY: [&str; 3] = ["port", "data_dir", "seed"];

/// The width of the summary.
const COLUMNS: usize = 80;

/// Completes the description of the command line if the arguments ask for help.
pub(crate) fn complete_for(command: Command, args: &[OsString]) -> Command {
    let asks = |name: &str| args.iter().skip(1).any(|arg| arg == name);
    if args.len() == 2 && asks("-h") {
        summary(command)
    } else if asks("--help") || asks("-h") || asks("help") {
        complete(command)
    } else {
        command
    }
}

/// Adds the variable of each option.
pub(crate) fn complete(command: Command) -> Command {
    command
        .mut_args(with_variable)
        .mut_subcommand("serve", |serve| {
            serve.defer(|serve| ServeArgs::augment_args(serve).mut_args(with_variable))
        })
}

fn with_variable(arg: Arg) -> Arg {
    let Some((_, variable)) = arg.get_long().and_then(environment::variable) else {
        return arg;
    };
    let text = arg.get_long_help().or_else(|| arg.get_help()).cloned();
    let text = text.unwrap_or_default().to_string();
    let (first, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let paragraphs = if rest.is_empty() { "" } else { "\n\n" };
    arg.long_help(format!("{first}\n[env: {variable}]{paragraphs}{rest}"))
}

/// Leaves the subcommands and the most frequent options, on one screen.
fn summary(command: Command) -> Command {
    let own_of_packagers = ["completions", "man"];
    let hide = |command: Command, name: &&str| command.mut_subcommand(name, |it| it.hide(true));
    let present = own_of_packagers
        .iter()
        .filter(|name| command.find_subcommand(name).is_some());
    let present: Vec<_> = present.collect();
    present
        .into_iter()
        .fold(command, hide)
        .term_width(COLUMNS)
        .mut_args(|arg| {
            let is_shown = SUMMARY.contains(&arg.get_id().as_str());
            arg.hide(!is_shown).help_heading(None::<&str>)
        })
}
