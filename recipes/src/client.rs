//! What the recipes need of a [`Client`] beyond its methods: how certain it is of its session, and
//! ids.
//!
//! The recipes rely on two properties of a client: a method makes its request when it is called, not
//! when its future is first polled, and consecutive requests leave together.
//!
//! Source: `docs/curator-recipes.md` section 2.9.

use std::{
    borrow::Cow,
    hash::{BuildHasher as _, RandomState},
};

use minikeeper_client::{
    Children, Client, ClientStatus, ConnectionState, Epoch, SessionId, States,
};
use tokio::time::Instant;
use uuid::Uuid;

/// How certain a client is of its session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// There has been no session yet.
    Connecting,
    /// There is a connection.
    Connected {
        /// The number of the session.
        epoch: Epoch,
        /// The time until which no server can have ended the session.
        safe_until: Instant,
    },
    /// There is no connection, or one to a read-only server, which keeps no session alive.
    Suspended {
        /// The number of the session.
        epoch: Epoch,
        /// The time until which no server can have ended the session.
        safe_until: Instant,
    },
    /// This session and all earlier ones are over.
    Lost {
        /// The number of the session.
        epoch: Epoch,
    },
    /// The client is closed.
    Closed,
}

impl Standing {
    /// Returns the client's standing now.
    pub(crate) fn of(client: &Client) -> Self {
        let ClientStatus {
            state, safe_until, ..
        } = client.status();
        Self::new(state, safe_until)
    }

    fn new(state: ConnectionState, safe_until: Option<Instant>) -> Self {
        match state {
            ConnectionState::Connected { epoch, .. }
            | ConnectionState::Reconnected { epoch, .. } => match safe_until {
                Some(safe_until) => Self::Connected { epoch, safe_until },
                None => Self::Lost { epoch },
            },
            // A read-only server keeps no session alive, so for a lock it does not count as a
            // connection.
            ConnectionState::ReadOnly { epoch, .. } => match safe_until {
                Some(safe_until) => Self::Suspended { epoch, safe_until },
                None => Self::Lost { epoch },
            },
            ConnectionState::Suspended { epoch, until } => Self::Suspended {
                epoch,
                safe_until: until,
            },
            ConnectionState::Lost { epoch, .. } => Self::Lost { epoch },
            ConnectionState::Closed => Self::Closed,
            _ => Self::Connecting,
        }
    }

    /// Returns the number of the session that the standing describes.
    pub(crate) const fn epoch(&self) -> Option<Epoch> {
        match self {
            Self::Connected { epoch, .. }
            | Self::Suspended { epoch, .. }
            | Self::Lost { epoch } => Some(*epoch),
            Self::Connecting | Self::Closed => None,
        }
    }
}

/// A stream of changes of a client's standing, in order.
#[derive(Debug)]
pub(crate) struct Standings {
    states: States,
    client: Client,
}

impl Standings {
    /// Returns a stream of the later changes.
    pub(crate) fn of(client: &Client) -> Self {
        Self {
            states: client.states(),
            client: client.clone(),
        }
    }

    /// Waits for the next change; `None` once the client is closed.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    pub(crate) async fn next(&mut self) -> Option<Standing> {
        let state = self.states.next().await?;
        // The current `safe_until` says nothing about an earlier session.
        let now = self.client.status();
        let is_same = now.state.epoch() == state.epoch();
        Some(Standing::new(state, now.safe_until.filter(|_| is_same)))
    }
}

/// Waits until requests leave on another connection than that of this number, see
/// [`Client::connections`].
///
/// A watch that lives on after a reconnect reports only changes with a later zxid than the client has
/// seen. A server whose state is older than that reports none, so what a recipe knows counts for one
/// connection, and is read again on the next one.
pub(crate) async fn reconnected(client: &Client, connections: u64) {
    let mut states = Standings::of(client);
    while client.connections() == connections
        || !matches!(Standing::of(client), Standing::Connected { .. })
    {
        if states.next().await.is_none() {
            // The client is closed: its watches end.
            std::future::pending::<()>().await;
        }
    }
}

/// Returns the names of children as strings.
pub(crate) fn names(children: &Children) -> Vec<String> {
    children.names().map(Cow::into_owned).collect()
}

/// Returns a new id, unique among all contenders: also among those whose clients have the same
/// seed.
pub(crate) fn new_id(client: &Client) -> Uuid {
    // Clients with the same seed draw the same numbers, but servers give them different sessions.
    // Without a session nothing else tells them apart.
    let owner = match client.session_id() {
        Some(session) => spread(session),
        None => RandomState::new().hash_one(0),
    };
    let random = client.random() ^ u128::from(owner) << 32;
    uuid::Builder::from_random_bytes(random.to_be_bytes()).into_uuid()
}

/// Spreads a session's id over 64 bits; no two ids give the same number. It is that of `SplitMix64`.
const fn spread(session: SessionId) -> u64 {
    let mut bits = session.0.cast_unsigned();
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, future::IntoFuture as _};

    use minikeeper_test_kit::{
        link::Link,
        servers::{client_builder as builder, soon, spawn, start, until},
    };

    use super::*;
    use crate::InterProcessMutex;

    /// Of two clients with the same seed one adopted, and deleted, the znode of the other: their names
    /// were equal.
    #[tokio::test(start_paused = true)]
    async fn clients_with_the_same_seed_have_different_names_and_the_same_jitter() {
        let server = start().await;
        let connect = async || builder(&Link::to(&server), 7).connect().await.unwrap();
        let (one, two) = (connect().await, connect().await);
        let mut names = BTreeSet::new();
        for _ in 0..1_000 {
            assert!(names.insert(new_id(&one)) && names.insert(new_id(&two)));
            assert_eq!(one.random(), two.random());
        }
        // The same client has other names in its next session.
        server.expire(one.session_id().unwrap()).unwrap();
        until("the next session", || one.session_id().is_some()).await;
        let (unconnected, _driver) = builder(&Link::to(&server), 7).build();
        let (too, _driver) = builder(&Link::to(&server), 7).build();
        assert_ne!(new_id(&unconnected), new_id(&too));
        let lock = |client| InterProcessMutex::new(client, "/lock").unwrap();
        let guard = soon(lock(one).acquire().into_future()).await.unwrap();
        let waiting = spawn(async move { lock(two).acquire().await });
        until("both are there", || {
            server.children("/lock").unwrap().len() == 2
        })
        .await;
        guard.release().await.unwrap();
        soon(waiting)
            .await
            .unwrap()
            .unwrap()
            .release()
            .await
            .unwrap();
    }
}
