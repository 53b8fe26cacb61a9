//! Fault points: the places of a run where something can go wrong, and what goes wrong there.
//!
//! A place is named by what the next run has in common with this one: the client's number, the
//! operation, the path without what is random in it, and an ordinal.

use std::{collections::BTreeSet, fmt, str::FromStr};

use minikeeper_protocol::{OpCode, SessionId};

use crate::{
    faults::{fault::Fault, glob::Glob, op::FaultOp, who::FaultFor},
    journal::entry::{JournalEntry, Occurrence},
    sweep::SweepError,
};

/// What goes wrong at a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum SweepFault {
    /// `reply-lost`: the request is carried out, and its connection is closed instead of a reply.
    ReplyLost,
    /// `request-lost`: the connection is closed instead of carrying the request out.
    RequestLost,
    /// `connection-cut`: the connection is closed after the reply, before what the client does next.
    ConnectionCut,
    /// `session-expired`: the session expires after the reply.
    SessionExpired,
    /// `reply-late`: the request is carried out, and time moves past the session's timeout before
    /// the reply is sent.
    ReplyLate,
    /// `server-restarted`: the request is carried out, and all connections close instead of a reply,
    /// as when the server restarts. Znodes and sessions stay, watches do not.
    ServerRestarted,
    /// `event-late`: an event comes after the reply to the watcher's next request, or 100 ms late.
    EventLate,
}

impl SweepFault {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ReplyLost,
        Self::RequestLost,
        Self::ConnectionCut,
        Self::SessionExpired,
        Self::ReplyLate,
        Self::ServerRestarted,
        Self::EventLate,
    ];

    /// The names of all.
    pub const NAMES: [&'static str; 7] = [
        "reply-lost",
        "request-lost",
        "connection-cut",
        "session-expired",
        "reply-late",
        "server-restarted",
        "event-late",
    ];

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl FromStr for SweepFault {
    type Err = SweepError;

    fn from_str(name: &str) -> Result<Self, SweepError> {
        let mut all = Self::ALL.into_iter();
        all.find(|fault| fault.name() == name).ok_or_else(|| {
            SweepError(format!(
                "fault {name:?}: unknown; one of {}",
                Self::NAMES.join(", ")
            ))
        })
    }
}

/// The name of the operation of an event in the text of a [`FaultPoint`].
const EVENT: &str = "event";

/// A place where something goes wrong, and what.
///
/// Its text names it on the command line: fault, client, operation, ordinal and path, with colons
/// between them, such as `reply-lost:1:create:2:/locks/*`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub struct FaultPoint {
    /// What goes wrong.
    pub fault: SweepFault,
    /// The number of the client: clients are numbered from 1 in the order of their first requests.
    /// 0 for any client, which handshakes have.
    pub client: u32,
    /// The operation by its name in the protocol, `connect` for a handshake, or `event`.
    pub op: String,
    /// The ordinal, from 1, among what matches the other fields.
    pub nth: u64,
    /// A pattern for the path; empty if there is no path.
    pub path: String,
}

impl FaultPoint {
    /// Returns the fault to inject, without what happens once it has acted.
    pub(crate) fn to_fault(&self, late: std::time::Duration) -> Result<Fault, SweepError> {
        let mut fault = match self.fault {
            SweepFault::ReplyLost | SweepFault::ServerRestarted => Fault::lose_reply(),
            SweepFault::RequestLost => Fault::cut(),
            SweepFault::ConnectionCut => Fault::cut_after(),
            SweepFault::SessionExpired => Fault::expire(),
            SweepFault::ReplyLate => Fault::delay_reply(late),
            SweepFault::EventLate => Fault::delay_events(EVENT_DELAY),
        };
        if self.op != EVENT {
            let op: FaultOp = (self.op.parse())
                .map_err(|error| SweepError(format!("point \"{self}\": {error}")))?;
            fault = fault.on(op);
        }
        if self.client > 0 {
            fault = fault.of(FaultFor::Client(self.client));
        }
        if !self.path.is_empty() {
            fault = fault.at(self.path.as_str());
        }
        Ok(fault.nth(self.nth).optional())
    }
}

