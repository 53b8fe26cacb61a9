//! Apache Curator's locks, in Java processes.
//!
//! Controlling Java call by call would measure the pipe in between. So each contestant has one
//! process for a run, which takes orders and replies to each with a whole history (`java/curator/`
//! defines the format). Its contenders are threads, each with its own client and session, kept
//! between orders. Where milliseconds matter but microseconds do not, each contender is a separate
//! process: [`CuratorLock`].
//!
//! *Clocks.* `System.nanoTime()` and [`now_ns`] count the same nanoseconds from different zeros.
//! The difference is found when the process starts: its clock is read [`CLOCK_SAMPLES`] times, each
//! between two readings of this process's clock, which bound the difference. The remaining error,
//! [`Curator::clock_error_ns`], is at most half of the fastest round trip through the pipe: some
//! tens of microseconds. It shifts all times of the process by the same amount, so intervals within
//! one history have no error.

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

/// The session timeout to request by default.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// How often the clocks are compared.
pub const CLOCK_SAMPLES: u32 = 64;

/// How long Java may take to start, to connect all clients, or to reply.
const REPLY_LIMIT: Duration = Duration::from_secs(60);

/// A Java process with contenders for Curator's locks; ended when dropped.
#[derive(Debug)]
pub struct Curator {
    java: Java,
    clock: Clock,
}

impl Curator {
    /// Starts one, placed like the load generator, for the server with this name and address.
    ///
    /// # Errors
    /// If Java is missing (the text says how to install it), or does not reply.
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
            // The CPU time of a compiler thread would be lost when the thread ends.
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

    /// Its name in tables: `Curator on ZooKeeper 3.8.0 kindest`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.java.name()
    }

    /// The largest possible error of all times of this process, in nanoseconds.
    #[must_use]
    pub const fn clock_error_ns(&self) -> u64 {
        self.clock.error_ns
    }

    /// Runs a contest. Returns the events of each contender, and the CPU time of the Java process
    /// from the start to the last event, in nanoseconds.
    ///
    /// A contender whose operation failed with an unknown outcome leaves the contest; the next
    /// order gives it a new session.
    ///
    /// # Errors
    /// If the contest cannot be run, a session ends in it, or Java ends.
    pub fn contest(&mut self, order: &Order) -> Result<(Vec<Recorder>, u64), Error> {
        self.java.order(&order.line()?)?;
        let limit = order.limit + REPLY_LIMIT;
        let deadline = Deadline::new(limit, format!("contest of {}", self.name()));
        self.history(order, &deadline)
    }

    /// Connects the client of [`hold`](Self::hold) and [`release`](Self::release), and returns its
    /// session.
    ///
    /// # Errors
    /// If it cannot connect, or Java ends.
    pub fn connect(&mut self) -> Result<String, Error> {
        self.java.order("connect")?;
        let deadline = self.deadline(Duration::ZERO, "connect");
        let (_, session) = self.reply(&["connected"], &deadline)?;
        Ok(format!("0x{session}"))
    }

    /// Acquires the mutex and keeps it until [`release`](Self::release) or the end of the process.
    /// Returns whether this succeeded within the limit; zero means one try.
    ///
    /// # Errors
    /// If one is already held, the server does not reply, or Java ends.
    pub fn hold(&mut self, resource: &str, limit: Duration) -> Result<bool, Error> {
        let path = order::path(resource)?;
        *java::lock(self.java.belief()) = Belief::Held;
        self.java
            .order(&format!("hold path={path} limit_ms={}", limit.as_millis()))?;
        let deadline = self.deadline(limit, "hold");
        let (word, _) = self.reply(&["held", "refused"], &deadline)?;
        Ok(word == "held")
    }

    /// Releases the lock acquired by [`hold`](Self::hold). Returns the time of that by [`now_ns`].
    ///
    /// # Errors
    /// If nothing is held, the server does not reply, or Java ends.
    pub fn release(&mut self) -> Result<u64, Error> {
        self.java.order("release")?;
        let deadline = self.deadline(Duration::ZERO, "release");
        let (_, at) = self.reply(&["released"], &deadline)?;
        Ok(self.clock.own_ns(self.number(&at)?))
    }

    /// Curator's reports on the client's connection since the last [`hold`](Self::hold).
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
            let (_, reply) = self.reply(&["clock"], &deadline)?;
            let after = now_ns();
            let there = self.number(&reply)?;
            least = least.max(there - signed(after));
            most = most.min(there - signed(before));
        }
        self.clock = Clock::between(least, most).ok_or_else(|| {
            Error::Unexpected(format!(
                "java's clock does not agree with this process's clock: ahead by at least {least} ns and \
                 at most {most} ns"
            ))
        })?;
        Ok(())
    }

    fn history(
        &mut self,
        order: &Order,
        deadline: &Deadline,
    ) -> Result<(Vec<Recorder>, u64), Error> {
        let (_, reply) = self.reply(&["history"], deadline)?;
        let events = self.number(&reply)?;
        let events_max = order.events_max();
        if !(0..=events_max).contains(&events) {
            return Err(self.java.failed(&format!(
                "{events} events, but at most {events_max} are possible"
            )));
        }
        let mut all = Vec::new();
        for contender in 0..order.contenders {
            let (_, reply) = self.reply(&["session"], deadline)?;
            let session = reply.split(' ').nth(1).unwrap_or_default();
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
        let (_, reply) = self.reply(&["end"], deadline)?;
        let cpu_ns = u64::try_from(self.number(&reply)?).unwrap_or(0);
        Ok((all, cpu_ns))
    }

    fn deadline(&self, more: Duration, order: &str) -> Deadline {
        let what = format!("reply of {} to the order {order}", self.name());
        Deadline::new(REPLY_LIMIT + more, what)
    }

    /// Reads the next line, which must begin with one of these words; returns the word and the
    /// rest.
    fn reply(&mut self, words: &[&str], deadline: &Deadline) -> Result<(String, String), Error> {
        let line = self.java.line(deadline)?;
        match line.split_once(' ') {
            Some((word, rest)) if words.contains(&word) => Ok((word.to_owned(), rest.to_owned())),
            _ => Err(self.unexpected(&line)),
        }
    }

    fn number(&self, text: &str) -> Result<i64, Error> {
        text.parse()
            .map_err(|_| self.java.failed(&format!("reply {text:?} is not a number")))
    }

    fn unexpected(&self, line: &str) -> Error {
        match line.strip_prefix("error ") {
            Some(text) => self.java.failed(text),
            None => self.java.failed(&format!("unexpected reply {line:?}")),
        }
    }
}
