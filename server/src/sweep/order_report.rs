//! What a sweep tells of orders: which were tried, and the order of a failure with a column for each client.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write as _},
};

use minikeeper_core::journal::entry::{JournalEntry, Occurrence};
use minikeeper_protocol::SessionId;

use crate::{
    orders::{
        choice::{Choice, ChoicePoint, RequestOrder},
        fault::SweepFault,
        run::OrderSeen,
    },
    sweep::order_plan::{CONSTRAINTS, samples_needed},
};

/// The maximum number of lines of an order that a text shows.
const LINES_MAX: usize = 200;

/// The width of the column of a client. Unit: characters.
const COLUMN: usize = 44;

/// The width of a column if there are more than two clients.
const NARROW: usize = 30;

/// Which orders a sweep has tried.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct OrderCoverage {
    /// The number of clients of the run with the most.
    pub clients: u64,
    /// The number of requests of the longest run.
    pub requests: u64,
    /// Every order with at most so many unforced changes was tried, or an equivalent one; `None`
    /// if not even all without a change were.
    pub changes_done: Option<u32>,
    /// Whether every order was tried, or an equivalent one.
    pub is_all: bool,
    /// The number of orders tried of which no two are equivalent.
    pub different: u64,
    /// The number of orders tried with more changes than all of them were to be tried with.
    pub more: u64,
    /// The number of random orders.
    pub sampled: u64,
    /// The number of those that show an error with a known chance.
    pub sampled_with_chance: u64,
    /// The number of orders that could not be followed, so that nothing is known of them.
    pub not_followed: u64,
    /// Why the first of them could not be followed, with the order.
    pub not_followed_why: Option<String>,
    /// The number of requests that came after the choice that they should have been part of.
    pub late: u64,
}

impl OrderCoverage {
    /// Says which orders were tried, in a phrase.
    #[must_use]
    pub fn phrase(&self) -> String {
        let mut phrase = match self.changes_done {
            _ if self.is_all => "all orders".to_owned(),
            None => "some orders".to_owned(),
            Some(0) => "all orders without an unforced change".to_owned(),
            Some(1) => "all orders with at most 1 unforced change".to_owned(),
            Some(changes) => {
                format!("all orders with at most {changes} unforced changes")
            }
        };
        if self.more > 0 && !self.is_all {
            let _ = write!(phrase, ", {} with more", self.more);
        }
        if self.sampled > 0 && !self.is_all {
            let _ = write!(
                phrase,
                ", and {} random ones ({} of them show an error that needs {CONSTRAINTS} constraints with a chance of \
                 at least 1 in {} each)",
                self.sampled,
                self.sampled_with_chance,
                samples_needed(self)
            );
        }
        phrase
    }
}

/// The order of a failed run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FailedOrder {
    pub(crate) order: RequestOrder,
    /// The number of unforced changes.
    pub(crate) changes: u32,
    pub(crate) lines: Vec<OrderLine>,
    /// The requests that the test passes with if they are swapped, as steps.
    swap: Option<(usize, usize)>,
}

/// A request or an event of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OrderLine {
    pub(crate) client: usize,
    /// Which step of the run it is; `None` for an event, and for what does not wait.
    pub(crate) step: Option<usize>,
    pub(crate) text: String,
}

impl FailedOrder {
    pub(crate) fn new(seen: &OrderSeen, entries: &[JournalEntry], changes: u32) -> Self {
        let clients = seen.sessions.iter().enumerate();
        let clients = clients.map(|(client, session)| (*session, client));
        let clients: BTreeMap<SessionId, usize> = clients.collect();
        let mut steps = seen.steps.iter().enumerate().peekable();
        let mut lines = Vec::new();
        for entry in entries {
            // What follows passed when the test was over.
            if steps.peek().is_none() && matches!(entry.what, Occurrence::Request(_)) {
                break;
            }
            let client = entry.session.and_then(|session| clients.get(&session));
            let Some(client) = client.copied() else {
                continue;
            };
            let step = match &entry.what {
                Occurrence::Request(request) => {
                    let is_it = |(_, step): &(usize, &ChoicePoint)| {
                        step.picked().client == client && step.picked().op == request.op
                    };
                    steps.next_if(is_it).map(|(place, _)| place)
                }
                // A request that is lost has no line of its own.
                Occurrence::Fault { .. } => {
                    let is_it = |(_, step): &(usize, &ChoicePoint)| {
                        step.picked().client == client && step.is_lost()
                    };
                    steps.next_if(is_it).map(|(place, _)| place)
                }
                Occurrence::Event { .. }
                | Occurrence::Deleted { .. }
                | Occurrence::SessionEnded { expired: true } => None,
                _ => continue,
            };
            if step.is_none() && entry.op() == Some("ping") {
                continue;
            }
            lines.push(OrderLine {
                client,
                step,
                text: entry.what.to_string(),
            });
        }
        Self {
            order: RequestOrder::of(&seen.steps),
            changes,
            lines,
            swap: None,
        }
    }

    /// Says what is done in its run, in a sentence.
    pub(crate) fn sentence(&self) -> String {
        let sentence = "its requests are served in this order";
        let s = if self.changes == 1 { "" } else { "s" };
        let marks = self.order.marks().iter().map(|(step, mark)| {
            let (request, client) = (step + 1, mark.client + 1);
            match mark.fault {
                SweepFault::EventLate => {
                    format!("the event for client {client} that request {request} causes is late")
                }
                fault => format!("{} at request {request}", fault.name()),
            }
        });
        let marks: Vec<_> = marks.collect();
        match (self.changes, &marks[..]) {
            (0, _) => sentence.to_owned(),
            (changes, []) => format!("{sentence}, with {changes} unforced change{s}"),
            (changes, marks) => {
                let marks = marks.join(", ");
                format!("{sentence}, with {changes} unforced change{s} ({marks})")
            }
        }
    }

