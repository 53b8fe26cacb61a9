//! The server: starts, listens, saves and stops.

use std::{net::SocketAddr, ops::Deref, sync::Arc, time::Duration};

use minikeeper_core::{
    config::{Config, stories::Stories},
    data::SaveError,
    ensemble::Ensemble,
    recording::recorder::Recorder,
    start::{
        self, StartError,
        ports::{self, Listeners},
    },
    state::{UniverseState, reachability::AbortedTasks},
    trees::Tree,
    turn::{health::Failure, turns::Turns},
};
#[cfg(feature = "control")]
use minikeeper_engine::Secret;
use parking_lot::Mutex;
use tokio::task::JoinSet;

#[cfg(feature = "control")]
use crate::control::{Controls, own_port};
use crate::{
    admin::four_letter::words,
    universe::{
        Universe, panics,
        seeding::{self, Seeded},
    },
};

/// A server that runs until it is dropped or [shut down](Server::shutdown).
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = minikeeper::Server::builder().start().await?;
/// println!("connect your client to {}", server.connect_string());
/// server.shutdown().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Server {
    universe: Universe,
    #[cfg(feature = "control")]
    controls: Option<Arc<Controls>>,
    address: SocketAddr,
    seeded: Option<Seeded>,
    /// The tasks that save, check the data directory, and listen on the separate control port.
    tasks: Mutex<JoinSet<()>>,
}

impl Server {
    /// Returns a builder for a server.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts a server with these settings. When this returns, it listens, and has loaded the saved
    /// state if there is a [data directory](Config::data_dir).
    ///
    /// Its tasks run on the calling runtime, which must have I/O and time enabled.
    ///
    /// # Errors
    /// When a setting is invalid, the runtime has no I/O or no time, the address cannot be bound, or the
    /// data directory cannot be used; then nothing has been written.
    pub async fn start(mut config: Config) -> Result<Self, StartError> {
        config.validate()?;
        start::check_runtime()?;
        // Takes the tree out, so that copies of the settings do not copy it.
        let seed = std::mem::take(&mut config.seed);
        // Without a tree, the code that seeds does not run, and so is not resident.
        let seed = (!seed.is_empty()).then_some(seed);
        if let Some(seed) = &seed {
            seeding::check(seed, config.frame_bytes_max)?;
        }
        #[cfg(feature = "sasl")]
        config.warn_of_locked_out_clients();
        let (listeners, addresses) = Listeners::bind_all(&mut config)?;
        #[cfg(feature = "control")]
        let own_port = own_port::bind(&mut config)?;
        let address = config.client_addr();
        let settings = config.engine_settings(&config.new_clock());
        let (engine, loaded) = start::load::load(&mut config, settings).await?;
        let seeds = start::load::is_seeded(&config, &loaded);
        // Starts the clock after loading, so that each session has its full timeout.
        let clock = config.new_clock();
        let ensemble = Arc::new(Ensemble::new(addresses));
        let turns = Turns::new(engine, clock, &config, Arc::clone(&ensemble))
            .with_journal(config.journal_size());
        let shared = Arc::new(UniverseState::root(config, turns, ensemble, words::find));
        let universe = Universe::root(Arc::clone(&shared));
        let recording = begin_recording(&universe)?;
        let mut seeded = None;
        if let Some(seed) = &seed {
            if seeds {
                let Seeded { created, changed } = *seeded.insert(universe.seed(seed)?);
                tracing::info!(created, changed, "seeded");
            } else {
                tracing::info!("not seeded: the data directory has a saved state");
            }
        }
        // Last, so that a seed is saved whole or not at all, and that one that is refused writes nothing.
        #[cfg(feature = "data")]
        shared.begin_saving(loaded).await?;
        recording.keep();
        #[cfg(feature = "control")]
        let control = &shared.config.control;
        #[cfg(feature = "control")]
        let controls = (control.is_enabled || control.listen.is_some())
            .then(|| Arc::new(Controls::new(universe.clone())));
        let reachability = &shared.server.reachability;
        #[cfg(feature = "control")]
        if let (Some(controls), true) = (&controls, control.is_enabled) {
            reachability.set_upgrade(Arc::clone(controls) as _);
        }
        reachability.set_up(ports::serve(listeners.into_iter().map(Some), &shared));
        #[allow(unused_mut, reason = "the feature control adds one")]
        let mut tasks = shared.saving_tasks();
        #[cfg(feature = "control")]
        if let (Some(listener), Some(controls)) = (own_port, &controls) {
            tasks.spawn(own_port::accept(listener, Arc::clone(controls)));
        }
        Ok(Self {
            universe,
            #[cfg(feature = "control")]
            controls,
            address,
            seeded,
            tasks: Mutex::new(tasks),
        })
    }

