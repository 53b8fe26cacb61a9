//! The ensemble tracker: keeps a client's list of servers up to date.
//!
//! Source: Curator's `EnsembleTracker`; `QuorumPeer.QuorumServer` of ZooKeeper for the format.

use std::{
    fmt,
    future::{Future as _, pending, poll_fn},
    net::IpAddr,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    client::Client,
    core::backoff::Backoff,
    error::{Error, ErrorClass},
};

/// The largest number of servers that a configuration may name.
pub(crate) const SERVERS_MAX: usize = 1_000;

/// The waits after a request that has failed.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Keeps a client's list of servers up to date while members join and leave the ensemble.
///
/// It reads `/zookeeper/config`, watches it in every session, and passes the servers of each new
/// configuration to the client, as [`Client::update_servers`] does: observers too, names as
/// written, and members without a client port left out. If a member's client address is a wildcard
/// (`0.0.0.0`, `[::]`), it is the member's first address for the quorum, with the client port. A
/// configuration that names no server, as that of a standalone server, or that cannot be read,
/// changes nothing; [`EnsembleTracker::last_error`] has the reason.
///
/// If none of the servers can be reached within
/// [`ClientBuilder::connection_timeout`](crate::ClientBuilder::connection_timeout), the servers that
/// the client knew when the tracker started are added to them: a configuration that names only dead
/// servers does not strand the client. They stay until a configuration names other servers.
///
/// The configuration has the plain client ports only. With TLS, set the port of all servers with
/// [`EnsembleTracker::start_with_port`]. The addresses must be reachable for the client: behind
/// address translation they are not, so do not track such an ensemble.
///
/// It ends when it is dropped, or when the client is closed. It holds a handle of the client, so the
/// last one: drop the tracker too, or call [`Client::close`].
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// use minikeeper_client::{Client, EnsembleTracker};
///
/// let client = Client::connect(&address).await?;
/// let tracker = EnsembleTracker::start(&client)?;
/// // ... members join and leave ...
/// println!("{} ({:?})", client.servers(), tracker.last_error());
/// # Ok(()) });
/// ```
#[must_use = "it ends when it is dropped"]
pub struct EnsembleTracker {
    last_error: Arc<Mutex<Option<EnsembleTrackerError>>>,
    task: JoinHandle<()>,
}

impl EnsembleTracker {
    /// Starts to track the ensemble of this client.
    ///
    /// # Errors
    /// [`Error::NoRuntime`] outside a tokio runtime.
    pub fn start(client: &Client) -> Result<Self, Error> {
        Self::spawn(client, None)
    }

    /// Like [`EnsembleTracker::start`]; every server has this port, such as the secure one, instead
    /// of that in the configuration.
    ///
    /// # Errors
    /// [`Error::NoRuntime`] outside a tokio runtime.
    pub fn start_with_port(client: &Client, port: u16) -> Result<Self, Error> {
        Self::spawn(client, Some(port))
    }

    fn spawn(client: &Client, port: Option<u16>) -> Result<Self, Error> {
        let runtime = Handle::try_current().map_err(|_| Error::NoRuntime {
            what: "EnsembleTracker::start",
        })?;
        let last_error = Arc::default();
        let (client, errors) = (client.clone(), Arc::clone(&last_error));
        let task = runtime.spawn(async move {
            let mut rescue = pin!(rescue(&client));
            let mut track = pin!(track(&client, port, errors));
            poll_fn(|cx| {
                // It ends with the other one only.
                let _ = rescue.as_mut().poll(cx);
                track.as_mut().poll(cx)
            })
            .await;
        });
        Ok(Self { last_error, task })
    }

    /// Returns why the latest configuration could not be read or applied; `None` if it was.
    #[must_use]
    pub fn last_error(&self) -> Option<EnsembleTrackerError> {
        self.last_error.lock().clone()
    }
}

impl Drop for EnsembleTracker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for EnsembleTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnsembleTracker")
            .field("last_error", &self.last_error())
            .finish_non_exhaustive()
    }
}

/// Why an [`EnsembleTracker`] has not applied the latest configuration.
///
/// # Examples
/// ```
/// use minikeeper_client::EnsembleTrackerError;
///
/// let empty = EnsembleTrackerError::NoServers;
/// assert!(empty.to_string().starts_with("the configuration names no server"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnsembleTrackerError {
    /// The configuration could not be read. The tracker tries again, unless the client is closed.
    #[error("cannot read the configuration of the ensemble")]
    Read(#[from] Error),
    /// The configuration has no member with a client address: the server is standalone, or the
    /// members' lines have no client port.
    #[error("the configuration names no server with a client port; the list stays as it is")]
    NoServers,
    /// A line cannot be read.
    #[error("the configuration has the line {line:?}, which is not of the form {FORM}")]
    Line {
        /// The line, at most 200 characters.
        line: String,
    },
    /// The configuration has too many servers.
    #[error("the configuration names more than {SERVERS_MAX} servers")]
    TooManyServers,
}