/// How long an event is held at most: long enough for a request that is on its way.
pub(crate) const EVENT_DELAY: std::time::Duration = std::time::Duration::from_millis(100);

impl fmt::Display for FaultPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            fault,
            client,
            op,
            nth,
            path,
        } = self;
        write!(f, "{}:{client}:{op}:{nth}:{path}", fault.name())
    }
}

impl FromStr for FaultPoint {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, SweepError> {
        let wrong = |why: &str| {
            SweepError(format!(
                "point {text:?}: {why}; a point is FAULT:CLIENT:OPERATION:ORDINAL:PATH, such as \
                 reply-lost:1:create:2:/locks/*"
            ))
        };
        let mut parts = text.splitn(5, ':');
        let mut part = |name| parts.next().ok_or_else(|| wrong(&format!("no {name}")));
        let fault = part("fault")?.parse();
        let fault: SweepFault = fault.map_err(|error: SweepError| wrong(&error.to_string()))?;
        let client = part("client")?.parse();
        let client = client.map_err(|_| wrong("the client is no number"))?;
        let op = part("operation")?.to_owned();
        let nth = part("ordinal")?.parse().ok().filter(|nth| *nth > 0);
        let nth = nth.ok_or_else(|| wrong("the ordinal is no number from 1 on"))?;
        let path = part("path")?.to_owned();
        if (op == EVENT) != (fault == SweepFault::EventLate) {
            return Err(wrong("event-late and the operation event go together"));
        }
        let point = Self {
            fault,
            client,
            op,
            nth,
            path,
        };
        // Says what is wrong with the operation or the path now, not in the middle of a run.
        crate::faults::rule::Rule::new(0, point.to_fault(EVENT_DELAY)?)
            .map_err(|error| wrong(&error.to_string()))?;
        Ok(point)
    }
}

impl FaultPoint {
    /// Says in a sentence what happens, as in "the reply to the 2nd create of /locks/* by client 1
    /// was lost".
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut what = format!("the {} {}", ordinal(self.nth), self.op);
        if !self.path.is_empty() {
            let of = if self.op == EVENT { "for" } else { "of" };
            what += &format!(" {of} {}", self.path.escape_debug());
        }
        if self.client > 0 && self.op != EVENT {
            what += &format!(" by client {}", self.client);
        }
        match self.fault {
            SweepFault::ReplyLost => format!("the reply to {what} was lost"),
            SweepFault::RequestLost => format!("{what} was lost with its connection"),
            SweepFault::ConnectionCut => format!("the connection was closed after {what}"),
            SweepFault::SessionExpired => format!("the session expired after {what}"),
            SweepFault::ReplyLate => {
                format!("the reply to {what} was later than the session's timeout")
            }
            SweepFault::ServerRestarted => format!("the server restarted while it served {what}"),
            SweepFault::EventLate => {
                let client = self.client;
                format!(
                    "{what} came after the reply to the next request of its watcher, client {client}"
                )
            }
        }
    }
}

fn ordinal(number: u64) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Replaces what differs between runs by `*`: UUIDs, hashes and session ids, sequence numbers, ports
/// and process ids. These are groups of at least 8 hexadecimal digits of which one is a decimal
/// digit, with hyphens between groups, and of at least 4 decimal digits.
pub(crate) fn pattern(path: &str) -> String {
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-' || byte == b'x';
    let bytes = path.as_bytes();
    let mut pattern = String::with_capacity(path.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = (at..bytes.len())
            .find(|place| !is_part(bytes[*place]))
            .unwrap_or(bytes.len());
        // A word such as `beef-cafe` begins or ends with hyphens that are not its own.
        let word = path[at..end].trim_matches('-');
        let start = at + path[at..end].find(word).unwrap_or_default();
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let hex = word.bytes().filter(u8::is_ascii_hexdigit).count();
        let is_within_word = |place: Option<usize>| {
            place
                .and_then(|place| bytes.get(place))
                .is_some_and(u8::is_ascii_alphabetic)
        };
        let is_random = hex >= 8
            && digits >= 1
            && !is_within_word(start.checked_sub(1))
            && !is_within_word(Some(start + word.len()));
        if !word.is_empty() && is_random {
            pattern += &path[at..start];
            pattern.push('*');
            pattern += &path[start + word.len()..end];
        } else {
            push_without_numbers(&path[at..end], &mut pattern);
        }
        at = end;
        while at < bytes.len() && !is_part(bytes[at]) {
            at += 1;
        }
        pattern += &path[end..at];
    }
    pattern
}

