//! Prints locks for people: deadlocks first, then a block for each lock.

use std::{fmt, time::Duration};

use minikeeper_protocol::SessionId;

use crate::locks::{Contender, Deadlock, LockHistory, LockInfo, Locks, Spread};

/// The maximum number of waiters that the text of a lock lists.
const LISTED_MAX: usize = 20;

/// The maximum length of data in the text. Unit: characters.
const DATA_CHARS_MAX: usize = 40;

impl fmt::Display for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for deadlock in &self.deadlocks {
            writeln!(f, "{deadlock}")?;
        }
        if self.locks.is_empty() {
            writeln!(f, "no locks")?;
        }
        for (number, lock) in self.locks.iter().enumerate() {
            if number > 0 || !self.deadlocks.is_empty() {
                writeln!(f)?;
            }
            lock.fmt(f)?;
        }
        if self.is_truncated {
            writeln!(f, "\nthere are more locks or contenders than listed")?;
        }
        Ok(())
    }
}

/// Prints the lock in several lines, each with a line feed at its end.
impl fmt::Display for LockInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.name().replace('_', " ");
        write!(f, "{kind} {}", self.path.escape_debug())?;
        if let Some(family) = self.family {
            write!(f, " ({family})")?;
        }
        if let Some(max) = self.max_leases {
            write!(f, ", {max} leases")?;
        }
        writeln!(f)?;
        if self.holders.is_empty() {
            writeln!(f, "  no holder")?;
        }
        let listed = |contenders: &[Contender]| contenders.len().min(LISTED_MAX);
        for holder in &self.holders[..listed(&self.holders)] {
            writeln!(f, "  held by   {holder}")?;
        }
        more(f, self.holders.len(), "holders")?;
        for (number, waiter) in self.waiters.iter().take(LISTED_MAX).enumerate() {
            writeln!(f, "  waits {:<3} {waiter}", number + 1)?;
        }
        more(f, self.waiters.len(), "waiters")?;
        for warning in self.warnings.iter().take(LISTED_MAX) {
            writeln!(f, "  warning   {warning}")?;
        }
        more(f, self.warnings.len(), "warnings")?;
        match &self.history {
            Some(history) if history.hand_overs + history.gave_up > 0 => {
                writeln!(f, "  so far    {history}")
            }
            _ => Ok(()),
        }
    }
}

/// Prints the history in one line.
impl fmt::Display for LockHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, sessions) = (self.acquisitions(), self.sessions.len());
        write!(f, "acquired {count} times by {sessions} sessions")?;
        if let Some(fairness) = self.fairness() {
            write!(f, " (fairness {fairness:.2})")?;
        }
        if let Some(waits) = self.waits {
            write!(f, ", waited {waits}")?;
        }
        write!(f, ", handed over {} times", self.hand_overs)?;
        if let Some(times) = self.hand_over_times {
            write!(f, " in {times}")?;
        }
        match self.gave_up {
            0 => Ok(()),
            count => write!(f, ", {count} gave up"),
        }
    }
}

/// Prints the median, and the shortest and the longest time.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, max) = (Age(self.min), Age(self.max));
        write!(f, "{} ({min} to {max})", Age(self.median))
    }
}

fn more(f: &mut fmt::Formatter<'_>, total: usize, what: &str) -> fmt::Result {
    match total.saturating_sub(LISTED_MAX) {
        0 => Ok(()),
        left => writeln!(f, "  and {left} more {what}"),
    }
}

/// Prints the contender in one line.
impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.session {
            Some(session) => write!(f, "session {session}")?,
            None => write!(f, "no session")?,
        }
        if let Some(address) = self.address {
            write!(f, " {address}")?;
        }
        write!(f, ", {}", Age(self.age))?;
        if self.is_reader {
            write!(f, ", reader")?;
        }
        if let Some(data) = self.data.as_deref().filter(|data| !data.is_empty()) {
            let text = match std::str::from_utf8(data) {
                Ok(text) => text.escape_debug().to_string(),
                Err(_) => data.escape_ascii().to_string(),
            };
            let start: String = text.chars().take(DATA_CHARS_MAX).collect();
            let is_cut = start.len() < text.len() || data.len() < self.data_length;
            write!(f, ", \"{start}{}\"", if is_cut { "..." } else { "" })?;
        }
        let name = self.path.rsplit('/').next().unwrap_or_default();
        write!(f, ", {}", name.escape_debug())
    }
}

/// Prints a sentence for each step, on one line.
impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = |session: SessionId| {
            let step = self.cycle.iter().find(|step| step.session == session);
            step.and_then(|step| step.address)
        };
        write!(f, "deadlock: ")?;
        for (number, step) in self.cycle.iter().take(LISTED_MAX).enumerate() {
            if number > 0 {
                write!(f, "; ")?;
            }
            write!(f, "session {}", step.session)?;
            if let Some(address) = step.address {
                write!(f, " ({address})")?;
            }
            write!(f, " waits for {}, ", step.lock.escape_debug())?;
            let (before, after) = match step.is_held {
                true => ("which session", "holds"),
                false => ("where session", "is ahead"),
            };
            write!(f, "{before} {}", step.waits_for)?;
            if let Some(address) = address(step.waits_for) {
                write!(f, " ({address})")?;
            }
            write!(f, " {after}")?;
        }
        match self.cycle.len().saturating_sub(LISTED_MAX) {
            0 => Ok(()),
            left => write!(f, "; and {left} more steps"),
        }
    }
}

/// A time span in the unit that fits.
struct Age(Duration);

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ms, seconds) = (self.0.as_millis(), self.0.as_secs());
        match seconds {
            0 => write!(f, "{ms} ms"),
            1..60 => write!(f, "{}.{} s", seconds, ms % 1_000 / 100),
            60..3_600 => write!(f, "{} min {} s", seconds / 60, seconds % 60),
            _ => write!(f, "{} h {} min", seconds / 3_600, seconds / 60 % 60),
        }
    }
}
