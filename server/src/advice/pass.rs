//! One pass over the entries of a journal.

use std::{mem, net::SocketAddr, time::Duration};

use minikeeper_protocol::{ErrorCode, EventKind, SessionId};

use crate::{
    advice::{
        Advice, Finding, Ignored,
        facts::{ClientFacts, FactTable, PathFacts, UseFacts},
        held_locks::HeldLocks,
        rules::{
            AT_ONCE, AdviceRule, CHILDREN_MIN, DATA_BYTES_MIN, DELETES_MIN, MISSING_WATCHES_MIN,
            OPERATION_REQUESTS_MAX, PARENTS_MIN, POLLS_MIN, REFRESHES_MIN, RuleId,
            SHORT_SESSIONS_MIN, UNREAD_MIN, WATCHES_MIN, WOKEN_MIN,
        },
    },
    journal::entry::{JournalEntry, JournalRequest, Occurrence},
    order,
};

/// The maximum number of findings, of suspicions, and of entries that a finding names.
const FINDINGS_MAX: usize = 1_000;
const SUSPICIONS_MAX: usize = 1_000;
const EVIDENCE_MAX: usize = 8;

/// The weights of occurrences: a habit, which needs several; a finding; harm.
const HABIT: u64 = 0;
const PROVEN: u64 = 1;
const HARM: u64 = 2;

/// What the entries so far show.
#[derive(Debug)]
pub(super) struct Pass {
    ignored: Ignored,
    sessions: FactTable<ClientFacts>,
    paths: FactTable<PathFacts>,
    uses: FactTable<UseFacts>,
    groups: FactTable<Occurrences>,
    suspicions: Vec<Suspicion>,
    locks: HeldLocks,
    entry_count: u64,
    /// The first and the last entry.
    first: u64,
    last: u64,
    /// The time of the last.
    now: Duration,
}

/// The occurrences of one mistake on similar paths.
#[derive(Debug, Default)]
struct Occurrences {
    rule: usize,
    path: String,
    weight: u64,
    text: String,
    count: u64,
    entries: Vec<u64>,
}

/// Something that is a mistake unless a later entry explains it.
#[derive(Debug)]
struct Suspicion {
    rule: RuleId,
    session: SessionId,
    path: String,
    /// The requests of the session so far.
    requests: u64,
    entries: [u64; 2],
    text: String,
}

/// A change of one znode that succeeded: a request, or a part of a multi.
#[derive(Clone, Copy)]
struct AppliedChange<'a> {
    number: u64,
    session: SessionId,
    op: &'a str,
    path: &'a str,
    mode: &'a str,
    /// Whether a version protects it.
    is_checked: bool,
    is_in_multi: bool,
}

impl Pass {
    pub(super) const fn new(ignored: Ignored) -> Self {
        Self {
            ignored,
            sessions: FactTable::new(),
            paths: FactTable::new(),
            uses: FactTable::new(),
            groups: FactTable::new(),
            suspicions: Vec::new(),
            locks: HeldLocks::new(),
            entry_count: 0,
            first: 0,
            last: 0,
            now: Duration::ZERO,
        }
    }

    pub(super) fn entry(&mut self, entry: &JournalEntry) {
        if self.entry_count == 0 {
            self.first = entry.number;
        } else if self.last.checked_add(1) != Some(entry.number) {
            // A list that a filter made.
            self.forget_tree();
        }
        self.last = entry.number;
        self.now = entry.at;
        self.entry_count += 1;
        let session = entry.session;
        match (&entry.what, session) {
            (Occurrence::Request(request), Some(session)) => self.request(entry, session, request),
            (
                Occurrence::Event {
                    kind, path, zxid, ..
                },
                Some(session),
            ) => {
                self.event(entry.number, session, *kind, path, zxid.0);
            }
            (Occurrence::SessionBegan { timeout, is_new }, Some(session)) => {
                let facts = self.session(session);
                facts.timeout = *timeout;
                facts.is_connected = true;
                facts.left = 0;
                if *is_new {
                    facts.opened = entry.number;
                }
                note_address(facts, entry.address);
            }
            (Occurrence::ConnectionClosed { .. }, Some(session)) => {
                let facts = self.session(session);
                facts.is_connected = false;
                facts.left = entry.number;
                facts.left_at = entry.at;
            }
            (Occurrence::Deleted { path, .. }, session) => {
                self.removed(entry.number, session, path);
            }
            (Occurrence::SessionEnded { expired }, Some(session)) => {
                self.ended(entry.number, entry.at, session, *expired);
            }
            (Occurrence::Fault { action, .. }, Some(session)) => {
                let facts = self.session(session);
                facts.is_faulted = true;
                if matches!(action.as_str(), "lose-reply" | "cut-reply" | "never-answer") {
                    facts.reply_lost = entry.number.saturating_add(1);
                }
            }
            // What happened to the tree is not known.
            (Occurrence::Omitted { .. }, _) => self.forget_tree(),
            (Occurrence::Verb(text), _) if changes_tree(text) => self.forget_tree(),
            _ => {}
        }
    }

