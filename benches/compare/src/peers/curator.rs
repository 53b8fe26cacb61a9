//! Apache Curator's locks, in Java processes.
//!
//! Driving Java call by call from here would measure the pipe in between. So each contestant has
//! one process for a run, which takes orders and replies to each with a whole history
//! (`java/curator/` defines the words). Its contenders are threads, each with a client and a
//! session of its own, which it keeps from order to order. Where milliseconds matter and
//! microseconds do not, a contender is a process of its own: [`CuratorLock`].
//!
//! *Clocks.* `System.nanoTime()` and [`now_ns`] count the same nanoseconds from different zeros.
//! The difference is found when the process starts: each of [`CLOCK_SAMPLES`] times it is asked
//! between two readings of the own clock, and the difference must lie between what both allow.
//! What is left open, [`Curator::clock_error_ns`], is half of the fastest round trip through the
//! pipe or less: some tens of microseconds. It moves all times of the process by the same amount,
//! so intervals within one history have no error.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use super::Belief;
use crate::{
    Error,
    clock::{Deadline, now_ns},
    history::Recorder,
    process::Pin,
    servers,
};

mod java;
mod lock;
mod order;
mod program;
mod words;

use java::Java;
pub use lock::CuratorLock;
pub use order::Order;
pub use program::Program;
use words::{Clock, event, signed, what};

/// The session timeout to ask for where none is wanted in particular.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// How often the clocks are compared.
pub const CLOCK_SAMPLES: u32 = 64;

/// How long Java may take to start, to connect all clients, or to say what it knows.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// A Java process that contends with Curator; ended when dropped.
#[derive(Debug)]
pub struct Curator {
    java: Java,
    clock: Clock,
}

impl Curator {
    /// Starts one, placed as a generator of load, against the server of this name and address.
    ///
    /// # Errors
    /// When Java is missing (the text says how to install it), or does not answer.
    pub fn start(
        pin: Pin,
        program: &Program,
        addr: SocketAddr,
        server: &str,
        session_timeout: Duration,
    ) -> Result<Self, Error> {
        let java = servers::program("java")?;
        let mut command = pin.generator(&java);
        command
            .args(["-XX:+UseSerialGC", "-Xms256m", "-Xmx512m"])
            // The CPU time of a compiler's thread that ends would be lost.
            .arg("-XX:-UseDynamicNumberOfCompilerThreads")
            .args(["-cp", &program.class_path, "CuratorContest"])
            .arg(addr.to_string())
            .arg(session_timeout.as_millis().to_string());
        let mut curator = Self {
            java: Java::start(command, format!("Curator on {server}"))?,
            clock: Clock::default(),
        };
        curator.compare_clocks()?;
        Ok(curator)
    }