/// Appends a text with `*` for each group of at least four digits.
fn push_without_numbers(text: &str, pattern: &mut String) {
    let mut rest = text;
    while let Some(from) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let behind = &rest[from..];
        let end = behind
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(behind.len());
        *pattern += &rest[..from];
        *pattern += if end >= 4 { "*" } else { &behind[..end] };
        rest = &behind[end..];
    }
    *pattern += rest;
}

/// The maximum number of entries of a journal of which fault points are made.
pub(crate) const ENTRIES_MAX: usize = 100_000;

/// A place of a run.
struct SweepPlace {
    client: u32,
    op: String,
    is_read: bool,
    path: String,
    nth: u64,
    /// What the client did here and before; places with the same context are equivalent.
    context: String,
}

/// The ordinals of the requests or events of a client that match an operation and a pattern.
struct Ordinals {
    client: u32,
    op: Option<FaultOp>,
    path: String,
    glob: Option<Glob>,
    count: u64,
}

/// The places of a run.
#[derive(Default)]
struct Places {
    clients: Vec<SessionId>,
    /// What each client did last, client 0 included.
    before: Vec<String>,
    ordinals: Vec<Ordinals>,
    /// Where the entries of requests are that a fault acted on: no other fault counts them.
    faulted: Vec<usize>,
}

/// Returns the fault points of a run that its journal shows. Those of equivalent places are left out,
/// unless `all`: the same fault at the same request with the same result, after the same one.
pub(crate) fn points_of(
    entries: &[JournalEntry],
    faults: &[SweepFault],
    all: bool,
) -> Vec<FaultPoint> {
    let mut places = Places::default();
    let mut seen = BTreeSet::new();
    let mut points = Vec::new();
    let found = places.of(entries);
    let clients = places.clients.len();
    for place in found {
        for fault in faults {
            if !is_possible(*fault, &place, clients, all) {
                continue;
            }
            if !all && !seen.insert(format!("{} {}", fault.name(), place.context)) {
                continue;
            }
            points.push(FaultPoint {
                fault: *fault,
                client: place.client,
                op: place.op.clone(),
                nth: place.nth,
                path: place.path.clone(),
            });
        }
    }
    points
}

/// Returns whether a fault makes sense at a place, and is not equivalent to another one there.
fn is_possible(fault: SweepFault, place: &SweepPlace, clients: usize, all: bool) -> bool {
    match place.op.as_str() {
        EVENT => fault == SweepFault::EventLate,
        "connect" | "closeSession" => {
            matches!(fault, SweepFault::ReplyLost | SweepFault::RequestLost)
        }
        _ => match fault {
            SweepFault::EventLate => false,
            // Whether a request that changes nothing is lost, or its reply, is the same to a client.
            SweepFault::RequestLost => all || !place.is_read,
            // With one client a restart is a lost reply.
            SweepFault::ServerRestarted => all || clients > 1,
            _ => true,
        },
    }
}

