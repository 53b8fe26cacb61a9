//! Watches: one-shot futures and streams of events.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use minikeeper_protocol::{EventKind, Ustring, ZnodePath, Zxid};

use crate::{
    core::{outcome::WatchEnd, watches::WatchToken},
    notifications::{EventQueue, Notice},
    shared::Shared,
    state::ConnectionState,
};

#[cfg(doc)]
use crate::PersistentWatcher;

/// The end of a one-shot watch.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::CreateMode;
/// # client.create("/a", b"hello", CreateMode::Persistent).await?;
/// use minikeeper_client::{EventKind, Fired};
///
/// let (_, watch) = client.get_data_and_watch("/a").await?;
/// client.set_data("/a", b"bye", None).await?;
/// match watch.await {
///     Fired::Event { kind, .. } => assert_eq!(kind, EventKind::DataChanged),
///     other => panic!("the data changed, but the watch returned {other:?}"),
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fired {
    /// The znode has changed.
    Event {
        /// What happened.
        kind: EventKind,
        /// The zxid of the change; [`Zxid::NONE`] from servers before 3.9, and after a reconnect.
        zxid: Zxid,
    },
    /// The session is over, or the client is closed: no event will come.
    EpochOver,
}

impl Fired {
    /// Returns whether the znode was deleted.
    #[must_use]
    pub const fn is_deleted(&self) -> bool {
        matches!(
            self,
            Self::Event {
                kind: EventKind::Deleted,
                ..
            }
        )
    }
}

/// The registration of a watch. Dropping it removes the watch.
pub(crate) struct Registration {
    shared: Arc<Shared>,
    token: WatchToken,
}

impl Registration {
    pub(crate) const fn new(shared: Arc<Shared>, token: WatchToken) -> Self {
        Self { shared, token }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let token = self.token;
        self.shared.with(|inner, now| {
            let slot = inner.notifications.watches.remove(token.0 as usize);
            inner.core.abandon_watch(now, slot.kind, &slot.path, token);
        });
        self.shared.flush();
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.token.fmt(f)
    }
}

/// A watch that fires once.
///
/// It survives reconnects of its session, and then fires for changes made meanwhile. Dropping it
/// removes the watch, also from the server if no other watch of the client needs it.
///
/// # Cancel safety
/// Polling through a reference and dropping the reference loses no event.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::CreateMode;
/// # client.create("/a", b"hello", CreateMode::Persistent).await?;
/// let (_, changed) = client.get_data_and_watch("/a").await?;
/// client.set_data("/a", b"bye", None).await?;
/// changed.await;
/// # Ok(()) });
/// ```
#[derive(Debug)]
#[must_use = "dropping a watch removes it"]
pub struct OneShot {
    place: Registration,
}

impl OneShot {
    pub(crate) const fn new(place: Registration) -> Self {
        Self { place }
    }

    /// Returns the result of awaiting the watch, if it has fired or ended.
    #[must_use]
    pub fn fired(&self) -> Option<Fired> {
        let token = self.place.token.0 as usize;
        let end = self
            .place
            .shared
            .look(|inner| inner.notifications.watches[token].end);
        end.map(fired)
    }
}

const fn fired(end: WatchEnd) -> Fired {
    match end {
        WatchEnd::Fired { kind, zxid } => Fired::Event { kind, zxid },
        WatchEnd::EpochOver => Fired::EpochOver,
    }
}

