//! The state that the guards of one hold share: whether the lock is still held, and its release.
//!
//! Source: `docs/curator-recipes.md` sections 4.7, 9 and 10.

use std::{
    future::{Future, pending, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
};

use minikeeper_client::{Call, Client, Data, Epoch, Error, ErrorCode, OneShot};
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::{
    client::{Standing, Standings},
    clock,
    error::Released,
    locks::local::Turn,
    observe::HoldObserver,
    queue::{
        contending::{Queue, no_session},
        pace::Pace,
        queue_node::QueueNode,
    },
    status::{FencingToken, Loss, Status},
};

/// The hold of a lock, shared by its guards. Dropping the last guard deletes the znode. The hold
/// counts guards, not references: other code keeps references to read the status.
pub(crate) struct Held {
    pub(crate) client: Client,
    pub(crate) path: String,
    pub(crate) epoch: Epoch,
    pub(crate) token: FencingToken,
    state: Mutex<HoldState>,
}

struct HoldState {
    guards: usize,
    place: Option<QueueNode>,
    turn: Option<Turn>,
    /// Never changes once it is set.
    loss: Option<Loss>,
    /// Until the release begins.
    hold: Option<HoldObserver>,
}

impl HoldState {
    /// Records the loss, unless an earlier one is known.
    fn lose(&mut self, loss: Loss) {
        if self.loss.is_none() {
            self.loss = Some(loss);
            if let Some(hold) = &mut self.hold {
                hold.lost(loss);
            }
        }
    }
}

impl Held {
    /// Begins a hold. The turn is that among the tasks of this process, if the lock is passed on
    /// between them.
    pub(crate) fn new(
        queue: &Queue,
        place: QueueNode,
        turn: Option<Turn>,
        token: FencingToken,
    ) -> Self {
        let hold = queue.observed.hold(token, queue.options.hold_warn_after);
        Self {
            client: queue.client.clone(),
            path: place.path().to_owned(),
            epoch: place.epoch,
            token,
            state: Mutex::new(HoldState {
                guards: 1,
                place: Some(place),
                turn,
                loss: None,
                hold,
            }),
        }
    }

    /// Adds a guard; returns false if the last one has been dropped.
    pub(crate) fn enter(&self) -> bool {
        let mut state = self.state.lock();
        let is_kept = state.guards > 0;
        state.guards += usize::from(is_kept);
        is_kept
    }

    /// Removes a guard; returns whether it was the last one, which has to release the lock.
    pub(crate) fn leave(&self) -> bool {
        let mut state = self.state.lock();
        state.guards -= 1;
        state.guards == 0
    }

    /// Returns whether there is a guard.
    pub(crate) fn is_kept(&self) -> bool {
        self.state.lock().guards > 0
    }

    /// Records that a server reported the znode missing.
    pub(crate) fn set_deleted(&self) {
        // If the loss is already known, its reason is more precise.
        self.status();
        self.state.lock().lose(Loss::NodeDeleted);
    }

    /// Releases the lock in the background.
    pub(crate) fn give_up(&self) {
        // A loss that no call has noticed is reported now.
        let is_observed = self.state.lock().hold.is_some();
        if is_observed {
            self.status();
        }
        if !self.pass() {
            drop(self.take());
        }
    }

    /// Passes the lock on within this process, if it is held and another task waits for it.
    fn pass(&self) -> bool {
        let may_pass = self.state.lock().turn.as_ref().is_some_and(Turn::may_pass);
        if !may_pass || self.status() != Status::Held {
            return false;
        }
        let (Some(place), Some(turn), _) = self.take() else {
            return false;
        };
        turn.pass(place);
        true
    }

    /// Ends the hold.
    fn take(&self) -> (Option<QueueNode>, Option<Turn>, Option<HoldObserver>) {
        let (place, turn, mut hold) = {
            let state = &mut *self.state.lock();
            (state.place.take(), state.turn.take(), state.hold.take())
        };
        if let Some(hold) = &mut hold {
            hold.end();
        }
        (place, turn, hold)
    }

    pub(crate) fn status(&self) -> Status {
        let mut state = self.state.lock();
        if let Some(loss) = state.loss {
            return Status::Lost(loss);
        }
        let status = self.judge(&mut state);
        match (status, &mut state.hold) {
            (Status::Lost(loss), _) => state.lose(loss),
            (_, Some(hold)) => hold.set_unsure(status != Status::Held),
            _ => {}
        }
        status
    }

    fn judge(&self, state: &mut HoldState) -> Status {
        let standing = Standing::of(&self.client);
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
        if state
            .place
            .as_mut()
            .is_some_and(QueueNode::is_reported_deleted)
        {
            return Status::Lost(Loss::NodeDeleted);
        }
        Status::Held
    }

    /// Returns the time at which the status may change without a message from a server.
    pub(crate) fn safe_until(&self) -> Option<Instant> {
        match Standing::of(&self.client) {
            Standing::Connected { safe_until, .. } | Standing::Suspended { safe_until, .. } => {
                Some(safe_until)
            }
            _ => None,
        }
    }

    /// Waits until `fits` returns a value for the status.
    pub(crate) async fn until<T>(&self, fits: impl Fn(Status) -> Option<T>) -> T {
        let mut states = Standings::of(&self.client);
        let mut own = OwnWatch::None;
        let mut pace = Pace::of(&self.client);
        loop {
            if let Some(result) = fits(self.status()) {
                return result;
            }
            let is_connected = matches!(Standing::of(&self.client), Standing::Connected { .. });
            if matches!(own, OwnWatch::None) && is_connected {
                own = OwnWatch::Asking(self.client.get_data_and_watch(&self.path));
            }
            let mut change = pin!(states.next());
            let mut alarm = pin!(self.safe_until().map(sleep_until));
            let is_gone = poll_fn(|cx| {
                // A caller that polls this beside its work must not work on once the loss is known,
                // even if the timer has not fired yet.
                if fits(self.status()).is_some() {
                    return Poll::Ready(false);
                }
                if let Poll::Ready(is_gone) = own.poll(&mut pace, cx) {
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
                self.state.lock().lose(Loss::NodeDeleted);
            }
        }
    }

    /// Deletes the znode and waits for the reply.
    pub(crate) async fn release(&self) -> Result<Released, Error> {
        if self.pass() {
            return Ok(Released::PassedOn);
        }
        let is_lost = matches!(self.status(), Status::Lost(_));
        let (place, turn, hold) = self.take();
        let Some(mut place) = place else {
            return Ok(Released::AlreadyGone);
        };
        if is_lost {
            // Dropping the place begins the deletion. The next task of this process queues behind
            // it.
            drop(place);
            drop(turn);
            return Ok(Released::AlreadyGone);
        }
        let mut turn = turn;
        let mut pace = Pace::of(&self.client);
        let mut attempts = 0;
        loop {
            attempts += 1;
            let delete = self.client.delete_for_certain(place.path());
            // The next task of this process queues behind the deletion.
            drop(turn.take());
            // From here on the request deletes it, even if its reply is lost.
            place.forget();
            let answer = tokio::select! {
                biased;
                answer = delete => answer,
                () = self.session_over() => Err(no_session("delete", place.path())),
            };
            match answer {
                Ok(()) => return Ok(Released::Done),
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(Released::AlreadyGone),
                Err(error) => {
                    // The znode must be deleted even if it outlives this session.
                    place.remember();
                    let is_refused = error.code().is_some() && error.is_retryable();
                    if !is_refused || attempts == RELEASES_MAX {
                        return Err(error);
                    }
                }
            }
            if let Some(hold) = &hold {
                hold.of.retried();
            }
            pace.pause().await;
        }
    }

    /// Waits until the lock is lost with its session or with the client. Sends no request.
    pub(crate) async fn session_over(&self) {
        let mut states = Standings::of(&self.client);
        while !matches!(self.status(), Status::Lost(_)) {
            let due = async {
                match self.safe_until() {
                    Some(until) => sleep_until(until).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                next = states.next() => if next.is_none() {
                    return;
                },
                () = due => {}
            }
        }
    }
}

/// How often a release that a server refuses temporarily is attempted before the caller gets the
/// error. Retries then continue in the background.
const RELEASES_MAX: u32 = 5;

/// The watch on the holder's znode while a caller waits for the loss.
enum OwnWatch {
    None,
    /// The read that registers the watch.
    Asking(Call<(Data, OneShot)>),
    /// The server has refused the read temporarily.
    Pausing(Pin<Box<Sleep>>),
    Watching(OneShot),
}

impl OwnWatch {
    /// Ready when the status must be checked again; true if the znode is gone.
    fn poll(&mut self, pace: &mut Pace, cx: &mut Context<'_>) -> Poll<bool> {
        if let Self::Asking(asking) = self {
            match Pin::new(asking).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok((_, watch))) => *self = Self::Watching(watch),
                Poll::Ready(Err(error)) => {
                    if error.is(ErrorCode::NoNode) {
                        *self = Self::None;
                        return Poll::Ready(true);
                    }
                    if error.code().is_none() {
                        // The connection is down: a change of state follows or has arrived.
                        *self = Self::None;
                        return Poll::Pending;
                    }
                    *self = Self::Pausing(Box::pin(sleep(pace.next())));
                }
            }
        }
        if let Self::Pausing(pause) = self
            && pause.as_mut().poll(cx).is_ready()
        {
            *self = Self::None;
            return Poll::Ready(false);
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
