//! The task of a leader latch: queues in every session, leads, and leaves.
//!
//! Source: `docs/curator-recipes.md` section 17; hazards H5, H29, H39 and H42; Curator's
//! `LeaderLatch`.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};

use minikeeper_client::{Cause, Client, CreateMode, Epoch, Error, ErrorCode, Fired};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    client::{Standing, Standings},
    clock,
    error::LockError,
    leaders::latch::CloseMode,
    observe::TermObserver,
    queue::{
        contending::{Queue, Wait, in_session, no_session},
        order::Claim,
        pace::Pace,
        queue_node::QueueNode,
        waiting::{self, Outcome},
    },
    status::FencingToken,
};

/// Decides whether a leader keeps leading while the connection is down, when it cannot know whether
/// its session lives.
///
/// Source: Curator's `ConnectionStateErrorPolicy`.
///
/// # Examples
/// ```
/// use minikeeper_recipes::{ErrorPolicy, LatchOptions};
///
/// assert_eq!(LatchOptions::default().error_policy, ErrorPolicy::Standard);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ErrorPolicy {
    /// It stops leading at once. After the reconnect it leads again if it is still the first.
    #[default]
    Standard,
    /// It keeps leading until a server may have ended the session.
    Session,
}

/// The role of a latch: leader, with the fencing token, or follower.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{LeaderLatch, Leadership};
///
/// let latch = LeaderLatch::start(client, "/leaders/billing", "host 7")?;
/// latch.wait().await?;
/// match latch.leadership() {
///     Leadership::Leader { token } => println!("send bills, with token {token}"),
///     Leadership::Follower => println!("the leader sends bills"),
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leadership {
    /// The latch leads.
    Leader {
        /// The fencing token. Send it with every action of the leader. It grows with every new
        /// leader. A leader that still leads after a reconnect keeps its token.
        token: FencingToken,
    },
    /// The latch does not lead.
    Follower,
}

/// A stream of changes of a latch's leadership. Returned by
/// [`LeaderLatch::changes`](crate::LeaderLatch::changes).
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{LeaderLatch, Leadership};
///
/// let latch = LeaderLatch::start(client.clone(), "/leaders/billing", "host 7")?;
/// let mut changes = latch.changes();
/// tokio::spawn(async move {
///     while let Some(change) = changes.next().await {
///         match change {
///             Leadership::Leader { token } => println!("start to send bills, with token {token}"),
///             Leadership::Follower => println!("stop"),
///         }
///     }
/// });
/// latch.wait().await?;
/// # Ok(()) });
/// ```
#[derive(Debug)]
pub struct LeadershipChanges {
    state: watch::Receiver<LeadershipState>,
    /// The term whose beginning was returned, but not its end.
    reported: Option<u64>,
    is_silent: Arc<AtomicBool>,
}

