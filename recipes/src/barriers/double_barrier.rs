//! The double barrier: N members begin together and end together.
//!
//! Source: `docs/curator-recipes.md` section 17; Curator's `DistributedDoubleBarrier`.

use std::fmt;

use minikeeper_client::{
    Client, CreateMode, CreateOptions, Epoch, Error, ErrorCode, EventKind, Fired, Multi, Stamped,
    ZnodePath, Zxid,
};

use crate::{
    client::{names, new_id, reconnected},
    error::LockError,
    locks::acquire::Acquire,
    options::LockOptions,
    queue::{
        contending::{Queue, Wait},
        naming,
        pace::Pace,
        parents,
        queue_node::{QueueNode, Unanswered},
    },
};

/// The znode that a member creates once all members have entered.
const READY: &str = "ready";

/// A barrier at which N members wait for each other twice: before they begin, and before they end.
/// It is compatible with Curator's class of the same name in Java.
///
/// It can be used in rounds: a member that has left may enter again, and waits until N members have
/// entered again. A member that comes while N others are in the barrier is late, and enters at
/// once. A member whose session expires after all have entered, and before it knows, enters again;
/// if the others have left by then, it waits for the next round.
///
/// Two things differ from Curator:
/// - Members that leave do not wait for members of the next round. Curator's do, if a member enters
///   before they have seen all others leave.
/// - The last member that leaves deletes the znode `ready`. If all members die instead, `ready`
///   remains, and the next member that enters deletes it. Curator's member would enter at once.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// use minikeeper_client::Client;
/// use minikeeper_recipes::DistributedDoubleBarrier;
///
/// let client = Client::connect(&address).await?;
/// let barrier = DistributedDoubleBarrier::new(client, "/barriers/game", 2)?;
/// let (one, other) = tokio::try_join!(barrier.enter(), barrier.enter())?;
/// tokio::try_join!(one.leave(), other.leave())?;
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct DistributedDoubleBarrier {
    queue: Queue,
    members: usize,
}

impl fmt::Debug for DistributedDoubleBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributedDoubleBarrier")
            .field("path", &self.queue.path)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

