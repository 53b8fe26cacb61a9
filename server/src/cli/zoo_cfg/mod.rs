//! `zoo.cfg`, the configuration file of the original, as far as it means something here.
//!
//! Source: `docs/zookeeper-protocol.md` section 21; the original's `QuorumPeerConfig` for the keys
//! of the file, and the system properties `zookeeper.KEY` that it makes of all others. Where the
//! original takes what it cannot read for a default, this is an error. More are taken, which the
//! original reads from Java's command line alone: `jute.maxbuffer`, `znode.container.*` and
//! `readonlymode.enabled`.

mod entry;
mod reason;

#[cfg(feature = "tls")]
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use minikeeper::Config;

use self::entry::ZooCfgEntry;
pub(crate) use self::entry::{Ignored, ZooCfgError};
use crate::properties;

/// Lengths have 31 bits on the wire, and four bytes stand before them.
const FRAME_BYTES_MAX: i64 = i32::MAX as i64 - 4;

/// The option that says the same as a key, by its name in the arguments.
const OPTIONS: &[(&str, &str)] = &[
    ("clientPort", "port"),
    ("clientPortAddress", "listen"),
    ("tickTime", "tick_time"),
    ("minSessionTimeout", "min_session_timeout"),
    ("maxSessionTimeout", "max_session_timeout"),
    ("maxClientCnxns", "max_client_cnxns"),
    ("maxCnxns", "max_connections"),
    ("jute.maxbuffer", "jute_maxbuffer"),
    ("clientPortListenBacklog", "listen_backlog"),
    ("nio.sessionlessCnxnTimeout", "handshake_timeout"),
    ("connection_throttle_tokens", "connection_throttle_tokens"),
    (
        "connection_throttle_fill_time",
        "connection_throttle_fill_time",
    ),
    (
        "connection_throttle_fill_count",
        "connection_throttle_fill_count",
    ),
    ("request_throttle_max_requests", "max_turn_requests"),
    ("throttled_op_wait_time", "throttled_op_wait_time"),
    ("largeRequestThreshold", "large_request_threshold"),
    ("largeRequestMaxBytes", "large_request_max_bytes"),
    ("4lw.commands.whitelist", "four_letter_whitelist"),
    ("digest.enabled", "digest"),
    ("extendedTypesEnabled", "no_extended_types"),
    (
        "znode.container.checkIntervalMs",
        "container_check_interval",
    ),
    ("znode.container.maxPerMinute", "container_max_per_minute"),
    (
        "znode.container.maxNeverUsedIntervalMs",
        "container_max_never_used",
    ),
    ("enforceQuota", "enforce_quota"),
    ("reconfigEnabled", "reconfig_enabled"),
    ("skipACL", "skip_acl"),
    ("DigestAuthenticationProvider.enabled", "no_digest"),
    ("DigestAuthenticationProvider.superDigest", "super_digest"),
    ("DigestAuthenticationProvider.digestAlg", "digest_alg"),
    ("ensembleAuthName", "ensemble_auth_name"),
    ("readonlymode.enabled", "read_only_mode"),
    ("allowSaslFailedClients", "allow_sasl_failed_clients"),
    ("enforce.auth.enabled", "enforce_auth_schemes"),
    ("enforce.auth.schemes", "enforce_auth_schemes"),
    ("sessionRequireClientSASLAuth", "enforce_auth_schemes"),
    ("superUser", "sasl_super_user"),
    ("superUser.", "sasl_super_user"),
    #[cfg(feature = "tls")]
    ("secureClientPort", "secure_port"),
    #[cfg(feature = "tls")]
    ("X509AuthenticationProvider.superUser", "x509_super_user"),
];