impl LeadershipChanges {
    /// Waits for the next change. [`Leadership::Leader`] and [`Leadership::Follower`] alternate.
    /// `None` once the latch no longer contends.
    ///
    /// A slow caller misses terms that began and ended between two calls, but never the end of a
    /// term whose beginning was returned.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    pub async fn next(&mut self) -> Option<Leadership> {
        loop {
            let state = self.state.borrow_and_update().clone();
            match (self.reported, state) {
                (None, LeadershipState::Leader { term, token, .. }) => {
                    self.reported = Some(term);
                    return Some(Leadership::Leader { token });
                }
                (Some(reported), LeadershipState::Leader { term, .. }) if reported == term => {}
                (Some(_), _) => {
                    self.reported = None;
                    return self.follower();
                }
                (None, LeadershipState::Follower) => {}
                (None, LeadershipState::Closed(_) | LeadershipState::Failed(_)) => return None,
            }
            if self.state.changed().await.is_err() {
                return self.reported.take().and_then(|_| self.follower());
            }
        }
    }

    /// Returns the end of a term, unless the latch was closed silently.
    fn follower(&self) -> Option<Leadership> {
        (!self.is_silent.load(Ordering::Relaxed)).then_some(Leadership::Follower)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum LeadershipState {
    Follower,
    Leader {
        /// Counts from 1. Each term begins and ends once.
        term: u64,
        token: FencingToken,
        epoch: Epoch,
    },
    /// With the result of deleting the znode.
    Closed(Result<(), Error>),
    Failed(LockError),
}

/// The state that the latch shares with its task.
pub(crate) struct Contender {
    pub(crate) queue: Queue,
    pub(crate) error_policy: ErrorPolicy,
    pub(crate) state: watch::Sender<LeadershipState>,
    terms: Mutex<u64>,
    /// Whether the latch is closed, in the mode in which the end of its term is not reported.
    is_silent: Arc<AtomicBool>,
    pub(crate) own_path: Mutex<Option<String>>,
    /// Whether the latch is closing: then [`Contender::leave`] deletes its znode, and dropping the place
    /// does not.
    is_leaving: Arc<AtomicBool>,
}

/// The event that ends or interrupts a term.
enum End {
    /// The latch's znode is gone.
    Deleted,
    /// The latch's znode must be read again.
    Changed,
    /// The leadership is no longer certain.
    Unsure,
}

/// How often closing attempts a deletion that a server refuses temporarily before the caller gets
/// the error. Retries then continue in the background.
const CLOSES_MAX: u32 = 5;

impl Contender {
    pub(crate) fn new(queue: Queue, error_policy: ErrorPolicy) -> Self {
        Self {
            queue,
            error_policy,
            state: watch::Sender::new(LeadershipState::Follower),
            terms: Mutex::new(0),
            is_silent: Arc::default(),
            own_path: Mutex::new(None),
            is_leaving: Arc::default(),
        }
    }

    /// Ends the contending for this reason.
    pub(crate) fn fail(&self, error: LockError) {
        *self.own_path.lock() = None;
        self.state.send_replace(LeadershipState::Failed(error));
    }

    pub(crate) fn changes(&self) -> LeadershipChanges {
        LeadershipChanges {
            state: self.state.subscribe(),
            reported: None,
            is_silent: Arc::clone(&self.is_silent),
        }
    }

    pub(crate) fn set_close_mode(&self, mode: CloseMode) {
        self.is_silent
            .store(mode == CloseMode::Silent, Ordering::Relaxed);
    }

    pub(crate) fn leadership(&self) -> Leadership {
        match *self.state.borrow() {
            LeadershipState::Leader { token, epoch, .. } if self.sure_until(epoch).is_some() => {
                Leadership::Leader { token }
            }
            _ => Leadership::Follower,
        }
    }

    /// Returns the time until which a leader of this session certainly leads without hearing from a
    /// server; `None` if it does not lead.
    fn sure_until(&self, epoch: Epoch) -> Option<Instant> {
        let is_kept = self.error_policy == ErrorPolicy::Session;
        match Standing::of(&self.queue.client) {
            Standing::Suspended { .. } if !is_kept => None,
            Standing::Connected {
                epoch: now,
                safe_until,
            }
            | Standing::Suspended {
                epoch: now,
                safe_until,
            } => (now == epoch && clock::now() < safe_until).then_some(safe_until),
            _ => None,
        }
    }

    pub(crate) async fn run(self: Arc<Self>, mut closing: watch::Receiver<bool>) {
        let order = async {
            let _ = closing.wait_for(|is_closing| *is_closing).await;
            // Before the place is dropped, with the other future.
            self.is_leaving.store(true, Ordering::Relaxed);
        };
        let end = tokio::select! {
            biased;
            () = order => None,
            error = self.contend() => Some(error),
        };
        match end {
            Some(error) => self.fail(error),
            None => {
                let left = self.leave().await;
                *self.own_path.lock() = None;
                self.state.send_replace(LeadershipState::Closed(left));
            }
        }
    }

    /// Deletes the znode and waits for the reply. A lost connection does not end the wait.
    async fn leave(&self) -> Result<(), Error> {
        let Some(path) = self.own_path.lock().clone() else {
            return Ok(());
        };
        let client = &self.queue.client;
        let mut pace = Pace::of(client);
        let mut attempts = 1;
        // However this ends, the znode does not stay for as long as the session.
        let mut left = LeftBehind {
            client,
            epoch: Standing::of(client).epoch(),
            path: &path,
        };
        loop {
            let deleted = in_session(client, client.delete_for_certain(&path)).await;
            match deleted.unwrap_or_else(|| Err(no_session("delete", &path))) {
                Ok(()) => {
                    left.epoch = None;
                    return Ok(());
                }
                // It was deleted by the request before, or by another client.
                Err(error) if error.is(ErrorCode::NoNode) => {
                    left.epoch = None;
                    return Ok(());
                }
                // The session lives: retry on its next connection.
                Err(error) if error.cause() == Some(Cause::ConnectionLost) => {
                    pace.pause().await;
                    continue;
                }
                // The znode is still deleted, only later.
                Err(error)
                    if error.code().is_none()
                        || !error.is_retryable()
                        || attempts == CLOSES_MAX =>
                {
                    return Err(error);
                }
                Err(_) => pace.pause().await,
            }
            attempts += 1;
        }
    }

    /// Contends, again in every session and after every temporary refusal. Returns the first error
    /// that a retry cannot help.
    async fn contend(&self) -> LockError {
        let mut pace = Pace::of(&self.queue.client);
        loop {
            match self.contend_once(&mut pace).await {
                Err(error) if !error.is_passing() => return error,
                _ => pace.pause().await,
            }
            if self.own_path.lock().is_some() {
                self.queue.observed.requeued();
            }
        }
    }

    /// Contends with one znode.
    async fn contend_once(&self, pace: &mut Pace) -> Result<(), LockError> {
        let wait = Wait::FOR_EVER;
        *self.own_path.lock() = None;
        self.queue.connected(wait).await?;
        let mode = CreateMode::EphemeralSequential;
        let entered = self
            .queue
            .enter(Claim::Latch.lock_name(), mode, wait)
            .await?;
        let Some((mut place, mut listing)) = entered else {
            return Ok(());
        };
        *self.own_path.lock() = Some(place.path().to_owned());
        place.leave_to(&self.is_leaving);
        // One session has one znode, even after reconnects (hazard H42).
        while let Outcome::Granted(first) =
            waiting::wait(&self.queue, Claim::Latch, place, listing, wait).await?
        {
            let Some(still) = self.lead(first, pace).await? else {
                break;
            };
            if self.queue.connected(wait).await? != still.epoch {
                break;
            }
            (place, listing) = (still, None);
        }
        Ok(())
    }

    /// Leads while that is certain. `None` if the znode is gone, or is not of this session.
    async fn lead(
        &self,
        mut place: QueueNode,
        pace: &mut Pace,
    ) -> Result<Option<QueueNode>, LockError> {
        let client = &self.queue.client;
        let connections = client.connections();
        let mut states = Standings::of(client);
        // Dropped before the place, however this future ends.
        let mut term = None;
        loop {
            let mut again = None;
            match client.get_data_and_watch(place.path()).await {
                Ok((data, watch)) => {
                    // The first in the list may be this latch's znode of an ended session (hazard
                    // H5).
                    if Some(data.stat.ephemeral_owner) != client.session_id() {
                        return Ok(None);
                    }
                    place.watch = Some(watch);
                }
                Err(error) if error.is(ErrorCode::NoNode) => {
                    place.forget();
                    return Ok(None);
                }
                Err(error) if !error.is_retryable() => return Err(error.into()),
                Err(error) if term.is_some() => {
                    again = error.code().map(|_| clock::now() + pace.next());
                }
                Err(error) => {
                    pace.after(&error).await;
                    return Ok(Some(place));
                }
            }
            if self.sure_until(place.epoch).is_none() {
                if term.is_none() {
                    pace.pause().await;
                }
                return Ok(Some(place));
            }
            if again.is_none() {
                pace.reset();
            }
            term.get_or_insert_with(|| Term::begin(self, &place));
            match self
                .until_unsure(&mut place, &mut states, connections, again)
                .await
            {
                End::Changed => {}
                End::Unsure => return Ok(Some(place)),
                End::Deleted => {
                    place.forget();
                    return Ok(None);
                }
            }
        }
    }

    async fn until_unsure(
        &self,
        place: &mut QueueNode,
        states: &mut Standings,
        connections: u64,
        again: Option<Instant>,
    ) -> End {
        let client = &self.queue.client;
        loop {
            let is_interrupted = client.connections() != connections;
            if is_interrupted && self.error_policy == ErrorPolicy::Standard {
                return End::Unsure;
            }
            let Some(until) = self.sure_until(place.epoch) else {
                return End::Unsure;
            };
            let fired = poll_fn(|cx| match &mut place.watch {
                Some(watch) => Pin::new(watch).poll(cx),
                None => Poll::Pending,
            });
            tokio::select! {
                biased;
                fired = fired => {
                    place.watch = None;
                    return match fired {
                        Fired::EpochOver => End::Unsure,
                        fired if fired.is_deleted() => End::Deleted,
                        _ => End::Changed,
                    };
                }
                _ = states.next() => {}
                () = sleep_until(again.unwrap_or(until).min(until)) => {}
            }
            let is_refused = again.is_some_and(|again| clock::now() < again);
            if is_refused {
                continue;
            }
            let is_connected = matches!(Standing::of(client), Standing::Connected { .. });
            if place.watch.is_none() && is_connected {
                return End::Changed;
            }
        }
    }
}

/// A term: the latch leads until this is dropped.
struct Term<'a> {
    state: &'a watch::Sender<LeadershipState>,
    _observed: TermObserver,
}

impl<'a> Term<'a> {
    fn begin(contender: &'a Contender, place: &QueueNode) -> Self {
        let mut terms = contender.terms.lock();
        *terms += 1;
        let token = FencingToken::new(place.czxid);
        contender.state.send_replace(LeadershipState::Leader {
            term: *terms,
            token,
            epoch: place.epoch,
        });
        Self {
            state: &contender.state,
            _observed: contender.queue.observed.term(token),
        }
    }
}

impl Drop for Term<'_> {
    fn drop(&mut self) {
        self.state.send_replace(LeadershipState::Follower);
    }
}

/// The znode of a latch that closes, until it is known to be gone. Dropping this deletes it in the
/// background.
struct LeftBehind<'a> {
    client: &'a Client,
    /// The session of the znode, or a later one; `None` if nothing is left.
    epoch: Option<Epoch>,
    path: &'a str,
}

impl Drop for LeftBehind<'_> {
    fn drop(&mut self) {
        if let Some(epoch) = self.epoch {
            // A server's path is valid.
            let _ = self.client.clean_up(epoch, self.path);
        }
    }
}