    pub(super) fn finish(mut self) -> Advice {
        for suspicion in mem::take(&mut self.suspicions) {
            // A client that gives up says nothing more.
            let requests = self.session(suspicion.session).requests;
            if suspicion.rule != RuleId::FormerSession || requests > suspicion.requests {
                let Suspicion {
                    rule,
                    path,
                    entries,
                    text,
                    ..
                } = suspicion;
                self.report(rule, &path, PROVEN, 1, &entries, text);
            }
        }
        let mut groups = mem::take(&mut self.groups.items);
        groups.retain(|group| {
            group.weight >= PROVEN || group.count >= AdviceRule::ALL[group.rule].occurrences_min
        });
        order::sort_by_key(&mut groups, |group| (group.rule, u64::MAX - group.count));
        let finding = |group: Occurrences| Finding {
            rule: &AdviceRule::ALL[group.rule],
            path: group.path,
            text: group.text,
            count: group.count,
            entries: group.entries,
        };
        Advice {
            findings: groups.into_iter().map(finding).collect(),
            entry_count: self.entry_count,
            first: self.first,
        }
    }

    /// Returns the size of the largest table, and the number of findings.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        let (paths, uses) = (self.paths.items.len(), self.uses.items.len());
        (paths.max(uses), self.groups.items.len())
    }

    #[inline(never)]
    fn session(&mut self, session: SessionId) -> &mut ClientFacts {
        self.sessions.of(&session.to_string())
    }

    #[inline(never)]
    fn using(&mut self, session: SessionId, path: &str) -> &mut UseFacts {
        self.uses.of(&use_key(session, path))
    }

    #[inline(never)]
    fn forget_tree(&mut self) {
        self.paths.clear();
        self.uses.clear();
        let locks = mem::replace(&mut self.locks, HeldLocks::new());
        for session in locks.sessions() {
            self.session(session).may_hold = true;
        }
    }

    /// Adds occurrences of a mistake to those on similar paths.
    #[inline(never)]
    fn report(
        &mut self,
        rule: RuleId,
        path: &str,
        weight: u64,
        count: u64,
        entries: &[u64],
        text: String,
    ) {
        let rule = rule as usize;
        if self.ignored.has(&AdviceRule::ALL[rule], path) || self.groups.items.len() >= FINDINGS_MAX
        {
            return;
        }
        let path = without_numbers(path);
        let group = self.groups.of(&format!("{rule} {path}"));
        if group.text.is_empty() || weight > group.weight {
            group.text = text;
            group.weight = weight;
            // Those of the text come first; evidence that begins with the same entry is of the same occurrence.
            let mut others = mem::replace(&mut group.entries, entries.to_vec());
            if others.first() != entries.first() {
                group.entries.append(&mut others);
            }
        } else if group.entries.len() < EVIDENCE_MAX {
            group.entries.extend(entries);
        }
        group.entries.retain(|number| *number > 0);
        group.entries.truncate(EVIDENCE_MAX);
        (group.rule, group.path) = (rule, path);
        group.count += count;
    }

    #[inline(never)]
    fn suspect(
        &mut self,
        rule: RuleId,
        session: SessionId,
        path: &str,
        entries: [u64; 2],
        text: String,
    ) {
        if self.suspicions.len() < SUSPICIONS_MAX {
            let requests = self.session(session).requests;
            self.suspicions.push(Suspicion {
                rule,
                session,
                path: path.to_owned(),
                requests,
                entries,
                text,
            });
        }
    }

    fn request(&mut self, entry: &JournalEntry, session: SessionId, request: &JournalRequest) {
        let number = entry.number;
        let path = request.path.as_deref().unwrap_or_default();
        let journal_first = self.first;
        let facts = self.session(session);
        note_address(facts, entry.address);
        facts.is_connected = true;
        match request.op {
            "ping" | "createSession" | "closeSession" | "setWatches" | "setWatches2" | "auth" => {
                return;
            }
            _ => {}
        }
        facts.requests += 1;
        facts.has_watched |= request.watch || request.op == "addWatch";
        if facts.first == 0 {
            facts.may_hold = facts.opened == 0 && journal_first > 1;
            facts.first = number;
            facts.first_op = request.op;
            path.clone_into(&mut facts.first_path);
        }
        let is_done = request.is_answered && request.error.is_none();
        match request.op {
            "sync" => facts.synced = number,
            "addWatch" => facts.has_recursive_watch = true,
            "getData" | "exists" | "getChildren" | "getChildren2" => {
                self.explain(session, path);
                self.read(number, session, request, path);
            }
            "multi" => self.multi(number, session, request, is_done),
            "create" | "create2" | "createContainer" | "createTTL" => {
                self.create(entry, session, request, path);
            }
            "setData" | "delete" => {
                if request.op == "delete" {
                    self.explain(session, path);
                }
                self.data(number, path, request.data_bytes.unwrap_or(0).into());
                if is_done {
                    self.apply(AppliedChange {
                        number,
                        session,
                        op: request.op,
                        path,
                        mode: "",
                        is_checked: request.version != Some(-1),
                        is_in_multi: false,
                    });
                }
            }
            _ => {}
        }
        self.session(session).last = number;
    }

    /// Drops the suspicion that a session takes this znode for its own: it looks at it.
    #[inline(never)]
    fn explain(&mut self, session: SessionId, path: &str) {
        self.suspicions.retain(|it| {
            it.rule != RuleId::FormerSession || it.session != session || it.path != path
        });
    }

    #[inline(never)]
    fn data(&mut self, number: u64, path: &str, bytes: u64) {
        if bytes >= DATA_BYTES_MIN {
            let text = format!("{bytes} bytes of data written to {path}");
            self.report(RuleId::LargeData, path, bytes, 1, &[number], text);
        }
    }

    #[inline(never)]
    fn multi(&mut self, number: u64, session: SessionId, request: &JournalRequest, is_done: bool) {
        let bytes =
            |it: &crate::journal::entry::JournalOperation| u64::from(it.data_bytes.unwrap_or(0));
        let (sum, largest) = request
            .operations
            .iter()
            .fold((0, 0), |(sum, largest), it| {
                (sum + bytes(it), bytes(it).max(largest))
            });
        let path = request.operations.first().map_or("", |it| it.path.as_str());
        self.data(number, path, sum.max(largest));
        if !is_done {
            return;
        }
        let is_checked = request
            .operations
            .iter()
            .any(|it| it.version.is_some_and(|it| it != -1));
        for it in &request.operations {
            // Neither the number that was appended is known, nor what a long multi did besides.
            if !it.mode.is_some_and(|mode| mode.contains("SEQUENTIAL")) {
                self.apply(AppliedChange {
                    number,
                    session,
                    op: it.op,
                    path: &it.path,
                    mode: it.mode.unwrap_or_default(),
                    is_checked,
                    is_in_multi: true,
                });
            }
        }
        if request.operation_count as usize > request.operations.len() {
            self.forget_tree();
        }
    }

    #[inline(never)]
    fn create(
        &mut self,
        entry: &JournalEntry,
        session: SessionId,
        request: &JournalRequest,
        path: &str,
    ) {
        let number = entry.number;
        let mode = request.mode.unwrap_or_default();
        let is_ephemeral = mode.starts_with("EPHEMERAL");
        let is_sequential = mode.contains("SEQUENTIAL");
        let bytes = request.data_bytes.unwrap_or(0);
        self.explain(session, path);
        self.data(number, path, bytes.into());
        let is_lost = !request.is_answered || self.session(session).reply_lost == number;
        let is_refused = request.error.is_some();
        if is_ephemeral && is_sequential && !is_refused {
            if !tells_owner(name_of(path), session) {
                let (weight, lost) = match is_lost {
                    true => (HARM, ", and the reply was lost"),
                    false => (PROVEN, ""),
                };
                let text = format!("session {session} created {path} as {mode}{lost}");
                self.report(
                    RuleId::UnprotectedSequential,
                    path,
                    weight,
                    1,
                    &[number],
                    text,
                );
            }
            let place = self.using(session, parent_of(path));
            place.is_reader = ["READ", "rlock"]
                .iter()
                .any(|mark| name_of(path).contains(mark));
        }
        if !is_sequential {
            let missing = mem::take(&mut self.using(session, path).missing);
            // A client that makes a parent sure to exist creates it without data, and does not care who is first.
            if missing > 0 && (is_ephemeral || bytes > 0) {
                self.checked_create(number, session, request, path, missing);
            }
            if request.error == Some(ErrorCode::NodeExists) {
                self.using(session, path).was_late = true;
                self.paths.of(path).has_rivals |= self
                    .paths
                    .find(path)
                    .is_some_and(|it| it.owner != Some(session));
                if is_ephemeral {
                    self.late(number, session, path);
                }
            }
        }
        if request.is_answered && !is_refused {
            self.apply(AppliedChange {
                number,
                session,
                op: "create",
                path: request.created.as_deref().unwrap_or(path),
                mode,
                is_checked: true,
                is_in_multi: false,
            });
        }
    }

    /// A create after an exists that found nothing.
    #[inline(never)]
    fn checked_create(
        &mut self,
        number: u64,
        session: SessionId,
        request: &JournalRequest,
        path: &str,
        missing: u64,
    ) {
        let facts = self.paths.of(path);
        let other = facts.checked_by.filter(|other| *other != session);
        let winner = facts
            .changed_by
            .filter(|winner| *winner != session && facts.changed > missing);
        facts.checked_by = Some(session);
        let created = facts.changed;
        match (request.error, winner, other) {
            (Some(ErrorCode::NodeExists), Some(winner), _) => {
                let text = format!(
                    "session {session} found no {path}, session {winner} created it, and the create of {session} failed"
                );
                self.report(
                    RuleId::CheckThenCreate,
                    path,
                    HARM,
                    1,
                    &[missing, created, number],
                    text,
                );
            }
            // One session alone may have a path of its own.
            (None, _, Some(other)) => {
                let text = format!(
                    "session {session} found no {path} and created it; session {other} does so too"
                );
                self.report(
                    RuleId::CheckThenCreate,
                    path,
                    PROVEN,
                    1,
                    &[missing, number],
                    text,
                );
            }
            _ => {}
        }
    }

    /// An ephemeral that a session wants to create is there.
    #[inline(never)]
    fn late(&mut self, number: u64, session: SessionId, path: &str) {
        let Some(facts) = self.paths.find(path) else {
            return;
        };
        let created = facts.changed;
        let Some(owner) = facts.owner.filter(|owner| *owner != session) else {
            return;
        };
        let former = self.session(owner);
        let (left, ip) = (former.left, former.ip);
        let own = self.session(session);
        if left > 0 && own.opened > left && own.ip == ip {
            let text = format!(
                "session {owner} created {path} and lost its connection; session {session}, opened later at the same \
                 address, found it there (NODEEXISTS) and went on without looking whose it is"
            );
            self.suspect(
                RuleId::FormerSession,
                session,
                path,
                [created, number],
                text,
            );
        }
    }

    #[inline(never)]
    fn read(&mut self, number: u64, session: SessionId, request: &JournalRequest, path: &str) {
        let held = match request.op {
            "getData" => self.locks.of(session),
            _ => Vec::new(),
        };
        let facts = self.session(session);
        let (wrote, synced) = (facts.wrote, facts.synced);
        let is_cache = facts.has_recursive_watch;
        let facts = self.paths.of(path);
        let is_list = request.op.starts_with("getChildren");
        let changed = if is_list {
            facts.children_changed
        } else {
            facts.changed
        };
        let children = facts.children;
        if is_list && request.watch && request.error.is_none() && children >= CHILDREN_MIN {
            let text = format!(
                "session {session} watches the list of {path}, which has {children} children or more"
            );
            self.report(RuleId::LargeList, path, children, 1, &[number], text);
        }
        let place = self.using(session, path);
        let result = request.result();
        // One that creates or deletes in between asks before it acts.
        let asks = request.op == "exists" && wrote > place.poll_last;
        let is_same = place.polled == request.op && place.polled_result == result;
        if !is_same
            || asks
            || request.watch
            || place.watch > 0
            || is_cache
            || changed.max(synced) > place.poll_last
        {
            place.polls = 0;
            place.poll_first = number;
        }
        (place.polled, place.polled_result, place.poll_last) = (request.op, result, number);
        place.polls += 1;
        let (polls, poll_first) = (place.polls, place.poll_first);
        let is_missing = request.error == Some(ErrorCode::NoNode);
        let mut unread = 0;
        match request.op {
            "getData" if request.error.is_none() => {
                (place.read, place.has_read) = (number, true);
                place.locks = held;
                (place.unread, place.rewatched) = (0, 0);
            }
            "exists" => {
                place.missing = if is_missing { number } else { 0 };
                if request.watch && place.unread > 0 {
                    place.rewatched += 1;
                    unread = place.unread;
                }
            }
            _ => {}
        }
        let (rewatched, has_read) = (place.rewatched, place.has_read);
        if polls >= POLLS_MIN {
            let text = format!(
                "session {session} sent {} {path} {polls} times in a row, always {result}",
                request.op
            );
            let count = if polls == POLLS_MIN { polls } else { 1 };
            self.report(
                RuleId::Polling,
                path,
                polls,
                count,
                &[poll_first, number],
                text,
            );
        }
        if unread > 0 && has_read && rewatched >= UNREAD_MIN {
            let text = format!(
                "session {session} was told of changes of {path} and set its watch with exists {rewatched} times, but \
                 did not read the data again"
            );
            self.report(
                RuleId::ChangeNotRead,
                path,
                rewatched,
                1,
                &[unread, number],
                text,
            );
        }
        // getData and getChildren leave no watch on what is missing.
        let sets =
            request.watch && (request.error.is_none() || is_missing && request.op == "exists");
        self.watch(number, session, path, sets, is_missing);
    }

    /// Counts the watches of a session below a parent.
    #[inline(never)]
    fn watch(&mut self, number: u64, session: SessionId, path: &str, sets: bool, is_missing: bool) {
        // One's own znode ends with the session.
        if self.paths.of(path).owner == Some(session) {
            return;
        }
        let place = self.using(session, path);
        // What is read again is in use.
        let (old, old_is_missing) = (mem::take(&mut place.watch), place.watches_nothing);
        if !sets {
            place.watch = old;
            return;
        }
        (place.watch, place.watches_nothing) = (number, is_missing);
        let parent = parent_of(path);
        let below = self.using(session, parent);
        if old > 0 {
            below.watches = below.watches.saturating_sub(1);
            below.watches_on_nothing = below
                .watches_on_nothing
                .saturating_sub(u64::from(old_is_missing));
        }
        if below.watches == 0 {
            below.watch_first = number;
        }
        below.watches += 1;
        below.watches_on_nothing += u64::from(is_missing);
        let (watches, missing, first) =
            (below.watches, below.watches_on_nothing, below.watch_first);
        let (count, what) = match (missing >= MISSING_WATCHES_MIN, watches >= WATCHES_MIN) {
            (true, _) => (missing, "that do not exist"),
            (_, true) => (watches, "that have not changed"),
            _ => return,
        };
        let text = format!("session {session} has {count} watches on znodes below {parent} {what}");
        let is_first = count == MISSING_WATCHES_MIN || count == WATCHES_MIN;
        self.report(
            RuleId::WatchLeak,
            parent,
            count,
            u64::from(is_first),
            &[first, number],
            text,
        );
    }

    #[inline(never)]
    fn event(&mut self, number: u64, session: SessionId, kind: EventKind, path: &str, zxid: i64) {
        let place = self.using(session, path);
        let (contends, is_late) = (place.contends, mem::take(&mut place.was_late));
        let (watch, on_nothing) = (mem::take(&mut place.watch), place.watches_nothing);
        let parent = parent_of(path);
        if watch > 0 {
            let below = self.using(session, parent);
            below.watches = below.watches.saturating_sub(1);
            below.watches_on_nothing = below
                .watches_on_nothing
                .saturating_sub(u64::from(on_nothing));
        }
        let above = self.using(session, parent);
        // One that watches a znode nearer to its own, too, looks ahead: our recipes watch three of them.
        let waits = above.contends > 0 && !above.is_reader && above.watches == 0;
        let facts = self.paths.of(path);
        let is_foreign = facts.changed_by != Some(session);
        let is_woken = match kind {
            EventKind::Deleted => waits && facts.is_sequential_ephemeral || is_late,
            EventKind::ChildrenChanged => contends > 0 && facts.has_had_ephemerals,
            _ => false,
        };
        // The one that releases may watch its own znode.
        if is_woken && is_foreign {
            if facts.woken_zxid != zxid {
                (facts.woken_zxid, facts.woken, facts.woken_first) = (zxid, 0, number);
            }
            facts.woken += 1;
            let (woken, first) = (facts.woken, facts.woken_first);
            if woken >= WOKEN_MIN {
                let text = format!("a change of {path} woke {woken} sessions that queue");
                let group = if kind == EventKind::Deleted {
                    parent
                } else {
                    path
                };
                let group = if is_late { path } else { group };
                self.report(
                    RuleId::Herd,
                    group,
                    woken,
                    u64::from(woken == WOKEN_MIN),
                    &[first, number],
                    text,
                );
            }
        }
        if kind == EventKind::DataChanged && is_foreign {
            let place = self.using(session, path);
            if place.unread == 0 {
                place.unread = number;
            }
        }
    }

    /// Applies a change that succeeded.
    fn apply(&mut self, change: AppliedChange<'_>) {
        let AppliedChange {
            number,
            session,
            path,
            ..
        } = change;
        self.session(session).wrote = number;
        match change.op {
            "setData" => {
                if !change.is_checked {
                    self.overwrite(number, session, path);
                }
                let place = self.using(session, path);
                (place.read, place.unread) = (0, 0);
                let facts = self.paths.of(path);
                (facts.changed, facts.changed_by) = (number, Some(session));
            }
            "delete" => self.delete(change),
            op if op.starts_with("create") => self.created(change),
            _ => {}
        }
    }

    /// A write without a version.
    #[inline(never)]
    fn overwrite(&mut self, number: u64, session: SessionId, path: &str) {
        let held = self.locks.of(session);
        let place = self.using(session, path);
        let (read, has_read, unread) = (place.read, place.has_read, place.unread);
        // Those that it held since the read.
        let mut locks = mem::take(&mut place.locks);
        locks.retain(|lock| held.contains(lock));
        let facts = self.paths.of(path);
        if facts.owner == Some(session) {
            return;
        }
        let changed = facts.changed;
        let writer = facts
            .changed_by
            .filter(|it| *it != session && changed > read);
        if unread > 0 && has_read {
            let text = format!(
                "session {session} was told that {path} changed, and wrote it without reading it"
            );
            self.report(
                RuleId::ChangeNotRead,
                path,
                HARM,
                1,
                &[unread, number],
                text,
            );
        } else if let (true, Some(writer)) = (read > 0, writer) {
            let text = format!(
                "session {session} read {path}, session {writer} wrote it, and {session} overwrote that without a version"
            );
            self.report(
                RuleId::LostUpdate,
                path,
                HARM,
                1,
                &[read, changed, number],
                text,
            );
        } else if read > 0 {
            // What it took before is not known.
            if locks.is_empty() && mem::take(&mut self.session(session).may_hold) {
                return;
            }
            let facts = self.paths.of(path);
            // A lock that all of them hold excludes the others.
            let mut common: Vec<_> = locks.into_iter().map(|(lock, _)| lock).collect();
            if let Some(known) = &facts.rewritten_under {
                common.retain(|lock| known.contains(lock));
            }
            let is_excluded = !common.is_empty();
            facts.rewritten_under = Some(common);
            if is_excluded {
                facts.rewritten_by = Some(session);
                return;
            }
            let other = facts
                .rewritten_by
                .replace(session)
                .filter(|it| *it != session);
            let text = format!("session {session} read {path} and wrote it without a version");
            let (weight, too) = match other {
                Some(other) => (PROVEN, format!("; session {other} does so too")),
                None => (HABIT, String::new()),
            };
            self.report(
                RuleId::LostUpdate,
                path,
                weight,
                1,
                &[read, number],
                text + &too,
            );
        }
    }

    #[inline(never)]
    fn delete(&mut self, change: AppliedChange<'_>) {
        let AppliedChange {
            number,
            session,
            path,
            ..
        } = change;
        let now = self.now;
        let parent = parent_of(path);
        let facts = self.paths.of(path);
        let (owner, created) = (facts.owner.take(), facts.changed);
        let is_contender = facts.is_sequential_ephemeral;
        self.locks.leave(path);
        let facts = self.paths.of(path);
        (facts.changed, facts.changed_by) = (number, Some(session));
        (facts.deleted, facts.deleted_by, facts.deleted_at) = (number, Some(session), now);
        facts.children = 0;
        self.leave(number, parent);
        if let (Some(owner), true) = (owner, is_contender) {
            let place = self.using(owner, parent);
            place.contends = place.contends.saturating_sub(1);
        }
        // A client that deletes the parent, too, clears a tree.
        self.suspicions.retain(|it| {
            let is_below = it.session == session && parent_of(&it.path) == path;
            !(is_below && matches!(it.rule, RuleId::ForeignRelease | RuleId::RecursiveDelete))
        });
        if let Some(owner) = owner.filter(|owner| *owner != session)
            && self.session(owner).is_connected
        {
            let text = format!("session {session} deleted {path}, an ephemeral of session {owner}");
            self.suspect(
                RuleId::ForeignRelease,
                session,
                path,
                [created, number],
                text,
            );
        }
        let place = self.using(session, path);
        let (deleted, first) = (mem::take(&mut place.deleted), place.deleted_first);
        if change.is_in_multi {
            return;
        }
        let above = self.using(session, parent);
        if above.deleted == 0 {
            above.deleted_first = if deleted > 0 { first } else { number };
        }
        above.deleted += deleted + 1;
        if deleted >= DELETES_MIN {
            let text = format!(
                "session {session} deleted {path} and {deleted} znodes below it one by one"
            );
            self.suspect(
                RuleId::RecursiveDelete,
                session,
                path,
                [first, number],
                text,
            );
        }
    }

    /// The server deleted a znode, whose owner's session has ended if it was an ephemeral.
    #[inline(never)]
    fn removed(&mut self, number: u64, owner: Option<SessionId>, path: &str) {
        let facts = self.paths.of(path);
        (facts.owner, facts.children) = (None, 0);
        (facts.changed, facts.changed_by) = (number, owner);
        self.leave(number, parent_of(path));
        if let Some(owner) = owner {
            self.session(owner).removed += 1;
            self.locks.leave(path);
        }
    }

    /// A child is gone.
    #[inline(never)]
    fn leave(&mut self, number: u64, parent: &str) {
        let facts = self.paths.of(parent);
        facts.children = facts.children.saturating_sub(1);
        facts.children_changed = number;
    }

    #[inline(never)]
    fn created(&mut self, change: AppliedChange<'_>) {
        let AppliedChange {
            number,
            session,
            path,
            mode,
            ..
        } = change;
        let is_ephemeral = mode.starts_with("EPHEMERAL");
        let last = self.session(session).last;
        let now = self.now;
        let parent = parent_of(path);
        let above = self.paths.of(parent);
        above.children += 1;
        above.children_changed = number;
        above.has_had_ephemerals |= is_ephemeral;
        let facts = self.paths.of(path);
        (facts.changed, facts.changed_by) = (number, Some(session));
        facts.owner = is_ephemeral.then_some(session);
        facts.is_sequential_ephemeral = mode == "EPHEMERAL_SEQUENTIAL";
        facts.children = 0;
        let deleted = mem::take(&mut facts.deleted);
        let is_own = facts.deleted_by == Some(session) && deleted == last && !facts.has_rivals;
        let is_at_once = is_own && now.saturating_sub(facts.deleted_at) <= AT_ONCE;
        let is_parent = deleted > 0 && mem::take(&mut facts.has_had_ephemerals) && !is_ephemeral;
        if is_parent || deleted > 0 && is_ephemeral && is_at_once {
            facts.recreated += 1;
            let times = facts.recreated;
            let (min, what) = match is_parent {
                true => (PARENTS_MIN, "the parent of ephemerals"),
                false => (REFRESHES_MIN, "its ephemeral"),
            };
            if times >= min {
                let text = format!(
                    "session {session} created {path} again, {what}, which was deleted {times} times"
                );
                let count = if times == min { times } else { 1 };
                self.report(
                    RuleId::RecreatedEphemeral,
                    path,
                    times,
                    count,
                    &[deleted, number],
                    text,
                );
            }
        }
        if is_ephemeral {
            self.session(session).ephemerals.push(path.to_owned());
            if mode == "EPHEMERAL_SEQUENTIAL" {
                self.locks.enqueue(session, parent, path);
                self.using(session, parent).contends += 1;
            }
        }
    }

    #[inline(never)]
    fn ended(&mut self, number: u64, at: Duration, session: SessionId, expired: bool) {
        let facts = self.session(session);
        let ClientFacts {
            timeout,
            opened,
            left,
            left_at,
            requests,
            first,
            ..
        } = *facts;
        let (is_faulted, has_watched) = (facts.is_faulted, facts.has_watched);
        facts.is_connected = false;
        let op = facts.first_op;
        let path = mem::take(&mut facts.first_path);
        let ip = facts
            .ip
            .map_or_else(|| "this process".to_owned(), |ip| ip.to_string());
        let ephemerals = mem::take(&mut facts.ephemerals);
        let mut held = mem::take(&mut facts.removed);
        // Journals of earlier versions have no entries for these.
        for it in ephemerals {
            if let Some(facts) = self.paths.find(&it)
                && facts.owner == Some(session)
            {
                self.locks.leave(&it);
                held += 1;
                facts.owner = None;
                (facts.changed, facts.changed_by) = (number, Some(session));
                self.leave(number, parent_of(&it));
            }
        }
        if expired
            && left > 0
            && !is_faulted
            && at.saturating_sub(left_at) >= timeout
            && timeout > Duration::ZERO
        {
            let timeout = timeout.as_millis();
            let kept = match held {
                0 => String::new(),
                held => format!(", and kept {held} ephemerals"),
            };
            let text = format!(
                "session {session} of {ip} lost its connection without being closed, and expired after {timeout} ms{kept}"
            );
            self.report(
                RuleId::SessionNotClosed,
                "",
                HABIT,
                1,
                &[left, number],
                text,
            );
        }
        // One that sets a watch stays for its events.
        let is_short = requests > 0 && requests <= OPERATION_REQUESTS_MAX && !has_watched;
        if !expired && opened > 0 && is_short {
            let facts = self.paths.of(&path);
            if facts.short_op != op {
                (facts.short_op, facts.short_sessions) = (op, 0);
            }
            facts.short_sessions += 1;
            let sessions = facts.short_sessions;
            if sessions >= SHORT_SESSIONS_MIN {
                let text = format!(
                    "{sessions} sessions were opened for {op} {path} and closed after at most {OPERATION_REQUESTS_MAX} requests, \
                     the last of them from {ip}"
                );
                let count = if sessions == SHORT_SESSIONS_MIN {
                    sessions
                } else {
                    1
                };
                self.report(
                    RuleId::SessionPerOperation,
                    &path,
                    sessions,
                    count,
                    &[opened, first, number],
                    text,
                );
            }
        }
    }
}

