//! What holds a lock, says whether it is still held, and gives it back.
//!
//! Source: curator-recipes reference sections 4.7, 9 and 10.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use minikeeper_client::{Cause, Data, Epoch, Error, ErrorCode, Multi, MultiResult};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::{
    client::{Standing, StateStream as _, ZooKeeper},
    clock,
    error::Released,
    local::{Hold, Turn},
    place::Place,
    status::{FencingToken, Loss, Status},
};

/// What guards of the same hold share. The znode goes when the last one does.
pub(crate) struct Held<C: ZooKeeper> {
    pub(crate) client: C,
    pub(crate) path: String,
    pub(crate) epoch: Epoch,
    pub(crate) token: FencingToken,
    state: Mutex<State<C>>,
}

struct State<C: ZooKeeper> {
    place: Option<Place<C>>,
    /// Among the tasks of this process, where the lock is passed on between them.
    turn: Option<(Turn<C>, Hold)>,
    /// Final.
    loss: Option<Loss>,
}

impl<C: ZooKeeper> Held<C> {
    pub(crate) fn new(client: C, place: Place<C>, token: FencingToken) -> Self {
        Self {
            client,
            path: place.path().to_owned(),
            epoch: place.epoch,
            token,
            state: Mutex::new(State {
                place: Some(place),
                turn: None,
                loss: None,
            }),
        }
    }

    /// The same for a lock that is passed on.
    pub(crate) fn with_turn(self, turn: Turn<C>, hold: Hold) -> Self {
        self.state.lock().turn = Some((turn, hold));
        self
    }

    /// Passes the lock on inside this process, if somebody there waits for it and it is held.
    fn pass(&self) -> bool {
        let is_held = self.status() == Status::Held;
        let state = &mut *self.state.lock();
        match state.turn.take() {
            Some((turn, hold)) if is_held && turn.may_pass(hold) => {
                let place = state.place.take();
                let is_passed = place.is_some();
                if let Some(place) = place {
                    turn.pass(place, hold);
                }
                is_passed
            }
            turn => {
                state.turn = turn;
                false
            }
        }
    }

    pub(crate) fn status(&self) -> Status {
        let mut state = self.state.lock();
        if let Some(loss) = state.loss {
            return Status::Lost(loss);
        }
        let status = self.judge(&mut state);
        if let Status::Lost(loss) = status {
            state.loss = Some(loss);
        }
        status
    }

    fn judge(&self, state: &mut State<C>) -> Status {
        let standing = self.client.standing();
        let now = clock::now();
        match standing {
            Standing::Closed => return Status::Lost(Loss::Closed),
            Standing::Connected { epoch, safe_until }
            | Standing::Suspended { epoch, safe_until }
                if epoch == self.epoch =>
            {
                if now >= safe_until {
                    return Status::Lost(Loss::Presumed);
                }
                if let Standing::Suspended { .. } = standing {
                    return Status::Suspended { until: safe_until };
                }
            }
            Standing::Connecting => {}
            _ => return Status::Lost(Loss::SessionOver),
        }
        if state.place.as_mut().is_some_and(Place::is_seen_to_go) {
            return Status::Lost(Loss::NodeDeleted);
        }
        Status::Held
    }

    /// When the status may change without any word from outside.
    fn safe_until(&self) -> Option<Instant> {
        match self.client.standing() {
            Standing::Connected { safe_until, .. } | Standing::Suspended { safe_until, .. } => {
                Some(safe_until)
            }
            _ => None,
        }
    }

