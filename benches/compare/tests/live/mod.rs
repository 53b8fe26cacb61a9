//! Common parts of the tests of locks on live servers.

use std::time::Duration;

use minikeeper_bench::{
    clock::now_ns,
    peers::{Access, Belief, Contender, Grant, LockFailure, LockUnderTest},
};

/// The limit for everything that must happen soon, even on a slow machine.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// Runs a test and ends it if it hangs.
pub(crate) fn run_within(limit: Duration, test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let done = runtime.block_on(async { tokio::time::timeout(limit, test).await });
    done.unwrap_or_else(|_| panic!("not done within {limit:?}"));
}

pub(crate) async fn acquire(contender: &mut dyn Contender) -> Grant {
    contender.acquire(Access::Exclusive).await.unwrap()
}

pub(crate) async fn is_got_within(contender: &mut dyn Contender, limit: Duration) -> bool {
    let got = contender.acquire_within(Access::Exclusive, limit).await;
    got.unwrap().is_some()
}

pub(crate) fn is_not_held<T>(done: &Result<T, LockFailure>) -> bool {
    matches!(done, Err(LockFailure::NotHeld(_)))
}

pub(crate) async fn elapsed<T>(doing: impl Future<Output = T>) -> (T, Duration) {
    let began_ns = now_ns();
    let done = doing.await;
    (done, Duration::from_nanos(now_ns() - began_ns))
}

/// Checks the behaviour that every lock must have. `held` is its belief while it is held;
/// `expect_holders` checks the server, and panics if the lock has more state there than this number
/// of holders needs.
pub(crate) async fn behaves_as_a_lock(
    lock: &dyn LockUnderTest,
    resource: &str,
    held: Belief,
    expect_holders: impl AsyncFn(usize),
) {
    let name = lock.name();
    let has_token = lock.promises().has_token;
    let mut one = lock.contender(resource).await.unwrap();
    let mut two = lock.contender(resource).await.unwrap();
    let mut three = lock.contender(resource).await.unwrap();
    assert_ne!(one.session(), two.session(), "{name}");
    assert_eq!(one.belief(), Belief::Lost, "{name}");
    assert!(is_not_held(&one.release().await), "{name}");

    // A try gets a free lock.
    let tried = one.acquire_within(Access::Exclusive, Duration::ZERO).await;
    let first = tried.unwrap().expect("the lock is free");
    assert_eq!(first.token.is_some(), has_token, "{name}");
    assert_eq!(one.belief(), held, "{name}");
    expect_holders(1).await;

    // A try fails at once.
    let (got, took) = elapsed(is_got_within(&mut *two, Duration::ZERO)).await;
    assert!(!got, "{name}");
    assert!(took < SOON, "{name}: {took:?}");
    assert_eq!(two.belief(), Belief::Lost, "{name}");
    expect_holders(1).await;

    // A timed acquire gives up, but not too early.
    let limit = Duration::from_millis(400);
    let (got, took) = elapsed(is_got_within(&mut *two, limit)).await;
    assert!(!got, "{name}");
    assert!(took >= limit, "{name}: {took:?}");
    assert!(took < limit + Duration::from_secs(3), "{name}: {took:?}");
    assert_eq!(two.belief(), Belief::Lost, "{name}");
    expect_holders(1).await;

    // A contender that does not hold it cannot release it.
    assert!(is_not_held(&two.release().await), "{name}");
    assert!(!is_got_within(&mut *two, Duration::ZERO).await, "{name}");

    // A waiter gets the lock after the release, and not before.
    let waiting = tokio::spawn(async move { (acquire(&mut *two).await, two) });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "{name}");
    assert_eq!(one.belief(), held, "{name}");
    let ((second, mut two), took) = elapsed(async {
        one.release().await.unwrap();
        waiting.await.unwrap()
    })
    .await;
    assert!(took < SOON, "{name}: {took:?}");
    assert_eq!(second.token.is_some(), has_token, "{name}");
    assert!(!has_token || first.token < second.token, "{name}");
    assert_eq!(two.belief(), held, "{name}");
    assert_eq!(one.belief(), Belief::Lost, "{name}");
    assert!(is_not_held(&one.release().await), "{name}");
    assert!(!is_got_within(&mut *one, Duration::ZERO).await, "{name}");

    // After the release it is free, and no state is left.
    two.release().await.unwrap();
    assert_eq!(two.belief(), Belief::Lost, "{name}");
    expect_holders(0).await;
    assert!(is_got_within(&mut *three, Duration::ZERO).await, "{name}");
    three.release().await.unwrap();
    assert!(is_got_within(&mut *two, Duration::ZERO).await, "{name}");
    two.release().await.unwrap();
}
