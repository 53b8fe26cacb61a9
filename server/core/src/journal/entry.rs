//! Entries of the journal: what happened, as tests read it.

use std::{
    fmt,
    net::SocketAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use minikeeper_engine::Removal;
use minikeeper_protocol::{CreateMode, ErrorCode, EventKind, OpCode, SessionId, Zxid};

use crate::journal::record::{DecodedRecord, Operation, RecordKind};

/// Something that happened in a universe.
///
/// Its text is one line: time, connection, session, and what happened.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct JournalEntry {
    /// Its number: they are consecutive, and never reused.
    pub number: u64,
    /// The time since the server started, by the universe's clock.
    pub at: Duration,
    /// The time of day by that clock.
    pub wall: SystemTime,
    /// The number of the connection, which is never reused.
    pub connection: Option<u64>,
    /// The session of the connection, or the one that the entry is about.
    pub session: Option<SessionId>,
    /// The client's address; `None` for an in-process connection.
    pub address: Option<SocketAddr>,
    /// What happened.
    pub what: Occurrence,
}

/// What a [`JournalEntry`] is about.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Occurrence {
    /// The server served a request.
    Request(JournalRequest),
    /// A watch fired.
    Event {
        /// The kind of event.
        kind: EventKind,
        /// The path of the znode.
        path: String,
        /// The zxid of the change.
        zxid: Zxid,
        /// The entry of the request that caused it; `None` for an expiry or a verb.
        cause: Option<u64>,
        /// Whether a fault holds it back.
        is_held: bool,
    },
    /// The server deleted a znode that no request names. The entry's session is the owner of an ephemeral.
    Deleted {
        /// The path of the znode.
        path: String,
        /// The zxid of the change.
        zxid: Zxid,
        /// Why.
        why: DeletionReason,
        /// The entry of the closeSession that caused it; `None` otherwise.
        cause: Option<u64>,
    },
    /// A fault acted on a client's message.
    Fault {
        /// The number of the fault.
        fault: u64,
        /// The action, such as `lose_reply`.
        action: String,
        /// The operation, by its name in the protocol.
        op: &'static str,
        /// The path in the request.
        path: Option<String>,
    },
    /// A session was opened, or resumed on another connection.
    SessionBegan {
        /// The timeout granted.
        timeout: Duration,
        /// Whether it was opened.
        is_new: bool,
    },
    /// A session ended: it expired, or its client closed it.
    SessionEnded {
        /// Whether it expired.
        expired: bool,
    },
    /// A client connected, or a connection came from the server's own universe.
    ConnectionOpened,
    /// A connection ended.
    ConnectionClosed {
        /// Why.
        reason: String,
    },
    /// The clock was frozen, unfrozen or advanced; the text says how.
    Clock(String),
    /// A verb was used; the text has its arguments, without data.
    Verb(String),
    /// Entries were left out: one request caused too many, or a [`JournalTail`](../minikeeper/struct.JournalTail.html)
    /// was too slow.
    Omitted {
        /// How many.
        count: u64,
    },
}

/// Why the server deleted a znode that no request names, in a [`JournalEntry`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DeletionReason {
    /// It was an ephemeral of a session that expired.
    SessionExpired,
    /// It was an ephemeral of a session that its client closed.
    SessionClosed,
    /// It was a container that had lost its last child, or never had one.
    EmptyContainer,
    /// Its time to live was over.
    TimeToLive,
}

impl DeletionReason {
    /// Every reason. The code of a reason is its place.
    const ALL: [Self; 4] = [
        Self::SessionExpired,
        Self::SessionClosed,
        Self::EmptyContainer,
        Self::TimeToLive,
    ];

    pub(crate) const fn code(self) -> i32 {
        self as i32
    }

    fn from_code(code: i32) -> Self {
        let place = usize::try_from(code).unwrap_or_default();
        Self::ALL
            .get(place)
            .copied()
            .unwrap_or(Self::SessionExpired)
    }

