//! A holder that is killed, cut off or paused, and another contender that waits for its lock.

use std::time::Duration;

use tokio::{task::JoinHandle, time::timeout};

use crate::{
    Error,
    clock::now_ns,
    history::{History, Recorder, What},
    peers::{Access, Belief, Contender, LockFailure, LockUnderTest},
    relay::Relay,
    report::Outage,
    resource::Resource,
};

/// How long the other contender has to queue before the holder goes away.
const QUEUEING: Duration = Duration::from_millis(100);

/// How long a holder that is back may take to release the lock.
const RELEASING: Duration = Duration::from_secs(2);

/// The result of an outage.
#[derive(Debug)]
pub struct Gone {
    /// Everything that happened.
    pub history: History,
    /// The time from the beginning of the outage until the other contender had the lock.
    pub granted_after: Option<Duration>,
    /// The answer of the holder's client at the end.
    pub belief: Belief,
    /// Whether the holder's late write was accepted, if it wrote.
    pub late_write_accepted: Option<bool>,
}

/// Makes a holder go away while another contender waits for the lock, for at most `limit`.
///
/// The waiting contender comes from `lock`. The holder comes from `relayed`, the same lock reached
/// through the relays.
///
/// # Errors
/// If a contender cannot be created, or the holder does not get a free lock.
pub async fn run(
    outage: Outage,
    lock: &dyn LockUnderTest,
    relayed: &dyn LockUnderTest,
    relays: &[Relay],
    limit: Duration,
    resource: &str,
) -> Result<Gone, Error> {
    let mut holder = relayed.contender(resource).await?;
    let waiter = lock.contender(resource).await?;
    let mut recorder = Recorder::new(0, holder.session());
    let written = std::sync::Arc::new(Resource::default());
    recorder.add(now_ns(), What::Asked(Access::Exclusive));
    let grant = holder.acquire(Access::Exclusive).await;
    let grant = grant.map_err(|error| Error::Unexpected(error.to_string()))?;
    let token = grant.token;
    recorder.add(now_ns(), What::Granted { token });
    let write = |recorder: &mut Recorder| {
        let is_accepted = written.write(token);
        recorder.add(now_ns(), What::Wrote { token, is_accepted });
        is_accepted
    };
    write(&mut recorder);
    let mut waiting = tokio::spawn(wait(
        waiter,
        std::sync::Arc::clone(&written),
        limit + QUEUEING,
    ));
    tokio::time::sleep(QUEUEING).await;

    let began_ns = now_ns();
    let mut belief = Belief::Lost;
    let mut late_write_accepted = None;
    let (waited, granted_ns);
    match outage {
        Outage::Killed => {
            for relay in relays {
                relay.cut();
            }
            recorder.add(now_ns(), What::Died);
            (waited, granted_ns) = joined(&mut waiting).await?;
        }
        Outage::CutOff => {
            hold(relays);
            let lost_ns;
            (waited, granted_ns, lost_ns) = look(&mut waiting, holder.as_ref()).await?;
            belief = holder.belief();
            match lost_ns {
                Some(at_ns) => recorder.add(at_ns, What::Lost),
                None => late_write_accepted = Some(write(&mut recorder)),
            }
            come_back(relays, holder.as_mut(), &mut recorder).await;
        }
        Outage::Paused => {
            hold(relays);
            (waited, granted_ns) = joined(&mut waiting).await?;
            // It checked before the outage, and continues where it was.
            late_write_accepted = Some(write(&mut recorder));
            belief = holder.belief();
            come_back(relays, holder.as_mut(), &mut recorder).await;
        }
    }
    Ok(Gone {
        history: History::of(lock.kind(), vec![recorder, waited]),
        granted_after: granted_ns.map(|at_ns| Duration::from_nanos(at_ns.saturating_sub(began_ns))),
        belief,
        late_write_accepted,
    })
}

type Waited = (Recorder, Option<u64>);

/// The waiting contender: acquires the lock, writes, releases it.
async fn wait(
    mut contender: Box<dyn Contender>,
    written: std::sync::Arc<Resource>,
    limit: Duration,
) -> Waited {
    let mut recorder = Recorder::new(1, contender.session());
    recorder.add(now_ns(), What::Asked(Access::Exclusive));
    let grant = match timeout(limit, contender.acquire(Access::Exclusive)).await {
        Ok(Ok(grant)) => grant,
        Ok(Err(_)) => {
            recorder.add(now_ns(), What::AcquireUnknown);
            return (recorder, None);
        }
        Err(_) => {
            recorder.add(now_ns(), What::GaveUp);
            return (recorder, None);
        }
    };
    let granted_ns = now_ns();
    let token = grant.token;
    recorder.add(granted_ns, What::Granted { token });
    let is_accepted = written.write(token);
    recorder.add(now_ns(), What::Wrote { token, is_accepted });
    give_back(contender.as_mut(), &mut recorder).await;
    (recorder, Some(granted_ns))
}

