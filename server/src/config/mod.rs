//! Every setting of a server, with its default. Read once, at the start.

mod checks;
pub(crate) mod jaas;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use minikeeper_engine::{DigestAlgorithm, Secret};

use crate::{data::DataSource, tree::Tree};

pub use checks::ConfigError;

/// What a [`Server`](crate::Server) is started with.
///
/// Limits protect memory and are generous: a test suite should never meet one. Each is named in
/// the log line or error that it causes.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen. Default: 127.0.0.1, port 0 (any free port).
    pub listen: SocketAddr,
    /// The unit of session timeouts. Unit: milliseconds. Default: 3,000.
    /// Source: `tickTime` of the original.
    pub tick_time_ms: u32,
    /// Whether a session that keeps silent is ended at the first multiple of `tick_time_ms` past
    /// its timeout, as by the original; else it is ended after exactly its timeout. Default: no.
    /// Source: `docs/zookeeper-protocol.md` section 14.1.
    pub rounds_expiry: bool,
    /// The shortest session timeout granted. Unit: milliseconds. Default: 2 ticks.
    pub session_timeout_min_ms: Option<u32>,
    /// The longest session timeout granted. Unit: milliseconds. Default: 20 ticks.
    pub session_timeout_max_ms: Option<u32>,
    /// The largest request accepted; a larger one closes the connection. Unit: bytes.
    /// Default: 1,048,575. Source: `jute.maxbuffer` of the original.
    pub frame_bytes_max: usize,
    /// How long a connection may take to finish its handshake. Default: 10 s.
    /// Source: `nio.sessionlessCnxnTimeout` of the original.
    pub handshake_timeout: Duration,
    /// The most connections at a time; one more is reset. Default: 100,000.
    pub connections_max: usize,
    /// The most connections from one address; 0 is no limit. Default: 0.
    /// Source: `maxClientCnxns` of the original, which refuses the 61st by default.
    pub connections_per_address_max: usize,
    /// How many connections may wait to be accepted; the system cuts it to a maximum of its own.
    /// Default: 1,024. Source: `clientPortListenBacklog` of the original, which leaves 50.
    pub listen_backlog: u32,
    /// How many handshakes may come at once: each takes a token, and one that finds none is closed
    /// without an answer. 0 is no limit. Default: 0.
    /// Source: `connection_throttle_tokens` of the original; its random drops and its weights are
    /// not there.
    pub connection_throttle_tokens: u32,
    /// How often tokens come back. Must be over, not just reached. Default: 1 ms.
    /// Source: `connection_throttle_fill_time` of the original.
    pub connection_throttle_fill_time: Duration,
    /// How many tokens come back each time. Default: 1.
    /// Source: `connection_throttle_fill_count` of the original.
    pub connection_throttle_fill_count: u32,
    /// The longest a request may wait to be served, in whole milliseconds; one that waited longer
    /// is answered with THROTTLEDOP, pings and the closing of a session excepted. Zero is no limit.
    /// Default: zero.
    ///
    /// There is no queue: a request is served in the turn after the read that brought it. It waits
    /// only while its client does not read the replies before it (`write_backlog_bytes_max`).
    /// Source: `throttledOpWaitTime` of the original.
    pub throttled_op_wait_time: Duration,
    /// The longest request that is not large. 0: none is large, and `large_request_bytes_max` is
    /// no limit. Unit: bytes. Default: 0.
    /// Source: `largeRequestThreshold` of the original, where -1 stands for 0.
    pub large_request_threshold: usize,
    /// The most that all large requests together may have; one more closes its connection.
    /// Unit: bytes. Default: 100 MiB.
    ///
    /// A request counts from its first four bytes, which tell its length, until it is served; in
    /// the original from its last byte. Source: `largeRequestMaxBytes` of the original.
    pub large_request_bytes_max: usize,
    /// The most memory for input of all connections together that cannot be served yet: parts of
    /// requests, and requests whose client does not read the replies before them. Beyond it the
    /// connections are closed whose input has waited longest, until an eighth is free; their
    /// sessions live on. Before its handshake a connection may send 8 KiB.
    /// Unit: bytes. Default: 1 GiB. ZooKeeper has no such limit.
    ///
    /// Buffers count whole, and double as they grow. What one read brings may come on top.
    pub unserved_bytes_max: usize,
    /// The most sessions at a time; beyond it handshakes are not answered. Default: 1,000,000.
    pub sessions_max: usize,
    /// The most watches at a time; beyond it requests that set one are answered with
    /// QUOTAEXCEEDED. Default: 20,000,000.
    pub watches_max: usize,
    /// The most memory the tree may take; beyond it writes are answered with QUOTAEXCEEDED.
    /// Unit: bytes of paths, data and access lists (each different one once), and 128 for each
    /// znode and list. Paths that are watched without a znode and the identities of connections
    /// count too. Default: 8 GiB.
    pub tree_bytes_max: usize,
    /// The longest reply, and the longest answer to a four-letter word. A read whose reply would
    /// be longer (multiRead above all, or a listing of very many children) is answered with
    /// MARSHALLINGERROR and leaves no watch; a four-letter word leaves out what does not fit.
    /// Unit: bytes; at least four times `frame_bytes_max` and 1 KiB, so that every change can be
    /// answered, and less than 2 GiB. Default: 64 MiB, or that least if it is more. ZooKeeper has no
    /// such limit.
    pub reply_bytes_max: Option<usize>,
    /// The most operations in one multi or multiRead; one with more is answered with
    /// MARSHALLINGERROR. Default: 100,000, which takes a larger `frame_bytes_max` than the default
    /// to be met. ZooKeeper has no such limit.
    pub multi_operations_max: usize,
    /// The most entries of an access list, after each entry `auth` was replaced by the identities
    /// it stands for; beyond it, and beyond 1 MiB, a list is answered with INVALIDACL. Every
    /// operation on a znode looks at its list. Default: 256. The original has no such limit.
    pub acl_entries_max: usize,
    /// The most identities that one connection proves, its address left out; beyond it, and beyond
    /// 64 KiB of ids, the proof is answered with AUTHFAILED and the connection closed. Default: 64.
    /// The original has no such limit.
    pub identities_max: usize,
    /// The most events that may wait for a client that does not read; beyond it the connection
    /// is closed, and the session lives on. Unit: bytes. Default: 16 MiB.
    pub outbox_bytes_max: usize,
    /// The most memory for what clients have not read yet, of all connections together: events in
    /// outboxes, and replies and events that sockets did not take. Beyond it the connections that
    /// have most are closed, until an eighth is free; their sessions live on. Of each universe
    /// apart; connections inside the process do not count. Unit: bytes. Default: 512 MiB.
    /// ZooKeeper has no such limit.
    pub unsent_bytes_max: usize,
    /// How much may wait to be written before no further request is served. Unit: bytes.
    /// Default: 1 MiB. One reply may exceed it by its own size.
    ///
    /// Does what `globalOutstandingLimit` does in the original, only earlier: there a connection
    /// with a request that waits is not read while the server has more than 1,000 of them, here it
    /// is not read in any case. So a setting of that name would change nothing.
    pub write_backlog_bytes_max: usize,
    /// The most requests served in one turn of the lock. Default: 64.
    ///
    /// No others are in process at the same time, so this is what `requestThrottleLimit` is in the
    /// original. As there with that limit set, requests that wait when their connection ends are
    /// dropped.
    pub turn_requests_max: usize,
    /// Whether znodes may have a time to live (createTTL); otherwise that is answered with
    /// UNIMPLEMENTED. Default: yes. Source: `extendedTypesEnabled` of the original, off there.
    pub extended_types: bool,
    /// Whether children are listed in the order in which ZooKeeper lists them, that of a Java hash
    /// set of their names, for tests that were recorded against it. Otherwise they come in the order
    /// of their creation, which takes no time to find. Default: no.
    ///
    /// The order is that of a ZooKeeper that has not been restarted since; it differs where more than
    /// eight of many names were chosen to have equal hashes.
    pub java_listing_order: bool,
    /// How often containers and znodes with a time to live are looked at; 0 is never.
    /// Unit: milliseconds. Default: 60,000. Source: `znode.container.checkIntervalMs`.
    pub container_check_interval_ms: u32,
    /// The most of them deleted in a minute, and so, in proportion, each time. Default: 10,000.
    /// Source: `znode.container.maxPerMinute`.
    pub container_max_per_minute: u32,
    /// How long a container that never had a child is kept; 0 is for ever. Unit: milliseconds.
    /// Default: 0. Source: `znode.container.maxNeverUsedIntervalMs`.
    pub container_max_never_used_ms: u64,
    /// Whether hard limits of quotas are kept, with QUOTAEXCEEDED. Default: no.
    /// Source: `enforceQuota`.
    pub enforce_quota: bool,
    /// Whether reconfig is answered with UNIMPLEMENTED, as a standalone original does when it is
    /// enabled, instead of RECONFIGDISABLED. Default: no. Source: `reconfigEnabled`.
    pub reconfig_enabled: bool,
    /// Whether access lists are stored but not looked at. Default: no. Source: `skipACL`.
    pub skip_acl: bool,
    /// Whether digests of the tree are noted for the four-letter word `hash`, at the cost of a
    /// pass over the whole tree every 128 changes. Default: no.
    /// Source: `digest.enabled` of the original, on there.
    pub tree_digests: bool,
    /// Whether the digest scheme exists. Default: yes.
    /// Source: `DigestAuthenticationProvider.enabled`.
    pub digest_enabled: bool,
    /// The hash of digest identities, in access lists and of the super user. Default: SHA-1.
    /// Source: `DigestAuthenticationProvider.digestAlg`.
    pub digest_algorithm: DigestAlgorithm,
    /// The digest identity that may do everything: `super:` and the base64 of the SHA-1 of
    /// `super:<password>`, or of what `digest_algorithm` names. Default: none. Source: `DigestAuthenticationProvider.superDigest`.
    pub super_digest: Option<Secret>,
    /// Names and passwords for SASL logins (DIGEST-MD5). While there are none, an exchange
    /// succeeds at once and proves nothing, as on the original. Default: none.
    /// Source: a JAAS `Server` section.
    pub sasl_users: Vec<(String, Secret)>,
    /// Those of them who may do everything. Default: none. Source: `zookeeper.superUser`.
    pub sasl_super_users: Vec<String>,
    /// Whether a connection survives a failed SASL exchange. Default: no.
    /// Source: `allowSaslFailedClients`.
    pub sasl_allow_failed: bool,
    /// Requests need an identity of one of these schemes, or the connection is refused with
    /// SESSIONCLOSEDREQUIRESASLAUTH. With `sasl` and without `sasl_users` that is every one, as by
    /// ZooKeeper, and the log warns. Default: none. Source: `enforce.auth.schemes`;
    /// `sessionRequireClientSASLAuth` is `sasl` alone.
    pub enforce_auth_schemes: Vec<String>,
    /// The ensembles that this server is of. A client that names another one, in an auth packet of
    /// scheme `ensemble`, loses its connection without an answer, so that it tries another server.
    /// Without names none is checked. Default: `None`, the scheme does not exist.
    /// Source: `EnsembleAuthenticationProvider` and `ensembleAuthName`.
    pub ensemble_names: Option<Vec<String>>,
    /// Whether the scheme `key` exists, of ZooKeeper's sample `KeyAuthenticationProvider`: a client
    /// that sends a multiple of the number in the znode `/key`, or any data while that is not
    /// there, is `key:` with an empty id in access lists. Proves nothing; for tests. Default: no.
    pub key_scheme: bool,
    /// Whether `isro` is answered whatever the whitelist says. The answer is `rw`: a single server
    /// is never read-only. Default: no. Source: `readonlymode.enabled`.
    pub read_only_mode: bool,
    /// Which four-letter words are answered: their names, separated by commas, or `*` for all, but
    /// `cons`, `dump`, `wchc` and `wchp` only to this machine: they list session ids and paths, and
    /// other machines get them if they are named. `srvr` is always answered. Default: `*`.
    /// ZooKeeper's default is `srvr` alone.
    /// Source: `4lw.commands.whitelist` of the original.
    pub four_letter_whitelist: String,
    /// The most connections, sessions, watches and the like that a four-letter word lists; a
    /// last line says how many were left out. Unit: lines. Default: 10,000.
    pub four_letter_rows_max: usize,
    /// What is put into the tree at the start, on top of what was loaded, as
    /// [`Universe::seed`](crate::Universe::seed) puts it there. Default: nothing.
    pub seed: Tree,
    /// Control over HTTP. Default: none.
    #[cfg(feature = "control")]
    pub control: ControlConfig,
    /// Whether the server starts with its clock frozen, at 2024-01-01 00:00 UTC: time stands still
    /// until [`Universe::advance`](crate::Universe::advance) or
    /// [`unfreeze`](crate::Universe::unfreeze). Default: no.
    pub manual_clock: bool,
    /// The zxid before the first change. Default: derived from the time, so that a restarted
    /// server is ahead of what clients have seen; 0 with a manual clock.
    pub initial_zxid: Option<i64>,
    /// Where the state is saved when the server is stopped, and loaded from when one is started:
    /// znodes, sessions, counters, zxid. Default: nowhere, the state ends with the server.
    ///
    /// After a start every session has a whole timeout before it, and clients reattach by id and
    /// password; `initial_zxid` counts only where nothing was saved. What is kept is the last
    /// save, and behind it what [`txn_log`](Config::txn_log) promises: a process that is killed, and
    /// a server that is dropped, save nothing. One server a directory. On Unix only, for the lock.
    ///
    /// The directory is laid out as `dataDir` of ZooKeeper, and each reads the snapshots and logs
    /// of the other. The three newest saves are kept; files of ZooKeeper are never deleted. Files
    /// are made with mode 0600, directories with 0700.
    ///
    /// A directory with damaged or missing files is refused, see
    /// [`trust_damaged_data`](Config::trust_damaged_data). One that is deleted or replaced while
    /// the server runs is noticed within a second of its clock, or 256 writes of the log: with a log
    /// the next change stops the server, and [`Server::save_failed`](crate::Server::save_failed)
    /// says so in any case.
    /// Source: `docs/zookeeper-protocol.md` sections 14.7 and 22.1.
    pub data_dir: Option<PathBuf>,
    /// Where to take the state to start with from, without ever writing there: the data directory
    /// of a ZooKeeper server. With `data_dir` too, that must be empty. Default: nowhere.
    pub import: Option<DataSource>,
    /// Whether to go on with what can be read of `data_dir` where files are damaged or missing,
    /// without the changes that cannot be read and those behind them. What was not read stays, its
    /// name beginning with `unread.`. Default: no, such a directory is refused.
    pub trust_damaged_data: bool,
    /// How often the state is saved while the server runs; zero is only when it is stopped. Needs
    /// `data_dir`. Nobody is served while the state is copied, some tenths of a second for a
    /// million znodes, and the copy takes as much memory as the file. While the clock is frozen no
    /// time passes: call [`Server::save`](crate::Server::save). Default: 0.
    pub save_interval: Duration,
    /// Whether changes are logged until they are saved, so that a crash keeps them. Needs
    /// `data_dir`. The log is one of the original's, which starts from the directory of a killed
    /// server too. Default: they are not. Source: `docs/zookeeper-protocol.md` section 22.3.
    pub txn_log: TxnLog,
    /// After how many changes in the log the state is saved, and another log begun. Default:
    /// 100,000. Source: `snapCount` of the original.
    pub snap_count: u64,
    /// Where to listen for clients over TLS. Needs `tls_certificate` and `tls_key`.
    /// Default: nowhere. Source: `secureClientPort` of ZooKeeper.
    #[cfg(feature = "tls")]
    pub secure_listen: Option<SocketAddr>,
    /// Whether `secure_listen` alone is served: the server does not listen at `listen`, so that no
    /// client gets around TLS and `tls_client_ca`. Needs `secure_listen`. Default: no.
    /// Source: a ZooKeeper without `clientPort`.
    #[cfg(feature = "tls")]
    pub secure_only: bool,
    /// A PEM file with the server's certificate, and behind it those that lead to one that clients
    /// know. Source: `ssl.keyStore.location` of the original.
    #[cfg(feature = "tls")]
    pub tls_certificate: Option<PathBuf>,
    /// A PEM file with the key of that certificate.
    #[cfg(feature = "tls")]
    pub tls_key: Option<PathBuf>,
    /// A PEM file with the certificates that have signed those of clients: over TLS every client
    /// must show one then, of version 3. Default: clients are not asked.
    /// Source: `ssl.trustStore.location` of the original.
    #[cfg(feature = "tls")]
    pub tls_client_ca: Option<PathBuf>,
    /// The subject of the client certificate that may do everything, in the form of RFC 2253.
    /// Default: none. Source: `X509AuthenticationProvider.superUser` of the original.
    #[cfg(feature = "tls")]
    pub x509_super_user: Option<String>,
    /// The bug that tests switched on.
    #[cfg(feature = "planted")]
    pub planted: Option<crate::planted::Planted>,
}