const FORM: &str = "server.N=host:port:port:role;host:port";

/// Adds the first servers to a list of which none can be reached.
async fn rescue(client: &Client) {
    let first = client.servers();
    let mut states = client.states();
    loop {
        let connected = async {
            while !client.state().is_connected() {
                match states.next().await {
                    Some(_) => {}
                    // The client is closed.
                    None => pending().await,
                }
            }
        };
        if timeout(client.connection_timeout(), connected)
            .await
            .is_err()
        {
            let known = client.servers();
            let mut servers: Vec<_> = known.split(',').map(str::to_owned).collect();
            let lost = first
                .split(',')
                .filter(|first| !servers.iter().any(|it| it == first));
            let lost: Vec<_> = lost.map(str::to_owned).collect();
            if !lost.is_empty() {
                servers.extend(lost);
                tracing::warn!(
                    servers = servers.join(","),
                    "no server can be reached; trying the first ones too"
                );
                client.set_servers(&servers);
            }
        }
        while client.state().is_connected() {
            if states.next().await.is_none() {
                pending::<()>().await;
            }
        }
    }
}

async fn track(
    client: &Client,
    port: Option<u16>,
    last_error: Arc<Mutex<Option<EnsembleTrackerError>>>,
) {
    let seed = client.random();
    let mut pauses = Backoff::new(PAUSE_MIN, PAUSE_MAX, seed);
    let mut applied = Vec::new();
    loop {
        match client.config_and_watch().await {
            Ok((config, watch)) => {
                pauses.reset();
                let mut servers = servers(config.as_bytes(), port);
                // The order does not count (hazard H62).
                if let Ok(servers) = &mut servers {
                    servers.sort_unstable();
                }
                *last_error.lock() = servers.as_ref().err().cloned();
                if let Ok(servers) = servers
                    && servers != applied
                {
                    tracing::info!(servers = servers.join(","), "servers of the ensemble");
                    client.set_servers(&servers);
                    applied = servers;
                }
                // It also ends with the session.
                watch.await;
            }
            Err(error) => {
                let is_closed = error.class() == ErrorClass::Closed;
                *last_error.lock() = Some(error.into());
                if is_closed {
                    return;
                }
                sleep(pauses.next_pause()).await;
            }
        }
    }
}

/// Returns the servers of a configuration, each as `host:port`.
fn servers(config: &[u8], port: Option<u16>) -> Result<Vec<String>, EnsembleTrackerError> {
    let config = String::from_utf8_lossy(config);
    let mut servers = Vec::new();
    for line in config.lines().map(str::trim) {
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        if !key.trim_end().starts_with("server.") {
            continue;
        }
        let server = client_address(value.trim(), port);
        let server = server.ok_or_else(|| EnsembleTrackerError::Line {
            line: line.chars().take(200).collect(),
        })?;
        servers.extend(server);
        if servers.len() > SERVERS_MAX {
            return Err(EnsembleTrackerError::TooManyServers);
        }
    }
    if servers.is_empty() {
        return Err(EnsembleTrackerError::NoServers);
    }
    Ok(servers)
}

/// Returns where clients reach a member: `Some(None)` if it has no client port, `None` if the text
/// cannot be read.
fn client_address(member: &str, port: Option<u16>) -> Option<Option<String>> {
    let (quorum, client) = member.split_once(';').unwrap_or((member, ""));
    // A member may have several addresses for the quorum; the role is behind the last.
    let quorum = quorum.split('|').next()?;
    let (host, ports) = host_and_rest(quorum)?;
    let mut ports = ports.split(':');
    let mut is_port = || ports.next().is_some_and(|port| port.parse::<u16>().is_ok());
    if host.is_empty() || !is_port() || !is_port() {
        return None;
    }
    if client.trim().is_empty() {
        return Some(None);
    }
    let (client_host, client_port) = match host_and_rest(client.trim()) {
        Some(address) => address,
        None => ("", client.trim()),
    };
    let client_port: u16 = client_port.parse().ok()?;
    let is_wildcard = client_host.is_empty()
        || client_host
            .parse()
            .is_ok_and(|address: IpAddr| address.is_unspecified());
    let host = if is_wildcard { host } else { client_host };
    let port = port.unwrap_or(client_port);
    Some(Some(if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }))
}

