//! Reads `zoo.cfg`, ZooKeeper's configuration file, as far as it applies to a single server.
//!
//! The table of settings lists most keys; this module adds those that depend on each other or have a
//! special notation. An unreadable value that ZooKeeper replaces by a default is an error here. Some
//! keys are accepted here that ZooKeeper reads only from Java's command line: `jute.maxbuffer`,
//! `znode.container.*` and `readonlymode.enabled`. `entry` is a line of the file, and `reason` says why
//! one is refused.
//!
//! Source: `docs/zookeeper-protocol.md` section 21; ZooKeeper's `QuorumPeerConfig` for the keys of
//! the file, and the system properties `zookeeper.KEY` into which it turns all others.

mod entry;
mod reason;

#[cfg(feature = "tls")]
use std::net::{IpAddr, SocketAddr};

use minikeeper::Config;

use minikeeper_core::config::settings::{self, Setting};

use self::entry::ZooCfgEntry;
pub(crate) use self::entry::{Ignored, ZooCfgError};
use crate::properties;

/// The keys that are not in the table of settings, each with the equivalent option, by its name in the
/// arguments. A key that ends with a dot is a prefix.
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

/// Returns the setting of a key in the table.
fn setting_of(key: &str) -> Option<&'static Setting> {
    settings::settings().find(|setting| setting.spec.key.is_some_and(|(its, _)| its == key))
}

/// Returns the option equivalent to a key, by its name in the arguments.
fn option_of(key: &str) -> Option<&'static str> {
    let is_it = |its: &str| its == key || its.ends_with('.') && key.starts_with(its);
    let special = OPTIONS.iter().find(|(its, _)| is_it(its));
    special
        .map(|(_, option)| *option)
        .or_else(|| setting_of(key).map(|setting| setting.name))
}

/// Applies the settings of a file, except those that an option of the command line sets. Returns the
/// keys without effect.
///
/// # Errors
/// [`ZooCfgError`] for the first invalid value; some of the others may have been applied.
pub(crate) fn apply(
    bytes: &[u8],
    config: &mut Config,
    is_given: impl Fn(&str) -> bool,
) -> Result<Vec<Ignored>, ZooCfgError> {
    let properties = properties::parse(bytes)?;
    // ZooKeeper expires sessions at ticks, and its settings are chosen for that.
    config.rounds_expiry |= !is_given("expiry");
    // Takes the values that options override, so that a file is valid or invalid whatever the options.
    let mut unused = Config::default();
    let mut file = File::default();
    for (at, property) in properties.iter().enumerate() {
        let entry = ZooCfgEntry::new(property);
        let mut later = properties[at + 1..].iter();
        // As in Java, the last value of a key counts, and the others are ignored, even if invalid.
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
        // As in ZooKeeper, there is no plain port without a `clientPort`.
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
    /// `enforce.auth.enabled`: the error to return if there are no schemes.
    schemes_enforced: Option<ZooCfgError>,
    /// `secureClientPort`: the error to return if there is no `clientPort`.
    #[cfg(not(feature = "tls"))]
    secure_port: Option<ZooCfgError>,
    /// Whether there is a `clientPort`.
    has_plain_port: bool,
    /// `secureClientPortAddress`
    #[cfg(feature = "tls")]
    secure_address: Option<IpAddr>,
    /// Whether an `authProvider.N` is the class of the scheme `ensemble`.
    has_ensemble_scheme: bool,
    /// `ensembleAuthName`, and the warning that it has no effect without that class.
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
            // No more requests are ever in process than one turn serves.
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
                let needs_schemes = || entry.must_be("false unless enforce.auth.schemes is set");
                self.schemes_enforced = entry.boolean()?.then(needs_schemes);
            }
            "enforce.auth.schemes" => {
                self.schemes = entry.list();
                if self.schemes.is_empty() {
                    return Err(entry.must_be("schemes, separated by commas"));
                }
            }
            "sessionRequireClientSASLAuth" => self.is_sasl_enforced = entry.boolean()?,
            key if key == "superUser" || key.starts_with("superUser.") => {
                let user = entry.not_empty("the name of a SASL user")?;
                config.sasl_super_users.push(user.to_owned());
            }
            #[cfg(not(feature = "tls"))]
            "secureClientPort" => {
                let allowed = "used with a clientPort, or with a program built with cargo's feature \
                               `tls`";
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
            key if key.starts_with("authProvider.") => self.take_auth_provider(entry, config),
            // Not used without the option: ZooKeeper may be running in that directory.
            "dataDir" => {
                self.ignored
                    .push(entry.ignored("state is kept only with --data-dir"));
            }
            _ => self.ignored.push(entry.ignored(reason::reason(entry.key))),
        }
        Ok(())
    }

    /// Applies an authentication provider. `digest` and `ip` need none, and `sasl` comes with its users. As ZooKeeper
    /// does with a class that it cannot load (`ProviderRegistry`), goes on without any other: clients of its scheme get
    /// AUTHFAILED. Source: ZooKeeper's `AuthTest`, whose class refuses every client.
    fn take_auth_provider(&mut self, entry: &ZooCfgEntry<'_>, config: &mut Config) {
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
            Some("EnsembleAuthenticationProvider") => self.has_ensemble_scheme = true,
            Some("KeyAuthenticationProvider") => config.key_scheme = true,
            Some("X509AuthenticationProvider") => self.ignored.push(entry.ignored(
                "this program is built without TLS (cargo's feature `tls`); clients of the scheme x509 are refused",
            )),
            _ => self.ignored.push(entry.ignored(
                "this server does not have the class, which is Java code; clients of its scheme are refused \
                 (AUTHFAILED), as by a ZooKeeper that cannot load it",
            )),
        }
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

    /// Returns the enforced schemes. `sessionRequireClientSASLAuth` overrides the list, as in
    /// ZooKeeper's `AuthenticationHelper`.
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
