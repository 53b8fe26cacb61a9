//! Prints a story for people: locks, sessions, faults, known mistakes, the last requests.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

use minikeeper_core::{
    faults::FaultInfo,
    journal::entry::{JournalEntry, Occurrence},
    state::session_info::SessionInfo,
};

use crate::{
    locks::LockInfo,
    story::{Story, cut},
};

/// The maximum number of lines of each section. Further ones are counted.
const LOCK_LINES_MAX: usize = 24;
const DEADLOCKS_MAX: usize = 3;
const SESSIONS_MAX: usize = 10;
const FAULTS_MAX: usize = 6;
const MISTAKES_MAX: usize = 3;
const ENTRIES_MAX: usize = 50;

/// The maximum length of a line, and of the line of a deadlock. Unit: characters.
const LINE_CHARS_MAX: usize = 200;
const DEADLOCK_CHARS_MAX: usize = 600;

impl Display for Story {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let of = match self.title.as_str() {
            "" => String::new(),
            title => format!(" of {}", title.escape_debug()),
        };
        let ms = self.at.elapsed.as_millis();
        let frozen = if self.at.is_frozen { ", frozen" } else { "" };
        let server = &self.server;
        writeln!(f, "minikeeper: story{of}")?;
        writeln!(
            f,
            "server {server}, at {}.{:03} s{frozen}",
            ms / 1_000,
            ms % 1_000
        )?;
        self.locks(f)?;
        section(f, "session", &self.sessions, SESSIONS_MAX, session)?;
        let mut faults: Vec<_> = self.faults.iter().map(fault).collect();
        faults.extend(self.removed_faults());
        section(f, "fault", &faults, FAULTS_MAX, String::clone)?;
        self.advice_lines(f)?;
        self.entries(f)
    }
}

impl Story {
    fn locks(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for deadlock in self.locks.deadlocks.iter().take(DEADLOCKS_MAX) {
            writeln!(f, "\n{}", cut(&deadlock.to_string(), DEADLOCK_CHARS_MAX))?;
        }
        if let more @ 1.. = self.locks.deadlocks.len().saturating_sub(DEADLOCKS_MAX) {
            writeln!(f, "and {more} more deadlocks")?;
        }
        if self.locks.locks.is_empty() {
            writeln!(f, "\nno locks")?;
        }
        // Queues say more than locks without a waiter.
        let (waited, free): (Vec<_>, Vec<_>) =
            (self.locks.locks.iter()).partition(|lock: &&LockInfo| !lock.waiters.is_empty());
        let (mut lines, mut left) = (0, 0);
        for lock in waited.into_iter().chain(free) {
            let block = lock.to_string();
            lines += block.lines().count();
            if lines > LOCK_LINES_MAX && lines > block.lines().count() {
                left += 1;
                continue;
            }
            writeln!(f)?;
            for line in block.lines().take(LOCK_LINES_MAX) {
                writeln!(f, "{}", cut(line, LINE_CHARS_MAX))?;
            }
            if let more @ 1.. = block.lines().count().saturating_sub(LOCK_LINES_MAX) {
                writeln!(f, "  and {more} more lines")?;
            }
        }
        match left {
            0 => Ok(()),
            left => writeln!(f, "\nand {left} more locks"),
        }
    }

    /// Prints the known mistakes, if there are any: a rule a line.
    fn advice_lines(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let advice = self.advice();
        let mut lines: Vec<(&str, String)> = Vec::new();
        for finding in &advice.findings {
            let name = finding.rule.name;
            if lines.last().is_none_or(|(last, _)| *last != name) {
                lines.push((name, format!("{name}: {finding}")));
            }
        }
        if lines.is_empty() {
            return Ok(());
        }
        section(f, "known mistake", &lines, MISTAKES_MAX, |(_, line)| {
            line.clone()
        })?;
        writeln!(f, "  why, and what to do: minikeeper advise, or the page")
    }

