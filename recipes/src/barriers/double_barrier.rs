//! The double barrier: so many begin together, and end together.
//!
//! Source: `docs/curator-recipes.md` section 17; Curator's `DistributedDoubleBarrier`.

use std::{fmt, sync::Arc, time::Duration};

use minikeeper_client::{
    CreateMode, Epoch, Error, ErrorCode, EventKind, Fired, Multi, Stamped, ZnodePath, Zxid,
};

use crate::{
    client::ZooKeeper,
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

/// The znode that says that everybody is there.
const READY: &str = "ready";

/// A barrier where members wait for each other twice: nobody begins before so many are there, and
/// nobody is done before all are. Java processes with Curator's class of the same name may be
/// among them.
///
/// It may be used in rounds: whoever has left may enter again, and waits for the others to do so
/// too. Members who leave do not wait for those of the next round, which members with Curator do
/// if one comes before they have seen everybody go. A member who comes when the others are there
/// already is late, and enters at once. The znode `ready` goes with the last who leaves; if every
/// member goes without leaving it stays, and the next one who enters removes it. One with Curator
/// enters at once then.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let address = server.connect_string();
/// use minikeeper_client::Client;
/// use minikeeper_recipes::DistributedDoubleBarrier;
///
/// let client = Client::connect(&address).await?;
/// let barrier = DistributedDoubleBarrier::new(client, "/barriers/game", 2)?;
/// let (one, other) = tokio::try_join!(barrier.enter(), barrier.enter())?;
/// tokio::try_join!(one.leave(), other.leave())?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct DistributedDoubleBarrier<C: ZooKeeper> {
    queue: Queue<C>,
    members: usize,
}

impl<C: ZooKeeper> fmt::Debug for DistributedDoubleBarrier<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributedDoubleBarrier")
            .field("path", &self.queue.path)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

impl<C: ZooKeeper> DistributedDoubleBarrier<C> {
    /// The barrier at this path, for so many members; none is as one. Nothing is asked of a server
    /// yet.
    ///
    /// # Errors
    /// [`Error::Path`] when the path breaks a rule: it says which.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_recipes::DistributedDoubleBarrier;
    ///
    /// let alone = DistributedDoubleBarrier::new(client, "/barriers/game", 1)?;
    /// alone.enter().await?.leave().await?;
    /// # Ok(()) }
    /// ```
    pub fn new(client: C, path: &str, members: usize) -> Result<Self, Error> {
        ZnodePath::new(path)?;
        Ok(Self {
            queue: Queue {
                client,
                path: path.into(),
                options: Arc::new(LockOptions::default()),
            },
            members,
        })
    }