    /// Returns the reason in a word, as JSON has it: `session_expired`, `session_closed`,
    /// `empty_container` or `time_to_live`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SessionExpired => "session_expired",
            Self::SessionClosed => "session_closed",
            Self::EmptyContainer => "empty_container",
            Self::TimeToLive => "time_to_live",
        }
    }

    /// Returns the reason of a [`name`](Self::name).
    #[cfg(feature = "control")]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl From<Removal> for DeletionReason {
    fn from(why: Removal) -> Self {
        match why {
            Removal::SessionEnded { expired: true, .. } => Self::SessionExpired,
            Removal::SessionEnded { .. } => Self::SessionClosed,
            Removal::EmptyContainer => Self::EmptyContainer,
            Removal::TimeToLive => Self::TimeToLive,
        }
    }
}

impl fmt::Display for DeletionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SessionExpired => "session expired",
            Self::SessionClosed => "session closed",
            Self::EmptyContainer => "empty container",
            Self::TimeToLive => "time to live over",
        })
    }
}

/// A request in a [`JournalEntry`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct JournalRequest {
    /// The client's number for the request.
    pub xid: i32,
    /// The operation, by its name in the protocol; `createSession` for a handshake.
    pub op: &'static str,
    /// The path; `None` for requests without one or with several. Cut off after 1,024 bytes.
    pub path: Option<String>,
    /// The path of the znode that was created, if a number was appended to `path`.
    pub created: Option<String>,
    /// The version that the request demands; -1 for any.
    pub version: Option<i32>,
    /// The mode of a create, by its name in ZooKeeper.
    pub mode: Option<&'static str>,
    /// Whether the request sets a watch.
    pub watch: bool,
    /// The length of the data. Unit: bytes.
    pub data_bytes: Option<u32>,
    /// The session timeout that a handshake asks for.
    pub timeout: Option<Duration>,
    /// The operations of a multi: the first 32.
    pub operations: Vec<JournalOperation>,
    /// The number of those operations.
    pub operation_count: u32,
    /// The error in the reply; `None` if the request succeeded.
    pub error: Option<ErrorCode>,
    /// Whether the server replied.
    pub is_answered: bool,
    /// The zxid in the reply.
    pub zxid: Zxid,
    /// How long the turn took that served it, with others of the same connection.
    pub duration: Duration,
}

/// An operation of a multi in a [`JournalRequest`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct JournalOperation {
    /// The operation, by its name in the protocol.
    pub op: &'static str,
    /// The path.
    pub path: String,
    /// The version that it demands; -1 for any.
    pub version: Option<i32>,
    /// The mode of a create, by its name in ZooKeeper.
    pub mode: Option<&'static str>,
    /// The length of the data. Unit: bytes.
    pub data_bytes: Option<u32>,
}

/// Returns ZooKeeper's name of a create mode.
const fn mode_name(flags: i32) -> &'static str {
    match CreateMode::from_flags(flags) {
        Some(CreateMode::Persistent) => "PERSISTENT",
        Some(CreateMode::Ephemeral) => "EPHEMERAL",
        Some(CreateMode::PersistentSequential) => "PERSISTENT_SEQUENTIAL",
        Some(CreateMode::EphemeralSequential) => "EPHEMERAL_SEQUENTIAL",
        Some(CreateMode::Container) => "CONTAINER",
        Some(CreateMode::PersistentWithTtl) => "PERSISTENT_WITH_TTL",
        Some(CreateMode::PersistentSequentialWithTtl) => "PERSISTENT_SEQUENTIAL_WITH_TTL",
        None => "INVALID",
    }
}

/// Returns the name of a create mode, as it is known to the journal; `None` for other texts.
#[cfg(feature = "control")]
pub fn known_mode(name: &str) -> Option<&'static str> {
    (0..=6).map(mode_name).find(|known| *known == name)
}

