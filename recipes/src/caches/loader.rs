//! The task of a cache: carries out what its [`CacheState`] decides.

use std::{
    collections::VecDeque,
    future::{Future as _, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
};

use minikeeper_client::{
    AddWatchMode, Backoff, Call, Cause, Client, Data, Error, ErrorCode, GapCause, Names,
    Notification, PersistentWatcher, Stat,
};
use tokio::{
    sync::watch,
    time::{Sleep, sleep},
};

use super::{
    changes::CacheError,
    curator_cache::CacheShared,
    options::CacheOptions,
    state::{CacheReply, CacheRequest, CacheState, ReadKind},
    znode::CachedZnode,
};
use crate::queue::pace::{PAUSE_MAX, PAUSE_MIN};

/// How many events and replies are handled before readers see the changes.
const BATCH_MAX: usize = 1024;

/// See the [module](self).
pub(crate) struct Loader {
    client: Client,
    options: CacheOptions,
    shared: Arc<CacheShared>,
    state: CacheState,
    watcher: PersistentWatcher,
    /// The requests without a reply, in the order in which the replies come.
    in_flight: VecDeque<(CacheRequest, ReadCall)>,
    backoff: Backoff,
    /// No request is made before this ends: the server has refused some.
    pause: Option<Pin<Box<Sleep>>>,
}

/// A request without a reply.
enum ReadCall {
    Data(Call<Data>),
    Stat(Call<Option<Stat>>),
    Children(Call<Names>),
}

impl Loader {
    pub(crate) fn new(
        client: Client,
        path: &str,
        options: CacheOptions,
        shared: Arc<CacheShared>,
    ) -> Result<Self, Error> {
        let mode = match options.depth_max {
            Some(0) => AddWatchMode::Persistent,
            _ => AddWatchMode::PersistentRecursive,
        };
        Ok(Self {
            state: CacheState::new(path, options.clone()),
            watcher: PersistentWatcher::new(client.clone(), path, mode)?,
            in_flight: VecDeque::new(),
            backoff: Backoff::new(PAUSE_MIN, PAUSE_MAX, client.random()),
            pause: None,
            client,
            options,
            shared,
        })
    }

    /// Loads and follows the tree until the cache is closed or fails.
    pub(crate) async fn run(mut self, mut closing: watch::Receiver<bool>) {
        let shared = Arc::clone(&self.shared);
        let clears = self.options.clears_on_close;
        let end = tokio::select! {
            biased;
            // It fails if all handles were dropped.
            _ = closing.wait_for(|is_closing| *is_closing) => shared.closed(),
            end = poll_fn(|cx| self.poll(cx)) => end,
        };
        let end = match end {
            CacheError::Client(error) if error.cause() == Some(Cause::Closed) => {
                shared.client_closed()
            }
            end => end,
        };
        // The watch is removed before the cache counts as closed.
        drop(self);
        shared.finish(end, clears);
    }

    /// Works until nothing is left to do without waiting. Ready when the cache must end.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CacheError> {
        loop {
            let mut handled = 0;
            let end = loop {
                if handled == BATCH_MAX {
                    break None;
                }
                let before = handled;
                match self.watcher.poll_next(cx) {
                    Poll::Ready(Ok(notification)) => {
                        self.handle_notification(notification);
                        handled += 1;
                    }
                    Poll::Ready(Err(error)) => break Some(error.into()),
                    Poll::Pending => {}
                }
                match self.poll_reply(cx) {
                    Poll::Ready(Ok(())) => handled += 1,
                    Poll::Ready(Err(error)) => break Some(error.into()),
                    Poll::Pending => {}
                }
                if before == handled {
                    break None;
                }
            };
            let changes = self.state.take_changes();
            if !changes.is_empty() {
                self.shared.publish(self.state.snapshot(), changes);
            }
            if let Some(end) = end.or_else(|| self.state.end().cloned()) {
                return Poll::Ready(end);
            }
            if self.poll_requests(cx).is_pending() && handled == 0 {
                return Poll::Pending;
            }
        }
    }

    fn handle_notification(&mut self, notification: Notification) {
        match notification {
            Notification::Event { kind, path, zxid } => {
                self.state.handle_event(kind, &path, zxid);
            }
            Notification::Gap {
                cause: GapCause::NewSession,
                ..
            } => self.state.handle_gap(false),
            _ => self.state.handle_gap(true),
        }
    }

    /// Makes requests, up to the largest number that may be in flight. Ready if it has made some.
    fn poll_requests(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        let before = self.in_flight.len();
        while self.in_flight.len() < self.options.in_flight_max.max(1) {
            let Some(request) = self.state.poll_request() else {
                break;
            };
            let path = &request.path;
            let call = match request.read {
                ReadKind::Data => ReadCall::Data(self.client.get_data(path)),
                ReadKind::Stat => ReadCall::Stat(self.client.exists(path)),
                ReadKind::Children => ReadCall::Children(self.client.child_names(path)),
            };
            self.in_flight.push_back((request, call));
        }
        if self.in_flight.len() == before {
            return Poll::Pending;
        }
        self.client.flush();
        Poll::Ready(())
    }

    /// Handles the reply to the oldest request.
    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Some((request, call)) = self.in_flight.front_mut() else {
            return Poll::Pending;
        };
        let result = match call {
            ReadCall::Data(call) => {
                let read = ready!(pin!(call).poll(cx));
                read.map(|data| {
                    let znode = CachedZnode::new(&request.path, data.as_bytes(), data.stat);
                    CacheReply::Data(if self.options.compressed {
                        znode.decompressed(self.options.inflated_bytes_max)
                    } else {
                        znode
                    })
                })
            }
            ReadCall::Stat(call) => {
                let read = ready!(pin!(call).poll(cx));
                read.map(|stat| stat.map_or(CacheReply::Missing, CacheReply::Stat))
            }
            ReadCall::Children(call) => {
                let read = ready!(pin!(call).poll(cx));
                read.map(|names| {
                    CacheReply::Children(names.iter().map(|name| name.into_owned()).collect())
                })
            }
        };
        let Some((request, _)) = self.in_flight.pop_front() else {
            return Poll::Pending;
        };
        match result {
            Ok(reply) => {
                self.backoff.reset();
                self.state.handle_reply(&request, reply);
            }
            Err(error) if error.is(ErrorCode::NoNode) => {
                self.state.handle_reply(&request, CacheReply::Missing);
            }
            Err(error) if error.is(ErrorCode::NoAuth) => {
                self.state.handle_unreadable(&request, error);
            }
            Err(error) => {
                let is_local = matches!(error.cause(), Some(Cause::TooManyPending { .. }));
                if !error.is_retryable() && !is_local {
                    return Poll::Ready(Err(error));
                }
                // After a lost connection the reconnect pauses.
                if (is_local || error.code().is_some()) && self.pause.is_none() {
                    self.pause = Some(Box::pin(sleep(self.backoff.next_pause())));
                }
                self.state.handle_lost(request);
            }
        }
        Poll::Ready(Ok(()))
    }
}
