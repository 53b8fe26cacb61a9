//! Contests of Apache Curator's `InterProcessMutex`, in a Java process.
//!
//! Java cannot be driven call by call from here without measuring the pipe between. So one process
//! a contestant lives through a run, takes orders and answers each with a whole history
//! (`java/CuratorContest.java` has the words). Its contenders are threads, each with a client and a
//! session of its own, which are kept from order to order.
//!
//! *Clocks.* `System.nanoTime()` and [`now_ns`] count the same nanoseconds from different zeros.
//! The difference is found when the process starts: each of [`CLOCK_SAMPLES`] times it is asked
//! between two readings of the own clock, and the difference must lie between what both allow.
//! What is left open, [`Curator::clock_error_ns`], is half of the fastest round trip through the
//! pipe or less: some tens of microseconds. It moves all times of the process by the same amount,
//! so intervals within one history have no error.

use std::{net::SocketAddr, path::Path, time::Duration};

use super::{Fairness, Promises};
use crate::{
    Error,
    clock::{Deadline, now_ns},
    history::Recorder,
    process::Pin,
    servers::{program, zookeeper},
};

mod java;
mod words;

use java::Java;
use words::{Clock, event, signed, what};

/// The session timeout to ask for where none is wanted in particular.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// How often the clocks are compared.
pub const CLOCK_SAMPLES: u32 = 64;

/// How long Java may take to compile and start, to connect all clients, or to say what it knows.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// What Curator needs; `zookeeper.jar` names the rest in its manifest. Without a logger of its own
/// the logging complains.
const JARS: [&str; 8] = [
    "curator-recipes",
    "curator-framework",
    "curator-client",
    "zookeeper",
    "zookeeper-jute",
    "guava",
    "slf4j-api",
    "slf4j-nop",
];

/// The jars of Debian's Curator, or the given class path after a look whether it is there.
///
/// # Errors
/// When a part of it does not exist; the text names it, and how to install Debian's.
pub fn curator_class_path(given: Option<&str>) -> Result<String, Error> {
    let Some(given) = given else {
        return zookeeper::class_path(Path::new(zookeeper::JARS), &JARS);
    };
    for part in given.split(':') {
        let place = part.strip_suffix("/*").unwrap_or(part);
        if !Path::new(place).exists() {
            return Err(Error::Setup(format!(
                "class path: {place:?} does not exist; name the jars of Curator and what they \
                 need, or leave the class path out and install Debian's with: \
                 benches/install-peers"
            )));
        }
    }
    Ok(given.to_owned())
}

/// What its authors say about the lock, on a server that keeps so much.
#[must_use]
pub const fn promises(durability: &'static str) -> Promises {
    Promises {
        fairness: Fairness::Fifo,
        durability,
        death: "session timeout",
        has_token: false,
    }
}

/// So many contenders take a lock again and again.
///
/// They start together. The first holder waits until the others stand in the queue. There are
/// exactly as many grants as wanted, unless the limit passes first; towards the end there are fewer
/// than all left in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// The lock's name, below `/bench`; without spaces.
    pub resource: String,
    /// How many.
    pub contenders: u32,
    /// Whether who gave the lock back asks again only when another has it.
    pub in_turn: bool,
    /// How long each holds it. Below 100 us it waits awake, above asleep.
    pub hold: Duration,
    /// How many grants there are, altogether.
    pub grants: u32,
    /// Nobody asks or waits longer; in whole milliseconds.
    pub limit: Duration,
}

/// A lock that is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hold {
    /// Whose it is.
    pub session: String,
    /// When acquire returned, as [`now_ns`] says it.
    pub at_ns: u64,
}

/// A Java process that contends with Curator; ended when dropped.
#[derive(Debug)]
pub struct Curator {
    java: Java,
    /// How the wait of [`wait`](Self::wait) ended, if that came before another answer.
    waited: Option<String>,
    clock: Clock,
}