fn op_name(code: i32) -> &'static str {
    OpCode::from_code(code).map_or("unknown", OpCode::name)
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const fn is_create(op: Option<OpCode>) -> bool {
    matches!(
        op,
        Some(OpCode::Create | OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl)
    )
}

const fn has_version(op: Option<OpCode>) -> bool {
    matches!(
        op,
        Some(OpCode::SetData | OpCode::Delete | OpCode::Check | OpCode::SetAcl)
    )
}

const fn has_data(op: Option<OpCode>) -> bool {
    is_create(op) || matches!(op, Some(OpCode::SetData))
}

impl JournalEntry {
    /// Creates an entry that names no connection, session or address.
    #[must_use]
    pub fn new(number: u64, at: Duration, wall: SystemTime, what: Occurrence) -> Self {
        Self {
            number,
            at,
            wall,
            connection: None,
            session: None,
            address: None,
            what,
        }
    }

    /// Every kind, and what stands for several; see [`JournalFilter::kind`](crate::journal::filter::JournalFilter::kind).
    pub const KINDS: &[&str] = &[
        "request",
        "event",
        "deleted",
        "fault",
        "session",
        "session_opened",
        "session_resumed",
        "session_expired",
        "session_closed",
        "connection",
        "connection_opened",
        "connection_closed",
        "clock",
        "verb",
        "omitted",
    ];

    pub(super) fn of(number: u64, decoded: &DecodedRecord<'_>) -> Self {
        let DecodedRecord {
            context,
            record,
            text,
            more,
        } = decoded;
        let named = !text.is_empty();
        let path = named.then(|| text_of(text));
        let cause = (record.cause > 0).then_some(record.cause);
        let millis = |ms: u32| Duration::from_millis(ms.into());
        let what = match record.kind {
            RecordKind::Request => Occurrence::Request(JournalRequest::of(decoded, path)),
            RecordKind::Event => Occurrence::Event {
                kind: EventKind::from_code(record.op).unwrap_or(EventKind::Created),
                path: text_of(text),
                zxid: record.zxid,
                cause,
                is_held: record.is_flagged,
            },
            RecordKind::Deleted => Occurrence::Deleted {
                path: text_of(text),
                zxid: record.zxid,
                why: DeletionReason::from_code(record.op),
                cause,
            },
            RecordKind::Fault => Occurrence::Fault {
                fault: record.cause,
                action: text_of(more),
                op: op_name(record.op),
                path,
            },
            RecordKind::SessionBegan => Occurrence::SessionBegan {
                timeout: millis(record.number),
                is_new: record.is_flagged,
            },
            RecordKind::SessionEnded => Occurrence::SessionEnded {
                expired: record.is_flagged,
            },
            RecordKind::ConnectionOpened => Occurrence::ConnectionOpened,
            RecordKind::ConnectionClosed => Occurrence::ConnectionClosed {
                reason: text_of(text),
            },
            RecordKind::Clock => Occurrence::Clock(text_of(text)),
            RecordKind::Verb => Occurrence::Verb(text_of(text)),
            RecordKind::Omitted => Occurrence::Omitted {
                count: record.zxid.0.cast_unsigned(),
            },
        };
        Self {
            number,
            at: Duration::from_millis(context.now.elapsed_ms),
            wall: UNIX_EPOCH + Duration::from_millis(context.now.wall_ms.max(0).unsigned_abs()),
            connection: (context.conn > 0).then_some(context.conn),
            session: (context.session != SessionId::NONE).then_some(context.session),
            address: context.address,
            what,
        }
    }

    /// Returns an entry which says that so many before this one are missing.
    pub const fn omitted_before(&self, count: u64) -> Self {
        Self {
            number: self.number - count,
            connection: None,
            session: None,
            address: None,
            what: Occurrence::Omitted { count },
            ..*self
        }
    }

