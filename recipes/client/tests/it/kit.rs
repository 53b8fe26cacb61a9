//! A server, and clients on it.

use std::{sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::{Client, ClientBuilder, ConnectionState, LostReason, States};
use tokio::time::timeout;

use crate::link::Link;

/// Longer than anything here takes, on time that passes only when everybody waits.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

pub(crate) struct Scene {
    pub(crate) server: Arc<Server>,
    pub(crate) link: Link,
    pub(crate) client: Client,
}

/// A server, and a client over a link that can misbehave.
pub(crate) async fn scene() -> Scene {
    let server = start().await;
    let link = Link::to(&server);
    let client = builder(&link).connect().await.unwrap();
    Scene {
        server,
        link,
        client,
    }
}

pub(crate) async fn start() -> Arc<Server> {
    let builder = Server::builder()
        .tick_time(Duration::from_millis(100))
        .session_timeout_min(Duration::from_millis(200))
        .session_timeout_max(Duration::from_secs(60));
    Arc::new(builder.start().await.unwrap())
}

pub(crate) fn builder(link: &Link) -> ClientBuilder {
    Client::builder("server")
        .unwrap()
        .session_timeout(SESSION_TIMEOUT)
        .seed(1)
        .transport(link.clone())
}

impl Scene {
    /// Another client, on a link of its own that behaves.
    pub(crate) async fn other(&self) -> Client {
        builder(&Link::to(&self.server)).connect().await.unwrap()
    }
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(PATIENCE, wait).await.is_ok(), "never: {what}");
}

/// Waits for a change of state that fits.
pub(crate) async fn state(
    states: &mut States,
    mut fits: impl FnMut(&ConnectionState) -> bool,
) -> ConnectionState {
    let wait = async {
        loop {
            let state = states.next().await.expect("the client is not closed");
            if fits(&state) {
                return state;
            }
        }
    };
    timeout(PATIENCE, wait).await.expect("the state comes")
}

pub(crate) async fn lost(states: &mut States) -> LostReason {
    let state = state(states, |state| {
        matches!(state, ConnectionState::Lost { .. })
    })
    .await;
    match state {
        ConnectionState::Lost { reason, .. } => reason,
        other => unreachable!("{other:?}"),
    }
}