    /// Returns the server's own universe, for clients without a universe in their chroot. A server
    /// derefs to it, so its methods are the server's too.
    #[must_use]
    pub const fn universe(&self) -> &Universe {
        &self.universe
    }

    /// Returns the address that clients connect to, with the actual port: [`Config::listen`], or the
    /// TLS address if the server listens only there (`Config::secure_only`).
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the changes that the start made for [`Config::seed`]. `None` without a seed, or if the
    /// data directory had a saved state.
    #[must_use]
    pub const fn seeded(&self) -> Option<Seeded> {
        self.seeded
    }

    /// Returns the address for clients over TLS, with the actual port.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn secure_addr(&self) -> Option<SocketAddr> {
        self.shared.config.secure_listen
    }

    /// Waits until the server fails, and returns the reason.
    ///
    /// A panic inside the engine closes every connection and refuses new ones, because half a change
    /// may have been made. So does a change that cannot be [logged](Config::txn_log); no client sees
    /// that change.
    pub async fn closed(&self) -> Failure {
        self.shared.turns.broke().await
    }

    /// Stops listening, closes every connection, saves the state if there is a
    /// [data directory](Config::data_dir), and waits until the connections' tasks have ended.
    ///
    /// Clients see a closed connection (`docs/zookeeper-protocol.md` section 6.5). The state can
    /// still be inspected; [`Server::shutdown`] drops it too. The data directory is free for the
    /// next server.
    ///
    /// # Errors
    /// When the state could not be saved; the server has stopped anyway, and the previous save is
    /// untouched.
    pub async fn stop(&mut self) -> Result<(), SaveError> {
        let saved = self.stop_serving().await;
        self.shared.server.open_connections.wait_empty().await;
        self.end_recording();
        saved
    }

    /// Ends a recording in a file.
    fn end_recording(&self) {
        let end = |recorder: &mut Option<Box<_>>| {
            recorder.take_if(|it: &mut Box<Recorder>| it.has_file())
        };
        drop(self.shared.turns.recorder(end));
    }

    /// Stops the server as [`Server::stop`] does, but waits at most `patience` for connections.
    ///
    /// # Errors
    /// Those of [`Server::stop`].
    pub async fn stop_within(&mut self, patience: Duration) -> Result<(), SaveError> {
        let saved = self.stop_serving().await;
        let empty = self.shared.server.open_connections.wait_empty();
        if tokio::time::timeout(patience, empty).await.is_err() {
            tracing::warn!(?patience, "some connections did not close within the limit");
        }
        self.end_recording();
        saved
    }

    /// Stops the server as [`Server::stop`] does, and drops its state.
    ///
    /// # Errors
    /// Those of [`Server::stop`].
    pub async fn shutdown(mut self) -> Result<(), SaveError> {
        self.stop().await
    }

    /// Stops the server without waiting for the connections.
    pub(crate) async fn stop_serving(&self) -> Result<(), SaveError> {
        // Waits, so that the ports are free afterwards.
        self.close().end().await;
        self.shared.finish_saving().await
    }

    /// Stops serving. Returns the aborted tasks, for the caller to await.
    fn close(&self) -> AbortedTasks {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        let listening = self.shared.server.reachability.stop();
        for universe in self.shared.server.universes.close() {
            universe.turns.stop();
        }
        #[cfg(feature = "control")]
        if let Some(controls) = &self.controls {
            controls.stop();
        }
        self.shared.turns.stop();
        listening.with(tasks)
    }
}

