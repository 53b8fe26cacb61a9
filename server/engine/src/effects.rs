//! Everything that leaves the engine: replies, events, connections to close, changes to log.

use minikeeper_protocol::{ConnectResponse, EventKind, ReplyHeader, ReplyRef, SessionId, Zxid};

use crate::{
    input::ConnId,
    persist::change::{Change, ChangeHead},
};

/// A watch event on its way out.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// What happened.
    pub kind: EventKind,
    /// The znode it happened to.
    pub path: &'a [u8],
    /// The change that caused it; [`Zxid::NONE`] when setWatches made it up.
    pub zxid: Zxid,
}

/// Why the engine wants a connection closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The client closed its session.
    SessionClosed,
    /// The session expired.
    SessionExpired,
    /// The session went on over another connection.
    SessionMoved,
    /// The client named a session that does not exist, or a wrong password.
    SessionRefused,
    /// The client has seen a newer state than this server has.
    ZxidAhead,
    /// The operation does not exist.
    UnknownOp,
    /// An auth packet or a SASL exchange was refused.
    AuthFailed,
    /// A request came before an identity of the schemes in `enforce_auth_schemes`.
    AuthRequired,
    /// The client is looking for another ensemble.
    EnsembleRefused,
    /// A SASL message of a kind that ZooKeeper trips over.
    SaslUnanswered,
    /// `sessions_max` is reached.
    SessionsMax,
    /// The state went back to one in which the session had not been opened yet.
    Rewound,
}

impl std::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::SessionClosed => "session closed by its client",
            Self::SessionExpired => "session expired",
            Self::SessionMoved => "session moved to another connection",
            Self::SessionRefused => "session unknown or password wrong",
            Self::ZxidAhead => "client has seen a newer zxid than this server",
            Self::UnknownOp => "operation unknown",
            Self::AuthFailed => "authentication failed",
            Self::AuthRequired => "request before the authentication in enforce_auth_schemes",
            Self::EnsembleRefused => "client is looking for another ensemble (ensemble_names)",
            Self::SaslUnanswered => "sasl message malformed",
            Self::SessionsMax => "sessions_max reached",
            Self::Rewound => "session opened after the state that was gone back to",
        })
    }
}

/// A limit that a request ran into.
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
    /// The name of the setting.
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

/// What the shell must carry out, in the order of the calls.
///
/// Called while the engine is borrowed, so an implementation only notes things down.
pub trait Effects {
    /// The answer to a handshake.
    fn connected(&mut self, to: ConnId, response: &ConnectResponse);
    /// The reply to a request; the body is [`ReplyRef::Empty`] when the header has an error.
    ///
    /// A successful reply may be longer than [`reply_bytes_max`](crate::Settings::reply_bytes_max):
    /// it is measured when it is encoded, and refused with MARSHALLINGERROR if it is too long.
    fn reply(&mut self, to: ConnId, header: ReplyHeader, body: ReplyRef<'_>);
    /// A watch fired.
    fn event(&mut self, to: ConnId, event: &Event<'_>);
    /// Closes a connection once everything before is sent.
    fn close(&mut self, conn: ConnId, why: CloseReason);
    /// A request was refused because of a limit; it has been answered.
    fn limit_hit(&mut self, limit: Limit, max: usize);
    /// A session began.
    fn session_opened(&mut self, _session: SessionId, _timeout_ms: u32) {}
    /// A session ended.
    fn session_ended(&mut self, _session: SessionId, _expired: bool) {}
    /// Whether [`changed`](Effects::changed) is to be called.
    fn keeps_changes(&self) -> bool {
        false
    }
    /// The state changed in this way. [Replaying](crate::Restoration::replay) all changes since an
    /// earlier state on that state gives this one, except for what ends with the process:
    /// connections, watches, times. The parts of a multi come one after the other, under one zxid.
    ///
    /// Not called for [`Engine::rewind`](crate::Engine::rewind),
    /// [`Engine::restart`](crate::Engine::restart), [`Engine::replace`](crate::Engine::replace) and
    /// sessions that move between engines.
    fn changed(&mut self, _head: ChangeHead, _change: &Change<'_>) {}
    /// The changes reported under this zxid were undone: its multi has failed.
    fn taken_back(&mut self, _zxid: Zxid) {}
}
