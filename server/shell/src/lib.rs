//! A shell for any ZooKeeper, with the commands and the output of zkCli: `minikeeper cli`.
//!
//! A crate of its own: the shell needs nothing of the server, and builds without it.
//!
//! | module | contents |
//! | --- | --- |
//! | `words`, `options`, `commands` | reading a line: quotes, options, the table of commands |
//! | `execute`, `quota`, `tree` | what the commands do |
//! | `connection` | the client, its watches and events |
//! | `format`, `failure`, `output` | what is printed |
//! | `input`, `editor` | where lines come from |

mod commands;
mod connection;
mod editor;
mod execute;
mod failure;
mod format;
mod input;
mod options;
mod output;
mod quota;
mod tree;
mod words;

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, IsTerminal as _, Read as _},
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

pub use self::output::{in_one_line, print_on_stderr, print_on_stdout, without_controls, written};
use self::{
    connection::Connection,
    failure::Failure,
    input::{Input, Line},
    output::Output,
};

/// What a shell does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The connect string: `host:port,host:port/chroot`.
    pub server: String,
    /// The session timeout to ask for. Unit: whole milliseconds.
    pub timeout: Duration,
    /// Whether a read-only server will do.
    pub accepts_read_only: bool,
    /// Whether the first command waits for the connection, and a shell without one ends.
    pub waits_for_connection: bool,
    /// The words of the only command; without words, lines are read from stdin.
    pub command: Vec<String>,
}

/// Runs a shell. Returns the exit code: that of the last command.
///
/// # Errors
/// When the shell cannot start, or cannot write its results.
pub fn run(options: Options) -> Result<u8, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?
        .block_on(run_shell(options))
}

/// What every connection of the shell has in common.
#[derive(Debug)]
struct Settings {
    timeout: Duration,
    readonly: bool,
    waits: bool,
    /// Whether the first change of the state is printed, as all others are.
    prints_first_state: bool,
}

/// How many lines `history` and `redo` reach back.
const HISTORY_MAX: usize = 10_000;

/// The result of a line.
#[derive(PartialEq, Eq)]
enum Next {
    Continue,
    Quit,
}

async fn run_shell(options: Options) -> Result<u8, String> {
    let is_one_shot = !options.command.is_empty();
    let is_edited = !is_one_shot && io::stdin().is_terminal() && io::stdout().is_terminal();
    let output = Arc::new(Output::new(is_one_shot));
    if is_one_shot {
        // Nobody has asked for a watch yet.
        output.prints_watches.store(false, Ordering::Relaxed);
    }
    let mut shell = Shell {
        host: options.server,
        settings: Settings {
            timeout: options.timeout,
            readonly: options.accepts_read_only,
            waits: options.waits_for_connection,
            prints_first_state: is_edited,
        },
        connection: None,
        output,
        lines: VecDeque::new(),
        line_count: 0,
        exit_code: 0,
    };
    if is_edited {
        shell.output.line(&format!("Connecting to {}", shell.host));
        shell
            .output
            .line("Welcome to minikeeper cli! help lists the commands.");
        shell.output.flush();
    }
    let host = shell.host.clone();
    shell.connect(&host).await?;
    if is_one_shot {
        shell.run_words(options.command).await;
    } else {
        let client = shell.connection.as_ref().map(|it| it.client.clone());
        shell
            .run_lines(Input::start(is_edited, client, &shell.output)?)
            .await;
    }
    shell.close().await;
    shell.output.end()?;
    Ok(shell.exit_code)
}

struct Shell {
    /// The connect string.
    host: String,
    settings: Settings,
    connection: Option<Connection>,
    output: Arc<Output>,
    /// The last lines.
    lines: VecDeque<String>,
    /// The number of the current line.
    line_count: usize,
    exit_code: u8,
}

impl Shell {
    /// Replaces the connection.
    ///
    /// # Errors
    /// When the connect string is invalid, or, with `-waitforconnection`, nothing answers.
    async fn connect(&mut self, host: &str) -> Result<(), String> {
        let connection = Connection::start(host, &self.settings, &self.output)?;
        self.close().await;
        host.clone_into(&mut self.host);
        if self.settings.waits {
            connection.connected().await?;
        }
        self.connection = Some(connection);
        Ok(())
    }

    async fn close(&mut self) {
        if let Some(mut connection) = self.connection.take() {
            connection.close().await;
        }
    }

    async fn run_lines(&mut self, mut input: Input) {
        loop {
            let prompt = || {
                let state = self.connection.as_ref().map(Connection::state_name);
                let state = state.unwrap_or("CLOSED");
                format!("[zk: {}({state}) {}] ", self.host, self.line_count)
            };
            let line = match input.next(prompt).await {
                Line::Text(line) => line,
                Line::Discarded => continue,
                Line::End => return,
            };
            let words = words::split(&line);
            if words.is_empty() {
                continue;
            }
            self.lines.push_back(line);
            if self.lines.len() > HISTORY_MAX {
                self.lines.pop_front();
            }
            let next = if input.is_edited() {
                self.run_interruptibly(words).await
            } else {
                self.run_words(words).await
            };
            self.output.flush();
            self.line_count += 1;
            input.serve(self.connection.as_ref().map(|it| it.client.clone()));
            if next == Next::Quit || self.output.is_closed() {
                return;
            }
        }
    }