#[cfg(feature = "data")]
impl Server {
    /// Saves the state to the [data directory](Config::data_dir), if there is one and the state has
    /// changed since the last save.
    ///
    /// Clients are served meanwhile: the state is copied in pieces, and the copy is written.
    ///
    /// # Errors
    /// When the state could not be written; the previous save is untouched.
    pub async fn save(&self) -> Result<(), SaveError> {
        self.shared.save().await
    }

    /// Like [`Server::save`], on the calling thread.
    pub(crate) fn save_now(&self) -> Result<(), SaveError> {
        self.shared.save_now()
    }

    /// Waits until an automatic save fails, or the data directory is found deleted or replaced.
    ///
    /// The server keeps running and tries again. It reports the next failure only after a success.
    pub async fn save_failed(&self) -> SaveError {
        self.shared.server.saving.failed().await
    }
}

/// Begins the recording in the settings.
fn begin_recording(universe: &Universe) -> Result<BegunRecording<'_>, StartError> {
    let config = &universe.shared.config;
    let path = config.record.as_deref();
    if let Some(path) = path {
        let recorded = universe.record_to(path, config.record_bytes);
        recorded.map_err(|source| StartError::Record {
            path: path.to_owned(),
            source,
        })?;
    }
    Ok(BegunRecording { path })
}

/// The recording of a server that starts. Deletes the file if the server does not start: a file that is
/// left would make the next attempt fail, because it must not exist.
struct BegunRecording<'a> {
    path: Option<&'a std::path::Path>,
}

impl BegunRecording<'_> {
    /// Keeps the file.
    fn keep(mut self) {
        self.path = None;
    }
}

impl Drop for BegunRecording<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Gives access to the server's own universe: its clock, sessions and data.
impl Deref for Server {
    type Target = Universe;

    fn deref(&self) -> &Universe {
        &self.universe
    }
}

/// Stops without saving, as a crash would. During a panic, tells the [story](crate::Stories).
impl Drop for Server {
    fn drop(&mut self) {
        panics::tell_all(&self.universe);
        self.close();
        self.shared.server.saving.abandon();
    }
}

/// Builds a server. [`Config`] explains each setting.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    config: Config,
}

impl Builder {
    /// Listens here instead of on a free port of 127.0.0.1.
    #[must_use]
    pub const fn listen(mut self, address: SocketAddr) -> Self {
        self.config.listen = address;
        self
    }

