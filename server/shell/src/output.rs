//! Where the shell prints: results to stdout, errors to stderr, events to either the pipe or, while a
//! line is edited, above that line.

use std::{
    fmt::Write as _,
    io::{self, BufWriter, IsTerminal as _, Stdout, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;

/// Escapes control characters, except the ends of lines, so that a terminal prints them instead of
/// obeying. The escapes are those of JSON and YAML, whose texts mean the same afterwards.
#[must_use]
pub fn without_controls(text: &str) -> String {
    escaped(text, |symbol| symbol != '\n')
}

/// Escapes control characters as [`without_controls`] does, and the ends of lines too, for a text that must
/// stay one line.
#[must_use]
pub fn in_one_line(text: &str) -> String {
    escaped(text, |_| true)
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for symbol in text.chars() {
        if (symbol.is_control() || reorders(symbol)) && is_escaped(symbol) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(symbol));
        } else {
            out.push(symbol);
        }
    }
    out
}

/// Returns whether a terminal shows the text around this character in another order: with it, a text can
/// look like a different one.
const fn reorders(symbol: char) -> bool {
    matches!(symbol, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Prints a line on stderr. Does nothing if the reader has closed it, where `eprintln!` would panic.
pub fn print_on_stderr(line: &str) {
    // One call, so that the lines of several threads do not mix.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Prints on stdout. Does nothing if the reader has closed it.
///
/// # Errors
/// When stdout cannot be written, such as a file on a full disk.
pub fn print_on_stdout(text: &str) -> Result<(), String> {
    let mut stdout = io::stdout().lock();
    let outcome = stdout.write_all(text.as_bytes());
    written(outcome.and_then(|()| stdout.flush()))
}

/// Returns the error of writing to stdout, unless its reader has closed it.
///
/// # Errors
/// When stdout cannot be written, such as a file on a full disk.
pub fn written(outcome: io::Result<()>) -> Result<(), String> {
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to stdout: {error}"))
        }
        _ => Ok(()),
    }
}

/// Prints above the line that is edited.
type EventPrinter = Box<dyn FnMut(String) + Send>;

pub(crate) struct Output {
    stdout: Mutex<BufWriter<Stdout>>,
    /// Whether control characters must not get through: a terminal obeys them.
    escapes_stdout: bool,
    escapes_stderr: bool,
    /// Whether stdout cannot be written any more.
    is_closed: AtomicBool,
    /// Why, unless its reader has closed it.
    failure: Mutex<Option<String>>,
    events: Mutex<Option<EventPrinter>>,
    /// Whether `create` prints the path alone, on stdout, so that a script can take it.
    pub(crate) prints_path_alone: bool,
    /// `printwatches`.
    pub(crate) prints_watches: AtomicBool,
}

impl Output {
    pub(crate) fn new(is_one_shot: bool) -> Self {
        Self {
            stdout: Mutex::new(BufWriter::new(io::stdout())),
            escapes_stdout: io::stdout().is_terminal(),
            escapes_stderr: io::stderr().is_terminal(),
            is_closed: AtomicBool::new(false),
            failure: Mutex::default(),
            events: Mutex::new(None),
            prints_path_alone: is_one_shot && !io::stdout().is_terminal(),
            prints_watches: AtomicBool::new(true),
        }
    }

    /// Sets what prints events from now on.
    pub(crate) fn print_events_with(&self, printer: EventPrinter) {
        *self.events.lock() = Some(printer);
    }

    /// Prints a line of a result. It is written when the command ends, or with enough others.
    pub(crate) fn line(&self, text: &str) {
        let mut stdout = self.stdout.lock();
        let outcome = if self.escapes_stdout {
            writeln!(stdout, "{}", without_controls(text))
        } else {
            writeln!(stdout, "{text}")
        };
        self.note(outcome);
    }

    /// Prints a line about an error, behind everything that was printed before.
    pub(crate) fn error(&self, text: &str) {
        self.flush();
        if self.escapes_stderr {
            print_on_stderr(&without_controls(text));
        } else {
            print_on_stderr(text);
        }
    }

    /// Prints usage lines, whose tabs stay.
    pub(crate) fn usage(&self, text: &str, is_error: bool) {
        if is_error {
            self.flush();
            let _ = io::stderr().lock().write_all(text.as_bytes());
        } else {
            let outcome = self.stdout.lock().write_all(text.as_bytes());
            self.note(outcome);
        }
    }

    /// Prints an event, unless `printwatches` is off.
    pub(crate) fn event(&self, state: &str, kind: &str, path: &str) {
        if !self.prints_watches.load(Ordering::Relaxed) {
            return;
        }
        let text = format!("\nWATCHER::\n\nWatchedEvent state:{state} type:{kind} path:{path}");
        if let Some(printer) = &mut *self.events.lock() {
            printer(format!("{}\n", without_controls(&text)));
            return;
        }
        self.line(&text);
        self.flush();
    }

    pub(crate) fn flush(&self) {
        let outcome = self.stdout.lock().flush();
        self.note(outcome);
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// When results could not be written, unless the reader of stdout has closed it.
    pub(crate) fn end(&self) -> Result<(), String> {
        self.flush();
        self.failure.lock().take().map_or(Ok(()), Err)
    }

    /// Returns whether results cannot be written any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    fn note(&self, outcome: io::Result<()>) {
        if outcome.is_err() {
            self.is_closed.store(true, Ordering::Relaxed);
        }
        if let Err(text) = written(outcome) {
            self.failure.lock().get_or_insert(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_obeys_nothing_in_an_escaped_text() {
        // Title, colours, clearing, the 8-bit CSI, a return that overwrites the line, reordering.
        let hostile = "a\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m\rb\u{8}\u{7f}\u{202e}c\u{2066}\nd ä";
        let shown = without_controls(hostile);
        assert_eq!(
            shown,
            "a\\u001b]0;title\\u0007\\u001b[2J\\u009b31m\\u000db\\u0008\\u007f\\u202ec\\u2066\nd ä"
        );
        assert_eq!(in_one_line(hostile), shown.replace('\n', "\\u000a"));
    }
}
