//! The inputs of the engine: time, requests and other events, settings.

use core::{fmt, net::IpAddr, ops::Deref};

use minikeeper_protocol::{ConnectRequest, ErrorCode, Request, SessionId, Xid, Zxid};

use crate::{
    auth::{digest::DigestAlgorithm, sasl::SaslSettings},
    effects::Limit,
};

/// The highest zxid accepted from outside: above it zxids could run out.
pub(crate) const ZXID_MAX: i64 = i64::MAX - (1 << 40);

/// A connection's number, assigned by the shell. Small numbers, reused after a disconnect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ConnId(pub u32);

impl std::fmt::Display for ConnId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The time of an input. The engine never reads a clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// Milliseconds since the server started; never decreases. Sessions expire by it.
    pub elapsed_ms: u64,
    /// Milliseconds since 1970; may step. Appears in stats, and times to live end by it.
    pub wall_ms: i64,
}

/// An input to the engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Announces a connection. One that is not announced counts as one from 127.0.0.1.
    Open {
        /// The connection.
        conn: ConnId,
        /// The client's address, which is its first identity.
        peer: IpAddr,
    },
    /// The client of an announced connection has shown a valid certificate, which adds an identity
    /// (`docs/zookeeper-protocol.md` section 9.12).
    Identify {
        /// The connection.
        conn: ConnId,
        /// The certificate's subject, in the form of RFC 2253.
        subject: String,
    },
    /// A connection's first message.
    Connect {
        /// The connection.
        conn: ConnId,
        /// The message.
        hello: ConnectRequest,
        /// Whether the client has reached a read-only server; the reply says so.
        is_read_only: bool,
    },
    /// A decoded request.
    Request {
        /// The connection.
        conn: ConnId,
        /// The client's number for the request.
        xid: Xid,
        /// The request.
        request: Request,
    },
    /// A whole frame of a known operation whose body cannot be decoded.
    Undecodable {
        /// The connection.
        conn: ConnId,
        /// The client's number for the request.
        xid: Xid,
        /// Whether it still takes a zxid, as a malformed multi does (`docs/zookeeper-protocol.md`
        /// section 7.3).
        consumes_zxid: bool,
    },
    /// An operation that does not exist, or is not for clients.
    UnknownOp {
        /// The connection.
        conn: ConnId,
        /// The client's number for the request.
        xid: Xid,
    },
    /// A request that the shell refuses, because it waited too long or an injected fault says so:
    /// the reply is this error, and nothing changes.
    Refused {
        /// The connection.
        conn: ConnId,
        /// The client's number for the request.
        xid: Xid,
        /// The error in the reply.
        error: ErrorCode,
        /// The request, if it could be decoded; the engine does not look at it.
        request: Option<Box<Request>>,
    },
    /// The connection has closed.
    Disconnect {
        /// The connection.
        conn: ConnId,
    },
    /// Time has passed.
    Tick,
    /// Ends a session as if its timeout were over: for tests and administration.
    Expire {
        /// The session.
        session: SessionId,
    },
}

impl Input {
    /// Refuses a message that gets a reply; leaves any other input as it is.
    pub fn refuse(&mut self, with: ErrorCode) {
        let (conn, xid) = match self {
            Self::Request { conn, xid, .. }
            | Self::Undecodable { conn, xid, .. }
            | Self::UnknownOp { conn, xid } => (*conn, *xid),
            _ => return,
        };
        let refused = Self::Refused {
            conn,
            xid,
            error: with,
            request: None,
        };
        let message = core::mem::replace(self, refused);
        if let (Self::Request { request, .. }, Self::Refused { request: kept, .. }) =
            (message, self)
        {
            *kept = Some(Box::new(request));
        }
    }
}

