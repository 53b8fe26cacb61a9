//! The connect string, the order in which the client tries the servers, and the pauses between
//! rounds.
//!
//! Source: `ConnectStringParser` and `StaticHostProvider` of ZooKeeper's client.

use std::{collections::VecDeque, fmt, net::Ipv6Addr, str::FromStr, sync::Arc, time::Duration};

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
/// It is read as ZooKeeper's Java client 3.8 reads it:
///
/// - Servers are separated by commas. Whitespace around a server does not count, and an empty part
///   (`a,,b`) is skipped. A server that is named twice is tried twice a round.
/// - The last colon of a server separates the port; without a port, or without a number after the
///   colon, it is [`PORT_DEFAULT`]. Write an IPv6 address in brackets: without them its last group
///   counts as the port (`::1:2181` is port 2181 of `::1`). Without a name (`:2181`) the server is
///   `localhost`.
/// - All text from the first slash on is the root. A single slash (`zk1/`) means no root.
///
/// Java accepts some servers to which it then never connects: port 0, a text that is neither a name
/// nor an address (`::1`, which it reads as port 1 of `:`), and spaces or brackets within a name.
/// Here they are refused, and so are digits of other scripts in a port.
///
/// Names are used as written: this client never asks the name service for the canonical name of an
/// address, neither for TLS nor for SASL. Java does, unless `ssl.allowReverseDnsLookup` and
/// `zookeeper.sasl.client.canonicalize.hostname` are false.
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
    /// The string names no server.
    NoServer {
        /// The string.
        text: String,
    },
    /// The text after the last colon is not a port.
    Port {
        /// The server as written.
        host: String,
    },
    /// The text before the port is neither a name nor an address.
    Address {
        /// The server as written.
        host: String,
    },
    /// A new list of servers has another chroot than the client, see [`Client::update_servers`].
    ///
    /// [`Client::update_servers`]: crate::Client::update_servers
    OtherChroot {
        /// The chroot of the new list.
        given: String,
        /// The client's; empty if it has none.
        chroot: String,
    },
    /// The text after the servers is not a valid path.
    Chroot(PathError),
}

impl fmt::Display for ConnectStringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoServer { text } => write!(
                f,
                "connect string {text:?} names no server; write host:port,host:port/chroot"
            ),
            Self::Port { host } => {
                write!(
                    f,
                    "server {host:?}: the port is not a number from 1 to 65535"
                )
            }
            Self::Address { host } => write!(
                f,
                "server {host:?}: neither a name nor an address; write an IPv6 address in \
                 brackets, as in [::1]:2181"
            ),
            Self::OtherChroot { given, chroot } => write!(
                f,
                "chroot {given:?} is not the client's, {chroot:?}; leave it out, or start another \
                 client"
            ),
            Self::Chroot(_) => f.write_str("invalid chroot in the connect string"),
        }
    }
}

impl std::error::Error for ConnectStringError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Chroot(error) => Some(error),
            _ => None,
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
            .map(|host| host.trim_matches(is_java_space))
            .filter(|host| !host.is_empty())
            .map(with_port)
            .collect::<Result<Vec<_>, _>>()?;
        if hosts.is_empty() {
            return Err(ConnectStringError::NoServer {
                text: text.to_owned(),
            });
        }
        Ok(Self {
            hosts,
            chroot: (chroot.as_str() != "/").then_some(chroot),
        })
    }
}

/// What Java's `String.trim` removes.
const fn is_java_space(c: char) -> bool {
    c <= ' '
}

/// Returns the server as `name:port`, an IPv6 address in brackets.
fn with_port(host: &str) -> Result<String, ConnectStringError> {
    let wrong_port = || ConnectStringError::Port {
        host: host.to_owned(),
    };
    let wrong_address = || ConnectStringError::Address {
        host: host.to_owned(),
    };
    let (name, port) = if let Some(rest) = host.strip_prefix('[') {
        let (name, rest) = rest.rsplit_once(']').ok_or_else(wrong_address)?;
        match rest.strip_prefix(':') {
            Some("") => return Err(wrong_port()),
            None if rest.is_empty() && !name.is_empty() => (name, rest),
            Some(port) if !name.is_empty() => (name, port),
            _ => return Err(wrong_address()),
        }
    } else {
        host.rsplit_once(':').unwrap_or((host, ""))
    };
    let port = match port {
        "" => PORT_DEFAULT,
        _ => port
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(wrong_port)?,
    };
    let is_odd = |c: char| matches!(c, '[' | ']') || is_java_space(c);
    if name.contains(is_odd) {
        return Err(wrong_address());
    }
    if name.contains(':') {
        let (address, _) = name.split_once('%').unwrap_or((name, ""));
        let _: Ipv6Addr = address.parse().map_err(|_| wrong_address())?;
        return Ok(format!("[{name}]:{port}"));
    }
    let name = if name.is_empty() { "localhost" } else { name };
    Ok(format!("{name}:{port}"))
}