    pub(crate) const fn set_swap(&mut self, pair: (usize, usize)) {
        self.swap = Some(pair);
    }

    fn line_of(&self, step: usize) -> Option<&OrderLine> {
        self.lines.iter().find(|line| line.step == Some(step))
    }

    /// Says who deleted a znode before a step.
    fn deletion_of(&self, path: &str, before: usize) -> Option<String> {
        let end = self
            .lines
            .iter()
            .position(|line| line.step == Some(before))?;
        let mut step = None;
        let mut found = None;
        for line in &self.lines[..end] {
            step = line.step.or(step);
            let mut words = line.text.split(' ');
            let is_deletion = matches!(words.next(), Some("delete" | "deleted"));
            if is_deletion && words.next() == Some(path) && !line.text.ends_with(NO_NODE) {
                found = Some((line.client + 1, step.unwrap_or(0) + 1));
            }
        }
        let (client, step) = found?;
        Some(format!(
            "it was deleted with request {step}, and was of client {client}"
        ))
    }

    /// Returns the mark of a line: the two requests that must be swapped have one.
    fn mark(&self, line: &OrderLine) -> char {
        match self.swap {
            Some((one, other)) if line.step == Some(one) || line.step == Some(other) => '*',
            _ => ' ',
        }
    }

    /// Writes a column for each client, and a line for each request.
    pub(crate) fn write(&self, f: &mut String) -> fmt::Result {
        let clients = self.lines.iter().map(|line| line.client + 1).max();
        let clients = clients.unwrap_or(0);
        let width = if clients > 2 { NARROW } else { COLUMN };
        write!(f, "       ")?;
        for client in 1..=clients {
            write!(f, "{:width$} ", format!("client {client}"))?;
        }
        *f = f.trim_end().to_owned() + "\n";
        let skipped = self.lines.len().saturating_sub(LINES_MAX);
        if skipped > 0 {
            writeln!(f, "       ({skipped} lines left out)")?;
        }
        for line in &self.lines[skipped..] {
            let number = line
                .step
                .map_or(String::new(), |step| (step + 1).to_string());
            let space = " ".repeat(line.client * (width + 1));
            writeln!(f, "{} {number:>4} {space}{}", self.mark(line), line.text)?;
        }
        if let Some((one, other)) = self.swap {
            writeln!(
                f,
                "The test passes if request {} comes before request {}.",
                other + 1,
                one + 1
            )?;
        }
        Ok(())
    }
}

/// Says of each client which change it may have missed: one between a read and the read that watched, or a
/// deletion before it asked whether a znode exists.
pub(crate) fn missed(order: Option<&FailedOrder>, steps: &[ChoicePoint]) -> Vec<String> {
    let clients = steps.iter().map(|step| step.picked().client);
    let clients: BTreeSet<_> = clients.collect();
    let missed = clients.into_iter().filter_map(|client| {
        let own = steps.iter().map(ChoicePoint::picked).enumerate();
        let mut own = own.filter(|(_, picked)| picked.client == client).rev();
        let (watched_at, watched) = own.next()?;
        let path = watched.path.as_deref()?;
        if !READS.contains(&watched.op) {
            return None;
        }
        let is_same = |picked: &Choice| picked.path.as_deref() == Some(path);
        let line = order.and_then(|order| order.line_of(watched_at));
        if watched.op == "exists" && line.is_some_and(|line| line.text.ends_with(NO_NODE)) {
            let gone = order?.deletion_of(path, watched_at)?;
            return Some(format!(
                "client {} waits for a change of {path}, which had gone when it asked with request {}: {gone}",
                client + 1,
                watched_at + 1
            ));
        }
        let (read_at, _) =
            own.find(|(_, picked)| READS.contains(&picked.op) && is_same(picked))?;
        let is_list = watched.op.starts_with("getChildren");
        let changes = |picked: &Choice| {
            let changed = picked.path.as_deref().unwrap_or_default();
            let parent = changed.rsplit_once('/').map_or("", |(parent, _)| parent);
            let parent = if parent.is_empty() { "/" } else { parent };
            CHANGES.contains(&picked.op) && if is_list { parent == path } else { changed == path }
        };
        let between = steps.iter().map(ChoicePoint::picked).enumerate();
        let mut between = between.take(watched_at).skip(read_at + 1);
        let (changed_at, change) =
            between.find(|(_, picked)| picked.client != client && changes(picked))?;
        Some(format!(
            "client {} may have missed a change: it read {path} with request {}, client {} changed that with request {}, \
             and client {} set a watch only with request {}",
            client + 1,
            read_at + 1,
            change.client + 1,
            changed_at + 1,
            client + 1,
            watched_at + 1
        ))
    });
    missed.collect()
}

/// The end of the line of a request that found no znode.
const NO_NODE: &str = "NONODE";

/// The operations that may leave a watch.
const READS: [&str; 4] = ["exists", "getData", "getChildren", "getChildren2"];

/// The operations that fire watches of their path or of its parent.
const CHANGES: [&str; 8] = [
    "create",
    "create2",
    "createContainer",
    "createTTL",
    "delete",
    "setData",
    "setACL",
    "deleteContainer",
];
