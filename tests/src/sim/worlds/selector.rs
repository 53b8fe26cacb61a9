//! Leader selectors, whose work must run on one contender at a time.

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use minikeeper_recipes::{LeaderSelector, SelectorOptions};
use tokio::time::{sleep, timeout};

use crate::sim::{
    contender::{Contender, PROGRESS},
    judge::{Hold, HoldId, Judge, Kind},
};

const PATH: &str = "/leaders/selector";

/// One term of leadership. Ends when dropped.
struct Term {
    judge: Arc<Judge>,
    hold: HoldId,
}

impl Drop for Term {
    fn drop(&mut self) {
        self.judge.ended(self.hold);
    }
}

pub(super) async fn contend(mut me: Contender) {
    while me.next_round().await {
        let terms = Arc::new(AtomicU64::new(0));
        // The work refers to its selector, which exists only once it is started.
        let selector = Arc::new(OnceLock::new());
        let started = start(&mut me, &Arc::downgrade(&selector), &terms);
        let selector = selector.get_or_init(|| started);
        if me.is_last {
            match timeout(PROGRESS, selector.done()).await {
                Ok(Ok(())) if terms.load(Ordering::Relaxed) > 0 => {}
                other => me
                    .judge
                    .violation(format!("{} never leads: {other:?}", me.who)),
            }
        } else {
            let _ = timeout(me.chance.millis(8_000), selector.done()).await;
            if me.chance.once_in(3) && selector.interrupt() {
                me.judge.event("interrupted");
            }
            if selector.requeue() {
                me.judge.event("requeued");
                let _ = timeout(me.chance.millis(4_000), selector.done()).await;
            }
        }
        if me.is_last || me.chance.once_in(2) {
            match me.must("closing", selector.close()).await {
                Some(Err(error)) if me.is_last => {
                    me.failed(format!("not closed: {error}"));
                }
                _ => {}
            }
        }
    }
}

fn start(
    me: &mut Contender,
    own: &Weak<OnceLock<LeaderSelector>>,
    terms: &Arc<AtomicU64>,
) -> LeaderSelector {
    let mut options = SelectorOptions::default();
    options.lock = me.options.clone();
    options.error_policy = me.chance.error_policy();
    options.is_requeued = !me.is_last && me.chance.once_in(2);
    let work_for = Duration::from_millis(20) + me.chance.millis(700);
    let (who, client, judge) = (me.who, me.number, Arc::clone(&me.judge));
    let (own, terms) = (Weak::clone(own), Arc::clone(terms));
    LeaderSelector::start(me.client.clone(), PATH, "me", options, move |guard| {
        let own = Weak::clone(&own);
        let hold = judge.granted(Hold {
            client,
            who,
            recipe: "leader selector",
            lock: PATH,
            kind: Kind::Exclusive,
            token: guard.token(),
            epoch: guard.epoch(),
            is_believed: Box::new(move || {
                let own = own.upgrade();
                own.is_some_and(|own| own.get().is_some_and(LeaderSelector::has_leadership))
            }),
        });
        let judge = Arc::clone(&judge);
        terms.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let _term = Term { judge, hold };
            sleep(work_for).await;
        })
    })
    .unwrap()
}