    /// Returns what kind of entry it is, in a word.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self.what {
            Occurrence::Request(_) => "request",
            Occurrence::Event { .. } => "event",
            Occurrence::Deleted { .. } => "deleted",
            Occurrence::Fault { .. } => "fault",
            Occurrence::SessionBegan { is_new: true, .. } => "session_opened",
            Occurrence::SessionBegan { .. } => "session_resumed",
            Occurrence::SessionEnded { expired: true } => "session_expired",
            Occurrence::SessionEnded { .. } => "session_closed",
            Occurrence::ConnectionOpened => "connection_opened",
            Occurrence::ConnectionClosed { .. } => "connection_closed",
            Occurrence::Clock(_) => "clock",
            Occurrence::Verb(_) => "verb",
            Occurrence::Omitted { .. } => "omitted",
        }
    }

    /// Returns the operation of a request, or the one that a fault acted on.
    #[must_use]
    pub const fn op(&self) -> Option<&'static str> {
        match &self.what {
            Occurrence::Request(request) => Some(request.op),
            Occurrence::Fault { op, .. } => Some(op),
            _ => None,
        }
    }

    /// Returns every path of the entry: of the request, of the znode that it created, of the
    /// operations in it, of the event, or of the znode that the server deleted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let (one, request) = match &self.what {
            Occurrence::Request(request) => (request.path.as_deref(), Some(request)),
            Occurrence::Event { path, .. } | Occurrence::Deleted { path, .. } => {
                (Some(path.as_str()), None)
            }
            Occurrence::Fault { path, .. } => (path.as_deref(), None),
            _ => (None, None),
        };
        let created = request.and_then(|request| request.created.as_deref());
        let operations = request.into_iter().flat_map(|request| &request.operations);
        let of_operations = operations.map(|operation| operation.path.as_str());
        one.into_iter().chain(created).chain(of_operations)
    }

    /// Returns the result of a request: `OK`, the name of an error, or `NONE` if the server did not
    /// reply.
    #[must_use]
    pub const fn result(&self) -> Option<&'static str> {
        match &self.what {
            Occurrence::Request(request) => Some(request.result()),
            _ => None,
        }
    }
}

impl JournalRequest {
    fn of(decoded: &DecodedRecord<'_>, path: Option<String>) -> Self {
        let DecodedRecord {
            context,
            record,
            more,
            ..
        } = decoded;
        let op = OpCode::from_code(record.op).filter(|_| record.op != 0);
        let mut operations = Vec::new();
        let mut created = None;
        if matches!(op, Some(OpCode::Multi | OpCode::MultiRead)) {
            let mut rest = *more;
            while let Some((operation, path, behind)) = Operation::decode(rest) {
                operations.push(JournalOperation::of(operation, path));
                rest = behind;
            }
        } else if !more.is_empty() {
            created = Some(text_of(more));
        }
        let is_handshake = op == Some(OpCode::CreateSession);
        Self {
            xid: record.xid,
            op: op.map_or("unknown", OpCode::name),
            path,
            created,
            version: has_version(op).then_some(record.flags),
            mode: is_create(op).then(|| mode_name(record.flags)),
            watch: record.is_flagged,
            data_bytes: has_data(op).then_some(record.number),
            timeout: is_handshake.then(|| Duration::from_millis(record.number.into())),
            operation_count: if operations.is_empty() {
                0
            } else {
                record.number
            },
            operations,
            error: (record.error != 0).then(|| ErrorCode::from_code(record.error)),
            is_answered: !record.has_no_reply,
            zxid: record.zxid,
            duration: Duration::from_micros(context.micros.into()),
        }
    }

    /// Returns `OK`, the name of the error, or `NONE` if the server did not reply.
    #[must_use]
    pub const fn result(&self) -> &'static str {
        match self.error {
            _ if !self.is_answered => "NONE",
            None => "OK",
            Some(error) => error.name(),
        }
    }
}

impl JournalOperation {
    /// Creates an operation on a path, without other arguments.
    #[must_use]
    pub fn new(op: &'static str, path: String) -> Self {
        Self {
            op,
            path,
            version: None,
            mode: None,
            data_bytes: None,
        }
    }

