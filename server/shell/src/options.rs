//! Reads the options of a command, by the rules of the library that zkCli uses (commons-cli): options
//! may stand anywhere, be joined (`-sw`), and hold their value (`-v3`, `-v=3`); `--` ends them.

/// An option of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandOption {
    /// The name, without the dash. It may have several letters.
    pub(crate) name: &'static str,
    /// Whether the next word is its value.
    pub(crate) has_value: bool,
    /// What it is for, in one message of zkCli.
    pub(crate) about: &'static str,
}

impl CommandOption {
    pub(crate) const fn flag(name: &'static str) -> Self {
        Self {
            name,
            has_value: false,
            about: "",
        }
    }

    pub(crate) const fn value(name: &'static str) -> Self {
        Self {
            name,
            has_value: true,
            about: "",
        }
    }

    pub(crate) const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }
}

/// How many of its options a command takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// Any.
    Any,
    /// One or none.
    AtMostOne,
    /// One.
    ExactlyOne,
}

/// The words of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parsed {
    /// The words that are not options, the name of the command first.
    pub(crate) args: Vec<String>,
    options: Vec<(&'static str, String)>,
}

impl Parsed {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(given, _)| *given == name)
    }

    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let mut options = self.options.iter();
        let found = options.find(|(given, _)| *given == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Sorts words into options and arguments.
///
/// # Errors
/// The message of commons-cli.
pub(crate) fn parse(
    options: &'static [CommandOption],
    choice: Choice,
    words: &[String],
) -> Result<Parsed, String> {
    let mut parser = Parser {
        options,
        choice,
        parsed: Parsed::default(),
        open: None,
    };
    let mut words = words.iter();
    for word in words.by_ref() {
        if word == "--" {
            break;
        }
        parser.take(word)?;
    }
    parser.parsed.args.extend(words.cloned());
    parser.finish()
}

struct Parser {
    options: &'static [CommandOption],
    choice: Choice,
    parsed: Parsed,
    /// The option that waits for its value.
    open: Option<&'static CommandOption>,
}

impl Parser {
    fn find(&self, name: &str) -> Option<&'static CommandOption> {
        self.options.iter().find(|option| option.name == name)
    }

    fn first_letter(&self, text: &str) -> Option<&'static CommandOption> {
        text.get(..text.chars().next()?.len_utf8())
            .and_then(|letter| self.find(letter))
    }

    fn take(&mut self, word: &str) -> Result<(), String> {
        let dashed = word.strip_prefix('-').filter(|rest| !rest.is_empty());
        if let Some(option) = self.open
            && (dashed.is_none_or(|rest| !self.is_option(rest)) || word.parse::<f64>().is_ok())
        {
            self.open = None;
            self.parsed.options.push((option.name, word.to_owned()));
            return Ok(());
        }
        let unrecognized = || Err(format!("Unrecognized option: {word}"));
        let Some(rest) = dashed else {
            self.parsed.args.push(word.to_owned());
            return Ok(());
        };
        if rest.starts_with('-') {
            return unrecognized();
        }
        match rest.split_once('=') {
            Some((name, value)) => match self.find(name) {
                Some(option) if option.has_value && name.chars().count() == 1 => {
                    self.begin(option)?;
                    self.open = None;
                    self.parsed.options.push((option.name, value.to_owned()));
                    Ok(())
                }
                _ => unrecognized(),
            },
            None => match self.find(rest) {
                Some(option) => self.begin(option),
                None => self.take_joined(word, rest),
            },
        }
    }

    /// Reads `-sw` as `-s -w`, and `-v3` as `-v 3`.
    fn take_joined(&mut self, word: &str, rest: &str) -> Result<(), String> {
        let mut rest = rest;
        while !rest.is_empty() {
            let Some(option) = self.first_letter(rest) else {
                return Err(format!("Unrecognized option: {word}"));
            };
            rest = &rest[option.name.len()..];
            self.begin(option)?;
            if option.has_value && !rest.is_empty() {
                self.open = None;
                self.parsed.options.push((option.name, rest.to_owned()));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns whether commons-cli takes this word, whose dash is removed, for an option and not for
    /// the value of one.
    fn is_option(&self, rest: &str) -> bool {
        let name = rest.split('=').next().unwrap_or_default();
        self.find(name).is_some() || self.first_letter(name).is_some()
    }

    fn begin(&mut self, option: &'static CommandOption) -> Result<(), String> {
        self.check_value()?;
        if self.choice != Choice::Any
            && let Some((other, _)) = self.parsed.options.first()
            && *other != option.name
        {
            return Err(format!(
                "The option '{}' was specified but an option from this group has already been \
                 selected: '{other}'",
                option.name
            ));
        }
        if option.has_value {
            self.open = Some(option);
        } else {
            self.parsed.options.push((option.name, String::new()));
        }
        Ok(())
    }

    fn check_value(&self) -> Result<(), String> {
        match self.open {
            Some(option) => Err(format!("Missing argument for option: {}", option.name)),
            None => Ok(()),
        }
    }

    fn finish(self) -> Result<Parsed, String> {
        self.check_value()?;
        if self.choice == Choice::ExactlyOne && self.parsed.options.is_empty() {
            let options = self.options.iter();
            let list: Vec<_> = options
                .map(|option| format!("-{} {}", option.name, option.about))
                .collect();
            return Err(format!("Missing required option: [{}]", list.join(", ")));
        }
        Ok(self.parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words;

    const OPTIONS: &[CommandOption] = &[
        CommandOption::flag("s"),
        CommandOption::flag("w"),
        CommandOption::value("v").about("version"),
        CommandOption::value("file"),
    ];

    fn read(choice: Choice, line: &str) -> Result<String, String> {
        let parsed = parse(OPTIONS, choice, &words::split(line))?;
        let options = parsed.options.iter();
        let options: Vec<_> = options
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        Ok(format!("{} [{}]", parsed.args.join(" "), options.join(" ")))
    }

    #[test]
    fn options_are_read_as_commons_cli_reads_them() {
        for (line, expected) in [
            ("set -s /a b", "set /a b [s=]"),
            ("set /a b -s", "set /a b [s=]"),
            ("set -sw /a", "set /a [s= w=]"),
            ("set -v 3 /a", "set /a [v=3]"),
            ("set -v3 /a", "set /a [v=3]"),
            ("set -v=3 /a", "set /a [v=3]"),
            ("set -sv3 /a", "set /a [s= v=3]"),
            ("set -v -1 /a", "set /a [v=-1]"),
            ("set -v -x /a", "set /a [v=-x]"),
            ("set -file f /a", "set /a [file=f]"),
            ("set -- -s /a", "set -s /a []"),
            ("set - /a", "set - /a []"),
        ] {
            assert_eq!(read(Choice::Any, line).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn messages_are_those_of_commons_cli() {
        for (choice, line, expected) in [
            (Choice::Any, "set -x /a", "Unrecognized option: -x"),
            (Choice::Any, "set --s /a", "Unrecognized option: --s"),
            (Choice::Any, "set /a -5", "Unrecognized option: -5"),
            (Choice::Any, "set -sx /a", "Unrecognized option: -sx"),
            (Choice::Any, "set -file=f", "Unrecognized option: -file=f"),
            (Choice::Any, "set /a -v", "Missing argument for option: v"),
            (Choice::Any, "set -v -s", "Missing argument for option: v"),
            (
                Choice::AtMostOne,
                "set -s -w",
                "The option 'w' was specified but an option from this group has already been \
                 selected: 's'",
            ),
            (
                Choice::ExactlyOne,
                "set /a",
                "Missing required option: [-s , -w , -v version, -file ]",
            ),
        ] {
            assert_eq!(read(choice, line), Err(expected.to_owned()), "{line}");
        }
    }
}