impl Places {
    fn of(&mut self, entries: &[JournalEntry]) -> Vec<SweepPlace> {
        let mut places = Vec::new();
        self.before.push(String::new());
        let entries = &entries[..entries.len().min(ENTRIES_MAX)];
        let mut faulted: Option<&JournalEntry> = None;
        for (index, entry) in entries.iter().enumerate() {
            let (is_event, op) = match &entry.what {
                Occurrence::Request(request) => (false, request.op),
                Occurrence::Event { .. } => (true, EVENT),
                Occurrence::Fault { op, .. } => {
                    if let Some(session) = entry.session.filter(|_| *op != "createSession") {
                        self.client(session);
                    }
                    faulted = Some(entry);
                    continue;
                }
                _ => continue,
            };
            let Some(session) = entry.session.filter(|_| op != "ping") else {
                continue;
            };
            let is_handshake = op == OpCode::CreateSession.name();
            let client = if is_handshake {
                0
            } else {
                self.client(session)
            };
            if faulted.take_if(|fault| is_same(fault, entry)).is_some() {
                self.faulted.push(index);
                continue;
            }
            let op = if is_handshake { "connect" } else { op };
            let fault_op = op.parse::<FaultOp>().ok();
            if !is_event && fault_op.is_none() {
                continue;
            }
            let path = paths_of(entry).next().map(pattern).unwrap_or_default();
            // A pattern that is too long, or of a path that is not valid, is left out.
            let glob = Glob::new(&path).ok();
            let path = if glob.is_some() { path } else { String::new() };
            let nth = self.count(entry, client, fault_op, path.clone(), &entries[..index]);
            let result = entry.result().unwrap_or_default();
            let did = format!("{op} {path} {result}");
            let before = &mut self.before[client as usize];
            // An event does not change what its watcher did last.
            let context = format!("{before}, {did}");
            if !is_event {
                *before = did;
            }
            places.push(SweepPlace {
                client,
                op: op.to_owned(),
                is_read: is_read(op),
                path,
                nth,
                context,
            });
        }
        places
    }

    /// Returns the number of the client with this session.
    fn client(&mut self, session: SessionId) -> u32 {
        let known = self.clients.iter().position(|known| *known == session);
        let place = known.unwrap_or_else(|| {
            self.clients.push(session);
            self.before.push(String::new());
            self.clients.len() - 1
        });
        u32::try_from(place + 1).unwrap_or(u32::MAX)
    }

    /// Counts an entry for all ordinals that it matches. Returns its own.
    fn count(
        &mut self,
        entry: &JournalEntry,
        client: u32,
        op: Option<FaultOp>,
        path: String,
        earlier: &[JournalEntry],
    ) -> u64 {
        let is_own = |one: &Ordinals| one.client == client && one.op == op && one.path == path;
        let own = self.ordinals.iter().position(is_own);
        for ordinals in &mut self.ordinals {
            ordinals.count += u64::from(ordinals.matches(entry, client));
        }
        if let Some(own) = own {
            return self.ordinals[own].count;
        }
        let mut ordinals = Ordinals {
            client,
            op,
            glob: Glob::new(&path).ok(),
            path,
            count: 1,
        };
        for (index, entry) in earlier.iter().enumerate() {
            if self.faulted.contains(&index) {
                continue;
            }
            let Some(session) = entry.session else {
                continue;
            };
            let of = self.clients.iter().position(|known| *known == session);
            let is_handshake = entry.op() == Some(OpCode::CreateSession.name());
            let of = match of {
                _ if is_handshake => 0,
                Some(place) => u32::try_from(place + 1).unwrap_or(u32::MAX),
                None => continue,
            };
            ordinals.count += u64::from(ordinals.matches(entry, of));
        }
        let count = ordinals.count;
        self.ordinals.push(ordinals);
        count
    }
}

impl Ordinals {
    /// Returns whether a fault with these conditions would count what an entry shows.
    fn matches(&self, entry: &JournalEntry, client: u32) -> bool {
        let is_of_op = match (&entry.what, self.op) {
            (Occurrence::Request(request), Some(op)) => {
                OpCode::from_name(request.op).is_some_and(|name| op.is_of_op(name))
            }
            (Occurrence::Event { .. }, None) => true,
            _ => false,
        };
        let is_at = |glob: &Glob| paths_of(entry).any(|path| glob.matches(path.as_bytes()));
        is_of_op && self.client == client && self.glob.as_ref().is_none_or(is_at)
    }
}

