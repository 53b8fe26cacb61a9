//! A background task that ends is noticed: every wait ends with an error that says so, and every stage
//! changes. Tasks end when code of the caller that they run panics, and when their runtime shuts down.
//!
//! Such a task left its handle as it was: "present", "a follower", and waits without an end.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use minikeeper_client::{AclList, Client, CreateMode, Error};
use minikeeper_recipes::{
    CacheError, CacheOptions, CuratorCache, GroupMember, InterProcessMutex,
    InterProcessSemaphoreV2, LatchError, LeaderLatch, LeaderSelector, LockError, NodeCache,
    PersistentNode, PersistentTtlNode, SelectorOptions, SharedValue,
};
use tokio::time::timeout;

use crate::{
    kit::{builder, client, create, soon, start, until},
    link::Link,
};

const TTL: Duration = Duration::from_secs(60);

fn has_panicked(error: &Error) -> bool {
    matches!(error, Error::TaskEnded { why, .. } if why == "it has panicked: no paper")
}

fn lock_has_panicked(error: &LockError) -> bool {
    matches!(error, LockError::Client(error) if has_panicked(error))
}

fn cache_has_panicked(error: &CacheError) -> bool {
    matches!(error, CacheError::Client(error) if has_panicked(error))
}

#[tokio::test(start_paused = true)]
async fn filter_of_a_cache_that_panics_ends_the_cache() {
    for is_late in [false, true] {
        let server = start().await;
        let (client, _) = client(&server, 1).await;
        for path in ["/tree", "/tree/a"] {
            create(&client, path).await;
        }
        let options = CacheOptions::default().filter(move |path| {
            assert!(is_late && path != "/tree/b", "no paper");
            true
        });
        let cache = CuratorCache::with_options(client.clone(), "/tree", options.clone()).unwrap();
        let node = NodeCache::with_options(client.clone(), "/tree/a", options).unwrap();
        let (_, mut changes) = cache.subscribe();
        if is_late {
            soon(cache.initialized()).await.unwrap();
            create(&client, "/tree/b").await;
        }
        let end = loop {
            if let Err(end) = soon(changes.next()).await {
                break end;
            }
        };
        assert!(cache_has_panicked(&end), "{end}");
        assert_eq!(cache.end(), Some(end.clone()));
        assert_eq!(soon(cache.initialized()).await, Err(end.clone()));
        assert!(cache_has_panicked(
            &soon(cache.subscribe().1.next()).await.unwrap_err()
        ));
        soon(cache.close()).await;
        // The root is not filtered.
        soon(node.cache().initialized()).await.unwrap();
    }
}

