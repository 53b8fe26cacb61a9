//! The queue of a lock: entering it, waiting in it, leaving it.
//!
//! Source: `docs/curator-recipes.md` sections 4.2 and 4.4; Curator's `LockInternals`. The names of
//! the steps (A2 to A10) are those of section 4.4.

use std::{borrow::Cow, sync::Arc, time::Duration};

use minikeeper_client::{
    Cause, Client, CreateMode, CreateOptions, Created, Epoch, Error, ErrorCode, Fired, Names,
    Stamped,
};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::{
    call_limit::CallLimit,
    client::{Standing, Standings, names, new_id},
    clock,
    error::LockError,
    observe::Observed,
    options::LockOptions,
    queue::{
        naming,
        order::Claim,
        pace::Pace,
        parents,
        position::QueuePosition,
        queue_node::{QueueNode, Unanswered},
        waiting::{self, Outcome},
    },
};

/// How long a request may take beyond the deadline of the lock while there is a connection: if the
/// deadline passes during a round trip, the reply still counts.
const GRACE: Duration = Duration::from_secs(1);

/// How often the directory may be deleted between its creation and its use.
pub(crate) const PARENTS_MAX: u32 = 10;

/// How long a call waits for a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) until: Option<Instant>,
    /// The limit that the caller has set, for the error message.
    pub(crate) within: Duration,
}

impl Wait {
    pub(crate) const FOR_EVER: Self = Self {
        until: None,
        within: Duration::MAX,
    };

    pub(crate) fn within(within: Duration) -> Self {
        Self {
            until: clock::now().checked_add(within),
            within,
        }
    }

    /// Waits for an event; `None` if none came before the deadline.
    pub(crate) async fn event(self, watch: impl Future<Output = Fired>) -> Option<Fired> {
        match self.until {
            None => Some(watch.await),
            Some(until) => timeout_at(until, watch).await.ok(),
        }
    }

    /// Returns whether the time limit has passed.
    pub(crate) fn is_late(self) -> bool {
        self.until.is_some_and(|until| until <= clock::now())
    }

    /// Returns the time limit for a reply that is needed for any decision.
    fn with_grace(self) -> Option<Instant> {
        self.until.map(|until| until.max(clock::now() + GRACE))
    }
}

/// A directory in which contenders queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) client: Client,
    pub(crate) path: Arc<str>,
    pub(crate) options: Arc<LockOptions>,
    pub(crate) observed: Observed,
    /// Where the contenders of this lock object report their position.
    pub(crate) position: Option<QueuePosition>,
}

/// The request for the list of contenders, made together with the creation of the contender's
/// znode.
pub(crate) type Listing =
    std::pin::Pin<Box<dyn Future<Output = Result<Stamped<Names>, Error>> + Send>>;

impl Queue {
    /// Creates the queue of a recipe, by the name of its type.
    pub(crate) fn new(
        recipe: &'static str,
        client: Client,
        path: &str,
        options: LockOptions,
    ) -> Self {
        let observed = Observed::new(recipe, path, &options);
        Self {
            client,
            path: Arc::clone(&observed.path),
            options: Arc::new(options),
            observed,
            position: None,
        }
    }

    /// Returns the same queue for another handle of the client.
    pub(crate) fn with_client(&self, client: Client) -> Self {
        Self {
            client,
            ..self.clone()
        }
    }

    pub(crate) fn timed_out(&self, wait: Wait) -> LockError {
        LockError::TimedOut {
            path: self.path.to_string(),
            within: wait.within,
        }
    }

    /// A2: waits for a session.
    pub(crate) async fn connected(&self, wait: Wait) -> Result<Epoch, LockError> {
        if let Standing::Connected { epoch, .. } = Standing::of(&self.client) {
            return Ok(epoch);
        }
        let connected = async {
            let mut states = Standings::of(&self.client);
            let mut standing = Standing::of(&self.client);
            loop {
                match standing {
                    Standing::Connected { epoch, .. } => return Ok(epoch),
                    Standing::Closed => return Err(closed(&self.path)),
                    _ => {}
                }
                standing = states.next().await.unwrap_or(Standing::Closed);
            }
        };
        match wait.until {
            Some(until) => timeout_at(until, connected)
                .await
                .map_err(|_| self.timed_out(wait))?,
            None => connected.await,
        }
    }

    /// A3 to A5: creates the contender's znode. `None` if the session ended in between.
    pub(crate) async fn enter(
        &self,
        name: &str,
        mode: CreateMode,
        wait: Wait,
    ) -> Result<Option<(QueueNode, Option<Listing>)>, LockError> {
        let is_listed = self.options.create_and_list_together && mode.is_sequential();
        let list = || is_listed.then(|| self.list());
        let entered = self.enter_many(name, mode, 1, wait, list).await?;
        Ok(entered.and_then(|(mut places, listing)| Some((places.pop()?, listing))))
    }

