//! The connection of the shell: the client, its watches, and the printing of its events.

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use minikeeper_client::{
    AddWatchMode, Client, Connecting, ConnectionState, LostReason, OneShot, Persistent, States,
    Tcp, Transport, WatchEvent, WatchEvents,
};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use crate::{Settings, output::Output};

/// How often the client could not connect, and why the last time.
#[derive(Debug, Default)]
struct Attempts {
    failed: usize,
    reason: Option<String>,
}

pub(crate) struct Connection {
    pub(crate) client: Client,
    servers: usize,
    timeout: Duration,
    attempts: watch::Receiver<Attempts>,
    watches: Watches,
    printing: JoinHandle<()>,
    output: Arc<Output>,
}

impl Connection {
    /// Starts to connect. Must be called within a runtime.
    ///
    /// # Errors
    /// When the connect string is invalid.
    pub(crate) fn start(
        at: &str,
        settings: &Settings,
        output: &Arc<Output>,
    ) -> Result<Self, String> {
        let (sender, attempts) = watch::channel(Attempts::default());
        let builder = Client::builder(at).map_err(|error| crate::chain(&error))?;
        let parsed: Result<minikeeper_client::ConnectString, _> = at.parse();
        let servers = parsed.map_or(1, |at| at.hosts().len());
        let (client, driver) = builder
            .session_timeout(settings.timeout)
            .connection_timeout(settings.timeout)
            .allow_read_only(settings.readonly)
            .transport(CountingTransport(sender))
            .build();
        // Subscribed before the first change.
        let printing = tokio::spawn(print_events(
            client.watch_events(),
            client.states(),
            Arc::clone(output),
            settings.prints_first_state,
        ));
        drop(tokio::spawn(driver.run()));
        Ok(Self {
            client,
            servers,
            timeout: settings.timeout,
            attempts,
            watches: Watches::default(),
            printing,
            output: Arc::clone(output),
        })
    }

    /// Returns whether requests may still succeed: the client is neither closed nor rejected.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(
            self.client.state(),
            ConnectionState::Closed
                | ConnectionState::Lost {
                    reason: LostReason::AuthFailed,
                    ..
                }
        )
    }

    /// Returns the state, as the prompt shows it.
    pub(crate) fn state_name(&self) -> &'static str {
        match self.client.state() {
            ConnectionState::Connected { .. } | ConnectionState::Reconnected { .. } => "CONNECTED",
            ConnectionState::ReadOnly { .. } => "CONNECTEDREADONLY",
            ConnectionState::Closed => "CLOSED",
            _ => "CONNECTING",
        }
    }

    /// Waits for a connection for as long as [`Connection::lost`] does.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn connected(&self) -> Result<(), String> {
        tokio::select! {
            connected = self.client.connected(self.timeout) => {
                connected.map(drop).map_err(|error| error.to_string())
            }
            () = self.lost() => Err(self.reason().unwrap_or_default()),
        }
    }

    /// Waits until every server was tried in vain since the call or since the connection was lost, or
    /// until there was no connection for the session timeout.
    pub(crate) fn lost(&self) -> impl Future<Output = ()> + use<> {
        let client = self.client.clone();
        let mut attempts = self.attempts.clone();
        let (servers, limit) = (self.servers, self.timeout);
        async move {
            let mut states = client.states();
            loop {
                while client.state().is_connected() {
                    if states.next().await.is_none() {
                        // Pending requests fail by themselves.
                        std::future::pending::<()>().await;
                    }
                }
                let failed_before = attempts.borrow().failed;
                let all_failed =
                    attempts.wait_for(|attempts| attempts.failed >= failed_before + servers);
                tokio::select! {
                    connected = client.connected(limit) => {
                        if connected.is_err() {
                            return;
                        }
                    }
                    _ = all_failed => return,
                }
            }
        }
    }

    /// Returns why the last attempt to connect failed, if one did.
    pub(crate) fn reason(&self) -> Option<String> {
        self.attempts.borrow().reason.clone()
    }

    /// Closes the session, and prints the events that came before.
    pub(crate) async fn close(&mut self) {
        self.client.close().await;
        // The task ends by itself once the client is closed.
        let _ = timeout(Duration::from_secs(1), &mut self.printing).await;
    }

    /// Keeps a watch for one event.
    pub(crate) fn keep_one_shot(&mut self, table: Table, path: &str, watch: OneShot) {
        self.watches.keep(table, path, Watch::OneShot(watch));
    }

    pub(crate) fn keep_persistent(&mut self, mode: AddWatchMode, path: &str, watch: Persistent) {
        let table = match mode {
            AddWatchMode::Persistent => Table::Persistent,
            AddWatchMode::PersistentRecursive => Table::PersistentRecursive,
        };
        self.watches.keep(table, path, Watch::Persistent(watch));
    }

    /// Removes the watches of a path in these tables, and prints that they are removed. Returns whether
    /// there were any.
    pub(crate) fn remove_watches(&mut self, tables: &[Table], path: &str) -> bool {
        let state = if self.client.state().is_connected() {
            "SyncConnected"
        } else {
            "Disconnected"
        };
        let mut is_any = false;
        for table in tables {
            if self.watches.remove(*table, path) {
                self.output.event(state, table.removed(), path);
                is_any = true;
            }
        }
        is_any
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.printing.abort();
    }
}

