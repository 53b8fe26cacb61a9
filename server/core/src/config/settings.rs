//! Every setting, once: its field, default, range, command-line option and `zoo.cfg` key.
//!
//! To add a number, switch, text, list, file or secret, add a row to the table below; `Config`, its
//! default, the range check, `--help`, the option and the key follow from it. A setting with several
//! options (an address and its port) is a row without a specification, and one with several keys a row
//! without a key: `cli/args.rs` reads the options, `cli/zoo_cfg/` the keys, and `checks.rs` checks them.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use minikeeper_engine::{DigestAlgorithm, Secret};

use self::{
    KeyForm::{Boolean, Limit, Text, Unset, Whole, YesOrNo},
    Unit::{Bytes, Count, Ms},
};
#[cfg(feature = "control")]
use crate::config::ControlConfig;
#[cfg(feature = "data")]
use crate::{
    config::TxnLog,
    data::{DataSource, SavedState},
};
use crate::{config::stories::Stories, trees::Tree};

/// A row of the table and the field it describes.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The field of [`Config`].
    pub name: &'static str,
    /// The field's documentation, by line. The first line is the option's help.
    docs: &'static [&'static str],
    /// The option and the key.
    pub spec: Spec,
    read: fn(&Config) -> Option<Value>,
    write: fn(&mut Config, Value),
    /// The largest number that the field holds.
    pub largest: u64,
}

/// The row of a setting in the table, apart from its type, default and documentation.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The heading in `--help` that lists the option.
    pub heading: &'static str,
    /// The option, without its two hyphens.
    pub option: &'static str,
    /// The kind of value that the option takes.
    pub form: Form,
    /// The key of `zoo.cfg`, and how its value is written there.
    pub key: Option<(&'static str, KeyForm)>,
    /// The meaning of `None`, for a setting without a number by default.
    pub unset: Option<&'static str>,
    /// The option without which this one has no effect.
    pub needs: Option<&'static str>,
}