    /// Enters, and waits until so many are there. Every call is another member.
    ///
    /// Dropping the future takes the member away.
    ///
    /// # Errors
    /// [`LockError::Lost`] when the session is lost too often while it waits, [`LockError::Client`]
    /// when a server refuses or the client is closed. A lost connection is no error: it waits for
    /// the next one.
    pub fn enter(&self) -> Acquire<'_, Self, Member<C>> {
        Acquire::new(self, |barrier, how| Box::pin(barrier.begin(how.wait())))
    }

    async fn begin(&self, wait: Wait) -> Result<Member<C>, LockError> {
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

    /// Creates the own znode. `None` if it was created in a session that is over.
    ///
    /// The session is that of the replies: one that was known before may be over by the time a
    /// request is sent.
    async fn announce(
        &self,
        wait: Wait,
        pace: &mut Pace,
    ) -> Result<Option<QueueNode<C>>, LockError> {
        let Queue {
            client,
            path: directory,
            ..
        } = &self.queue;
        let name = client.new_id().hyphenated().to_string();
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
            let create = client.create(&path, b"", CreateMode::Ephemeral, true);
            let failed = match self.queue.limited(wait, create).await? {
                Ok(created) => {
                    unanswered.is_due = false;
                    let (czxid, epoch) = (created.value.stat.czxid, created.epoch);
                    return Ok(Some(QueueNode::new(client.clone(), path, czxid, epoch)));
                }
                // Of a creation that was not answered: nobody else knows the name.
                Err(error) if error.is(ErrorCode::NodeExists) => {
                    let look = client.exists(&path);
                    match self.queue.limited(wait, look).await? {
                        Ok(Stamped {
                            value: Some(stat),
                            epoch,
                            ..
                        }) => {
                            unanswered.is_due = false;
                            // Dropped, it is deleted: one of an earlier session may be counted as a
                            // member until it goes.
                            let place = QueueNode::new(client.clone(), path, stat.czxid, epoch);
                            let is_own = Some(stat.ephemeral_owner) == client.session();
                            return Ok(is_own.then_some(place));
                        }
                        // It went with its session, just now.
                        Ok(_) => return Ok(None),
                        Err(error) => error,
                    }
                }
                Err(error) if error.is(ErrorCode::NoNode) => {
                    let made = parents::make(client, directory);
                    match self.queue.limited(wait, made).await? {
                        Ok(()) => continue,
                        Err(error) if error.is(ErrorCode::NoNode) => {
                            // One of them was cleared away in between.
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

    /// Waits before a request is made again that failed so, if that may help.
    async fn retry(&self, wait: Wait, pace: &mut Pace, error: Error) -> Result<(), LockError> {
        retry(&self.queue, wait, pace, error).await
    }

    /// Waits until everybody is there. `None` if the own znode or its session is gone.
    async fn gather(
        &self,
        mut place: QueueNode<C>,
        wait: Wait,
        pace: &mut Pace,
    ) -> Result<Option<Member<C>>, LockError> {
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
            // The watch before the list: whoever is missing there creates `ready` after it.
            let ready = queue.client.watch_exists(&ready_path);
            let list = queue.client.children(&queue.path);
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
            let there = members(list.value);
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
                // It was there before this member. Of members who are still there, it is late, and
                // one of them, as with Curator; of nobody, an earlier round has left it behind.
                if self.has_older(&there, ready.czxid, wait, pace).await? {
                    return member(place, there);
                }
                delete(queue, &ready_path, wait, pace).await?;
                continue;
            }
            if there.iter().all(|name| name != place.name()) {
                place.forget();
                return Ok(None);
            }
            if there.len() >= self.members {
                // Its own creation, or another's.
                drop(watch);
                let mode = CreateMode::Persistent;
                let create = queue.client.create(&ready_path, b"", mode, false);
                match queue.limited(wait, create).await? {
                    Ok(_) => return member(place, there),
                    Err(error) if error.is(ErrorCode::NodeExists) => return member(place, there),
                    Err(error) if error.is(ErrorCode::NoNode) => {}
                    Err(error) => self.retry(wait, pace, error).await?,
                }
                continue;
            }
            pace.reset();
            match wait.event(watch).await {
                // Everybody was there, this one too, whatever has become of its session since.
                Some(Fired::Event {
                    kind: EventKind::Created,
                    ..
                }) => return member(place, there),
                Some(_) => {}
                None => return Err(queue.timed_out(wait)),
            }
        }
    }

    /// Whether one of these znodes is older than `ready`.
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
            // All in one flush.
            let looks: Vec<_> = paths.iter().map(|path| queue.client.exists(path)).collect();
            let mut failed = None;
            for look in looks {
                match queue.limited(wait, look).await? {
                    Ok(seen) if seen.value.is_some_and(|stat| stat.czxid < ready) => {
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

/// Waits before a request is made again that failed so, if that may help.
async fn retry<C: ZooKeeper>(
    queue: &Queue<C>,
    wait: Wait,
    pace: &mut Pace,
    error: Error,
) -> Result<(), LockError> {
    if !error.is_retryable() {
        return Err(error.into());
    }
    queue.in_time(wait, pace.after(&error)).await
}

/// The members in a list, in order: their names are all of one length and kind.
fn members(mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| name != READY);
    names.sort_unstable();
    names
}

/// A member of a double barrier who has entered. Dropping it takes it away without waiting for
/// the others.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// # use minikeeper_recipes::DistributedDoubleBarrier;
/// let barrier = DistributedDoubleBarrier::new(client, "/barriers/game", 1)?;
/// let member = barrier.enter().await?;
/// println!("{} plays", member.path());
/// member.leave().await?;
/// # Ok(()) }
/// ```
#[must_use = "a member that is dropped is gone"]
pub struct Member<C: ZooKeeper> {
    queue: Queue<C>,
    place: QueueNode<C>,
    /// Who was there when it was last looked, this one included.
    round: Vec<String>,
}

impl<C: ZooKeeper> fmt::Debug for Member<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("path", &self.place.path())
            .finish_non_exhaustive()
    }
}

impl<C: ZooKeeper> Member<C> {
    /// The path of the member's znode.
    #[must_use]
    pub fn path(&self) -> &str {
        self.place.path()
    }

    /// Leaves, and waits until everybody has. A member whose session is over has left; it waits
    /// for the others all the same.
    ///
    /// Dropping the future takes the member away without waiting.
    ///
    /// # Errors
    /// [`LockError::Client`] when a server refuses or the client is closed. The member is taken
    /// away then too.
    pub async fn leave(self) -> Result<(), LockError> {
        self.end(Wait::FOR_EVER).await
    }

    /// The same, for so long at most.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] if others are still there, and those of [`Member::leave`].
    pub async fn leave_within(self, within: Duration) -> Result<(), LockError> {
        self.end(Wait::within(within)).await
    }

    async fn end(self, wait: Wait) -> Result<(), LockError> {
        let Self {
            queue,
            place,
            mut round,
        } = self;
        let mut place = Some(place);
        let mut pace = Pace::of(&queue.client);
        // Whoever comes when this one is leaving belongs to the next round, and waits for it there.
        let mut is_round_known = false;
        loop {
            let epoch = queue.connected(wait).await?;
            // Of a session that is over: gone, or going.
            place = place.filter(|place| place.epoch == epoch);
            let list = queue.client.children(&queue.path);
            let (names, seen_in) = match queue.limited(wait, list).await? {
                Ok(list) => (list.value, list.epoch),
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
                // Nobody is through before this one has gone, so all of these are of its round.
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
            // The lowest waits for all others, the highest first; they wait for him, so that he
            // is the last and nobody is done before he has seen everybody go.
            let awaited = if is_own(lowest) { highest } else { lowest };
            if is_own(awaited) {
                if let Some(place) = place.take() {
                    leave_by(&queue, place, wait, &mut pace).await?;
                }
                continue;
            }
            let read = queue.client.watch_data(&naming::join(&queue.path, awaited));
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

/// Takes the own znode away and waits for that.
async fn leave_by<C: ZooKeeper>(
    queue: &Queue<C>,
    place: QueueNode<C>,
    wait: Wait,
    pace: &mut Pace,
) -> Result<(), LockError> {
    let path = place.path().to_owned();
    // It goes for certain from here on; the second deletion tells when.
    drop(place);
    delete(queue, &path, wait, pace).await
}

async fn delete<C: ZooKeeper>(
    queue: &Queue<C>,
    path: &str,
    wait: Wait,
    pace: &mut Pace,
) -> Result<(), LockError> {
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
