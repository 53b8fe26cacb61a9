//! Contenders that acquire one lock again and again: a closed loop, whose only result is a history.
//!
//! All contenders run in the calling thread's runtime. All of them ask for the lock before the
//! first holder releases it, so that the queue is full from the beginning. After enough grants, the
//! waiting contenders give up. A contender asks again right after its release or, in a contest in
//! turn, as soon as another one holds the lock. In turn, asking is not part of the hand-over, and
//! even a lock that prefers the last holder has to hand over.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout_at},
};

use crate::{
    Error,
    clock::{nanos, now_ns},
    history::{History, Recorder, What},
    peers::{Access, Contender, LockFailure, LockUnderTest},
    process,
    resource::Resource,
};

/// A turn of the runtime that is shorter than this did nothing.
pub(crate) const IDLE_TURN_NS: u64 = 5_000;

/// How long after the end a holder may take to release the lock.
const RELEASING: Duration = Duration::from_secs(10);

/// The settings of a contest.
#[derive(Clone, Debug)]
pub struct Contest {
    /// The number of contenders.
    pub contenders: u32,
    /// The percentage of requests that only read.
    pub readers: u32,
    /// Whether a contender asks again only when another one has the lock.
    pub in_turn: bool,
    /// How long a holder keeps the lock, while the other contenders of the thread run.
    pub hold: Duration,
    /// Grants before those that count; with one per contender, each has had the lock once.
    pub warmup: u32,
    /// Grants that count.
    pub grants: u32,
    /// When to stop even with fewer grants.
    pub limit: Duration,
}

/// The result of a contest.
#[derive(Debug)]
pub struct Contested {
    /// Everything that happened.
    pub history: History,
    /// The part that counts.
    pub timed: Range<u64>,
    /// CPU time of the contenders' thread, without the time in which holders did nothing.
    pub cpu_ns: u64,
    /// That CPU time as a share of the elapsed time.
    pub busy: f64,
}

/// Tasks that are aborted when this is dropped.
struct Ending(Vec<JoinHandle<Recorder>>);