/// Splits `host:rest`; the host may be an IPv6 address in brackets.
fn host_and_rest(text: &str) -> Option<(&str, &str)> {
    match text.strip_prefix('[') {
        Some(text) => text.split_once("]:"),
        None => text.split_once(':'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(config: &str) -> Result<String, EnsembleTrackerError> {
        servers(config.as_bytes(), None).map(|servers| servers.join(","))
    }

    /// CURATOR-384, CURATOR-392: a wildcard was passed on as the address. CURATOR-638, CURATOR-664:
    /// names were resolved once, and the client lost the ensemble when addresses changed.
    #[test]
    fn h61_client_addresses_are_reachable_and_names_are_kept() {
        const QUORUM_V6: &str = "[1010:1:2:3:4:5:6:7]:2888:3888:participant";
        for (member, server) in [
            (
                "10.1.2.3:2888:3888:participant;10.2.3.4:2181",
                "10.2.3.4:2181",
            ),
            ("10.1.2.3:2888:3888:participant;2181", "10.1.2.3:2181"),
            (
                "10.1.2.3:2888:3888:participant;0.0.0.0:2181",
                "10.1.2.3:2181",
            ),
            ("zk1:2888:3888:participant;0.0.0.0:2181", "zk1:2181"),
            ("zk1:2888:3888:observer;public1:2181", "public1:2181"),
            ("zk1:2888:3888;2181", "zk1:2181"),
            (
                "zk1:2888:3888|zk1b:2889:3889:participant;0.0.0.0:2181",
                "zk1:2181",
            ),
            (&format!("{QUORUM_V6};2181"), "[1010:1:2:3:4:5:6:7]:2181"),
            (
                &format!("{QUORUM_V6};[::0]:2181"),
                "[1010:1:2:3:4:5:6:7]:2181",
            ),
            (
                &format!("{QUORUM_V6};[2001:db8::1]:2181"),
                "[2001:db8::1]:2181",
            ),
        ] {
            let config = format!("server.1={member}\nversion=100000000");
            assert_eq!(parse(&config).as_deref(), Ok(server), "{member}");
            let secure = servers(config.as_bytes(), Some(2281)).unwrap();
            assert!(secure[0].ends_with(":2281"), "{secure:?}");
            let read: crate::ConnectString = server.parse().unwrap();
            assert_eq!(read.hosts(), [server]);
        }
    }

    #[test]
    fn all_members_with_a_client_port_are_listed_and_other_lines_skipped() {
        let config = "# comment\nserver.1=a:1:2:participant;0.0.0.0:2181\r\n\
                      server.2=b:1:2:observer;2182\nserver.3=c:1:2:participant\n\
                      group.1=1:2\nweight.1=1\nclientPort=9\nversion=1a";
        assert_eq!(parse(config).as_deref(), Ok("a:2181,b:2182"));
    }

    #[test]
    fn h61_configuration_that_names_no_server_is_never_applied() {
        for config in ["", "version=0", "server.1=a:1:2:participant", "\u{0}"] {
            assert_eq!(
                parse(config),
                Err(EnsembleTrackerError::NoServers),
                "{config}"
            );
        }
    }

    #[test]
    fn unreadable_and_oversized_configurations_are_refused() {
        for member in [
            "",
            "a",
            "a:1",
            "a:1:x;2181",
            ":1:2;2181",
            "a:1:2;x",
            "a:1:2;65536",
            "a:1:2;b:",
            "[::1:1:2;2181",
            "a:1:2;[::1",
        ] {
            let config = format!("server.1=ok:1:2;2181\nserver.2={member}");
            let line = format!("server.2={member}");
            assert_eq!(parse(&config), Err(EnsembleTrackerError::Line { line }));
        }
        let many = "server.1=a:1:2;2181\n".repeat(SERVERS_MAX);
        assert!(parse(&many).is_ok());
        let more = format!("{many}server.1=a:1:2;2181\n");
        assert_eq!(parse(&more), Err(EnsembleTrackerError::TooManyServers));
        let long = format!("server.1={}", "é".repeat(1_000));
        let Err(EnsembleTrackerError::Line { line }) = parse(&long) else {
            panic!("it is refused");
        };
        assert_eq!(line.chars().count(), 200);
    }
}
