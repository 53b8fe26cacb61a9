//! The counter. Tests that Curator's `TestDistributedAtomicLong` also has keep their names.

use std::{pin::pin, sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::Client;
use minikeeper_recipes::{
    AtomicError, AtomicOptions, CachedAtomicLong, DistributedAtomicInteger, DistributedAtomicLong,
    DistributedAtomicValue, InterProcessMutex, LockError, Promotion,
};
use tokio::time::{sleep, timeout};

use crate::{
    every_lock::Polls,
    kit::{client, create, soon, spawn, start, until},
    link::{Link, Mode},
};

const COUNTER: &str = "/counters/a";

async fn counter(server: &Arc<Server>, seed: u64) -> (DistributedAtomicLong, Client, Link) {
    counter_with(server, seed, AtomicOptions::default()).await
}

async fn counter_with(
    server: &Arc<Server>,
    seed: u64,
    options: AtomicOptions,
) -> (DistributedAtomicLong, Client, Link) {
    let (client, link) = client(server, seed).await;
    let counter = DistributedAtomicLong::with_options(client.clone(), COUNTER, options).unwrap();
    (counter, client, link)
}

#[tokio::test(start_paused = true)]
async fn test_basic() {
    let server = start().await;
    let (counter, _, _) = counter(&server, 1).await;
    assert_eq!(counter.get().await.unwrap(), 0);
    assert!(server.get(COUNTER).is_none(), "a read creates nothing");
    let change = counter.add(1).await.unwrap();
    assert_eq!((change.previous, change.current), (0, 1));
    assert_eq!(
        (change.optimistic_attempts, change.promoted_attempts),
        (1, 0)
    );
    let change = counter.add(9).await.unwrap();
    assert_eq!((change.previous, change.current), (1, 10));
    let change = counter.add(-12).await.unwrap();
    assert_eq!((change.previous, change.current), (10, -2));
    assert_eq!(counter.add(-1).await.unwrap().current, -3);
    let change = counter.set(i64::MAX).await.unwrap();
    assert_eq!((change.previous, change.current), (-3, i64::MAX));
    assert_eq!(counter.add(1).await.unwrap().current, i64::MIN);
    // The bytes are those that Java's ByteBuffer writes.
    counter.set(-3).await.unwrap();
    let data = server.get(COUNTER).unwrap().0;
    assert_eq!(data.as_deref(), Some(&(-3_i64).to_be_bytes()[..]));
}

#[tokio::test(start_paused = true)]
async fn test_initialize() {
    let server = start().await;
    let (counter, _, _) = counter(&server, 1).await;
    assert!(counter.initialize(10).await.unwrap());
    assert_eq!(counter.get().await.unwrap(), 10);
    assert!(!counter.initialize(20).await.unwrap());
    assert_eq!(counter.get().await.unwrap(), 10);
}

#[tokio::test(start_paused = true)]
async fn test_compare_and_set() {
    let server = start().await;
    let (counter, _, _) = counter(&server, 1).await;
    assert_eq!(counter.compare_and_set(0, 1).await.unwrap(), None);
    counter.initialize(1).await.unwrap();
    assert_eq!(counter.compare_and_set(3, 4).await.unwrap(), None);
    let change = counter.compare_and_set(1, 4).await.unwrap().unwrap();
    assert_eq!((change.previous, change.current), (1, 4));
    assert_eq!(counter.get().await.unwrap(), 4);
}

#[tokio::test(start_paused = true)]
async fn test_corrupted_value() {
    let server = start().await;
    let (counter, client, _) = counter(&server, 1).await;
    for path in ["/counters", COUNTER] {
        create(&client, path).await;
    }
    // Empty data counts as 0, as in Java.
    assert_eq!(counter.add(1).await.unwrap().current, 1);
    client.set_data(COUNTER, b"foo", None).await.unwrap();
    let error = counter.get().await.unwrap_err();
    let text = "atomic value \"/counters/a\": 3 bytes found, which are no 64-bit number; delete it or use another path";
    assert_eq!(error.to_string(), text);
    assert!(counter.add(1).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn test_simulation() {
    // Ten contenders at once: every change counts once, and all previous values differ.
    let server = start().await;
    let mut options = AtomicOptions::default();
    options.attempts_max = 1000;
    let mut tasks = Vec::new();
    for seed in 1..=10 {
        let (counter, _, _) = counter_with(&server, seed, options.clone()).await;
        tasks.push(spawn(async move {
            let mut seen = Vec::new();
            for _ in 0..50 {
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
    assert_eq!(all, (0..500).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn contended_change_fails_after_the_maximum_of_attempts() {
    let server = start().await;
    let mut options = AtomicOptions::default();
    options.attempts_max = 3;
    let (counter, client, _) = counter_with(&server, 1, options.clone()).await;
    counter.initialize(0).await.unwrap();
    // Another client changes it between each read and change.
    let interfere = |value: i64| {
        server.check().unwrap();
        drop(client.set_data(COUNTER, &(value + 100).to_be_bytes(), None));
        value + 1
    };
    let error = counter.update(interfere).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "atomic value \"/counters/a\": changed by others during each of 3 attempts; try later"
    );
    // With a mutex there are as many attempts again, under the mutex.
    options.promotion = Some(Promotion {
        path: "/counters/lock".to_owned(),
        within: Duration::from_secs(1),
    });
    let (counter, client, _) = counter_with(&server, 2, options).await;
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let interfere = |value: i64| {
        if calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 4 {
            drop(client.set_data(COUNTER, &(value + 100).to_be_bytes(), None));
        }
        value + 1
    };
    let change = counter.update(interfere).await.unwrap();
    assert_eq!(
        (change.optimistic_attempts, change.promoted_attempts),
        (3, 2)
    );
    until("the mutex is free", || {
        server
            .children("/counters/lock")
            .unwrap_or_default()
            .is_empty()
    })
    .await;
    // If the mutex is not free either, the error says so.
    let mutex = InterProcessMutex::new(client.clone(), "/counters/lock").unwrap();
    let _guard = mutex.acquire().await.unwrap();
    let interfere = |value: i64| {
        drop(client.set_data(COUNTER, &(value + 100).to_be_bytes(), None));
        value + 1
    };
    let error = counter.update(interfere).await.unwrap_err();
    assert!(
        matches!(error, AtomicError::Failed(LockError::TimedOut { .. })),
        "{error}"
    );
}

/// A change whose request or reply was lost is made once, or its outcome is reported as unknown.
#[tokio::test(start_paused = true)]
async fn lost_replies_change_nothing_twice() {
    for mode in [Mode::SwallowReplies, Mode::SwallowRequests, Mode::Cut] {
        for delay_ms in 0..8 {
            let server = start().await;
            let (counter, _, link) = counter(&server, 1).await;
            counter.initialize(0).await.unwrap();
            link.delay_replies(Duration::from_millis(1));
            let (results, ()) = tokio::join!(
                async {
                    let mut results = Vec::new();
                    for _ in 0..4 {
                        results.push(soon(counter.add(1)).await);
                    }
                    results
                },
                async {
                    sleep(Duration::from_millis(delay_ms)).await;
                    link.set(mode);
                    sleep(Duration::from_millis(200)).await;
                    link.set(Mode::Pass);
                    link.cut();
                }
            );
            let made = results.iter().filter(|result| result.is_ok()).count();
            let unknown = results.len() - made;
            for error in results.into_iter().filter_map(Result::err) {
                let AtomicError::Failed(LockError::Client(error)) = error else {
                    panic!("{error}");
                };
                assert!(error.is_outcome_unknown(), "{error}");
            }
            let value = usize::try_from(counter.get().await.unwrap()).unwrap();
            assert!(
                (made..=made + unknown).contains(&value),
                "{value} of {made}"
            );
            if mode == Mode::SwallowRequests {
                assert_eq!(unknown, 0, "it was certainly not made");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn change_is_made_at_most_once_across_a_lost_session() {
    for delay_ms in 0..6 {
        let server = start().await;
        let (counter, client, link) = counter(&server, 1).await;
        link.delay_replies(Duration::from_millis(1));
        let (change, ()) = tokio::join!(soon(counter.add(1)), async {
            sleep(Duration::from_millis(delay_ms)).await;
            server.expire(client.session_id().unwrap()).unwrap();
        });
        let value = counter.get().await.unwrap();
        match change {
            Ok(change) => assert_eq!((change.current, value), (1, 1)),
            Err(AtomicError::Failed(LockError::Client(error))) => {
                assert!(error.is_outcome_unknown(), "{error}");
                assert!(value <= 1);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_at_every_await_point_changes_the_counter_at_most_once() {
    let mut polls = 0;
    loop {
        let server = start().await;
        let (counter, client, _) = counter(&server, 1).await;
        let limited = {
            let change = pin!(counter.add(1));
            let limited = Polls {
                future: change,
                left: polls,
            };
            timeout(Duration::from_secs(1), limited).await
        };
        sleep(Duration::from_secs(1)).await;
        let value = counter.get().await.unwrap();
        assert!((0..=1).contains(&value));
        assert_eq!(client.clean_ups_pending(), 0);
        if limited.unwrap().is_some() {
            assert_eq!(value, 1);
            break;
        }
        polls += 1;
    }
    assert!(polls >= 2, "{polls} await points");
}

#[tokio::test(start_paused = true)]
async fn integers_and_bytes_have_the_data_that_java_writes() {
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    let number = DistributedAtomicInteger::new(client.clone(), "/int").unwrap();
    number.set(i32::MAX).await.unwrap();
    assert_eq!(number.add(1).await.unwrap().current, i32::MIN);
    let data = server.get("/int").unwrap().0;
    assert_eq!(data.as_deref(), Some(&i32::MIN.to_be_bytes()[..]));
    client.set_data("/int", b"abc", None).await.unwrap();
    let error = number.get().await.unwrap_err();
    let text = "atomic value \"/int\": 3 bytes found, which are no 32-bit number; delete it or use \
                another path";
    assert_eq!(error.to_string(), text);
    // Like Java it ignores further bytes, and empty data is 0.
    client
        .set_data("/int", &[0, 0, 0, 7, 9], None)
        .await
        .unwrap();
    assert_eq!(number.get().await.unwrap(), 7);
    client.set_data("/int", b"", None).await.unwrap();
    assert_eq!(number.get().await.unwrap(), 0);

    let bytes = DistributedAtomicValue::new(client, "/bytes").unwrap();
    assert_eq!(bytes.get().await.unwrap(), b"");
    assert!(bytes.compare_and_set(b"", b"x").await.unwrap().is_none());
    assert!(bytes.initialize(b"a").await.unwrap());
    assert!(!bytes.initialize(b"b").await.unwrap());
    assert!(bytes.compare_and_set(b"b", b"c").await.unwrap().is_none());
    let change = bytes.compare_and_set(b"a", b"c").await.unwrap().unwrap();
    assert_eq!(
        (change.previous.as_slice(), change.current.as_slice()),
        (&b"a"[..], &b"c"[..])
    );
    let change = bytes
        .update(|bytes| [bytes, b"d".to_vec()].concat())
        .await
        .unwrap();
    assert_eq!(change.current, b"cd");
    assert_eq!(server.get("/bytes").unwrap().0.as_deref(), Some(&b"cd"[..]));
}

/// Curator's `TestCachedAtomicLong` has the same numbers.
#[tokio::test(start_paused = true)]
async fn test_cached_atomic_long_with_cache_size() {
    let server = start().await;
    let (counter, _, _) = counter(&server, 1).await;
    let cached = CachedAtomicLong::new(counter.clone(), 100);
    for number in 0..150_i64 {
        let value = cached.next().await.unwrap();
        assert_eq!((value.previous, value.current), (number, number + 1));
        let asked = number % 100 == 0;
        assert_eq!(value.optimistic_attempts, u32::from(asked), "{number}");
    }
    assert_eq!(counter.get().await.unwrap(), 200);
    // One that starts in between begins with the next block; a length of 0 counts as 1.
    let other = CachedAtomicLong::new(counter.clone(), 0);
    assert_eq!(other.next().await.unwrap().current, 201);
    assert_eq!(other.next().await.unwrap().current, 202);
    for number in 150..200_i64 {
        assert_eq!(cached.next().await.unwrap().previous, number);
    }
    assert_eq!(cached.next().await.unwrap().current, 203);
    // The counter wraps around, as in Java.
    counter.set(i64::MAX - 1).await.unwrap();
    assert_eq!(other.next().await.unwrap().current, i64::MAX);
    assert_eq!(other.next().await.unwrap().current, i64::MIN);
}

#[tokio::test(start_paused = true)]
async fn numbers_of_cached_counters_are_unique_under_faults() {
    let server = start().await;
    let mut tasks = Vec::new();
    for seed in 0..3 {
        let (counter, _, link) = counter(&server, seed).await;
        let cached = Arc::new(CachedAtomicLong::new(counter, 5));
        for _ in 0..2 {
            let cached = Arc::clone(&cached);
            tasks.push(spawn(async move {
                let mut numbers = Vec::new();
                while numbers.len() < 40 {
                    // A failed reservation takes no number.
                    numbers.extend(cached.next().await.ok().map(|value| value.current));
                    sleep(Duration::from_millis(1)).await;
                }
                numbers
            }));
        }
        spawn(async move {
            for mode in [
                Mode::SwallowReplies,
                Mode::SwallowRequests,
                Mode::Cut,
                Mode::SwallowReplies,
            ] {
                sleep(Duration::from_millis(7 + 3 * seed)).await;
                link.set(mode);
                sleep(Duration::from_millis(2)).await;
                link.cut();
            }
        });
    }
    let mut all = Vec::new();
    for task in tasks {
        let numbers = soon(task).await.unwrap();
        assert!(numbers.is_sorted());
        all.extend(numbers);
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!((all.len(), count), (240, 240));
}