impl Curator {
    /// Starts one, placed as a generator of load, against the server of this name and address.
    /// It takes a second or two: Java compiles the program each time.
    ///
    /// # Errors
    /// When Java is missing (the text says how to install it), or does not answer.
    pub fn start(
        pin: Pin,
        class_path: &str,
        addr: SocketAddr,
        server: &str,
        session_timeout: Duration,
    ) -> Result<Self, Error> {
        let java = program("java")?;
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/java/CuratorContest.java");
        let mut command = pin.generator(&java);
        command
            .args(["-XX:+UseSerialGC", "-Xms256m", "-Xmx512m"])
            // The CPU time of a compiler's thread that ends would be lost.
            .arg("-XX:-UseDynamicNumberOfCompilerThreads")
            .args(["-cp", class_path, source])
            .arg(addr.to_string())
            .arg(session_timeout.as_millis().to_string());
        let mut curator = Self {
            java: Java::start(command, format!("Curator on {server}"))?,
            waited: None,
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

    /// The Java process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.java.pid()
    }

    /// By how much all times of this process may be wrong at most, in nanoseconds.
    #[must_use]
    pub const fn clock_error_ns(&self) -> u64 {
        self.clock.error_ns
    }

    /// Holds a contest. Returns what each contender did, and the CPU time of the Java process from
    /// the start to the last event, in nanoseconds.
    ///
    /// A contender whose operation failed so that nobody can say what the server did leaves the
    /// contest; the next order gives it a new session.
    ///
    /// # Errors
    /// When the contest cannot be held, when a session ends in it, or when Java ends.
    pub fn contest(&mut self, order: &Order) -> Result<(Vec<Recorder>, u64), Error> {
        if order.contenders == 0 {
            return Err(Error::Setup(
                "contest of 0 contenders: it takes one at least".into(),
            ));
        }
        let path = path(&order.resource)?;
        self.java.order(&format!(
            "contest {path} {} {} {} {} {}",
            order.contenders,
            order.hold.as_nanos(),
            order.grants,
            order.limit.as_millis(),
            if order.in_turn && order.contenders > 1 {
                "turn"
            } else {
                "again"
            },
        ))?;
        let limit = order.limit + ANSWER_LIMIT;
        let deadline = Deadline::new(limit, format!("contest of {}", self.name()));
        self.history(order.contenders, order.grants, &deadline)
    }

    /// Lets one contender take the lock and give it back so many times. Returns what it did, and
    /// the CPU time as [`contest`](Self::contest) does.
    ///
    /// # Errors
    /// As [`contest`](Self::contest).
    pub fn cycle(&mut self, resource: &str, count: u32) -> Result<(Recorder, u64), Error> {
        let limit = ANSWER_LIMIT.as_millis();
        let path = path(resource)?;
        self.java.order(&format!("cycle {path} {count} {limit}"))?;
        let limit = 2 * ANSWER_LIMIT;
        let deadline = Deadline::new(limit, format!("{count} cycles of {}", self.name()));
        let (mut all, cpu_ns) = self.history(1, count, &deadline)?;
        let one = all.pop().expect("there is one contender");
        Ok((one, cpu_ns))
    }

    /// Takes the lock and keeps it until [`release`](Self::release) or the end of the process.
    ///
    /// # Errors
    /// When it is not got within the limit, or Java ends.
    pub fn hold(&mut self, resource: &str, limit: Duration) -> Result<Hold, Error> {
        let path = path(resource)?;
        self.java
            .order(&format!("hold {path} {}", limit.as_millis()))?;
        let answer = self.answer("held", &self.deadline(limit, "hold"))?;
        let (session, at) = answer.split_once(' ').unwrap_or_default();
        Ok(Hold {
            session: format!("0x{session}"),
            at_ns: self.clock.own_ns(self.number(at)?),
        })
    }

    /// Gives back what [`hold`](Self::hold) took. Returns when that was done.
    ///
    /// # Errors
    /// When nothing is held, the server does not answer, or Java ends.
    pub fn release(&mut self) -> Result<u64, Error> {
        self.java.order("release")?;
        let answer = self.answer("released", &self.deadline(Duration::ZERO, "release"))?;
        Ok(self.clock.own_ns(self.number(&answer)?))
    }

    /// Begins to wait for the lock with a second client, and returns its session.
    /// [`granted`](Self::granted) tells what became of it. What it gets it gives back at once.
    ///
    /// It calls acquire when this returns; it need not stand in the queue yet.
    ///
    /// # Errors
    /// When no session is granted, or Java ends.
    pub fn wait(&mut self, resource: &str, limit: Duration) -> Result<String, Error> {
        self.waited = None;
        let path = path(resource)?;
        self.java
            .order(&format!("wait {path} {}", limit.as_millis()))?;
        let answer = self.answer("asked", &self.deadline(Duration::ZERO, "wait"))?;
        let session = answer.split(' ').next().unwrap_or_default();
        Ok(format!("0x{session}"))
    }

    /// When the lock was granted to who [waits](Self::wait); `None` if it gave up.
    ///
    /// # Errors
    /// When neither happens within this time, the wait failed, or Java ends.
    pub fn granted(&mut self, within: Duration) -> Result<Option<u64>, Error> {
        let deadline = Deadline::new(within, format!("end of a wait of {}", self.name()));
        let line = match self.waited.take() {
            Some(line) => line,
            None => self.java.line(&deadline)?,
        };
        match line.split_once(' ') {
            Some(("granted", at)) => Ok(Some(self.clock.own_ns(self.number(at)?))),
            Some(("refused", _)) => Ok(None),
            _ => Err(self.unexpected(&line)),
        }
    }

    /// Ends the process in the middle of what it does, as a crash would (SIGKILL). Returns the time
    /// just before.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub fn kill(&mut self) -> Result<u64, Error> {
        let at_ns = now_ns();
        self.java.kill()?;
        Ok(at_ns)
    }

