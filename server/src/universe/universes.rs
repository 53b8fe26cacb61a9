//! Creates, forks and drops universes, and finds them by name.

use std::{ops::Deref, sync::Arc};

use minikeeper_core::{
    clock::Clock,
    state::{UniverseState, reachability::Phase, registry::UniverseError, time_control},
    turn::turns::Turns,
};
use minikeeper_engine::Engine;
use minikeeper_protocol::{SessionId, path};

use crate::universe::{Universe, panics};

/// A universe that is dropped with this guard: its connections close and its state is deleted.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use minikeeper_client::{Client, CreateMode};
/// let server = minikeeper::Server::builder().start().await?;
/// let mine = server.create_universe("mine")?;
/// // "127.0.0.1:<port>/mine": everything that its clients do stays in this universe.
/// let client = Client::connect(&mine.connect_string()).await?;
/// client.create("/a", b"", CreateMode::Persistent).await?;
/// assert!(mine.get("/a").is_some() && server.get("/a").is_none());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct UniverseGuard {
    universe: Universe,
    is_kept: bool,
}

impl UniverseGuard {
    /// Keeps the universe until [`drop_universe`](Universe::drop_universe) or the end of the
    /// server.
    #[must_use]
    pub fn keep(mut self) -> Universe {
        self.is_kept = true;
        self.universe.clone()
    }
}

impl Deref for UniverseGuard {
    type Target = Universe;

    fn deref(&self) -> &Universe {
        &self.universe
    }
}

impl Drop for UniverseGuard {
    fn drop(&mut self) {
        if !self.is_kept {
            panics::tell(&self.universe);
            self.universe.drop_universe(&self.universe.name());
        }
    }
}

impl Universe {
    /// Returns the universe's name; empty for the server's own.
    #[must_use]
    pub fn name(&self) -> String {
        let prefix = self.shared.turns.prefix();
        prefix.strip_prefix('/').unwrap_or(prefix).to_owned()
    }

    /// Creates a universe behind the server's port: an empty tree with its own zxid, sessions,
    /// clock, faults and limits, and the server's settings.
    ///
    /// Clients select it by their chroot, which is its name: see
    /// [`connect_string`](Universe::connect_string). A connection belongs to the universe whose
    /// name begins the first path that it sends.
    ///
    /// # Errors
    /// When the name is not a single path component, or is taken.
    pub fn create_universe(&self, name: &str) -> Result<UniverseGuard, UniverseError> {
        let clock = self.root.config.new_clock();
        let settings = self.root.config.engine_settings(&clock);
        self.add(name, |_| (Engine::new(settings), clock))
    }

    /// Creates a universe as [`create_universe`](Universe::create_universe) does, with an unused
    /// name.
    ///
    /// # Errors
    /// When the server has stopped.
    pub fn new_universe(&self) -> Result<UniverseGuard, UniverseError> {
        loop {
            let name = format!("universe-{}", self.root.server.universes.next_number());
            match self.create_universe(&name) {
                Err(UniverseError::Taken { .. }) => {}
                outcome => return outcome,
            }
        }
    }

    /// Creates a universe as a copy of this one: znodes, zxid, clock and sessions. The sessions
    /// wait for their clients to reconnect under the name of the copy. From then on the two
    /// universes are independent.
    ///
    /// # Errors
    /// Those of [`create_universe`](Universe::create_universe).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper_client::{Client, CreateMode};
    /// let server = minikeeper::Server::builder().start().await?;
    /// let client = Client::connect(&server.connect_string()).await?;
    /// client.create("/a", b"1", CreateMode::Persistent).await?;
    /// let copy = server.fork("copy")?;
    /// client.delete("/a", None).await?;
    /// assert!(copy.get("/a").is_some());
    /// # Ok(()) }
    /// ```
    pub fn fork(&self, name: &str) -> Result<UniverseGuard, UniverseError> {
        self.add(name, |first_session_id| {
            let turns = &self.shared.turns;
            let (copy, clock) = turns.copied(|_| turns.clock().fork());
            (copy.finish(first_session_id), clock)
        })
    }

