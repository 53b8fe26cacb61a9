//! Locks behind the same interface, and the tests that most of them pass: those of the catalogue, and faults
//! at every step. The file of each lock lists those that apply to it.
//!
//! Source: `docs/curator-recipes.md` sections 4.6, 6.6, 15.1 and 15.9; hazards H5, H20, H21, H24 and
//! H42.

use std::{
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use minikeeper::Server;
use minikeeper_client::{Client, Error};
use minikeeper_recipes::{
    FencingToken, Guard, InterProcessMultiLock, InterProcessMutex, InterProcessSemaphoreMutex,
    InterProcessSemaphoreV2, Lease, LockError, LockOptions, MultiGuard, Owner, Released, Status,
};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    kit::{PATH, SESSION_TIMEOUT, both_ways, client, soon, spawn, start, until},
    link::{Link, Mode},
    multi_lock, semaphore,
};

const WITHIN: Duration = Duration::from_secs(5);

/// The least number of await points of an acquisition, and of writes of one that must wait.
const AWAIT_POINTS_MIN: usize = 3;
const WRITES_MIN: usize = 3;

/// A lock that tests take, whatever its kind, at a path of its kind.
pub(crate) trait Lock: Clone + Send + Sync + 'static {
    type Held: Held;
    /// What makes another contender wait.
    type Obstacle;

    /// The directory that is deleted once no contender is left.
    const ROOT: &'static str;
    /// The directories of the contenders' znodes. The following numbers are of the znodes in each.
    const DIRECTORIES: &'static [&'static str];
    const HOLDER: &'static [usize];
    const HOLDER_AND_WAITER: &'static [usize];
    const OBSTACLE: &'static [usize];
    const OBSTACLE_AND_WAITER: &'static [usize];

    fn new(client: Client, options: &LockOptions) -> Self;

    fn take(&self) -> impl Future<Output = Result<Self::Held, LockError>> + Send;

    fn try_take(&self) -> impl Future<Output = Result<Option<Self::Held>, LockError>> + Send;

    /// Takes a part for which another contender waits, if it can in the middle of its acquisition.
    async fn obstruct(contender: &Contender<Self>) -> Self::Obstacle;
}

/// A lock that an owner takes again.
pub(crate) trait Reentrant: Lock {
    fn take_as(
        &self,
        owner: &Owner,
        within: Duration,
    ) -> impl Future<Output = Result<Self::Held, LockError>> + Send;
}

impl Reentrant for InterProcessMutex {
    async fn take_as(&self, owner: &Owner, within: Duration) -> Result<Guard, LockError> {
        self.acquire().as_owner(owner).within(within).await
    }
}

impl Reentrant for InterProcessMultiLock {
    async fn take_as(&self, owner: &Owner, within: Duration) -> Result<MultiGuard, LockError> {
        self.acquire().as_owner(owner).within(within).await
    }
}

/// A lock that is held.
pub(crate) trait Held: Send + Sync + 'static {
    fn guards(&self) -> Vec<&Guard>;

    async fn release(self) -> Result<Released, Error>;

    fn all(&self, is: impl Fn(Status) -> bool) -> bool {
        self.guards().iter().all(|guard| is(guard.status()))
    }

    fn tokens(&self) -> Vec<FencingToken> {
        self.guards().iter().map(|guard| guard.token()).collect()
    }
}

/// Implements [`Lock`] for one that is held by one guard.
macro_rules! one_guard {
    ($lock:ty, $root:expr, $directories:expr, $holder:expr, $holder_and_waiter:expr) => {
        impl Lock for $lock {
            type Held = Guard;
            type Obstacle = Guard;

            const ROOT: &'static str = $root;
            const DIRECTORIES: &'static [&'static str] = $directories;
            const HOLDER: &'static [usize] = $holder;
            const HOLDER_AND_WAITER: &'static [usize] = $holder_and_waiter;
            const OBSTACLE: &'static [usize] = $holder;
            const OBSTACLE_AND_WAITER: &'static [usize] = $holder_and_waiter;

            fn new(client: Client, options: &LockOptions) -> Self {
                Self::with_options(client, $root, options.clone()).unwrap()
            }

            async fn take(&self) -> Result<Guard, LockError> {
                self.acquire().await
            }

            async fn try_take(&self) -> Result<Option<Guard>, LockError> {
                self.try_acquire().await
            }

            async fn obstruct(contender: &Contender<Self>) -> Guard {
                contender.lock.take().await.unwrap()
            }
        }
    };
}

