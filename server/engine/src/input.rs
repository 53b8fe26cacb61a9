//! Everything that enters the engine: time, inputs and settings.

use core::{fmt, net::IpAddr, ops::Deref};

use minikeeper_protocol::{ConnectRequest, ErrorCode, Request, SessionId, Xid, Zxid};

use crate::{
    auth::{digest::DigestAlgorithm, sasl::SaslSettings},
    effects::Limit,
};

/// The highest zxid that is believed: beyond it the numbers could run out.
pub(crate) const ZXID_MAX: i64 = i64::MAX - (1 << 40);

/// One connection, numbered by the shell. Small numbers, used again after a disconnect.
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
    /// Milliseconds since the server started; never decreases. Decides expiry.
    pub elapsed_ms: u64,
    /// Milliseconds since 1970; may step. Only printed in stats.
    pub wall_ms: i64,
}

/// Everything that can happen to the engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// A connection is there. One that is not announced counts as one from 127.0.0.1.
    Open {
        /// Which one.
        conn: ConnId,
        /// Where it comes from: its first identity.
        peer: IpAddr,
    },
    /// The other end of an announced connection has shown a certificate that was checked: one
    /// identity more (`docs/zookeeper-protocol.md` section 9.12).
    Identify {
        /// Which one.
        conn: ConnId,
        /// The certificate's subject, in the form of RFC 2253.
        subject: String,
    },
    /// A connection's first message.
    Connect {
        /// Where it came from.
        conn: ConnId,
        /// What it said.
        hello: ConnectRequest,
    },
    /// A request that could be decoded.
    Request {
        /// Where it came from.
        conn: ConnId,
        /// The client's number for it.
        xid: Xid,
        /// What is asked.
        request: Request,
    },
    /// A whole frame of a known operation whose body makes no sense.
    Undecodable {
        /// Where it came from.
        conn: ConnId,
        /// The client's number for it.
        xid: Xid,
        /// Whether it still uses up a zxid, as a malformed multi does (`docs/zookeeper-protocol.md`
        /// section 7.3).
        consumes_zxid: bool,
    },
    /// An operation that does not exist, or is not for clients.
    UnknownOp {
        /// Where it came from.
        conn: ConnId,
        /// The client's number for it.
        xid: Xid,
    },
    /// A request that the shell does not want carried out, because it waited too long or a test
    /// says so: it is answered with this error and changes nothing.
    Refused {
        /// Where it came from.
        conn: ConnId,
        /// The client's number for it.
        xid: Xid,
        /// What is answered.
        error: ErrorCode,
    },
    /// The connection is gone.
    Disconnect {
        /// Which one.
        conn: ConnId,
    },
    /// Time has passed.
    Tick,
    /// Ends a session as if its time were up: for tests and administration.
    Expire {
        /// Which one.
        session: SessionId,
    },
}

