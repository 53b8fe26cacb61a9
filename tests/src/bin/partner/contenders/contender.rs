//! One contender: acquires a lock in rounds, and checks that no other holds it.

use std::{sync::Arc, time::Duration};

use minikeeper_client::{Client, CreateMode, Error, ErrorCode, Multi};
use minikeeper_recipes::{
    Guard, InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock,
    InterProcessSemaphoreMutex, InterProcessSemaphoreV2, LatchError, LatchOptions, LeaderLatch,
    Leadership, LockError, LockOptions, Status,
};
use minikeeper_test_kit::clock::Stopwatch;
use parking_lot::Mutex;

use super::{
    Fault,
    ledger::Entry,
    names::{self, Kind, LEASES, MEMBERS},
};

/// The pause before a retry after a lost connection.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Contender {
    pub(crate) client: Client,
    /// The path to which the ledger and the marks belong.
    pub(crate) path: String,
    /// The path of the lock: the same, unless `--elsewhere` plants a bug.
    pub(crate) lock_path: String,
    pub(crate) number: u32,
    pub(crate) rounds: u32,
    pub(crate) hold: Duration,
    pub(crate) options: LockOptions,
    pub(crate) gaps: Arc<Gaps>,
}

/// What contenders have counted.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) violations: u32,
    /// Locks that were lost while they were held.
    pub(crate) losses: u32,
    /// Entries in ledgers.
    pub(crate) writes: u32,
    /// Marks created.
    pub(crate) marks: u32,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Self) {
        self.violations += other.violations;
        self.losses += other.losses;
        self.writes += other.writes;
        self.marks += other.marks;
    }
}

/// The time between grants, over all contenders.
pub(crate) struct Gaps(Mutex<(Stopwatch, Duration)>);

impl Gaps {
    pub(crate) fn start() -> Self {
        Self(Mutex::new((Stopwatch::start(), Duration::ZERO)))
    }

    fn grant(&self) {
        let (last, longest) = &mut *self.0.lock();
        *longest = last.elapsed().max(*longest);
        *last = Stopwatch::start();
    }

    pub(crate) fn longest(&self) -> Duration {
        self.0.lock().1
    }
}

impl Contender {
    pub(crate) async fn run(&self, kind: Kind) -> Result<Seen, Fault> {
        let mut seen = Seen::default();
        match kind {
            Kind::Mutex => self.mutex(&mut seen).await,
            Kind::ReadWrite => self.read_write(&mut seen).await,
            Kind::SemaphoreMutex => self.semaphore_mutex(&mut seen).await,
            Kind::Semaphore => self.semaphore(&mut seen).await,
            Kind::MultiLock => self.multi_lock(&mut seen).await,
            Kind::LeaderLatch => self.leader_latch(&mut seen).await,
        }?;
        self.leave(&mut seen).await?;
        Ok(seen)
    }

    fn mutex_at(&self, path: &str) -> Result<InterProcessMutex, Error> {
        InterProcessMutex::with_options(self.client.clone(), path, self.options.clone())
    }

    async fn mutex(&self, seen: &mut Seen) -> Result<(), Fault> {
        let lock = self.mutex_at(&self.lock_path)?;
        for _ in 0..self.rounds {
            let guard = with_retries(|| lock.acquire()).await?;
            self.write_and_release(guard, "", seen).await?;
        }
        Ok(())
    }

    async fn semaphore_mutex(&self, seen: &mut Seen) -> Result<(), Fault> {
        let (client, options) = (self.client.clone(), self.options.clone());
        let lock = InterProcessSemaphoreMutex::with_options(client, &self.lock_path, options)?;
        for _ in 0..self.rounds {
            let guard = with_retries(|| lock.acquire()).await?;
            self.write_and_release(guard, "", seen).await?;
        }
        Ok(())
    }

    async fn write_and_release(
        &self,
        guard: Guard,
        member: &str,
        seen: &mut Seen,
    ) -> Result<(), Fault> {
        self.gaps.grant();
        self.write_under(&guard, member, seen).await?;
        let _ = guard.release().await;
        Ok(())
    }

