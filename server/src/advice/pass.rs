//! One pass over the entries of a journal: makes steps of them, which it shows to every rule.

use std::net::SocketAddr;

use minikeeper_core::journal::entry::{JournalEntry, JournalRequest, Occurrence};
use minikeeper_protocol::OpCode;

use crate::advice::{
    Advice, Ignored,
    facts::Facts,
    findings::Findings,
    rules::{self, Finder},
    step::{ClientStep, EntryHead, Request, Scene, parent_of},
};

/// The rules, and what the entries so far show.
#[derive(Debug)]
pub(super) struct Pass {
    rules: Vec<Box<dyn Finder>>,
    facts: Facts,
    findings: Findings,
    entry_count: u64,
    /// The last entry.
    last: u64,
}

impl Pass {
    pub(super) fn new(ignored: Ignored) -> Self {
        Self {
            rules: rules::all(),
            facts: Facts::default(),
            findings: Findings::new(ignored),
            entry_count: 0,
            last: 0,
        }
    }

    pub(super) fn entry(&mut self, entry: &JournalEntry) {
        let number = entry.number;
        if self.entry_count == 0 {
            self.facts.first = number;
        } else if self.last.checked_add(1) != Some(number) {
            // A list that a filter made.
            self.forget_tree();
        }
        self.last = number;
        self.entry_count += 1;
        let at = entry.session.map(|session| EntryHead {
            number,
            time: entry.at,
            session,
        });
        match (&entry.what, at) {
            (Occurrence::Request(request), Some(at)) => self.request(at, entry.address, request),
            (
                Occurrence::Event {
                    kind, path, zxid, ..
                },
                Some(at),
            ) => {
                let (kind, zxid) = (*kind, zxid.0);
                self.facts.fire(at, kind, path);
                self.show(at, ClientStep::Event { kind, path, zxid });
            }
            (Occurrence::SessionBegan { timeout, is_new }, Some(at)) => {
                let facts = self.facts.hear(at.session, entry.address);
                facts.timeout = *timeout;
                facts.left = 0;
                if *is_new {
                    facts.opened = number;
                }
            }
            (Occurrence::ConnectionClosed { .. }, Some(at)) => {
                let facts = self.facts.session_mut(at.session);
                facts.is_connected = false;
                (facts.left, facts.left_at) = (number, at.time);
            }
            (Occurrence::Deleted { path, .. }, Some(at)) => self.removed(at, path),
            (Occurrence::Deleted { path, .. }, None) => self.facts.remove(number, None, path),
            (Occurrence::SessionEnded { expired }, Some(at)) => {
                // Journals of earlier versions have no entries for these.
                for path in self.facts.end(at.session) {
                    if self.facts.path(&path).owner == Some(at.session) {
                        self.removed(at, &path);
                    }
                }
                self.show(at, ClientStep::Ended { expired: *expired });
            }
            (Occurrence::Fault { action, .. }, Some(at)) => {
                let loses_reply =
                    matches!(action.as_str(), "lose-reply" | "cut-reply" | "never-answer");
                self.show(at, ClientStep::Fault { loses_reply });
            }
            // What happened to the tree is not known.
            (Occurrence::Omitted { .. }, _) => self.forget_tree(),
            (Occurrence::Verb(text), _) if changes_tree(text) => self.forget_tree(),
            _ => {}
        }
    }

    pub(super) fn finish(mut self) -> Advice {
        for (place, rule) in self.rules.iter_mut().enumerate() {
            self.findings.rule = place;
            rule.finish(&self.facts, &mut self.findings);
        }
        Advice {
            findings: self.findings.finish(),
            entry_count: self.entry_count,
            first: self.facts.first,
        }
    }

    /// Returns the size of the largest table of facts, and the number of findings.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.facts.items(), self.findings.groups.items.len())
    }

    /// Shows a step to every rule.
    #[inline(never)]
    fn show(&mut self, at: EntryHead, step: ClientStep<'_>) {
        let mut scene = Scene {
            at,
            client: self.facts.session(at.session),
            facts: &self.facts,
            findings: &mut self.findings,
        };
        for (place, rule) in self.rules.iter_mut().enumerate() {
            scene.findings.rule = place;
            rule.observe(step, &mut scene);
        }
    }

    fn request(&mut self, at: EntryHead, address: Option<SocketAddr>, entry: &JournalRequest) {
        use OpCode::{Auth, CloseSession, CreateSession, Multi, Ping, SetWatches, SetWatches2};
        let facts = self.facts.hear(at.session, address);
        let op = OpCode::from_name(entry.op);
        if let Some(Ping | CreateSession | CloseSession | SetWatches | SetWatches2 | Auth) = op {
            return;
        }
        facts.requests += 1;
        let request = Request::new(op, entry);
        self.show(at, ClientStep::Request(&request));
        let is_done = entry.is_answered && entry.error.is_none();
        if request.is_read() {
            if let Some(watches) = self.facts.read(at, &request) {
                self.show(at, ClientStep::WatchSet(parent_of(request.path), watches));
            }
        } else if op == Some(Multi) && is_done {
            for change in ClientStep::of_multi(entry) {
                self.change(at, change);
            }
            // What a long multi did besides is not known.
            if entry.operation_count as usize > entry.operations.len() {
                self.forget_tree();
            }
        } else if is_done && let Some(change) = ClientStep::of_request(op, entry) {
            self.change(at, change);
        } else if request.is_late() {
            self.facts.find_there(request.path);
        }
        self.facts.session_mut(at.session).last = at.number;
    }

    #[inline(never)]
    fn change(&mut self, at: EntryHead, change: ClientStep<'_>) {
        self.show(at, change);
        self.facts.apply(at, change);
    }

    /// The server deleted an ephemeral, whose session ends.
    #[inline(never)]
    fn removed(&mut self, at: EntryHead, path: &str) {
        self.facts.remove(at.number, Some(at.session), path);
        self.show(at, ClientStep::Removed(path));
    }

    #[inline(never)]
    fn forget_tree(&mut self) {
        self.facts.forget_tree();
        for rule in &mut self.rules {
            rule.forget_tree();
        }
    }
}

/// Returns whether a verb, as the journal has it, changes the tree in ways that the journal does not show.
fn changes_tree(text: &str) -> bool {
    let verb = text.split(' ').next().unwrap_or_default();
    matches!(
        verb,
        "seed"
            | "set"
            | "create"
            | "delete"
            | "restore"
            | "import_data"
            | "reset"
            | "restart"
            | "come_up"
    )
}