/// What the engine is started with. Every limit is generous: it protects memory, not manners.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The unit of expiry: deadlines are rounded up to the next multiple, if they are rounded.
    ///
    /// Unit: milliseconds. Default: 3,000. Source: `tickTime` of ZooKeeper.
    pub tick_ms: u32,
    /// Whether a silent session is ended at the next tick past its timeout, as by
    /// ZooKeeper, and not after exactly its timeout.
    ///
    /// Default: true. Source: `docs/zookeeper-protocol.md` section 14.1.
    pub rounds_expiry: bool,
    /// The shortest session timeout granted. Default: 2 ticks.
    pub session_timeout_min_ms: u32,
    /// The longest session timeout granted. Default: 20 ticks.
    pub session_timeout_max_ms: u32,
    /// The zxid before the first change. A server without memory of earlier runs starts above
    /// them, or clients that saw a newer zxid are never answered (`docs/zookeeper-protocol.md`
    /// section 14.7).
    pub zxid: Zxid,
    /// The first session id given out. Unique over restarts if taken from the wall clock.
    pub first_session_id: SessionId,
    /// The most sessions at a time. Default: 1,000,000. Beyond it a handshake is not answered.
    pub sessions_max: usize,
    /// The most watches at a time. Default: 20,000,000. Beyond it a request that would set one
    /// is answered with QUOTAEXCEEDED.
    pub watches_max: usize,
    /// The most memory the tree may take: paths, data, access lists (each different one once) and
    /// a fixed part for each of them. Paths that are watched without a znode and the identities of
    /// connections count too. Unit: bytes. Default: 8 GiB. Beyond it writes are answered with
    /// QUOTAEXCEEDED.
    pub tree_bytes_max: usize,
    /// The longest reply to a read; a request for more is answered with MARSHALLINGERROR. Replies
    /// to changes are as long as what was asked. Unit: bytes. Default: 64 MiB.
    pub reply_bytes_max: usize,
    /// The most operations in one multi or multiRead; one with more is answered with
    /// MARSHALLINGERROR. Default: 100,000.
    pub multi_operations_max: usize,
    /// The most entries of an access list, after each entry `auth` was replaced by the identities
    /// it stands for. Every operation on a znode looks at its list. Default: 256. Beyond it, and
    /// beyond 1 MiB, the request is answered with INVALIDACL.
    pub acl_entries_max: usize,
    /// The most identities that one connection proves; its address is none of them. Default: 64.
    /// Beyond it, and beyond 64 KiB of ids, the proof is answered with AUTHFAILED and the
    /// connection closed.
    pub identities_max: usize,
    /// The most that is noted down of what has changed since a mark; beyond it every mark is
    /// forgotten. Unit: bytes. Default: 256 MiB.
    pub undo_bytes_max: usize,
    /// Whether znodes may have a time to live; otherwise createTTL is answered with
    /// UNIMPLEMENTED.
    ///
    /// Default: true. Source: `extendedTypesEnabled` of ZooKeeper, whose default is false.
    pub extended_types: bool,
    /// How often containers and znodes with a time to live are looked at; 0 is never.
    ///
    /// Unit: milliseconds. Default: 60,000. Source: `znode.container.checkIntervalMs`.
    pub container_check_interval_ms: u32,
    /// The most of them that are deleted in a minute, and so, in proportion, in one interval.
    ///
    /// Default: 10,000. Source: `znode.container.maxPerMinute`.
    pub container_max_per_minute: u32,
    /// How long a container that never had a child is kept; 0 is for ever.
    ///
    /// Unit: milliseconds. Default: 0. Source: `znode.container.maxNeverUsedIntervalMs`.
    pub container_max_never_used_ms: u64,
    /// Whether the hard limits of quotas are kept, with QUOTAEXCEEDED.
    ///
    /// Default: false. Source: `enforceQuota`.
    pub enforce_quota: bool,
    /// Whether reconfig is answered as a standalone server with reconfiguration answers
    /// (UNIMPLEMENTED) instead of one without (RECONFIGDISABLED).
    ///
    /// Default: false. Source: `reconfigEnabled`.
    pub reconfig_enabled: bool,
    /// Whether to ignore access lists: every client may do everything.
    ///
    /// Default: false. Source: `skipACL`.
    pub skip_acl: bool,
    /// Whether digests of the tree are noted, at the cost of a pass over it every 128 changes.
    ///
    /// Default: false. Source: `digest.enabled`, on there.
    pub digests: bool,
    /// Whether the digest scheme exists.
    ///
    /// Default: true. Source: `DigestAuthenticationProvider.enabled`.
    pub digest_enabled: bool,
    /// The hash of digest identities, that of the super user included.
    ///
    /// Default: SHA-1. Source: `DigestAuthenticationProvider.digestAlg`.
    pub digest_algorithm: DigestAlgorithm,
    /// The ensembles that this server is of: a client that names another one in an auth packet of
    /// scheme `ensemble` loses its connection. Without names none is checked; `None`: the scheme
    /// does not exist.
    ///
    /// Default: none. Source: `EnsembleAuthenticationProvider` and `ensembleAuthName`.
    pub ensemble_names: Option<Vec<String>>,
    /// Whether the scheme `key` exists: a client that sends a multiple of the number in the znode
    /// `/key` has the identity `key:`.
    ///
    /// Default: false. Source: the sample `KeyAuthenticationProvider`.
    pub key_scheme: bool,
    /// The digest identity that may do everything: `super:` and the base64 of the SHA-1 of
    /// `super:<password>`, or of that hash which `digest_algorithm` names.
    ///
    /// Default: none. Source: `DigestAuthenticationProvider.superDigest`.
    pub super_digest: Option<Secret>,
    /// The SASL users; without them an exchange succeeds at once and proves nothing.
    ///
    /// Default: none. Source: a JAAS `Server` section of ZooKeeper.
    pub sasl: Option<SaslSettings>,
    /// Whether the x509 scheme exists.
    ///
    /// Default: false. Source: a secure port of ZooKeeper.
    pub x509: bool,
    /// The subject of the certificate that may do everything, in the form of RFC 2253.
    ///
    /// Default: none. Source: `X509AuthenticationProvider.superUser`.
    pub x509_super_user: Option<String>,
    /// A connection without an identity of one of these schemes is refused with
    /// SESSIONCLOSEDREQUIRESASLAUTH; if empty, none is refused.
    ///
    /// Default: empty. Source: `enforce.auth.enabled` and `enforce.auth.schemes`;
    /// `sessionRequireClientSASLAuth` is `sasl` alone.
    pub enforce_auth_schemes: Vec<String>,
    /// Whether children are listed in the order in which ZooKeeper lists them, which is that of
    /// a Java hash set, instead of the order of their creation. Costs time with each listing.
    ///
    /// Default: false.
    pub java_listing_order: bool,
    /// What the hashes in the engine's tables follow from. Outputs do not depend on it. The time
    /// that lookups take does, if a client knows it and sends keys that collide: draw it by chance
    /// where clients are not trusted.
    ///
    /// Default: 0, 0.
    pub hash_seed: [u64; 2],
}

impl Settings {
    /// What deadlines of sessions are rounded up to, if they are.
    pub(crate) fn rounding_ms(&self) -> Option<u32> {
        self.rounds_expiry.then_some(self.tick_ms)
    }

    /// The value of the setting that is this limit.
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

/// A password, a token or the hash of one, which `Debug` does not show: settings with secrets may
/// be logged. There is no `Display`; to use the text, dereference.
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