    /// Like [`Queue::enter`], for several znodes of one session. The request of `list` is sent with
    /// them, after them.
    ///
    /// The epoch comes from the replies: the session that was known before may be over by the time
    /// a request is sent.
    pub(crate) async fn enter_many<L>(
        &self,
        name: &str,
        mode: CreateMode,
        count: usize,
        wait: Wait,
        list: impl Fn() -> Option<L> + Send,
    ) -> Result<Option<(Vec<QueueNode>, Option<L>)>, LockError> {
        let mut places: Vec<QueueNode> = Vec::new();
        let mut pace = Pace::of(&self.client);
        let mut parents_made = 0;
        loop {
            // All requests leave together: make each before waiting for the first.
            let mut creates = Vec::new();
            for _ in places.len()..count {
                let path = naming::protected_path(&self.path, new_id(&self.client), name);
                let options = CreateOptions::new(mode).withdrawn_if_dropped(true);
                let create = self
                    .client
                    .create(&path, &self.options.data, options)
                    .stamped();
                creates.push((path, create));
            }
            let mut listing = list();
            let mut missing = None;
            let mut is_refused = false;
            for (path, create) in creates {
                match self.limited(wait, create).await? {
                    Ok(created) => {
                        let place = self.place(created);
                        self.check_sequence(place.name())?;
                        places.push(place);
                    }
                    Err(error) if error.is(ErrorCode::NoNode) => missing = Some(path),
                    Err(error) if error.is_outcome_unknown() => {
                        // The list was lost with the same connection, or lacks the znode found
                        // here.
                        listing = None;
                        is_refused |= error.code().is_some();
                        let prefix = &naming::name_of(&path)[..naming::PROTECTION_BYTES];
                        match self.recover(prefix, wait, &mut pace).await? {
                            Recovered::Found(place) => places.push(place),
                            Recovered::SessionLost => return Ok(None),
                            Recovered::NotCreated => {}
                        }
                    }
                    Err(error) if error.cause() == Some(Cause::SessionLost) => return Ok(None),
                    Err(error) if error.is_retryable() => {
                        listing = None;
                        is_refused |= error.code().is_some();
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            let epoch = places.first().map(|place| place.epoch);
            if places.iter().any(|place| Some(place.epoch) != epoch) {
                return Ok(None);
            }
            if places.len() == count {
                return Ok(Some((places, listing)));
            }
            if is_refused {
                self.pause(wait, &mut pace).await?;
            } else if missing.is_none() {
                self.observed.retried();
            }
            if let Some(path) = missing {
                match self.limited(wait, self.make_parents()).await? {
                    Err(error) if error.is_retryable() => self.pause(wait, &mut pace).await?,
                    Err(error) => return Err(error.into()),
                    Ok(_) => parents_made += 1,
                }
                if parents_made == PARENTS_MAX {
                    return Err(LockError::Client(Error::Refused {
                        op: "create2",
                        path,
                        code: ErrorCode::NoNode,
                    }));
                }
            }
        }
    }

    async fn make_parents(&self) -> Result<parents::Made, Error> {
        if self.options.parents_from_below {
            parents::make(&self.client, &self.path).await
        } else {
            parents::make_from_above(&self.client, &self.path).await
        }
    }

    fn place(&self, created: Stamped<Created>) -> QueueNode {
        let Created { path, stat } = created.value;
        QueueNode::new(self.client.clone(), path, stat.czxid, created.epoch)
    }

    fn check_sequence(&self, name: &str) -> Result<(), LockError> {
        match naming::sequence(name) {
            Some(sequence) if !(0..i64::from(naming::SEQUENCE_MAX)).contains(&sequence) => {
                Err(LockError::SequenceExhausted {
                    path: self.path.to_string(),
                    sequence,
                    max: naming::SEQUENCE_MAX,
                })
            }
            _ => Ok(()),
        }
    }

    /// A5: after a lost reply, finds out whether the znode was created, in any session: the request
    /// may have waited for a connection and left in a later session.
    async fn recover(
        &self,
        prefix: &str,
        wait: Wait,
        pace: &mut Pace,
    ) -> Result<Recovered, LockError> {
        let mut unanswered = Unanswered {
            client: &self.client,
            epoch: Epoch::default(),
            directory: &self.path,
            prefix,
            is_due: true,
        };
        let epoch = self.connected(wait).await?;
        loop {
            // Another server may not have applied the creation yet. After a sync it has, or never
            // will (section 14.6).
            let sync = self.client.sync(&self.path);
            let list = self.list();
            let both = async {
                sync.await?;
                list.await
            };
            let found = match self.limited(wait, both).await? {
                Ok(list) if list.epoch != epoch => return Ok(Recovered::SessionLost),
                Ok(list) => {
                    let mut names = list.value.iter();
                    let own = names.find(|name| name.starts_with(prefix));
                    own.map(Cow::into_owned)
                }
                Err(error) if error.is(ErrorCode::NoNode) => None,
                Err(error) if error.is_retryable() => {
                    if self.again(wait, pace).await? != epoch {
                        return Ok(Recovered::SessionLost);
                    }
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let Some(name) = found else {
                unanswered.is_due = false;
                return Ok(Recovered::NotCreated);
            };
            let path = naming::join(&self.path, &name);
            match self
                .limited(wait, self.client.exists(&path).stamped())
                .await?
            {
                Ok(Stamped {
                    value: Some(stat),
                    epoch: seen_in,
                    ..
                }) => {
                    unanswered.is_due = false;
                    // Dropping this deletes the znode: one of an earlier session would block this
                    // contender.
                    let place = QueueNode::new(self.client.clone(), path, stat.czxid, seen_in);
                    if seen_in != epoch {
                        return Ok(Recovered::SessionLost);
                    }
                    if Some(stat.ephemeral_owner) != self.client.session_id() {
                        return Ok(Recovered::NotCreated);
                    }
                    self.check_sequence(place.name())?;
                    return Ok(Recovered::Found(place));
                }
                // It was just deleted with its session.
                Ok(_) => self.pause(wait, pace).await?,
                Err(error) if error.is_retryable() => {
                    if self.again(wait, pace).await? != epoch {
                        return Ok(Recovered::SessionLost);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits before a retry after a temporary error, then for a connection; returns its session.
    pub(crate) async fn again(&self, wait: Wait, pace: &mut Pace) -> Result<Epoch, LockError> {
        self.pause(wait, pace).await?;
        self.connected(wait).await
    }

    /// Waits before a retry. Fails instead if the reply to the retry would come too late to count.
    pub(crate) async fn pause(&self, wait: Wait, pace: &mut Pace) -> Result<(), LockError> {
        let pause = pace.next();
        let end = wait.until.and_then(|until| until.checked_add(GRACE));
        if end.is_some_and(|end| clock::now() + pause > end) {
            return Err(self.timed_out(wait));
        }
        self.observed.retried();
        sleep(pause).await;
        Ok(())
    }

    pub(crate) fn list(&self) -> Listing {
        if self.options.names_only {
            return Box::pin(self.client.child_names(&self.path).stamped());
        }
        let children = self.client.children(&self.path).stamped();
        Box::pin(async move {
            let Stamped { value, zxid, epoch } = children.await?;
            let value = value.into();
            Ok(Stamped { value, zxid, epoch })
        })
    }

    /// Waits for a reply, at most until the deadline of the lock plus [`GRACE`].
    pub(crate) async fn limited<T>(
        &self,
        wait: Wait,
        answer: impl Future<Output = T>,
    ) -> Result<T, LockError> {
        match wait.with_grace() {
            Some(limit) => timeout_at(limit, answer)
                .await
                .map_err(|_| self.timed_out(wait)),
            None => Ok(answer.await),
        }
    }

    /// Waits for an event within this process, at most until the deadline of the lock.
    pub(crate) async fn in_time<T>(
        &self,
        wait: Wait,
        what: impl Future<Output = T>,
    ) -> Result<T, LockError> {
        match wait.until {
            Some(until) => timeout_at(until, what)
                .await
                .map_err(|_| self.timed_out(wait)),
            None => Ok(what.await),
        }
    }

    /// Asks whether the lock is free, before an attempt that does not wait (saving S11). `None` if
    /// this is not such an attempt, or if the server refuses temporarily: then the attempt itself
    /// finds out.
    pub(crate) async fn peek<T>(
        &self,
        wait: Wait,
        question: impl Future<Output = Result<T, LockError>>,
    ) -> Result<Option<T>, LockError> {
        if !self.options.peek || wait.within != Duration::ZERO {
            return Ok(None);
        }
        self.connected(wait).await?;
        match self.limited(wait, question).await? {
            Err(error) if error.is_passing() => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Reads the paths of all contenders, in order of the queue.
    pub(crate) async fn participants(&self, claim: Claim) -> Result<Vec<String>, Error> {
        let children = in_session(&self.client, self.client.children(&self.path));
        let limit = CallLimit::read(&self.client, "participants", &self.path);
        let children = limit.run(async { Ok::<_, Error>(children.await) }).await?;
        let names = match children.unwrap_or_else(|| Err(no_session("getChildren2", &self.path))) {
            Ok(children) => names(&children),
            Err(error) if error.is(ErrorCode::NoNode) => Vec::new(),
            Err(error) => return Err(error),
        };
        let names = crate::queue::order::sorted(claim, names);
        let path = |name: &String| naming::join(&self.path, name);
        Ok(names.iter().map(path).collect())
    }
}

impl Queue {
    /// Reads the paths of all contenders and the data of their znodes, in order of the queue. Omits
    /// contenders that leave during the call.
    pub(crate) async fn participants_with_data(
        &self,
        claim: Claim,
    ) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let limit = CallLimit::read(&self.client, "participants", &self.path);
        limit.run(self.read_participants(claim)).await
    }

    async fn read_participants(&self, claim: Claim) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let client = &self.client;
        let paths = self.participants(claim).await?;
        // All requests leave together.
        let reads: Vec<_> = paths.iter().map(|path| client.get_data(path)).collect();
        let mut participants = Vec::new();
        for (path, read) in paths.into_iter().zip(reads) {
            let read = in_session(client, read).await;
            match read.unwrap_or_else(|| Err(no_session("getData", &path))) {
                Ok(data) => participants.push((path, data.as_bytes().to_vec())),
                Err(error) if error.is(ErrorCode::NoNode) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(participants)
    }
}

enum Recovered {
    Found(QueueNode),
    /// It was not created, and never will be.
    NotCreated,
    SessionLost,
}

/// How long a read waits for a session: the first one, or the next one after a loss.
const SESSION_WAIT: Duration = Duration::from_secs(5);

/// Waits for a reply while there is a session, or one may soon begin. A lost connection does not
/// end the wait before the session is over. `None` if there is no session.
pub(crate) async fn in_session<T>(client: &Client, answer: impl Future<Output = T>) -> Option<T> {
    let over = async {
        let mut states = Standings::of(client);
        loop {
            let is_session_there = || {
                matches!(
                    Standing::of(client),
                    Standing::Connected { .. } | Standing::Suspended { .. }
                )
            };
            if is_session_there() {
                if states.next().await.is_none() {
                    return;
                }
                continue;
            }
            let next = async { while !is_session_there() && states.next().await.is_some() {} };
            if timeout(SESSION_WAIT, next).await.is_err() || !is_session_there() {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        answer = answer => Some(answer),
        () = over => None,
    }
}

/// Returns the error of a request that got no reply because there was no session.
pub(crate) fn no_session(op: &'static str, path: &str) -> Error {
    Error::OutcomeUnknown {
        op,
        path: path.to_owned(),
        cause: Cause::SessionLost,
    }
}

pub(crate) fn closed(path: &str) -> LockError {
    LockError::Client(Error::NotSent {
        op: "create2",
        path: path.to_owned(),
        cause: Cause::Closed,
    })
}

impl Queue {
    /// Waits in the queue until the claim is granted.
    pub(crate) async fn acquire(&self, claim: Claim, wait: Wait) -> Result<QueueNode, LockError> {
        for attempt in 0..self.options.attempts_max.max(1) {
            if attempt > 0 {
                self.observed.requeued();
            }
            self.connected(wait).await?;
            let mode = CreateMode::EphemeralSequential;
            let entered = self.enter(claim.lock_name(), mode, wait).await?;
            let Some((place, listing)) = entered else {
                continue;
            };
            match waiting::wait(self, claim, place, listing, wait).await? {
                Outcome::Granted(place) => return Ok(place),
                Outcome::Gone => {}
                Outcome::TimedOut => return Err(self.timed_out(wait)),
            }
        }
        Err(LockError::Lost {
            path: self.path.to_string(),
            attempts: self.options.attempts_max.max(1),
        })
    }
}

#[cfg(test)]
mod tests {
    use minikeeper_client::Client;

    use super::*;

    #[test]
    fn h19_sequence_numbers_close_to_the_end_of_the_counter_are_refused() {
        let (client, _driver) = Client::builder("nowhere").unwrap().build();
        let queue = Queue::new("test", client, "/locks/a", LockOptions::default());
        let max = i64::from(naming::SEQUENCE_MAX);
        for (name, refused) in [
            ("lock-0000000000", None),
            ("lock-2146999999", None),
            ("lock-2147000000", Some(max)),
            ("lock-2147483647", Some(i64::from(i32::MAX))),
            ("lock--000000001", Some(-1)),
        ] {
            let error = queue.check_sequence(name).err();
            let sequence = error.map(|error| match error {
                LockError::SequenceExhausted { sequence, .. } => sequence,
                other => panic!("{other}"),
            });
            assert_eq!(sequence, refused, "{name}");
        }
    }
}
