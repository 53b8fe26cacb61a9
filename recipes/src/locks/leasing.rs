//! How a semaphore acquires leases: the inner lock, the directory of leases, the maximum.
//!
//! Source: `docs/curator-recipes.md` section 6; Curator's `InterProcessSemaphoreV2`.

use std::{future::pending, sync::Arc};

use minikeeper_client::{
    Call, Children, CreateMode, Epoch, ErrorCode, EventKind, Fired, OneShot, Stamped,
};
use tokio::time::sleep_until;

use crate::{
    client::{Standings, names},
    error::{LockError, ValueError},
    locks::{
        guard::Guard,
        held::Held,
        semaphore::{Lease, MaxChanges, MaxLeases},
    },
    queue::{
        contending::{Queue, Wait},
        naming::lock_name,
        order::Claim,
        pace::Pace,
        queue_node::QueueNode,
    },
    status::FencingToken,
};

/// The parts of a semaphore.
#[derive(Clone)]
pub(crate) struct Leasing {
    pub(crate) path: Arc<str>,
    /// The inner lock.
    pub(crate) locks: Queue,
    pub(crate) leases: Queue,
    pub(crate) max: MaxLeases,
}

/// The request for the list of leases, with a watch.
type LeaseListing = Call<Stamped<(Children, OneShot)>>;

/// The znodes of the leases of one acquisition. They are dropped in reverse order.
pub(crate) struct Places(Vec<QueueNode>);

impl Places {
    pub(crate) fn into_inner(mut self) -> Vec<QueueNode> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

/// The event that ends a wait for other leases.
enum LeasingEvent {
    /// Leases were created or deleted.
    Leases,
    /// There is a new connection: events may have been lost with the old one.
    Reconnected,
    Max(Result<(), ValueError>),
    /// The session or the inner lock is gone.
    Gone,
    TimedOut,
}

impl Leasing {
    /// Acquires leases (sections 6.2 and 6.3).
    pub(crate) async fn contend(&self, wanted: u32, wait: Wait) -> Result<Places, LockError> {
        if wanted == 0 {
            return Err(LockError::NothingWanted {
                path: self.path.to_string(),
            });
        }
        let taken = if self.leases.options.leases_together {
            match self.max {
                MaxLeases::Fixed(max) if wanted > max => Err(LockError::TooMany {
                    path: self.path.to_string(),
                    wanted,
                    max,
                }),
                _ => self.take_together(wanted, wait).await,
            }
        } else {
            self.take_in_turn(wanted, wait).await
        };
        // Name the semaphore, not its directory.
        taken.map_err(|error| match error {
            LockError::TimedOut { within, .. } => LockError::TimedOut {
                path: self.path.to_string(),
                within,
            },
            LockError::Lost { attempts, .. } => LockError::Lost {
                path: self.path.to_string(),
                attempts,
            },
            other => other,
        })
    }

    /// Acquires one lease after the other and releases the inner lock in between, as Curator does.
    async fn take_in_turn(&self, wanted: u32, wait: Wait) -> Result<Places, LockError> {
        let mut places = Places(Vec::new());
        for _ in 0..wanted {
            let mut changes = self.max.changes();
            self.fresh_max(wait).await?;
            let taken = self.take_at_once(1, &mut changes, wait).await?;
            places.0.extend(taken.into_inner());
        }
        Ok(places)
    }

    /// Acquires all leases under one hold of the inner lock.
    async fn take_together(&self, wanted: u32, wait: Wait) -> Result<Places, LockError> {
        let mut changes = self.max.changes();
        let mut max = self.fresh_max(wait).await?;
        let mut pace = Pace::of(&self.leases.client);
        while max < wanted {
            let changed = self.leases.in_time(wait, changes.next()).await?;
            self.changed(changed, wait, &mut pace).await?;
            max = self.current_max()?;
        }
        self.take_at_once(wanted, &mut changes, wait).await
    }