/// Unit: bytes.
const REPLY_BYTES_MAX_DEFAULT: usize = 64 << 20;

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            tick_time_ms: 3_000,
            rounds_expiry: false,
            session_timeout_min_ms: None,
            session_timeout_max_ms: None,
            frame_bytes_max: minikeeper_protocol::frame::BYTES_MAX_DEFAULT,
            handshake_timeout: Duration::from_secs(10),
            connections_max: 100_000,
            connections_per_address_max: 0,
            listen_backlog: 1_024,
            connection_throttle_tokens: 0,
            connection_throttle_fill_time: Duration::from_millis(1),
            connection_throttle_fill_count: 1,
            throttled_op_wait_time: Duration::ZERO,
            large_request_threshold: 0,
            large_request_bytes_max: 100 << 20,
            unserved_bytes_max: 1 << 30,
            sessions_max: 1_000_000,
            watches_max: 20_000_000,
            tree_bytes_max: 8 << 30,
            reply_bytes_max: None,
            multi_operations_max: 100_000,
            acl_entries_max: 256,
            identities_max: 64,
            outbox_bytes_max: 16 << 20,
            unsent_bytes_max: 512 << 20,
            write_backlog_bytes_max: 1 << 20,
            turn_requests_max: 64,
            extended_types: true,
            java_listing_order: false,
            container_check_interval_ms: 60_000,
            container_max_per_minute: 10_000,
            container_max_never_used_ms: 0,
            enforce_quota: false,
            reconfig_enabled: false,
            skip_acl: false,
            tree_digests: false,
            digest_enabled: true,
            digest_algorithm: DigestAlgorithm::Sha1,
            ensemble_names: None,
            key_scheme: false,
            read_only_mode: false,
            super_digest: None,
            sasl_users: Vec::new(),
            sasl_super_users: Vec::new(),
            sasl_allow_failed: false,
            enforce_auth_schemes: Vec::new(),
            four_letter_whitelist: "*".to_owned(),
            four_letter_rows_max: 10_000,
            seed: Tree::new(),
            #[cfg(feature = "control")]
            control: ControlConfig::default(),
            manual_clock: false,
            initial_zxid: None,
            data_dir: None,
            import: None,
            trust_damaged_data: false,
            save_interval: Duration::ZERO,
            txn_log: TxnLog::Off,
            snap_count: SNAP_COUNT,
            #[cfg(feature = "tls")]
            secure_listen: None,
            #[cfg(feature = "tls")]
            secure_only: false,
            #[cfg(feature = "tls")]
            tls_certificate: None,
            #[cfg(feature = "tls")]
            tls_key: None,
            #[cfg(feature = "tls")]
            tls_client_ca: None,
            #[cfg(feature = "tls")]
            x509_super_user: None,
            #[cfg(feature = "planted")]
            planted: None,
        }
    }
}

