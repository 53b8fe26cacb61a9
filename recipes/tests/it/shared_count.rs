//! The catalogue's tests of shared values and counts (`docs/curator-recipes.md` section 15.8), and
//! the rules of section 7.

use std::time::Duration;

use minikeeper_client::{Client, CreateMode, Error, ErrorCode};
use minikeeper_recipes::{InterProcessMutex, LockError, SharedCount, SharedValue, ValueError};
use tokio::time::{sleep, timeout};

use crate::{
    every_lock::Polls,
    kit::{builder, client, soon, spawn, start, until},
    link::{Link, Mode},
};

const COUNT: &str = "/counts/a";

/// The time in which no change must come.
const LONG: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn test_simple() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let count = SharedCount::start(one, COUNT, 7).await.unwrap();
    assert_eq!(count.current().unwrap().value, 7);
    assert_eq!(server.get(COUNT).unwrap().0.unwrap(), [0, 0, 0, 7]);
    let mut changes = count.changes();
    let set = count.set(-2).await.unwrap();
    assert_eq!((set.value, set.version), (-2, 1));
    assert_eq!(
        server.get(COUNT).unwrap().0.unwrap(),
        [0xff, 0xff, 0xff, 0xfe]
    );
    assert_eq!(soon(changes.next()).await.unwrap(), set);
    assert_eq!(count.get().await.unwrap(), set);
}

