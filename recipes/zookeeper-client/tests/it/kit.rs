//! A server, its clients, and questions that tests often ask.

use std::{future::Future, sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_recipes::client::ZooKeeper as _;
use minikeeper_recipes_zookeeper_client::Adapter;
use tokio::time::timeout;
use zookeeper_client::Client;

/// Longer than any step here.
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

/// Connects a client with its own session.
pub(crate) async fn join(address: &str, session_timeout: Duration) -> Client {
    let connector = Client::connector().with_session_timeout(session_timeout);
    connector.connect(address).await.unwrap()
}

/// Returns an adapter that gets a new session when one is over.
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

/// Ends the adapter's current session.
pub(crate) fn expire(server: &Server, adapter: &Adapter) {
    server.expire(adapter.session().unwrap()).unwrap();
}

/// Ends the adapter's current connection.
pub(crate) fn cut(server: &Server, adapter: &Adapter) {
    server.disconnect(adapter.session().unwrap()).unwrap();
}

/// Returns the names in a directory.
pub(crate) fn names(server: &Server, path: &str) -> Vec<String> {
    server.children(path).unwrap_or_default()
}

/// Returns the names in the lock's directory.
pub(crate) fn queue(server: &Server) -> Vec<String> {
    names(server, PATH)
}

/// Waits until the condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(timeout(PATIENCE, wait).await.is_ok(), "never: {what}");
}

/// Waits for a future that must complete.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what)
        .await
        .expect("the future completes in time")
}

/// Lets all ready tasks run: whatever has not arrived afterwards is not in flight.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
