//! Waits for conditions on the server, so that tests need not sleep.

use std::{error::Error, fmt, time::Duration};

use minikeeper_core::{race::first_of, turn::turns::Turns};
use minikeeper_engine::Engine;
use minikeeper_protocol::{SessionId, path};
use tokio::time::timeout;

use crate::{locks::naming::is_contender, universe::Universe};

/// The maximum number of observed values that an error lists.
const LISTED_MAX: usize = 10;

/// A condition was not met in time.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct WaitError {
    /// The awaited condition.
    pub wanted: String,
    /// The time limit.
    pub within: Duration,
    /// The last observed value.
    pub seen: String,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            wanted,
            within,
            seen,
        } = self;
        write!(f, "{wanted}: not within {within:?}; {seen}")
    }
}

impl Error for WaitError {}

/// Time limits are in the runtime's time: real time, unless the runtime is paused. The server's
/// clock has no effect on them.
impl Universe {
    /// Waits until a client watches a path. Any kind of watch counts, and so does a recursive one
    /// on an ancestor.
    ///
    /// # Errors
    /// [`WaitError`] if no client does so in time.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// let server = minikeeper::Server::builder().start().await?;
    /// let waited = server.until_watched("/config", Duration::from_millis(10)).await;
    /// assert_eq!(
    ///     waited.unwrap_err().to_string(),
    ///     "path \"/config\" is watched: not within 10ms; nothing is watched"
    /// );
    /// # Ok(()) }
    /// ```
    pub async fn until_watched(&self, path: &str, within: Duration) -> Result<(), WaitError> {
        let wanted = || format!("path {path:?} is watched");
        check(path, within, wanted)?;
        let is_met = |engine: &Engine| engine.is_watched(path);
        self.until(within, is_met, watched, wanted).await
    }

    /// Waits until a znode exists.
    ///
    /// Looks at the state between turns, so it may miss a znode that exists only briefly.
    ///
    /// # Errors
    /// [`WaitError`] if the znode does not exist in time.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// let server = minikeeper::Server::builder().start().await?;
    /// let waited = server.until_exists("/leader", Duration::from_millis(10)).await;
    /// assert_eq!(
    ///     waited.unwrap_err().to_string(),
    ///     "path \"/leader\" exists: not within 10ms; the nearest parent that exists is \"/\""
    /// );
    /// # Ok(()) }
    /// ```
    pub async fn until_exists(&self, path: &str, within: Duration) -> Result<(), WaitError> {
        let wanted = || format!("path {path:?} exists");
        check(path, within, wanted)?;
        let is_met = |engine: &Engine| engine.get(path).is_some();
        let seen = |engine: &Engine| nearest_parent(engine, path);
        self.until(within, is_met, seen, wanted).await
    }