impl DistributedDoubleBarrier {
    /// Creates a barrier object for this path and number of members; 0 counts as 1. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: Client, path: &str, members: usize) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        Ok(Self {
            queue: Queue::new(
                "DistributedDoubleBarrier",
                client,
                path,
                LockOptions::default(),
            ),
            members,
        })
    }

    /// Enters the barrier and waits until all members have entered, without a time limit unless
    /// [`Acquire::within`] sets one. Every call enters as a new member.
    ///
    /// # Cancel safety
    /// Dropping the future removes the member, in the background. Because of it, other members may
    /// already have entered.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] when members are missing at the time limit, [`LockError::Lost`] when
    /// the session is lost too often during the wait, [`LockError::Client`] when a server refuses
    /// or the client is closed. A lost connection is not an error: it waits for the next
    /// connection.
    pub fn enter(&self) -> Acquire<'_, &Self, Member> {
        Acquire::new(self, |barrier, how| Box::pin(barrier.begin(how.wait())))
    }

    async fn begin(&self, wait: Wait) -> Result<Member, LockError> {
        let attempts = self.queue.options.attempts_max.max(1);
        for _ in 0..attempts {
            let mut pace = Pace::of(&self.queue.client);
            let Some(place) = self.announce(wait, &mut pace).await? else {
                continue;
            };
            if let Some(member) = self.gather(place, wait, &mut pace).await? {
                return Ok(member);
            }
        }
        Err(LockError::Lost {
            path: self.queue.path.to_string(),
            attempts,
        })
    }

    /// Creates the member's znode. `None` if it was created in a session that is over.
    ///
    /// The epoch comes from the reply: the session that was known before may be over by the time
    /// the request is sent.
    async fn announce(&self, wait: Wait, pace: &mut Pace) -> Result<Option<QueueNode>, LockError> {
        let Queue {
            client,
            path: directory,
            ..
        } = &self.queue;
        let name = new_id(client).hyphenated().to_string();
        let path = naming::join(directory, &name);
        let mut unanswered = Unanswered {
            client,
            epoch: Epoch::default(),
            directory,
            prefix: &name,
            is_due: false,
        };
        loop {
            self.queue.connected(wait).await?;
            let options = CreateOptions::new(CreateMode::Ephemeral).withdrawn_if_dropped(true);
            let create = client.create(&path, b"", options).stamped();
            let failed = match self.queue.limited(wait, create).await? {
                Ok(created) => {
                    unanswered.is_due = false;
                    let (czxid, epoch) = (created.value.stat.czxid, created.epoch);
                    return Ok(Some(QueueNode::new(client.clone(), path, czxid, epoch)));
                }
                // An earlier creation whose reply was lost: no other client knows the name.
                Err(error) if error.is(ErrorCode::NodeExists) => {
                    let look = client.exists(&path).stamped();
                    match self.queue.limited(wait, look).await? {
                        Ok(Stamped {
                            value: Some(stat),
                            epoch,
                            ..
                        }) => {
                            unanswered.is_due = false;
                            // Dropping this deletes the znode: one of an earlier session may count
                            // as a member until it is gone.
                            let place = QueueNode::new(client.clone(), path, stat.czxid, epoch);
                            let is_own = Some(stat.ephemeral_owner) == client.session_id();
                            return Ok(is_own.then_some(place));
                        }
                        // It was just deleted with its session.
                        Ok(_) => return Ok(None),
                        Err(error) => error,
                    }
                }
                Err(error) if error.is(ErrorCode::NoNode) => {
                    let made = parents::make(client, directory);
                    match self.queue.limited(wait, made).await? {
                        Ok(parents::Made::Directories) => continue,
                        Ok(parents::Made::Interrupted) => {
                            self.queue.in_time(wait, pace.pause()).await?;
                            continue;
                        }
                        Err(error) => error,
                    }
                }
                Err(error) => {
                    unanswered.is_due |= error.is_retryable();
                    error
                }
            };
            self.retry(wait, pace, failed).await?;
        }
    }

    /// Waits before a retry; returns the error if a retry cannot help.
    async fn retry(&self, wait: Wait, pace: &mut Pace, error: Error) -> Result<(), LockError> {
        retry(&self.queue, wait, pace, error).await
    }

    /// Waits until all members have entered. `None` if the member's znode or its session is gone.
    async fn gather(
        &self,
        mut place: QueueNode,
        wait: Wait,
        pace: &mut Pace,
    ) -> Result<Option<Member>, LockError> {
        let queue = &self.queue;
        let ready_path = naming::join(&queue.path, READY);
        let member = |place, round| {
            let queue = queue.clone();
            Ok(Some(Member {
                queue,
                place,
                round,
            }))
        };
        loop {
            if queue.connected(wait).await? != place.epoch {
                return Ok(None);
            }
            let connections = queue.client.connections();
            // The watch before the list: a member missing in the list creates `ready` after it.
            let ready = queue.client.exists_and_watch(&ready_path);
            let list = queue.client.children(&queue.path).stamped();
            let ready = queue.limited(wait, ready).await?;
            let list = match queue.limited(wait, list).await? {
                Ok(list) => list,
                Err(error) if error.is(ErrorCode::NoNode) => {
                    place.forget();
                    return Ok(None);
                }
                Err(error) => {
                    self.retry(wait, pace, error).await?;
                    continue;
                }
            };
            if list.epoch != place.epoch {
                return Ok(None);
            }
            let there = members(names(&list.value));
            let (ready, watch) = match ready {
                Ok(ready) => ready,
                Err(error) => {
                    self.retry(wait, pace, error).await?;
                    continue;
                }
            };
            if let Some(ready) = ready {
                drop(watch);
                if ready.czxid > place.czxid {
                    return member(place, there);
                }
                // `ready` is older than this member. If an older member is still in the barrier,
                // this one is late and joins it, as in Curator. Otherwise `ready` is left over from
                // an earlier round.
                if self.has_older(&there, ready.czxid, wait, pace).await? {
                    return member(place, there);
                }
                delete(queue, &ready_path, wait, pace).await?;
                continue;
            }
            if there.iter().all(|name| name != place.name()) {
                // Dropping the place deletes its znode if it is there after all, which another list
                // would count as a member.
                return Ok(None);
            }
            if there.len() >= self.members {
                // Create `ready`, unless another member has.
                drop(watch);
                let mode = CreateMode::Persistent;
                let create = queue.client.create(&ready_path, b"", mode);
                match queue.limited(wait, create).await? {
                    Ok(_) => return member(place, there),
                    Err(error) if error.is(ErrorCode::NodeExists) => return member(place, there),
                    Err(error) if error.is(ErrorCode::NoNode) => {}
                    Err(error) => self.retry(wait, pace, error).await?,
                }
                continue;
            }
            let own = queue.client.get_data_and_watch(place.path());
            match queue.limited(wait, own).await? {
                Ok((_, watch)) => place.watch = Some(watch),
                // The list says more.
                Err(error) if error.is(ErrorCode::NoNode) => continue,
                Err(error) => {
                    self.retry(wait, pace, error).await?;
                    continue;
                }
            }
            pace.reset();
            tokio::select! {
                biased;
                fired = wait.event(watch) => match fired {
                    // All members had entered, including this one, even if its session has ended
                    // since.
                    Some(Fired::Event {
                        kind: EventKind::Created,
                        ..
                    }) => return member(place, there),
                    Some(_) => {}
                    None => return Err(queue.timed_out(wait)),
                },
                // The list says whether it is gone.
                () = place.reported_deleted() => {}
                () = reconnected(&queue.client, connections) => {}
            }
        }
    }

    /// Returns whether one of these znodes is older than `ready`.
    async fn has_older(
        &self,
        names: &[String],
        ready: Zxid,
        wait: Wait,
        pace: &mut Pace,
    ) -> Result<bool, LockError> {
        let queue = &self.queue;
        let paths: Vec<_> = names
            .iter()
            .map(|name| naming::join(&queue.path, name))
            .collect();
        loop {
            // All requests leave together.
            let looks: Vec<_> = paths.iter().map(|path| queue.client.exists(path)).collect();
            let mut failed = None;
            for look in looks {
                match queue.limited(wait, look).await? {
                    Ok(seen) if seen.is_some_and(|stat| stat.czxid < ready) => {
                        return Ok(true);
                    }
                    Ok(_) => {}
                    Err(error) => failed = Some(error),
                }
            }
            let Some(error) = failed else {
                return Ok(false);
            };
            self.retry(wait, pace, error).await?;
            queue.connected(wait).await?;
        }
    }
}