fn note_address(facts: &mut ClientFacts, address: Option<SocketAddr>) {
    if let Some(address) = address {
        facts.ip = Some(address.ip());
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

#[inline(never)]
fn use_key(session: SessionId, path: &str) -> String {
    format!("{session} {path}")
}

fn parent_of(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) if path.len() > 1 => "/",
        Some(slash) => &path[..slash],
        None => "",
    }
}

fn name_of(path: &str) -> &str {
    path.rfind('/').map_or(path, |slash| &path[slash + 1..])
}

/// Returns whether a name has a UUID, or the id of its session, so that the client finds its znode again.
fn tells_owner(name: &str, session: SessionId) -> bool {
    let hex = format!("{:x}", session.0);
    let id = session.0.to_string();
    let id_parts = name.split(|it: char| !it.is_ascii_hexdigit() && it != '-');
    let has_uuid = id_parts
        .into_iter()
        .any(|part| part.chars().filter(char::is_ascii_hexdigit).count() >= 32);
    has_uuid || name.contains(&hex) || name.contains(&id)
}

/// Returns a path with `*` in place of numbers and UUIDs: of paths that differ only in these, the mistake is the same.
fn without_numbers(path: &str) -> String {
    let mut out = String::new();
    let mut run = String::new();
    // A final slash ends the last run.
    for letter in path.chars().chain(['\0']) {
        if letter.is_ascii_hexdigit() || letter == '-' && run.len() >= 8 {
            run.push(letter);
            continue;
        }
        let is_id = run.len() >= 32 || run.bytes().all(|it| it.is_ascii_digit());
        match run.len() {
            0 => {}
            _ if is_id && !out.ends_with('*') => out.push('*'),
            _ if is_id => {}
            _ => out.push_str(&run),
        }
        run.clear();
        if letter != '\0' {
            out.push(letter);
        }
    }
    out
}
