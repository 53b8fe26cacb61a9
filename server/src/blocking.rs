//! A server for tests without a runtime. It runs on its own thread.

use std::{
    future::Future, net::SocketAddr, ops::Deref, sync::Arc, thread::JoinHandle, time::Duration,
};

use minikeeper_core::{
    config::{Config, stories::Stories},
    data::SaveError,
    ensemble::ServerMode,
    faults::error::NotHit,
    session_selector::{NoSession, SessionSelector},
    start::StartError,
    trees::Tree,
};
use minikeeper_engine::Keep;
use minikeeper_protocol::SessionId;
use tokio::{runtime::Handle, sync::oneshot};

use crate::{
    server::{self, Builder},
    universe::{RestartError, Universe, WaitError, ensemble::EnsembleError, panics},
};

/// A server with its own thread and runtime. It runs until dropped.
///
/// # Examples
/// ```
/// let server = minikeeper::blocking::Server::builder().manual_clock().start()?;
/// println!("connect your client to {}", server.connect_string());
/// server.advance(std::time::Duration::from_secs(10));
/// # Ok::<(), minikeeper::StartError>(())
/// ```
#[derive(Debug)]
pub struct Server {
    server: Arc<server::Server>,
    /// The runtime on the server's thread.
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    /// Returns the outcome of the last save.
    thread: Option<JoinHandle<Result<(), SaveError>>>,
}

/// Describes a blocking server; the settings are those of [`Builder`].
#[derive(Clone, Debug, Default)]
pub struct BlockingBuilder(Builder);

impl Server {
    /// Returns a builder for a server.
    #[must_use]
    pub fn builder() -> BlockingBuilder {
        BlockingBuilder::default()
    }

    /// Starts a server with these settings; it listens when this returns.
    ///
    /// # Errors
    /// When a setting is invalid, the address cannot be bound, the data directory cannot be used, or
    /// no thread can be started.
    pub fn start(config: Config) -> Result<Self, StartError> {
        let (stop, stopped) = oneshot::channel();
        let (started, start) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("minikeeper".to_owned())
            .spawn(move || serve(config, &started, stopped))
            .map_err(StartError::Thread)?;
        let (server, runtime) = start.recv().expect("the thread reports the outcome")?;
        Ok(Self {
            server,
            runtime,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Stops the server and waits until it has stopped.
    ///
    /// Saves the state if there is a [data directory](Config::data_dir); without one, dropping the
    /// server has the same effect.
    ///
    /// # Errors
    /// When the state could not be saved; the previous save is untouched.
    pub fn shutdown(mut self) -> Result<(), SaveError> {
        if let Some(stop) = self.stop.take() {
            // Fails if the thread has already ended; `wait` reports that.
            let _ = stop.send(());
        }
        self.wait()
    }

    /// Like [`Universe::set_server`](crate::Universe::set_server).
    ///
    /// # Errors
    /// Those of [`Universe::set_server`](crate::Universe::set_server).
    pub fn set_server(&self, id: u8, mode: ServerMode) -> Result<(), EnsembleError> {
        self.on_server_thread(move |universe| async move { universe.set_server(id, mode).await })
    }

    /// Like [`Universe::go_down`](crate::Universe::go_down).
    pub fn go_down(&self) {
        self.on_server_thread(|universe| async move { universe.go_down().await });
    }

    /// Like [`Universe::come_up`](crate::Universe::come_up).
    ///
    /// # Errors
    /// Those of [`Universe::come_up`](crate::Universe::come_up).
    pub fn come_up(&self, keep: Keep) -> Result<(), RestartError> {
        self.on_server_thread(move |universe| async move { universe.come_up(keep).await })
    }

    /// Like [`Universe::restart`](crate::Universe::restart).
    ///
    /// # Errors
    /// Those of [`Universe::restart`](crate::Universe::restart).
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Keep, blocking::Server};
    /// let server = Server::builder().start()?;
    /// server.restart(Keep::Data)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn restart(&self, keep: Keep) -> Result<(), RestartError> {
        self.on_server_thread(move |universe| async move { universe.restart(keep).await })
    }

    fn wait(&mut self) -> Result<(), SaveError> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(saved)) => saved,
            // The thread has printed its panic.
            Some(Err(_)) => Err(SaveError::Broken),
            None => Ok(()),
        }
    }

    /// Waits until a fault has acted `hits` times, and returns how often it has. Like
    /// [`Universe::until_hit`](crate::Universe::until_hit), without a runtime.
    ///
    /// # Errors
    /// [`NotHit`] says what was seen instead.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use minikeeper::Fault;
    /// let server = minikeeper::blocking::Server::builder().start()?;
    /// let guard = server.inject(Fault::refuse())?;
    /// let refused = std::net::TcpStream::connect(server.addr())?;
    /// server.until_hit(guard.id(), 1, Duration::from_secs(10))?;
    /// # drop(refused);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn until_hit(&self, id: u64, hits: u64, within: Duration) -> Result<u64, NotHit> {
        self.server.until_hit_blocking(id, hits, within)
    }

    /// Expires sessions: deletes their ephemerals, notifies watchers, closes connections. Returns
    /// how many sessions matched; all of them expire in one turn.
    ///
    /// When this returns, every watcher's events are in its socket, as with
    /// [`crate::Universe::expire_and_flush`].
    ///
    /// # Errors
    /// When no session matches, since a test that ends no session tests nothing. If that is fine, add
    /// `.unwrap_or(0)`.
    pub fn expire(&self, who: impl Into<SessionSelector>) -> Result<usize, NoSession> {
        let who = who.into();
        self.on_server_thread(|universe| async move { universe.expire_and_flush(who).await })
    }

    /// Runs a future on the server's thread and waits for its output. Works inside a runtime too.
    fn on_server_thread<F>(&self, work: impl FnOnce(Universe) -> F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let (done, outcome) = std::sync::mpsc::sync_channel(1);
        let work = work(self.universe().clone());
        self.runtime.spawn(async move {
            // Cannot fail: the caller waits below.
            let _ = done.send(work.await);
        });
        let outcome = outcome.recv();
        outcome.expect("the server's thread lives as long as its handle")
    }
}

