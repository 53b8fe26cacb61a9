//! Values, counters, barriers and persistent nodes (`docs/curator-recipes.md` sections 7 and 17).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use minikeeper_client::CreateMode;
use minikeeper_recipes::{
    AtomicOptions, DistributedAtomicLong, DistributedBarrier, DistributedDoubleBarrier, LockError,
    PersistentNode, SharedCount, client::ZooKeeper as _, naming,
};

use crate::kit::{adapter, cut, expire, names, settle, soon, start, until};

#[tokio::test]
async fn shared_count_test_multi_client_versioned() {
    const COUNT: &str = "/counts/a";
    let server = start().await;
    let clients = [adapter(&server).await, adapter(&server).await];
    let one = soon(SharedCount::start(clients[0].clone(), COUNT, 10))
        .await
        .unwrap();
    let other = soon(SharedCount::start(clients[1].clone(), COUNT, 20))
        .await
        .unwrap();
    let mut changes = other.changes();
    let stale = other.current().unwrap();
    assert_eq!(stale.value, 10);
    let newer = one
        .try_set(&one.current().unwrap(), 11)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(soon(changes.next()).await.unwrap(), newer);
    assert_eq!(other.try_set(&stale, 12).await.unwrap(), None);
    assert!(other.try_set(&newer, 12).await.unwrap().is_some());
    assert_eq!(soon(changes.next()).await.unwrap().value, 12);
    // Changes while the connection is down are reported afterwards.
    for interrupt in [cut, expire] {
        interrupt(&server, &clients[1]);
        let set = soon(one.set(one.get().await.unwrap().value + 1))
            .await
            .unwrap();
        assert_eq!(soon(changes.next()).await.unwrap(), set);
    }
}

#[tokio::test]
async fn shared_count_concurrent_increments_lose_none() {
    let server = start().await;
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let client = adapter(&server).await;
        tasks.push(tokio::spawn(async move {
            let count = SharedCount::start(client, "/count", 0).await.unwrap();
            for _ in 0..10 {
                loop {
                    let before = count.get().await.unwrap();
                    let set = count.try_set(&before, before.value + 1).await.unwrap();
                    if set.is_some() {
                        break;
                    }
                }
            }
        }));
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
    assert_eq!(server.get("/count").unwrap().0.unwrap(), [0, 0, 0, 40]);
}

#[tokio::test]
async fn atomic_test_basic_and_simulation() {
    const COUNTER: &str = "/counters/a";
    let server = start().await;
    let counter = DistributedAtomicLong::new(adapter(&server).await, COUNTER).unwrap();
    assert_eq!(counter.get().await.unwrap(), 0);
    assert!(server.get(COUNTER).is_none(), "a read creates nothing");
    assert_eq!(counter.add(1).await.unwrap().current, 1);
    assert_eq!(counter.compare_and_set(3, 4).await.unwrap(), None);
    let change = counter.compare_and_set(1, 0).await.unwrap().unwrap();
    assert_eq!((change.previous, change.current), (1, 0));
    let mut options = AtomicOptions::default();
    options.attempts_max = 1000;
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let client = adapter(&server).await;
        let counter = DistributedAtomicLong::with_options(client, COUNTER, options.clone());
        let counter = counter.unwrap();
        tasks.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            for _ in 0..10 {
                seen.push(counter.add(1).await.unwrap().previous);
            }
            seen
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(soon(task).await.unwrap());
    }
    all.sort_unstable();
    assert_eq!(all, (0..40).collect::<Vec<_>>());
}

#[tokio::test]
async fn barrier_test_multi_client() {
    const BARRIER: &str = "/barriers/a";
    let server = start().await;
    let setter = DistributedBarrier::new(adapter(&server).await, BARRIER).unwrap();
    assert!(setter.set().await.unwrap());
    let (mut waiting, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let client = adapter(&server).await;
        let barrier = DistributedBarrier::new(client.clone(), BARRIER).unwrap();
        assert!(!barrier.set().await.unwrap());
        let within = Duration::from_millis(10);
        let error = barrier.wait().within(within).await.unwrap_err();
        assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
        waiting.push(tokio::spawn(async move { barrier.wait().await }));
        clients.push(client);
    }
    settle().await;
    // A wait survives lost connections and sessions.
    cut(&server, &clients[0]);
    expire(&server, &clients[1]);
    settle().await;
    assert!(waiting.iter().all(|task| !task.is_finished()));
    assert!(setter.remove().await.unwrap());
    for task in waiting {
        soon(task).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn double_barrier_test_basic() {
    const BARRIER: &str = "/barriers/b";
    let server = start().await;
    let (inside, left) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut tasks = Vec::new();
    for _ in 0..4 {
        settle().await;
        assert_eq!(inside.load(Ordering::SeqCst), 0);
        let client = adapter(&server).await;
        let barrier = DistributedDoubleBarrier::new(client, BARRIER, 4).unwrap();
        let (inside, left) = (Arc::clone(&inside), Arc::clone(&left));
        tasks.push(tokio::spawn(async move {
            let member = barrier.enter().await.unwrap();
            inside.fetch_add(1, Ordering::SeqCst);
            while inside.load(Ordering::SeqCst) < 4 {
                settle().await;
            }
            left.fetch_add(1, Ordering::SeqCst);
            member.leave().await.unwrap();
            assert_eq!(left.load(Ordering::SeqCst), 4);
        }));
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
    assert!(names(&server, BARRIER).is_empty());
}

#[tokio::test]
async fn persistent_node_test_recreates_node() {
    const NODE: &str = "/nodes/n";
    for mode in [
        CreateMode::Persistent,
        CreateMode::PersistentSequential,
        CreateMode::Ephemeral,
        CreateMode::EphemeralSequential,
        CreateMode::Container,
    ] {
        let server = start().await;
        let (kept, other) = (adapter(&server).await, adapter(&server).await);
        let node = PersistentNode::start(kept.clone(), NODE, b"one", mode).unwrap();
        let path = soon(node.created()).await.unwrap().unwrap();
        for _ in 0..3 {
            let before = server.get(&path).unwrap().1.czxid;
            other.client().delete(&path, None).await.unwrap();
            until("it is back", || {
                let there = server.get(&path);
                there.is_some_and(|(_, stat)| stat.czxid > before)
            })
            .await;
            until("it is known", || node.path() == Some(path.clone())).await;
        }
        node.set_data(b"two");
        until("it is set", || {
            server.get(&path).unwrap().0.as_deref() == Some(b"two")
        })
        .await;
        let session = kept.session();
        expire(&server, &kept);
        until("there is another session", || {
            kept.session().is_some() && kept.session() != session
        })
        .await;
        if mode.is_ephemeral() {
            until("it is of the new session", || {
                let there = server.get(&path);
                there.is_some_and(|(_, stat)| Some(stat.ephemeral_owner) == kept.session())
            })
            .await;
        }
        until("it is known", || node.path() == Some(path.clone())).await;
        assert_eq!(names(&server, "/nodes"), [naming::name_of(&path)]);
        soon(node.close()).await.unwrap();
        assert!(names(&server, "/nodes").is_empty(), "{mode:?}");
    }
}
