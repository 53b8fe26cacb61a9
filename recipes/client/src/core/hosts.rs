//! The connect string, the order in which the client tries the servers, and the pauses between
//! rounds.
//!
//! Source: `ConnectStringParser` and `StaticHostProvider` of ZooKeeper's client.

use std::{fmt, str::FromStr, time::Duration};

use minikeeper_protocol::{PathError, ZnodePath};

use super::{
    backoff::{Chance, Pauses},
    outcome::Time,
};

/// The port of a server whose address names none.
pub const PORT_DEFAULT: u16 = 2181;

/// A connection that lasted this long does not count as a failure: the next one is made at once.
const LIVED_MIN: Duration = Duration::from_secs(1);

/// The waits between rounds over all servers.
const PAUSES: Pauses = Pauses {
    min: Duration::from_millis(10),
    max: Duration::from_secs(1),
};

/// A parsed connect string: the servers, and the znode that is the client's root.
///
/// # Examples
/// ```
/// let at: minikeeper_client::ConnectString = "zk1:2181,zk2,[::1]:2182/app".parse()?;
/// assert_eq!(at.hosts(), ["zk1:2181", "zk2:2181", "[::1]:2182"]);
/// assert_eq!(at.chroot(), Some("/app"));
/// # Ok::<(), minikeeper_client::ConnectStringError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectString {
    hosts: Vec<String>,
    chroot: Option<ZnodePath>,
}

impl ConnectString {
    /// Returns the servers, each as `host:port`.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Returns the znode that is the root of all paths of the client; `None` for the server's root.
    #[must_use]
    pub fn chroot(&self) -> Option<&str> {
        self.chroot.as_ref().map(ZnodePath::as_str)
    }
}

/// The reason why a connect string is invalid.
///
/// # Examples
/// ```
/// use minikeeper_client::{ConnectString, ConnectStringError};
///
/// let wrong = "zk1:port".parse::<ConnectString>();
/// assert!(matches!(wrong, Err(ConnectStringError::Port { .. })));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConnectStringError {
    /// A server is missing: the string names none, or two commas have nothing between them.
    EmptyHost {
        /// The string.
        text: String,
    },
    /// The text after a colon is not a port.
    Port {
        /// The server as written.
        host: String,
    },
    /// The text after the servers is not a valid path.
    Chroot(PathError),
}

impl fmt::Display for ConnectStringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyHost { text } => write!(
                f,
                "connect string {text:?}: a server is missing; write host:port,host:port/chroot"
            ),
            Self::Port { host } => {
                write!(f, "server {host:?}: the port is not a number below 65536")
            }
            Self::Chroot(_) => f.write_str("invalid chroot in the connect string"),
        }
    }
}

impl std::error::Error for ConnectStringError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Chroot(error) => Some(error),
            Self::EmptyHost { .. } | Self::Port { .. } => None,
        }
    }
}

impl FromStr for ConnectString {
    type Err = ConnectStringError;

    fn from_str(text: &str) -> Result<Self, ConnectStringError> {
        let (hosts, chroot) = match text.find('/') {
            Some(slash) => text.split_at(slash),
            None => (text, "/"),
        };
        let chroot = ZnodePath::new(chroot).map_err(ConnectStringError::Chroot)?;
        let hosts = hosts
            .split(',')
            .map(|host| with_port(host.trim(), text))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            hosts,
            chroot: (chroot.as_str() != "/").then_some(chroot),
        })
    }
}

fn with_port(host: &str, text: &str) -> Result<String, ConnectStringError> {
    let colon = match host.rfind(']') {
        Some(bracket) => host[bracket..].find(':').map(|colon| bracket + colon),
        // More than one colon without brackets: an IPv6 address without a port.
        None if host.matches(':').count() > 1 => None,
        None => host.find(':'),
    };
    let name = &host[..colon.unwrap_or(host.len())];
    if name.is_empty() {
        return Err(ConnectStringError::EmptyHost {
            text: text.to_owned(),
        });
    }
    let port = match colon {
        Some(colon) => host[colon + 1..]
            .parse()
            .map_err(|_| ConnectStringError::Port {
                host: host.to_owned(),
            })?,
        None => PORT_DEFAULT,
    };
    let is_bare_v6 = name.contains(':') && !name.starts_with('[');
    Ok(if is_bare_v6 {
        format!("[{name}]:{port}")
    } else {
        format!("{name}:{port}")
    })
}