/// The kind of value that an option takes.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// A number in a range.
    Number {
        /// The unit.
        unit: Unit,
        /// The least value.
        min: u64,
        /// The greatest value.
        max: u64,
    },
    /// No value: the option sets the field to this.
    Switch(bool),
    /// Text; the name of the value in `--help`.
    Text(&'static str),
    /// Text that is never shown; the name of the value in `--help`.
    Secret(&'static str),
    /// A file or directory; the name of the value in `--help`.
    File(&'static str),
    /// Texts with commas between them.
    List,
}

/// The unit of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A count.
    Count,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Ms,
}

/// The notation of a value in a `zoo.cfg`.
#[derive(Clone, Copy, Debug)]
pub enum KeyForm {
    /// A whole number in this range, which includes both ends.
    Whole(i64, i64),
    /// A whole number; -1 means "not set".
    Unset,
    /// A limit; less than 1 means "no limit": 0 here, or the default where 0 is out of range.
    Limit,
    /// `true` or `false`.
    Boolean,
    /// `yes` or `no`.
    YesOrNo,
    /// Any text.
    Text,
    /// Non-empty text; the string says what it is.
    Named(&'static str),
    /// A digest identity, `USER:DIGEST`, which no message shows.
    DigestId,
}

/// The value of a setting in the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// Of [`Form::Number`].
    Number(u64),
    /// Of [`Form::Switch`].
    Switch(bool),
    /// Of [`Form::Text`] and [`Form::Secret`].
    Text(String),
    /// Of [`Form::File`].
    File(PathBuf),
    /// Of [`Form::List`].
    List(Vec<String>),
}

impl Setting {
    /// Returns the option's help: the first line of the field's documentation, with the unit.
    #[must_use]
    pub fn help(&self) -> String {
        let line = self.docs.first().copied().unwrap_or_default();
        let mut help = line.trim().trim_end_matches('.').to_owned();
        let unit = match self.spec.form {
            Form::Number { unit: Bytes, .. } => ", in bytes",
            Form::Number { unit: Ms, .. } if !help.contains("milliseconds") => ", in milliseconds",
            _ => "",
        };
        help.insert_str(help.find([',', ';']).unwrap_or(help.len()), unit);
        if let Some(unset) = self.spec.unset {
            help += &format!(" [default: {unset}]");
        }
        help
    }

    /// Returns the value in a config; `None` for an optional one that is not set.
    #[must_use]
    pub fn of(&self, config: &Config) -> Option<Value> {
        (self.read)(config)
    }

    /// Sets the value in a config. A number too large for the field becomes the largest.
    pub fn set(&self, config: &mut Config, value: Value) {
        (self.write)(config, value);
    }
}

impl Spec {
    const fn number(
        heading: &'static str,
        option: &'static str,
        unit: Unit,
        min: u64,
        max: u64,
    ) -> Self {
        Self::new(heading, option, Form::Number { unit, min, max })
    }

    const fn switch(heading: &'static str, option: &'static str) -> Self {
        Self::new(heading, option, Form::Switch(true))
    }

    /// A switch that disables what is on by default.
    const fn off(heading: &'static str, option: &'static str) -> Self {
        Self::new(heading, option, Form::Switch(false))
    }

    const fn text(heading: &'static str, option: &'static str, value_name: &'static str) -> Self {
        Self::new(heading, option, Form::Text(value_name))
    }

    const fn new(heading: &'static str, option: &'static str, form: Form) -> Self {
        Self {
            heading,
            option,
            form,
            key: None,
            unset: None,
            needs: None,
        }
    }

    const fn key(mut self, key: &'static str, form: KeyForm) -> Self {
        self.key = Some((key, form));
        self
    }

    const fn unset(mut self, meaning: &'static str) -> Self {
        self.unset = Some(meaning);
        self
    }

    const fn needs(mut self, option: &'static str) -> Self {
        self.needs = Some(option);
        self
    }
}

/// A type of field that the table can read and write.
trait SettingField {
    const LARGEST: u64;
    fn read(&self) -> Option<Value>;
    fn write(&mut self, value: Value);
}

macro_rules! number_fields {
    ($($type:ident),*) => {$(
        impl SettingField for $type {
            const LARGEST: u64 = $type::MAX as u64;

            fn read(&self) -> Option<Value> {
                u64::try_from(*self).ok().map(Value::Number)
            }

            fn write(&mut self, value: Value) {
                if let Value::Number(number) = value {
                    *self = $type::try_from(number).unwrap_or($type::MAX);
                }
            }
        }

        impl SettingField for Option<$type> {
            const LARGEST: u64 = $type::LARGEST;

            fn read(&self) -> Option<Value> {
                self.as_ref().and_then(SettingField::read)
            }

            fn write(&mut self, value: Value) {
                self.insert(0).write(value);
            }
        }
    )*};
}

number_fields!(u32, u64, i64, usize);

/// In whole milliseconds.
impl SettingField for Duration {
    const LARGEST: u64 = u64::MAX;

    fn read(&self) -> Option<Value> {
        u64::try_from(self.as_millis()).ok().map(Value::Number)
    }

    fn write(&mut self, value: Value) {
        if let Value::Number(ms) = value {
            *self = Self::from_millis(ms);
        }
    }
}

impl SettingField for bool {
    const LARGEST: u64 = 0;

    fn read(&self) -> Option<Value> {
        Some(Value::Switch(*self))
    }

    fn write(&mut self, value: Value) {
        if let Value::Switch(is_on) = value {
            *self = is_on;
        }
    }
}

impl SettingField for String {
    const LARGEST: u64 = 0;

    fn read(&self) -> Option<Value> {
        Some(Value::Text(self.clone()))
    }

    fn write(&mut self, value: Value) {
        if let Value::Text(text) = value {
            *self = text;
        }
    }
}

#[cfg(feature = "tls")]
impl SettingField for Option<String> {
    const LARGEST: u64 = 0;

    fn read(&self) -> Option<Value> {
        self.clone().map(Value::Text)
    }

    fn write(&mut self, value: Value) {
        if let Value::Text(text) = value {
            *self = Some(text);
        }
    }
}

/// Never read, so that nothing shows a secret.
impl SettingField for Option<Secret> {
    const LARGEST: u64 = 0;

    fn read(&self) -> Option<Value> {
        None
    }

    fn write(&mut self, value: Value) {
        if let Value::Text(text) = value {
            *self = Some(text.into());
        }
    }
}

impl SettingField for Option<PathBuf> {
    const LARGEST: u64 = 0;

    fn read(&self) -> Option<Value> {
        self.clone().map(Value::File)
    }

    fn write(&mut self, value: Value) {
        if let Value::File(path) = value {
            *self = Some(path);
        }
    }
}

impl SettingField for Vec<String> {
    const LARGEST: u64 = 0;

    fn read(&self) -> Option<Value> {
        Some(Value::List(self.clone()))
    }

    fn write(&mut self, value: Value) {
        if let Value::List(texts) = value {
            *self = texts;
        }
    }
}

impl SettingField for Option<Vec<String>> {
    const LARGEST: u64 = 0;

    fn read(&self) -> Option<Value> {
        self.clone().map(Value::List)
    }

    fn write(&mut self, value: Value) {
        if let Value::List(texts) = value {
            *self = Some(texts);
        }
    }
}

/// Returns every setting whose option or key the table describes.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    ROWS.iter().flatten()
}

macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])*
        $(#[cfg($cfg:meta)])?
        $name:ident: $type:ty = $default:expr $(, $spec:expr)?;
    )*) => {
        /// The settings of a [`Server`](../minikeeper/struct.Server.html).
        ///
        /// Limits protect memory and are generous: a test suite should never reach one. The log line
        /// or error that a limit causes names it.
        #[derive(Clone, Debug)]
        pub struct Config {
            $(
                $(#[doc = $doc])*
                #[doc = ""]
                #[doc = concat!("Default: `", stringify!($default), "`.")]
                $(#[cfg($cfg)])?
                pub $name: $type,
            )*
        }

        impl Default for Config {
            fn default() -> Self {
                Self {
                    $($(#[cfg($cfg)])? $name: $default,)*
                }
            }
        }

        /// The rows in the order of the fields; `None` for a field without a specification.
        static ROWS: &[Option<Setting>] = &[
            $($(#[cfg($cfg)])? row!([$($doc),*] $name: $type $(, $spec)?),)*
        ];
    };
}

macro_rules! row {
    ([$($doc:literal),*] $name:ident: $type:ty) => {
        None
    };
    ([$($doc:literal),*] $name:ident: $type:ty, $spec:expr) => {
        Some(Setting {
            name: stringify!($name),
            docs: &[$($doc),*],
            spec: $spec,
            read: |config| config.$name.read(),
            write: |config, value| config.$name.write(value),
            largest: <$type as SettingField>::LARGEST,
        })
    };
}

const SERVER: &str = "Server";
const SESSIONS: &str = "Sessions";
const DATA: &str = "Data";
const DIAGNOSTICS: &str = "Diagnostics";
const ZNODES: &str = "Znodes";
const ACCESS: &str = "Access";
const LIMITS: &str = "Limits";
#[cfg(feature = "tls")]
const TLS: &str = "TLS";

/// No limit except the range of the field.
const ANY: u64 = u64::MAX;
/// The largest `int` of Java: lengths and timeouts have 31 bits on the wire.
pub(super) const INT: u64 = i32::MAX as u64;
/// The largest `long` of Java.
const LONG: u64 = i64::MAX as u64;
/// Connections, sessions and watches have 32-bit numbers; one number means "none".
const NUMBERED: u64 = u32::MAX as u64 - 1;
/// The reply to a change can have four times the bytes of the request, and a path is echoed with up
/// to three times its bytes: both fit 31 bits.
const FRAME: u64 = 500 << 20;

/// The `zoo.cfg` form of an `int` that must be positive.
const POSITIVE: KeyForm = Whole(1, i32::MAX as i64);

settings! {
    /// Address to listen on; port 0 takes any free port.
    listen: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    /// Servers of one ensemble to play, each at its own address; all serve one state.
    ///
    /// The others listen on the ports after that of the first one. Tests take them down, cut them off
    /// or make them read-only, so that clients fail over. There is one engine and no consensus.
    servers: usize = 1,
        Spec::number(SERVER, "servers", Count, 1, 9);

    /// Unit of session timeouts.
    tick_time_ms: u32 = 3_000,
        Spec::number(SESSIONS, "tick-time", Ms, 1, ANY).key("tickTime", POSITIVE);

    /// Whether a silent session ends at the first tick after its timeout, as in ZooKeeper.
    ///
    /// Otherwise it ends exactly after its timeout. Source: `docs/zookeeper-protocol.md` section
    /// 14.1.
    rounds_expiry: bool = false;

    /// Shortest session timeout granted.
    session_timeout_min_ms: Option<u32> = None,
        Spec::number(SESSIONS, "min-session-timeout", Ms, 0, INT).key("minSessionTimeout", Unset)
            .unset("2 ticks");

    /// Longest session timeout granted.
    session_timeout_max_ms: Option<u32> = None,
        Spec::number(SESSIONS, "max-session-timeout", Ms, 0, INT).key("maxSessionTimeout", Unset)
            .unset("20 ticks");

    /// Largest request accepted; a larger one closes the connection.
    frame_bytes_max: usize = minikeeper_protocol::frame::BYTES_MAX_DEFAULT,
        Spec::number(LIMITS, "jute-maxbuffer", Bytes, 1, FRAME)
            .key("jute.maxbuffer", Whole(1, i32::MAX as i64 - 4));

    /// Time to finish a handshake.
    handshake_timeout: Duration = Duration::from_secs(10),
        Spec::number(LIMITS, "handshake-timeout", Ms, 0, ANY)
            .key("nio.sessionlessCnxnTimeout", POSITIVE);

    /// Most connections at a time; one more is reset.
    connections_max: usize = 100_000,
        Spec::number(LIMITS, "max-connections", Count, 1, NUMBERED).key("maxCnxns", Limit);

    /// Most connections from one address; 0 is no limit.
    ///
    /// ZooKeeper refuses the 61st by default.
    connections_per_address_max: usize = 0,
        Spec::number(LIMITS, "max-client-cnxns", Count, 0, ANY).key("maxClientCnxns", Limit);

    /// Most connections waiting to be accepted.
    ///
    /// The system has its own maximum. ZooKeeper's default is 50.
    listen_backlog: u32 = 1_024,
        Spec::number(LIMITS, "listen-backlog", Count, 1, INT)
            .key("clientPortListenBacklog", Limit);

    /// Most handshakes at once; 0 is no limit.
    ///
    /// Each handshake takes a token; without one the connection is closed without an answer.
    /// ZooKeeper's random drops and weights are not implemented.
    connection_throttle_tokens: u32 = 0,
        Spec::number(LIMITS, "connection-throttle-tokens", Count, 0, ANY)
            .key("connection_throttle_tokens", Limit);

    /// Interval at which handshake tokens are refilled.
    connection_throttle_fill_time: Duration = Duration::from_millis(1),
        Spec::number(LIMITS, "connection-throttle-fill-time", Ms, 1, ANY)
            .key("connection_throttle_fill_time", POSITIVE);

    /// Handshake tokens added at each refill.
    connection_throttle_fill_count: u32 = 1,
        Spec::number(LIMITS, "connection-throttle-fill-count", Count, 0, ANY)
            .key("connection_throttle_fill_count", Whole(0, i32::MAX as i64));

    /// Longest wait of a request before it is refused; 0 is no limit.
    ///
    /// A request that waited longer gets THROTTLEDOP; pings and closeSession are always served. There
    /// is no queue: a request waits only while its client does not read earlier replies
    /// (`write_backlog_bytes_max`).
    throttled_op_wait_time: Duration = Duration::ZERO,
        Spec::number(LIMITS, "throttled-op-wait-time", Ms, 0, ANY)
            .key("throttled_op_wait_time", Limit);

    /// Size above which a request counts as large; 0 means that none does.
    large_request_threshold: usize = 0,
        Spec::number(LIMITS, "large-request-threshold", Bytes, 0, ANY)
            .key("largeRequestThreshold", Limit);

    /// Most memory for large requests; one more closes its connection.
    ///
    /// A request counts from its first four bytes, which contain its length, until it is served; in
    /// ZooKeeper it counts from its last byte.
    large_request_bytes_max: usize = 100 << 20,
        Spec::number(LIMITS, "large-request-max-bytes", Bytes, 1, ANY)
            .key("largeRequestMaxBytes", Limit);

    /// Most memory for requests that cannot be served yet.
    ///
    /// These are incomplete requests, and requests whose client does not read earlier replies. Beyond
    /// the limit, the connections whose input has waited longest are closed until an eighth of it is
    /// free; their sessions live on. Before its handshake a connection may send 8 KiB. Buffers count
    /// with their whole capacity, which doubles as they grow; one read may exceed the limit. ZooKeeper
    /// has no such limit.
    unserved_bytes_max: usize = 1 << 30,
        Spec::number(LIMITS, "max-unserved-bytes", Bytes, 1, ANY);

    /// Most sessions at a time; beyond it new sessions are refused without an answer.
    sessions_max: usize = 1_000_000,
        Spec::number(LIMITS, "max-sessions", Count, 1, NUMBERED);

    /// Most watches at a time; beyond it a request that sets one gets QUOTAEXCEEDED.
    watches_max: usize = 20_000_000,
        Spec::number(LIMITS, "max-watches", Count, 0, NUMBERED);

    /// Most memory for the tree; beyond it writes get QUOTAEXCEEDED.
    ///
    /// Counts paths, data and access lists (equal lists once), and 128 bytes for each znode and list;
    /// also watched paths without a znode, and the identities of connections.
    tree_bytes_max: usize = 8 << 30,
        Spec::number(LIMITS, "max-tree-bytes", Bytes, 0, NUMBERED * 128);

    /// Longest reply.
    ///
    /// A read whose reply would be longer gets MARSHALLINGERROR and sets no watch; a four-letter
    /// word omits lines that do not fit. At least four times `frame_bytes_max` plus 1 KiB, so that
    /// every change can be answered. ZooKeeper has no such limit.
    reply_bytes_max: Option<usize> = None,
        Spec::number(LIMITS, "max-reply-bytes", Bytes, 0, INT)
            .unset("64 MiB, or 4 times --jute-maxbuffer plus 1 KiB");

    /// Most operations in one multi or multiRead.
    ///
    /// One with more gets MARSHALLINGERROR; a request of 100,000 operations needs a larger
    /// `frame_bytes_max` than the default. ZooKeeper has no such limit.
    multi_operations_max: usize = 100_000,
        Spec::number(LIMITS, "max-multi-operations", Count, 1, ANY);

    /// Most entries of an access list.
    ///
    /// Counted after each entry `auth` is replaced by the client's identities. A longer list, or one
    /// of more than 1 MiB, gets INVALIDACL. ZooKeeper has no such limit.
    acl_entries_max: usize = 256,
        Spec::number(LIMITS, "max-acl-entries", Count, 1, ANY);

    /// Most identities that one connection proves.
    ///
    /// Its address does not count. Beyond this limit, and beyond 64 KiB of ids, the proof gets
    /// AUTHFAILED and the connection closes. ZooKeeper has no such limit.
    identities_max: usize = 64,
        Spec::number(LIMITS, "max-identities", Count, 0, NUMBERED);

    /// Most unread events of one connection; beyond it the connection closes.
    ///
    /// Its session lives on.
    outbox_bytes_max: usize = 16 << 20,
        Spec::number(LIMITS, "max-outbox-bytes", Bytes, 0, ANY);

    /// Most memory for replies and events that clients have not read yet.
    ///
    /// These are events in outboxes, and replies and events that sockets did not accept, of all
    /// connections of a universe; in-process connections do not count. Beyond the limit, the
    /// connections with the most data are closed until an eighth of it is free; their sessions live
    /// on. Unread answers of control count by themselves: beyond the limit the next one has status 503.
    /// ZooKeeper has no such limit.
    unsent_bytes_max: usize = 512 << 20,
        Spec::number(LIMITS, "max-unsent-bytes", Bytes, 1, ANY);

    /// Unwritten replies beyond which a connection is not served.
    ///
    /// One reply may exceed it by its own size. This has the effect of ZooKeeper's
    /// `globalOutstandingLimit`, but earlier: ZooKeeper does not read a connection with a waiting
    /// request while the server has more than 1,000 such requests; this server never does.
    write_backlog_bytes_max: usize = 1 << 20,
        Spec::number(LIMITS, "max-write-backlog-bytes", Bytes, 1, ANY);

    /// Most requests served in one turn.
    ///
    /// No other request is in process at the same time, so this corresponds to ZooKeeper's
    /// `requestThrottleLimit`. As in ZooKeeper with that limit, requests still waiting when their
    /// connection closes are dropped.
    turn_requests_max: usize = 64,
        Spec::number(LIMITS, "max-turn-requests", Count, 1, ANY);

    /// Refuse times to live, as ZooKeeper does by default (extendedTypesEnabled=false).
    ///
    /// The field says whether znodes may have one; if not, createTTL gets UNIMPLEMENTED.
    extended_types: bool = true,
        Spec::off(ZNODES, "no-extended-types").key("extendedTypesEnabled", Boolean);

    /// List children in ZooKeeper's order instead of creation order.
    ///
    /// This is the order of a Java hash set of their names, for tests recorded against ZooKeeper. It
    /// matches a ZooKeeper that has not restarted since the children were created, unless more than
    /// eight of many names were chosen to have equal hashes.
    java_listing_order: bool = false, Spec::switch(ZNODES, "java-listing-order");

    /// How often to check for containers and znodes to delete, 0 for never.
    container_check_interval_ms: u32 = 60_000,
        Spec::number(ZNODES, "container-check-interval", Ms, 0, ANY)
            .key("znode.container.checkIntervalMs", Whole(0, i32::MAX as i64));

    /// Most containers and expired znodes deleted in a minute.
    container_max_per_minute: u32 = 10_000,
        Spec::number(ZNODES, "container-max-per-minute", Count, 0, ANY)
            .key("znode.container.maxPerMinute", POSITIVE);

    /// How long to keep a container that never had a child, 0 forever.
    container_max_never_used_ms: u64 = 0,
        Spec::number(ZNODES, "container-max-never-used", Ms, 0, ANY)
            .key("znode.container.maxNeverUsedIntervalMs", Whole(0, i64::MAX));

    /// Enforce the hard limits of quotas, with QUOTAEXCEEDED.
    enforce_quota: bool = false,
        Spec::switch(ZNODES, "enforce-quota").key("enforceQuota", Boolean);

    /// Answer reconfig like a standalone server with reconfiguration enabled.
    ///
    /// The answer is then UNIMPLEMENTED instead of RECONFIGDISABLED.
    reconfig_enabled: bool = false,
        Spec::switch(ZNODES, "reconfig-enabled").key("reconfigEnabled", Boolean);

    /// Store access lists without enforcing them.
    skip_acl: bool = false, Spec::switch(ACCESS, "skip-acl").key("skipACL", YesOrNo);

    /// Keep a digest of the whole tree every 128 changes, for the word hash.
    ///
    /// Each digest takes a pass over the tree. ZooKeeper keeps them by default.
    tree_digests: bool = false, Spec::switch(DIAGNOSTICS, "digest").key("digest.enabled", Boolean);

    /// Disable the digest scheme.
    ///
    /// The field says whether the scheme exists.
    digest_enabled: bool = true,
        Spec::off(ACCESS, "no-digest").key("DigestAuthenticationProvider.enabled", Boolean);

    /// The hash algorithm of digest identities, in access lists and of the super user.
    ///
    /// All except SHA-1 need the feature `digest-algorithms`. ZooKeeper:
    /// `DigestAuthenticationProvider.digestAlg`.
    digest_algorithm: DigestAlgorithm = DigestAlgorithm::Sha1;

    /// Digest identity that may do everything: super:BASE64(SHA1(super:PASSWORD)).
    ///
    /// It is `super:` and the base64 of the SHA-1 of `super:<password>`; `digest_algorithm` replaces
    /// SHA-1. ZooKeeper: `DigestAuthenticationProvider.superDigest`.
    super_digest: Option<Secret> = None,
        Spec::new(ACCESS, "super-digest", Form::Secret("ID"))
            .key("DigestAuthenticationProvider.superDigest", KeyForm::DigestId);

    /// Names and passwords for SASL logins (DIGEST-MD5).
    ///
    /// Without any, an exchange succeeds at once and proves nothing, as in ZooKeeper.
    /// ZooKeeper: a JAAS `Server` section.
    #[cfg(feature = "sasl")]
    sasl_users: Vec<(String, Secret)> = Vec::new();

    /// SASL users who may do everything.
    ///
    /// ZooKeeper: `zookeeper.superUser`.
    #[cfg(feature = "sasl")]
    sasl_super_users: Vec<String> = Vec::new();

    /// Keep connections whose SASL exchange failed.
    #[cfg(feature = "sasl")]
    sasl_allow_failed: bool = false,
        Spec::switch(ACCESS, "allow-sasl-failed-clients").key("allowSaslFailedClients", Boolean);

    /// Refuse requests without an identity of one of these schemes (ip, digest, sasl).
    ///
    /// Such a request gets SESSIONCLOSEDREQUIRESASLAUTH and its connection closes. With only `sasl`
    /// and without `sasl_users` that affects every client, as in ZooKeeper, and the log warns.
    /// ZooKeeper: `enforce.auth.schemes`; `sessionRequireClientSASLAuth` is `sasl` alone.
    enforce_auth_schemes: Vec<String> = Vec::new(),
        Spec::new(ACCESS, "enforce-auth-schemes", Form::List);

    /// Offer the scheme ensemble: close connections that name none of these ensembles.
    ///
    /// If a client names a different one, in an auth packet of scheme `ensemble`, its connection
    /// closes without an answer, so that it tries another server. An empty list checks nothing; with
    /// `None` the scheme does not exist.
    /// ZooKeeper: `EnsembleAuthenticationProvider` and `ensembleAuthName`.
    ensemble_names: Option<Vec<String>> = None,
        Spec::new(ACCESS, "ensemble-auth-name", Form::List);

    /// Offer ZooKeeper's sample scheme key: multiples of the number in the znode /key.
    ///
    /// A client that sends such a multiple, or any data while `/key` does not exist, has the identity
    /// `key:` with an empty id. This proves nothing and is for tests. ZooKeeper:
    /// `KeyAuthenticationProvider`.
    key_scheme: bool = false, Spec::switch(ACCESS, "key-auth");

    /// Answer the word isro even if the whitelist does not name it.
    ///
    /// The answer is `rw`: a single server is never read-only.
    read_only_mode: bool = false,
        Spec::switch(DIAGNOSTICS, "read-only-mode").key("readonlymode.enabled", Boolean);

    /// Four-letter words to answer, separated by commas; * is all, srvr ZooKeeper's default.
    ///
    /// For other machines, * excludes cons, dump, wchc and wchp, because they list session ids and
    /// paths. To answer them there too, name them: '*,dump'
    four_letter_whitelist: String = "*".to_owned(),
        Spec::text(DIAGNOSTICS, "4lw-whitelist", "LIST").key("4lw.commands.whitelist", Text);

    /// Most rows that a four-letter word lists; a last line says how many were omitted.
    four_letter_rows_max: usize = 10_000,
        Spec::number(LIMITS, "max-4lw-rows", Count, 0, ANY);

    /// Size of each universe's journal; 0 keeps none.
    ///
    /// The journal keeps what happened last: requests and their results, events, faults, sessions,
    /// connections, moves of the clock, verbs; see [`Universe::journal`](../minikeeper/struct.Universe.html#method.journal).
    /// An entry takes about 150 bytes. `None` is [`Config::JOURNAL_BYTES`].
    journal_bytes: Option<usize> = None,
        Spec::number(DIAGNOSTICS, "journal-bytes", Bytes, 0, ANY).unset("4194304, or 0 without control");

    /// Record what clients send, and what follows, in this file, which must not exist.
    ///
    /// `minikeeper replay` plays it again; see [`Universe::record_to`](../minikeeper/struct.Universe.html#method.record_to). The
    /// file contains the data of znodes, and what clients send to authenticate. Needs the journal.
    record: Option<PathBuf> = None,
        Spec::new(DIAGNOSTICS, "record", Form::File("FILE")).unset("record nothing");

    /// The size limit of the recording; when it is reached, the recording ends.
    record_bytes: usize = 1 << 30,
        Spec::number(DIAGNOSTICS, "record-bytes", Bytes, 0, ANY).needs("record");

    /// Runtimes that serve connections in turn, besides the one that the server is started on.
    /// Default: none.
    ///
    /// Each must have its drivers for I/O and time, and a thread that runs it. A runtime with several
    /// threads, on which the server is started, needs no others.
    connection_runtimes: Vec<tokio::runtime::Handle> = Vec::new();

    /// Znodes to add to the tree at the start.
    ///
    /// A `data_dir` with a saved state is not seeded, unless `seed_always` is set: the seed would undo
    /// the changes that clients have made to its znodes. See [`Universe::seed`](../minikeeper/struct.Universe.html#method.seed).
    seed: Tree = Tree::new();

    /// Apply --seed at each start, even to a --data-dir with a saved state.
    ///
    /// Sets the znodes of [`seed`](Config::seed) that clients have changed, and creates those that they
    /// have deleted.
    #[cfg(feature = "data")]
    seed_always: bool = false, Spec::switch(DATA, "seed-always").needs("seed");

    /// What the server does when a panic drops it. Default: it prints its story.
    stories: Stories = Stories::default();

    /// Control over HTTP.
    #[cfg(feature = "control")]
    control: ControlConfig = ControlConfig::default();

    /// Whether the server starts with its clock frozen, at 2024-01-01 00:00 UTC.
    ///
    /// Time does not pass until [`Universe::advance`](../minikeeper/struct.Universe.html#method.advance) or
    /// [`unfreeze`](../minikeeper/struct.Universe.html#method.unfreeze).
    manual_clock: bool = false;

    /// The zxid before the first change.
    ///
    /// By default it is the time in milliseconds, times 2^20, so that a restarted server is ahead of
    /// every zxid that clients have seen; with a manual clock it is 0. Such zxids are greater than
    /// those of a ZooKeeper ensemble. Fencing tokens are zxids: a resource that has seen the tokens of
    /// this server refuses those of the ensemble. With 0, tokens begin as those of a new ensemble
    /// do; but a client that outlives a restart without saved state is ahead of the server, which
    /// refuses it until its session is over. It applies only if no state was saved.
    initial_zxid: Option<i64> = None,
        Spec::number(DATA, "initial-zxid", Count, 0, LONG).unset("the time in ms, times 2^20");

    /// Save the state here on shutdown and load it at the start.
    ///
    /// The state is znodes, sessions, counters and the zxid. After a start every session has its
    /// full timeout, and clients reattach by id and password; `initial_zxid` applies only if nothing
    /// was saved. A process that is killed, or a server that is dropped, does not save: then the last
    /// save remains, with the later changes that [`txn_log`](Config::txn_log) keeps. One server per
    /// directory. On Unix only, because of the lock.
    ///
    /// The layout is that of ZooKeeper's `dataDir`, and each server reads the snapshots and logs
    /// of the other. The three newest saves are kept; ZooKeeper's files are never deleted. Files
    /// are created with mode 0600, directories with 0700.
    ///
    /// A directory with damaged or missing files is refused, see
    /// [`trust_damaged_data`](Config::trust_damaged_data). If the directory is deleted or replaced
    /// while the server runs, the server notices within a second of its clock, or 256 writes of the
    /// log. With a log, the next change stops the server;
    /// [`Server::save_failed`](../minikeeper/struct.Server.html#method.save_failed) returns the reason in any case.
    /// Source: `docs/zookeeper-protocol.md` sections 14.7 and 22.1.
    #[cfg(feature = "data")]
    data_dir: Option<PathBuf> = None,
        Spec::new(DATA, "data-dir", Form::File("DIR")).unset("keep nothing");

    /// A ZooKeeper data directory to start from; it is only read.
    ///
    /// If `data_dir` is set too, it must be empty.
    #[cfg(feature = "data")]
    import: Option<DataSource> = None;

    /// The state of another server to start with; excludes `data_dir` and `import`.
    ///
    /// Each session has its full timeout, from the start on, to reconnect.
    #[cfg(feature = "data")]
    state: Option<SavedState> = None;

    /// Whether to accept a `data_dir` with damaged or missing files, and omit what is unreadable.
    ///
    /// The changes that cannot be read are lost, and those after them. Files that were not read
    /// remain, renamed to `unread.*`. Otherwise such a directory is refused.
    #[cfg(feature = "data")]
    trust_damaged_data: bool = false;

    /// Also save every N milliseconds; 0 saves only on shutdown.
    ///
    /// Clients are served meanwhile. The state is copied to be saved, and the copy takes as much
    /// memory as the state. A frozen clock never reaches the next save:
    /// call [`Server::save`](../minikeeper/struct.Server.html#method.save). Needs `data_dir`.
    #[cfg(feature = "data")]
    save_interval: Duration = Duration::ZERO,
        Spec::number(DATA, "save-interval", Ms, 0, ANY).needs("data_dir");

    /// Which changes since the last save survive a crash.
    ///
    /// The log has ZooKeeper's format, and ZooKeeper can start from the directory even of a killed
    /// server. Needs `data_dir`. Source: `docs/zookeeper-protocol.md` section 22.3.
    #[cfg(feature = "data")]
    txn_log: TxnLog = TxnLog::Off;

    /// Save and start a new transaction log after N changes.
    ///
    /// ZooKeeper: `snapCount`.
    #[cfg(feature = "data")]
    snap_count: u64 = 100_000,
        Spec::number(DATA, "snap-count", Count, 1, ANY).needs("data_dir");

    /// Address to listen on for clients over TLS.
    ///
    /// Needs `tls_certificate` and `tls_key`. ZooKeeper: `secureClientPort`.
    #[cfg(feature = "tls")]
    secure_listen: Option<SocketAddr> = None;

    /// Whether to serve clients only over TLS.
    ///
    /// Then the server does not listen at `listen`, and no client can bypass TLS and `tls_client_ca`.
    /// Needs `secure_listen`. ZooKeeper: no `clientPort`.
    #[cfg(feature = "tls")]
    secure_only: bool = false;

    /// The server's certificate and the chain to one that clients trust, a PEM file.
    ///
    /// ZooKeeper: `ssl.keyStore.location`.
    #[cfg(feature = "tls")]
    tls_certificate: Option<PathBuf> = None,
        Spec::new(TLS, "tls-cert", Form::File("FILE")).needs("tls_key");

    /// The key of that certificate, a PEM file.
    #[cfg(feature = "tls")]
    tls_key: Option<PathBuf> = None,
        Spec::new(TLS, "tls-key", Form::File("FILE")).needs("tls_certificate");

    /// Demand client certificates signed by one of these, a PEM file.
    ///
    /// Over TLS every client must then present one, of X.509 version 3. Without this setting the
    /// server does not ask for one.
    /// ZooKeeper: `ssl.trustStore.location`.
    #[cfg(feature = "tls")]
    tls_client_ca: Option<PathBuf> = None,
        Spec::new(TLS, "tls-client-ca", Form::File("FILE"));

    /// Subject of the client certificate that may do everything, as in CN=admin,O=Example.
    ///
    /// In the notation of RFC 2253.
    #[cfg(feature = "tls")]
    x509_super_user: Option<String> = None,
        Spec::text(TLS, "x509-super-user", "NAME")
            .key(
                "X509AuthenticationProvider.superUser",
                KeyForm::Named("the subject of a certificate"),
            )
            .needs("tls_client_ca");

}
