//! Leaders (`docs/curator-recipes.md` section 17).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use minikeeper_recipes::{
    FencingToken, Guard, LatchOptions, LeaderLatch, LeaderSelector, Leadership, SelectorOptions,
    Work,
};
use minikeeper_recipes_zookeeper_client::Adapter;

use crate::kit::{PATH, adapter, cut, expire, queue, settle, soon, start, until};

#[tokio::test]
async fn latch_test_basic() {
    let server = start().await;
    let mut all = Vec::new();
    for number in 1..=5 {
        let client = adapter(&server).await;
        let id = format!("id {number}");
        let latch = LeaderLatch::start_with(client, PATH, &id, LatchOptions::default()).unwrap();
        until("it queues", || queue(&server).len() == number).await;
        all.push(latch);
    }
    let mut last = FencingToken { czxid: 0, pass: 0 };
    for (at, latch) in all.iter().enumerate() {
        let token = soon(latch.wait()).await.unwrap();
        assert!(token > last);
        last = token;
        let leaders = all.iter().filter(|other| other.has_leadership());
        assert_eq!(leaders.count(), 1);
        soon(latch.close()).await.unwrap();
        assert!(!latch.has_leadership());
        assert_eq!(queue(&server).len(), all.len() - at - 1);
    }
}

#[tokio::test]
async fn latch_test_lost_connection_and_session() {
    let server = start().await;
    let (one, other) = (adapter(&server).await, adapter(&server).await);
    let start = |client: &Adapter| {
        LeaderLatch::start_with(client.clone(), PATH, "id", LatchOptions::default()).unwrap()
    };
    let first = start(&one);
    soon(first.wait()).await.unwrap();
    let second = start(&other);
    until("it queues", || queue(&server).len() == 2).await;
    assert_eq!(second.leadership(), Leadership::Follower);
    // After an interruption it leads again, for another term, with the same znode.
    let before = first.own_path();
    let mut changes = first.changes();
    assert!(matches!(
        soon(changes.next()).await,
        Some(Leadership::Leader { .. })
    ));
    cut(&server, &one);
    assert_eq!(soon(changes.next()).await, Some(Leadership::Follower));
    soon(first.wait()).await.unwrap();
    assert_eq!(first.own_path(), before);
    assert!(!second.has_leadership());
    // Its session ends: the other leads, and it queues behind.
    expire(&server, &one);
    soon(second.wait()).await.unwrap();
    // The server notifies both at once; either may learn of the expiry first.
    until("the first does not", || !first.has_leadership()).await;
    until("it queues again", || queue(&server).len() == 2).await;
    soon(second.close()).await.unwrap();
    soon(first.wait()).await.unwrap();
    soon(first.close()).await.unwrap();
    assert!(queue(&server).is_empty());
}

/// Returns work that counts its turns, and checks that it is alone.
fn counting(
    turns: &Arc<AtomicUsize>,
    inside: &Arc<AtomicUsize>,
) -> impl for<'a> Fn(&'a Guard<Adapter>) -> Work<'a> + Send + Sync + use<> {
    let (turns, inside) = (Arc::clone(turns), Arc::clone(inside));
    move |_| {
        let (turns, inside) = (Arc::clone(&turns), Arc::clone(&inside));
        Box::pin(async move {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
            tokio::task::yield_now().await;
            inside.fetch_sub(1, Ordering::SeqCst);
            turns.fetch_add(1, Ordering::SeqCst);
        })
    }
}

fn for_ever(_: &Guard<Adapter>) -> Work<'_> {
    Box::pin(std::future::pending())
}

fn requeued() -> SelectorOptions {
    let mut options = SelectorOptions::default();
    options.is_requeued = true;
    options
}

#[tokio::test]
async fn selector_test_auto_requeue() {
    let server = start().await;
    let inside = Arc::default();
    let mut all = Vec::new();
    for id in ["one", "other"] {
        let turns = Arc::default();
        let (client, work) = (adapter(&server).await, counting(&turns, &inside));
        let selector = LeaderSelector::start(client, PATH, id, requeued(), work).unwrap();
        all.push((selector, turns));
    }
    until("both have turns", || {
        all.iter()
            .all(|(_, turns)| turns.load(Ordering::SeqCst) > 10)
    })
    .await;
    for (selector, _) in all {
        soon(selector.close()).await.unwrap();
    }
    until("no contender is left", || queue(&server).is_empty()).await;
}

#[tokio::test]
async fn selector_test_kill_session() {
    let server = start().await;
    let (one, other) = (adapter(&server).await, adapter(&server).await);
    let start = |client: &Adapter, id| {
        LeaderSelector::start(client.clone(), PATH, id, requeued(), for_ever).unwrap()
    };
    let first = start(&one, "one");
    until("it leads", || first.has_leadership()).await;
    let second = start(&other, "other");
    until("it queues", || queue(&server).len() == 2).await;
    expire(&server, &one);
    until("the other leads", || second.has_leadership()).await;
    // The server notifies both at once; either may learn of the expiry first.
    until("the first does not", || !first.has_leadership()).await;
    until("it queues again", || queue(&server).len() == 2).await;
    settle().await;
    assert!(second.has_leadership() && !first.has_leadership());
    assert!(second.interrupt());
    until("it leads again", || first.has_leadership()).await;
    soon(first.close()).await.unwrap();
    soon(second.close()).await.unwrap();
    until("no contender is left", || queue(&server).is_empty()).await;
}
