//! A server and its clients.

use std::sync::Arc;

use minikeeper::Server;
use minikeeper_client::{Client, ClientBuilder, ConnectionState, LostReason, States};
use minikeeper_test_kit::servers::client_builder;
pub(crate) use minikeeper_test_kit::servers::{PATIENCE, SESSION_TIMEOUT, create, start, until};
use tokio::time::timeout;

use crate::link::Link;

pub(crate) struct Scene {
    pub(crate) server: Arc<Server>,
    pub(crate) link: Link,
    pub(crate) client: Client,
}

/// Starts a server, and a client over a link that can inject faults.
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

pub(crate) fn builder(link: &Link) -> ClientBuilder {
    client_builder(link, 1)
}

impl Scene {
    /// Connects another client, over its own link without faults.
    pub(crate) async fn other(&self) -> Client {
        builder(&Link::to(&self.server)).connect().await.unwrap()
    }
}

/// Waits for a change of state that matches.
pub(crate) async fn state(
    states: &mut States,
    mut matches: impl FnMut(&ConnectionState) -> bool,
) -> ConnectionState {
    let wait = async {
        loop {
            let state = states.next().await.expect("the client is not closed");
            if matches(&state) {
                return state;
            }
        }
    };
    timeout(PATIENCE, wait)
        .await
        .expect("the state is reached in time")
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