    /// Runs a command until it ends or the user interrupts it.
    async fn run_interruptibly(&mut self, words: Vec<String>) -> Next {
        let interrupted = async {
            match tokio::signal::ctrl_c().await {
                Ok(()) => {}
                Err(_) => std::future::pending().await,
            }
        };
        let next = tokio::select! {
            next = self.run_words(words) => Some(next),
            () = interrupted => None,
        };
        next.unwrap_or_else(|| {
            self.output.error("interrupted");
            self.exit_code = 1;
            Next::Continue
        })
    }

    /// Runs a command, prints its failure and keeps its exit code.
    async fn run_words(&mut self, words: Vec<String>) -> Next {
        match self.run_command(words).await {
            Ok(next) => {
                if next == Next::Continue {
                    self.exit_code = 0;
                }
                next
            }
            Err(Failure { text, exit_code }) => {
                self.output.error(&text);
                self.exit_code = exit_code;
                Next::Continue
            }
        }
    }

    async fn run_command(&mut self, mut words: Vec<String>) -> Result<Next, Failure> {
        if words[0] == "redo" && words.len() > 1 {
            words = self.repeated(&words[1])?;
        }
        let Some(command) = commands::find(&words[0]) else {
            self.output.usage(&commands::list(), true);
            return Err(Failure {
                text: format!("Command not found: Command not found {}", words[0]),
                exit_code: 127,
            });
        };
        match command.name {
            "quit" => return Ok(Next::Quit),
            "help" => {
                self.output.usage(&commands::list(), false);
                return Ok(Next::Continue);
            }
            "history" => self.print_history(),
            "printwatches" => self.set_prints_watches(words.get(1)),
            "connect" => {
                let host = words.get(1).unwrap_or(&self.host).clone();
                self.connect(&host).await?;
            }
            _ => {}
        }
        let Some(connection) = self.connection.as_mut().filter(|it| it.is_alive()) else {
            self.output.line("Not connected");
            return Ok(Next::Continue);
        };
        if command.name == "close" {
            self.close().await;
            self.output.event("Closed", "None", "null");
            return Ok(Next::Continue);
        }
        // Its fields are borrowed by the command, so that the wait needs handles of its own.
        let lost = connection.lost();
        let outcome = tokio::select! {
            // A reply that is there counts, also if the connection was lost since.
            biased;
            outcome = execute::execute(command, &words, connection, &self.output) => Some(outcome),
            () = lost => None,
        };
        if let Some(outcome) = outcome {
            return outcome.map(|()| Next::Continue);
        }
        if let Some(reason) = self.connection.as_ref().and_then(Connection::reason) {
            self.output.error(&reason);
        }
        let path = words[1..].iter().find(|word| word.starts_with('/'));
        let path = path.map_or("", String::as_str);
        Err(Failure::from(failure::connection_loss(path)))
    }

    /// Returns the words of an earlier line.
    fn repeated(&mut self, number: &str) -> Result<Vec<String>, Failure> {
        let number: usize = number
            .parse()
            .map_err(|_| format!("redo: {number:?} is not a number of history"))?;
        let oldest = self.line_count + 1 - self.lines.len().min(self.line_count + 1);
        let line = number
            .checked_sub(oldest)
            .filter(|_| number < self.line_count)
            .and_then(|at| self.lines.get(at));
        let line = line
            .ok_or_else(|| Failure::from("Command index out of range"))?
            .clone();
        let words = words::split(&line);
        if words[0] == "redo" {
            return Err(Failure::from("No redoing redos"));
        }
        if let Some(last) = self.lines.back_mut() {
            *last = line;
        }
        Ok(words)
    }

    fn print_history(&self) {
        let oldest = self.line_count + 1 - self.lines.len().min(self.line_count + 1);
        for number in self.line_count.saturating_sub(10)..=self.line_count {
            let line = number.checked_sub(oldest).and_then(|at| self.lines.get(at));
            let line = line.map_or("null", String::as_str);
            self.output.line(&format!("{number} - {line}"));
        }
    }

    fn set_prints_watches(&self, word: Option<&String>) {
        let prints = &self.output.prints_watches;
        match word {
            Some(word) => prints.store(word == "on", Ordering::Relaxed),
            None => {
                let state = if prints.load(Ordering::Relaxed) {
                    "on"
                } else {
                    "off"
                };
                self.output.line(&format!("printwatches is {state}"));
            }
        }
    }
}

/// Returns the text of an error and its causes, joined by colons.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Reads a file, which has at most `bytes_max` bytes.
fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(bytes_max + 1);
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let text = format!("the file exceeds the limit of {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(bytes)
}