one_guard!(InterProcessMutex, PATH, &[PATH], &[1], &[2]);
one_guard!(
    InterProcessSemaphoreMutex,
    semaphore::PATH,
    semaphore::DIRECTORIES,
    &[1, 0],
    &[2, 1]
);

/// Two leases of a semaphore that has two.
impl Lock for InterProcessSemaphoreV2 {
    type Held = Vec<Lease>;
    type Obstacle = Lease;

    const ROOT: &'static str = semaphore::PATH;
    const DIRECTORIES: &'static [&'static str] = semaphore::DIRECTORIES;
    const HOLDER: &'static [usize] = &[2, 0];
    const HOLDER_AND_WAITER: &'static [usize] = &[4, 1];
    const OBSTACLE: &'static [usize] = &[1, 0];
    const OBSTACLE_AND_WAITER: &'static [usize] = &[3, 1];

    fn new(client: Client, options: &LockOptions) -> Self {
        Self::with_options(client, Self::ROOT, 2, options.clone()).unwrap()
    }

    async fn take(&self) -> Result<Vec<Lease>, LockError> {
        self.acquire_many(2).await
    }

    async fn try_take(&self) -> Result<Option<Vec<Lease>>, LockError> {
        match self.acquire_many(2).within(Duration::ZERO).await {
            Err(LockError::TimedOut { .. }) => Ok(None),
            taken => taken.map(Some),
        }
    }

    async fn obstruct(contender: &Contender<Self>) -> Lease {
        contender.lock.acquire().await.unwrap()
    }
}

impl Lock for InterProcessMultiLock {
    type Held = MultiGuard;
    type Obstacle = Guard;

    const ROOT: &'static str = "/multi";
    const DIRECTORIES: &'static [&'static str] = &multi_lock::PATHS;
    const HOLDER: &'static [usize] = &[1, 1, 1];
    const HOLDER_AND_WAITER: &'static [usize] = &[2, 1, 1];
    const OBSTACLE: &'static [usize] = &[0, 1, 0];
    const OBSTACLE_AND_WAITER: &'static [usize] = &[1, 2, 0];

    fn new(client: Client, options: &LockOptions) -> Self {
        let member =
            |path| InterProcessMutex::with_options(client.clone(), path, options.clone()).unwrap();
        Self::new(multi_lock::PATHS.map(member))
    }

    async fn take(&self) -> Result<MultiGuard, LockError> {
        self.acquire().await
    }

    async fn try_take(&self) -> Result<Option<MultiGuard>, LockError> {
        self.try_acquire().await
    }

    async fn obstruct(contender: &Contender<Self>) -> Guard {
        let middle = multi_lock::PATHS[1];
        let lock = InterProcessMutex::new(contender.client.clone(), middle).unwrap();
        lock.acquire().await.unwrap()
    }
}

impl Held for Guard {
    fn guards(&self) -> Vec<&Guard> {
        vec![self]
    }

    async fn release(self) -> Result<Released, Error> {
        Self::release(self).await
    }
}

impl Held for Vec<Lease> {
    fn guards(&self) -> Vec<&Guard> {
        self.iter().map(Lease::guard).collect()
    }

    async fn release(self) -> Result<Released, Error> {
        let mut released = Released::AlreadyGone;
        for lease in self {
            released = lease.release().await?;
        }
        Ok(released)
    }
}

impl Held for MultiGuard {
    fn guards(&self) -> Vec<&Guard> {
        Self::guards(self).iter().collect()
    }

    async fn release(self) -> Result<Released, Error> {
        Self::release(self).await
    }
}

/// A contender for a lock, with its own session.
pub(crate) struct Contender<L> {
    pub(crate) client: Client,
    pub(crate) link: Link,
    pub(crate) lock: L,
}

impl<L: Lock> Contender<L> {
    pub(crate) async fn new(server: &Arc<Server>, seed: u64, options: &LockOptions) -> Self {
        let (client, link) = client(server, seed).await;
        let lock = L::new(client.clone(), options);
        Self { client, link, lock }
    }

