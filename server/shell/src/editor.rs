//! The line editor: history, also in a file, and completion of commands, options and paths.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use minikeeper_client::Client;
use parking_lot::Mutex;
use rustyline::{
    Config, Context, Editor, ExternalPrinter as _, Helper,
    completion::Completer as LineCompleter,
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::{History as _, MemHistory},
    validate::Validator,
};
use tokio::{runtime::Handle, time::timeout};

use crate::{commands, input::Line, read_file, words};

/// How many lines the editor remembers.
const LINES_MAX: usize = 1_000;

/// The largest file of history that is read. A larger one begins anew.
const HISTORY_BYTES_MAX: u64 = 4 << 20;

/// How long completion waits for the server.
const COMPLETION_WAIT: Duration = Duration::from_millis(500);

/// How many names completion offers.
const NAMES_MAX: usize = 500;

pub(crate) struct LineEditor {
    editor: Editor<Completer, MemHistory>,
    /// The file of the history, if it can be written.
    history: Option<PathBuf>,
}

impl LineEditor {
    /// # Errors
    /// When the terminal cannot be used.
    pub(crate) fn new(completer: Completer) -> Result<Self, String> {
        let cannot = |error| format!("cannot edit lines: {error}");
        let config = Config::builder()
            .max_history_size(LINES_MAX)
            .map_err(cannot)?
            .completion_type(rustyline::CompletionType::List)
            .build();
        let memory = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, memory).map_err(cannot)?;
        editor.set_helper(Some(completer));
        let history = history_file().filter(|path| load(path, &mut editor).is_ok());
        Ok(Self { editor, history })
    }

    /// Returns what prints above the line that is edited.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub(crate) fn printer(&mut self) -> Result<Box<dyn FnMut(String) + Send>, String> {
        let printer = self.editor.create_external_printer();
        let mut printer = printer.map_err(|error| format!("cannot print events: {error}"))?;
        Ok(Box::new(move |text| {
            // Without a terminal nobody reads it.
            let _ = printer.print(text);
        }))
    }

    pub(crate) fn read(&mut self, prompt: &str) -> Line {
        match self.editor.readline(prompt) {
            Ok(line) => {
                self.remember(&line);
                Line::Text(line)
            }
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Line::Discarded,
            Err(_) => Line::End,
        }
    }

    /// Adds a line to the history and its file. A line with a password is in neither.
    fn remember(&mut self, line: &str) {
        if is_secret(line) || !matches!(self.editor.add_history_entry(line), Ok(true)) {
            return;
        }
        if let Some(path) = &self.history {
            // The shell works without a history.
            let _ = open(path, true).and_then(|mut file| writeln!(file, "{line}"));
        }
    }
}

/// Returns whether a line may hold a password.
fn is_secret(line: &str) -> bool {
    words::split(line).iter().any(|word| word == "addauth")
}

/// Returns the file of the history, by the rules of the XDG Base Directory Specification; on Windows in
/// the user's folder for data of programs on this machine.
fn history_file() -> Option<PathBuf> {
    let absolute = |name: &str, rest: &str| {
        let path = PathBuf::from(env::var_os(name)?);
        path.is_absolute().then(|| path.join(rest))
    };
    let state = if cfg!(windows) {
        absolute("LOCALAPPDATA", "")
    } else {
        absolute("XDG_STATE_HOME", "").or_else(|| absolute("HOME", ".local/state"))
    };
    Some(state?.join("minikeeper/cli_history"))
}

/// Reads the history, and shortens its file when it has grown.
fn load(path: &Path, editor: &mut Editor<Completer, MemHistory>) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let text = match read_file(path, HISTORY_BYTES_MAX) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    };
    let count = text.lines().count();
    let kept: Vec<_> = text.lines().skip(count.saturating_sub(LINES_MAX)).collect();
    for line in &kept {
        // One that the history refuses is left out.
        let _ = editor.history_mut().add(line);
    }
    // Also creates it, and takes the rights of others away.
    let is_long = count > 2 * LINES_MAX;
    let mut file = open(path, !is_long)?;
    // On Windows the file has the rights of the user's folder.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    if is_long {
        file.set_len(0)?;
        for line in kept {
            writeln!(file, "{line}")?;
        }
    }
    Ok(())
}

