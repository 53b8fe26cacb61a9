//! Tracks how certain the client is of its session, which `zookeeper-client` does not report.
//!
//! It numbers the sessions, and computes the time until which a session is certainly alive: the
//! session timeout after the latest request with a reply.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use minikeeper_client::{Epoch, SessionId};
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{broadcast, watch},
    time::Instant,
};
use zookeeper_client::{Client, SessionState, StateWatcher};

use minikeeper_recipes::client::Standing;

use crate::clock;

/// How many changes of standing may wait for a subscriber before the oldest are dropped.
const STANDINGS_WAITING_MAX: usize = 1024;

/// The state that clones of an adapter share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The latest epoch that is over.
    over: watch::Sender<Epoch>,
    /// The number of the latest client.
    newest: watch::Sender<u64>,
    pub(crate) runtime: Handle,
}

/// A session of a client, and the epoch of a request made now.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) client: Arc<Client>,
    pub(crate) epoch: Epoch,
    /// The number of the client within the adapter.
    pub(crate) generation: u64,
    /// Whether no request will get a reply any more.
    pub(crate) is_over: bool,
}

struct State {
    client: Arc<Client>,
    /// The number of clients so far.
    generation: u64,
    /// The first epoch of the client's session.
    first_epoch: Epoch,
    watcher: StateWatcher,
    seen: SessionState,
    certainty: Certainty,
    epoch: Epoch,
    /// Increases with each change of the connection's state.
    connections: u64,
    /// When the latest request with a reply was made.
    contact: Option<Instant>,
    /// How long a session lives after a request.
    lifetime: Duration,
    /// Whether another client replaces this one when its session is over.
    is_renewed: bool,
    /// `None` once the last change was sent.
    told: Option<broadcast::Sender<Standing>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Certainty {
    /// No request got a reply for too long, or none has got one yet.
    Unsure,
    Sure,
    /// The client's session is over.
    Over,
}

/// The next task of the monitor.
pub(crate) enum Errand {
    Keep {
        /// When to make the next request, if there is a connection.
        ask: Option<Instant>,
        /// When the session will be presumed lost.
        look: Option<Instant>,
    },
    Renew,
    End,
}

impl Shared {
    pub(crate) fn new(client: Client, is_renewed: bool) -> Self {
        let shared = Self {
            state: Mutex::new(State {
                watcher: client.state_watcher(),
                seen: client.state(),
                certainty: Certainty::Unsure,
                generation: 1,
                first_epoch: Epoch(1),
                epoch: Epoch(0),
                connections: 1,
                contact: None,
                lifetime: lifetime(&client),
                is_renewed,
                told: Some(broadcast::Sender::new(STANDINGS_WAITING_MAX)),
                client: Arc::new(client),
            }),
            over: watch::Sender::new(Epoch(0)),
            newest: watch::Sender::new(1),
            runtime: Handle::current(),
        };
        shared.with(State::check_writable);
        shared
    }

    /// Updates the state, then passes it to `act`.
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        state.refresh(clock::now());
        let result = act(&mut state);
        let over = match state.certainty {
            Certainty::Sure => Epoch(state.epoch.0 - 1),
            Certainty::Unsure | Certainty::Over => state.epoch,
        };
        drop(state);
        self.over.send_if_modified(|told| {
            let is_news = *told < over;
            *told = over.max(*told);
            is_news
        });
        result
    }

    pub(crate) fn session(&self) -> Session {
        self.with(|state| Session {
            client: Arc::clone(&state.client),
            epoch: match state.certainty {
                Certainty::Sure => state.epoch,
                Certainty::Unsure | Certainty::Over => Epoch(state.epoch.0 + 1),
            },
            generation: state.generation,
            is_over: state.certainty == Certainty::Over,
        })
    }

    /// Waits for a session after this one; false if there will be none.
    pub(crate) async fn renewed(&self, session: &Session) -> bool {
        let mut newest = self.newest.subscribe();
        self.with(|state| state.is_renewed)
            && newest
                .wait_for(|generation| *generation > session.generation)
                .await
                .is_ok()
    }

    /// Returns whether the latest session is that of this epoch. One session may have several
    /// epochs: it can resume after it was presumed lost.
    pub(crate) fn has_session_of(&self, epoch: Epoch) -> bool {
        self.with(|state| epoch >= state.first_epoch)
    }

    pub(crate) fn session_id(&self) -> Option<SessionId> {
        self.with(|state| match state.certainty {
            Certainty::Over => None,
            _ => Some(SessionId(state.client.session_id().0)),
        })
    }

    pub(crate) fn standing(&self) -> Standing {
        self.with(|state| state.standing())
    }

    pub(crate) fn connections(&self) -> u64 {
        self.with(|state| state.connections)
    }

    pub(crate) fn subscribe(&self) -> Option<broadcast::Receiver<Standing>> {
        self.with(|state| state.told.as_ref().map(broadcast::Sender::subscribe))
    }

