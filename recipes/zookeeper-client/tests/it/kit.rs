//! A server, clients on it, and what tests ask again and again.

use std::{future::Future, sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_recipes::client::ZooKeeper as _;
use minikeeper_recipes_zookeeper_client::Adapter;
use tokio::time::timeout;
use zookeeper_client::Client;

/// Longer than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Long enough for a busy machine: nothing here waits for it.
pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) const PATH: &str = "/locks/a";

pub(crate) async fn start() -> Arc<Server> {
    let builder = Server::builder()
        .manual_clock()
        .tick_time(Duration::from_millis(100))
        .session_timeout_min(Duration::from_millis(200))
        .session_timeout_max(Duration::from_secs(60));
    Arc::new(builder.start().await.unwrap())
}

/// A client with a session of its own.
pub(crate) async fn join(address: &str, session_timeout: Duration) -> Client {
    let connector = Client::connector().with_session_timeout(session_timeout);
    connector.connect(address).await.unwrap()
}

/// A client that gets a new session when one is over.
pub(crate) async fn adapter_at(address: &str, session_timeout: Duration) -> Adapter {
    let again = address.to_owned();
    let connect = move || {
        let address = again.clone();
        let connector = Client::connector().with_session_timeout(session_timeout);
        async move { connector.connect(&address).await }
    };
    Adapter::renewing(join(address, session_timeout).await, connect)
}

pub(crate) async fn adapter(server: &Server) -> Adapter {
    adapter_at(&server.connect_string(), SESSION_TIMEOUT).await
}

/// Ends the session that the adapter has just now.
pub(crate) fn expire(server: &Server, adapter: &Adapter) {
    server.expire(adapter.session().unwrap()).unwrap();
}

/// Ends the connection that the adapter has just now.
pub(crate) fn cut(server: &Server, adapter: &Adapter) {
    server.disconnect(adapter.session().unwrap()).unwrap();
}

/// The names in a directory.
pub(crate) fn names(server: &Server, path: &str) -> Vec<String> {
    server.children(path).unwrap_or_default()
}

/// The names in the lock's directory.
pub(crate) fn queue(server: &Server) -> Vec<String> {
    names(server, PATH)
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

/// Lets all ready tasks run: what has not arrived by then is not under way.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
