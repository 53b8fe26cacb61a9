//! The steps of sessions, as rules see them: entries of the journal, parsed once.

use std::time::Duration;

use minikeeper_core::journal::entry::{JournalOperation, JournalRequest};
use minikeeper_protocol::{CreateMode, ErrorCode, EventKind, OpCode, SessionId};

use crate::advice::{
    facts::{self, ClientFacts, Facts, WatchCounts},
    findings::Findings,
};

/// What a session did, or what happened to it.
#[derive(Clone, Copy, Debug)]
pub(super) enum ClientStep<'a> {
    /// It sent a request. What that changed follows.
    Request(&'a Request<'a>),
    /// It created the znode of this path.
    Create(&'a str, CreateMode),
    /// It wrote data; `is_checked` if a version protects that.
    SetData { path: &'a str, is_checked: bool },
    /// It deleted a znode.
    Delete { path: &'a str, is_in_multi: bool },
    /// A part of its multi changed nothing.
    Check,
    /// It has set a watch on a child of this path.
    WatchSet(&'a str, WatchCounts),
    /// One of its watches fired.
    Event {
        kind: EventKind,
        path: &'a str,
        zxid: i64,
    },
    /// A fault acted on its next request.
    Fault { loses_reply: bool },
    /// The server deleted its ephemeral.
    Removed(&'a str),
    /// It ended.
    Ended { expired: bool },
}

/// Where and when a step is in the journal, and of which session.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryHead {
    /// The number of the entry.
    pub(super) number: u64,
    pub(super) time: Duration,
    pub(super) session: SessionId,
}

/// What a rule has besides the step.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) at: EntryHead,
    /// What the entries so far say of the session, and of all else before the step.
    pub(super) client: ClientFacts,
    pub(super) facts: &'a Facts,
    pub(super) findings: &'a mut Findings,
}

/// A request other than a ping or the begin and the end of a session.
#[derive(Debug)]
pub(super) struct Request<'a> {
    /// The operation; `None` if the protocol has none of this name.
    pub(super) op: Option<OpCode>,
    pub(super) op_name: &'static str,
    /// The path; empty for none, or for several.
    pub(super) path: &'a str,
    /// The mode, if it is a create.
    pub(super) mode: CreateMode,
    /// The length of the data, of a multi that of all operations, and the first path that it is for. Unit: bytes.
    pub(super) data_bytes: u64,
    pub(super) data_path: &'a str,
    pub(super) watch: bool,
    pub(super) is_answered: bool,
    pub(super) error: Option<ErrorCode>,
    pub(super) result: &'static str,
}

impl Scene<'_> {
    /// Returns the key of what the session did with a path.
    pub(super) fn use_key(&self, path: &str) -> String {
        facts::use_key(self.at.session, path)
    }

    /// Reports a mistake that this entry completes, and the entries before that show it.
    #[inline(never)]
    pub(super) fn report(
        &mut self,
        path: &str,
        weight: u64,
        count: u64,
        before: &[u64],
        text: String,
    ) {
        let entries = [before, &[self.at.number]].concat();
        self.findings.add(path, weight, count, &entries, text);
    }
}

impl<'a> Request<'a> {
    pub(super) fn new(op: Option<OpCode>, request: &'a JournalRequest) -> Self {
        let path = request.path.as_deref().unwrap_or_default();
        let (data_bytes, data_path) = if op == Some(OpCode::Multi) {
            let bytes = |it: &JournalOperation| u64::from(it.data_bytes.unwrap_or(0));
            let first = request.operations.first().map_or("", |it| it.path.as_str());
            (request.operations.iter().map(bytes).sum(), first)
        } else {
            (request.data_bytes.unwrap_or(0).into(), path)
        };
        Self {
            op,
            op_name: request.op,
            path,
            mode: mode_of(request.mode),
            data_bytes,
            data_path,
            watch: request.watch,
            is_answered: request.is_answered,
            error: request.error,
            result: request.result(),
        }
    }

    pub(super) const fn is_create(&self) -> bool {
        is_create(self.op)
    }

    /// Returns whether it is a create of a sequential ephemeral that the server did not refuse.
    pub(super) fn is_queue(&self) -> bool {
        self.is_create() && self.mode == CreateMode::EphemeralSequential && self.error.is_none()
    }

    /// Returns whether it is a create that found the znode there.
    pub(super) fn is_late(&self) -> bool {
        self.is_create() && !self.mode.is_sequential() && self.error == Some(ErrorCode::NodeExists)
    }

    /// Returns whether it reads a znode, and may set a watch on it.
    pub(super) const fn is_read(&self) -> bool {
        self.is_list() || matches!(self.op, Some(OpCode::GetData | OpCode::Exists))
    }

    pub(super) const fn is_list(&self) -> bool {
        matches!(self.op, Some(OpCode::GetChildren | OpCode::GetChildren2))
    }
}

impl<'a> ClientStep<'a> {
    /// Returns what a request other than a multi changed; `None` if nothing.
    pub(super) fn of_request(op: Option<OpCode>, request: &'a JournalRequest) -> Option<Self> {
        let created = request.created.as_ref().filter(|_| is_create(op));
        let path = created.or(request.path.as_ref());
        let is_checked = request.version != Some(-1);
        let path = path.map_or("", String::as_str);
        Self::of(op, path, request.mode, is_checked, false)
    }

    /// Returns what the operations of a multi changed. The path of a sequential create is not known.
    pub(super) fn of_multi(request: &'a JournalRequest) -> impl Iterator<Item = Self> {
        let operations = request.operations.iter();
        let is_checked = (operations.clone()).any(|it| it.version.is_some_and(|it| it != -1));
        let step = move |it: &'a JournalOperation| {
            let op = OpCode::from_name(it.op);
            Self::of(op, &it.path, it.mode, is_checked, true).unwrap_or(Self::Check)
        };
        operations
            .filter(|it| !mode_of(it.mode).is_sequential())
            .map(step)
    }

    fn of(
        op: Option<OpCode>,
        path: &'a str,
        mode: Option<&str>,
        is_checked: bool,
        is_in_multi: bool,
    ) -> Option<Self> {
        Some(match op? {
            OpCode::SetData => Self::SetData { path, is_checked },
            OpCode::Delete => Self::Delete { path, is_in_multi },
            _ if is_create(op) => Self::Create(path, mode_of(mode)),
            _ => return None,
        })
    }
}

const fn is_create(op: Option<OpCode>) -> bool {
    matches!(
        op,
        Some(OpCode::Create | OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl)
    )
}

/// Returns the mode of this name, of which rules ask whether it is ephemeral, and whether sequential.
fn mode_of(name: Option<&str>) -> CreateMode {
    match name {
        Some("EPHEMERAL") => CreateMode::Ephemeral,
        Some("EPHEMERAL_SEQUENTIAL") => CreateMode::EphemeralSequential,
        Some(name) if name.contains("SEQUENTIAL") => CreateMode::PersistentSequential,
        _ => CreateMode::Persistent,
    }
}

pub(super) fn parent_of(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) if path.len() > 1 => "/",
        Some(slash) => &path[..slash],
        None => "",
    }
}

pub(super) fn name_of(path: &str) -> &str {
    path.rfind('/').map_or(path, |slash| &path[slash + 1..])
}