    /// Waits until a znode has exactly `count` children. A missing znode has none.
    ///
    /// Looks at the state between turns, so it may miss a number that lasts only briefly.
    ///
    /// # Errors
    /// [`WaitError`] if the znode does not have that many in time.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// let server = minikeeper::Server::builder().start().await?;
    /// server.until_children("/members", 0, Duration::from_secs(10)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn until_children(
        &self,
        path: &str,
        count: usize,
        within: Duration,
    ) -> Result<(), WaitError> {
        let wanted = || format!("path {path:?} has {count} children");
        check(path, within, wanted)?;
        let is_met = |engine: &Engine| {
            let children = engine.get(path).map_or(0, |(_, stat)| stat.num_children);
            usize::try_from(children) == Ok(count)
        };
        let seen = |engine: &Engine| children(engine, path, |_| true);
        self.until(within, is_met, seen, wanted).await
    }

    /// Waits until a path has at least `count` contenders, the holder included. The path is that of
    /// a lock, of a semaphore's `leases` or of a leader election.
    ///
    /// Contenders are children whose name contains a part that Curator and this project's recipes
    /// use (`lock-`, `lease-`, `latch-`, `__READ__`, `__WRIT__`), or kazoo (`__lock__`,
    /// `__rlock__`), or others (`-READ-`, `-WRIT-`).
    ///
    /// # Errors
    /// [`WaitError`] if there are not that many in time.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// let server = minikeeper::Server::builder().start().await?;
    /// let waited = server.until_contenders("/lock", 2, Duration::from_millis(10)).await;
    /// assert_eq!(
    ///     waited.unwrap_err().to_string(),
    ///     "lock \"/lock\" has 2 contenders: not within 10ms; the path does not exist"
    /// );
    /// # Ok(()) }
    /// ```
    pub async fn until_contenders(
        &self,
        lock: &str,
        count: usize,
        within: Duration,
    ) -> Result<(), WaitError> {
        let wanted = || format!("lock {lock:?} has {count} contenders");
        check(lock, within, wanted)?;
        let is_met = |engine: &Engine| {
            let children = engine.children(lock).unwrap_or_default();
            children.iter().filter(|name| is_contender(name)).count() >= count
        };
        let seen = |engine: &Engine| children(engine, lock, is_contender);
        self.until(within, is_met, seen, wanted).await
    }

    /// Waits until [`sessions`](Universe::sessions) lists exactly `count` sessions, connected or
    /// not.
    ///
    /// # Errors
    /// [`WaitError`] if the number is different all that time.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// let server = minikeeper::Server::builder().start().await?;
    /// let waited = server.until_sessions(1, Duration::from_millis(10)).await;
    /// assert_eq!(
    ///     waited.unwrap_err().to_string(),
    ///     "1 session exists: not within 10ms; there are no sessions"
    /// );
    /// # Ok(()) }
    /// ```
    pub async fn until_sessions(&self, count: usize, within: Duration) -> Result<(), WaitError> {
        let (here, root) = (&self.shared.turns.activity, &self.root.turns.activity);
        let (here, root) = (here.wait(), root.wait());
        let is_met = async {
            loop {
                // Before the look: what happens after it is not missed.
                let turned = first_of(here.turned(), root.turned());
                if self.sessions().len() == count {
                    return;
                }
                turned.await;
            }
        };
        let wanted = || match count {
            1 => "1 session exists".to_owned(),
            _ => format!("{count} sessions exist"),
        };
        let timed_out = |_| WaitError {
            wanted: wanted(),
            within,
            seen: self.seen(&self.sessions()),
        };
        timeout(within, is_met).await.map_err(timed_out)
    }

    /// Waits until a client has noticed that its session has ended: it asked for the session when it
    /// connected again, and was told that the session has expired.
    ///
    /// After an [expiry](Universe::expire) a client first loses its connection. Most clients learn of the
    /// expiry at the reconnect that follows, and run their callbacks after that. The server cannot tell that
    /// of a client that does not come back, or that opens another session without asking for this one. It
    /// remembers the newest 1,024 sessions that clients have asked for in vain.
    ///
    /// # Errors
    /// [`WaitError`] if the session does not end in time, or no client asks for it.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use minikeeper_client::Client;
    /// let server = minikeeper::Server::builder().start().await?;
    /// let client = Client::connect(&server.connect_string()).await?;
    /// client.exists("/a").await?;
    /// let session = server.sessions()[0].id;
    /// server.expire(session)?;
    /// server.until_noticed(session, Duration::from_secs(10)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn until_noticed(
        &self,
        session: SessionId,
        within: Duration,
    ) -> Result<(), WaitError> {
        let (here, root) = (&self.shared.turns, &self.root.turns);
        let waiting = (here.activity.wait(), root.activity.wait());
        let exists = || {
            let is_in = |turns: &Turns| turns.inspect(|engine| engine.has_session(session));
            is_in(here) || is_in(root)
        };
        // A client that connects asks in the server's own universe, unless another one has the session.
        let is_refused =
            || here.refused_sessions.has(session) || root.refused_sessions.has(session);
        let is_met = async {
            loop {
                // Before the look: what happens after it is not missed.
                let turned = first_of(waiting.0.turned(), waiting.1.turned());
                if is_refused() && !exists() {
                    return;
                }
                turned.await;
            }
        };
        let timed_out = |_| WaitError {
            wanted: format!("client of session {session} has noticed its end"),
            within,
            seen: match exists() {
                true => "the session has not ended".to_owned(),
                false => {
                    "the session does not exist, and no client has asked for it since it ended"
                        .to_owned()
                }
            },
        };
        timeout(within, is_met).await.map_err(timed_out)
    }

    /// Waits until the server has been idle for `quiet`: no client has sent anything but pings, no
    /// connection has opened or closed, and no session has ended.
    ///
    /// # Errors
    /// [`WaitError`] if the server is not idle for that long in time.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// let server = minikeeper::Server::builder().start().await?;
    /// server.until_idle(Duration::from_millis(1), Duration::from_secs(10)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn until_idle(&self, quiet: Duration, within: Duration) -> Result<(), WaitError> {
        let waiting = self.shared.turns.activity.wait();
        let mut turns: u64 = 0;
        let is_idle = async {
            while timeout(quiet, waiting.turned()).await.is_ok() {
                turns += 1;
            }
        };
        timeout(within, is_idle).await.map_err(|_| WaitError {
            wanted: format!("no request for {quiet:?}"),
            within,
            seen: format!("{turns} turns served requests or changed connections"),
        })
    }

    /// Waits until `is_met` is true of the state; checks after each turn.
    async fn until(
        &self,
        within: Duration,
        is_met: impl Fn(&Engine) -> bool,
        seen: impl Fn(&Engine) -> String,
        wanted: impl Fn() -> String,
    ) -> Result<(), WaitError> {
        let turns = &self.shared.turns;
        let waiting = turns.activity.wait();
        let met = async {
            loop {
                // Before the look: what happens after it is not missed.
                let turned = waiting.turned();
                if turns.inspect(&is_met) {
                    return;
                }
                turned.await;
            }
        };
        timeout(within, met).await.map_err(|_| WaitError {
            wanted: wanted(),
            within,
            seen: turns.inspect(&seen),
        })
    }
}

