//! Waiting in the queue: which znodes are watched, and when the lock is granted.
//!
//! New contenders never queue ahead of an existing znode, apart from a writer that becomes a reader
//! ([`Claim::may_be_replaced`]). So the contenders ahead in one list only become fewer. When the
//! last of them is gone, the lock is granted without another list, provided that the contender's
//! own znode is watched and still exists.
//!
//! That holds within one connection, where events come in the order of changes. After a reconnect
//! the watched znodes are read at once, because events may have been lost with the old connection,
//! and the list is read again when the next contender ahead is gone.
//!
//! One or more contenders ahead of the nearest are watched too, so that the last ones are known
//! early. When the first of them is gone, the list is read while the nearest still holds the lock,
//! and shows that all remaining contenders ahead are watched.
//!
//! Source: `docs/curator-recipes.md` sections 4.2, 4.4 and 14.5 (S4 to S6).

use std::{
    future::{Future, pending, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

use minikeeper_client::{Epoch, Error, ErrorCode, Fired, OneShot};
use tokio::time::sleep_until;

use crate::{
    client::{Standing, Standings},
    error::LockError,
    queue::{
        contending::{Listing, Queue, Wait},
        naming,
        order::{self, Ahead, Claim, Look},
        pace::Pace,
        queue_node::QueueNode,
    },
};

/// The result of waiting.
pub(crate) enum Outcome {
    Granted(QueueNode),
    /// The session or the contender's own znode is gone.
    Gone,
    TimedOut,
}

/// A contender in the queue, and what it knows about those ahead.
struct Waiting<'a> {
    queue: &'a Queue,
    claim: Claim,
    place: QueueNode,
    wait: Wait,
    /// The contenders to wait for, some of which may be gone.
    ahead: Ahead,
    watched: Vec<(String, OneShot)>,
    /// The number of connections so far when the list was requested.
    connections: u64,
    /// The number of connections so far when the watched znodes were last read.
    looked: u64,
    /// Whether the watched znodes must be read again.
    is_unsure: bool,
    /// Old watches, kept until new ones have replaced them, so that the server removes none.
    replaced: Vec<OneShot>,
    states: Standings,
    /// The pauses between requests that are not caused by an event.
    pace: Pace,
}

/// The meaning of an event.
enum QueueEvent {
    /// A contender ahead is gone.
    Gone(String),
    /// A watch has fired for another reason.
    Changed,
    /// A server refused a request temporarily. The pause is over: retry.
    Again,
    /// There is a new connection: events may have been lost with the old one.
    Reconnected,
    OwnGone,
    TimedOut,
}

/// Waits until the lock is granted.
pub(crate) async fn wait(
    queue: &Queue,
    claim: Claim,
    place: QueueNode,
    listing: Option<Listing>,
    wait: Wait,
) -> Result<Outcome, LockError> {
    let _reported = queue.report(claim, &place);
    // Subscribe first, so that no change is missed between these two lines.
    let states = Standings::of(&queue.client);
    let connections = queue.client.connections();
    let mut waiting = Waiting {
        queue,
        claim,
        place,
        wait,
        ahead: Ahead::default(),
        watched: Vec::new(),
        connections,
        looked: connections,
        is_unsure: false,
        replaced: Vec::new(),
        states,
        pace: Pace::of(&queue.client),
    };
    // If this ends without a grant, dropping the place deletes its znode. If the znode is already
    // gone, that costs one request. If it still exists, because the server has not ended its
    // session yet, it would block this contender's next znode.
    if queue.options.watch_own && queue.options.look_ahead > 0 && !waiting.watch_own().await? {
        return Ok(Outcome::Gone);
    }
    let mut listing = Some(listing.unwrap_or_else(|| queue.list()));
    let mut vanished = None;
    loop {
        if let Some(listing) = listing.take()
            && !waiting.look(listing).await?
        {
            return Ok(Outcome::Gone);
        }
        if waiting.ahead.is_empty() {
            return Ok(Outcome::Granted(waiting.place));
        }
        let seen = waiting.watch_ahead().await?;
        let is_late = wait.is_late();
        let news = match seen {
            Some(QueueEvent::Gone(name)) => {
                // Listed again and gone again: no progress.
                if vanished.as_ref() == Some(&name) {
                    queue.pause(wait, &mut waiting.pace).await?;
                }
                vanished = Some(name.clone());
                QueueEvent::Gone(name)
            }
            Some(news) => news,
            None => waiting.next().await,
        };
        let is_list_needed = match news {
            QueueEvent::OwnGone => return Ok(Outcome::Gone),
            QueueEvent::TimedOut if queue.options.leave_at_once => return Ok(Outcome::TimedOut),
            QueueEvent::TimedOut if is_late => return waiting.leave().await,
            QueueEvent::TimedOut => return waiting.look_again_and_leave().await,
            QueueEvent::Changed => queue.options.look_ahead == 0,
            QueueEvent::Again => false,
            QueueEvent::Reconnected => waiting.reconnected(),
            QueueEvent::Gone(name) => waiting.has_gone(&name),
        };
        if is_list_needed {
            listing = Some(waiting.ask());
        }
    }
}

impl Waiting<'_> {
    /// Requests the list.
    fn ask(&mut self) -> Listing {
        self.connections = self.queue.client.connections();
        self.looked = self.connections;
        self.queue.list()
    }

    /// Handles a new connection; returns whether the list must be requested. Curator does so, but
    /// it is cheaper to read only the watched znodes.
    fn reconnected(&mut self) -> bool {
        self.looked = self.queue.client.connections();
        self.is_unsure = true;
        self.queue.options.look_ahead == 0
    }

    /// A6: evaluates the list. False if it does not contain the contender's znode of this session.
    async fn look(&mut self, mut listing: Listing) -> Result<bool, LockError> {
        let list = loop {
            match self.queue.limited(self.wait, listing).await? {
                Ok(list) => break list,
                // The directory is gone, and with it the contender's znode.
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(false),
                Err(error) => {
                    if self.again(error).await? != self.place.epoch {
                        return Ok(false);
                    }
                }
            }
            listing = self.ask();
        };
        // A list of another session may still show the znode of the one before (hazard H5).
        if list.epoch != self.place.epoch {
            return Ok(false);
        }
        let (own, look) = (self.place.name(), self.selection());
        let Some(ahead) = order::ahead(self.claim, list.value.iter(), own, look) else {
            return Ok(false);
        };
        if std::mem::replace(&mut self.place.is_listed, true) {
            self.queue.observed.listed_again();
        } else {
            let ahead = ahead.seen.len() + ahead.others;
            self.queue.observed.queued(ahead);
        }
        self.ahead = ahead;
        Ok(true)
    }

    /// Ends a wait at its deadline as Curator does: lists once more, and deletes the contender's
    /// znode if another is still ahead.
    async fn look_again_and_leave(mut self) -> Result<Outcome, LockError> {
        loop {
            let listing = self.ask();
            if !self.look(listing).await? {
                return Ok(Outcome::Gone);
            }
            if self.ahead.is_empty() {
                return Ok(Outcome::Granted(self.place));
            }
            match self.watch_ahead().await? {
                None => break,
                Some(QueueEvent::OwnGone) => return Ok(Outcome::Gone),
                // The contender ahead left in between: retry.
                Some(_) => self.queue.pause(self.wait, &mut self.pace).await?,
            }
        }
        self.leave().await
    }

    /// Deletes the contender's znode and waits for the reply.
    async fn leave(mut self) -> Result<Outcome, LockError> {
        let queue = self.queue;
        let deleted = queue.client.delete_for_certain(self.place.path());
        // From here on the request deletes it, even if its reply is lost.
        self.place.forget();
        match queue.limited(self.wait, deleted).await? {
            Err(error) if !error.is(ErrorCode::NoNode) => {
                // The server refused it: retry in the background. A server's path is valid.
                let _ = queue.client.clean_up(self.place.epoch, self.place.path());
            }
            _ => {}
        }
        Ok(Outcome::TimedOut)
    }

    /// Returns which contenders to watch.
    fn selection(&self) -> Look {
        let options = &self.queue.options;
        if self.claim == Claim::Read && !options.nearest_writer {
            Look::First
        } else {
            Look::Nearest(options.look_ahead.max(1))
        }
    }

    /// A7: watches the selected contenders and the contender's own znode. `Some` if one of them is
    /// already gone.
    async fn watch_ahead(&mut self) -> Result<Option<QueueEvent>, LockError> {
        if std::mem::take(&mut self.is_unsure) {
            let watches = self.watched.drain(..).map(|(_, watch)| watch);
            self.replaced.extend(watches.chain(self.place.watch.take()));
        }
        let targets = &self.ahead.seen;
        self.watched.retain(|(name, _)| targets.contains(name));
        let missing: Vec<_> = targets
            .iter()
            .filter(|target| self.watched.iter().all(|(name, _)| name != *target))
            .cloned()
            .collect();
        // All requests leave together: make each before waiting for the first.
        let queue = self.queue;
        let client = &queue.client;
        let paths: Vec<_> = missing
            .iter()
            .map(|name| naming::join(&queue.path, name))
            .collect();
        let reads: Vec<_> = paths
            .iter()
            .map(|path| client.get_data_and_watch(path))
            .collect();
        let own = (queue.options.look_ahead > 0 && self.place.watch.is_none())
            .then(|| client.get_data_and_watch(self.place.path()));
        let mut news = None;
        for (name, read) in missing.into_iter().zip(reads) {
            match queue.limited(self.wait, read).await? {
                Ok((_, watch)) => self.watched.push((name, watch)),
                Err(error) if error.is(ErrorCode::NoNode) => news = Some(QueueEvent::Gone(name)),
                Err(error) => news = Some(self.unanswered(error).await?),
            }
        }
        if let Some(own) = own {
            match queue.limited(self.wait, own).await? {
                Ok((_, watch)) => self.place.watch = Some(watch),
                Err(error) if error.is(ErrorCode::NoNode) => news = Some(QueueEvent::OwnGone),
                Err(error) => news = Some(self.unanswered(error).await?),
            }
        }
        if news.is_none() {
            self.replaced.clear();
        }
        Ok(news)
    }

    /// Watches the contender's own znode; false if it is gone.
    async fn watch_own(&mut self) -> Result<bool, LockError> {
        let read = self.queue.client.get_data_and_watch(self.place.path());
        match self.queue.limited(self.wait, read).await? {
            Ok((_, watch)) => self.place.watch = Some(watch),
            Err(error) if error.is(ErrorCode::NoNode) => return Ok(false),
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Handles a contender ahead that is gone; returns whether the list must be requested.
    ///
    /// It need not while all contenders left ahead are watched. Unwatched ones may be gone
    /// unnoticed, because the queue empties from its front. Reading each of them costs more than a
    /// list, and usually there is time for the list: the contender directly ahead holds the lock.
    fn has_gone(&mut self, name: &str) -> bool {
        self.ahead.seen.retain(|other| other != name);
        self.ahead.others > 0
            || self.queue.client.connections() != self.connections
            || self.queue.options.look_ahead == 0
            || self.place.watch.is_none()
            || self.claim.may_be_replaced(name)
    }

    /// Handles a read that got no reply or was refused temporarily: waits for a connection.
    async fn unanswered(&mut self, error: Error) -> Result<QueueEvent, LockError> {
        if self.again(error).await? == self.place.epoch {
            Ok(QueueEvent::Again)
        } else {
            Ok(QueueEvent::OwnGone)
        }
    }

    /// Waits before a retry, then for a connection; returns its session.
    ///
    /// Only a refusal costs a pause: after a lost connection the reconnect has paused already.
    async fn again(&mut self, error: Error) -> Result<Epoch, LockError> {
        if !error.is_retryable() {
            return Err(error.into());
        }
        if error.code().is_some() {
            self.queue.pause(self.wait, &mut self.pace).await?;
        } else {
            self.queue.observed.retried();
        }
        let epoch = self.queue.connected(self.wait).await?;
        // Handle the new connection together with the failed request.
        if self.queue.client.connections() != self.looked {
            self.reconnected();
        }
        Ok(epoch)
    }

    /// Waits for the first event that matters.
    async fn next(&mut self) -> QueueEvent {
        let Self {
            watched,
            place,
            queue,
            wait,
            states,
            looked,
            pace,
            ..
        } = self;
        let epoch = place.epoch;
        let event =
            poll_fn(|cx| poll_news(&mut place.watch, watched, || is_over(queue, epoch), cx));
        let reconnected = async {
            while queue.client.connections() == *looked {
                // A closed client has no more states, but its watches still end.
                if states.next().await.is_none() {
                    pending::<()>().await;
                }
            }
        };
        let late = async {
            match wait.until {
                Some(until) => sleep_until(until).await,
                None => pending().await,
            }
        };
        // Events that came by the deadline count.
        tokio::select! {
            biased;
            news = event => {
                pace.reset();
                news
            }
            () = reconnected => QueueEvent::Reconnected,
            () = late => QueueEvent::TimedOut,
        }
    }
}

/// Polls the watches of the contender's own znode and of those ahead for the first event that
/// matters.
fn poll_news<W: Future<Output = Fired> + Unpin>(
    own: &mut Option<W>,
    watched: &mut Vec<(String, W)>,
    is_over: impl FnOnce() -> bool,
    cx: &mut Context<'_>,
) -> Poll<QueueEvent> {
    let ahead = watched.iter_mut().enumerate().find_map(|(at, (_, watch))| {
        match Pin::new(watch).poll(cx) {
            Poll::Ready(fired) => Some((at, fired)),
            Poll::Pending => None,
        }
    });
    // The own znode comes last, because events arrive concurrently: if it was deleted before the
    // one ahead, this poll sees it, and the lock is not granted.
    if let Some(watch) = own
        && let Poll::Ready(fired) = Pin::new(watch).poll(cx)
    {
        *own = None;
        if fired.is_deleted() || is_over() {
            return Poll::Ready(QueueEvent::OwnGone);
        }
        if ahead.is_none() {
            return Poll::Ready(QueueEvent::Changed);
        }
    }
    let Some((at, fired)) = ahead else {
        return Poll::Pending;
    };
    let (name, _) = watched.remove(at);
    Poll::Ready(match fired {
        Fired::EpochOver => QueueEvent::OwnGone,
        fired if fired.is_deleted() => QueueEvent::Gone(name),
        // Its data has changed, for example by a revocation: the znode still exists.
        _ => QueueEvent::Changed,
    })
}

fn is_over(queue: &Queue, epoch: Epoch) -> bool {
    match Standing::of(&queue.client) {
        Standing::Lost { epoch: lost } => lost >= epoch,
        Standing::Closed => true,
        standing => standing.epoch().is_some_and(|other| other != epoch),
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, task::Waker};

    use minikeeper_client::{EventKind, Zxid};

    use super::*;

    const DELETED: Fired = Fired::Event {
        kind: EventKind::Deleted,
        zxid: Zxid(1),
    };

    type Watch<'a> = Pin<Box<dyn Future<Output = Fired> + 'a>>;

    /// Both events come while the watches are polled, the own znode's first. In either order of
    /// polling, the deletion of the own znode must be seen together with the other.
    #[test]
    fn own_znode_deleted_before_the_one_ahead_is_no_grant() {
        let have_come = Cell::new(false);
        let own = poll_fn(|_| {
            if have_come.replace(true) {
                Poll::Ready(DELETED)
            } else {
                Poll::Pending
            }
        });
        let ahead = poll_fn(|_| {
            have_come.set(true);
            Poll::Ready(DELETED)
        });
        let mut own: Option<Watch<'_>> = Some(Box::pin(own));
        let mut watched: Vec<(String, Watch<'_>)> = vec![("a".into(), Box::pin(ahead))];
        let mut cx = Context::from_waker(Waker::noop());
        let news = poll_news(&mut own, &mut watched, || false, &mut cx);
        assert!(matches!(news, Poll::Ready(QueueEvent::OwnGone)));
    }

    #[test]
    fn change_of_the_own_znode_does_not_hide_a_deletion_ahead() {
        let changed = Fired::Event {
            kind: EventKind::DataChanged,
            zxid: Zxid(1),
        };
        let ready = |fired| -> Watch<'_> { Box::pin(std::future::ready(fired)) };
        let mut own = Some(ready(changed));
        let mut watched = vec![("a".to_owned(), ready(DELETED))];
        let mut cx = Context::from_waker(Waker::noop());
        let news = poll_news(&mut own, &mut watched, || false, &mut cx);
        assert!(matches!(news, Poll::Ready(QueueEvent::Gone(name)) if name == "a"));
        assert!(own.is_none() && watched.is_empty());
    }
}
