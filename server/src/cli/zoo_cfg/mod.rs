//! Reads `zoo.cfg`, ZooKeeper's configuration file, as far as it applies to a single server.
//!
//! The table of settings says which keys there are; this module adds those that depend on each
//! other or have a form of their own. Where ZooKeeper replaces an unreadable value by a default,
//! this is an error. Some keys are accepted here that ZooKeeper reads from Java's command line
//! alone: `jute.maxbuffer`, `znode.container.*` and `readonlymode.enabled`.
//!
//! Source: `docs/zookeeper-protocol.md` section 21; ZooKeeper's `QuorumPeerConfig` for the keys of
//! the file, and the system properties `zookeeper.KEY` that it makes of all others.

mod entry;
mod reason;

#[cfg(feature = "tls")]
use std::net::{IpAddr, SocketAddr};

use minikeeper::{
    Config,
    settings::{self, Setting},
};

use self::entry::ZooCfgEntry;
pub(crate) use self::entry::{Ignored, ZooCfgError};
use crate::properties;

/// The keys that are not in the table of settings: each with the option that says the same, by its
/// name in the arguments. A key that ends with a dot stands for all that begin so.
const OPTIONS: &[(&str, &str)] = &[
    ("clientPort", "port"),
    ("clientPortAddress", "listen"),
    ("request_throttle_max_requests", "turn_requests_max"),
    ("DigestAuthenticationProvider.digestAlg", "digest_alg"),
    ("ensembleAuthName", "ensemble_names"),
    ("enforce.auth.enabled", "enforce_auth_schemes"),
    ("enforce.auth.schemes", "enforce_auth_schemes"),
    ("sessionRequireClientSASLAuth", "enforce_auth_schemes"),
    ("superUser", "sasl_super_user"),
    ("superUser.", "sasl_super_user"),
    #[cfg(feature = "tls")]
    ("secureClientPort", "secure_port"),
];

/// The setting that a key of the table is for.
fn setting_of(key: &str) -> Option<&'static Setting> {
    settings::settings().find(|setting| setting.spec.key.is_some_and(|(its, _)| its == key))
}

/// The option that says the same as a key, by its name in the arguments.
fn option_of(key: &str) -> Option<&'static str> {
    let is_it = |its: &str| its == key || its.ends_with('.') && key.starts_with(its);
    let special = OPTIONS.iter().find(|(its, _)| is_it(its));
    special
        .map(|(_, option)| *option)
        .or_else(|| setting_of(key).map(|setting| setting.name))
}

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
    // ZooKeeper expires sessions at ticks; its settings are chosen for that.
    config.rounds_expiry |= !is_given("expiry");
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
        match option_of(entry.key) {
            Some(option) if is_given(option) => file.take(&entry, &mut unused)?,
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
    file.take_ensemble_names(config, is_given("ensemble_names"));
    let schemes = file.enforced_schemes()?;
    if !schemes.is_empty() && !is_given("enforce_auth_schemes") {
        config.enforce_auth_schemes = schemes;
    }
    Ok(file.ignored)
}

/// Settings that several lines define together.
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
        if let Some(setting) = setting_of(entry.key) {
            return entry.set(setting, config);
        }
        match entry.key {
            "clientPort" => {
                self.has_plain_port = true;
                let port = entry.whole(0, u16::MAX.into())?;
                config.listen.set_port(u16::try_from(port).unwrap_or(0));
            }
            "clientPortAddress" => config.listen.set_ip(entry.address()?),
            // More than are served in one turn are never in process.
            "request_throttle_max_requests" => {
                let max = entry.limit()?.map_or(usize::MAX, saturated);
                config.turn_requests_max = config.turn_requests_max.min(max);
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
            key if key.starts_with("authProvider.") => self.take_auth_provider(entry, config)?,
            // Never by itself: ZooKeeper may be running on it.
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

    /// ZooKeeper's `AuthenticationHelper`: SASL alone comes before the list.
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

fn saturated(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