    /// Holders of a lease create marks, and count them.
    async fn semaphore(&self, seen: &mut Seen) -> Result<(), Fault> {
        let (client, options) = (self.client.clone(), self.options.clone());
        let max = u32::try_from(LEASES)?;
        let semaphore =
            InterProcessSemaphoreV2::with_options(client, &self.lock_path, max, options)?;
        let gauge = names::gauge(&self.path);
        for _ in 0..self.rounds {
            let lease = with_retries(|| semaphore.acquire()).await?;
            self.gaps.grant();
            if self.mark(lease.guard(), seen).await? {
                match self.client.children(&gauge).await {
                    Ok(inside) => seen.violations += u32::from(inside.len() > LEASES),
                    Err(error) if error.is_retryable() => {}
                    Err(error) => return Err(error.into()),
                }
                tokio::time::sleep(self.hold).await;
                seen.losses += u32::from(matches!(lease.status(), Status::Lost(_)));
                self.unmark().await?;
            }
            let _ = lease.release().await;
        }
        Ok(())
    }

    async fn read_write(&self, seen: &mut Seen) -> Result<(), Fault> {
        let (client, options) = (self.client.clone(), self.options.clone());
        let lock = InterProcessReadWriteLock::with_options(client, &self.lock_path, options)?;
        for round in 0..self.rounds {
            if (round + self.number).is_multiple_of(4) {
                let guard = with_retries(|| lock.acquire_write()).await?;
                self.gaps.grant();
                self.write_under(&guard, "", seen).await?;
                if round.is_multiple_of(8) {
                    match guard.downgrade().await {
                        Ok(reader) => self.read(&reader, seen).await?,
                        Err(LockError::HoldLost { .. }) => seen.losses += 1,
                        Err(error) => return Err(error.into()),
                    }
                }
            } else {
                let guard = with_retries(|| lock.acquire_read()).await?;
                self.gaps.grant();
                self.read(&guard, seen).await?;
                let _ = guard.release().await;
            }
        }
        Ok(())
    }

    /// One contender in four acquires single members.
    async fn multi_lock(&self, seen: &mut Seen) -> Result<(), Fault> {
        let paths = MEMBERS.map(|member| names::member(&self.lock_path, member));
        let members: Result<Vec<_>, _> = paths.iter().map(|path| self.mutex_at(path)).collect();
        let members = members?;
        let all = InterProcessMultiLock::new(members.clone());
        for round in 0..self.rounds {
            if self.number % 4 == 3 {
                let at = round as usize % MEMBERS.len();
                let guard = with_retries(|| members[at].acquire()).await?;
                self.write_and_release(guard, MEMBERS[at], seen).await?;
            } else {
                let guard = with_retries(|| all.acquire()).await?;
                self.gaps.grant();
                for (one, member) in guard.guards().iter().zip(MEMBERS) {
                    self.write_under(one, member, seen).await?;
                }
                let _ = guard.release().await;
            }
        }
        Ok(())
    }

