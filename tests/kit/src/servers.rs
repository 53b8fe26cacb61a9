//! Starts servers and clients, and waits with a bound.

use std::{error::Error, pin::Pin, sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::{Client, ClientBuilder, CreateMode};
use tokio::{runtime::Runtime, task::JoinHandle, time::timeout};

use crate::link::Link;

/// The limit of every wait. On paused time it costs nothing.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The session timeout that clients request.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

/// Returns the builder of a server with short session timeouts and the same zxids in each run.
#[must_use]
pub fn server() -> minikeeper::Builder {
    Server::builder()
        .initial_zxid(0)
        .tick_time(Duration::from_millis(100))
        .session_timeout_min(Duration::from_millis(200))
        .session_timeout_max(Duration::from_secs(60))
        .configure(|config| config.container_check_interval_ms = 100)
}

/// Starts a server of [`server`].
pub async fn start() -> Arc<Server> {
    Arc::new(server().start().await.expect("a free port"))
}

/// Returns the builder of a client that connects over `link`.
pub fn client_builder(link: &Link, seed: u64) -> ClientBuilder {
    Client::builder("server")
        .expect("a host")
        .session_timeout(SESSION_TIMEOUT)
        .seed(seed)
        .transport(link.clone())
}

/// Connects a client over a new link.
pub async fn client(server: &Arc<Server>, seed: u64) -> (Client, Link) {
    let link = Link::to(server);
    let client = client_builder(&link, seed).connect().await;
    (client.expect("the server listens"), link)
}

/// Runs an example of the documentation with a server and a client of it; panics if it fails.
pub fn example(run: impl AsyncFnOnce(Server, Client) -> Result<(), Box<dyn Error>>) {
    let runtime = Runtime::new().expect("the system starts threads");
    runtime.block_on(async {
        let server = Server::builder().start().await.expect("a free port");
        let client = Client::connect(&server.connect_string()).await;
        let ended = run(server, client.expect("the server listens")).await;
        ended.expect("the example succeeds");
    });
}

/// Creates an empty persistent znode.
pub async fn create(client: &Client, path: &str) {
    let created = client.create(path, b"", CreateMode::Persistent).await;
    created.expect("its parent exists, and it does not");
}

/// Polls until the condition holds; panics after [`PATIENCE`].
pub async fn until(what: &str, mut holds: impl FnMut() -> bool + Send) {
    until_dyn(what, &mut holds).await;
}

async fn until_dyn(what: &str, holds: &mut (dyn FnMut() -> bool + Send)) {
    let wait = async {
        let mut pause = Duration::from_millis(1);
        while !holds() {
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(Duration::from_millis(16));
        }
    };
    assert!(timeout(PATIENCE, wait).await.is_ok(), "never: {what}");
}

/// Awaits a future; panics after [`PATIENCE`].
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what)
        .await
        .expect("completes within PATIENCE")
}

/// Spawns a boxed future with [`tokio::spawn`].
///
/// Boxing compiles the code that runs a task once per result type instead of once per caller. With
/// a hundred callers that code is nearly half of a test program.
pub fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    let task: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(task);
    tokio::spawn(task)
}