/// Decides which server the client tries, and when.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// The servers, shuffled once, so that clients spread over them.
    order: Vec<Arc<str>>,
    /// The servers as given, with commas between them.
    text: String,
    /// The place in `order` that is tried next.
    next: usize,
    /// The server that was tried last.
    current: Arc<str>,
    /// The servers to try first, after the list has changed.
    moving: Option<Moving>,
    /// How many attempts have failed since a connection lasted for [`LIVED_MIN`].
    failures: u32,
    chance: Chance,
}

impl Hosts {
    pub(crate) fn new(servers: &[String], seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let order = shuffled(servers, &mut chance);
        Self {
            current: Arc::clone(&order[0]),
            order,
            text: servers.join(","),
            next: 0,
            moving: None,
            failures: 0,
            chance,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the servers as given, with commas between them.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the server to try now.
    pub(crate) fn take(&mut self) -> Arc<str> {
        let moving = self.moving.as_mut();
        if let Some(server) = moving.and_then(|moving| moving.take(&mut self.chance)) {
            let place = self.order.iter().position(|it| *it == server);
            self.next = place.map_or(0, |place| (place + 1) % self.order.len());
            self.current = server;
            return self.current();
        }
        self.moving = None;
        self.current = Arc::clone(&self.order[self.next]);
        self.next = (self.next + 1) % self.order.len();
        self.current()
    }

    /// Handles a successful handshake.
    pub(crate) fn connected(&mut self) {
        self.moving = None;
    }

    /// Replaces the list of servers, which must not be empty. Returns whether the client must leave
    /// the current server: because it is no longer in the list, or because there are more servers
    /// than before and this client is one of those that move, so that each server has as many clients
    /// as before the others were added.
    ///
    /// Source: `StaticHostProvider.updateServerList` of ZooKeeper's client, which explains the
    /// probabilities (ZOOKEEPER-1355).
    pub(crate) fn update(&mut self, servers: &[String]) -> bool {
        let before = std::mem::take(&mut self.order);
        self.order = shuffled(servers, &mut self.chance);
        self.text = servers.join(",");
        // A client that is about to move has left its server already.
        let goal = self.moving.take();
        let goal = goal.and_then(|mut moving| moving.take(&mut self.chance));
        let mine = goal.clone().unwrap_or_else(|| self.current());
        let (old, new): (Vec<_>, Vec<_>) = self
            .order
            .iter()
            .cloned()
            .partition(|server| before.contains(server));
        let count = |servers: &[_]| servers.len() as u64;
        let (before, all, kept) = (count(&before), count(&self.order), count(&old));
        let stays = match self.order.iter().position(|server| *server == mine) {
            Some(place) if all <= before || self.chance.below(all) < before => Some(place),
            _ => None,
        };
        if let Some(place) = stays {
            let tried = usize::from(goal.is_none());
            self.next = (place + tried) % self.order.len();
            return false;
        }
        // With more servers than before, the new ones have too few clients. Otherwise the clients of
        // the removed ones spread so that all have equally many.
        let (old_weight, weights) = if all > before {
            (0, 1)
        } else {
            (kept * (before - all), all * before.saturating_sub(kept))
        };
        self.next = 0;
        self.moving = Some(Moving {
            old: old.into(),
            new: new.into(),
            old_weight,
            weights: weights.max(1),
        });
        true
    }

    /// Returns the server that was tried last.
    pub(crate) fn current(&self) -> Arc<str> {
        Arc::clone(&self.current)
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

/// The servers that a client tries first after its list has changed, each once.
#[derive(Debug)]
struct Moving {
    /// Those that were in the list before.
    old: VecDeque<Arc<str>>,
    new: VecDeque<Arc<str>>,
    /// How many of `weights` clients move to an old server.
    old_weight: u64,
    weights: u64,
}

impl Moving {
    fn take(&mut self, chance: &mut Chance) -> Option<Arc<str>> {
        let takes_new = chance.below(self.weights) >= self.old_weight;
        let (first, second) = if takes_new {
            (&mut self.new, &mut self.old)
        } else {
            (&mut self.old, &mut self.new)
        };
        first.pop_front().or_else(|| second.pop_front())
    }
}

fn shuffled(servers: &[String], chance: &mut Chance) -> Vec<Arc<str>> {
    let mut order: Vec<_> = servers
        .iter()
        .map(|server| server.as_str().into())
        .collect();
    for last in (1..order.len()).rev() {
        let other = chance.below(last as u64 + 1);
        order.swap(last, usize::try_from(other).unwrap_or(0));
    }
    order
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn servers(count: usize) -> Vec<String> {
        (0..count)
            .map(|number| format!("zk{number}:2181"))
            .collect()
    }

    /// What Java's `ConnectStringParser` 3.8.0 printed for each text, except where a comment says
    /// what it does instead.
    #[test]
    fn connect_string_is_read_as_java_reads_it() {
        const ROWS: &[(&str, &[&str], Option<&str>)] = &[
            ("a", &["a:2181"], None),
            ("A.:1", &["A.:1"], None),
            ("a,,b", &["a:2181", "b:2181"], None),
            ("a,", &["a:2181"], None),
            (",a,", &["a:2181"], None),
            (" a , b ", &["a:2181", "b:2181"], None),
            ("\ta:1\t,b", &["a:1", "b:2181"], None),
            ("a:", &["a:2181"], None),
            ("a:+5", &["a:5"], None),
            // Java keeps the empty name, which resolves to the loopback address.
            ("a,:1", &["a:2181", "localhost:1"], None),
            ("::1:2181", &["[::1]:2181"], None),
            ("fe80::1:2181", &["[fe80::1]:2181"], None),
            ("1:2:3:4:5:6:7:8:2181", &["[1:2:3:4:5:6:7:8]:2181"], None),
            ("[::1]", &["[::1]:2181"], None),
            ("[::1]:2182", &["[::1]:2182"], None),
            ("[fe80::1%eth0]:1", &["[fe80::1%eth0]:1"], None),
            ("[zk1]:2182", &["zk1:2182"], None),
            ("a,a:2181,a", &["a:2181", "a:2181", "a:2181"], None),
            ("a/", &["a:2181"], None),
            ("a/b", &["a:2181"], Some("/b")),
            (" a/b ", &["a:2181"], Some("/b ")),
            ("a /b c", &["a:2181"], Some("/b c")),
            ("a/b,c/d", &["a:2181"], Some("/b,c/d")),
            (
                "a,b:1,[::1],/x/y",
                &["a:2181", "b:1", "[::1]:2181"],
                Some("/x/y"),
            ),
        ];
        for (text, hosts, chroot) in ROWS {
            let at: ConnectString = text.parse().unwrap();
            assert_eq!(
                (at.hosts(), at.chroot()),
                (&strings(hosts)[..], *chroot),
                "{text}"
            );
        }
    }

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn connect_string_that_java_refuses_or_never_connects_with_is_refused() {
        let refused = |text: &str| text.parse::<ConnectString>().unwrap_err();
        for text in ["", ",", " , ", "/b", ",/b"] {
            let error = ConnectStringError::NoServer { text: text.into() };
            assert_eq!(refused(text), error);
        }
        // Java accepts port 0, and digits of other scripts.
        for host in [
            "a:x",
            "a:65536",
            "a:-1",
            "a: 1",
            "[::1]:",
            "fe80::a",
            "a:0",
            "a:\u{663}",
        ] {
            let error = ConnectStringError::Port { host: host.into() };
            assert_eq!(refused(host), error);
        }
        // Java refuses the first four.
        for host in [
            "[::1",
            "[::1]x",
            "[]",
            "[]:1",
            "::1",
            "fe80::1",
            "1:2:3:4:5:6:7:8",
            "a:1:2",
            "a :1",
            "x[::1]:1",
            "::1]:1",
            "[ ::1 ]:1",
            "[::1]]:1",
        ] {
            let error = ConnectStringError::Address { host: host.into() };
            assert_eq!(refused(host), error);
        }
        for text in ["a//", "a/b/", "a/b//c", "a/./b", "a/b/.."] {
            assert!(
                matches!(refused(text), ConnectStringError::Chroot(_)),
                "{text}"
            );
        }
    }

    #[test]
    fn servers_of_arbitrary_connect_strings_are_read_as_themselves() {
        let mut chance = Chance::new(1);
        let mut read = 0;
        for _ in 0..50_000 {
            let letters = (0..chance.below(12)).map(|_| {
                let at = usize::try_from(chance.below(13)).unwrap();
                [
                    'a', '1', ':', ':', ',', '[', ']', '%', '.', ' ', '/', 'f', 'é',
                ][at]
            });
            let text: String = letters.collect();
            if let Ok(at) = text.parse::<ConnectString>() {
                read += 1;
                let again: ConnectString = at.hosts().join(",").parse().unwrap();
                assert_eq!(again.hosts(), at.hosts(), "{text}");
            }
        }
        assert!(read > 5_000, "{read}");
    }

    #[test]
    fn every_server_is_tried_before_a_pause() {
        let now = Duration::from_secs(7);
        let mut hosts = Hosts::new(&servers(3), 1);
        let mut tried: Vec<_> = (0..3).map(|_| hosts.take()).collect();
        tried.sort_unstable();
        assert_eq!(
            tried,
            servers(3)
                .iter()
                .map(|it| it.as_str().into())
                .collect::<Vec<_>>()
        );
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
        let first = |seed| Hosts::new(&servers(3), seed).take();
        assert!((0..20).any(|seed| first(seed) != first(0)));
        assert_eq!(first(5), first(5));
    }

    fn named(names: &[&str]) -> Vec<String> {
        strings(names)
    }

    /// Connects a client with each of 4,000 seeds to the first list, changes it to the second, and
    /// returns how many clients each server has then, in thousandths.
    fn spread(first: &[&str], second: &[&str]) -> BTreeMap<String, u32> {
        let mut clients = BTreeMap::new();
        for seed in 0..4_000 {
            let mut hosts = Hosts::new(&named(first), seed);
            hosts.take();
            hosts.connected();
            let before = hosts.current();
            let server = if hosts.update(&named(second)) {
                hosts.take()
            } else {
                before
            };
            hosts.connected();
            *clients.entry(server.to_string()).or_insert(0) += 1;
        }
        clients.values_mut().for_each(|count| *count /= 4);
        clients
    }

    #[test]
    fn each_server_has_equally_many_clients_after_a_change_of_the_list() {
        let lists: [(&[&str], &[&str]); 7] = [
            (&["a", "b", "c"], &["a", "b", "c"]),
            (&["a", "b", "c"], &["a", "b", "c", "d", "e"]),
            (&["a", "b", "c"], &["a", "b"]),
            (&["a", "b", "c"], &["a", "d", "e"]),
            (&["a", "b", "c"], &["a", "d"]),
            (&["a", "b"], &["a", "c", "d"]),
            (&["a", "b"], &["c"]),
        ];
        for (first, second) in lists {
            let clients = spread(first, second);
            assert_eq!(clients.len(), second.len(), "{first:?} {second:?}");
            let share = 1_000 / u32::try_from(second.len()).unwrap();
            for (server, count) in clients {
                assert!(
                    count.abs_diff(share) < 40,
                    "{first:?} {second:?}: {count} at {server}"
                );
            }
        }
    }

    #[test]
    fn clients_of_kept_servers_move_only_to_added_ones() {
        let moved = |second: &[&str]| {
            let mut moved = 0_u32;
            for seed in 0..1_000 {
                let mut hosts = Hosts::new(&named(&["a", "b"]), seed);
                let before = hosts.take();
                if hosts.update(&named(second)) && second.contains(&&*before) {
                    moved += 1;
                    assert_eq!(&*hosts.take(), "c");
                }
            }
            moved
        };
        assert_eq!(moved(&["a", "b"]), 0);
        assert_eq!(moved(&["b"]), 0);
        assert_eq!(moved(&["a", "c"]), 0);
        assert!(moved(&["a", "b", "c"]).abs_diff(333) < 60);
    }

    #[test]
    fn client_that_moves_tries_every_server_once_and_then_all_in_turn() {
        for seed in 0..50 {
            let mut hosts = Hosts::new(&named(&["a", "b", "x"]), seed);
            while &*hosts.take() != "x" {}
            assert!(hosts.update(&named(&["a", "b", "c"])));
            for _ in 0..3 {
                let mut round: Vec<_> = (0..3).map(|_| hosts.take()).collect();
                round.sort_unstable();
                assert_eq!(round, [Arc::from("a"), Arc::from("b"), Arc::from("c")]);
            }
        }
    }

    #[test]
    fn second_change_before_the_client_has_moved_counts_from_where_it_was_going() {
        for seed in 0..50 {
            let mut hosts = Hosts::new(&named(&["a"]), seed);
            hosts.take();
            assert!(hosts.update(&named(&["b"])));
            // It was going to b, which stays.
            assert!(!hosts.update(&named(&["b"])));
            assert_eq!(&*hosts.take(), "b");
            assert!(hosts.update(&named(&["c", "c"])), "a server twice");
            assert_eq!(&*hosts.take(), "c");
        }
    }
}
