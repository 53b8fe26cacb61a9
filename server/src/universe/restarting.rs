//! Stops and restarts the server on the same port.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use minikeeper_core::{
    ensemble::ServerMode,
    start::{
        StartError,
        ports::{self, Listeners},
    },
    state::{UniverseState, reachability::Phase},
};
use minikeeper_engine::Keep;

use crate::universe::Universe;

/// The maximum wait for connections to end while the server goes down.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why a server cannot come up.
#[derive(Debug)]
#[non_exhaustive]
pub enum RestartError {
    /// It was shut down for good.
    Stopped,
    /// A bug stopped it, perhaps halfway through a change.
    Broken,
    /// It cannot listen again. It stays down; the caller may try again.
    Start(StartError),
}

impl fmt::Display for RestartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the server was shut down; start another one"),
            Self::Broken => {
                f.write_str("the server was stopped by an internal error; start another one")
            }
            Self::Start(_) => f.write_str("the server cannot come up"),
        }
    }
}

impl Error for RestartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Start(error) => Some(error),
            Self::Stopped | Self::Broken => None,
        }
    }
}

impl From<StartError> for RestartError {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

impl Universe {
    /// Stops listening and closes every connection. The state stays and can be inspected; no
    /// session expires while the server is down. Called on the server's own universe, this takes
    /// all universes down; called on another one, that one refuses its clients and the port stays
    /// open.
    ///
    /// The server keeps its port: nobody who asks for any free one is given it.
    ///
    /// Waits until the connections are closed, at most two seconds. Does nothing on a server that
    /// is already down. Over HTTP the answer is the address that serves
    /// [`come_up`](Universe::come_up).
    ///
    /// # Cancel safety
    /// If the future is dropped after it has begun, the server goes down without it.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Keep, Server};
    /// let server = Server::builder().start().await?;
    /// server.go_down().await;
    /// assert!(std::net::TcpStream::connect(server.addr()).is_err());
    /// server.come_up(Keep::Everything).await?;
    /// assert!(std::net::TcpStream::connect(server.addr()).is_ok());
    /// # Ok(()) }
    /// ```
    pub async fn go_down(&self) {
        let root = &self.root;
        if !Arc::ptr_eq(&self.shared, root) {
            return self.shared.turns.stop();
        }
        let reachability = &root.server.reachability;
        let transition = Arc::clone(&reachability.transition).lock_owned().await;
        let mut tasks = reachability.go_down();
        root.turns.stop();
        for universe in root.server.universes.all() {
            universe.turns.stop();
        }
        // A port can be held only once the task that listened has ended. A task of its own, because the port
        // would be left to others if this future were dropped meanwhile.
        let server = Arc::clone(&root.server);
        let held = root.server.runtime.spawn(async move {
            tasks.end().await;
            if server.reachability.phase() == Phase::Down {
                server.hold_ports();
            }
            drop(transition);
        });
        // Fails only if the runtime is shutting down.
        let _ = held.await;
        let gone = root.server.open_connections.wait_no_clients();
        if tokio::time::timeout(PATIENCE, gone).await.is_err() {
            tracing::warn!("some connections did not close in time");
        }
    }

    /// Listens again on the same port, with the part of the state that `keep` names. Does nothing
    /// on a server that is up.
    ///
    /// Kept sessions have their full timeout to reconnect, and their ephemerals stay as long.
    /// Watches are gone: clients set them again. Session ids are never reused. The zxid never goes
    /// back, whatever is kept, because a client that has seen a later one would be turned away for
    /// ever (`docs/zookeeper-protocol.md` section 14.7). The server's counters restart at zero.
    ///
    /// Called on the server's own universe, this brings all universes up, each with the same part
    /// of its state; called on another one, only that one.
    ///
    /// # Errors
    /// When the port cannot be bound, or the server was shut down or has failed. The server stays
    /// down, and nothing has changed.
    pub async fn come_up(&self, keep: Keep) -> Result<(), RestartError> {
        if self.shared.turns.is_broken() {
            return Err(RestartError::Broken);
        }
        let root = &self.root;
        if !Arc::ptr_eq(&self.shared, root) {
            if self.shared.turns.is_stopped() {
                renew(&self.shared, keep);
            }
            return Ok(());
        }
        let server = &root.server;
        let _transition = server.reachability.transition.lock().await;
        match server.reachability.phase() {
            Phase::Up => return Ok(()),
            Phase::Stopped => return Err(RestartError::Stopped),
            Phase::Down => {}
        }
        let mut ended = {
            let _on_its_runtime = server.runtime.enter();
            let ensemble = &server.ensemble;
            let listen = |id| match ensemble.mode(id) {
                ServerMode::Down => Ok(None),
                _ => Listeners::bind_again(
                    &server.reachability,
                    ensemble.addresses(id),
                    &root.config,
                )
                .map(Some),
            };
            let listeners: Result<Vec<_>, StartError> = ensemble.ids().map(listen).collect();
            if listeners.is_err() {
                // Those that could listen no longer do.
                server.hold_ports();
            }
            let listeners = listeners?;
            for universe in root.server.universes.all() {
                renew(&universe, keep);
            }
            renew(root, keep);
            server.reachability.set_up(ports::serve(listeners, root))
        };
        // The control port is closed only once its task has ended.
        ended.end().await;
        Ok(())
    }

    /// Goes down and comes up: see [`go_down`](Universe::go_down) and
    /// [`come_up`](Universe::come_up).
    ///
    /// # Errors
    /// Those of [`come_up`](Universe::come_up).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Keep, Server};
    /// use minikeeper_client::{Client, CreateMode};
    /// let server = Server::builder().start().await?;
    /// let client = Client::connect(&server.connect_string()).await?;
    /// client.create("/lock", b"", CreateMode::Ephemeral).await?;
    /// server.restart(Keep::Everything).await?;
    /// // The session is kept, and its ephemeral with it; the client reconnects.
    /// assert!(server.get("/lock").is_some());
    /// # Ok(()) }
    /// ```
    pub async fn restart(&self, keep: Keep) -> Result<(), RestartError> {
        self.go_down().await;
        self.come_up(keep).await
    }
}

fn renew(shared: &UniverseState, keep: Keep) {
    shared.replace_state(|turns, replacement| {
        turns.renew(|engine, now, recorder| {
            engine.restart(keep, now);
            if let Some(recorder) = recorder {
                recorder.restart(now, keep);
            }
            replacement.save(engine);
        });
    });
    shared.turns.resume();
}

#[cfg(test)]
mod tests {
    use std::{future::Future as _, pin::pin, task::Poll};

    use super::*;

    /// The port was held only by the future's last step: a dropped one left it to others.
    #[tokio::test]
    async fn dropped_go_down_holds_the_port_all_the_same() {
        let server = crate::Server::builder().start().await.unwrap();
        let address = server.addr();
        {
            let mut going = pin!(server.go_down());
            std::future::poll_fn(|cx| {
                assert!(going.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
        }
        // Waits for what the dropped future has left to do.
        drop(server.shared.server.reachability.transition.lock().await);
        let reachability = &server.shared.server.reachability;
        assert_eq!(reachability.phase(), Phase::Down);
        assert!(reachability.is_held(address));
        server.come_up(Keep::Everything).await.unwrap();
        assert!(!reachability.is_held(address));
        std::net::TcpStream::connect(address).unwrap();
    }
}
