//! Waiting in the queue: what is watched, and when it is one's turn.
//!
//! Contenders never come in ahead of a znode that is there, apart from a writer who reads on
//! ([`Claim::may_be_replaced`]). So those who were ahead in one list only become fewer: it is
//! enough to see the last of them go, and no list is needed then as long as the own znode is seen not
//! to have gone. That holds within one connection, because events come in the order of changes
//! there; after a reconnect the list is asked for again when the next of them goes. Those that are
//! watched are looked at as soon as there is a new connection: what a watch had to say may have been
//! lost with the old one. To know in time who the last ones are, one
//! or more before the nearest are watched too: when the first of them goes, the list is asked for at
//! leisure, and shows that all who are left are watched.
//!
//! Source: `docs/curator-recipes.md` sections 4.2, 4.4 and 14.5 (S4 to S6).

use std::{
    future::{Future, pending, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

use minikeeper_client::{Epoch, Error, ErrorCode, Fired};
use tokio::time::sleep_until;

use crate::{
    client::{Standing, StateStream as _, ZooKeeper},
    error::LockError,
    queue::{
        contending::{Listing, Queue, Wait},
        naming,
        order::{self, Ahead, Claim, Look},
        pace::Pace,
        queue_node::QueueNode,
    },
};

/// How waiting ends.
pub(crate) enum Outcome<C: ZooKeeper> {
    Granted(QueueNode<C>),
    /// The session or the own znode is gone.
    Gone,
    TimedOut,
}

/// One contender's view of those ahead.
struct Waiting<'a, C: ZooKeeper> {
    queue: &'a Queue<C>,
    claim: Claim,
    place: QueueNode<C>,
    wait: Wait,
    /// Those in the way, and perhaps some that have gone.
    ahead: Ahead,
    watched: Vec<(String, C::Watch)>,
    /// How many connections there were when the list was asked for.
    connections: u64,
    /// And when those ahead were last looked at.
    looked: u64,
    /// Whether what is watched has to be looked at again.
    is_unsure: bool,
    /// Watches that go when there are new ones in their place: so none is taken away on the server.
    replaced: Vec<C::Watch>,
    states: C::States,
    /// Of what is asked for again without an event having come.
    pace: Pace,
}

/// What an event means.
enum QueueEvent {
    /// A contender in the way has gone.
    Gone(String),
    /// A watch was used up by something else.
    Changed,
    /// A request was refused for now, and has been waited for: it is made again.
    Again,
    /// There is another connection: events may have been missed.
    Reconnected,
    OwnGone,
    TimedOut,
}

/// Waits until the place is the first that counts.
pub(crate) async fn wait<C: ZooKeeper>(
    queue: &Queue<C>,
    claim: Claim,
    place: QueueNode<C>,
    listing: Option<Listing>,
    wait: Wait,
) -> Result<Outcome<C>, LockError> {
    // Changes from here on are heard of, so that none falls between these two.
    let states = queue.client.states();
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
    // However this ends without a grant, dropping the place has its znode deleted. If the znode has
    // gone that costs one request; if it has not, because it belongs to a session that is over but
    // not ended yet, it would be in the way of the next one.
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
        if waiting.ahead.is_nobody() {
            return Ok(Outcome::Granted(waiting.place));
        }
        let seen = waiting.watch_ahead().await?;
        let is_late = wait.is_late();
        let news = match seen {
            Some(QueueEvent::Gone(name)) => {
                // Listed again, and gone again: there is no progress.
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

impl<C: ZooKeeper> Waiting<'_, C> {
    #[cfg(feature = "planted")]
    fn is_planted(&self, bug: crate::planted::Planted) -> bool {
        self.queue.options.planted == Some(bug)
    }

    /// Asks for the list.
    fn ask(&mut self) -> Listing {
        self.connections = self.queue.client.connections();
        self.looked = self.connections;
        self.queue.list()
    }

    /// There is another connection; says whether the list has to be asked for. Curator does; it is
    /// cheaper to look at those few that are watched.
    fn reconnected(&mut self) -> bool {
        self.looked = self.queue.client.connections();
        self.is_unsure = true;
        self.queue.options.look_ahead == 0
    }

    /// A6: takes in the list. False if the own znode is not among the contenders of this session.
    async fn look(&mut self, mut listing: Listing) -> Result<bool, LockError> {
        let list = loop {
            match self.queue.limited(self.wait, listing).await? {
                Ok(list) => break list,
                // The directory is gone, and the own znode with it.
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
        let (own, look) = (self.place.name(), self.whom());
        let Some(ahead) = order::ahead(self.claim, list.value.iter(), own, look) else {
            return Ok(false);
        };
        #[cfg(feature = "planted")]
        let ahead = if self.claim == Claim::Write
            && self.is_planted(crate::planted::Planted::ReadersIgnored)
        {
            let writers = list.value.iter().filter(|name| naming::is_writer(name));
            order::ahead(self.claim, writers, own, look).unwrap_or_default()
        } else {
            ahead
        };
        self.ahead = ahead;
        Ok(true)
    }

    /// How Curator ends a wait that was too long: with a last look, and, if that finds somebody
    /// ahead, with the own znode's deletion.
    async fn look_again_and_leave(mut self) -> Result<Outcome<C>, LockError> {
        loop {
            let listing = self.ask();
            if !self.look(listing).await? {
                return Ok(Outcome::Gone);
            }
            if self.ahead.is_nobody() {
                return Ok(Outcome::Granted(self.place));
            }
            match self.watch_ahead().await? {
                None => break,
                Some(QueueEvent::OwnGone) => return Ok(Outcome::Gone),
                // Who was ahead went in between: once more.
                Some(_) => self.queue.pause(self.wait, &mut self.pace).await?,
            }
        }
        self.leave().await
    }

    /// Waits until the own znode is deleted.
    async fn leave(mut self) -> Result<Outcome<C>, LockError> {
        let queue = self.queue;
        let deleted = queue.client.delete(self.place.path());
        // From here on the request sees to it, answered or not.
        self.place.forget();
        match queue.limited(self.wait, deleted).await? {
            Err(error) if !error.is(ErrorCode::NoNode) => {
                // It was refused, which is answered: it is tried again.
                queue.client.clean_up(self.place.epoch, self.place.path());
            }
            _ => {}
        }
        Ok(Outcome::TimedOut)
    }

    /// Whom to watch.
    fn whom(&self) -> Look {
        let options = &self.queue.options;
        if self.claim == Claim::Read && !options.nearest_writer {
            Look::First
        } else {
            Look::Nearest(options.look_ahead.max(1))
        }
    }

    /// A7: sees to it that those who matter are watched, and the own znode. `Some` if one of them
    /// has gone already.
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
        // All in one flush: each request is made before the first is waited for.
        let queue = self.queue;
        let client = &queue.client;
        let paths: Vec<_> = missing
            .iter()
            .map(|name| naming::join(&queue.path, name))
            .collect();
        let reads: Vec<_> = paths.iter().map(|path| client.watch_data(path)).collect();
        let own = (queue.options.look_ahead > 0 && self.place.watch.is_none())
            .then(|| client.watch_data(self.place.path()));
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

    /// Watches the own znode; false if it has gone.
    async fn watch_own(&mut self) -> Result<bool, LockError> {
        let read = self.queue.client.watch_data(self.place.path());
        match self.queue.limited(self.wait, read).await? {
            Ok((_, watch)) => self.place.watch = Some(watch),
            Err(error) if error.is(ErrorCode::NoNode) => return Ok(false),
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Someone in the way has gone; says whether only a list can tell what that means.
    ///
    /// As long as all that are left are watched, it cannot. Others may have gone unseen: the queue
    /// empties from its front. Asking for each of them costs more than a list, and mostly there
    /// is time for it: the one directly ahead holds the lock.
    fn has_gone(&mut self, name: &str) -> bool {
        #[cfg(feature = "planted")]
        if self.is_planted(crate::planted::Planted::OthersForgotten)
            && self
                .ahead
                .seen
                .first()
                .is_some_and(|nearest| nearest == name)
        {
            self.ahead = Ahead::default();
        }
        self.ahead.seen.retain(|other| other != name);
        self.ahead.others > 0
            || self.queue.client.connections() != self.connections
            || self.queue.options.look_ahead == 0
            || self.place.watch.is_none()
            || self.claim.may_be_replaced(name)
    }

    /// A read was not answered, or refused for now: goes on once there is a connection.
    async fn unanswered(&mut self, error: Error) -> Result<QueueEvent, LockError> {
        if self.again(error).await? == self.place.epoch {
            Ok(QueueEvent::Again)
        } else {
            Ok(QueueEvent::OwnGone)
        }
    }

    /// Waits until a request that failed may be made again; says in which session.
    ///
    /// Only a refusal costs a pause. A connection that was lost has cost one already.
    async fn again(&mut self, error: Error) -> Result<Epoch, LockError> {
        if !error.is_retryable() {
            return Err(error.into());
        }
        if error.code().is_some() {
            self.queue.pause(self.wait, &mut self.pace).await?;
        }
        let epoch = self.queue.connected(self.wait).await?;
        // What was asked for on the old connection and what is watched since: in one go.
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
                // After the end of the client only its watches have something to say.
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
        // What has happened by the deadline counts.
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

/// The first event that matters, of the own znode and those ahead.
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
    // The own znode afterwards, since events come in between, on other threads: if it went before
    // the one ahead, that is seen now, and is no grant.
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
        // Somebody asks for its revocation: it is still there.
        _ => QueueEvent::Changed,
    })
}

fn is_over<C: ZooKeeper>(queue: &Queue<C>, epoch: Epoch) -> bool {
    match queue.client.standing() {
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

    /// Both events come while the watches are looked at, the own znode's first. Whichever is
    /// looked at first, the own one has gone when the other is seen to have.
    #[test]
    fn own_znode_that_went_first_is_no_grant() {
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
    fn change_of_the_own_znode_hides_nobody_elses_going() {
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