/// Returns the paths that a request was sent with, or that of an event.
fn paths_of(entry: &JournalEntry) -> impl Iterator<Item = &str> {
    let (one, operations) = match &entry.what {
        Occurrence::Request(request) => (request.path.as_deref(), &request.operations[..]),
        Occurrence::Event { path, .. } => (Some(path.as_str()), &[][..]),
        _ => (None, &[][..]),
    };
    let operations = operations.iter().map(|operation| operation.path.as_str());
    one.into_iter().chain(operations)
}

/// Returns whether a fault acted on the request of this entry.
fn is_same(fault: &JournalEntry, entry: &JournalEntry) -> bool {
    fault.connection == entry.connection && fault.op() == entry.op()
}

fn is_read(op: &str) -> bool {
    matches!(
        op,
        "getData"
            | "exists"
            | "getChildren"
            | "getChildren2"
            | "getACL"
            | "getEphemerals"
            | "getAllChildrenNumber"
            | "multiRead"
            | "sync"
            | "whoAmI"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_leave_out_what_differs_between_runs() {
        for (path, expected) in [
            ("/", "/"),
            ("/locks/printer", "/locks/printer"),
            (
                "/l/_c_0e1f2a3b-4c5d-6e7f-8091-a2b3c4d5e6f7-lock-",
                "/l/_c_*-lock-",
            ),
            (
                "/l/_c_0e1f2a3b-4c5d-6e7f-8091-a2b3c4d5e6f7-lock-0000000012",
                "/l/_c_*-lock-*",
            ),
            (
                "/l/0e1f2a3b4c5d6e7f8091a2b3c4d5e6f7__lock__0000000003",
                "/l/*__lock__*",
            ),
            ("/n/n-0000000001", "/n/n-*"),
            ("/hosts/worker-17", "/hosts/worker-17"),
            ("/hosts/10.0.0.1:43211", "/hosts/10.0.0.1:*"),
            ("/s/0x100000000000001", "/s/*"),
            ("/facade/deadbeef", "/facade/deadbeef"),
            ("/x/y2024-data", "/x/y*-data"),
            ("/ü/1234", "/ü/*"),
        ] {
            assert_eq!(pattern(path), expected, "{path}");
        }
    }

    #[test]
    fn points_have_a_text_that_comes_back() {
        for text in [
            "reply-lost:1:create:2:/locks/*",
            "event-late:3:event:1:/a:b",
            "request-lost:0:connect:1:",
            "server-restarted:2:multi:11:",
        ] {
            assert_eq!(text.parse::<FaultPoint>().unwrap().to_string(), text);
        }
        let point: FaultPoint = "reply-lost:1:create:2:/locks/*".parse().unwrap();
        assert_eq!(
            point.sentence(),
            "the reply to the 2nd create of /locks/* by client 1 was lost"
        );
        for (text, wrong) in [
            ("", "unknown; one of"),
            ("reply-lost", "no client"),
            ("reply-lost:x:create:1:/a", "the client is no number"),
            ("reply-lost:1:create:0:/a", "the ordinal is no number"),
            ("reply-lost:1:creat:1:/a", "unknown; one of"),
            ("reply-lost:1:create:1:a", "must begin with"),
            ("reply-lost:1:event:1:/a", "go together"),
        ] {
            let error = text.parse::<FaultPoint>().unwrap_err().to_string();
            assert!(error.contains(wrong), "{text}: {error}");
        }
    }

    #[test]
    fn faults_have_the_names_that_parse() {
        for fault in SweepFault::ALL {
            assert_eq!(fault.name().parse(), Ok(fault));
        }
    }

    #[test]
    fn ordinals_end_as_in_english() {
        let texts = [1, 2, 3, 4, 11, 12, 13, 21, 112, 123].map(ordinal);
        let wanted = "1st 2nd 3rd 4th 11th 12th 13th 21st 112th 123rd";
        assert_eq!(texts.join(" "), wanted);
    }
}