    /// Takes the lock in a task.
    pub(crate) fn waiting(&self) -> JoinHandle<Result<L::Held, LockError>> {
        let lock = self.lock.clone();
        spawn(async move { lock.take().await })
    }

    async fn clean(&self) {
        until("nothing is pending", || {
            self.client.clean_ups_pending() == 0
        })
        .await;
    }
}

/// Returns the names of the contenders' znodes in each directory.
fn names<L: Lock>(server: &Server) -> Vec<Vec<String>> {
    let list = |path: &&str| server.children(path).unwrap_or_default();
    L::DIRECTORIES.iter().map(list).collect()
}

/// Returns the number of the contenders' znodes in each directory.
pub(crate) fn znodes<L: Lock>(server: &Server) -> Vec<usize> {
    names::<L>(server).iter().map(Vec::len).collect()
}

async fn until_free<L: Lock>(server: &Server) {
    let is_free = || znodes::<L>(server).iter().all(|count| *count == 0);
    until("nothing is left", is_free).await;
}

/// Defines tests of this module for one lock.
macro_rules! lock_tests {
    ($lock:ty: $($test:ident),+ $(,)?) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $test() {
                crate::every_lock::$test::<$lock>().await;
            }
        )+
    };
}

pub(crate) use lock_tests;

pub(crate) async fn test_2_clients<L: Lock>() {
    for options in both_ways() {
        let server = start().await;
        let one = Contender::<L>::new(&server, 1, &options).await;
        let other = Contender::<L>::new(&server, 2, &options).await;
        let held = one.lock.take().await.unwrap();
        assert!(other.lock.try_take().await.unwrap().is_none());
        let waiting = other.waiting();
        sleep(Duration::from_secs(60)).await;
        assert!(!waiting.is_finished());
        assert_eq!(znodes::<L>(&server), L::HOLDER_AND_WAITER);
        let tokens = held.tokens();
        assert_eq!(held.release().await.unwrap(), Released::Done);
        let next = soon(waiting).await.unwrap().unwrap().tokens();
        assert_eq!(next.len(), tokens.len());
        assert!(next.iter().zip(&tokens).all(|(new, old)| new > old));
    }
}

/// The common session of a holder and a waiter expires: the waiter, a second lock object, gets the
/// lock.
pub(crate) async fn test_killed_session<L: Lock>() {
    for options in both_ways() {
        let server = start().await;
        let mut shared = Contender::<L>::new(&server, 1, &options).await;
        let held = shared.lock.take().await.unwrap();
        shared.lock = L::new(shared.client.clone(), &options);
        let waiting = shared.waiting();
        let waits = || znodes::<L>(&server) == L::HOLDER_AND_WAITER;
        until("it waits", waits).await;
        server.expire(shared.client.session_id().unwrap()).unwrap();
        // The status shows it without a task that waits for it.
        let is_lost = || held.all(|status| matches!(status, Status::Lost(_)));
        until("it is lost", is_lost).await;
        soon(held.guards()[0].lost()).await;
        let second = soon(waiting).await.unwrap().unwrap();
        assert!(second.all(|status| status == Status::Held));
        assert!(second.tokens()[0] > held.tokens()[0]);
        assert_eq!(held.release().await.unwrap(), Released::AlreadyGone);
        let is_one = || znodes::<L>(&server) == L::HOLDER;
        until("its inner lock is released", is_one).await;
    }
}

/// While one of two contenders holds the lock, all connections are lost and restored.
pub(crate) async fn test_waiting_process_killed_server<L: Lock>() {
    for options in both_ways() {
        let server = start().await;
        let one = Contender::<L>::new(&server, 1, &options).await;
        let other = Contender::<L>::new(&server, 2, &options).await;
        let held = one.lock.take().await.unwrap();
        let waiting = other.waiting();
        let waits = || znodes::<L>(&server) == L::HOLDER_AND_WAITER;
        until("it waits", waits).await;
        let before = names::<L>(&server);
        for link in [&one.link, &other.link] {
            link.set(Mode::Cut);
        }
        sleep(Duration::from_secs(1)).await;
        assert!(held.all(|status| matches!(status, Status::Suspended { .. })));
        for link in [&one.link, &other.link] {
            link.set(Mode::Pass);
        }
        let is_back = || held.all(|status| status == Status::Held);
        until("it is back", is_back).await;
        // No znode was created again (hazard H42).
        assert_eq!(names::<L>(&server), before);
        assert_eq!(held.release().await.unwrap(), Released::Done);
        drop(soon(waiting).await.unwrap().unwrap());
    }
}

