//! Servers, clients on them, and waiting with a bound.

use std::{sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::{Client, ClientBuilder};
use tokio::time::timeout;

use crate::link::Link;

/// How long a wait lasts at most. On paused time it costs nothing.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The session timeout that clients ask for.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

/// Returns a server with short limits for sessions, and with the same zxids in each run.
#[must_use]
pub fn server() -> minikeeper::Builder {
    Server::builder()
        .initial_zxid(0)
        .tick_time(Duration::from_millis(100))
        .session_timeout_min(Duration::from_millis(200))
        .session_timeout_max(Duration::from_secs(60))
        .configure(|config| config.container_check_interval_ms = 10)
}

/// Starts such a server.
pub async fn start() -> Arc<Server> {
    Arc::new(server().start().await.expect("a free port"))
}

/// Returns a client over a link.
pub fn client_builder(link: &Link, seed: u64) -> ClientBuilder {
    Client::builder("server")
        .expect("a host")
        .session_timeout(SESSION_TIMEOUT)
        .seed(seed)
        .transport(link.clone())
}

/// Returns a client over a link of its own.
pub async fn client(server: &Arc<Server>, seed: u64) -> (Client, Link) {
    let link = Link::to(server);
    let client = client_builder(&link, seed).connect().await;
    (client.expect("the server listens"), link)
}

/// Waits until a condition holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(timeout(PATIENCE, wait).await.is_ok(), "never: {what}");
}

/// Waits for something that must come.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("it comes in the end")
}