    fn compare_clocks(&mut self) -> Result<(), Error> {
        let mut least = i64::MIN;
        let mut most = i64::MAX;
        for _ in 0..CLOCK_SAMPLES {
            let deadline = self.deadline(Duration::ZERO, "clock");
            let before = now_ns();
            self.java.order("clock")?;
            let answer = self.answer("clock", &deadline)?;
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
        contenders: u32,
        grants: u32,
        deadline: &Deadline,
    ) -> Result<(Vec<Recorder>, u64), Error> {
        let answer = self.answer("history", deadline)?;
        let events = self.number(&answer)?;
        // Four a grant, and two more of each who asked in vain.
        let events_max = 4 * i64::from(grants) + 2 * i64::from(contenders);
        if !(0..=events_max).contains(&events) {
            return Err(self.java.failed(&format!(
                "{events} events where {events_max} are possible at most"
            )));
        }
        let mut all = Vec::new();
        for contender in 0..contenders {
            let answer = self.answer("session", deadline)?;
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
        let answer = self.answer("end", deadline)?;
        let cpu_ns = u64::try_from(self.number(&answer)?).unwrap_or(0);
        Ok((all, cpu_ns))
    }

    fn deadline(&self, more: Duration, order: &str) -> Deadline {
        let what = format!("answer of {} to the order {order}", self.name());
        Deadline::new(ANSWER_LIMIT + more, what)
    }

    /// What follows this word in the next line but those of a wait that ends meanwhile.
    fn answer(&mut self, word: &str, deadline: &Deadline) -> Result<String, Error> {
        loop {
            let line = self.java.line(deadline)?;
            match line.split_once(' ') {
                Some((first, rest)) if first == word => return Ok(rest.to_owned()),
                Some(("granted" | "refused", _)) if self.waited.is_none() => {
                    self.waited = Some(line);
                }
                _ => return Err(self.unexpected(&line)),
            }
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

/// Where this lock is; orders are split at spaces.
fn path(resource: &str) -> Result<String, Error> {
    if resource.is_empty() || resource.contains(char::is_whitespace) {
        return Err(Error::Setup(format!(
            "name {resource:?} of a lock: it must have letters and no spaces"
        )));
    }
    Ok(format!("/bench/{resource}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_would_break_an_order_is_refused() {
        assert_eq!(path("lock-1").unwrap(), "/bench/lock-1");
        for name in ["", "a lock", "lock\nrelease"] {
            assert!(path(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn class_path_that_is_not_there_is_named_with_what_installs_one() {
        let error = curator_class_path(Some("/nowhere/jars/*")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("\"/nowhere/jars\""), "{text}");
        assert!(text.contains("benches/install-peers"), "{text}");
    }
}
