//! The same server for tests without a runtime of their own.

use std::{net::SocketAddr, ops::Deref, sync::Arc, thread::JoinHandle, time::Duration};

use tokio::sync::oneshot;

use crate::{
    config::Config,
    server::{self, Builder, StartError},
};

/// A server on a thread of its own, with a small runtime; runs until dropped.
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
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Describes a blocking server; the settings are those of [`Builder`].
#[derive(Clone, Debug, Default)]
pub struct BlockingBuilder(Builder);

impl Server {
    /// Starts to describe a server.
    #[must_use]
    pub fn builder() -> BlockingBuilder {
        BlockingBuilder::default()
    }

    /// Starts a server with these settings; it listens when this returns.
    ///
    /// # Errors
    /// When a setting makes no sense, the address cannot be bound, or no thread can be started.
    pub fn start(config: Config) -> Result<Self, StartError> {
        let (stop, stopped) = oneshot::channel();
        let (started, start) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("minikeeper".to_owned())
            .spawn(move || serve(config, &started, stopped))
            .map_err(StartError::Thread)?;
        let server = start.recv().expect("the thread says how the start went")?;
        Ok(Self {
            server,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Stops the server and waits until it has; the same as dropping it.
    pub fn shutdown(self) {
        drop(self);
    }
}

fn serve(
    config: Config,
    started: &std::sync::mpsc::SyncSender<Result<Arc<server::Server>, StartError>>,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = started.send(Err(StartError::Thread(error)));
            return;
        }
    };
    runtime.block_on(async {
        match server::Server::start(config).await {
            Err(error) => {
                let _ = started.send(Err(error));
            }
            Ok(server) => {
                let server = Arc::new(server);
                let _ = started.send(Ok(Arc::clone(&server)));
                drop(server);
                // Ends with an error when the handle is dropped: the same wish.
                let _ = stopped.await;
            }
        }
    });
    // Dropping the runtime drops every task, and with it every socket.
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed there.
            let _ = thread.join();
        }
    }
}

/// Everything else is the same: looking inside, moving time, cutting connections.
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

    /// Lets time stand still until [`crate::Server::advance`].
    #[must_use]
    pub fn manual_clock(self) -> Self {
        Self(self.0.manual_clock())
    }

    /// Sets the unit of session expiry. Default: 3 s.
    #[must_use]
    pub fn tick_time(self, tick: Duration) -> Self {
        Self(self.0.tick_time(tick))
    }

    /// Changes any setting.
    #[must_use]
    pub fn configure(self, change: impl FnOnce(&mut Config)) -> Self {
        Self(self.0.configure(change))
    }

    /// Starts the server; it listens when this returns.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start(self) -> Result<Server, StartError> {
        Server::start(self.0.into_config())
    }
}