    async fn take_at_once(
        &self,
        wanted: u32,
        changes: &mut MaxChanges,
        wait: Wait,
    ) -> Result<Places, LockError> {
        let attempts_max = self.leases.options.attempts_max.max(1);
        for attempt in 0..attempts_max {
            if attempt > 0 {
                self.leases.observed.requeued();
            }
            // Declared first, so that it is dropped last: the next contender must not count leases
            // that are about to be deleted.
            let mut inner = self.locks.acquire(Claim::Mutex, wait).await?;
            let _reported = self.locks.report(Claim::Mutex, &inner);
            let entered = self.enter(wanted, &mut inner, changes, wait).await?;
            // Nothing waits for its release, so a failed release cannot cost the leases (hazard
            // H15).
            drop(inner);
            if let Some(places) = entered {
                return Ok(places);
            }
        }
        Err(LockError::Lost {
            path: self.path.to_string(),
            attempts: attempts_max,
        })
    }

    /// Creates leases in the directory and waits until there is room for them. `None` if one of
    /// them, the inner lock or the session is gone.
    async fn enter(
        &self,
        wanted: u32,
        inner: &mut QueueNode,
        changes: &mut MaxChanges,
        wait: Wait,
    ) -> Result<Option<Places>, LockError> {
        let leases = &self.leases;
        let is_listed = leases.options.create_and_list_together && !leases.options.watch_own;
        let list = || is_listed.then(|| self.ask());
        let mode = CreateMode::EphemeralSequential;
        let count = wanted as usize;
        let entered = leases
            .enter_many(lock_name::LEASE, mode, count, wait, list)
            .await?;
        let Some((places, mut listing)) = entered else {
            return Ok(None);
        };
        let mut places = Places(places);
        // The inner lock does not exist in a later session.
        if places.0.iter().any(|place| place.epoch != inner.epoch) {
            return Ok(None);
        }
        let mut pace = Pace::of(&leases.client);
        let mut states = Standings::of(&leases.client);
        if leases.options.watch_own && !self.watch_own(&mut places.0, wait).await? {
            return Ok(None);
        }
        let mut is_listed_before = false;
        loop {
            if std::mem::replace(&mut is_listed_before, true) {
                leases.observed.listed_again();
            }
            let asked = listing.take();
            let looked = self.look(asked, inner.epoch, wait, &mut pace).await?;
            let Some((names, mut changed, connections)) = looked else {
                return Ok(None);
            };
            let is_missing = |place: &QueueNode| names.iter().all(|name| name != place.name());
            if places.0.iter().any(is_missing) {
                return Ok(None);
            }
            loop {
                // The number of leases counts, not the position of this one: a holder keeps its
                // lease. The maximum may have changed during the wait for the inner lock. Reading
                // it sends nothing unless its watch has fired.
                let max = self.fresh_max(wait).await? as usize;
                if names.len() <= max {
                    return Ok(Some(places));
                }
                if leases.options.look_ahead > 0
                    && inner.watch.is_none()
                    && !self.watch_own(std::slice::from_mut(inner), wait).await?
                {
                    return Ok(None);
                }
                let reconnected = async {
                    while leases.client.connections() == connections {
                        if states.next().await.is_none() {
                            pending::<()>().await;
                        }
                    }
                };
                let next = self.next(&mut changed, reconnected, inner, changes, wait);
                match next.await {
                    LeasingEvent::Leases => {
                        pace.reset();
                        break;
                    }
                    // The event of the watch may have been lost with the connection.
                    LeasingEvent::Reconnected => break,
                    LeasingEvent::Max(changed) => self.changed(changed, wait, &mut pace).await?,
                    LeasingEvent::Gone => return Ok(None),
                    LeasingEvent::TimedOut => return Err(leases.timed_out(wait)),
                }
            }
        }
    }