async fn joined(waiting: &mut JoinHandle<Waited>) -> Result<Waited, Error> {
    let waited = waiting.await;
    waited.map_err(|error| Error::Unexpected(error.to_string()))
}

/// Asks the holder's client every millisecond until the other contender is done. Also returns when
/// the client first reported that the lock was or might be lost: an unsure holder has to stop as
/// well.
async fn look(
    waiting: &mut JoinHandle<Waited>,
    holder: &dyn Contender,
) -> Result<(Recorder, Option<u64>, Option<u64>), Error> {
    let mut lost_ns = None;
    loop {
        tokio::select! {
            waited = &mut *waiting => {
                let (recorder, granted_ns) =
                    waited.map_err(|error| Error::Unexpected(error.to_string()))?;
                return Ok((recorder, granted_ns, lost_ns));
            }
            () = tokio::time::sleep(Duration::from_millis(1)) => {
                if lost_ns.is_none() && matches!(holder.belief(), Belief::Lost | Belief::Unsure) {
                    lost_ns = Some(now_ns());
                }
            }
        }
    }
}

fn hold(relays: &[Relay]) {
    for relay in relays {
        relay.hold();
    }
}

async fn come_back(relays: &[Relay], holder: &mut dyn Contender, recorder: &mut Recorder) {
    for relay in relays {
        relay.open();
    }
    give_back(holder, recorder).await;
}

async fn give_back(contender: &mut dyn Contender, recorder: &mut Recorder) {
    recorder.add(now_ns(), What::Releasing);
    let released = match timeout(RELEASING, contender.release()).await {
        Ok(Ok(())) => What::Released,
        Ok(Err(LockFailure::NotHeld(_))) => What::ReleaseRefused,
        Ok(Err(LockFailure::Unknown(_))) | Err(_) => What::ReleaseUnknown,
    };
    recorder.add(now_ns(), released);
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use super::*;
    use crate::peers::{Doing, Fairness, Grant, Promises};

    /// A lock whose first holder loses it, and whose contenders always give this answer.
    struct Forgetful(Belief, Arc<AtomicBool>);

    struct One {
        belief: Belief,
        is_held: Arc<AtomicBool>,
    }

    impl LockUnderTest for Forgetful {
        fn name(&self) -> String {
            "forgetful".into()
        }

        fn promises(&self) -> Promises {
            Promises {
                fairness: Fairness::Fifo,
                durability: "nothing",
                death: "soon",
                has_token: false,
            }
        }

        fn contender<'a>(&'a self, _: &'a str) -> Doing<'a, Result<Box<dyn Contender>, Error>> {
            let one = One {
                belief: self.0,
                is_held: Arc::clone(&self.1),
            };
            Box::pin(async move { Ok(Box::new(one) as _) })
        }
    }

    impl Contender for One {
        fn session(&self) -> String {
            "one".into()
        }

        fn acquire(&mut self, _: Access) -> Doing<'_, Result<Grant, LockFailure>> {
            Box::pin(async {
                if self.is_held.swap(true, Ordering::Relaxed) {
                    tokio::time::sleep(2 * QUEUEING).await;
                }
                Ok(Grant { token: None })
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
            self.belief
        }

        fn release(&mut self) -> Doing<'_, Result<(), LockFailure>> {
            Box::pin(async { Ok(()) })
        }
    }

    fn gone(outage: Outage, belief: Belief) -> Gone {
        let lock = Forgetful(belief, Arc::default());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let limit = Duration::from_secs(20);
        runtime
            .block_on(run(outage, &lock, &lock, &[], limit, "lock"))
            .unwrap()
    }

    #[test]
    fn cut_off_holder_writes_unless_its_client_reports_a_loss() {
        for (belief, written) in [
            (Belief::Held, Some(true)),
            (Belief::NoAnswer, Some(true)),
            (Belief::Unsure, None),
            (Belief::Lost, None),
        ] {
            let gone = gone(Outage::CutOff, belief);
            assert_eq!(gone.late_write_accepted, written, "{belief:?}");
            let verdict = crate::judge::judge(&gone.history, None);
            assert_eq!(
                verdict.exclusion.is_violated(),
                written.is_some(),
                "{belief:?}: {verdict:?}"
            );
        }
    }

    #[test]
    fn paused_holder_writes_without_asking() {
        let gone = gone(Outage::Paused, Belief::Lost);
        assert_eq!(gone.late_write_accepted, Some(true));
    }
}
