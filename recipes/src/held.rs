//! A lock that is held, as its guards share it: whether it still is, and how it goes.
//!
//! Source: curator-recipes reference sections 4.7, 9 and 10.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
};

use minikeeper_client::{Cause, Data, Epoch, Error, ErrorCode};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::{
    client::{Standing, StateStream as _, ZooKeeper},
    clock,
    error::Released,
    local::Turn,
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
    turn: Option<Turn<C>>,
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
    pub(crate) fn with_turn(self, turn: Turn<C>) -> Self {
        self.state.lock().turn = Some(turn);
        self
    }

    /// Passes the lock on inside this process, if somebody there waits for it and it is held.
    fn pass(&self) -> bool {
        let may_pass = self.state.lock().turn.as_ref().is_some_and(Turn::may_pass);
        if !may_pass || self.status() != Status::Held {
            return false;
        }
        let (Some(place), Some(turn)) = self.take() else {
            return false;
        };
        turn.pass(place);
        true
    }

    fn take(&self) -> (Option<Place<C>>, Option<Turn<C>>) {
        let state = &mut *self.state.lock();
        (state.place.take(), state.turn.take())
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
    pub(crate) fn safe_until(&self) -> Option<Instant> {
        match self.client.standing() {
            Standing::Connected { safe_until, .. } | Standing::Suspended { safe_until, .. } => {
                Some(safe_until)
            }
            _ => None,
        }
    }

    /// Resolves when the status fits.
    pub(crate) async fn until<T>(&self, fits: impl Fn(Status) -> Option<T>) -> T {
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
    pub(crate) async fn release(&self) -> Result<Released, Error> {
        if self.pass() {
            return Ok(Released::PassedOn);
        }
        let (place, turn) = self.take();
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
        self.pass();
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