#[cfg(feature = "data")]
impl Server {
    /// Like [`server::Server::save`].
    ///
    /// # Errors
    /// When the state could not be written; the previous save is untouched.
    pub fn save(&self) -> Result<(), SaveError> {
        self.server.save_now()
    }
}

/// Defines methods that wait like those of [`Universe`] with the same name and parameters, without a
/// runtime.
macro_rules! waits {
    ($($name:ident($(&$text:ident,)? $($value:ident: $type:ty),*);)*) => {
        impl Server {
            $(
                #[doc = concat!("Like [`Universe::", stringify!($name), "`](crate::universe::Universe::", stringify!($name), ").")]
                ///
                /// # Errors
                /// [`WaitError`] says what was seen instead.
                pub fn $name(&self, $($text: &str,)? $($value: $type),*) -> Result<(), WaitError> {
                    $(let $text = $text.to_owned();)?
                    self.on_server_thread(|universe| async move {
                        universe.$name($(&$text,)? $($value),*).await
                    })
                }
            )*
        }
    };
}

waits! {
    until_watched(&path, within: Duration);
    until_exists(&path, within: Duration);
    until_children(&path, count: usize, within: Duration);
    until_contenders(&lock, count: usize, within: Duration);
    until_sessions(count: usize, within: Duration);
    until_noticed(session: SessionId, within: Duration);
    until_idle(quiet: Duration, within: Duration);
}

/// What the thread sends back once the server has started.
type Started = (Arc<server::Server>, Handle);

fn serve(
    config: Config,
    started: &std::sync::mpsc::SyncSender<Result<Started, StartError>>,
    stopped: oneshot::Receiver<()>,
) -> Result<(), SaveError> {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = started.send(Err(StartError::Thread(error)));
            return Ok(());
        }
    };
    runtime.block_on(async {
        match server::Server::start(config).await {
            Err(error) => {
                let _ = started.send(Err(error));
                Ok(())
            }
            Ok(server) => {
                let server = Arc::new(server);
                let _ = started.send(Ok((Arc::clone(&server), Handle::current())));
                // An error means that the handle was dropped: then stops without saving.
                match stopped.await {
                    Ok(()) => server.stop_serving().await,
                    Err(_) => Ok(()),
                }
            }
        }
    })
    // Dropping the runtime drops every task, and with it every socket.
}

impl Drop for Server {
    fn drop(&mut self) {
        panics::tell_all(&self.server);
        drop(self.stop.take());
        // Nothing is saved, so there is no error to report.
        let _ = self.wait();
    }
}

/// Gives access to all other methods of the server.
impl Deref for Server {
    type Target = server::Server;

    fn deref(&self) -> &server::Server {
        &self.server
    }
}

impl BlockingBuilder {
    /// Listens here instead of on a free port of 127.0.0.1.
    #[must_use]
    pub fn listen(self, address: SocketAddr) -> Self {
        Self(self.0.listen(address))
    }

    /// Starts with the clock frozen: time does not pass until [`crate::Universe::advance`] or
    /// [`crate::Universe::unfreeze`].
    #[must_use]
    pub fn manual_clock(self) -> Self {
        Self(self.0.manual_clock())
    }

    /// Sets the unit of session timeouts. Default: 3 s.
    #[must_use]
    pub fn tick_time(self, tick: Duration) -> Self {
        Self(self.0.tick_time(tick))
    }

    /// Adds these znodes to the tree before the server accepts clients. See [`Config::seed`].
    #[must_use]
    pub fn seed(self, tree: Tree) -> Self {
        Self(self.0.seed(tree))
    }

    /// Serves the control API over HTTP to programs on this machine. See [`Builder::control`].
    #[cfg(feature = "control")]
    #[must_use]
    pub fn control(self) -> Self {
        Self(self.0.control())
    }

    /// Sets what the server does when a panic drops it. See [`Builder::stories`].
    #[must_use]
    pub fn stories(self, stories: Stories) -> Self {
        Self(self.0.stories(stories))
    }

    /// Changes any setting.
    #[must_use]
    pub fn configure(self, change: impl FnOnce(&mut Config)) -> Self {
        Self(self.0.configure(change))
    }

    /// Starts the server; it listens when this returns.
    ///
    /// # Errors
    /// Those of [`Server::start`].
    pub fn start(self) -> Result<Server, StartError> {
        Server::start(self.0.into_config())
    }
}

#[cfg(feature = "data")]
impl BlockingBuilder {
    /// Saves the state to this directory on shutdown and loads it at the start. See
    /// [`Config::data_dir`].
    #[must_use]
    pub fn data_dir(self, dir: impl Into<std::path::PathBuf>) -> Self {
        Self(self.0.data_dir(dir))
    }

    /// Starts from a ZooKeeper data directory, which is only read. See
    /// [`DataSource`](crate::DataSource).
    #[must_use]
    pub fn data_from(self, source: impl Into<minikeeper_core::data::DataSource>) -> Self {
        Self(self.0.data_from(source))
    }
}
