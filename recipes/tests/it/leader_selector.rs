//! The leader selector. Tests that Curator's `TestLeaderSelector` also has keep their names.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use minikeeper::Server;
use minikeeper_client::Client;
use minikeeper_recipes::{ErrorPolicy, Guard, LeaderSelector, SelectorOptions, Work};
use tokio::time::sleep;

use crate::{
    kit::{PATH, client, queue, soon, start, until},
    link::{Link, Mode},
};

struct Contender {
    client: Client,
    link: Link,
    selector: LeaderSelector,
}

async fn contender(
    server: &Arc<Server>,
    seed: u64,
    options: SelectorOptions,
    work: impl for<'a> Fn(&'a Guard) -> Work<'a> + Send + Sync + 'static,
) -> Contender {
    let (client, link) = client(server, seed).await;
    let id = format!("id {seed}");
    let selector = LeaderSelector::start(client.clone(), PATH, &id, options, work).unwrap();
    Contender {
        client,
        link,
        selector,
    }
}

fn requeued() -> SelectorOptions {
    let mut options = SelectorOptions::default();
    options.is_requeued = true;
    options
}

fn for_ever(_: &Guard) -> Work<'_> {
    Box::pin(std::future::pending())
}

/// Leaves when the work is done or dropped.
struct Leaving(Arc<AtomicUsize>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns work that counts its turns, and checks that it is alone.
fn counting(
    turns: &Arc<AtomicUsize>,
    inside: &Arc<AtomicUsize>,
) -> impl for<'a> Fn(&'a Guard) -> Work<'a> + Send + Sync + use<> {
    let (turns, inside) = (Arc::clone(turns), Arc::clone(inside));
    move |_| {
        let (turns, inside) = (Arc::clone(&turns), Arc::clone(&inside));
        Box::pin(async move {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
            let leaving = Leaving(inside);
            sleep(Duration::from_millis(5)).await;
            drop(leaving);
            turns.fetch_add(1, Ordering::SeqCst);
        })
    }
}

#[tokio::test(start_paused = true)]
async fn test_basic() {
    let server = start().await;
    let (turns, inside) = (Arc::default(), Arc::default());
    let mut all = Vec::new();
    for seed in 1..=5 {
        let work = counting(&turns, &inside);
        all.push(contender(&server, seed, SelectorOptions::default(), work).await);
    }
    for one in &all {
        soon(one.selector.done()).await.unwrap();
        assert!(!one.selector.has_leadership());
    }
    assert_eq!(turns.load(Ordering::SeqCst), 5);
    assert!(queue(&server).is_empty());
    // A requeued selector gets another turn.
    assert!(all[0].selector.requeue());
    until("it has its turn", || turns.load(Ordering::SeqCst) == 6).await;
}

#[tokio::test(start_paused = true)]
async fn test_auto_requeue() {
    let server = start().await;
    let inside = Arc::default();
    let (first, second) = (Arc::default(), Arc::default());
    let one = contender(&server, 1, requeued(), counting(&first, &inside)).await;
    let other = contender(&server, 2, requeued(), counting(&second, &inside)).await;
    until("both have turns", || {
        first.load(Ordering::SeqCst) > 20 && second.load(Ordering::SeqCst) > 20
    })
    .await;
    let turns = first
        .load(Ordering::SeqCst)
        .abs_diff(second.load(Ordering::SeqCst));
    assert!(turns <= 2, "they take turns: {turns}");
    for contender in [one, other] {
        contender.selector.close().await.unwrap();
        assert!(!contender.selector.requeue());
    }
    until("no contender is left", || queue(&server).is_empty()).await;
    until("no watch is left", || !server.dump().contains("watch")).await;
}