    fn of(operation: Operation, path: &[u8]) -> Self {
        let op = OpCode::from_code(operation.code);
        Self {
            op: op_name(operation.code),
            path: text_of(path),
            version: has_version(op).then_some(operation.flags),
            mode: is_create(op).then(|| mode_name(operation.flags)),
            data_bytes: has_data(op).then_some(operation.data),
        }
    }
}

/// A path in one line, whatever bytes it has.
struct Line<'a>(&'a str);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.chars().any(char::is_control) {
            return self.0.escape_debug().fmt(f);
        }
        f.write_str(self.0)
    }
}

impl fmt::Display for JournalEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.at.as_millis();
        write!(f, "{:>5}.{:03}", ms / 1_000, ms % 1_000)?;
        if let Some(connection) = self.connection {
            write!(f, " #{connection}")?;
        }
        if let Some(session) = self.session {
            write!(f, " {session}")?;
        }
        f.write_str(" ")?;
        self.what.fmt(f)
    }
}

impl fmt::Display for Occurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(request) => request.fmt(f),
            Self::Event {
                kind,
                path,
                is_held,
                ..
            } => {
                let held = if *is_held { ", held by a fault" } else { "" };
                write!(f, "<- {} {}{held}", kind.name(), Line(path))
            }
            Self::Deleted { path, why, .. } => write!(f, "deleted {} ({why})", Line(path)),
            Self::Fault {
                fault,
                action,
                op,
                path,
            } => {
                write!(f, "fault {fault}: {action} {op}")?;
                path.iter()
                    .try_for_each(|path| write!(f, " {}", Line(path)))
            }
            Self::SessionBegan { timeout, is_new } => {
                let what = if *is_new { "opened" } else { "resumed" };
                write!(f, "session {what}, timeout {} ms", timeout.as_millis())
            }
            Self::SessionEnded { expired: true } => f.write_str("session expired"),
            Self::SessionEnded { expired: false } => f.write_str("session closed"),
            Self::ConnectionOpened => f.write_str("connected"),
            Self::ConnectionClosed { reason } => write!(f, "disconnected: {}", Line(reason)),
            Self::Clock(text) => write!(f, "clock {text}"),
            Self::Verb(text) => write!(f, "verb {}", Line(text)),
            Self::Omitted { count } => write!(f, "({count} further entries left out)"),
        }
    }
}

impl fmt::Display for JournalRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.op)?;
        if let Some(path) = &self.path {
            write!(f, " {}", Line(path))?;
        }
        arguments(f, self.mode, self.version, self.data_bytes)?;
        if self.watch {
            f.write_str(" watch")?;
        }
        if let Some(timeout) = self.timeout {
            write!(f, " timeout {} ms", timeout.as_millis())?;
        }
        for (index, operation) in self.operations.iter().enumerate() {
            let before = if index == 0 { " [" } else { ", " };
            write!(f, "{before}{} {}", operation.op, Line(&operation.path))?;
            arguments(f, operation.mode, operation.version, operation.data_bytes)?;
        }
        if !self.operations.is_empty() {
            let more = self.operation_count as usize - self.operations.len();
            if more > 0 {
                write!(f, ", {more} more")?;
            }
            f.write_str("]")?;
        }
        write!(f, " -> {}", self.result())?;
        if let Some(created) = &self.created {
            write!(f, " {}", Line(created))?;
        }
        Ok(())
    }
}

fn arguments(
    f: &mut fmt::Formatter<'_>,
    mode: Option<&str>,
    version: Option<i32>,
    data_bytes: Option<u32>,
) -> fmt::Result {
    if let Some(mode) = mode {
        write!(f, " {mode}")?;
    }
    if let Some(version) = version.filter(|version| *version != -1) {
        write!(f, " version {version}")?;
    }
    if let Some(bytes) = data_bytes.filter(|bytes| *bytes > 0) {
        write!(f, " {bytes} B")?;
    }
    Ok(())
}