/// The kinds of watches that a server keeps separately.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Table {
    Child,
    Data,
    Persistent,
    PersistentRecursive,
}

impl Table {
    pub(crate) const ALL: &'static [Self] = &[
        Self::Child,
        Self::Data,
        Self::Persistent,
        Self::PersistentRecursive,
    ];

    /// Returns the name of the event of its removal.
    const fn removed(self) -> &'static str {
        match self {
            Self::Child => "ChildWatchRemoved",
            Self::Data => "DataWatchRemoved",
            Self::Persistent | Self::PersistentRecursive => "PersistentWatchRemoved",
        }
    }
}

/// A registered watch. Dropping it removes it.
enum Watch {
    OneShot(OneShot),
    #[expect(dead_code, reason = "kept for its drop")]
    Persistent(Persistent),
}

impl Watch {
    /// Returns whether it can fire.
    fn is_set(&self) -> bool {
        match self {
            Self::OneShot(watch) => watch.fired().is_none(),
            Self::Persistent(_) => true,
        }
    }
}

/// The registered watches, at most one in each table for each path, as on the server.
#[derive(Default)]
struct Watches {
    by_path: BTreeMap<(Table, String), Watch>,
    /// The count at which those that have fired are forgotten next.
    tidy_at: usize,
}

impl Watches {
    fn keep(&mut self, table: Table, path: &str, watch: Watch) {
        if self.by_path.len() >= self.tidy_at {
            self.by_path.retain(|_, watch| watch.is_set());
            self.tidy_at = self.by_path.len() * 2 + 64;
        }
        // An earlier watch is dropped after this one was registered, so the server keeps it.
        self.by_path.insert((table, path.to_owned()), watch);
    }

    fn remove(&mut self, table: Table, path: &str) -> bool {
        let removed = self.by_path.remove(&(table, path.to_owned()));
        removed.is_some_and(|watch| watch.is_set())
    }
}

/// Prints every event and every change of the state, until the client is closed.
async fn print_events(
    mut events: WatchEvents,
    mut states: States,
    output: Arc<Output>,
    prints_first_state: bool,
) {
    let mut is_hidden = !prints_first_state;
    let mut print_state = |state| {
        let name = match state {
            ConnectionState::Connected { .. } | ConnectionState::Reconnected { .. } => {
                "SyncConnected"
            }
            ConnectionState::ReadOnly { .. } => "ConnectedReadOnly",
            ConnectionState::Suspended { .. } => "Disconnected",
            ConnectionState::Lost {
                reason: LostReason::AuthFailed,
                ..
            } => "AuthFailed",
            ConnectionState::Lost { .. } => "Expired",
            _ => return,
        };
        if !std::mem::take(&mut is_hidden) {
            output.event(name, "None", "null");
        }
    };
    loop {
        tokio::select! {
            // A change of the state comes after the events of the connection that it ends.
            biased;
            event = events.next() => match event {
                Some(WatchEvent::Event { kind, path, .. }) => {
                    output.event("SyncConnected", kind.name(), &path);
                }
                Some(WatchEvent::Overflowed) => {
                    output.error("too many events at a time: some are missing above");
                }
                Some(_) => {}
                None => break,
            },
            Some(state) = states.next() => print_state(state),
        }
    }
    while let Some(state) = states.next().await {
        print_state(state);
    }
}

/// TCP that counts the attempts that fail.
struct CountingTransport(watch::Sender<Attempts>);

impl Transport for CountingTransport {
    fn connect(&mut self, host: &str) -> Connecting {
        let mut attempt = Attempt {
            attempts: self.0.clone(),
            host: host.to_owned(),
            failure: Some("no answer".to_owned()),
        };
        let connecting = Tcp.connect(host);
        Box::pin(async move {
            let outcome = connecting.await;
            attempt.finish(outcome.as_ref().err());
            outcome
        })
    }
}

/// An attempt to connect; dropped unfinished when it takes too long.
struct Attempt {
    attempts: watch::Sender<Attempts>,
    host: String,
    failure: Option<String>,
}

impl Attempt {
    fn finish(&mut self, failure: Option<&io::Error>) {
        self.failure = failure.map(ToString::to_string);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(failure) = self.failure.take() {
            self.attempts.send_modify(|attempts| {
                attempts.failed += 1;
                attempts.reason = Some(format!("cannot connect to {}: {failure}", self.host));
            });
        }
    }
}
