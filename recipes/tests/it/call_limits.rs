//! Every call that waits for a server only ends within the client's limit for calls, even if no
//! server ever replies.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::{AfterTimeout, Client, CreateMode, Error, ErrorClass};
use minikeeper_recipes::{
    AtomicOptions, CachedAtomicLong, CloseMode, CuratorCache, DistributedAtomicLong,
    DistributedBarrier, GroupMember, Guard, InterProcessMultiLock, InterProcessMutex,
    InterProcessReadWriteLock, InterProcessSemaphoreMutex, InterProcessSemaphoreV2, LeaderLatch,
    LeaderSelector, LockOptions, PersistentNode, PersistentTtlNode, Promotion, QueuePosition,
    Revoker, SelectorOptions, SharedCount, SharedValue,
};
use tokio::time::Instant;

use crate::{
    clock,
    kit::{PATH, builder, create, queue, soon, spawn, start, until},
    link::{Link, Mode},
};

/// The limit for calls; shorter than the session.
const LIMIT: Duration = Duration::from_millis(500);

/// How much later a call may end: the time for replies that an acquire without a wait has.
const LATE: Duration = Duration::from_secs(1);

type Failure = Box<dyn StdError + Send + Sync>;

struct World {
    server: Arc<Server>,
    client: Client,
    link: Link,
    mode: Mode,
}

impl World {
    async fn new(mode: Mode) -> Self {
        let server = start().await;
        let link = Link::to(&server);
        let client = builder(&link, 1).call_timeout(LIMIT).connect().await;
        Self {
            client: client.unwrap(),
            server,
            link,
            mode,
        }
    }

    /// From now on the server gets no request, or the client no reply.
    fn silence(&self) -> Instant {
        self.link.set(self.mode);
        clock::now()
    }

    fn mutex(&self) -> InterProcessMutex {
        InterProcessMutex::new(self.client.clone(), PATH).unwrap()
    }

    async fn guard(&self) -> Guard {
        self.mutex().acquire().await.unwrap()
    }
}

/// Every public call of the crate that waits for a server and not for other contenders.
const CALLS: &[&str] = &[
    "Guard::release",
    "Guard::multi",
    "InterProcessMutex::participants",
    "InterProcessMutex::participants_with_data",
    "QueuePosition::ahead",
    "InterProcessMutex::try_acquire",
    "InterProcessMutex::try_acquire peeking",
    "InterProcessSemaphoreMutex::try_acquire",
    "InterProcessReadWriteLock::readers",
    "InterProcessReadWriteLock::writers",
    "WriteGuard::downgrade",
    "WriteGuard::release",
    "InterProcessSemaphoreV2::try_acquire",
    "InterProcessSemaphoreV2::available",
    "InterProcessSemaphoreV2::available shared",
    "InterProcessSemaphoreV2::participants",
    "Lease::data",
    "Lease::release",
    "InterProcessMultiLock::try_acquire",
    "MultiGuard::release",
    "Revoker::attempt_revoke",
    "LeaderLatch::participants",
    "LeaderLatch::leader",
    "LeaderLatch::close",
    "LeaderSelector::participants",
    "LeaderSelector::leader",
    "LeaderSelector::close",
    "LeaderLatch::close_with",
    "DistributedBarrier::set",
    "DistributedBarrier::remove",
    "PersistentNode::created",
    "PersistentNode::updated",
    "PersistentNode::close",
    "SharedValue::start",
    "SharedValue::get",
    "SharedValue::set",
    "SharedValue::try_set",
    "SharedCount::start",
    "SharedCount::get",
    "SharedCount::set",
    "SharedCount::try_set",
    "DistributedAtomicLong::get",
    "DistributedAtomicLong::initialize",
    "DistributedAtomicLong::set",
    "DistributedAtomicLong::compare_and_set",
    "DistributedAtomicLong::add",
    "DistributedAtomicLong::update",
    "DistributedAtomicLong::update promoted",
    "CachedAtomicLong::next",
    "PersistentTtlNode::created",
    "GroupMember::joined",
    "GroupMember::close",
    "CuratorCache::initialized",
    "CuratorCache::close",
];