    async fn leader_latch(&self, seen: &mut Seen) -> Result<(), Fault> {
        let mut options = LatchOptions::default();
        options.lock = self.options.clone();
        let id = format!("rust-{}", self.number);
        for _ in 0..self.rounds {
            let client = self.client.clone();
            let latch = LeaderLatch::start_with(client, &self.lock_path, &id, options.clone())?;
            let token = match latch.wait().await {
                Ok(token) => token,
                Err(LatchError::Failed(LockError::Client(error))) if error.is_retryable() => {
                    seen.losses += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            self.gaps.grant();
            let own = latch.own_path();
            // The path may belong to a later term unless it still leads.
            match own {
                Some(own) if latch.leadership() == (Leadership::Leader { token }) => {
                    self.write(&own, token.czxid, "", || false, seen).await?;
                }
                _ => seen.losses += 1,
            }
            let _ = latch.close().await;
        }
        Ok(())
    }

    async fn write_under(&self, guard: &Guard, member: &str, seen: &mut Seen) -> Result<(), Fault> {
        let is_lost = || matches!(guard.status(), Status::Lost(_));
        self.write(guard.path(), guard.token().czxid, member, is_lost, seen)
            .await
    }

    /// Writes to the ledger as the only holder. Retries over lost connections as long as the lock is
    /// held.
    async fn write(
        &self,
        own: &str,
        token: i64,
        member: &str,
        is_lost: impl Fn() -> bool,
        seen: &mut Seen,
    ) -> Result<(), Fault> {
        let ledger = names::ledger(&self.path, member);
        loop {
            match self.write_once(own, token, &ledger).await {
                Ok(is_violation) => {
                    seen.writes += 1;
                    seen.violations += u32::from(is_violation);
                    tokio::time::sleep(self.hold).await;
                    return Ok(());
                }
                // The check of the contender's znode has failed: the lock is lost.
                Err(Error::MultiRefused { index: 0, .. }) => {
                    seen.losses += 1;
                    return Ok(());
                }
                Err(Error::MultiRefused {
                    code: ErrorCode::BadVersion,
                    ..
                }) => {
                    seen.violations += 1;
                    return Ok(());
                }
                Err(error) if error.is_retryable() => {
                    if is_lost() {
                        seen.losses += 1;
                        return Ok(());
                    }
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes the entry. Returns `true` on a violation: the previous grant has a greater token.
    async fn write_once(&self, own: &str, token: i64, ledger: &str) -> Result<bool, Error> {
        let data = self.client.get_data(ledger).await?;
        let before = Entry::parse(data.as_bytes());
        if before.token == token {
            // Written by an attempt whose reply was lost.
            return Ok(false);
        }
        let entry = before.next(token).text();
        let write = Multi::new().check(own, None);
        let write = write.set_data(ledger, entry.as_bytes(), Some(data.stat.version));
        self.client.multi(write).await?;
        Ok(before.token > token)
    }

    /// Holds the read lock: no contender may write in the meantime.
    async fn read(&self, guard: &Guard, seen: &mut Seen) -> Result<(), Fault> {
        if !self.mark(guard, seen).await? {
            return Ok(());
        }
        let ledger = names::ledger(&self.path, "");
        let versions = async {
            let before = self.client.get_data(&ledger).await?;
            tokio::time::sleep(self.hold).await;
            let after = self.client.get_data(&ledger).await?;
            Ok::<_, Error>(before.stat.version == after.stat.version)
        };
        match versions.await {
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(error.into()),
            Ok(is_same) => match guard.status() {
                Status::Lost(_) => seen.losses += 1,
                _ => seen.violations += u32::from(!is_same),
            },
        }
        self.unmark().await
    }

    fn own_mark(&self) -> String {
        format!("{}/rust-{}", names::gauge(&self.path), self.number)
    }

    /// Creates the mark of this contender. Returns `false` if the lock is lost.
    async fn mark(&self, guard: &Guard, seen: &mut Seen) -> Result<bool, Fault> {
        let mark = self.own_mark();
        loop {
            let made = guard.multi(|multi| multi.create(&mark, b"", CreateMode::Ephemeral));
            match made.await {
                // The mark exists: created by an attempt whose reply was lost.
                Ok(_)
                | Err(Error::MultiRefused {
                    code: ErrorCode::NodeExists,
                    ..
                }) => {
                    seen.marks += 1;
                    return Ok(true);
                }
                Err(Error::MultiRefused { index: 0, .. }) => {
                    seen.losses += 1;
                    return Ok(false);
                }
                Err(error) if error.is_retryable() => {
                    if let Status::Lost(_) = guard.status() {
                        seen.losses += 1;
                        // The mark may exist nevertheless.
                        self.unmark().await?;
                        return Ok(false);
                    }
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn unmark(&self) -> Result<(), Fault> {
        loop {
            match self.client.delete(&self.own_mark(), None).await {
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(()),
                Err(error) if error.is_retryable() => tokio::time::sleep(RETRY_PAUSE).await,
                other => return Ok(other?),
            }
        }
    }

    /// Waits until no ephemeral of this session is left; otherwise counts a violation.
    async fn leave(&self, seen: &mut Seen) -> Result<(), Fault> {
        // A release in the background may take a reconnect.
        for _ in 0..250 {
            match self.client.ephemerals("/").await {
                Ok(left) if left.is_empty() => return Ok(()),
                Err(error) if !error.is_retryable() => return Err(error.into()),
                _ => tokio::time::sleep(RETRY_PAUSE).await,
            }
        }
        seen.violations += 1;
        Ok(())
    }
}

/// Acquires a lock, with retries after retryable errors.
async fn with_retries<T, F>(acquire: impl Fn() -> F) -> Result<T, LockError>
where
    F: Future<Output = Result<T, LockError>>,
{
    loop {
        match acquire().await {
            Err(LockError::Client(error)) if error.is_retryable() => {}
            Err(LockError::Lost { .. }) => {}
            other => return other,
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}