    /// Resolves when the status fits.
    async fn until<T>(&self, fits: impl Fn(Status) -> Option<T>) -> T {
        let mut states = self.client.states();
        let mut own = OwnWatch::<C>::None;
        loop {
            if let Some(result) = fits(self.status()) {
                return result;
            }
            let is_connected = matches!(self.client.standing(), Standing::Connected { .. });
            if matches!(own, OwnWatch::None) && is_connected {
                own = OwnWatch::Asking(Box::pin(self.client.watch_data(&self.path)));
            }
            let mut change = pin!(states.next());
            let mut alarm = pin!(self.safe_until().map(sleep_until));
            let is_gone = poll_fn(|cx| {
                if let Poll::Ready(is_gone) = own.poll(cx) {
                    return Poll::Ready(is_gone);
                }
                let alarm = alarm.as_mut().as_pin_mut();
                let is_due = alarm.is_some_and(|alarm| alarm.poll(cx).is_ready());
                if is_due || change.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(false);
                }
                Poll::Pending
            })
            .await;
            if is_gone {
                self.state.lock().loss.get_or_insert(Loss::NodeDeleted);
            }
        }
    }

    /// Gives the znode back and waits for the answer.
    async fn release(&self) -> Result<Released, Error> {
        if self.pass() {
            return Ok(Released::PassedOn);
        }
        let (place, turn) = {
            let state = &mut *self.state.lock();
            (state.place.take(), state.turn.take())
        };
        let Some(mut place) = place else {
            return Ok(Released::AlreadyGone);
        };
        let delete = self.client.delete(place.path());
        // The next of this process queues behind the deletion.
        drop(turn);
        // From here on the request sees to it, answered or not.
        place.forget();
        match delete.await {
            Ok(()) => Ok(Released::Done),
            Err(error) if error.is(ErrorCode::NoNode) => Ok(Released::AlreadyGone),
            Err(error) => {
                // The session's end takes it away; until then it is tried again.
                if !matches!(error.cause(), Some(Cause::SessionLost | Cause::Closed)) {
                    self.client.clean_up(self.epoch, place.path());
                }
                Err(error)
            }
        }
    }
}

impl<C: ZooKeeper> Drop for Held<C> {
    fn drop(&mut self) {
        if self.state.get_mut().turn.is_some() {
            self.pass();
        }
    }
}

/// A watch on its way.
type Asking<W> = Pin<Box<dyn Future<Output = Result<(Data, W), Error>> + Send>>;

/// The watch on the own znode, of somebody who waits for its loss.
enum OwnWatch<C: ZooKeeper> {
    None,
    Asking(Asking<C::Watch>),
    Watching(C::Watch),
}

impl<C: ZooKeeper> OwnWatch<C> {
    /// Ready when there is something to think about: whether the znode has gone.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if let Self::Asking(asking) = self {
            match asking.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok((_, watch))) => *self = Self::Watching(watch),
                Poll::Ready(Err(error)) => {
                    *self = Self::None;
                    if error.is(ErrorCode::NoNode) {
                        return Poll::Ready(true);
                    }
                    // There is no connection: a change of state has come, or will.
                }
            }
        }
        if let Self::Watching(watch) = self
            && let Poll::Ready(fired) = Pin::new(watch).poll(cx)
        {
            *self = Self::None;
            return Poll::Ready(fired.is_deleted());
        }
        Poll::Pending
    }
}

/// A lock that is held. Dropping it gives it back without waiting.
///
/// Made by the `acquire` methods of locks. Guards may move to other tasks, and be dropped
/// anywhere.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_recipes::{InterProcessMutex, Released, Status};
///
/// let lock = InterProcessMutex::new(client, "/locks/a")?;
/// let guard = lock.acquire().await?;
/// assert_eq!(guard.status(), Status::Held);
/// assert_eq!(guard.release().await?, Released::Done);
/// # Ok(()) }
/// ```
#[must_use = "a guard that is dropped gives its lock back"]
pub struct Guard<C: ZooKeeper> {
    pub(crate) held: Arc<Held<C>>,
}

impl<C: ZooKeeper> Guard<C> {
    pub(crate) fn new(held: Held<C>) -> Self {
        Self {
            held: Arc::new(held),
        }
    }

