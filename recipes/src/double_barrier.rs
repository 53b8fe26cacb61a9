//! The double barrier: so many begin together, and end together.
//!
//! Source: curator-recipes reference section 17; Curator's `DistributedDoubleBarrier`.

use std::{fmt, sync::Arc, time::Duration};

use minikeeper_client::{
    CreateMode, Error, ErrorCode, EventKind, Fired, Multi, Stamped, ZnodePath,
};

use crate::{
    client::ZooKeeper,
    error::LockError,
    naming,
    options::LockOptions,
    parents,
    place::{Place, Unanswered},
    queue::{Queue, Wait},
};

/// The znode that says that everybody is there.
const READY: &str = "ready";

/// A barrier where members wait for each other twice: nobody begins before so many are there, and
/// nobody is done before all are. Java processes with Curator's class of the same name may be
/// among them.
///
/// For one round at a time: who enters while others leave is taken for one of them. The znode
/// `ready` goes with the last who leaves; if every member goes without leaving it stays, and lets
/// the next round begin at once, as with Curator.
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
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::DistributedDoubleBarrier;
    /// let barrier = DistributedDoubleBarrier::new(client, "/barriers/game", 2)?;
    /// // In two processes: each gets here when the other does.
    /// let (one, other) = tokio::try_join!(barrier.enter(), barrier.enter())?;
    /// assert_ne!(one.path(), other.path());
    /// # Ok(()) }
    /// ```
    pub async fn enter(&self) -> Result<Member<C>, LockError> {
        self.begin(Wait::FOR_EVER).await
    }

    /// The same, for so long at most. Who gives up is not counted any more; with Curator he is.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and those of [`DistributedDoubleBarrier::enter`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use std::time::Duration;
    /// # use minikeeper_recipes::{DistributedDoubleBarrier, LockError};
    /// let barrier = DistributedDoubleBarrier::new(client, "/barriers/game", 2)?;
    /// let alone = barrier.enter_within(Duration::from_millis(10)).await;
    /// assert!(matches!(alone, Err(LockError::TimedOut { .. })));
    /// # Ok(()) }
    /// ```
    pub async fn enter_within(&self, within: Duration) -> Result<Member<C>, LockError> {
        self.begin(Wait::within(within)).await
    }

    async fn begin(&self, wait: Wait) -> Result<Member<C>, LockError> {
        let attempts = self.queue.options.attempts_max;
        for _ in 0..attempts {
            let Some(place) = self.announce(wait).await? else {
                continue;
            };
            if let Some(place) = self.gather(place, wait).await? {
                return Ok(Member {
                    queue: self.queue.clone(),
                    place,
                });
            }
        }
        Err(LockError::Lost {
            path: self.queue.path.to_string(),
            attempts,
        })
    }

    /// Creates the own znode. `None` if the session went meanwhile.
    async fn announce(&self, wait: Wait) -> Result<Option<Place<C>>, LockError> {
        let Queue {
            client,
            path: directory,
            ..
        } = &self.queue;
        let epoch = self.queue.connected(wait).await?;
        let name = client.new_id().hyphenated().to_string();
        let path = naming::join(directory, &name);
        let mut unanswered = Unanswered {
            client,
            epoch,
            directory,
            prefix: &name,
            is_due: false,
        };
        loop {
            let create = client.create(&path, b"", CreateMode::Ephemeral, true);
            match self.queue.limited(wait, create).await? {
                Ok(created) => {
                    unanswered.is_due = false;
                    let (czxid, made_in) = (created.value.stat.czxid, created.epoch);
                    let place = Place::new(client.clone(), path, czxid, made_in);
                    return Ok((made_in == epoch).then_some(place));
                }
                // Of a creation that was not answered: nobody else knows the name.
                Err(error) if error.is(ErrorCode::NodeExists) => {
                    let look = client.exists(&path);
                    match self.queue.limited(wait, look).await? {
                        Ok(Stamped {
                            value: Some(stat),
                            epoch: seen_in,
                            ..
                        }) if seen_in == epoch => {
                            unanswered.is_due = false;
                            let place = Place::new(client.clone(), path, stat.czxid, epoch);
                            return Ok(Some(place));
                        }
                        Err(error) if !error.is_retryable() => return Err(error.into()),
                        _ => {}
                    }
                }
                Err(error) if error.is(ErrorCode::NoNode) => {
                    let made = parents::make(client, directory);
                    match self.queue.limited(wait, made).await? {
                        Err(error) if !error.is_retryable() => return Err(error.into()),
                        _ => {}
                    }
                }
                Err(error) if error.is_retryable() => unanswered.is_due = true,
                Err(error) => return Err(error.into()),
            }
            if self.queue.connected(wait).await? != epoch {
                return Ok(None);
            }
        }
    }

    /// Waits until everybody is there. `None` if the own znode or its session is gone.
    async fn gather(&self, mut place: Place<C>, wait: Wait) -> Result<Option<Place<C>>, LockError> {
        let queue = &self.queue;
        let ready_path = naming::join(&queue.path, READY);
        loop {
            if queue.connected(wait).await? != place.epoch {
                return Ok(None);
            }
            // The watch before the list: whoever is missing there creates `ready` after it.
            let ready = queue.client.watch_exists(&ready_path);
            let list = queue.client.children(&queue.path);
            let watch = match queue.limited(wait, ready).await? {
                Ok((None, watch)) => watch,
                Ok((Some(_), _)) => return Ok(Some(place)),
                Err(error) if error.is_retryable() => continue,
                Err(error) => return Err(error.into()),
            };
            let list = match queue.limited(wait, list).await? {
                Ok(list) => list,
                Err(error) if error.is(ErrorCode::NoNode) => {
                    place.forget();
                    return Ok(None);
                }
                Err(error) if error.is_retryable() => continue,
                Err(error) => return Err(error.into()),
            };
            if list.epoch != place.epoch {
                return Ok(None);
            }
            let there = members(list.value);
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
                    Ok(_) => return Ok(Some(place)),
                    Err(error) if error.is(ErrorCode::NodeExists) => return Ok(Some(place)),
                    Err(error) if error.is_retryable() || error.is(ErrorCode::NoNode) => continue,
                    Err(error) => return Err(error.into()),
                }
            }
            match wait.event(watch).await {
                // Everybody was there, this one too, whatever has become of its session since.
                Some(Fired::Event {
                    kind: EventKind::Created,
                    ..
                }) => return Ok(Some(place)),
                Some(_) => {}
                None => return Err(queue.timed_out(wait)),
            }
        }
    }
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
    place: Place<C>,
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
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::DistributedDoubleBarrier;
    /// # let barrier = DistributedDoubleBarrier::new(client, "/barriers/game", 1)?;
    /// let member = barrier.enter().await?;
    /// assert!(member.path().starts_with("/barriers/game/"));
    /// # Ok(()) }
    /// ```
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
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_recipes::DistributedDoubleBarrier;
    /// # let barrier = DistributedDoubleBarrier::new(client, "/barriers/game", 2)?;
    /// let (one, other) = tokio::try_join!(barrier.enter(), barrier.enter())?;
    /// // In two processes: neither is done before the other is.
    /// tokio::try_join!(one.leave(), other.leave())?;
    /// # Ok(()) }
    /// ```
    pub async fn leave(self) -> Result<(), LockError> {
        self.end(Wait::FOR_EVER).await
    }

    /// The same, for so long at most.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] if others are still there, and those of [`Member::leave`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use std::time::Duration;
    /// # use minikeeper_recipes::{DistributedDoubleBarrier, LockError};
    /// # let barrier = DistributedDoubleBarrier::new(client, "/barriers/game", 2)?;
    /// let (one, other) = tokio::try_join!(barrier.enter(), barrier.enter())?;
    /// let left = one.leave_within(Duration::from_millis(10)).await;
    /// assert!(matches!(left, Err(LockError::TimedOut { .. })));
    /// // It has left all the same.
    /// other.leave().await?;
    /// # Ok(()) }
    /// ```
    pub async fn leave_within(self, within: Duration) -> Result<(), LockError> {
        self.end(Wait::within(within)).await
    }

    async fn end(self, wait: Wait) -> Result<(), LockError> {
        let Self { queue, place } = self;
        let mut place = Some(place);
        loop {
            let epoch = queue.connected(wait).await?;
            // Of a session that is over: gone, or going.
            place = place.filter(|place| place.epoch == epoch);
            let list = queue.client.children(&queue.path);
            let there = match queue.limited(wait, list).await? {
                Ok(list) => members(list.value),
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(()),
                Err(error) if error.is_retryable() => continue,
                Err(error) => return Err(error.into()),
            };
            let own = place.as_ref().map(|place| place.name().to_owned());
            let is_own = |name: &String| Some(name) == own.as_ref();
            let (Some(lowest), Some(highest)) = (there.first(), there.last()) else {
                return delete(&queue, &naming::join(&queue.path, READY), wait).await;
            };
            // The lowest waits for all others, the highest first; they wait for him, so that he
            // is the last and nobody is done before he has seen everybody go.
            let awaited = if is_own(lowest) { highest } else { lowest };
            if is_own(awaited) {
                if let Some(place) = place.take() {
                    leave_by(&queue, place, wait).await?;
                }
                continue;
            }
            let read = queue.client.watch_data(&naming::join(&queue.path, awaited));
            let read = queue.limited(wait, read);
            let watch = match read.await? {
                Ok((_, watch)) => watch,
                Err(error) if error.is(ErrorCode::NoNode) || error.is_retryable() => continue,
                Err(error) => return Err(error.into()),
            };
            if !is_own(lowest)
                && let Some(place) = place.take()
            {
                leave_by(&queue, place, wait).await?;
            }
            if wait.event(watch).await.is_none() {
                return Err(queue.timed_out(wait));
            }
        }
    }
}

/// Takes the own znode away and waits for that.
async fn leave_by<C: ZooKeeper>(
    queue: &Queue<C>,
    place: Place<C>,
    wait: Wait,
) -> Result<(), LockError> {
    let path = place.path().to_owned();
    // It goes for certain from here on; the second deletion tells when.
    drop(place);
    delete(queue, &path, wait).await
}

async fn delete<C: ZooKeeper>(queue: &Queue<C>, path: &str, wait: Wait) -> Result<(), LockError> {
    loop {
        queue.connected(wait).await?;
        let delete = queue.client.multi(Multi::new().delete(path, None));
        match queue.limited(wait, delete).await? {
            Ok(_) => return Ok(()),
            Err(error) if error.is(ErrorCode::NoNode) => return Ok(()),
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(error.into()),
        }
    }
}
