//! Requests for a lock that arrive at random times, whether or not earlier ones were served.
//!
//! A request takes a free contender; if there is none, it waits for one. Its latency counts from
//! when it was due (no coordinated omission).

use std::{cell::RefCell, collections::VecDeque, rc::Rc, time::Duration};

use tokio::{sync::Notify, task::LocalSet};

use crate::{
    Error,
    clock::{nanos, now_ns},
    contest::{Contested, IDLE_TURN_NS},
    history::{History, Recorder, What},
    peers::{Access, Contender, LockFailure, LockUnderTest},
    process,
};

/// The settings of an open loop.
#[derive(Clone, Debug)]
pub struct OpenLoop {
    /// The number of contenders that can ask at the same time.
    pub contenders: u32,
    /// The mean number of requests per second: the pauses between them follow an exponential
    /// distribution.
    pub rate: u32,
    /// How long it runs.
    pub duration: Duration,
    /// The seed of the random pauses.
    pub seed: u64,
}

/// Requests that are due but not taken.
#[derive(Default)]
struct Due {
    requests: RefCell<VecDeque<u64>>,
    news: Notify,
    is_over: RefCell<bool>,
}

impl OpenLoop {
    /// Runs it on a lock with this name. Requests not served when the time is over are served
    /// afterwards, for at most the same time again.
    ///
    /// # Errors
    /// If a contender cannot be created.
    pub async fn run(&self, lock: &dyn LockUnderTest, resource: &str) -> Result<Contested, Error> {
        let mut contenders = Vec::new();
        for _ in 0..self.contenders {
            contenders.push(lock.contender(resource).await?);
        }
        let due = Rc::new(Due::default());
        let (from_ns, began_cpu) = (now_ns(), process::thread_cpu_ns()?);
        let local = LocalSet::new();
        let end = crate::clock::tokio_now() + 2 * self.duration;
        let tasks: Vec<_> = (0..)
            .zip(contenders)
            .map(|(number, contender)| {
                let recorder = Recorder::new(number, contender.session());
                local.spawn_local(serve(Rc::clone(&due), contender, recorder, end))
            })
            .collect();
        let (recorders, idle_ns) = local
            .run_until(async {
                let idle_ns = self.ask(&due, from_ns).await;
                let mut recorders = Vec::new();
                for task in tasks {
                    recorders.push(task.await);
                }
                (recorders, idle_ns)
            })
            .await;
        let cpu_ns = (process::thread_cpu_ns()? - began_cpu).saturating_sub(idle_ns);
        let to_ns = now_ns();
        let recorders = recorders.into_iter().collect::<Result<Vec<_>, _>>();
        let recorders = recorders.map_err(|error| Error::Unexpected(error.to_string()))?;
        Ok(Contested {
            history: History::of(lock.kind(), recorders),
            timed: from_ns..to_ns,
            cpu_ns,
            busy: crate::stats::as_f64(cpu_ns) / crate::stats::as_f64((to_ns - from_ns).max(1)),
        })
    }

    /// The due times of requests, in nanoseconds after the start.
    #[must_use]
    pub fn due_ns(&self) -> Vec<u64> {
        let mut random = Random(self.seed);
        let next = |before: &u64| Some(before + random.pause_ns(self.rate));
        std::iter::successors(Some(0), next)
            .skip(1)
            .take_while(|due_ns| *due_ns < nanos(self.duration))
            .collect()
    }

    /// Queues requests as they fall due; returns the time in which there was nothing to do.
    async fn ask(&self, due: &Due, from_ns: u64) -> u64 {
        let mut idle_ns = 0;
        for due_ns in self.due_ns() {
            let next_ns = from_ns + due_ns;
            let mut before = now_ns();
            while before < next_ns {
                tokio::task::yield_now().await;
                let now = now_ns();
                if now - before < IDLE_TURN_NS {
                    idle_ns += now - before;
                }
                before = now;
            }
            due.requests.borrow_mut().push_back(next_ns);
            due.news.notify_one();
        }
        *due.is_over.borrow_mut() = true;
        due.news.notify_waiters();
        idle_ns
    }
}

async fn serve(
    due: Rc<Due>,
    mut contender: Box<dyn Contender>,
    mut recorder: Recorder,
    end: tokio::time::Instant,
) -> Recorder {
    loop {
        let news = due.news.notified();
        let request = due.requests.borrow_mut().pop_front();
        let Some(due_ns) = request else {
            if *due.is_over.borrow() {
                return recorder;
            }
            news.await;
            continue;
        };
        recorder.add(due_ns, What::Due);
        recorder.add(now_ns(), What::Asked(Access::Exclusive));
        let got = tokio::select! {
            biased;
            got = contender.acquire(Access::Exclusive) => got,
            () = tokio::time::sleep_until(end) => {
                recorder.add(now_ns(), What::GaveUp);
                return recorder;
            }
        };
        let Ok(grant) = got else {
            recorder.add(now_ns(), What::AcquireUnknown);
            return recorder;
        };
        recorder.add(now_ns(), What::Granted { token: grant.token });
        recorder.add(now_ns(), What::Releasing);
        let released = match contender.release().await {
            Ok(()) => What::Released,
            Err(LockFailure::NotHeld(_)) => What::ReleaseRefused,
            Err(LockFailure::Unknown(_)) => What::ReleaseUnknown,
        };
        recorder.add(now_ns(), released);
    }
}

/// Pseudorandom numbers, the same for the same seed (xorshift, by Marsaglia).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        let mut state = self.0 | 1;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.0 = state;
        state
    }

    /// Returns a random pause whose mean gives this rate per second.
    fn pause_ns(&mut self, rate: u32) -> u64 {
        // 2^53 steps between 0 and 1, without 0.
        let share = crate::stats::as_f64((self.next() >> 11) + 1) / crate::stats::as_f64(1 << 53);
        let seconds = -share.ln() / f64::from(rate.max(1));
        nanos(Duration::from_secs_f64(seconds.min(10.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_have_the_requested_mean() {
        let mut random = Random(42);
        let sum: u64 = (0..100_000).map(|_| random.pause_ns(1_000)).sum();
        let mean = crate::stats::as_f64(sum) / 100_000.0;
        assert!((950_000.0..1_050_000.0).contains(&mean), "{mean} ns");
    }
}