    /// Describes the faults that have acted and are removed, as the end of a scope does.
    fn removed_faults(&self) -> impl Iterator<Item = String> {
        let mut removed = BTreeMap::<u64, (u64, &Occurrence)>::new();
        for entry in &self.entries {
            if let Occurrence::Fault { fault, .. } = &entry.what
                && self.faults.iter().all(|info| info.id != *fault)
            {
                let hits = removed.get(fault).map_or(0, |(hits, _)| *hits);
                removed.insert(*fault, (hits + 1, &entry.what));
            }
        }
        let line = |(hits, last)| format!("{last}, acted {}, removed", times(hits));
        removed.into_values().map(line)
    }

    /// Prints the last entries. Successful pings say nothing, and there are many.
    fn entries(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.next == 0 {
            return writeln!(f, "\nno journal: journal_bytes is 0");
        }
        let shown: Vec<_> = self
            .entries
            .iter()
            .filter(|entry| !is_ping(entry))
            .collect();
        if shown.is_empty() {
            return writeln!(f, "\nno requests");
        }
        let last = &shown[shown.len().saturating_sub(ENTRIES_MAX)..];
        let is_all = last.len() == shown.len() && self.entries.len() as u64 == self.next - 1;
        let what = match is_all {
            true => "all requests and events".to_owned(),
            false => format!("the last {} requests and events", last.len()),
        };
        writeln!(f, "\n{what}, without pings:")?;
        for entry in last {
            writeln!(f, "{}", cut(&entry.to_string(), LINE_CHARS_MAX))?;
        }
        Ok(())
    }
}

/// Prints a list, one item a line.
fn section<T>(
    f: &mut Formatter<'_>,
    what: &str,
    items: &[T],
    max: usize,
    line: impl Fn(&T) -> String,
) -> fmt::Result {
    if items.is_empty() {
        return writeln!(f, "\nno {what}s");
    }
    writeln!(f, "\n{what}s:")?;
    for item in items.iter().take(max) {
        writeln!(f, "  {}", cut(&line(item), LINE_CHARS_MAX))?;
    }
    match items.len().saturating_sub(max) {
        0 => Ok(()),
        more => writeln!(f, "  and {more} more {what}s"),
    }
}

fn session(session: &SessionInfo) -> String {
    let mut line = session.id.to_string();
    if let Some(address) = session.address {
        line += &format!(" {address}");
    }
    line += match session.is_connected {
        true => " connected",
        false => " not connected",
    };
    if session.is_silenced {
        line += ", silenced";
    }
    let (left, timeout) = (
        session.timeout_left.as_millis(),
        session.timeout.as_millis(),
    );
    line += &format!(", expires in {left} of {timeout} ms");
    for (count, what) in [
        (session.ephemerals.len(), "ephemeral"),
        (session.watches.len(), "watch"),
    ] {
        let plural = match (count, what) {
            (1, _) => "",
            (_, "watch") => "es",
            _ => "s",
        };
        line += &format!(", {count} {what}{plural}");
    }
    if let Some(last) = session.last_operation {
        let ms = last.at.as_millis();
        line += &format!(", last {} at {}.{:03}", last.name, ms / 1_000, ms % 1_000);
    }
    line
}

fn fault(info: &FaultInfo) -> String {
    let FaultInfo {
        id, fault, hits, ..
    } = info;
    let held = match info.held {
        0 => String::new(),
        held => format!(", holds back {held}"),
    };
    let acted = times(*hits);
    format!(
        "fault {id} ({fault}): acted {acted}, matched {}{held}",
        info.matches
    )
}

fn times(count: u64) -> String {
    match count {
        1 => "1 time".to_owned(),
        count => format!("{count} times"),
    }
}

fn is_ping(entry: &JournalEntry) -> bool {
    matches!(&entry.what, Occurrence::Request(request) if request.op == "ping" && request.result() == "OK")
}
