//! What a sweep of orders finds, and what it says of it.

use std::{sync::Arc, time::Duration};

use minikeeper::{ErrorCode, Server, Sweep, SweepFault, SweepOptions, SweepState, tree};
use minikeeper_client::{Client, CreateMode, Error};
use minikeeper_test_kit::{link::Link, servers};
use tokio::time::timeout;

async fn connect(server: &Arc<Server>) -> Client {
    let link = Link::to(server);
    servers::client_builder(&link, 1)
        .connect()
        .await
        .expect("nothing fails")
}

/// Lets two clients do the same.
async fn twice<F: Future<Output = ()> + Send + 'static>(
    server: Arc<Server>,
    client: fn(Client) -> F,
) {
    let one = tokio::spawn(client(connect(&server).await));
    let other = tokio::spawn(client(connect(&server).await));
    for task in [one, other] {
        if let Err(error) = task.await {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

async fn check_then_create(client: Client) {
    if client.exists("/a").await.unwrap().is_none() {
        let created = client.create("/a", b"", CreateMode::Persistent).await;
        created.expect("nobody else creates it");
    }
}

async fn create_or_find(client: Client) {
    match client.create("/a", b"", CreateMode::Persistent).await {
        Ok(_)
        | Err(Error::Refused {
            code: ErrorCode::NodeExists,
            ..
        }) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn check_then_create_is_found() {
    let report = Sweep::new(|server| twice(server, check_then_create))
        .orders()
        .run();
    assert_eq!(report.state(), SweepState::Failed);
    let text = report.to_string();
    let columns = "client 1                                     client 2";
    for part in [
        "nobody else creates it",
        "in this order, with 1 unforced change",
        "found in run ",
        "order:",
        columns,
        "The test passes if request",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let again = Sweep::new(|server| twice(server, check_then_create));
    let again = again.only(&report.failures[0].text()).unwrap().run();
    assert_eq!((again.failed, again.passed), (1, 0), "{again}");
    let passes = Sweep::new(|server| twice(server, check_then_create));
    let passes = passes.only("order:1").unwrap().run();
    passes.assert_clean();
    assert!(
        passes.summary().contains(": 1 order of 2 clients tried, "),
        "{passes}"
    );
}

async fn write_three_times(client: Client) -> (Client, Vec<i32>) {
    let mut versions = Vec::new();
    for _ in 0..3 {
        versions.push(client.set_data("/a", b"", None).await.unwrap().version);
    }
    (client, versions)
}

/// Only an order with four changes fails: random orders with two changes had never shown it.
#[test]
fn few_orders_are_all_tried_however_many_changes_they_have() {
    let alternate = async |server: Arc<Server>| {
        let one = tokio::spawn(write_three_times(connect(&server).await));
        let other = tokio::spawn(write_three_times(connect(&server).await));
        let (one, other) = (one.await.unwrap(), other.await.unwrap());
        let is_alternate =
            |versions: &[i32]| versions.windows(2).all(|pair| pair[1] - pair[0] == 2);
        assert!(
            !is_alternate(&one.1) || !is_alternate(&other.1),
            "they take turns"
        );
    };
    let report = Sweep::new(alternate)
        .orders()
        .server(|| servers::server().seed(tree! { "/a" => "" }))
        .run();
    assert_eq!(report.state(), SweepState::Failed, "{report}");
    assert!(report.runs < 100, "{report}");
    assert!(
        report.failures[0].sentence().contains("4 unforced changes"),
        "{report}"
    );
}

#[test]
fn create_that_may_find_it_is_clean() {
    let report = Sweep::new(|server| twice(server, create_or_find))
        .orders()
        .run();
    report.assert_clean();
    assert!(report.orders.as_ref().unwrap().is_all, "{report}");
    assert!(report.summary().contains(", all orders: "), "{report}");
}

/// Waits for a znode for 5 s. What it does then is wrong: the znode may be there, and the event on its way.
async fn wait_for_a_while(client: Client) {
    let (found, mut event) = client.exists_and_watch("/a").await.unwrap();
    if found.is_none() && timeout(Duration::from_secs(5), &mut event).await.is_err() {
        let found = client.exists("/a").await.unwrap();
        assert!(found.is_none(), "nobody has created it");
    }
}

async fn one_waits(server: Arc<Server>) {
    let waits = tokio::spawn(wait_for_a_while(connect(&server).await));
    let other = connect(&server).await;
    create_or_find(other).await;
    if let Err(error) = waits.await {
        std::panic::resume_unwind(error.into_panic());
    }
}

#[test]
fn late_event_is_part_of_an_order() {
    Sweep::new(one_waits)
        .orders()
        .faults([])
        .run()
        .assert_clean();
    let report = Sweep::new(one_waits).orders().run();
    assert_eq!(report.state(), SweepState::Failed, "{report}");
    let failure = &report.failures[0];
    let (sentence, order) = (failure.sentence(), failure.text());
    assert!(sentence.contains(" causes is late"), "{sentence}");
    assert!(order.contains("+event-late:"), "{order}");
    assert!(report.to_string().contains("held by a fault"), "{report}");
    let again = (0..100).fold(Sweep::new(one_waits), |again, _| {
        again.only(&order).unwrap()
    });
    assert_eq!(again.run().failed, 100, "{order}");
}

/// A client that polls keeps time from moving, and the event is on its way to the one that it polls for.
#[test]
fn late_event_comes_though_another_client_polls() {
    let program = async |server: Arc<Server>| {
        let (client, other) = (connect(&server).await, connect(&server).await);
        let answer = tokio::spawn(async move {
            let (found, event) = client.exists_and_watch("/a").await.unwrap();
            if found.is_none() {
                event.await;
            }
            client
                .create("/b", b"", CreateMode::Persistent)
                .await
                .unwrap();
            client
        });
        create_or_find(other.clone()).await;
        while other.exists("/b").await.unwrap().is_none() {}
        answer.await.unwrap();
    };
    let report = Sweep::new(program).orders().runs(50).run();
    assert_eq!((report.failed, report.hung), (0, 0), "{report}");
    assert!(report.passed > 10, "{report}");
}

/// Creates the lock, unless another client has. What it does after a lost connection is wrong: the znode may be
/// the other's.
async fn lock_unless_locked(client: Client) -> (Client, bool) {
    let created = client.create("/lock", b"", CreateMode::Ephemeral).await;
    let is_locked = match created {
        Ok(_) => true,
        Err(Error::Refused { .. }) => false,
        Err(_) => loop {
            if let Ok(found) = client.exists("/lock").await {
                break found.is_some();
            }
        },
    };
    (client, is_locked)
}

async fn one_locks(server: Arc<Server>) {
    let one = tokio::spawn(lock_unless_locked(connect(&server).await));
    let other = tokio::spawn(lock_unless_locked(connect(&server).await));
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    assert!(!one.1 || !other.1, "both have the lock");
}

#[test]
fn fault_acts_in_an_order() {
    Sweep::new(one_locks).orders().run().assert_clean();
    let report = Sweep::new(one_locks).orders().pairs().run();
    assert_eq!(report.state(), SweepState::Failed, "{report}");
    let failure = &report.failures[0];
    let (sentence, order) = (failure.sentence(), failure.text());
    assert!(sentence.contains("request-lost at request 2"), "{sentence}");
    let text = report.to_string();
    // The lost request and what follows have their numbers.
    for line in [" 2  ", " 3  "] {
        assert!(
            text.lines()
                .any(|it| it.trim_start().starts_with(line.trim_start())),
            "{text}"
        );
    }
    let again = (0..100).fold(Sweep::new(one_locks), |again, _| {
        again.only(&order).unwrap()
    });
    assert_eq!(again.run().failed, 100, "{order}");
}

/// Every fault acts in some order, and a program that retries is none the worse.
#[test]
fn program_that_retries_is_clean_with_every_fault() {
    async fn set(client: Client) {
        for _ in 0..2 {
            while client.set_data("/a", b"", None).await.is_err() {}
        }
    }
    let report = Sweep::new(|server| twice(server, set))
        .orders()
        .pairs()
        .server(|| servers::server().seed(tree! { "/a" => "" }))
        .run();
    assert!(report.tried > 50, "{report}");
    assert_eq!(report.failed + report.hung, 0, "{report}");
}

/// A session that opens after a fault goes on with what another one has begun, so that it is like none of those
/// that begin.
#[test]
fn session_that_opens_later_is_not_alike() {
    let orders = |alike| {
        let mut options = SweepOptions::default();
        options.orders = true;
        options.alike = alike;
        options.depth = 2;
        options.faults = vec![SweepFault::SessionExpired];
        options.changes_max = None;
        let report = Sweep::new(one_locks).options(options).run();
        assert!(!report.failures.is_empty(), "{report}");
        report.orders.unwrap().different
    };
    let (all, alike) = (orders(false), orders(true));
    assert_eq!(
        all,
        2 * alike,
        "two contenders, each class with its mirror image"
    );
}

/// A fault that an order would not try, without a word.
#[test]
#[should_panic(expected = "fault \"reply-lost\": in an order it needs a depth of 2")]
fn fault_in_an_order_needs_a_depth() {
    let sweep = Sweep::new(one_locks).faults([SweepFault::ReplyLost]);
    let _ = sweep.orders().run();
}

#[test]
fn one_client_has_orders_with_faults() {
    let one = async |server: Arc<Server>| create_or_find(connect(&server).await).await;
    let report = Sweep::new(one)
        .orders()
        .pairs()
        .faults([SweepFault::ConnectionCut])
        .run();
    report.assert_clean();
    assert_eq!(report.tried, 2, "{report}");
}

/// Orders of which a part does not happen: no such watcher, or a test that ends before.
#[test]
fn order_whose_end_does_not_come_is_not_followed() {
    for order in [
        "order:1+event-late:2",
        "order:1+event-late:40",
        "order:1x9.2+reply-lost",
        "order:1x2.2x20",
    ] {
        let sweep = Sweep::new(|server| twice(server, create_or_find));
        let report = sweep.only(order).unwrap().run();
        assert_eq!(report.state(), SweepState::Incomplete, "{order}: {report}");
        let not_followed = report.orders.as_ref().unwrap().not_followed;
        assert_eq!(not_followed, 1, "{order}: {report}");
    }
}

/// With a quota, each request depends on all others, and may cause events for all.
#[test]
fn late_event_is_tried_though_there_is_a_quota() {
    let quota = || {
        let limits = "count=-1,bytes=-1,soft=-1";
        servers::server().seed(tree! {
            "/quoted" => "",
            "/zookeeper/quota/quoted/zookeeper_limits" => limits,
            "/zookeeper/quota/quoted/zookeeper_stats" => "count=1,bytes=0",
        })
    };
    let report = Sweep::new(one_waits).orders().server(quota).run();
    assert_eq!(report.state(), SweepState::Failed, "{report}");
}

/// The text of an order that names a client which never comes.
#[test]
fn order_that_cannot_be_followed_is_incomplete() {
    let sweep = Sweep::new(|server| twice(server, create_or_find));
    let report = sweep.only("order:1.3").unwrap().run();
    assert_eq!(report.state(), SweepState::Incomplete, "{report}");
    let reasons = report.reasons().join("; ");
    assert!(
        reasons.contains("1 order could not be followed"),
        "{reasons}"
    );
    assert!(
        Sweep::new(|server| twice(server, create_or_find))
            .only("order:0")
            .is_err()
    );
}

#[test]
fn test_with_one_client_has_one_order() {
    let alone = async |server: Arc<Server>| create_or_find(connect(&server).await).await;
    let report = Sweep::new(alone).orders().run();
    assert_eq!(report.state(), SweepState::Incomplete, "{report}");
    assert!(
        report.summary().contains("the test has one client"),
        "{report}"
    );
}

/// The first sweeps of recipes tried one order each, and were clean.
#[test]
fn clients_that_never_ask_at_the_same_time_have_one_order() {
    let in_turn = async |server: Arc<Server>| {
        let one = connect(&server).await;
        one.exists("/a").await.unwrap();
        // Else it would close its session while the other one asks.
        let other = connect(&server).await;
        other.exists("/a").await.unwrap();
        drop((one, other));
    };
    let report = Sweep::new(in_turn).orders().run();
    assert_eq!(report.state(), SweepState::Incomplete, "{report}");
    let summary = report.summary();
    assert!(
        summary.contains("no two clients had a request at the same time"),
        "{summary}"
    );
}

#[test]
fn client_that_asks_for_ever_hangs() {
    let endless = async |server: Arc<Server>| {
        let client = connect(&server).await;
        while client.exists("/never").await.unwrap().is_none() {}
    };
    let report = Sweep::new(endless).orders().runs(1).run();
    assert_eq!(
        (report.state(), report.hung),
        (SweepState::Failed, 1),
        "{report}"
    );
    let message = &report.failures[0].message;
    assert!(message.contains("more than 10000 requests"), "{message}");
}

/// One waits for a change that came before it watched.
#[test]
fn hang_says_which_change_was_missed() {
    let test = async |server: Arc<Server>| {
        let (reader, writer) = (connect(&server).await, connect(&server).await);
        let waiting = tokio::spawn(async move {
            if reader.get_data("/a").await.unwrap().as_bytes() != b"done" {
                reader.get_data_and_watch("/a").await.unwrap().1.await;
            }
            reader
        });
        writer.set_data("/a", b"done", None).await.unwrap();
        waiting.await.unwrap();
    };
    let report = Sweep::new(test)
        .orders()
        .server(|| servers::server().seed(tree! { "/a" => "" }))
        .run();
    assert_eq!(
        (report.state(), report.hung),
        (SweepState::Failed, 1),
        "{report}"
    );
    let text = report.to_string();
    for part in [
        "its last request was getData /a; it watches /a (data)",
        "client 1 may have missed a change: it read /a with request 1, client 2 changed that with request 2, and client 1 \
         set a watch only with request 3",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