    /// What to send along with everything that is done under the lock.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessMutex;
    /// # let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
    /// let guard = lock.acquire().await?;
    /// let first = guard.token();
    /// guard.release().await?;
    /// // Every grant has a larger one.
    /// assert!(lock.acquire().await?.token() > first);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.held.token
    }

    /// The path of the lock's znode.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessMutex;
    /// # let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
    /// let guard = lock.acquire().await?;
    /// assert!(guard.path().starts_with("/locks/a/"));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn path(&self) -> &str {
        &self.held.path
    }

    /// The session the lock is held in.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessMutex;
    /// # let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
    /// let guard = lock.acquire().await?;
    /// assert_eq!(guard.epoch(), client.epoch());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.held.epoch
    }

    /// Whether the lock is still held. Asks nobody: it compares what is known with the time, so
    /// that a process that was paused sees the loss at its first look.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::{InterProcessMutex, Loss, Status};
    /// # let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
    /// let guard = lock.acquire().await?;
    /// assert_eq!(guard.status(), Status::Held);
    /// client.close().await;
    /// assert_eq!(guard.status(), Status::Lost(Loss::Closed));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn status(&self) -> Status {
        self.held.status()
    }

    /// Until when nobody else can hold the lock, whatever has happened to the connection; `None`
    /// if it is lost.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessMutex;
    /// # let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
    /// let guard = lock.acquire().await?;
    /// // Whatever is begun now must be done by then, or be protected by the token.
    /// println!("until {:?}", guard.deadline());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match self.status() {
            Status::Held => self.held.safe_until(),
            Status::Suspended { until } => Some(until),
            Status::Lost(_) => None,
        }
    }

    /// Resolves when the lock is lost.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::{InterProcessMutex, Loss};
    /// # let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
    /// let guard = lock.acquire().await?;
    /// // Somebody deletes its znode by hand.
    /// client.delete(guard.path(), None).await?;
    /// assert_eq!(guard.lost().await, Loss::NodeDeleted);
    /// # Ok(()) }
    /// ```
    pub async fn lost(&self) -> Loss {
        self.held
            .until(|status| match status {
                Status::Lost(loss) => Some(loss),
                Status::Held | Status::Suspended { .. } => None,
            })
            .await
    }

    /// Resolves when the lock is not certainly held any more: there is no connection, or it is
    /// lost.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::{InterProcessMutex, Status};
    /// # let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
    /// let guard = lock.acquire().await?;
    /// let session = client.session_id().ok_or("it is connected")?;
    /// let (status, _) = tokio::join!(guard.unsure(), async { server.disconnect(session) });
    /// assert_ne!(status, Status::Held);
    /// # Ok(()) }
    /// ```
    pub async fn unsure(&self) -> Status {
        self.held
            .until(|status| (status != Status::Held).then_some(status))
            .await
    }

    /// Runs a future as long as the lock is held; drops it when the lock is lost.
    ///
    /// # Errors
    /// Why the lock was lost: the work is dropped, and what it did last may have happened without
    /// the lock.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::InterProcessMutex;
    /// # let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
    /// let guard = lock.acquire().await?;
    /// let sum = guard.run(async { 40 + 2 }).await;
    /// assert_eq!(sum, Ok(42));
    /// # Ok(()) }
    /// ```
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Loss> {
        tokio::select! {
            biased;
            loss = self.lost() => Err(loss),
            result = work => Ok(result),
        }
    }

    /// Changes data in the same ZooKeeper, if and only if the lock is still held: one multi that
    /// begins with a check of the lock's znode. No token is needed for that.
    ///
    /// # Errors
    /// [`Error::MultiRefused`] with index 0 if the lock is lost; the other operations count from 1.
    /// [`Error::OutcomeUnknown`] when the connection is lost meanwhile: look whether it was made.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::{CreateMode, Error};
    /// # use minikeeper_recipes::InterProcessMutex;
    /// # client.create("/balance", b"0", CreateMode::Persistent).await?;
    /// # let lock = InterProcessMutex::new(client.clone(), "/locks/a")?;
    /// let guard = lock.acquire().await?;
    /// guard.multi(|multi| multi.set_data("/balance", b"7", None)).await?;
    /// // Somebody deletes its znode by hand: nothing is written any more.
    /// client.delete(guard.path(), None).await?;
    /// let refused = guard.multi(|multi| multi.set_data("/balance", b"9", None)).await;
    /// assert!(matches!(refused, Err(Error::MultiRefused { index: 0, .. })));
    /// # Ok(()) }
    /// ```
    pub async fn multi(
        &self,
        change: impl FnOnce(Multi) -> Multi,
    ) -> Result<Vec<MultiResult>, Error> {
        let multi = change(Multi::new().check(self.path(), None));
        self.held.client.multi(multi).await
    }

    /// Gives the lock back and waits until that is certain.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] or [`Error::NotSent`] when that is not certain: nothing is to be
    /// done, it will be given back, with the next connection or with the session's end.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::{InterProcessMutex, Released};
    /// # let lock = InterProcessMutex::new(client, "/locks/a")?;
    /// let guard = lock.acquire().await?;
    /// assert_eq!(guard.release().await?, Released::Done);
    /// // It is free now, for certain.
    /// assert!(lock.try_acquire().await?.is_some());
    /// # Ok(()) }
    /// ```
    pub async fn release(self) -> Result<Released, Error> {
        match Arc::try_unwrap(self.held) {
            Ok(held) => held.release().await,
            Err(_) => Ok(Released::StillHeld),
        }
    }
}

impl<C: ZooKeeper> fmt::Debug for Guard<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("path", &self.held.path)
            .field("token", &self.held.token)
            .finish_non_exhaustive()
    }
}