impl Drop for Ending {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// The state shared by the contenders of a contest.
struct Shared {
    contest: Contest,
    resource: Resource,
    asked: AtomicU32,
    /// Contenders that have ended.
    ended: AtomicU32,
    grants: AtomicU32,
    /// Notified of each grant, in a contest in turn.
    granted: Notify,
    /// When the first and the last counting grant were given; 0 if not yet.
    from_ns: AtomicU64,
    to_ns: AtomicU64,
    /// The time in which a holder kept the lock and no contender had work, and the time up to which
    /// it is counted.
    idle_ns: AtomicU64,
    idle_until_ns: AtomicU64,
    end: Instant,
    over: watch::Sender<bool>,
}

impl Contest {
    /// Runs it on a lock of this name.
    ///
    /// # Errors
    /// If a contender cannot be created.
    pub async fn run(&self, lock: &dyn LockUnderTest, resource: &str) -> Result<Contested, Error> {
        let mut contenders = Vec::new();
        for _ in 0..self.contenders {
            contenders.push(lock.contender(resource).await?);
        }
        let shared = Arc::new(Shared {
            contest: self.clone(),
            resource: Resource::default(),
            asked: AtomicU32::new(0),
            ended: AtomicU32::new(0),
            grants: AtomicU32::new(0),
            granted: Notify::new(),
            from_ns: AtomicU64::new(0),
            to_ns: AtomicU64::new(0),
            idle_ns: AtomicU64::new(0),
            idle_until_ns: AtomicU64::new(0),
            end: crate::clock::tokio_now() + self.limit,
            over: watch::Sender::new(false),
        });
        let (began_ns, began_cpu) = (now_ns(), process::thread_cpu_ns()?);
        let tasks: Vec<_> = (0..)
            .zip(contenders)
            .map(|(number, contender)| {
                let recorder = Recorder::new(number, contender.session());
                tokio::spawn(contend(Arc::clone(&shared), contender, recorder))
            })
            .collect();
        let mut over = shared.over.subscribe();
        tokio::select! {
            () = sleep_until(shared.end) => { shared.over.send_replace(true); }
            _ = over.wait_for(|over| *over) => {}
        }
        let mut recorders = Vec::new();
        let mut ending = Ending(tasks);
        for task in &mut ending.0 {
            let joined = timeout_at(shared.end + RELEASING, task).await;
            let joined = joined.map_err(|_| Error::Timeout {
                what: "end of all contenders after the contest".into(),
                limit_ms: RELEASING.as_millis(),
            })?;
            recorders.push(joined.map_err(|error| Error::Unexpected(error.to_string()))?);
        }
        let (wall_ns, cpu_ns) = (now_ns() - began_ns, process::thread_cpu_ns()? - began_cpu);
        let cpu_ns = cpu_ns.saturating_sub(shared.idle_ns.load(Ordering::Relaxed));
        let last_ns = |at: &AtomicU64| match at.load(Ordering::Relaxed) {
            0 => now_ns(),
            at_ns => at_ns,
        };
        Ok(Contested {
            history: History::of(lock.kind(), recorders),
            timed: last_ns(&shared.from_ns)..last_ns(&shared.to_ns),
            cpu_ns,
            busy: crate::stats::as_f64(cpu_ns) / crate::stats::as_f64(wall_ns.max(1)),
        })
    }
}

async fn contend(
    shared: Arc<Shared>,
    mut contender: Box<dyn Contender>,
    mut recorder: Recorder,
) -> Recorder {
    let contest = &shared.contest;
    let mut over = shared.over.subscribe();
    for turn in 0.. {
        let access = access(recorder.contender(), turn, contest.readers);
        shared.asked.fetch_add(1, Ordering::Relaxed);
        recorder.add(now_ns(), What::Asked(access));
        let got = tokio::select! {
            biased;
            got = contender.acquire(access) => got,
            _ = over.wait_for(|over| *over) => {
                recorder.add(now_ns(), What::GaveUp);
                break;
            }
        };
        let grant = match got {
            Ok(grant) => grant,
            Err(LockFailure::NotHeld(_)) => {
                recorder.add(now_ns(), What::Refused);
                break;
            }
            Err(LockFailure::Unknown(_)) => {
                recorder.add(now_ns(), What::AcquireUnknown);
                break;
            }
        };
        let granted_ns = now_ns();
        recorder.add(granted_ns, What::Granted { token: grant.token });
        let (number, is_over) = shared.count(granted_ns);
        if access == Access::Exclusive {
            let is_accepted = shared.resource.write(grant.token);
            let token = grant.token;
            recorder.add(now_ns(), What::Wrote { token, is_accepted });
        }
        shared.hold(turn).await;
        recorder.add(now_ns(), What::Releasing);
        let released = match contender.release().await {
            Ok(()) => What::Released,
            Err(LockFailure::NotHeld(_)) => What::ReleaseRefused,
            Err(LockFailure::Unknown(_)) => What::ReleaseUnknown,
        };
        recorder.add(now_ns(), released);
        if is_over || released != What::Released {
            break;
        }
        if contest.in_turn && contest.contenders > 1 {
            shared.next_after(number, &mut over).await;
        }
    }
    if shared.ended.fetch_add(1, Ordering::Relaxed) + 1 == contest.contenders {
        shared.over.send_replace(true);
    }
    recorder
}

/// Chooses readers evenly, and not always the same contenders.
fn access(contender: u32, turn: u32, readers: u32) -> Access {
    // 37 has no common factor with 100: each percentage comes once in a hundred turns.
    if (contender
        .wrapping_mul(61)
        .wrapping_add(turn.wrapping_mul(37)))
        % 100
        < readers
    {
        Access::Shared
    } else {
        Access::Exclusive
    }
}

impl Shared {
    /// Waits until another grant follows this one, or the contest is over.
    async fn next_after(&self, number: u32, over: &mut watch::Receiver<bool>) {
        loop {
            let news = self.granted.notified();
            if self.grants.load(Ordering::Relaxed) > number + 1 {
                return;
            }
            tokio::select! {
                () = news => {}
                _ = over.wait_for(|over| *over) => return,
            }
        }
    }

    /// Counts a grant; returns its number, and whether the contest is over.
    fn count(&self, at_ns: u64) -> (u32, bool) {
        let grant = self.grants.fetch_add(1, Ordering::Relaxed);
        if self.contest.in_turn {
            self.granted.notify_waiters();
        }
        let (warmup, last) = (
            self.contest.warmup,
            self.contest.warmup + self.contest.grants,
        );
        if grant == warmup {
            self.from_ns.store(at_ns, Ordering::Relaxed);
        }
        let is_over = grant >= last || crate::clock::tokio_now() >= self.end;
        if is_over {
            // The first contender that finds it over sets the time.
            let _ = self
                .to_ns
                .compare_exchange(0, at_ns, Ordering::Relaxed, Ordering::Relaxed);
            self.over.send_replace(true);
        }
        (grant, is_over)
    }

    /// Keeps the lock; the very first holder keeps it until all other contenders wait.
    async fn hold(&self, turn: u32) {
        if turn == 0 && self.grants.load(Ordering::Relaxed) == 1 && self.contest.contenders > 1 {
            while self.asked.load(Ordering::Relaxed) < self.contest.contenders {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            // The requests are on their way; a queue takes some time to form.
            let settle =
                Duration::from_millis(5) + Duration::from_micros(100) * self.contest.contenders;
            tokio::time::sleep(settle).await;
        }
        if self.contest.hold.is_zero() {
            return;
        }
        let until = now_ns() + nanos(self.contest.hold);
        let mut before = now_ns();
        while before < until {
            tokio::task::yield_now().await;
            let now = now_ns();
            if now - before < IDLE_TURN_NS {
                // Several contenders may hold it and see the same turns.
                let counted = self.idle_until_ns.swap(now, Ordering::Relaxed);
                let idle = now - before.max(counted);
                self.idle_ns.fetch_add(idle, Ordering::Relaxed);
            }
            before = now;
        }
    }
}
