//! The commands, with their options and usage lines.

use std::fmt::Write as _;

use crate::options::{Choice, CommandOption};

/// One command.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// What follows the name in its usage line.
    pub(crate) usage: &'static str,
    pub(crate) options: &'static [CommandOption],
    pub(crate) choice: Choice,
}

impl Command {
    const fn new(name: &'static str, usage: &'static str) -> Self {
        Self {
            name,
            usage,
            options: &[],
            choice: Choice::Any,
        }
    }

    const fn options(self, options: &'static [CommandOption]) -> Self {
        Self { options, ..self }
    }

    const fn choice(self, choice: Choice) -> Self {
        Self { choice, ..self }
    }

    pub(crate) fn usage_line(&self) -> String {
        format!("{} {}", self.name, self.usage)
    }
}

/// Returns the command of this name.
pub(crate) fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// Returns the usage lines of all commands.
pub(crate) fn list() -> String {
    let mut text = "minikeeper cli -server HOST:PORT COMMAND...\n".to_owned();
    for command in COMMANDS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\t{}", command.usage_line());
    }
    text
}

const fn flag(name: &'static str) -> CommandOption {
    CommandOption::flag(name)
}

const fn value(name: &'static str) -> CommandOption {
    CommandOption::value(name)
}

/// All commands, in the order in which zkCli lists them. The options that ZooKeeper 3.9 added are `get
/// -b -x`, `set -b` and `removewatches -p -r`; `help` is ours.
pub(crate) const COMMANDS: &[Command] = &[
    Command::new(
        "addWatch",
        "[-m mode] path # optional mode is one of [PERSISTENT, PERSISTENT_RECURSIVE] - default is \
         PERSISTENT_RECURSIVE",
    )
    .options(&[value("m")]),
    Command::new("addauth", "scheme auth"),
    Command::new("close", ""),
    Command::new("config", "[-c] [-w] [-s]").options(&[flag("s"), flag("w"), flag("c")]),
    Command::new("connect", "host:port"),
    Command::new(
        "create",
        "[-s] [-e] [-c] [-t ttl] path [data] [acl]",
    )
    .options(&[flag("e"), flag("s"), flag("c"), value("t")]),
    Command::new("delete", "[-v version] path").options(&[value("v")]),
    Command::new("deleteall", "path [-b batch size]").options(&[value("b")]),
    Command::new("delquota", "[-n|-b|-N|-B] path")
        .options(&[flag("n"), flag("b"), flag("N"), flag("B")])
        .choice(Choice::AtMostOne),
    Command::new("get", "[-s] [-w] [-b] [-x] path")
        .options(&[flag("s"), flag("w"), flag("b"), flag("x")]),
    Command::new("getAcl", "[-s] path").options(&[flag("s")]),
    Command::new("getAllChildrenNumber", "path"),
    Command::new("getEphemerals", "path"),
    Command::new("help", ""),
    Command::new("history", ""),
    Command::new("listquota", "path"),
    Command::new("ls", "[-s] [-w] [-R] path")
        .options(&[flag("?"), flag("s"), flag("w"), flag("R")]),
    Command::new("printwatches", "on|off"),
    Command::new("quit", ""),
    Command::new(
        "reconfig",
        "[-s] [-v version] [[-file path] | [-members serverID=host:port1:port2;port3[,...]*]] | [-add \
         serverId=host:port1:port2;port3[,...]]* [-remove serverId[,...]*]",
    )
    .options(&[
        flag("s"),
        value("v"),
        value("file"),
        value("members"),
        value("add"),
        value("remove"),
    ]),
    Command::new("redo", "cmdno"),
    Command::new("removewatches", "path [-c|-d|-p|-r|-a] [-l]")
        .options(&[flag("c"), flag("d"), flag("p"), flag("r"), flag("a"), flag("l")]),
    Command::new("set", "[-s] [-v version] [-b] path data")
        .options(&[flag("s"), value("v"), flag("b")]),
    Command::new("setAcl", "[-s] [-v version] [-R] path acl")
        .options(&[flag("s"), value("v"), flag("R")]),
    Command::new("setquota", "-n|-b|-N|-B val path")
        .options(&[
            value("n").about("num soft quota"),
            value("b").about("bytes soft quota"),
            value("N").about("num hard quota"),
            value("B").about("bytes hard quota"),
        ])
        .choice(Choice::ExactlyOne),
    Command::new("stat", "[-w] path").options(&[flag("w")]),
    Command::new("sync", "path"),
    Command::new("version", ""),
    Command::new("whoami", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_listed_in_order_and_once() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.name < b.name));
        assert!(find("ls").is_some() && find("LS").is_none());
        assert!(list().contains("\n\tls [-s] [-w] [-R] path\n"));
    }
}