/// The settings of an engine. The default limits are generous: they only protect the memory.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The unit of expiry: if deadlines are rounded, they are rounded up to the next multiple.
    ///
    /// Unit: milliseconds. Default: 3,000. Source: `tickTime` of ZooKeeper.
    pub tick_ms: u32,
    /// Whether a silent session expires at the next tick after its timeout, as in ZooKeeper, and
    /// not after exactly its timeout.
    ///
    /// Default: true. Source: `docs/zookeeper-protocol.md` section 14.1.
    pub rounds_expiry: bool,
    /// The shortest session timeout granted. Default: 2 ticks.
    pub session_timeout_min_ms: u32,
    /// The longest session timeout granted. Default: 20 ticks.
    pub session_timeout_max_ms: u32,
    /// The zxid before the first change. A server without the state of earlier runs must start
    /// above their zxids: otherwise clients that have seen a newer one get no reply
    /// (`docs/zookeeper-protocol.md` section 14.7).
    pub zxid: Zxid,
    /// The id of the first session. Unique over restarts if taken from the wall clock.
    pub first_session_id: SessionId,
    /// The maximum number of sessions at a time. Default: 1,000,000. Beyond it a handshake gets no
    /// reply.
    pub sessions_max: usize,
    /// The maximum number of watches at a time. Default: 20,000,000. Beyond it the reply to a
    /// request that would set one is QUOTAEXCEEDED.
    pub watches_max: usize,
    /// The maximum memory of the tree: paths, data, access lists (each different one once) and a
    /// fixed part for each of them. Watched paths without a znode and the identities of connections
    /// count too. Unit: bytes. Default: 8 GiB. Beyond it the reply to writes is QUOTAEXCEEDED.
    pub tree_bytes_max: usize,
    /// The maximum length of a reply to a read; instead of a longer one, the reply is
    /// MARSHALLINGERROR. Replies to changes are as long as their requests. Unit: bytes. Default: 64
    /// MiB.
    pub reply_bytes_max: usize,
    /// The maximum number of operations in one multi or multiRead; the reply to one with more is
    /// MARSHALLINGERROR. Default: 100,000.
    pub multi_operations_max: usize,
    /// The maximum number of entries in an access list, after its `auth` entries are replaced by
    /// the client's identities. Every operation on a znode reads its list. Default: 256. Beyond it,
    /// and beyond 1 MiB, the reply is INVALIDACL.
    pub acl_entries_max: usize,
    /// The maximum number of identities of one connection, without its address. Default: 64. Beyond
    /// it, and beyond 64 KiB of ids, the reply to auth is AUTHFAILED and the connection closes.
    pub identities_max: usize,
    /// The maximum memory of the changes recorded since a mark; beyond it every mark is removed.
    /// Unit: bytes. Default: 256 MiB.
    pub undo_bytes_max: usize,
    /// Whether znodes may have a time to live; otherwise the reply to createTTL is UNIMPLEMENTED.
    ///
    /// Default: true. Source: `extendedTypesEnabled` of ZooKeeper, whose default is false.
    pub extended_types: bool,
    /// How often containers and znodes with a time to live are checked; 0 for never.
    ///
    /// Unit: milliseconds. Default: 60,000. Source: `znode.container.checkIntervalMs`.
    pub container_check_interval_ms: u32,
    /// The maximum number of them deleted per minute, and in proportion per interval.
    ///
    /// Default: 10,000. Source: `znode.container.maxPerMinute`.
    pub container_max_per_minute: u32,
    /// How long a container that has never had a child is kept; 0 for ever.
    ///
    /// Unit: milliseconds. Default: 0. Source: `znode.container.maxNeverUsedIntervalMs`.
    pub container_max_never_used_ms: u64,
    /// Whether the hard limits of quotas are enforced, with QUOTAEXCEEDED.
    ///
    /// Default: false. Source: `enforceQuota`.
    pub enforce_quota: bool,
    /// Whether the reply to reconfig is that of a standalone server with reconfiguration enabled
    /// (UNIMPLEMENTED) or disabled (RECONFIGDISABLED).
    ///
    /// Default: false. Source: `reconfigEnabled`.
    pub reconfig_enabled: bool,
    /// Whether to ignore access lists: every client may do everything.
    ///
    /// Default: false. Source: `skipACL`.
    pub skip_acl: bool,
    /// Whether digests of the tree are recorded, at the cost of a pass over it every 128 changes.
    ///
    /// Default: false. Source: `digest.enabled` of ZooKeeper, whose default is true.
    pub digests: bool,
    /// Whether the digest scheme exists.
    ///
    /// Default: true. Source: `DigestAuthenticationProvider.enabled`.
    pub digest_enabled: bool,
    /// The hash algorithm of digest identities, including the super user's.
    ///
    /// Default: SHA-1. Source: `DigestAuthenticationProvider.digestAlg`.
    pub digest_algorithm: DigestAlgorithm,
    /// The ensembles to which this server belongs: a client that names another one in an auth
    /// packet of the scheme `ensemble` loses its connection. If empty, every name is accepted. If
    /// `None`, the scheme does not exist.
    ///
    /// Default: none. Source: `EnsembleAuthenticationProvider` and `ensembleAuthName`.
    pub ensemble_names: Option<Vec<String>>,
    /// Whether the scheme `key` exists: a client that sends a multiple of the number in the znode
    /// `/key` gets the identity `key:`.
    ///
    /// Default: false. Source: the sample `KeyAuthenticationProvider`.
    pub key_scheme: bool,
    /// The digest identity that may do everything: `super:` and the base64 of the hash of
    /// `super:<password>`, by `digest_algorithm`.
    ///
    /// Default: none. Source: `DigestAuthenticationProvider.superDigest`.
    pub super_digest: Option<Secret>,
    /// The SASL users; if `None`, an exchange succeeds at once without an identity.
    ///
    /// Default: none. Source: a JAAS `Server` section of ZooKeeper.
    pub sasl: Option<SaslSettings>,
    /// Whether the x509 scheme exists.
    ///
    /// Default: false. Source: a secure port of ZooKeeper.
    pub x509: bool,
    /// The subject of the client certificate that may do everything, in the form of RFC 2253.
    ///
    /// Default: none. Source: `X509AuthenticationProvider.superUser`.
    pub x509_super_user: Option<String>,
    /// Requests of a connection without an identity of one of these schemes are refused with
    /// SESSIONCLOSEDREQUIRESASLAUTH; if empty, none are refused.
    ///
    /// Default: empty. Source: `enforce.auth.enabled` and `enforce.auth.schemes`;
    /// `sessionRequireClientSASLAuth` is the same as just `sasl`.
    pub enforce_auth_schemes: Vec<String>,
    /// Whether children are listed in ZooKeeper's order, which is that of a Java hash set, instead
    /// of the order of creation. Makes every listing slower.
    ///
    /// Default: false.
    pub java_listing_order: bool,
    /// The seed of the hashes in the engine's tables. Outputs do not depend on it. The time of
    /// lookups does, if a client knows it and sends keys that collide: choose it at random unless
    /// clients are trusted.
    ///
    /// Default: 0, 0.
    pub hash_seed: [u64; 2],
}

