//! The persistent watcher: a persistent watch that survives sessions and reports its gaps.
//!
//! Source: `docs/zookeeper-protocol.md` section 12.8, point 5; Curator's `PersistentWatcher`.

use std::{
    fmt,
    future::{Future as _, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

use minikeeper_protocol::{AddWatchMode, EventKind, Zxid, path::validate};
use tokio::time::{Sleep, sleep};

use crate::{
    call::{Call, Stamped},
    client::Client,
    core::{backoff::Backoff, outcome::Epoch},
    error::Error,
    watch::{Persistent, WatchEvent},
};

/// The waits before a registration that a server did not carry out is sent again.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What a [`PersistentWatcher`] reports.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_client::{AddWatchMode, Notification, PersistentWatcher};
///
/// let mut watcher = PersistentWatcher::new(client.clone(), "/", AddWatchMode::Persistent)?;
/// match watcher.next().await? {
///     Notification::Registered { .. } => println!("read the tree"),
///     Notification::Gap { cause, .. } => println!("{cause:?}: read the tree again"),
///     Notification::Event { kind, path, .. } => println!("{path}: {kind:?}"),
///     other => println!("{other:?}"),
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Notification {
    /// The watch is registered for the first time. All changes from now on are reported, or a gap
    /// is: read the tree now.
    Registered {
        /// The number of the session.
        epoch: Epoch,
    },
    /// The watch is registered again, and events before this point are missing: read the tree
    /// again.
    Gap {
        /// The number of the session.
        epoch: Epoch,
        /// The reason.
        cause: GapCause,
    },
    /// A znode has changed.
    Event {
        /// What happened.
        kind: EventKind,
        /// The path of the znode.
        path: String,
        /// The zxid of the change; [`Zxid::NONE`] from servers before 3.9.
        zxid: Zxid,
    },
}

/// Why a [`PersistentWatcher`] missed events, see [`Notification::Gap`].
///
/// # Examples
/// ```
/// use minikeeper_client::GapCause;
///
/// fn explain(cause: GapCause) -> &'static str {
///     match cause {
///         GapCause::Reconnected => "the network failed for a moment",
///         GapCause::NewSession => "the ephemeral znodes of the client are gone too",
///         GapCause::Overflowed => "the reader is too slow",
///         _ => "unknown",
///     }
/// }
/// # assert_eq!(explain(GapCause::Overflowed), "the reader is too slow");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum GapCause {
    /// The session has another connection. Servers do not send the events of changes that were made
    /// while there was none.
    Reconnected,
    /// The client has another session, in which the watch was registered again.
    NewSession,
    /// 16,384 events or 16 MiB of them were waiting for the reader, and later ones were dropped.
    Overflowed,
}

/// A persistent watch that is registered again in every session, and reports each gap in which it
/// may have missed events. Curator's class of the same name registers again too, but does not say
/// which events precede the gap.
///
/// Every change of the znode, or below it with [`AddWatchMode::PersistentRecursive`], is an event or
/// falls into a gap. A read whose request is made after [`Notification::Registered`] or
/// [`Notification::Gap`] was returned shows every change before them. The znode may be missing.
///
/// Dropping it removes the watch.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_client::{AddWatchMode, CreateMode, Notification, PersistentWatcher};
///
/// let recursive = AddWatchMode::PersistentRecursive;
/// let mut watcher = PersistentWatcher::new(client.clone(), "/", recursive)?;
/// assert!(matches!(watcher.next().await?, Notification::Registered { .. }));
/// // The session ends, and with it the watch on the server.
/// server.expire(client.session_id().ok_or("it is connected")?)?;
/// assert!(matches!(watcher.next().await?, Notification::Gap { .. }));
/// client.create("/a", b"", CreateMode::Persistent).await?;
/// match watcher.next().await? {
///     Notification::Event { path, .. } => assert_eq!(path, "/a"),
///     other => panic!("/a was created, but the watcher returned {other:?}"),
/// }
/// # Ok(()) });
/// ```
#[must_use = "dropping a watcher removes its watch"]
pub struct PersistentWatcher {
    client: Client,
    path: String,
    mode: AddWatchMode,
    /// Whether the watch was registered before.
    is_known: bool,
    step: WatcherStep,
    backoff: Backoff,
}

enum WatcherStep {
    Start,
    Registering(Call<Stamped<Persistent>>),
    Pausing(Pin<Box<Sleep>>),
    Watching(Epoch, Persistent),
}

impl fmt::Debug for PersistentWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersistentWatcher")
            .field("path", &self.path)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl PersistentWatcher {
    /// Creates the watcher. The first call of [`PersistentWatcher::next`] registers its watch.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: Client, path: &str, mode: AddWatchMode) -> Result<Self, Error> {
        validate(path.as_bytes())?;
        Ok(Self {
            backoff: Backoff::new(PAUSE_MIN, PAUSE_MAX, client.random()),
            client,
            path: path.to_owned(),
            mode,
            is_known: false,
            step: WatcherStep::Start,
        })
    }

    /// Returns the path of the znode.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Waits for the next event, or for a gap. Waits for a connection, and for the next session.
    ///
    /// # Cancel safety
    /// Dropping the future loses no event and no gap.
    ///
    /// # Errors
    /// [`Error::Refused`] when a server refuses the watch, as servers before 3.6 do with
    /// [`ErrorCode::Unimplemented`](crate::ErrorCode::Unimplemented); the next call retries.
    /// [`Error::NotSent`] with [`Cause::Closed`](crate::Cause::Closed) when the client is closed. The
    /// deadline of [`Client::with_timeout`], if the client has one.
    pub async fn next(&mut self) -> Result<Notification, Error> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Like [`PersistentWatcher::next`], for a task that also polls other futures.
    ///
    /// # Errors
    /// Those of [`PersistentWatcher::next`].
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Notification, Error>> {
        loop {
            match &mut self.step {
                WatcherStep::Start => {
                    let call = self.client.add_watch(&self.path, self.mode);
                    self.step = WatcherStep::Registering(call.stamped());
                }
                WatcherStep::Registering(call) => match ready!(pin!(call).poll(cx)) {
                    Ok(watch) => {
                        self.backoff.reset();
                        let epoch = watch.epoch;
                        self.step = WatcherStep::Watching(epoch, watch.value);
                        let cause = GapCause::NewSession;
                        let was_known = std::mem::replace(&mut self.is_known, true);
                        return Poll::Ready(Ok(if was_known {
                            Notification::Gap { epoch, cause }
                        } else {
                            Notification::Registered { epoch }
                        }));
                    }
                    Err(error) => {
                        self.step = WatcherStep::Start;
                        if !error.is_retryable() {
                            return Poll::Ready(Err(error));
                        }
                        if error.code().is_some() {
                            self.step =
                                WatcherStep::Pausing(Box::pin(sleep(self.backoff.next_pause())));
                        }
                    }
                },
                WatcherStep::Pausing(pause) => {
                    ready!(pause.as_mut().poll(cx));
                    self.step = WatcherStep::Start;
                }
                WatcherStep::Watching(epoch, watch) => {
                    let epoch = *epoch;
                    let gap = |cause| Notification::Gap { epoch, cause };
                    return Poll::Ready(Ok(match ready!(watch.poll_next(cx)) {
                        WatchEvent::Event { kind, path, zxid } => {
                            Notification::Event { kind, path, zxid }
                        }
                        WatchEvent::Overflowed => gap(GapCause::Overflowed),
                        WatchEvent::Interrupted => gap(GapCause::Reconnected),
                        WatchEvent::EpochOver => {
                            self.step = WatcherStep::Start;
                            continue;
                        }
                    }));
                }
            }
        }
    }
}