/// Waits before a retry; returns the error if a retry cannot help.
async fn retry(queue: &Queue, wait: Wait, pace: &mut Pace, error: Error) -> Result<(), LockError> {
    if !error.is_retryable() {
        return Err(error.into());
    }
    queue.in_time(wait, pace.after(&error)).await
}

/// Returns the members in a list, sorted. Their names have the same form and length.
fn members(mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| name != READY);
    names.sort_unstable();
    names
}

/// A member that has entered a double barrier. Dropping it removes the member, in the background,
/// without waiting for the others.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// # use minikeeper_recipes::DistributedDoubleBarrier;
/// let barrier = DistributedDoubleBarrier::new(client, "/barriers/game", 1)?;
/// let member = barrier.enter().await?;
/// println!("{} plays", member.path());
/// member.leave().await?;
/// # Ok(()) });
/// ```
#[must_use = "a member that is dropped leaves the barrier"]
pub struct Member {
    queue: Queue,
    place: QueueNode,
    /// The known members of this round, including this one.
    round: Vec<String>,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("path", &self.place.path())
            .finish_non_exhaustive()
    }
}

impl Member {
    /// Returns the path of the member's znode.
    #[must_use]
    pub fn path(&self) -> &str {
        self.place.path()
    }

    /// Leaves the barrier and waits until every member of this round has left, without a time limit
    /// unless [`Acquire::within`] sets one. A member whose session is over counts as gone, but
    /// still waits for the others.
    ///
    /// # Cancel safety
    /// Dropping the future removes the member without waiting, even if the future was never polled.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] when other members have not left, [`LockError::Client`] when a
    /// server refuses or the client is closed. The member is removed in each case.
    pub fn leave(self) -> Acquire<'static, Self, ()> {
        Acquire::new(self, |member, how| Box::pin(member.end(how.wait())))
    }

    async fn end(self, wait: Wait) -> Result<(), LockError> {
        let Self {
            queue,
            place,
            mut round,
        } = self;
        let mut place = Some(place);
        let mut pace = Pace::of(&queue.client);
        // A member that enters while this one leaves belongs to the next round.
        let mut is_round_known = false;
        loop {
            let epoch = queue.connected(wait).await?;
            // A znode of an ended session is gone or about to go.
            place = place.filter(|place| place.epoch == epoch);
            let list = queue.client.children(&queue.path).stamped();
            let (names, seen_in) = match queue.limited(wait, list).await? {
                Ok(list) => (names(&list.value), list.epoch),
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(()),
                Err(error) => {
                    retry(&queue, wait, &mut pace, error).await?;
                    continue;
                }
            };
            let is_ready = names.iter().any(|name| name == READY);
            let mut there = members(names);
            let own = place.as_ref().map(|place| place.name().to_owned());
            let is_own = |name: &String| Some(name) == own.as_ref();
            if !is_round_known && seen_in == epoch && there.iter().any(is_own) {
                // No member can finish before this one is gone, so all of these are of its round.
                round.clone_from(&there);
            }
            is_round_known = true;
            let is_empty = there.is_empty();
            there.retain(|name| round.contains(name));
            let (Some(lowest), Some(highest)) = (there.first(), there.last()) else {
                if is_ready && is_empty {
                    delete(&queue, &naming::join(&queue.path, READY), wait, &mut pace).await?;
                }
                return Ok(());
            };
            // The lowest waits for all others, the highest first. The others wait for the lowest,
            // so it leaves last, and no member finishes before the lowest has seen all others
            // leave.
            let awaited = if is_own(lowest) { highest } else { lowest };
            if is_own(awaited) {
                if let Some(place) = place.take() {
                    leave_by(&queue, place, wait, &mut pace).await?;
                }
                continue;
            }
            let read = queue
                .client
                .get_data_and_watch(&naming::join(&queue.path, awaited));
            let read = queue.limited(wait, read);
            let watch = match read.await? {
                Ok((_, watch)) => watch,
                Err(error) if error.is(ErrorCode::NoNode) => continue,
                Err(error) => {
                    retry(&queue, wait, &mut pace, error).await?;
                    continue;
                }
            };
            if !is_own(lowest)
                && let Some(place) = place.take()
            {
                leave_by(&queue, place, wait, &mut pace).await?;
            }
            pace.reset();
            if wait.event(watch).await.is_none() {
                return Err(queue.timed_out(wait));
            }
        }
    }
}

/// Deletes the member's znode and waits for the confirmation.
async fn leave_by(
    queue: &Queue,
    place: QueueNode,
    wait: Wait,
    pace: &mut Pace,
) -> Result<(), LockError> {
    let path = place.path().to_owned();
    // Dropping this is certain to delete the znode. The second deletion shows when it is gone.
    drop(place);
    delete(queue, &path, wait, pace).await
}

async fn delete(queue: &Queue, path: &str, wait: Wait, pace: &mut Pace) -> Result<(), LockError> {
    loop {
        queue.connected(wait).await?;
        let delete = queue.client.multi(Multi::new().delete(path, None));
        match queue.limited(wait, delete).await? {
            Ok(_) => return Ok(()),
            Err(error) if error.is(ErrorCode::NoNode) => return Ok(()),
            Err(error) => retry(queue, wait, pace, error).await?,
        }
    }
}