impl Future for OneShot {
    type Output = Fired;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Fired> {
        let token = self.place.token.0 as usize;
        self.place.shared.look(|inner| {
            let slot = &mut inner.notifications.watches[token];
            match slot.end {
                Some(end) => Poll::Ready(fired(end)),
                None => {
                    slot.queue.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
    }
}

/// One event of a persistent watch.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::{AddWatchMode, CreateMode, WatchEvent};
/// let mut changes = client.add_watch("/", AddWatchMode::Persistent).await?;
/// client.create("/a", b"", CreateMode::Persistent).await?;
/// match changes.next().await {
///     WatchEvent::Event { kind, path, .. } => println!("{path}: {kind:?}"),
///     WatchEvent::Overflowed => println!("read everything again"),
///     other => println!("no event will come: {other:?}"),
/// }
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WatchEvent {
    /// A znode has changed.
    Event {
        /// What happened.
        kind: EventKind,
        /// The path of the znode.
        path: String,
        /// The zxid of the change; [`Zxid::NONE`] from servers before 3.9, and after a reconnect.
        zxid: Zxid,
    },
    /// 16,384 events or 16 MiB of them were waiting, and later ones were dropped. Read the tree again.
    Overflowed,
    /// The connection was lost, and the same session has another one. Servers do not send the events
    /// of changes made meanwhile: read the tree again. [`WatchEvents`] does not return it.
    Interrupted,
    /// The session is over, or the client is closed: no event will come.
    EpochOver,
}

impl WatchEvent {
    fn of(notice: Notice, shown: impl FnOnce(&Ustring) -> String) -> Self {
        match notice {
            Notice::Event(kind, path, zxid) => {
                let path = shown(&path);
                Self::Event { kind, path, zxid }
            }
            Notice::Overflowed => Self::Overflowed,
            Notice::Interrupted => Self::Interrupted,
        }
    }
}

/// A watch that fires until it is dropped or its session ends. [`PersistentWatcher`] is one for all
/// sessions.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::{AddWatchMode, CreateMode, WatchEvent};
/// let mut changes = client.add_watch("/", AddWatchMode::Persistent).await?;
/// client.create("/a", b"", CreateMode::Persistent).await?;
/// println!("{:?}", changes.next().await);
/// # Ok(()) });
/// ```
#[derive(Debug)]
#[must_use = "dropping a watch removes it"]
pub struct Persistent {
    place: Registration,
    /// The length of the client's root, which returned paths do not have.
    root_bytes: usize,
}

impl Persistent {
    /// The registration decides how often a watch fires, so this only changes the type.
    pub(crate) fn new(watch: OneShot, root_bytes: usize) -> Self {
        let place = watch.place;
        Self { place, root_bytes }
    }

    /// Waits for the next event. After [`WatchEvent::EpochOver`] every further call returns it
    /// again.
    ///
    /// # Cancel safety
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> WatchEvent {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<WatchEvent> {
        let Registration { shared, token } = &self.place;
        shared.look(|inner| {
            let slot = &mut inner.notifications.watches[token.0 as usize];
            if let Some(notice) = slot.queue.pop() {
                let shown = |path: &_| crate::paths::shown(path, self.root_bytes);
                return Poll::Ready(WatchEvent::of(notice, shown));
            }
            if slot.end.is_some() {
                return Poll::Ready(WatchEvent::EpochOver);
            }
            slot.queue.waker = Some(cx.waker().clone());
            Poll::Pending
        })
    }
}

/// A stream of all events that fire watches of a client, in their order.
///
/// It has each event once, also if it fires several watches, and registers no watch itself. Returned by
/// [`Client::watch_events`](crate::Client::watch_events).
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_client::{CreateMode, WatchEvent};
/// let mut events = client.watch_events();
/// let (_, data) = client.exists_and_watch("/a").await?;
/// let (_, children) = client.children_and_watch("/").await?;
/// client.create("/a", b"", CreateMode::Persistent).await?;
/// while let Some(WatchEvent::Event { kind, path, .. }) = events.next().await {
///     println!("{path}: {kind:?}");
///     # if path == "/" { break; }
/// }
/// # Ok(()) });
/// ```
pub struct WatchEvents {
    shared: Arc<Shared>,
    root: Option<ZnodePath>,
    key: usize,
}

impl WatchEvents {
    pub(crate) fn new(shared: &Arc<Shared>, root: Option<ZnodePath>) -> Self {
        let key = shared.look(|inner| {
            let queues = &mut inner.notifications.event_queues;
            queues.insert(EventQueue::default())
        });
        Self {
            shared: Arc::clone(shared),
            root,
            key,
        }
    }

    /// Waits for the next event; `None` once the client is closed and all events were returned.
    ///
    /// Never returns [`WatchEvent::EpochOver`]. Paths are relative to the root of the client that returned this; that of a znode outside of
    /// the root, such as the one that [`Client::config_and_watch`](crate::Client::config_and_watch)
    /// watches, is unchanged.
    ///
    /// # Cancel safety
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        poll_fn(|cx| {
            self.shared.look(|inner| {
                let is_closed = inner.notifications.state == ConnectionState::Closed;
                let queue = &mut inner.notifications.event_queues[self.key];
                if let Some(notice) = queue.pop() {
                    let shown = |path: &_| crate::paths::shown_if_below(path, self.root.as_ref());
                    return Poll::Ready(Some(WatchEvent::of(notice, shown)));
                }
                if is_closed {
                    return Poll::Ready(None);
                }
                queue.waker = Some(cx.waker().clone());
                Poll::Pending
            })
        })
        .await
    }
}

impl Drop for WatchEvents {
    fn drop(&mut self) {
        self.shared
            .look(|inner| inner.notifications.event_queues.remove(self.key));
    }
}

impl fmt::Debug for WatchEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchEvents").finish_non_exhaustive()
    }
}