fn open(path: &Path, appends: bool) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    if appends {
        options.append(true);
    } else {
        options.write(true);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.create(true).open(path)
}

/// Completes commands, options and paths.
pub(crate) struct Completer {
    runtime: Handle,
    client: Arc<Mutex<Option<Client>>>,
}

impl Completer {
    pub(crate) const fn new(runtime: Handle, client: Arc<Mutex<Option<Client>>>) -> Self {
        Self { runtime, client }
    }

    /// Returns the children of a znode; none if the server does not answer soon.
    fn children(&self, path: &str) -> Vec<String> {
        let Some(client) = self.client.lock().clone() else {
            return Vec::new();
        };
        let listed = async { timeout(COMPLETION_WAIT, client.child_names(path)).await };
        let Ok(Ok(names)) = self.runtime.block_on(listed) else {
            return Vec::new();
        };
        names.iter().map(std::borrow::Cow::into_owned).collect()
    }
}

impl Helper for Completer {}

impl Highlighter for Completer {}

impl Validator for Completer {}

impl Hinter for Completer {
    type Hint = String;
}

impl LineCompleter for Completer {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> Result<(usize, Vec<String>), ReadlineError> {
        let line = &line[..position];
        Ok(candidates(line, |path| self.children(path)))
    }
}

/// Returns where the word to complete begins, and what may stand there.
fn candidates(line: &str, children: impl FnOnce(&str) -> Vec<String>) -> (usize, Vec<String>) {
    let begin = line.rfind([' ', '\t']).map_or(0, |blank| blank + 1);
    let word = &line[begin..];
    let mut found: Vec<String> =
        if let Some(slash) = word.rfind('/').filter(|_| word.starts_with('/')) {
            let parent = if slash == 0 { "/" } else { &word[..slash] };
            let name = &word[slash + 1..];
            let names = children(parent).into_iter();
            let mut names: Vec<_> = names
                // The terminal would obey control characters.
                .filter(|child| child.starts_with(name) && !child.contains(char::is_control))
                .collect();
            names.sort_unstable();
            names.truncate(NAMES_MAX);
            return (begin + slash + 1, names);
        } else if let Some(command) = words::split(&line[..begin]).first() {
            let options = commands::find(command).map_or(&[][..], |command| command.options);
            let options = options.iter().filter(|option| option.name != "?");
            options.map(|option| format!("-{}", option.name)).collect()
        } else {
            let commands = commands::COMMANDS.iter();
            commands.map(|command| command.name.to_owned()).collect()
        };
    // An argument may be anything: nothing is offered before it begins with a dash.
    let is_offered = begin == 0 || word.starts_with('-');
    found.retain(|candidate| is_offered && candidate.starts_with(word));
    found.sort_unstable();
    (begin, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_options_and_paths_are_completed() {
        let children = |path: &str| match path {
            "/" => vec!["zookeeper".to_owned(), "app".to_owned()],
            "/app" => ["b", "a2", "a1", "a\u{1b}"].map(str::to_owned).to_vec(),
            _ => Vec::new(),
        };
        for (line, expected) in [
            ("getA", (0, &["getAcl", "getAllChildrenNumber"][..])),
            ("quit", (0, &["quit"])),
            ("ls /", (4, &["app", "zookeeper"])),
            ("ls /a", (4, &["app"])),
            ("get -s /app/a", (12, &["a1", "a2"])),
            ("ls /none/", (9, &[])),
            ("ls -", (3, &["-R", "-s", "-w"])),
            ("none -", (5, &[])),
            ("set /app ", (9, &[])),
        ] {
            let (begin, found) = candidates(line, children);
            let found: Vec<_> = found.iter().map(String::as_str).collect();
            assert_eq!((begin, &found[..]), expected, "{line}");
        }
        let (_, all) = candidates("", children);
        assert_eq!(all.len(), commands::COMMANDS.len());
    }

    #[test]
    fn lines_with_passwords_are_secret() {
        assert!(is_secret("  addauth digest a:b"));
        assert!(is_secret("'addauth' digest a:b"));
        assert!(!is_secret("ls /"));
    }
}
