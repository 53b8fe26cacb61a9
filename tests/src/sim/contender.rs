//! One who wants something again and again, whatever happens: what all worlds share.

use std::{future::Future, sync::Arc, time::Duration};

use minikeeper_client::{Client, Epoch, Error};
use minikeeper_recipes::{FencingToken, Guard, LockError, LockOptions, Released, Status};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use minikeeper_test_kit::clock;

use crate::sim::{
    chance::Chance,
    judge::{Hold, HoldId, Judge, Kind},
};

/// How long it may take after the faults end until all contenders have been served.
pub const PROGRESS: Duration = Duration::from_secs(60);

/// One contender.
pub struct Contender {
    pub who: usize,
    pub number: usize,
    pub client: Client,
    pub options: LockOptions,
    pub chance: Chance,
    pub judge: Arc<Judge>,
    /// When all is well again.
    pub end: Instant,
    /// Whether it has begun its last round, in which it must be served.
    pub is_last: bool,
}

impl Contender {
    /// Thinks before the next round; false when there is none.
    pub async fn goes_on(&mut self) -> bool {
        sleep(self.chance.millis(300)).await;
        self.judge.look();
        let is_over = clock::now() >= self.end;
        let goes_on = !(is_over && self.is_last);
        self.is_last = is_over;
        goes_on
    }

    /// Waits for something: with a deadline, until it drops the future, or without a limit.
    pub async fn get<T, A, B>(
        &mut self,
        within: impl FnOnce(Duration) -> A,
        for_ever: impl FnOnce() -> B,
    ) -> Option<T>
    where
        A: Future<Output = Result<T, LockError>>,
        B: Future<Output = Result<T, LockError>>,
    {
        let wait = match self.chance.below(4) {
            0 => Duration::ZERO,
            1 => self.chance.millis(200),
            _ => self.chance.millis(5_000),
        };
        let way = if self.is_last {
            9
        } else {
            self.chance.below(10)
        };
        let got = match way {
            0..3 => within(wait).await,
            3..6 => match timeout(wait, for_ever()).await {
                Ok(got) => got,
                Err(_) => {
                    self.judge.event("cancelled");
                    return None;
                }
            },
            _ => {
                let until = clock::now().max(self.end) + PROGRESS;
                match timeout_at(until, for_ever()).await {
                    Ok(got) => got,
                    Err(_) => {
                        let who = self.who;
                        self.judge.violation(format!("{who} is never served"));
                        return None;
                    }
                }
            }
        };
        match got {
            Ok(got) => Some(got),
            Err(LockError::TimedOut { .. }) => {
                self.judge.event("timed out");
                None
            }
            // The session was lost too often, or what was got first.
            Err(LockError::Lost { .. }) if !self.is_last => {
                self.judge.event("lost while waiting");
                None
            }
            Err(error) => {
                let who = self.who;
                self.judge.violation(format!("{who} is refused: {error}"));
                None
            }
        }
    }

    /// Tells the judge of a grant.
    pub fn granted(
        &self,
        recipe: &'static str,
        lock: &'static str,
        kind: Kind,
        (token, epoch): (FencingToken, Epoch),
        is_believed: impl Fn() -> bool + Send + 'static,
    ) -> HoldId {
        self.judge.granted(Hold {
            client: self.number,
            who: self.who,
            recipe,
            lock,
            kind,
            token,
            epoch,
            is_believed: Box::new(is_believed),
        })
    }

    /// The same, of a guard.
    pub fn granted_guard(
        &self,
        recipe: &'static str,
        lock: &'static str,
        kind: Kind,
        guard: &Arc<Guard<Client>>,
    ) -> HoldId {
        let held = Arc::clone(guard);
        let grant = (guard.token(), guard.epoch());
        self.granted(recipe, lock, kind, grant, move || {
            !matches!(held.status(), Status::Lost(_))
        })
    }

    /// Keeps something for a while, or until it is lost.
    pub async fn keep<T>(&mut self, lost: impl Future<Output = T>) {
        let hold = self.chance.millis(800);
        if timeout(hold, lost).await.is_ok() {
            self.judge.event("noticed a loss");
        }
    }

    /// Gives something back: at once, or waiting for certainty.
    pub async fn give_back<T, R>(&mut self, got: T, release: impl FnOnce(T) -> R)
    where
        R: Future<Output = Result<Released, Error>>,
    {
        if self.chance.once_in(2) && !self.is_last {
            drop(got);
            return;
        }
        match timeout(self.patience(), release(got)).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) if !self.is_last => self.judge.event("release not certain"),
            Ok(Err(error)) => {
                let who = self.who;
                self.judge
                    .violation(format!("{who} cannot release: {error}"));
            }
            Err(_) => {
                let who = self.who;
                self.judge
                    .violation(format!("{who} waits for ever to release"));
            }
        }
    }

    fn patience(&self) -> Duration {
        self.end.saturating_duration_since(clock::now()) + PROGRESS
    }

    /// Waits for something that must come once all is well again.
    pub async fn must<T>(&self, what: &str, wait: impl Future<Output = T>) -> Option<T> {
        let done = timeout(self.patience(), wait).await.ok();
        if done.is_none() {
            let who = self.who;
            self.judge
                .violation(format!("{who} waits for ever: {what}"));
        }
        done
    }
}

/// The only handle there is, back from behind its `Arc` when the judge has let go of it.
pub fn own<T>(shared: Arc<T>) -> T {
    Arc::into_inner(shared).expect("this is the last reference")
}