impl Settings {
    /// Returns the tick to which deadlines of sessions are rounded up, if they are rounded.
    pub(crate) fn rounding_ms(&self) -> Option<u32> {
        self.rounds_expiry.then_some(self.tick_ms)
    }

    /// Returns the value of a limit.
    pub(crate) const fn max_of(&self, limit: Limit) -> usize {
        match limit {
            Limit::Sessions => self.sessions_max,
            Limit::Watches => self.watches_max,
            Limit::TreeBytes => self.tree_bytes_max,
            Limit::ReplyBytes => self.reply_bytes_max,
            Limit::MultiOperations => self.multi_operations_max,
            Limit::AclEntries => self.acl_entries_max,
            Limit::Identities => self.identities_max,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tick_ms: 3_000,
            rounds_expiry: true,
            session_timeout_min_ms: 6_000,
            session_timeout_max_ms: 60_000,
            zxid: Zxid(0),
            first_session_id: SessionId(1 << 56),
            sessions_max: 1_000_000,
            watches_max: 20_000_000,
            tree_bytes_max: 8 << 30,
            reply_bytes_max: 64 << 20,
            multi_operations_max: 100_000,
            acl_entries_max: 256,
            identities_max: 64,
            undo_bytes_max: 256 << 20,
            extended_types: true,
            container_check_interval_ms: 60_000,
            container_max_per_minute: 10_000,
            container_max_never_used_ms: 0,
            enforce_quota: false,
            reconfig_enabled: false,
            skip_acl: false,
            digests: false,
            digest_enabled: true,
            digest_algorithm: DigestAlgorithm::Sha1,
            ensemble_names: None,
            key_scheme: false,
            super_digest: None,
            sasl: None,
            x509: false,
            x509_super_user: None,
            enforce_auth_schemes: Vec::new(),
            java_listing_order: false,
            hash_seed: [0; 2],
        }
    }
}

/// A password, a token or the hash of one. `Debug` does not show it, so that settings can be
/// logged. There is no `Display`; dereference it to use the text.
///
/// ```
/// use minikeeper_engine::Secret;
/// let secret = Secret::from("s3cret");
/// assert_eq!(format!("{secret:?}"), "Secret");
/// assert_eq!(secret.len(), 6);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Deref for Secret {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