/// Puts what a file says in the place of what was there, except where an option of the command
/// line says it already; gives what the file says in vain.
///
/// # Errors
/// [`ZooCfgError`] for the first value that makes no sense; some of the others may be in place.
pub(crate) fn apply(
    bytes: &[u8],
    config: &mut Config,
    is_given: impl Fn(&str) -> bool,
) -> Result<Vec<Ignored>, ZooCfgError> {
    let properties = properties::parse(bytes)?;
    // What the command line says already is read as well, so that a file is good or it is not.
    let mut unused = Config::default();
    let mut file = File::default();
    for (at, property) in properties.iter().enumerate() {
        let entry = ZooCfgEntry::new(property);
        let mut later = properties[at + 1..].iter();
        // As in Java the last one of a key counts, and the others are not looked at.
        if later.any(|later| later.key.trim() == entry.key) {
            continue;
        }
        let option = OPTIONS
            .iter()
            .find(|(key, _)| *key == entry.key || key.ends_with('.') && entry.key.starts_with(key));
        match option {
            Some((_, option)) if is_given(option) => file.take(&entry, &mut unused)?,
            _ => file.take(&entry, config)?,
        }
    }
    #[cfg(feature = "tls")]
    if let Some(address) = &mut config.secure_listen
        && !is_given("secure_port")
    {
        address.set_ip(file.secure_address.unwrap_or_else(|| config.listen.ip()));
        // As ZooKeeper: a port that is not named is not there.
        config.secure_only |= !file.has_plain_port && !is_given("port");
    }
    #[cfg(not(feature = "tls"))]
    if let Some(error) = file.secure_port.take()
        && !file.has_plain_port
        && !is_given("port")
    {
        return Err(error);
    }
    file.take_ensemble_names(config, is_given("ensemble_auth_name"));
    let schemes = file.enforced_schemes()?;
    if !schemes.is_empty() && !is_given("enforce_auth_schemes") {
        config.enforce_auth_schemes = schemes;
    }
    Ok(file.ignored)
}

/// What is told by several lines together.
#[derive(Default)]
struct File {
    /// `enforce.auth.schemes`
    schemes: Vec<String>,
    /// `enforce.auth.enabled`, as the error that it is without schemes.
    schemes_enforced: Option<ZooCfgError>,
    /// `secureClientPort`, as the error that it is alone.
    #[cfg(not(feature = "tls"))]
    secure_port: Option<ZooCfgError>,
    /// Whether there is a `clientPort`.
    has_plain_port: bool,
    /// `secureClientPortAddress`
    #[cfg(feature = "tls")]
    secure_address: Option<IpAddr>,
    /// The class of `ensemble` is among the `authProvider.N`.
    has_ensemble_scheme: bool,
    /// `ensembleAuthName`, and that it has no effect alone.
    ensemble_names: Option<(Vec<String>, Ignored)>,
    /// `sessionRequireClientSASLAuth`
    is_sasl_enforced: bool,
    ignored: Vec<Ignored>,
}

impl File {
    fn take(&mut self, entry: &ZooCfgEntry<'_>, config: &mut Config) -> Result<(), ZooCfgError> {
        match entry.key {
            "clientPort" => {
                self.has_plain_port = true;
                let port = entry.whole(0, u16::MAX.into())?;
                config.listen.set_port(u16::try_from(port).unwrap_or(0));
            }
            "clientPortAddress" => config.listen.set_ip(entry.address()?),
            "tickTime" => config.tick_time_ms = entry.ms(1)?,
            "minSessionTimeout" => config.session_timeout_min_ms = entry.ms_or_unset()?,
            "maxSessionTimeout" => config.session_timeout_max_ms = entry.ms_or_unset()?,
            "maxClientCnxns" => {
                config.connections_per_address_max = entry.limit()?.unwrap_or(0);
            }
            // Without a limit of the original's there is still the own one.
            "maxCnxns" => {
                if let Some(max) = entry.limit()? {
                    config.connections_max = max;
                }
            }
            "jute.maxbuffer" => {
                let max = entry.whole(1, FRAME_BYTES_MAX)?;
                config.frame_bytes_max = usize::try_from(max).unwrap_or(usize::MAX);
            }
            "digest.enabled" => config.tree_digests = entry.boolean()?,
            "4lw.commands.whitelist" => entry.value.clone_into(&mut config.four_letter_whitelist),
            _ => return self.take_limit(entry, config),
        }
        Ok(())
    }

