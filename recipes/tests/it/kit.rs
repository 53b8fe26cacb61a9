//! A server, clients on it, and what tests of locks ask again and again.

use std::{future::Future, sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::{Client, ClientBuilder};
use minikeeper_recipes::{InterProcessMutex, LockOptions};
use tokio::time::timeout;

use crate::link::Link;

/// Longer than anything here takes, on time that passes only when everybody waits.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

pub(crate) const PATH: &str = "/locks/a";

pub(crate) fn server() -> minikeeper::Builder {
    // The first zxid comes from the time of day otherwise, and no run would be like another.
    Server::builder()
        .initial_zxid(0)
        .tick_time(Duration::from_millis(100))
        .session_timeout_min(Duration::from_millis(200))
        .session_timeout_max(Duration::from_secs(60))
        .configure(|config| config.container_check_interval_ms = 10)
}

pub(crate) async fn start() -> Arc<Server> {
    Arc::new(server().start().await.unwrap())
}

pub(crate) fn builder(link: &Link, seed: u64) -> ClientBuilder {
    Client::builder("server")
        .unwrap()
        .session_timeout(SESSION_TIMEOUT)
        .seed(seed)
        .transport(link.clone())
}

/// A client over a link of its own.
pub(crate) async fn client(server: &Arc<Server>, seed: u64) -> (Client, Link) {
    let link = Link::to(server);
    (builder(&link, seed).connect().await.unwrap(), link)
}

/// A contender for the mutex at [`PATH`], with a session of its own.
pub(crate) struct Contender {
    pub(crate) client: Client,
    pub(crate) link: Link,
    pub(crate) lock: InterProcessMutex<Client>,
}

pub(crate) async fn contender(server: &Arc<Server>, seed: u64) -> Contender {
    contender_with(server, seed, LockOptions::default()).await
}

pub(crate) async fn contender_with(
    server: &Arc<Server>,
    seed: u64,
    options: LockOptions,
) -> Contender {
    let (client, link) = client(server, seed).await;
    let lock = InterProcessMutex::with_options(client.clone(), PATH, options).unwrap();
    Contender { client, link, lock }
}

/// Both ways to go about it.
pub(crate) fn both_ways() -> [LockOptions; 2] {
    [LockOptions::default(), LockOptions::curator_exact()]
}

/// The names in the lock's directory.
pub(crate) fn queue(server: &Server) -> Vec<String> {
    server.children(PATH).unwrap_or_default()
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(timeout(PATIENCE, wait).await.is_ok(), "never: {what}");
}

/// Waits for something that must come.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("it comes in the end")
}