/// Decides which server the client tries, and when.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// Indices into the list of servers, shuffled once, so that clients spread over the servers.
    order: Vec<usize>,
    /// The place in `order` that is tried next.
    next: usize,
    /// How many attempts have failed since a connection lasted for [`LIVED_MIN`].
    failures: u32,
    chance: Chance,
}

impl Hosts {
    pub(crate) fn new(count: usize, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let mut order: Vec<_> = (0..count).collect();
        for last in (1..count).rev() {
            let other = chance.below(last as u64 + 1);
            order.swap(last, usize::try_from(other).unwrap_or(0));
        }
        Self {
            order,
            next: 0,
            failures: 0,
            chance,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the server to try now.
    pub(crate) fn take(&mut self) -> usize {
        let host = self.order[self.next];
        self.next = (self.next + 1) % self.order.len();
        host
    }

    pub(crate) fn random(&mut self) -> u128 {
        u128::from(self.chance.next()) << 64 | u128::from(self.chance.next())
    }

    /// Handles the end of a connection that lasted for `lived`, zero if it was not established.
    /// Returns when to try the next server.
    ///
    /// That is at once if the connection lasted. Otherwise the other servers are tried at once,
    /// with a pause between two rounds, half of it random. A handshake alone proves nothing: a
    /// server, or a proxy before it, may close every connection after it.
    pub(crate) fn failed(&mut self, now: Time, lived: Duration) -> Time {
        if lived >= LIVED_MIN {
            self.failures = 0;
            return now;
        }
        self.failures = self.failures.saturating_add(1);
        let count = u32::try_from(self.order.len()).unwrap_or(u32::MAX);
        if !self.failures.is_multiple_of(count) {
            return now;
        }
        now + PAUSES.after(self.failures / count - 1, &mut self.chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_string_is_parsed_or_refused() {
        let parse = |text: &str| text.parse::<ConnectString>();
        let at = parse("a,b:1,[::1],::2,[fe80::1]:9/x/y").unwrap();
        assert_eq!(
            at.hosts(),
            ["a:2181", "b:1", "[::1]:2181", "[::2]:2181", "[fe80::1]:9"]
        );
        assert_eq!(at.chroot(), Some("/x/y"));
        assert_eq!(parse("a").unwrap().chroot(), None);
        assert_eq!(parse("a/").unwrap().chroot(), None);
        for text in ["", ",", "a,", ":2181", "a,,b"] {
            let error = parse(text).unwrap_err();
            assert!(
                matches!(error, ConnectStringError::EmptyHost { .. }),
                "{text}"
            );
        }
        for text in ["a:", "a:x", "a:65536", "[::1]:"] {
            assert_eq!(
                parse(text).unwrap_err(),
                ConnectStringError::Port { host: text.into() }
            );
        }
        assert!(matches!(
            parse("a/x/").unwrap_err(),
            ConnectStringError::Chroot(_)
        ));
    }

    #[test]
    fn every_server_is_tried_before_a_pause() {
        let now = Duration::from_secs(7);
        let mut hosts = Hosts::new(3, 1);
        let mut tried: Vec<_> = (0..3).map(|_| hosts.take()).collect();
        tried.sort_unstable();
        assert_eq!(tried, [0, 1, 2]);
        let brief = Duration::ZERO;
        let first_two = (hosts.failed(now, brief), hosts.failed(now, brief));
        assert_eq!(first_two, (now, now));
        let pause = hosts.failed(now, brief) - now;
        assert!(pause >= PAUSES.min / 2 && pause <= PAUSES.min, "{pause:?}");
        for _ in 0..300 {
            assert!(hosts.failed(now, LIVED_MIN / 2) - now <= PAUSES.max);
        }
        assert_eq!(hosts.failed(now, LIVED_MIN), now);
    }

    #[test]
    fn different_seeds_give_different_orders() {
        let first = |seed| Hosts::new(3, seed).take();
        assert!((0..20).any(|seed| first(seed) != first(0)));
        assert_eq!(first(5), first(5));
    }
}