    /// Limits of the original's that its administrator's guide calls by other names than the file:
    /// `throttledOpWaitTime`, `requestThrottleLimit`.
    fn take_limit(
        &mut self,
        entry: &ZooCfgEntry<'_>,
        config: &mut Config,
    ) -> Result<(), ZooCfgError> {
        let ms = |ms: u32| Duration::from_millis(ms.into());
        match entry.key {
            "clientPortListenBacklog" => {
                if let Some(max) = entry.limit()? {
                    config.listen_backlog = saturated(max);
                }
            }
            "nio.sessionlessCnxnTimeout" => config.handshake_timeout = ms(entry.ms(1)?),
            "connection_throttle_tokens" => {
                config.connection_throttle_tokens = saturated(entry.limit()?.unwrap_or(0));
            }
            "connection_throttle_fill_time" => {
                config.connection_throttle_fill_time = ms(entry.ms(1)?);
            }
            "connection_throttle_fill_count" => {
                let count = entry.whole(0, i32::MAX.into())?;
                config.connection_throttle_fill_count = u32::try_from(count).unwrap_or(0);
            }
            // More than are served in one turn are never in process.
            "request_throttle_max_requests" => {
                let max = entry.limit()?.unwrap_or(usize::MAX);
                config.turn_requests_max = config.turn_requests_max.min(max);
            }
            "throttled_op_wait_time" => {
                config.throttled_op_wait_time = ms(saturated(entry.limit()?.unwrap_or(0)));
            }
            "largeRequestThreshold" => {
                config.large_request_threshold = entry.limit()?.unwrap_or(0);
            }
            "largeRequestMaxBytes" => {
                if let Some(max) = entry.limit()? {
                    config.large_request_bytes_max = max;
                }
            }
            _ => return self.take_znodes_and_access(entry, config),
        }
        Ok(())
    }

    fn take_znodes_and_access(
        &mut self,
        entry: &ZooCfgEntry<'_>,
        config: &mut Config,
    ) -> Result<(), ZooCfgError> {
        match entry.key {
            "extendedTypesEnabled" => config.extended_types = entry.boolean()?,
            "znode.container.checkIntervalMs" => {
                config.container_check_interval_ms = entry.ms(0)?;
            }
            "znode.container.maxPerMinute" => config.container_max_per_minute = entry.ms(1)?,
            "znode.container.maxNeverUsedIntervalMs" => {
                let ms = entry.whole(0, i64::MAX)?;
                config.container_max_never_used_ms = ms.unsigned_abs();
            }
            "enforceQuota" => config.enforce_quota = entry.boolean()?,
            "reconfigEnabled" => config.reconfig_enabled = entry.boolean()?,
            "skipACL" => config.skip_acl = entry.yes_or_no()?,
            "DigestAuthenticationProvider.enabled" => config.digest_enabled = entry.boolean()?,
            "DigestAuthenticationProvider.superDigest" => {
                config.super_digest = Some(entry.digest()?.into());
            }
            "DigestAuthenticationProvider.digestAlg" => {
                let algorithm = entry.value.parse();
                config.digest_algorithm = algorithm.map_err(|_| {
                    entry.must_be("a digest algorithm of Java: MD5, SHA1, SHA-256, SHA3-256, ...")
                })?;
            }
            "ensembleAuthName" => {
                let names = entry.value.split(',').map(str::trim).map(str::to_owned);
                let alone = entry.ignored(
                    "it needs authProvider.1=org.apache.zookeeper.server.auth.\
                     EnsembleAuthenticationProvider",
                );
                self.ensemble_names = Some((names.collect(), alone));
            }
            "readonlymode.enabled" => config.read_only_mode = entry.boolean()?,
            "allowSaslFailedClients" => config.sasl_allow_failed = entry.boolean()?,
            "enforce.auth.enabled" => {
                let needs_schemes = || entry.must_be("false, or enforce.auth.schemes be set");
                self.schemes_enforced = entry.boolean()?.then(needs_schemes);
            }
            "enforce.auth.schemes" => {
                self.schemes = entry.list();
                if self.schemes.is_empty() {
                    return Err(entry.must_be("schemes, with commas between them"));
                }
            }
            "sessionRequireClientSASLAuth" => self.is_sasl_enforced = entry.boolean()?,
            key if key == "superUser" || key.starts_with("superUser.") => {
                let user = entry.not_empty("the name of a SASL user")?;
                config.sasl_super_users.push(user.to_owned());
            }
            #[cfg(not(feature = "tls"))]
            "secureClientPort" => {
                let allowed =
                    "beside a clientPort, or the program be built with TLS, cargo's feature `tls`";
                self.secure_port = Some(entry.must_be(allowed));
                self.ignored.push(entry.ignored(reason::reason(entry.key)));
            }
            #[cfg(feature = "tls")]
            "secureClientPort" => {
                let port = u16::try_from(entry.whole(0, u16::MAX.into())?).unwrap_or(0);
                config.secure_listen = Some(SocketAddr::new(config.listen.ip(), port));
            }
            #[cfg(feature = "tls")]
            "secureClientPortAddress" => self.secure_address = Some(entry.address()?),
            #[cfg(feature = "tls")]
            "X509AuthenticationProvider.superUser" => {
                let subject = entry.not_empty("the subject of a certificate")?;
                config.x509_super_user = Some(subject.to_owned());
            }
            key if key.starts_with("authProvider.") => self.take_auth_provider(entry, config)?,
            // Never by itself: the original may be running on it.
            "dataDir" => {
                self.ignored
                    .push(entry.ignored("state is kept only with --data-dir"));
            }
            _ => self.ignored.push(entry.ignored(reason::reason(entry.key))),
        }
        Ok(())
    }