impl Config {
    pub(crate) fn timeout_min_ms(&self) -> u32 {
        self.session_timeout_min_ms
            .unwrap_or_else(|| self.tick_time_ms.saturating_mul(2))
    }

    pub(crate) fn timeout_max_ms(&self) -> u32 {
        self.session_timeout_max_ms
            .unwrap_or_else(|| self.tick_time_ms.saturating_mul(20))
    }

    /// Whether clients are served without TLS.
    pub(crate) const fn has_plain_port(&self) -> bool {
        #[cfg(feature = "tls")]
        if self.secure_only {
            return false;
        }
        true
    }

    /// Where clients connect: without TLS, unless there is no such port.
    pub(crate) fn client_addr(&self) -> SocketAddr {
        #[cfg(feature = "tls")]
        if let Some(address) = self.secure_listen.filter(|_| self.secure_only) {
            return address;
        }
        self.listen
    }

    /// The port for clients without TLS, as ZooKeeper names it: -1 for none.
    pub(crate) fn plain_port(&self) -> i32 {
        if self.has_plain_port() {
            self.listen.port().into()
        } else {
            -1
        }
    }

    /// The longest reply. Unit: bytes.
    pub(crate) fn reply_bytes_max(&self) -> usize {
        self.reply_bytes_max
            .unwrap_or_else(|| REPLY_BYTES_MAX_DEFAULT.max(self.reply_bytes_min()))
    }