/// Makes a call in a world that becomes silent before it; returns when that was, and the result.
async fn call(name: &str, world: &World) -> (Instant, Result<(), Failure>) {
    let client = world.client.clone();
    /// Evaluates the expression in silence.
    macro_rules! silent {
        ($call:expr) => {{
            let begun = world.silence();
            (begun, $call.await.map(drop).map_err(Failure::from))
        }};
    }
    let catalogue = || InterProcessReadWriteLock::new(client.clone(), PATH).unwrap();
    let licences = || InterProcessSemaphoreV2::new(client.clone(), PATH, 3).unwrap();
    let latch = || LeaderLatch::start(client.clone(), PATH, "").unwrap();
    let selector = || {
        let options = SelectorOptions::default();
        let selector = LeaderSelector::start(client.clone(), PATH, "", options, |_| {
            Box::pin(std::future::pending())
        });
        selector.unwrap()
    };
    let barrier = || DistributedBarrier::new(client.clone(), PATH).unwrap();
    let node = || PersistentNode::start(client.clone(), PATH, b"", CreateMode::Ephemeral).unwrap();
    let orders = || DistributedAtomicLong::new(client.clone(), PATH).unwrap();
    let multi_lock = || InterProcessMultiLock::new([world.mutex()]);
    match name {
        "Guard::release" => {
            let guard = world.guard().await;
            silent!(guard.release())
        }
        "Guard::multi" => {
            let guard = world.guard().await;
            silent!(guard.multi(|multi| multi.check("/", None)))
        }
        "InterProcessMutex::participants" => silent!(world.mutex().participants()),
        "InterProcessMutex::participants_with_data" => {
            silent!(world.mutex().participants_with_data())
        }
        "QueuePosition::ahead" => {
            let _holder = world.guard().await;
            let position = QueuePosition::default();
            let lock = world.mutex();
            let waiting = spawn({
                let position = position.clone();
                async move { lock.acquire().report_to(&position).await }
            });
            until("it waits", || queue(&world.server).len() == 2).await;
            let silence = silent!(position.ahead());
            waiting.abort();
            silence
        }
        "InterProcessMutex::try_acquire" => silent!(world.mutex().try_acquire()),
        "InterProcessMutex::try_acquire peeking" => {
            let mut options = LockOptions::default();
            options.peek = true;
            let lock = InterProcessMutex::with_options(client, PATH, options).unwrap();
            silent!(lock.try_acquire())
        }
        "InterProcessSemaphoreMutex::try_acquire" => {
            let lock = InterProcessSemaphoreMutex::new(client, PATH).unwrap();
            silent!(lock.try_acquire())
        }
        "InterProcessReadWriteLock::readers" => silent!(catalogue().readers()),
        "InterProcessReadWriteLock::writers" => silent!(catalogue().writers()),
        "WriteGuard::downgrade" => {
            let writer = catalogue().acquire_write().await.unwrap();
            silent!(writer.downgrade())
        }
        "WriteGuard::release" => {
            let writer = catalogue().acquire_write().await.unwrap();
            silent!(writer.release())
        }
        "InterProcessSemaphoreV2::try_acquire" => silent!(licences().try_acquire()),
        "InterProcessSemaphoreV2::available" => silent!(licences().available()),
        "InterProcessSemaphoreV2::available shared" => {
            let max = SharedCount::start(client.clone(), "/max", 3).await.unwrap();
            let licences = InterProcessSemaphoreV2::new(client, PATH, max).unwrap();
            silent!(licences.available())
        }
        "InterProcessSemaphoreV2::participants" => silent!(licences().participants()),
        "Lease::data" => {
            let lease = licences().acquire().await.unwrap();
            silent!(lease.data())
        }
        "Lease::release" => {
            let lease = licences().acquire().await.unwrap();
            silent!(lease.release())
        }
        "InterProcessMultiLock::try_acquire" => silent!(multi_lock().try_acquire()),
        "MultiGuard::release" => {
            let guard = multi_lock().acquire().await.unwrap();
            silent!(guard.release())
        }
        "Revoker::attempt_revoke" => silent!(Revoker::attempt_revoke(&client, PATH)),
        "LeaderLatch::participants" => silent!(latch().participants()),
        "LeaderLatch::leader" => silent!(latch().leader()),
        "LeaderLatch::close" => {
            let latch = latch();
            latch.wait().await.unwrap();
            silent!(latch.close())
        }
        "LeaderLatch::close_with" => {
            let latch = latch();
            latch.wait().await.unwrap();
            silent!(latch.close_with(CloseMode::NotifyLeader))
        }
        "LeaderSelector::participants" => silent!(selector().participants()),
        "LeaderSelector::leader" => silent!(selector().leader()),
        "LeaderSelector::close" => {
            let selector = selector();
            until("it leads", || selector.has_leadership()).await;
            silent!(selector.close())
        }
        "DistributedBarrier::set" => silent!(barrier().set()),
        "DistributedBarrier::remove" => silent!(barrier().remove()),
        "PersistentNode::created" => silent!(node().created()),
        "PersistentNode::updated" => {
            let node = node();
            node.created().await.unwrap();
            let begun = world.silence();
            node.set_data(b"1");
            (begun, node.updated().await.map(drop).map_err(Failure::from))
        }
        "PersistentNode::close" => {
            let node = node();
            node.created().await.unwrap();
            silent!(node.close())
        }
        "SharedValue::start" => silent!(SharedValue::start(client, PATH, b"")),
        "SharedValue::get" | "SharedValue::set" | "SharedValue::try_set" => {
            create(&client, "/locks").await;
            let motto = SharedValue::start(client.clone(), PATH, b"").await.unwrap();
            let seen = motto.current();
            match name {
                "SharedValue::get" => {
                    // Its watch fires, so it must be read.
                    client.set_data(PATH, b"1", None).await.unwrap();
                    silent!(motto.get())
                }
                "SharedValue::set" => silent!(motto.set(b"1")),
                _ => silent!(motto.try_set(&seen, b"1")),
            }
        }
        "SharedCount::start" => silent!(SharedCount::start(client, PATH, 7)),
        "SharedCount::get" | "SharedCount::set" | "SharedCount::try_set" => {
            let count = SharedCount::start(client.clone(), PATH, 7).await.unwrap();
            let seen = count.current().unwrap();
            match name {
                "SharedCount::get" => {
                    client.set_data(PATH, b"0001", None).await.unwrap();
                    silent!(count.get())
                }
                "SharedCount::set" => silent!(count.set(1)),
                _ => silent!(count.try_set(&seen, 1)),
            }
        }
        "DistributedAtomicLong::get" => silent!(orders().get()),
        "DistributedAtomicLong::initialize" => silent!(orders().initialize(1)),
        "DistributedAtomicLong::set" => silent!(orders().set(1)),
        "DistributedAtomicLong::compare_and_set" => silent!(orders().compare_and_set(0, 1)),
        "DistributedAtomicLong::add" => silent!(orders().add(1)),
        "DistributedAtomicLong::update" => silent!(orders().update(|orders| orders + 1)),
        "DistributedAtomicLong::update promoted" => {
            let mut options = AtomicOptions::default();
            options.promotion = Some(Promotion {
                path: "/locks/b".to_owned(),
                within: Duration::from_millis(100),
            });
            let orders = DistributedAtomicLong::with_options(client, PATH, options).unwrap();
            silent!(orders.update(|orders| orders + 1))
        }
        "CachedAtomicLong::next" => silent!(CachedAtomicLong::new(orders(), 10).next()),
        "PersistentTtlNode::created" => {
            let ttl = Duration::from_secs(1);
            silent!(
                PersistentTtlNode::start(client, PATH, b"", ttl)
                    .unwrap()
                    .created()
            )
        }
        "GroupMember::joined" => {
            silent!(GroupMember::start(client, PATH, "7", b"").unwrap().joined())
        }
        "GroupMember::close" => {
            let member = GroupMember::start(client, PATH, "7", b"").unwrap();
            member.joined().await.unwrap();
            silent!(member.close())
        }
        "CuratorCache::initialized" => {
            let begun = world.silence();
            let cache = CuratorCache::start(client, "/").unwrap();
            (begun, cache.initialized().await.map_err(Failure::from))
        }
        "CuratorCache::close" => {
            let cache = CuratorCache::start(client, "/").unwrap();
            let begun = world.silence();
            cache.close().await;
            (begun, Ok(()))
        }
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn h70_every_call_ends_within_its_limit_when_no_server_replies() {
    for mode in [Mode::SwallowRequests, Mode::SwallowReplies] {
        for name in CALLS {
            let world = World::new(mode).await;
            let (begun, result) = soon(call(name, &world)).await;
            let took = clock::now() - begun;
            assert!(took <= LIMIT + LATE, "{name}: {took:?}");
            // These need no reply, or have a limit of their own for replies.
            if name.ends_with("try_acquire") || name.ends_with("peeking") {
                continue;
            }
            if *name == "CuratorCache::close" {
                assert!(
                    result.is_ok() && took < Duration::from_millis(10),
                    "{took:?}"
                );
                continue;
            }
            let within = if name.ends_with("promoted") { 600 } else { 500 };
            let error = result.expect_err(name).to_string();
            let expected = format!("no result within {within} ms; ");
            assert!(error.contains(&expected), "{name}: {error}");
            assert_eq!(took, Duration::from_millis(within), "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h70_release_that_timed_out_continues_in_the_background() {
    for mode in [Mode::SwallowRequests, Mode::SwallowReplies] {
        let world = World::new(mode).await;
        let guard = world.guard().await;
        world.silence();
        let error = guard.release().await.expect_err("no server replies");
        let Error::CallTimedOut { within, then, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!((*within, *then), (LIMIT, AfterTimeout::Continues));
        assert_eq!(error.class(), ErrorClass::DeadlinePassed);
        world.link.cut();
        until("it is released", || queue(&world.server).is_empty()).await;
        assert!(world.client.state().is_connected(), "the session lives");
    }
}

#[tokio::test(start_paused = true)]
async fn acquire_without_a_limit_waits_longer_than_the_limit_for_calls() {
    let world = World::new(Mode::SwallowReplies).await;
    let held = world.guard().await;
    let mutex = world.mutex();
    let (guard, ()) = tokio::join!(mutex.acquire(), async {
        tokio::time::sleep(20 * LIMIT).await;
        drop(held);
    });
    drop(guard.unwrap());
}

#[test]
fn limits_for_calls_are_moved_into_their_range() {
    let (client, _driver) = Client::builder("nowhere").unwrap().build();
    assert_eq!(
        client.call_timeout(),
        minikeeper_client::CALL_TIMEOUT_DEFAULT
    );
    for (asked, got) in [
        (Duration::ZERO, Duration::from_millis(1)),
        (LIMIT, LIMIT),
        (Duration::MAX, minikeeper_client::CALL_TIMEOUT_MAX),
    ] {
        assert_eq!(client.with_call_timeout(asked).call_timeout(), got);
        let builder = Client::builder("nowhere").unwrap().call_timeout(asked);
        assert_eq!(builder.build().0.call_timeout(), got);
    }
}
