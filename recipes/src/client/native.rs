//! [`minikeeper_client::Client`] as the recipes' client.

use std::{
    borrow::Cow,
    future::Future,
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use minikeeper_client::{
    Client, ClientStatus, ConnectionState, CreateOptions, Created, Data, Epoch, Error, Multi,
    MultiResult, Names, OneShot, SessionId, Stamped, Stat, States,
};
use tokio::time::Instant;
use uuid::Uuid;

use super::{Standing, StateStream, ZooKeeper};

impl ZooKeeper for Client {
    type States = ClientStates;
    type Watch = OneShot;

    fn standing(&self) -> Standing {
        let ClientStatus {
            state, safe_until, ..
        } = self.status();
        standing(state, safe_until)
    }

    fn states(&self) -> ClientStates {
        ClientStates {
            states: Self::states(self),
            client: self.clone(),
        }
    }

    fn call_timeout(&self) -> Duration {
        Self::call_timeout(self)
    }

    fn unlimited(&self) -> Self {
        self.without_timeout()
    }

    fn connections(&self) -> u64 {
        Self::connections(self)
    }

    fn create(
        &self,
        path: &str,
        data: &[u8],
        options: impl Into<CreateOptions>,
    ) -> impl Future<Output = Result<Stamped<Created>, Error>> + Send + 'static {
        Self::create(self, path, data, options).stamped()
    }

    fn create_root(&self) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let client = self.clone();
        async move { Self::create_root(&client).await }
    }

    fn delete(&self, path: &str) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        self.delete_for_certain(path)
    }

    fn exists(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stamped<Option<Stat>>, Error>> + Send + 'static {
        Self::exists(self, path).stamped()
    }

    fn watch_exists(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Option<Stat>, OneShot), Error>> + Send + 'static {
        self.exists_and_watch(path)
    }

    fn data(&self, path: &str) -> impl Future<Output = Result<Data, Error>> + Send + 'static {
        self.get_data(path)
    }

    fn watch_data(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Data, OneShot), Error>> + Send + 'static {
        self.get_data_and_watch(path)
    }

    fn set_data(
        &self,
        path: &str,
        data: &[u8],
        version: Option<i32>,
    ) -> impl Future<Output = Result<Stat, Error>> + Send + 'static {
        Self::set_data(self, path, data, version)
    }

    fn children(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stamped<Vec<String>>, Error>> + Send + 'static {
        let call = Self::children(self, path).stamped();
        async move {
            let Stamped { value, zxid, epoch } = call.await?;
            let value = value.names().map(Cow::into_owned).collect();
            Ok(Stamped { value, zxid, epoch })
        }
    }

    fn child_names(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stamped<Names>, Error>> + Send + 'static {
        Self::child_names(self, path).stamped()
    }

    fn watch_children(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Stamped<Vec<String>>, OneShot), Error>> + Send + 'static {
        let call = self.children_and_watch(path).stamped();
        async move {
            let Stamped { value, zxid, epoch } = call.await?;
            let (children, watch) = value;
            let value = children.names().map(Cow::into_owned).collect();
            Ok((Stamped { value, zxid, epoch }, watch))
        }
    }

    fn sync(&self, path: &str) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        Self::sync(self, path)
    }

    fn multi(
        &self,
        multi: Multi,
    ) -> impl Future<Output = Result<Vec<MultiResult>, Error>> + Send + 'static {
        Self::multi(self, multi)
    }

    fn clean_up(&self, epoch: Epoch, path: &str) {
        // A path that a server returned is valid.
        let _ = Self::clean_up(self, epoch, path);
    }

    fn clean_up_unanswered(&self, epoch: Epoch, parent: &str, prefix: &str) {
        let _ = Self::clean_up_unanswered(self, epoch, parent, prefix);
    }

    fn session(&self) -> Option<SessionId> {
        self.session_id()
    }

    fn new_id(&self) -> Uuid {
        // Clients with the same seed draw the same numbers, but servers give them different sessions.
        // Without a session nothing else tells them apart.
        let owner = match self.session_id() {
            Some(session) => spread(session),
            None => RandomState::new().hash_one(0),
        };
        let random = Self::random(self) ^ u128::from(owner) << 32;
        uuid::Builder::from_random_bytes(random.to_be_bytes()).into_uuid()
    }

    fn random(&self) -> u128 {
        Self::random(self)
    }
}

/// Spreads a session's id over 64 bits; no two ids give the same number. It is that of `SplitMix64`.
const fn spread(session: SessionId) -> u64 {
    let mut bits = session.0.cast_unsigned();
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// A stream of changes of a client's standing, see [`StateStream`].
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::client::{ClientStates, StateStream as _, ZooKeeper};
///
/// let mut states: ClientStates = ZooKeeper::states(&client);
/// client.close().await;
/// while let Some(standing) = states.next().await {
///     println!("{standing:?}");
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ClientStates {
    states: States,
    client: Client,
}

impl StateStream for ClientStates {
    async fn next(&mut self) -> Option<Standing> {
        let state = self.states.next().await?;
        // The current `safe_until` says nothing about an earlier session.
        let now = self.client.status();
        let is_same = now.state.epoch() == state.epoch();
        Some(standing(state, now.safe_until.filter(|_| is_same)))
    }
}

fn standing(state: ConnectionState, safe_until: Option<Instant>) -> Standing {
    match state {
        ConnectionState::Connected { epoch, .. } | ConnectionState::Reconnected { epoch, .. } => {
            match safe_until {
                Some(safe_until) => Standing::Connected { epoch, safe_until },
                None => Standing::Lost { epoch },
            }
        }
        // A read-only server keeps no session alive, so for a lock it does not count as a
        // connection.
        ConnectionState::ReadOnly { epoch, .. } => match safe_until {
            Some(safe_until) => Standing::Suspended { epoch, safe_until },
            None => Standing::Lost { epoch },
        },
        ConnectionState::Suspended { epoch, until } => Standing::Suspended {
            epoch,
            safe_until: until,
        },
        ConnectionState::Lost { epoch, .. } => Standing::Lost { epoch },
        ConnectionState::Closed => Standing::Closed,
        _ => Standing::Connecting,
    }
}
