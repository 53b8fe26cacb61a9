//! Deliberate bugs in a lock and in a bench: the judge has to find each of them, and nothing in a
//! sound lock.

#![allow(
    clippy::unwrap_used,
    reason = "all of it is test code, its helpers included"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use minikeeper_bench::{
    Error,
    contest::Contest,
    judge::{Finding, Verdict, judge},
    peers::{
        Access, Belief, Contender, Doing, Fairness, Grant, LockFailure, LockUnderTest, Promises,
    },
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    None,
    /// One request in twenty is granted at once, even if the lock is held.
    GrantedAtOnce,
    /// A token is given twice.
    TokenRepeated,
    /// Two contenders, one session.
    SessionShared,
    /// The server does not reply to one request in twenty.
    RepliesLost,
}

/// A lock in memory: first come, first served.
struct InMemory {
    bug: Bug,
    free: Arc<Semaphore>,
    grants: Arc<AtomicU64>,
    contenders: AtomicU64,
}

impl LockUnderTest for InMemory {
    fn name(&self) -> String {
        format!("in memory, {:?}", self.bug)
    }

    fn promises(&self) -> Promises {
        Promises {
            fairness: Fairness::Fifo,
            durability: "nothing",
            death: "never",
            has_token: true,
        }
    }

    fn contender<'a>(&'a self, _: &'a str) -> Doing<'a, Result<Box<dyn Contender>, Error>> {
        let number = self.contenders.fetch_add(1, Ordering::Relaxed);
        let one = One {
            bug: self.bug,
            number: if self.bug == Bug::SessionShared {
                0
            } else {
                number
            },
            free: Arc::clone(&self.free),
            grants: Arc::clone(&self.grants),
            permit: None,
        };
        Box::pin(async move { Ok(Box::new(one) as _) })
    }
}

struct One {
    bug: Bug,
    number: u64,
    free: Arc<Semaphore>,
    grants: Arc<AtomicU64>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Contender for One {
    fn session(&self) -> String {
        self.number.to_string()
    }

    fn acquire(&mut self, _: Access) -> Doing<'_, Result<Grant, LockFailure>> {
        Box::pin(async move {
            let earlier = self.grants.load(Ordering::Relaxed);
            let is_unlucky = earlier % 20 == 19;
            if !(self.bug == Bug::GrantedAtOnce && is_unlucky) {
                self.permit = Arc::clone(&self.free).acquire_owned().await.ok();
            }
            if self.bug == Bug::RepliesLost && is_unlucky {
                self.grants.fetch_add(1, Ordering::Relaxed);
                self.permit = None;
                return Err(LockFailure::Unknown("no reply".into()));
            }
            let grant = self.grants.fetch_add(1, Ordering::Relaxed);
            let repeated = u64::from(self.bug == Bug::TokenRepeated && grant % 20 == 19);
            let token = Some(grant - repeated);
            Ok(Grant { token })
        })
    }

    fn acquire_within(
        &mut self,
        access: Access,
        _: Duration,
    ) -> Doing<'_, Result<Option<Grant>, LockFailure>> {
        Box::pin(async move { self.acquire(access).await.map(Some) })
    }

    fn belief(&self) -> Belief {
        Belief::NoAnswer
    }

    fn release(&mut self) -> Doing<'_, Result<(), LockFailure>> {
        self.permit = None;
        Box::pin(async { Ok(()) })
    }
}

fn verdict_on(bug: Bug) -> Verdict {
    let lock = InMemory {
        bug,
        free: Arc::new(Semaphore::new(1)),
        grants: Arc::new(AtomicU64::new(0)),
        contenders: AtomicU64::new(0),
    };
    let contest = Contest {
        contenders: 4,
        readers: 0,
        in_turn: false,
        hold: Duration::from_micros(20),
        warmup: 4,
        grants: 200,
        limit: Duration::from_secs(20),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let contested = runtime.block_on(contest.run(&lock, "lock")).unwrap();
    judge(&contested.history, None)
}

#[test]
fn sound_lock_passes() {
    let verdict = verdict_on(Bug::None);
    let checked = match (&verdict.exclusion, &verdict.fencing) {
        (Finding::Holds { checked }, Finding::Holds { .. }) => *checked,
        other => panic!("{other:?}"),
    };
    assert!(checked >= 200, "{checked}");
    assert_eq!((verdict.unknown, verdict.refusal), (0, None));
}

#[test]
fn two_holders_are_found() {
    let verdict = verdict_on(Bug::GrantedAtOnce);
    let Finding::Violated { counterexample, .. } = verdict.exclusion else {
        panic!("{verdict:?}");
    };
    // The minimum: two ask, two have the lock, and their writes.
    assert!(counterexample.lines().count() <= 8, "{counterexample}");
    assert!(verdict.refusal.is_some());
}

#[test]
fn repeated_token_is_found() {
    let verdict = verdict_on(Bug::TokenRepeated);
    assert!(!verdict.exclusion.is_violated());
    assert!(verdict.fencing.is_violated(), "{verdict:?}");
    assert!(verdict.refusal.is_some());
}

#[test]
fn shared_session_is_not_published() {
    let why = verdict_on(Bug::SessionShared).refusal.unwrap();
    assert!(why.contains("share session"), "{why}");
}

#[test]
fn lost_replies_are_counted_but_are_no_holds() {
    let verdict = verdict_on(Bug::RepliesLost);
    assert!(verdict.unknown > 0);
    assert!(!verdict.exclusion.is_violated(), "{verdict:?}");
}