    /// A limit of replies under which every change can be answered: from the shortest operation of
    /// a multi, 22 bytes of setData, follows a result of 77. Unit: bytes.
    pub(crate) const fn reply_bytes_min(&self) -> usize {
        self.frame_bytes_max
            .saturating_mul(4)
            .saturating_add(1 << 10)
    }

    /// The port for clients over TLS, as the original names it: -1 for none.
    pub(crate) fn secure_port(&self) -> i32 {
        #[cfg(feature = "tls")]
        if let Some(address) = self.secure_listen {
            return address.port().into();
        }
        -1
    }
}

/// Whether and for whom there is control over HTTP.
///
/// A request is served only from this machine, and only if it names the server by an address or
/// as `localhost` and comes from no web page; with a token set, only if it shows the token, and
/// then from anywhere.
#[cfg(feature = "control")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ControlConfig {
    /// Whether HTTP requests on the clients' port are answered. Default: no, their bytes are what
    /// they always were: the start of a frame that is too long.
    pub is_enabled: bool,
    /// An address of control's own, where HTTP alone is answered, also while the server is
    /// [down](crate::Universe::go_down); the clients' port may answer too. Port 0 takes a free one.
    /// Default: none. A server that a request takes down opens one then, at the address the request
    /// came to, until it comes up.
    pub listen: Option<SocketAddr>,
    /// What a request has to show as `Authorization: Bearer TOKEN`: printable ASCII without blanks,
    /// at least one character. No minimum beyond that, because at most
    /// [`WRONG_TOKENS_MAX`](Self::WRONG_TOKENS_MAX) can be tried in a second; 32 random characters
    /// are plenty. Default: nothing, only this machine is served.
    pub token: Option<Secret>,
    /// The largest body accepted. Unit: bytes. Default: 64 MiB.
    pub body_bytes_max: usize,
}

#[cfg(feature = "control")]
impl ControlConfig {
    /// How many wrong tokens are looked at in a second, of all clients together. Beyond that every
    /// request with a token is answered with status 429 until the second is over, so that nobody
    /// finds a token by trying.
    pub const WRONG_TOKENS_MAX: usize = 16;
}

#[cfg(feature = "control")]
impl Default for ControlConfig {
    fn default() -> Self {
        Self {
            is_enabled: false,
            listen: None,
            token: None,
            body_bytes_max: 64 << 20,
        }
    }
}

/// What a crash keeps of the changes since the last save.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum TxnLog {
    /// Nothing: there is no log.
    #[default]
    Off,
    /// All that were answered, if the process is killed: each change is written to a log before
    /// anybody is told of it. A machine that loses its power may lose the newest ones.
    Write,
    /// All that were answered, even then: each is made durable too, as the original's are. That
    /// takes as long as the disk does, once for what one connection has sent together, and nobody
    /// is served meanwhile.
    Sync,
}

/// How many changes a log has before a save is due: the default of the original's `snapCount`.
pub(super) const SNAP_COUNT: u64 = 100_000;