/// A client whose access lists cannot be had once the switch is on.
async fn broken(server: &Arc<minikeeper::Server>, is_broken: &Arc<AtomicBool>) -> Client {
    let is_broken = Arc::clone(is_broken);
    let provider = move |_: &str| -> AclList {
        assert!(!is_broken.load(Ordering::Relaxed), "no paper");
        AclList::world_all()
    };
    let builder = builder(&Link::to(server), 1).acl_provider(provider);
    builder.connect().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn access_lists_that_panic_end_what_creates_znodes() {
    for is_late in [false, true] {
        let server = start().await;
        let is_broken = Arc::new(AtomicBool::new(!is_late));
        let client = broken(&server, &is_broken).await;
        let (admin, _) = client_of_admin(&server).await;
        let latch = LeaderLatch::start(client.clone(), "/latch", "").unwrap();
        let mut changes = latch.changes();
        let selector = LeaderSelector::start(
            client.clone(),
            "/selector",
            "",
            SelectorOptions::default(),
            |_| Box::pin(std::future::pending()),
        )
        .unwrap();
        let node =
            PersistentNode::start(client.clone(), "/node", b"", CreateMode::Ephemeral).unwrap();
        let ttl = PersistentTtlNode::start(client.clone(), "/ttl", b"", TTL).unwrap();
        let member = GroupMember::start(client.clone(), "/group", "1", b"").unwrap();
        if is_late {
            soon(latch.wait()).await.unwrap();
            until("the selector leads", || selector.has_leadership()).await;
            soon(node.created()).await.unwrap();
            soon(ttl.created()).await.unwrap();
            soon(member.joined()).await.unwrap();
            is_broken.store(true, Ordering::Relaxed);
            let leading = soon(selector.leader()).await.unwrap().unwrap().path;
            for path in [
                &latch.own_path().unwrap(),
                &leading,
                "/node",
                "/ttl/touch",
                "/ttl",
                "/group/1",
            ] {
                admin.delete(path, None).await.unwrap();
            }
            // The end of a turn is no reason to create anything.
            soon(selector.done()).await.unwrap();
            assert!(selector.requeue());
            until("the latch notices", || !latch.has_leadership()).await;
            until("the node notices", || node.path().is_none()).await;
            until("the TTL node notices", || !ttl.is_present()).await;
        }
        let error = soon(latch.wait()).await.unwrap_err();
        assert!(
            matches!(&error, LatchError::Failed(error) if lock_has_panicked(error)),
            "{error}"
        );
        while soon(changes.next()).await.is_some() {}
        assert_eq!(latch.own_path(), None);
        assert!(has_panicked(&soon(latch.close()).await.unwrap_err()));
        until("the selector notices", || selector.last_error().is_some()).await;
        let error = soon(selector.done()).await.unwrap_err();
        assert!(lock_has_panicked(&error), "{error}");
        assert_eq!(selector.last_error(), Some(error));
        assert!(!selector.has_leadership() && !selector.interrupt() && !selector.requeue());
        assert!(has_panicked(&soon(selector.close()).await.unwrap_err()));
        until("the node's stage changes", || node.path().is_none()).await;
        node.set_data(b"new");
        for error in [
            soon(node.created()).await.err(),
            soon(node.updated()).await.err(),
            soon(node.close()).await.err(),
            soon(ttl.created()).await.err(),
        ] {
            assert!(error.as_ref().is_some_and(lock_has_panicked), "{error:?}");
        }
        assert!(!ttl.is_present());
        assert!(soon(member.joined()).await.is_err());
        assert!(soon(member.close()).await.is_err());
    }
}

async fn client_of_admin(server: &Arc<minikeeper::Server>) -> (Client, Link) {
    client(server, 2).await
}

/// The drop of the work ended the selector, which then seemed to be done.
#[tokio::test(start_paused = true)]
async fn work_that_panics_when_it_is_dropped_is_reported() {
    struct Paper;
    impl Drop for Paper {
        fn drop(&mut self) {
            assert!(std::thread::panicking(), "no paper");
        }
    }
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    let options = SelectorOptions::default();
    let selector = LeaderSelector::start(client.clone(), "/selector", "", options, |_| {
        Box::pin(async {
            let _paper = Paper;
            std::future::pending::<()>().await;
        })
    })
    .unwrap();
    for _ in 0..2 {
        until("it leads", || selector.has_leadership()).await;
        until("the work is interrupted", || selector.interrupt()).await;
        let error = soon(selector.done()).await.unwrap_err();
        assert!(
            matches!(&error, LockError::WorkPanicked { message, .. } if message == "no paper"),
            "{error}"
        );
        assert!(!selector.has_leadership());
        assert!(selector.requeue());
    }
    soon(selector.close()).await.unwrap();
}

/// Real time: the runtime of the tasks has its own clock.
#[test]
fn runtime_that_shuts_down_ends_every_wait() {
    let waiting = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let server = waiting.block_on(start());
    for is_early in [true, false] {
        let working = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let entered = working.enter();
        let client = working
            .block_on(builder(&Link::to(&server), 1).connect())
            .unwrap();
        let latch = LeaderLatch::start(client.clone(), "/latch", "").unwrap();
        let mut led = latch.changes();
        let options = SelectorOptions::default();
        let selector = LeaderSelector::start(client.clone(), "/selector", "", options, |_| {
            Box::pin(std::future::pending())
        })
        .unwrap();
        let node =
            PersistentNode::start(client.clone(), "/node", b"", CreateMode::Ephemeral).unwrap();
        let ttl = PersistentTtlNode::start(client.clone(), "/ttl", b"", TTL).unwrap();
        let cache = CuratorCache::start(client.clone(), "/").unwrap();
        let (_, mut cached) = cache.subscribe();
        let member = GroupMember::start(client.clone(), "/group", "1", b"").unwrap();
        let value = working
            .block_on(SharedValue::start(client.clone(), "/value", b""))
            .unwrap();
        let mut values = value.changes();
        let lock = InterProcessMutex::new(client.clone(), "/lock").unwrap();
        let semaphore = InterProcessSemaphoreV2::new(client.clone(), "/semaphore", 1).unwrap();
        let held = working.block_on(lock.acquire().into_future()).unwrap();
        let lease = working.block_on(semaphore.acquire().into_future()).unwrap();
        if !is_early {
            working.block_on(async {
                latch.wait().await.unwrap();
                until("it leads", || selector.has_leadership()).await;
                node.created().await.unwrap();
                ttl.created().await.unwrap();
                cache.initialized().await.unwrap();
                member.joined().await.unwrap();
            });
        }
        drop(entered);
        // Waits until its tasks are dropped.
        working.shutdown_timeout(Duration::from_secs(30));
        waiting.block_on(async {
            async fn ends<T, E>(what: &'static str, wait: impl Future<Output = Result<T, E>>) {
                match timeout(Duration::from_secs(30), wait).await {
                    Ok(ended) => assert!(ended.is_err(), "{what} is no error"),
                    Err(_) => panic!("{what} does not end"),
                }
            }
            ends("LeaderLatch::wait", latch.wait()).await;
            ends("LeadershipChanges::next", async {
                while led.next().await.is_some() {}
                Err::<(), ()>(())
            })
            .await;
            assert!(!latch.has_leadership());
            ends("LeaderLatch::close", latch.close()).await;
            ends("LeaderLatch::participants", latch.participants()).await;
            ends("LeaderSelector::done", selector.done()).await;
            ends("LeaderSelector::close", selector.close()).await;
            assert!(!selector.has_leadership());
            ends("PersistentNode::created", node.created()).await;
            ends("PersistentNode::updated", node.updated()).await;
            ends("PersistentNode::close", node.close()).await;
            assert_eq!(node.path(), None);
            ends("PersistentTtlNode::created", ttl.created()).await;
            assert!(!ttl.is_present());
            ends("CuratorCache::initialized", cache.initialized()).await;
            ends("CacheChanges::next", async {
                loop {
                    cached.next().await?;
                }
                #[expect(unreachable_code, reason = "it names the type of the error")]
                Ok::<(), CacheError>(())
            })
            .await;
            assert!(cache.end().is_some());
            ends("GroupMember::joined", member.joined()).await;
            ends("SharedValue::get", value.get()).await;
            ends("SharedValue::set", value.set(b"")).await;
            ends("ValueChanges::next", values.next()).await;
            ends("InterProcessMutex::acquire", lock.acquire().into_future()).await;
            ends(
                "InterProcessSemaphoreV2::acquire",
                semaphore.acquire().into_future(),
            )
            .await;
            for guard in [&held, lease.guard()] {
                ends("Guard::lost", async { Err::<(), _>(guard.lost().await) }).await;
                ends("Guard::run", guard.run(std::future::pending::<()>())).await;
            }
            drop((held, lease));
        });
    }
}
