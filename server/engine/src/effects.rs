//! The outputs of the engine: replies, events, connections to close, changes to log.

use minikeeper_protocol::{ConnectResponse, EventKind, ReplyHeader, ReplyRef, SessionId, Zxid};

use crate::{
    input::ConnId,
    persist::change::{Change, ChangeHead},
};

/// A watch event to send.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The kind of event.
    pub kind: EventKind,
    /// The path of the znode.
    pub path: &'a [u8],
    /// The zxid of the change that caused it; [`Zxid::NONE`] for a missed event sent by setWatches.
    pub zxid: Zxid,
}

/// Why the engine closes a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The client closed its session.
    SessionClosed,
    /// The session expired.
    SessionExpired,
    /// The session was resumed on another connection.
    SessionMoved,
    /// The client named a session that does not exist, or a wrong password.
    SessionRefused,
    /// The client has seen a newer state than this server has.
    ZxidAhead,
    /// The operation does not exist.
    UnknownOp,
    /// An auth packet or a SASL exchange was refused.
    AuthFailed,
    /// A request arrived before the client authenticated by a scheme in `enforce_auth_schemes`.
    AuthRequired,
    /// The client names another ensemble.
    EnsembleRefused,
    /// A malformed SASL message, to which ZooKeeper does not reply.
    SaslUnanswered,
    /// `sessions_max` is reached.
    SessionsMax,
    /// The state was rewound to a time before the session was opened.
    Rewound,
}

impl std::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::SessionClosed => "session closed by its client",
            Self::SessionExpired => "session expired",
            Self::SessionMoved => "session moved to another connection",
            Self::SessionRefused => "unknown session or wrong password",
            Self::ZxidAhead => "client has seen a newer zxid than this server",
            Self::UnknownOp => "unknown operation",
            Self::AuthFailed => "authentication failed",
            Self::AuthRequired => "request before authentication by one of enforce_auth_schemes",
            Self::EnsembleRefused => "client names another ensemble than ensemble_names",
            Self::SaslUnanswered => "malformed sasl message",
            Self::SessionsMax => "sessions_max reached",
            Self::Rewound => "session opened after the restored state",
        })
    }
}

/// A limit that a request has reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// [`crate::Settings::sessions_max`].
    Sessions,
    /// [`crate::Settings::watches_max`].
    Watches,
    /// [`crate::Settings::tree_bytes_max`].
    TreeBytes,
    /// [`crate::Settings::reply_bytes_max`].
    ReplyBytes,
    /// [`crate::Settings::multi_operations_max`].
    MultiOperations,
    /// [`crate::Settings::acl_entries_max`].
    AclEntries,
    /// [`crate::Settings::identities_max`].
    Identities,
}

impl Limit {
    /// Returns the name of the setting.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Sessions => "sessions_max",
            Self::Watches => "watches_max",
            Self::TreeBytes => "tree_bytes_max",
            Self::ReplyBytes => "reply_bytes_max",
            Self::MultiOperations => "multi_operations_max",
            Self::AclEntries => "acl_entries_max",
            Self::Identities => "identities_max",
        }
    }
}

/// Why the server deletes a znode that no request names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Removal {
    /// It is an ephemeral, and its session has ended.
    SessionEnded {
        /// The session.
        session: SessionId,
        /// Whether the session expired; otherwise its client closed it.
        expired: bool,
    },
    /// It is a container that has lost its last child, or never had one.
    EmptyContainer,
    /// Its time to live is over.
    TimeToLive,
}

/// Receives what the shell must carry out, in order.
///
/// Called while the engine is borrowed, so an implementation only records its calls.
pub trait Effects {
    /// Replies to a handshake.
    fn connected(&mut self, to: ConnId, response: &ConnectResponse);
    /// Replies to a request. The body is [`ReplyRef::Empty`] for most errors in the header.
    ///
    /// A successful reply may be longer than [`reply_bytes_max`](crate::Settings::reply_bytes_max):
    /// the shell measures it by encoding it, and replies with MARSHALLINGERROR if it is too long.
    fn reply(&mut self, to: ConnId, header: ReplyHeader, body: ReplyRef<'_>);
    /// Sends an event, because a watch has fired.
    fn event(&mut self, to: ConnId, event: &Event<'_>);
    /// Closes a connection once everything before this is sent.
    fn close(&mut self, conn: ConnId, why: CloseReason);
    /// Reports that a request was refused because of a limit. Its reply has been sent.
    fn limit_hit(&mut self, limit: Limit, max: usize);
    /// Reports that a session was opened or resumed.
    fn session_opened(&mut self, _session: SessionId, _timeout_ms: u32) {}
    /// Reports that a client asked for a session that does not exist, and was told so.
    fn session_refused(&mut self, _session: SessionId) {}
    /// Reports that a session has ended.
    fn session_ended(&mut self, _session: SessionId, _expired: bool) {}
    /// Reports that the server deletes a znode that no request names. The events of the deletion follow.
    fn removed(&mut self, _path: &[u8], _zxid: Zxid, _why: Removal) {}
    /// Returns whether the engine must call [`changed`](Effects::changed).
    fn keeps_changes(&self) -> bool {
        false
    }
    /// Reports a change of the state. [Replaying](crate::Restoration::replay) all changes since an
    /// earlier state on that state gives the current one, except for what ends with the process:
    /// connections, watches, times. The parts of a multi come one after the other, under one zxid.
    ///
    /// Not called for [`Engine::rewind`](crate::Engine::rewind),
    /// [`Engine::restart`](crate::Engine::restart), [`Engine::replace`](crate::Engine::replace) and
    /// sessions that move between engines.
    fn changed(&mut self, _head: ChangeHead, _change: &Change<'_>) {}
    /// Reports that the changes under this zxid were undone, because their multi has failed.
    fn taken_back(&mut self, _zxid: Zxid) {}
}