    /// Plays this many servers of one ensemble, each at its own address. See [`Config::servers`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Server, ServerMode};
    /// let server = Server::builder().servers(3).start().await?;
    /// assert_eq!(server.connect_string().split(',').count(), 3);
    /// // Its clients lose their connections and turn to the others.
    /// server.set_server(1, ServerMode::Down).await?;
    /// assert!(std::net::TcpStream::connect(server.addr()).is_err());
    /// assert!(server.servers()[1].is_leader);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn servers(mut self, servers: usize) -> Self {
        self.config.servers = servers;
        self
    }

    /// Starts with the clock frozen, at 2024-01-01 00:00 UTC: time does not pass until
    /// [`Universe::advance`] or [`Universe::unfreeze`].
    #[must_use]
    pub const fn manual_clock(mut self) -> Self {
        self.config.manual_clock = true;
        self
    }

    /// Sets the unit of session timeouts, in whole milliseconds. Default: 3 s.
    #[must_use]
    pub fn tick_time(mut self, tick: Duration) -> Self {
        self.config.tick_time_ms = whole_ms(tick);
        self
    }

    /// Sets the shortest session timeout granted, in whole milliseconds. Default: 2 ticks.
    #[must_use]
    pub fn session_timeout_min(mut self, timeout: Duration) -> Self {
        self.config.session_timeout_min_ms = Some(whole_ms(timeout));
        self
    }

    /// Sets the longest session timeout granted, in whole milliseconds. Default: 20 ticks.
    #[must_use]
    pub fn session_timeout_max(mut self, timeout: Duration) -> Self {
        self.config.session_timeout_max_ms = Some(whole_ms(timeout));
        self
    }

    /// Sets the zxid before the first change. See [`Config::initial_zxid`].
    #[must_use]
    pub const fn initial_zxid(mut self, zxid: i64) -> Self {
        self.config.initial_zxid = Some(zxid);
        self
    }

    /// Adds these znodes to the tree before the server accepts clients. See [`Config::seed`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Server, tree};
    /// let server = Server::builder().seed(tree! { "/app/limit" => "10" }).start().await?;
    /// assert_eq!(server.children("/app").unwrap(), ["limit"]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn seed(mut self, tree: Tree) -> Self {
        self.config.seed = tree;
        self
    }

    /// Serves the control API over HTTP on the client port, to programs on this machine. See
    /// [`ControlConfig`](crate::ControlConfig).
    #[cfg(feature = "control")]
    #[must_use]
    pub const fn control(mut self) -> Self {
        self.config.control.is_enabled = true;
        self
    }

    /// Serves the control API to requests with this token, from any machine.
    #[cfg(feature = "control")]
    #[must_use]
    pub fn control_token(mut self, token: impl Into<Secret>) -> Self {
        self.config.control.token = Some(token.into());
        self.control()
    }

    /// Sets what the server does when a panic drops it. Default: it prints its story.
    #[must_use]
    pub fn stories(mut self, stories: Stories) -> Self {
        self.config.stories = stories;
        self
    }

    /// Changes any setting.
    ///
    /// # Examples
    /// ```
    /// let builder = minikeeper::Server::builder().configure(|config| config.sessions_max = 10);
    /// # drop(builder);
    /// ```
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Starts the server; it listens when this returns. See [`Server::start`].
    ///
    /// # Errors
    /// Those of [`Server::start`].
    pub async fn start(self) -> Result<Server, StartError> {
        Server::start(self.config).await
    }

    pub(crate) fn into_config(self) -> Config {
        self.config
    }
}

#[cfg(feature = "data")]
impl Builder {
    /// Saves the state to this directory on shutdown and loads it at the start. See
    /// [`Config::data_dir`].
    #[must_use]
    pub fn data_dir(mut self, dir: impl Into<std::path::PathBuf>) -> Self {
        self.config.data_dir = Some(dir.into());
        self
    }

    /// Accepts a data directory with damaged or missing files, and omits what is unreadable. See
    /// [`Config::trust_damaged_data`].
    #[must_use]
    pub const fn trust_damaged_data(mut self) -> Self {
        self.config.trust_damaged_data = true;
        self
    }

    /// Starts from a ZooKeeper data directory, which is only read. See [`DataSource`](crate::DataSource).
    ///
    /// # Examples
    /// ```no_run
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = minikeeper::Server::builder().data_from("copy-of-production").start().await?;
    /// println!("{}", server.dump());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn data_from(mut self, source: impl Into<minikeeper_core::data::DataSource>) -> Self {
        self.config.import = Some(source.into());
        self
    }

    /// Also saves the state at this interval. See [`Config::save_interval`].
    #[must_use]
    pub const fn save_interval(mut self, interval: Duration) -> Self {
        self.config.save_interval = interval;
        self
    }

    /// Starts with the state of another server, without a file. Each session has its full timeout, from
    /// the start on, to reconnect. Default: an empty tree.
    #[must_use]
    pub fn state(mut self, state: minikeeper_core::data::SavedState) -> Self {
        self.config.state = Some(state);
        self
    }
}

fn whole_ms(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