    /// As tables name it: `Curator on ZooKeeper 3.8.0 kindest`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.java.name()
    }

    /// By how much all times of this process may be wrong at most, in nanoseconds.
    #[must_use]
    pub const fn clock_error_ns(&self) -> u64 {
        self.clock.error_ns
    }

    /// Holds a contest. Returns what each contender did, and the CPU time of the Java process from
    /// the start to the last event, in nanoseconds.
    ///
    /// A contender whose operation failed with an unknown outcome leaves the contest; the next
    /// order gives it a new session.
    ///
    /// # Errors
    /// When the contest cannot be held, when a session ends in it, or when Java ends.
    pub fn contest(&mut self, order: &Order) -> Result<(Vec<Recorder>, u64), Error> {
        self.java.order(&order.line()?)?;
        let limit = order.limit + ANSWER_LIMIT;
        let deadline = Deadline::new(limit, format!("contest of {}", self.name()));
        self.history(order, &deadline)
    }

    /// Connects the client of [`hold`](Self::hold) and [`release`](Self::release), and returns its
    /// session.
    ///
    /// # Errors
    /// When it cannot, or Java ends.
    pub fn connect(&mut self) -> Result<String, Error> {
        self.java.order("connect")?;
        let deadline = self.deadline(Duration::ZERO, "connect");
        let (_, session) = self.answer(&["connected"], &deadline)?;
        Ok(format!("0x{session}"))
    }

    /// Takes the mutex and keeps it until [`release`](Self::release) or the end of the process.
    /// Whether it was got within the limit; zero means to try once.
    ///
    /// # Errors
    /// When one is held already, the server does not answer, or Java ends.
    pub fn hold(&mut self, resource: &str, limit: Duration) -> Result<bool, Error> {
        let path = order::path(resource)?;
        *java::lock(self.java.belief()) = Belief::Held;
        self.java
            .order(&format!("hold path={path} limit_ms={}", limit.as_millis()))?;
        let deadline = self.deadline(limit, "hold");
        let (word, _) = self.answer(&["held", "refused"], &deadline)?;
        Ok(word == "held")
    }

    /// Gives back what [`hold`](Self::hold) took. Returns when that was done, as [`now_ns`] says
    /// it.
    ///
    /// # Errors
    /// When nothing is held, the server does not answer, or Java ends.
    pub fn release(&mut self) -> Result<u64, Error> {
        self.java.order("release")?;
        let deadline = self.deadline(Duration::ZERO, "release");
        let (_, at) = self.answer(&["released"], &deadline)?;
        Ok(self.clock.own_ns(self.number(&at)?))
    }

    /// What Curator has said of the client's connection since the last [`hold`](Self::hold).
    pub fn belief(&self) -> Arc<Mutex<Belief>> {
        Arc::clone(self.java.belief())
    }

    fn compare_clocks(&mut self) -> Result<(), Error> {
        let mut least = i64::MIN;
        let mut most = i64::MAX;
        for _ in 0..CLOCK_SAMPLES {
            let deadline = self.deadline(Duration::ZERO, "clock");
            let before = now_ns();
            self.java.order("clock")?;
            let (_, answer) = self.answer(&["clock"], &deadline)?;
            let after = now_ns();
            let there = self.number(&answer)?;
            least = least.max(there - signed(after));
            most = most.min(there - signed(before));
        }
        self.clock = Clock::between(least, most).ok_or_else(|| {
            Error::Unexpected(format!(
                "clock of java runs apart from the own one: ahead by {least} ns at least and \
                 {most} ns at most"
            ))
        })?;
        Ok(())
    }

    fn history(
        &mut self,
        order: &Order,
        deadline: &Deadline,
    ) -> Result<(Vec<Recorder>, u64), Error> {
        let (_, answer) = self.answer(&["history"], deadline)?;
        let events = self.number(&answer)?;
        let events_max = order.events_max();
        if !(0..=events_max).contains(&events) {
            return Err(self.java.failed(&format!(
                "{events} events where {events_max} are possible at most"
            )));
        }
        let mut all = Vec::new();
        for contender in 0..order.contenders {
            let (_, answer) = self.answer(&["session"], deadline)?;
            let session = answer.split(' ').nth(1).unwrap_or_default();
            all.push(Recorder::new(contender, format!("0x{session}")));
        }
        let mut steps = vec![b'R'; all.len()];
        for _ in 0..events {
            let line = self.java.line(deadline)?;
            let (index, at, code) = event(&line).ok_or_else(|| self.unexpected(&line))?;
            let step = steps.get_mut(index).ok_or_else(|| self.unexpected(&line))?;
            let what = what(*step, code).ok_or_else(|| self.unexpected(&line))?;
            *step = code;
            all[index].add(self.clock.own_ns(at), what);
        }
        let (_, answer) = self.answer(&["end"], deadline)?;
        let cpu_ns = u64::try_from(self.number(&answer)?).unwrap_or(0);
        Ok((all, cpu_ns))
    }

    fn deadline(&self, more: Duration, order: &str) -> Deadline {
        let what = format!("answer of {} to the order {order}", self.name());
        Deadline::new(ANSWER_LIMIT + more, what)
    }

    /// The next line, which begins with one of these words: that, and what follows.
    fn answer(&mut self, words: &[&str], deadline: &Deadline) -> Result<(String, String), Error> {
        let line = self.java.line(deadline)?;
        match line.split_once(' ') {
            Some((word, rest)) if words.contains(&word) => Ok((word.to_owned(), rest.to_owned())),
            _ => Err(self.unexpected(&line)),
        }
    }

    fn number(&self, text: &str) -> Result<i64, Error> {
        text.parse()
            .map_err(|_| self.java.failed(&format!("answer {text:?} is no number")))
    }

    fn unexpected(&self, line: &str) -> Error {
        match line.strip_prefix("error ") {
            Some(text) => self.java.failed(text),
            None => self.java.failed(&format!("unexpected answer {line:?}")),
        }
    }
}