/// Checks the path: with an invalid one, a wait would never end, or end at once.
fn check(path: &str, within: Duration, wanted: impl Fn() -> String) -> Result<(), WaitError> {
    path::validate(path.as_bytes()).map_err(|error| WaitError {
        wanted: wanted(),
        within,
        seen: error.to_string(),
    })
}

fn watched(engine: &Engine) -> String {
    let paths = engine.watched_paths(LISTED_MAX + 1);
    let rows = paths
        .iter()
        .map(|(path, kind)| format!("{path:?} ({kind})"));
    match list(rows) {
        None => "nothing is watched".to_owned(),
        Some(rows) => format!("watched: {rows}"),
    }
}

/// Finds the closest existing ancestor of a missing znode.
fn nearest_parent(engine: &Engine, path: &str) -> String {
    let mut parent = path;
    while engine.get(parent).is_none() && parent.len() > 1 {
        let end = parent.rfind('/').unwrap_or(0).max(1);
        parent = &parent[..end];
    }
    format!("the nearest parent that exists is {parent:?}")
}

fn children(engine: &Engine, path: &str, is_meant: impl Fn(&str) -> bool) -> String {
    let Some(children) = engine.children(path) else {
        return "the path does not exist".to_owned();
    };
    let meant = children.iter().filter(|name| is_meant(name)).count();
    let rows = children.iter().map(|name| format!("{name:?}"));
    match list(rows) {
        None => "it has no children".to_owned(),
        Some(rows) if meant == children.len() => format!("it has {meant}: {rows}"),
        Some(rows) => format!("it has {meant} among {} children: {rows}", children.len()),
    }
}

/// Joins the first rows to one line; `None` if there are none.
fn list(rows: impl Iterator<Item = String>) -> Option<String> {
    let mut rows: Vec<_> = rows.take(LISTED_MAX + 1).collect();
    if rows.len() > LISTED_MAX {
        rows[LISTED_MAX] = "...".to_owned();
    }
    (!rows.is_empty()).then(|| rows.join(", "))
}