#[tokio::test(start_paused = true)]
async fn test_multi_clients() {
    // All readers see the same sequence.
    let server = start().await;
    let (setter, _) = client(&server, 0).await;
    let setter = SharedCount::start(setter, COUNT, 0).await.unwrap();
    let mut readers = Vec::new();
    for seed in 1..=5 {
        let (reader, _) = client(&server, seed).await;
        let count = SharedCount::start(reader, COUNT, 99).await.unwrap();
        let mut changes = count.changes();
        readers.push(spawn(async move {
            let mut seen = Vec::new();
            while seen.len() < 50 {
                seen.push(changes.next().await.unwrap().value);
            }
            seen
        }));
    }
    for value in 1..=50 {
        // Time passes only when all tasks wait, so all have seen the previous value.
        sleep(Duration::from_millis(1)).await;
        setter.set(value).await.unwrap();
    }
    for reader in readers {
        let seen = soon(reader).await.unwrap();
        assert_eq!(seen, (1..=50).collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn test_simple_versioned() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let count = SharedCount::start(one, COUNT, 0).await.unwrap();
    let zero = count.get().await.unwrap();
    let one = count.try_set(&zero, 1).await.unwrap().unwrap();
    assert_eq!((one.value, one.version), (1, zero.version + 1));
    assert!(one.mzxid > zero.mzxid);
    assert_eq!(count.try_set(&zero, 2).await.unwrap(), None);
    // The same number with another version does not match.
    let back = count.try_set(&one, 0).await.unwrap().unwrap();
    assert_eq!(count.try_set(&zero, 2).await.unwrap(), None);
    assert_eq!(count.get().await.unwrap(), back);
}

#[tokio::test(start_paused = true)]
async fn test_multi_client_versioned() {
    // A client that does not know the latest version is refused, and then knows it.
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let (other, _) = client(&server, 2).await;
    let one = SharedCount::start(one, COUNT, 10).await.unwrap();
    let other = SharedCount::start(other, COUNT, 20).await.unwrap();
    let stale = other.current().unwrap();
    let newer = one.try_set(&one.current().unwrap(), 11).await.unwrap();
    let newer = newer.unwrap();
    assert_eq!(other.current().unwrap(), stale);
    assert_eq!(other.try_set(&stale, 12).await.unwrap(), None);
    assert_eq!(other.current().unwrap(), newer);
    assert!(other.try_set(&newer, 12).await.unwrap().is_some());
    assert_eq!(one.get().await.unwrap().value, 12);
}

#[tokio::test(start_paused = true)]
async fn concurrent_increments_lose_none() {
    let server = start().await;
    let mut tasks = Vec::new();
    for seed in 0..8 {
        let (one, _) = client(&server, seed).await;
        tasks.push(spawn(async move {
            let count = SharedCount::start(one, COUNT, 0).await.unwrap();
            for _ in 0..20 {
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
    assert_eq!(server.get(COUNT).unwrap().0.unwrap(), [0, 0, 0, 160]);
}

#[tokio::test(start_paused = true)]
async fn test_multi_client_different_seed() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let (other, _) = client(&server, 2).await;
    let one = SharedCount::start(one, COUNT, 10).await.unwrap();
    let other = SharedCount::start(other, COUNT, 20).await.unwrap();
    assert_eq!(one.current().unwrap().value, 10);
    assert_eq!(other.current().unwrap(), one.current().unwrap());
}

#[tokio::test(start_paused = true)]
async fn test_disconnect_event_on_watcher_does_not_retry() {
    // A disconnect does not delay a waiting caller: it gets the change with the next connection.
    let server = start().await;
    let (one, link) = client(&server, 1).await;
    let (other, _) = client(&server, 2).await;
    let one = SharedCount::start(one, COUNT, 0).await.unwrap();
    let other = SharedCount::start(other, COUNT, 0).await.unwrap();
    let mut changes = one.changes();
    assert!(timeout(LONG, changes.next()).await.is_err());
    link.set(Mode::Cut);
    sleep(Duration::from_secs(1)).await;
    other.set(5).await.unwrap();
    link.set(Mode::Pass);
    assert_eq!(soon(changes.next()).await.unwrap().value, 5);
}

#[tokio::test(start_paused = true)]
async fn test_disconnect_reconnect_event_does_not_fire_value_watcher() {
    let server = start().await;
    let (one, link) = client(&server, 1).await;
    let one_client = one.clone();
    let one = SharedCount::start(one, COUNT, 0).await.unwrap();
    let mut changes = one.changes();
    assert!(timeout(LONG, changes.next()).await.is_err());
    link.cut();
    assert!(timeout(LONG, changes.next()).await.is_err());
    // Nor does another session.
    server.expire(one_client.session_id().unwrap()).unwrap();
    assert!(timeout(LONG, changes.next()).await.is_err());
    assert_eq!(one_client.epoch().0, 2);
    one.set(3).await.unwrap();
    assert_eq!(soon(changes.next()).await.unwrap().value, 3);
}

#[tokio::test(start_paused = true)]
async fn test_disconnect_reconnect_with_multiple_clients() {
    let server = start().await;
    let (setter, _) = client(&server, 0).await;
    let setter = SharedCount::start(setter, COUNT, 0).await.unwrap();
    let mut waiting = Vec::new();
    for seed in 1..=3 {
        let (one, link) = client(&server, seed).await;
        let count = SharedCount::start(one, COUNT, 0).await.unwrap();
        let mut changes = count.changes();
        let task = spawn(async move { changes.next().await.unwrap().value });
        waiting.push((task, link, count));
    }
    sleep(Duration::from_secs(1)).await;
    for (_, link, _) in &waiting {
        link.cut();
    }
    sleep(Duration::from_secs(1)).await;
    assert!(waiting.iter().all(|(task, ..)| !task.is_finished()));
    setter.set(1).await.unwrap();
    for (task, _, count) in waiting {
        assert_eq!(soon(task).await.unwrap(), 1);
        assert_eq!(count.current().unwrap().value, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn get_sends_a_request_only_after_a_change() {
    let server = start().await;
    let (one, link) = client(&server, 1).await;
    let (other, _) = client(&server, 2).await;
    let value = SharedValue::start(one, "/value", b"a").await.unwrap();
    let writes = || link.writes.load(std::sync::atomic::Ordering::Relaxed);
    let before = writes();
    for _ in 0..3 {
        assert_eq!(&value.get().await.unwrap().value[..], b"a");
    }
    assert_eq!(writes(), before);
    other.set_data("/value", b"b", None).await.unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(&value.current().value[..], b"a");
    assert_eq!(&value.get().await.unwrap().value[..], b"b");
    // Without a connection the value is uncertain, so `get` waits for one.
    link.set(Mode::Cut);
    sleep(Duration::from_secs(1)).await;
    assert!(timeout(Duration::from_secs(1), value.get()).await.is_err());
    link.set(Mode::Pass);
    assert_eq!(&soon(value.get()).await.unwrap().value[..], b"b");
}

#[tokio::test(start_paused = true)]
async fn own_change_is_returned_once() {
    // The reply to the set and the event both report it; the read after the event finds nothing
    // new.
    let server = start().await;
    let (one, link) = client(&server, 1).await;
    let value = SharedValue::start(one.clone(), "/value", b"a")
        .await
        .unwrap();
    let mut changes = value.changes();
    link.delay_replies(Duration::from_millis(5));
    let (set, first) = tokio::join!(value.set(b"b"), soon(changes.next()));
    assert_eq!(first.unwrap(), set.unwrap());
    assert_eq!(&value.current().value[..], b"b");
    assert!(timeout(LONG, changes.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn h17_stream_that_was_dropped_leaves_no_watch() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let count = SharedCount::start(one, COUNT, 0).await.unwrap();
    for _ in 0..100 {
        let mut changes = count.changes();
        let next = timeout(Duration::from_millis(1), changes.next());
        assert!(next.await.is_err());
    }
    let watches = || server.dump().matches("watch").count();
    let with_count = watches();
    drop(count);
    until("no watch is left", || !server.dump().contains("watch")).await;
    assert_eq!(with_count, 1, "only the count's own watch");
}

#[tokio::test(start_paused = true)]
async fn dropped_start_and_next_lose_no_change() {
    for polls in 0..10 {
        let server = start().await;
        let (one, _) = client(&server, 1).await;
        let starting = Box::pin(SharedCount::start(one.clone(), COUNT, 4));
        drop(Polls::new(starting, polls).await);
        let count = soon(SharedCount::start(one, COUNT, 5)).await.unwrap();
        let known = count.current().unwrap().value;
        assert!([4, 5].contains(&known), "{known}");
        let mut changes = count.changes();
        for value in 10..20 {
            let next = Polls::new(Box::pin(changes.next()), polls);
            drop(timeout(Duration::from_secs(1), next).await);
            count.set(value).await.unwrap();
        }
        let mut last = 0;
        while last != 19 {
            last = soon(changes.next()).await.unwrap().value;
        }
        drop((count, changes));
        until("no watch is left", || !server.dump().contains("watch")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_value_is_an_error_until_it_is_created_again() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let value = SharedValue::start(one.clone(), "/value", b"a")
        .await
        .unwrap();
    let mut changes = value.changes();
    one.delete("/value", None).await.unwrap();
    let expected = ValueError::Client(Error::Refused {
        op: "getData",
        path: "/value".into(),
        code: ErrorCode::NoNode,
    });
    assert_eq!(soon(changes.next()).await.unwrap_err(), expected);
    assert_eq!(value.get().await.unwrap_err(), expected);
    assert_eq!(&value.current().value[..], b"a");
    // Its version restarts; its mzxid does not.
    one.create("/value", b"b", CreateMode::Persistent)
        .await
        .unwrap();
    assert_eq!(&soon(changes.next()).await.unwrap().value[..], b"b");
}

#[tokio::test(start_paused = true)]
async fn data_that_is_not_a_count_is_an_error() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    one.create("/count", b"abc", CreateMode::Persistent)
        .await
        .unwrap();
    let count = SharedCount::start(one.clone(), "/count", 1).await.unwrap();
    let error = count.get().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "shared count \"/count\": 3 bytes found, but a count has 4; set the count to repair it"
    );
    // Java reads the first four bytes.
    one.set_data("/count", &[0, 0, 1, 0, 7], None)
        .await
        .unwrap();
    assert_eq!(soon(count.get()).await.unwrap().value, 256);
}

#[tokio::test(start_paused = true)]
async fn closed_client_is_an_error() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let count = SharedCount::start(one.clone(), COUNT, 1).await.unwrap();
    let mut changes = count.changes();
    let (next, ()) = tokio::join!(soon(changes.next()), async {
        sleep(Duration::from_secs(1)).await;
        one.close().await;
    });
    let error = next.unwrap_err().to_string();
    assert!(error.contains("the client is closed"), "{error}");
    assert!(soon(count.get()).await.is_err());
    assert_eq!(count.current().unwrap().value, 1);
}

#[tokio::test(start_paused = true)]
async fn missing_parent_above_the_chroot_is_an_error() {
    let server = start().await;
    let link = Link::to(&server);
    let below = Client::builder("server/not/there").unwrap();
    let below = below.transport(link).connect().await.unwrap();
    let error = soon(SharedCount::start(below.clone(), COUNT, 1))
        .await
        .unwrap_err();
    assert!(error.is(ErrorCode::NoNode), "{error}");
    let lock = InterProcessMutex::new(below, "/locks/a").unwrap();
    let error = soon(lock.acquire()).await.unwrap_err();
    assert!(
        matches!(&error, LockError::Client(error) if error.is(ErrorCode::NoNode)),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn starting_retries_after_every_fault() {
    for mode in [Mode::SwallowReplies, Mode::SwallowRequests, Mode::Cut] {
        let server = start().await;
        let link = Link::to(&server);
        let one = builder(&link, 1).connect().await.unwrap();
        link.set(mode);
        let starting = spawn(async move { SharedCount::start(one, COUNT, 3).await });
        sleep(Duration::from_millis(200)).await;
        assert!(!starting.is_finished());
        link.cut();
        let count = soon(starting).await.unwrap().unwrap();
        assert_eq!(count.current().unwrap().value, 3);
    }
}