    /// Waits for the first event that matters.
    async fn next(
        &self,
        changed: &mut OneShot,
        reconnected: impl Future<Output = ()>,
        inner: &mut QueueNode,
        changes: &mut MaxChanges,
        wait: Wait,
    ) -> LeasingEvent {
        let time = async {
            match wait.until {
                Some(until) => sleep_until(until).await,
                None => pending().await,
            }
        };
        // Events that came by the deadline count.
        tokio::select! {
            biased;
            fired = changed => match fired {
                Fired::Event { kind: EventKind::ChildrenChanged, .. } => LeasingEvent::Leases,
                _ => LeasingEvent::Gone,
            },
            () = inner.reported_deleted() => LeasingEvent::Gone,
            () = reconnected => LeasingEvent::Reconnected,
            changed = changes.next() => LeasingEvent::Max(changed),
            () = time => LeasingEvent::TimedOut,
        }
    }

    /// Requests the list; also returns the number of connections so far.
    fn ask(&self) -> (u64, LeaseListing) {
        let connections = self.leases.client.connections();
        let list = self.leases.client.children_and_watch(&self.leases.path);
        (connections, list.stamped())
    }

    /// Waits for the list, or requests it. `None` if it is from another session, or the directory
    /// is gone. Also returns the number of connections at the time of the request.
    async fn look(
        &self,
        mut asked: Option<(u64, LeaseListing)>,
        epoch: Epoch,
        wait: Wait,
        pace: &mut Pace,
    ) -> Result<Option<(Vec<String>, OneShot, u64)>, LockError> {
        loop {
            let (connections, listing) = asked.take().unwrap_or_else(|| self.ask());
            match self.leases.limited(wait, listing).await? {
                // A list of another session may still show the leases of the one before.
                Ok(Stamped {
                    value,
                    epoch: seen_in,
                    ..
                }) => {
                    let (children, watch) = value;
                    let looked = (names(&children), watch, connections);
                    return Ok((seen_in == epoch).then_some(looked));
                }
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(None),
                Err(error) if !error.is_retryable() => return Err(error.into()),
                // The reconnect after a lost connection has paused already.
                Err(error) if error.code().is_some() => self.leases.pause(wait, pace).await?,
                Err(_) => {}
            }
            if self.leases.connected(wait).await? != epoch {
                return Ok(None);
            }
        }
    }

    /// Watches these znodes; false if one of them is gone.
    async fn watch_own(&self, places: &mut [QueueNode], wait: Wait) -> Result<bool, LockError> {
        let client = &self.leases.client;
        let reads: Vec<_> = places
            .iter()
            .map(|place| client.get_data_and_watch(place.path()))
            .collect();
        for (place, read) in places.iter_mut().zip(reads) {
            match self.leases.limited(wait, read).await? {
                Ok((_, watch)) => place.watch = Some(watch),
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(false),
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    async fn fresh_max(&self, wait: Wait) -> Result<u32, LockError> {
        let mut pace = Pace::of(&self.leases.client);
        loop {
            match self.leases.limited(wait, self.max.get()).await? {
                Err(ValueError::Client(error)) if error.is_retryable() => {
                    self.leases.again(wait, &mut pace).await?;
                }
                max => return max.map_err(|error| self.no_max(error)),
            }
        }
    }

    /// Handles a change of the maximum, or the failure to read it.
    async fn changed(
        &self,
        changed: Result<(), ValueError>,
        wait: Wait,
        pace: &mut Pace,
    ) -> Result<(), LockError> {
        match changed {
            Err(ValueError::Client(error)) if error.is_retryable() => {
                self.leases.again(wait, pace).await.map(drop)
            }
            changed => changed.map_err(|error| self.no_max(error)),
        }
    }

    fn current_max(&self) -> Result<u32, LockError> {
        self.max.current().map_err(|error| self.no_max(error))
    }

    pub(crate) fn no_max(&self, source: ValueError) -> LockError {
        LockError::NoMaximum {
            path: self.path.to_string(),
            source,
        }
    }

    /// Begins the hold of a lease.
    pub(crate) fn lease(&self, place: QueueNode) -> Lease {
        let token = FencingToken::new(place.czxid);
        Lease {
            guard: Guard::new(Held::new(&self.leases, place, None, token)),
        }
    }
}