    fn add(
        &self,
        name: &str,
        make: impl FnOnce(SessionId) -> (Engine, Clock),
    ) -> Result<UniverseGuard, UniverseError> {
        let prefix = format!("/{name}");
        if name.contains('/') || !path::is_valid(prefix.as_bytes()) || prefix == "/" {
            return Err(UniverseError::InvalidName {
                name: name.to_owned(),
            });
        }
        let taken = || UniverseError::Taken {
            name: name.to_owned(),
        };
        let server = &self.root.server;
        if server.reachability.phase() == Phase::Stopped {
            return Err(UniverseError::Stopped);
        }
        let is_znode = |engine: &Engine| engine.get(&prefix).is_some();
        if self.root.turns.inspect(is_znode) || server.universes.get(name).is_some() {
            return Err(taken());
        }
        // Clients' sessions keep the id they got in the server's own universe, whose ids begin with
        // 1 in the top byte.
        let number = server.universes.next_number().cast_signed();
        let (engine, clock) = make(SessionId((2 << 56) | (number << 32)));
        let config = self.root.config.clone();
        let turns = Turns::new(engine, clock, &config, Arc::clone(&server.ensemble))
            .with_prefix(prefix.clone())
            .with_journal(config.journal_size());
        let shared = Arc::new(UniverseState::new(config, turns, Arc::clone(server)));
        let expiry = server
            .runtime
            .spawn(time_control::run(Arc::clone(&shared)))
            .abort_handle();
        let added = server
            .universes
            .add(name, Arc::clone(&shared), expiry.clone());
        added.inspect_err(|_| expiry.abort())?;
        Ok(UniverseGuard {
            universe: Self {
                shared,
                root: Arc::clone(&self.root),
            },
            is_kept: false,
        })
    }

    /// Finds a universe by name; the empty name is the server's own.
    #[must_use]
    pub fn universe_named(&self, name: &str) -> Option<Self> {
        let root = Arc::clone(&self.root);
        let shared = if name.is_empty() {
            Arc::clone(&root)
        } else {
            root.server.universes.get(name)?
        };
        Some(Self { shared, root })
    }

    /// Lists the names of all universes but the server's own, in order.
    #[must_use]
    pub fn universes(&self) -> Vec<String> {
        self.root.server.universes.names()
    }

    /// Returns whether the universe was dropped, or the server has stopped for ever.
    pub(crate) fn is_over(&self) -> bool {
        if self.root.server.reachability.phase() == Phase::Stopped {
            return true;
        }
        let is_own = Arc::ptr_eq(&self.shared, &self.root);
        let registered = || self.root.server.universes.get(&self.name());
        !is_own && !registered().is_some_and(|found| Arc::ptr_eq(&found, &self.shared))
    }

    /// Drops a universe: closes its connections and deletes its state. Returns whether it existed.
    pub fn drop_universe(&self, name: &str) -> bool {
        let dropped = self.root.server.universes.remove(name);
        if let Some(shared) = &dropped {
            shared.turns.stop();
        }
        dropped.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server checked whether it was up, and added the universe after it had stopped all others: the
    /// universe and its task outlived the server.
    #[tokio::test]
    async fn universe_added_while_the_server_closes_is_refused() {
        let server = crate::Server::builder().start().await.unwrap();
        let before = server.create_universe("before").unwrap();
        // What the server does when it closes, behind the look of whoever adds a universe.
        let universes = &server.shared.server.universes;
        assert_eq!(universes.close().len(), 1);
        let late = server.create_universe("late");
        assert!(matches!(late, Err(UniverseError::Stopped)));
        assert_eq!(server.universes(), Vec::<String>::new());
        drop(before);
    }
}
