//! A Java process that takes orders and replies in lines.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    io::{BufRead as _, BufReader, Read, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use super::words;
use crate::{Error, IoContext as _, clock::Deadline, peers::Belief};

/// How long sessions may take to end after the last order.
const END_LIMIT: Duration = Duration::from_secs(3);

/// How many of the last lines of standard error are kept for error messages.
const LAST_WORDS_MAX: usize = 20;

/// How many lines may be queued between Java and the reader.
const LINES_MAX: usize = 1_024;

/// A process that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Java {
    child: Child,
    orders: Option<ChildStdin>,
    replies: mpsc::Receiver<String>,
    belief: Arc<Mutex<Belief>>,
    last_words: Arc<Mutex<VecDeque<String>>>,
    last_words_reader: Option<JoinHandle<()>>,
    /// Its name in errors.
    name: String,
}

impl Java {
    pub(super) fn start(mut command: Command, name: String) -> Result<Self, Error> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context(|| format!("cannot start {:?}", command.get_program()))?;
        let orders = child.stdin.take();
        let stdout = child.stdout.take().expect("standard output was piped");
        let stderr = child.stderr.take().expect("standard error was piped");
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let belief = Arc::new(Mutex::new(Belief::Lost));
        Ok(Self {
            child,
            orders,
            replies: lines(stdout, Arc::clone(&belief)),
            belief,
            last_words_reader: Some(keep_last(stderr, Arc::clone(&last_words))),
            last_words,
            name,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn order(&mut self, line: &str) -> Result<(), Error> {
        let orders = self.orders.as_mut().expect("it is open until dropped");
        let sent = writeln!(orders, "{line}").and_then(|()| orders.flush());
        sent.map_err(|error| self.ended(&format!("cannot send the order {line:?}: {error}")))
    }

    pub(super) fn line(&mut self, deadline: &Deadline) -> Result<String, Error> {
        match self.replies.recv_timeout(deadline.left()) {
            Ok(line) => Ok(line),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(deadline.error()),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(self.ended("java has ended")),
        }
    }

    /// The last report on the connection.
    pub(super) const fn belief(&self) -> &Arc<Mutex<Belief>> {
        &self.belief
    }

    /// An error with the fault and the last lines of standard error.
    pub(super) fn failed(&self, fault: &str) -> Error {
        let mut text = format!("{}: {fault}", self.name);
        let words = lock(&self.last_words);
        if !words.is_empty() {
            text += "; java's last output:";
        }
        for line in &*words {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{line}");
        }
        Error::Unexpected(text)
    }

    /// The same for a process that has ended: the error contains all of its output.
    fn ended(&mut self, fault: &str) -> Error {
        if self.wait().is_ok()
            && let Some(reader) = self.last_words_reader.take()
        {
            let _ = reader.join();
        }
        self.failed(fault)
    }

    fn wait(&mut self) -> Result<(), Error> {
        let deadline = Deadline::new(END_LIMIT, "end of java");
        let ended = deadline.poll(Duration::from_millis(5), || {
            let ended = self.child.try_wait();
            ended.context(|| "cannot wait for java".into())
        });
        ended.map(drop)
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        // After the last order it ends its sessions, then itself. Killing it would leave its
        // sessions on the server for minutes.
        drop(self.orders.take());
        if self.wait().is_err() {
            let _ = self.child.kill().and_then(|()| self.child.wait());
        }
    }
}

/// Locks a mutex, even after a panic: its value is always complete.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads lines in a thread, so that waiting for one can have a limit. A line about its belief is
/// not a reply: it only updates `believed`.
fn lines(from: impl Read + Send + 'static, believed: Arc<Mutex<Belief>>) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::sync_channel(LINES_MAX);
    std::thread::spawn(move || {
        let lines = BufReader::new(from).lines().map_while(Result::ok);
        for line in lines {
            if let Some(belief) = words::belief(&line) {
                *lock(&believed) = belief;
            } else if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

fn keep_last(
    from: impl Read + Send + 'static,
    last: Arc<Mutex<VecDeque<String>>>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let mut last = lock(&last);
            if last.len() == LAST_WORDS_MAX {
                last.pop_front();
            }
            last.push_back(line);
        }
    })
}
