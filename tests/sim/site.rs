//! The server, which can be restarted, and its clients.

use std::{sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::Client;
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::{link::Link, servers};

/// A server, and its clients with their links.
pub(crate) struct Site {
    /// `None` while the server is down.
    server: Mutex<Option<Arc<Server>>>,
    pub(crate) clients: Vec<(Client, Link)>,
}

impl Site {
    pub(crate) async fn start(seed: u64, clients: usize) -> Self {
        let server = servers::start().await;
        let mut all = Vec::new();
        for number in 0..clients as u64 {
            all.push(servers::client(&server, seed * 1_000 + number).await);
        }
        Self {
            server: Mutex::new(Some(server)),
            clients: all,
        }
    }

    pub(crate) fn server(&self) -> Option<Arc<Server>> {
        self.server.lock().clone()
    }

    /// Stops the server, waits, and starts another one with its whole state.
    pub(crate) async fn restart(&self, down: Duration) {
        // No client gets a reply from here on, so no change that a client knows of is lost.
        for (_, link) in &self.clients {
            link.down();
        }
        let server = self.server.lock().take();
        let state = server.expect("one restart at a time").state();
        sleep(down).await;
        let server = servers::server().state(state).start().await.unwrap();
        let server = Arc::new(server);
        *self.server.lock() = Some(Arc::clone(&server));
        for (_, link) in &self.clients {
            link.up(&server);
        }
    }
}