pub(crate) async fn test_container_cleanup<L: Lock>() {
    let server = start().await;
    let mut contenders = Vec::new();
    for seed in 0..10 {
        contenders.push(Contender::<L>::new(&server, seed, &LockOptions::default()).await);
    }
    let take = |contender: &Contender<L>| {
        let lock = contender.lock.clone();
        spawn(async move { drop(lock.take().await.unwrap()) })
    };
    for task in contenders.iter().map(take).collect::<Vec<_>>() {
        soon(task).await.unwrap();
    }
    until("the directory is deleted", || server.get(L::ROOT).is_none()).await;
    drop(contenders[0].lock.take().await.unwrap());
}

pub(crate) async fn test_reentrant_2_threads<L: Reentrant>() {
    let server = start().await;
    let one = Contender::<L>::new(&server, 1, &LockOptions::default()).await;
    let (owner, other) = (Owner::new(), Owner::new());
    let _outer = one.lock.take_as(&owner, WITHIN).await.unwrap();
    let (inner, stranger) = tokio::join!(
        one.lock.take_as(&owner, WITHIN),
        one.lock.take_as(&other, WITHIN),
    );
    drop(inner.unwrap());
    assert!(matches!(stranger, Err(LockError::TimedOut { .. })));
}

/// Ten owners use one object: never two hold it at once.
pub(crate) async fn test_reentrant_single_lock<L: Reentrant>() {
    let server = start().await;
    let one = Contender::<L>::new(&server, 1, &LockOptions::default()).await;
    let inside = Arc::new(tokio::sync::Mutex::new(()));
    let tasks = (0..10).map(|_| {
        let (lock, inside) = (one.lock.clone(), Arc::clone(&inside));
        spawn(async move {
            let owner = Owner::new();
            let outer = lock.take_as(&owner, WITHIN).await.unwrap();
            let inner = lock.take_as(&owner, WITHIN).await.unwrap();
            let alone = inside.try_lock().expect("no other task holds the lock");
            sleep(Duration::from_millis(5)).await;
            drop(alone);
            drop((outer, inner));
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        soon(task).await.unwrap();
    }
    until_free::<L>(&server).await;
}

/// Polls a future N times.
pub(crate) struct Polls<F> {
    pub(crate) future: F,
    pub(crate) left: usize,
}

impl<F> Polls<F> {
    pub(crate) const fn new(future: F, left: usize) -> Self {
        Self { future, left }
    }
}

impl<F: Future + Unpin> Future for Polls<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        match Pin::new(&mut self.future).poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Drops an acquire after N polls; false if it was ready before.
async fn drop_after<L: Lock>(polls: usize, is_contended: bool, options: &LockOptions) -> bool {
    let server = start().await;
    let other = Contender::<L>::new(&server, 1, options).await;
    let mut others = vec![0; L::DIRECTORIES.len()];
    let mut obstacle = None;
    if is_contended {
        obstacle = Some(L::obstruct(&other).await);
        others = L::OBSTACLE.to_vec();
        until("it is in place", || znodes::<L>(&server) == others).await;
    }
    let dropper = Contender::<L>::new(&server, 2, options).await;
    let limited = {
        let take = pin!(dropper.lock.take());
        // A contended acquire waits without an end at its last await point.
        timeout(Duration::from_secs(1), Polls::new(take, polls)).await
    };
    let is_dropped = match limited {
        Ok(None) => true,
        Err(_) => false,
        Ok(Some(held)) => {
            assert!(!is_contended, "granted while another contender holds it");
            drop(held.unwrap());
            false
        }
    };
    dropper.clean().await;
    let is_gone = || znodes::<L>(&server) == others;
    until("its znodes are deleted", is_gone).await;
    // Both the next contender and the one that dropped can get the lock.
    drop(obstacle);
    drop(soon(other.lock.take()).await.unwrap());
    let held = soon(dropper.lock.take()).await.unwrap();
    // A dropped release does the same.
    let release = Box::pin(held.release());
    drop(timeout(WITHIN, Polls::new(release, polls)).await);
    until_free::<L>(&server).await;
    until("no watch is left", || !server.dump().contains("watch")).await;
    server.check().unwrap();
    is_dropped
}

pub(crate) async fn dropping_at_every_await_point_leaves_nothing<L: Lock>() {
    for options in both_ways() {
        for is_contended in [false, true] {
            let mut polls = 0;
            while drop_after::<L>(polls, is_contended, &options).await {
                polls += 1;
                assert!(polls < 100, "the loop does not end");
            }
            assert!(polls > AWAIT_POINTS_MIN, "{polls} await points");
        }
    }
}

/// From the Nth write on, the link loses everything for a while: each step loses its reply or its
/// request once. The lock is still acquired, once, and nothing is left behind. Returns whether there was an
/// Nth write.
async fn lose_at<L: Lock>(step: usize, mode: Mode, options: &LockOptions) -> bool {
    let server = start().await;
    let other = Contender::<L>::new(&server, 1, options).await;
    let obstacle = L::obstruct(&other).await;
    let victim = Contender::<L>::new(&server, 2, options).await;
    let link = victim.link.clone();
    let begun = link.writes.load(Ordering::Relaxed);
    let saboteur = spawn(async move {
        let is_reached = || link.writes.load(Ordering::Relaxed) - begun >= step;
        until("the step", is_reached).await;
        link.set(mode);
        sleep(Duration::from_millis(200)).await;
        link.cut();
    });
    // Replies are delayed, so that the saboteur can hit each step.
    victim.link.delay_replies(Duration::from_millis(2));
    let waiting = victim.waiting();
    sleep(Duration::from_secs(1)).await;
    let is_reached = saboteur.is_finished();
    saboteur.abort();
    victim.link.set(Mode::Pass);
    victim.link.delay_replies(Duration::ZERO);
    let waits = || znodes::<L>(&server) == L::OBSTACLE_AND_WAITER;
    until("it waits", waits).await;
    sleep(Duration::from_secs(10)).await;
    assert!(waits(), "no znode twice");
    assert!(!waiting.is_finished());
    drop(obstacle);
    let held = soon(waiting).await.unwrap().unwrap();
    let is_one = || znodes::<L>(&server) == L::HOLDER;
    until("its inner lock is released", is_one).await;
    assert_eq!(held.release().await.unwrap(), Released::Done);
    victim.clean().await;
    until_free::<L>(&server).await;
    is_reached
}

pub(crate) async fn h20_losing_the_link_at_every_step_keeps_the_place_in_the_queue<L: Lock>() {
    for options in both_ways() {
        for mode in [Mode::SwallowReplies, Mode::SwallowRequests, Mode::Cut] {
            let mut step = 0;
            while lose_at::<L>(step, mode, &options).await {
                step += 1;
                assert!(step < 100, "the loop does not end");
            }
            assert!(step >= WRITES_MIN, "{mode:?}: {step} writes");
        }
    }
}

/// Expires the session at each step. Not for locks of several parts, which may get one of the old
/// session.
pub(crate) async fn h5_expiring_at_every_step_grants_nothing_of_the_old_session<L: Lock>() {
    for options in both_ways() {
        for delay_ms in 0..16 {
            let server = start().await;
            let other = Contender::<L>::new(&server, 1, &options).await;
            let obstacle = L::obstruct(&other).await;
            let victim = Contender::<L>::new(&server, 2, &options).await;
            // Each reply takes a millisecond, so that each delay hits another step.
            victim.link.delay_replies(Duration::from_millis(1));
            let session = victim.client.session_id().unwrap();
            let waiting = victim.waiting();
            sleep(Duration::from_millis(delay_ms)).await;
            server.expire(session).unwrap();
            drop(obstacle);
            let held = soon(waiting).await.unwrap().unwrap();
            let epoch = victim.client.epoch();
            let is_current = |guard: &&Guard| guard.epoch() == epoch;
            assert!(held.guards().iter().all(is_current), "after {delay_ms} ms");
            let is_one = || znodes::<L>(&server) == L::HOLDER;
            until("its inner lock is released", is_one).await;
            let lost = timeout(3 * SESSION_TIMEOUT, held.guards()[0].lost()).await;
            assert!(lost.is_err());
        }
    }
}
