//! A contender, which acquires and releases in rounds while faults happen. Shared by all worlds.

use std::{future::Future, sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::{Client, Epoch, Error};
use minikeeper_recipes::{FencingToken, Guard, LockError, LockOptions, Released, Status};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use minikeeper_test_kit::clock;

use crate::sim::{
    chance::Chance,
    judge::{Hold, HoldId, Judge, Kind},
};

/// The time within which all contenders must be served after the faults end.
pub const PROGRESS: Duration = Duration::from_secs(60);

/// One contender.
pub struct Contender {
    pub who: usize,
    pub number: usize,
    pub client: Client,
    pub options: LockOptions,
    pub chance: Chance,
    pub judge: Arc<Judge>,
    /// When the faults end.
    pub end: Instant,
    /// Whether this is the last round, in which the contender must be served.
    pub is_last: bool,
}

impl Contender {
    /// Creates a contender on the client with this number, with random options.
    pub fn new(
        who: usize,
        (number, client): (usize, &Client),
        mut chance: Chance,
        judge: &Arc<Judge>,
        end: Instant,
    ) -> Self {
        Self {
            who,
            number,
            client: client.clone(),
            options: chance.options(),
            chance,
            judge: Arc::clone(judge),
            end,
            is_last: false,
        }
    }

    /// Pauses before the next round. Returns `false` after the last round.
    pub async fn next_round(&mut self) -> bool {
        sleep(self.chance.millis(300)).await;
        self.judge.look();
        let is_over = clock::now() >= self.end;
        let has_next = !(is_over && self.is_last);
        self.is_last = is_over;
        has_next
    }

    /// Acquires in a random way: with a timeout, by dropping the future, or without a limit.
    pub async fn get<T, A, B>(
        &mut self,
        within: impl FnOnce(Duration) -> A,
        unlimited: impl FnOnce() -> B,
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
            3..6 => match timeout(wait, unlimited()).await {
                Ok(got) => got,
                Err(_) => {
                    self.judge.event("cancelled");
                    return None;
                }
            },
            _ => {
                let until = clock::now().max(self.end) + PROGRESS;
                match timeout_at(until, unlimited()).await {
                    Ok(got) => got,
                    Err(_) => {
                        let who = self.who;
                        self.judge.violation(format!("{who} is not served in time"));
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
            // The session was lost too often, or so was an earlier hold.
            Err(LockError::Lost { .. }) if !self.is_last => {
                self.judge.event("lost while waiting");
                None
            }
            Err(error) => {
                let who = self.who;
                self.failed(format!("{who} cannot acquire: {error}"));
                None
            }
        }
    }

    /// Reports a grant to the judge.
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

    /// Reports the grant of a guard to the judge.
    pub fn granted_guard(
        &self,
        recipe: &'static str,
        lock: &'static str,
        kind: Kind,
        guard: &Arc<Guard>,
    ) -> HoldId {
        let held = Arc::clone(guard);
        let grant = (guard.token(), guard.epoch());
        self.granted(recipe, lock, kind, grant, move || {
            !matches!(held.status(), Status::Lost(_))
        })
    }

    /// Holds for a while, or until `lost` resolves.
    pub async fn keep<T>(&mut self, lost: impl Future<Output = T>) {
        let hold = self.chance.millis(800);
        if timeout(hold, lost).await.is_ok() {
            self.judge.event("noticed a loss");
        }
    }

    /// Releases a hold: drops it, or releases it and waits for the result.
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
                self.failed(format!("{who} cannot release: {error}"));
            }
            Err(_) => {
                let who = self.who;
                self.judge
                    .violation(format!("{who} does not finish releasing"));
            }
        }
    }

    /// Reports an operation that failed, unless a fault may be why: faults end before the last round,
    /// or the judge expects one at any time.
    pub fn failed(&self, what: String) {
        if self.judge.expects_faults() {
            self.judge.event("failed");
        } else {
            self.judge.violation(what);
        }
    }

    fn patience(&self) -> Duration {
        self.end.saturating_duration_since(clock::now()) + PROGRESS
    }

    /// Waits for a future that must resolve within [`PROGRESS`] of the end of the faults.
    pub async fn must<T>(&self, what: &str, wait: impl Future<Output = T>) -> Option<T> {
        let done = timeout(self.patience(), wait).await.ok();
        if done.is_none() {
            let who = self.who;
            self.judge
                .violation(format!("{who} does not finish: {what}"));
        }
        done
    }
}

/// Returns what contenders have left behind: their znodes, watches, clean-ups that have not ended.
pub fn left_behind<'a>(
    server: &Server,
    clients: impl Iterator<Item = &'a Client>,
) -> Option<String> {
    let pending: usize = clients.map(Client::clean_ups_pending).sum();
    let dump = server.dump();
    let is_left = |line: &&str| line.starts_with("watch ") || line.contains("_c_");
    let left: Vec<_> = dump.lines().filter(is_left).collect();
    (pending > 0 || !left.is_empty()).then(|| format!("left: {pending} pending, {left:#?}"))
}

/// Takes a handle out of its `Arc`, after the judge has dropped its reference.
pub fn own<T>(shared: Arc<T>) -> T {
    Arc::into_inner(shared).expect("this is the last reference")
}