    /// The schemes `digest` and `ip` need no provider, and `sasl` comes with its users; others than
    /// ZooKeeper's are code. Refused and not ignored: clients that count on a scheme of their own
    /// would be told that it does not exist.
    fn take_auth_provider(
        &mut self,
        entry: &ZooCfgEntry<'_>,
        config: &mut Config,
    ) -> Result<(), ZooCfgError> {
        let class = entry
            .value
            .strip_prefix("org.apache.zookeeper.server.auth.");
        match class {
            Some(
                "SASLAuthenticationProvider"
                | "DigestAuthenticationProvider"
                | "IPAuthenticationProvider",
            ) => {}
            Some("X509AuthenticationProvider") if cfg!(feature = "tls") => {}
            Some("X509AuthenticationProvider") => {
                let allowed =
                    "another class, or the program be built with TLS, cargo's feature `tls`";
                return Err(entry.must_be(allowed));
            }
            Some("EnsembleAuthenticationProvider") => self.has_ensemble_scheme = true,
            Some("KeyAuthenticationProvider") => config.key_scheme = true,
            _ => {
                let allowed = "DigestAuthenticationProvider, IPAuthenticationProvider, \
                               SASLAuthenticationProvider, X509AuthenticationProvider, \
                               EnsembleAuthenticationProvider or KeyAuthenticationProvider of \
                               org.apache.zookeeper.server.auth: others are code in Java";
                return Err(entry.must_be(allowed));
            }
        }
        Ok(())
    }

    fn take_ensemble_names(&mut self, config: &mut Config, is_given: bool) {
        match (self.has_ensemble_scheme, self.ensemble_names.take()) {
            (false, None) => {}
            (false, Some((_, alone))) => self.ignored.push(alone),
            (true, _) if is_given => {}
            (true, names) => {
                config.ensemble_names = Some(names.map(|(names, _)| names).unwrap_or_default());
            }
        }
    }

    /// The original's `AuthenticationHelper`: SASL alone comes before the list.
    fn enforced_schemes(&mut self) -> Result<Vec<String>, ZooCfgError> {
        if self.is_sasl_enforced {
            return Ok(vec!["sasl".to_owned()]);
        }
        match self.schemes_enforced.take() {
            None => Ok(Vec::new()),
            Some(error) if self.schemes.is_empty() => Err(error),
            Some(_) => Ok(std::mem::take(&mut self.schemes)),
        }
    }
}

fn saturated(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