    /// Waits until this epoch is over.
    pub(crate) fn epoch_over(&self, epoch: Epoch) -> impl Future<Output = ()> + Send + 'static {
        let mut over = self.over.subscribe();
        async move {
            // An error means that the adapter was dropped, and the session with it.
            let _ = over.wait_for(|over| *over >= epoch).await;
        }
    }

    /// Records the reply to a request that was made at this time.
    pub(crate) fn answered(&self, generation: u64, made: Instant) {
        self.with(|state| {
            if generation == state.generation {
                state.answered(made);
            }
        });
    }

    /// Records that a server has silently assigned another session.
    pub(crate) fn replaced(&self, generation: u64) {
        self.with(|state| {
            if generation == state.generation {
                state.end();
            }
        });
    }

    /// Replaces the client with one that has a new session.
    pub(crate) fn renew(&self, client: Client) {
        let generation = self.with(|state| {
            state.watcher = client.state_watcher();
            state.seen = client.state();
            state.certainty = Certainty::Unsure;
            state.generation += 1;
            state.first_epoch = Epoch(state.epoch.0 + 1);
            state.connections += 1;
            state.contact = None;
            state.lifetime = lifetime(&client);
            state.client = Arc::new(client);
            state.check_writable();
            state.generation
        });
        self.newest.send_replace(generation);
    }

    /// Returns the stream of states of the latest client.
    pub(crate) fn watcher(&self) -> StateWatcher {
        self.with(|state| state.client.state_watcher())
    }

    pub(crate) fn errand(&self) -> Errand {
        let now = clock::now();
        self.with(|state| {
            let look = match state.certainty {
                Certainty::Over if state.is_renewed => return Errand::Renew,
                Certainty::Over => return Errand::End,
                Certainty::Unsure => None,
                Certainty::Sure => state.safe_until(),
            };
            let is_connected = state.seen == SessionState::SyncConnected;
            let ask = match (state.certainty, state.contact) {
                (Certainty::Sure, Some(contact)) => contact + state.lifetime / 4,
                _ => now,
            };
            let ask = is_connected.then_some(ask);
            Errand::Keep { ask, look }
        })
    }
}

impl State {
    /// Updates the state from the client's state and the time.
    fn refresh(&mut self, now: Instant) {
        // The client keeps only its latest state, but never loses the fact that it has changed.
        while let Some(state) = changed(&mut self.watcher) {
            self.connections += 1;
            let before = std::mem::replace(&mut self.seen, state);
            match state {
                SessionState::SyncConnected => {
                    if before == SessionState::SyncConnected {
                        self.notify_suspended();
                    }
                    if self.certainty == Certainty::Sure {
                        self.tell(self.standing());
                    }
                }
                SessionState::Disconnected => self.notify_suspended(),
                _ => self.end(),
            }
        }
        if self.certainty == Certainty::Sure && self.safe_until().is_none_or(|until| until <= now) {
            self.certainty = Certainty::Unsure;
            self.tell(self.standing());
        }
    }

    /// Ends a session of a read-only server, which is replaced as soon as another server is found.
    fn check_writable(&mut self) {
        if self.client.session().is_readonly() {
            self.end();
        }
    }

    fn answered(&mut self, made: Instant) {
        if self.contact.is_none_or(|contact| contact < made) {
            self.contact = Some(made);
        }
        let is_alive = self.safe_until().is_some_and(|until| until > clock::now());
        if self.certainty == Certainty::Unsure && is_alive {
            self.certainty = Certainty::Sure;
            self.epoch.0 += 1;
            self.tell(self.standing());
        }
    }

    fn safe_until(&self) -> Option<Instant> {
        Some(self.contact? + self.lifetime)
    }

    fn standing(&self) -> Standing {
        let epoch = self.epoch;
        match (self.certainty, self.safe_until()) {
            (Certainty::Sure, Some(safe_until)) if self.seen == SessionState::SyncConnected => {
                Standing::Connected { epoch, safe_until }
            }
            (Certainty::Sure, Some(safe_until)) => Standing::Suspended { epoch, safe_until },
            (Certainty::Unsure, _) if epoch == Epoch(0) => Standing::Connecting,
            _ => Standing::Lost { epoch },
        }
    }

    /// Records that the client's session is over.
    fn end(&mut self) {
        if self.certainty == Certainty::Over {
            return;
        }
        let is_news = self.certainty == Certainty::Sure;
        self.certainty = Certainty::Over;
        if is_news {
            self.tell(self.standing());
        }
        if !self.is_renewed {
            self.told = None;
        }
    }

    fn tell(&self, standing: Standing) {
        if let Some(told) = &self.told {
            // There may be no subscriber.
            let _ = told.send(standing);
        }
    }

    fn notify_suspended(&self) {
        if let (Certainty::Sure, Some(safe_until)) = (self.certainty, self.safe_until()) {
            let epoch = self.epoch;
            self.tell(Standing::Suspended { epoch, safe_until });
        }
    }
}

/// Returns the session timeout minus an allowance for clock drift.
fn lifetime(client: &Client) -> Duration {
    let timeout = client.session_timeout();
    let allowance = (timeout / 50).max(Duration::from_millis(20));
    timeout.saturating_sub(allowance)
}

/// Returns the state if it has changed since the last call.
fn changed(watcher: &mut StateWatcher) -> Option<SessionState> {
    let mut cx = Context::from_waker(Waker::noop());
    match pin!(watcher.changed()).poll(&mut cx) {
        Poll::Ready(state) => Some(state),
        Poll::Pending => None,
    }
}