#[tokio::test(start_paused = true)]
async fn test_interrupt_leadership() {
    let server = start().await;
    let one = contender(&server, 1, SelectorOptions::default(), for_ever).await;
    until("it leads", || one.selector.has_leadership()).await;
    let other = contender(&server, 2, SelectorOptions::default(), for_ever).await;
    until("it queues", || queue(&server).len() == 2).await;
    assert!(!other.selector.interrupt(), "it does not lead");
    let ids: Vec<_> = other.selector.participants().await.unwrap();
    let ids: Vec<_> = ids
        .iter()
        .map(|one| (one.id.as_str(), one.is_leader))
        .collect();
    assert_eq!(ids, [("id 1", true), ("id 2", false)]);
    // A selector that is requeued while it leads queues again after its turn.
    assert!(one.selector.requeue());
    assert!(one.selector.interrupt());
    until("the other leads", || other.selector.has_leadership()).await;
    until("it queues again", || queue(&server).len() == 2).await;
    assert!(!one.selector.has_leadership() && !one.selector.requeue());
    other.selector.close().await.unwrap();
    until("it leads again", || one.selector.has_leadership()).await;
    assert_eq!(one.selector.leader().await.unwrap().unwrap().id, "id 1");
    one.selector.close().await.unwrap();
    assert!(
        queue(&server).is_empty(),
        "the znode is deleted when close returns"
    );
    one.selector.close().await.unwrap();
    soon(one.selector.done()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn test_kill_session() {
    // The follower's session ends, then the leader's: both continue in new sessions.
    let server = start().await;
    let one = contender(&server, 1, requeued(), for_ever).await;
    until("it leads", || one.selector.has_leadership()).await;
    let other = contender(&server, 2, requeued(), for_ever).await;
    until("it queues", || queue(&server).len() == 2).await;
    for _ in 0..15 {
        let session = other.client.session_id().unwrap();
        server.expire(session).unwrap();
        until("it is in a new session", || {
            other.client.session_id().is_some_and(|id| id != session) && queue(&server).len() == 2
        })
        .await;
        assert!(one.selector.has_leadership() && !other.selector.has_leadership());
    }
    server.expire(one.client.session_id().unwrap()).unwrap();
    until("the other leads", || other.selector.has_leadership()).await;
    assert!(!one.selector.has_leadership());
    until("it queues again", || queue(&server).len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn interruption_ends_the_work_by_policy() {
    for error_policy in [ErrorPolicy::Standard, ErrorPolicy::Session] {
        let server = start().await;
        let mut options = SelectorOptions::default();
        options.error_policy = error_policy;
        let one = contender(&server, 1, options, for_ever).await;
        until("it leads", || one.selector.has_leadership()).await;
        one.link.set(Mode::Cut);
        sleep(Duration::from_secs(1)).await;
        let is_kept = error_policy == ErrorPolicy::Session;
        assert_eq!(one.selector.has_leadership(), is_kept);
        one.link.set(Mode::Pass);
        sleep(Duration::from_secs(10)).await;
        assert_eq!(one.selector.has_leadership(), is_kept);
        assert_eq!(queue(&server).len(), usize::from(is_kept));
        if is_kept {
            // The work runs until the session may be over.
            one.link.set(Mode::Freeze);
            tokio::time::advance(crate::kit::SESSION_TIMEOUT).await;
            assert!(!one.selector.has_leadership());
            soon(one.selector.done()).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_at_every_step_leaves_nothing() {
    for is_second in [false, true] {
        for step in 0..60_u64 {
            let server = start().await;
            let other = if is_second {
                let other = contender(&server, 1, SelectorOptions::default(), for_ever).await;
                until("it leads", || other.selector.has_leadership()).await;
                Some(other)
            } else {
                None
            };
            let dropper = contender(&server, 2, requeued(), for_ever).await;
            if step < 50 {
                for _ in 0..step {
                    tokio::task::yield_now().await;
                }
            } else {
                dropper.link.delay_replies(Duration::from_millis(1));
                sleep(Duration::from_millis(step - 50)).await;
            }
            drop(dropper.selector);
            let left = usize::from(is_second);
            until("its znode is deleted", || queue(&server).len() == left).await;
            until("nothing is pending", || {
                dropper.client.clean_ups_pending() == 0
            })
            .await;
            drop(other);
            until("no watch is left", || !server.dump().contains("watch")).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn closed_client_ends_the_selector_and_a_panic_ends_the_turn() {
    let server = start().await;
    let one = contender(&server, 1, requeued(), for_ever).await;
    until("it leads", || one.selector.has_leadership()).await;
    one.client.close().await;
    let error = soon(one.selector.done()).await.unwrap_err();
    assert!(
        error.to_string().contains("the client is closed"),
        "{error}"
    );
    let other = contender(&server, 2, SelectorOptions::default(), |_| {
        Box::pin(async { panic!("work that panics") })
    })
    .await;
    let error = soon(other.selector.done()).await.unwrap_err();
    assert!(error.to_string().contains("work that panics"), "{error}");
    until("its lock is free", || queue(&server).is_empty()).await;
    soon(other.selector.close()).await.unwrap();
}

/// Another thread can interrupt between the moment when the selector reports that it leads and the
/// moment when its work begins: the interruption still counts. The test tries this many times, in
/// real time, because the moment is short.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interruptions_count_from_the_first_moment_of_a_turn() {
    let server = start().await;
    let client = Client::connect(&server.connect_string()).await.unwrap();
    let options = SelectorOptions::default();
    let selector = LeaderSelector::start(client, PATH, "", options, for_ever).unwrap();
    let selector = Arc::new(selector);
    for turn in 0..500 {
        let other = Arc::clone(&selector);
        let interrupting = tokio::task::spawn_blocking(move || {
            while !other.interrupt() {
                std::hint::spin_loop();
            }
        });
        soon(interrupting).await.unwrap();
        let done = tokio::time::timeout(Duration::from_secs(30), selector.done()).await;
        assert!(
            done.is_ok(),
            "turn {turn} goes on though it was interrupted"
        );
        assert!(selector.requeue());
    }
}
