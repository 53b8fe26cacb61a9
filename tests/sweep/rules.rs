//! What a test says of a sweep: failures that it expects, points that it leaves out, goals; and what a sweep compares.

use std::sync::Arc;

use minikeeper::{Server, Sweep, SweepFault, SweepState};
use minikeeper_client::CreateMode;
use tokio::time::{Duration, sleep};

use crate::behaviour::{connect, found};

/// Creates a znode, and gives up at the first error.
async fn create_once(server: Arc<Server>) {
    let client = connect(&server).await.unwrap();
    let created = client.create("/a", b"", CreateMode::Persistent).await;
    assert!(created.is_ok(), "no luck");
}

#[test]
fn expected_failure_is_counted_apart_and_an_unexpected_one_is_found() {
    let only = [SweepFault::RequestLost, SweepFault::ReplyLost];
    let sweep = || Sweep::new(create_once).faults(only);
    assert_eq!(sweep().run().failed, 2);
    let rule = "request-lost:*:create2 raises no luck because nobody needs it";
    let report = sweep().allow(rule).unwrap().run();
    assert_eq!((report.allowed, report.failed), (1, 1), "{report}");
    assert_eq!(found(&report), ["reply-lost:1:create2:1:/a"]);
    let text = report.to_string();
    assert!(
        text.contains(" passed, 1 allowed to fail, 1 failed"),
        "{text}"
    );
    assert!(
        text.contains(&format!("Allowed: {rule}: 1 point\n")),
        "{text}"
    );
    let other = "reply-lost raises no luck because nobody needs it";
    let both = sweep().allow(rule).unwrap().allow(other).unwrap().run();
    both.assert_clean();
    // Another failure than the one that is expected.
    let wrong = sweep()
        .allow("request-lost raises bad luck because I said so")
        .unwrap()
        .run();
    assert_eq!((wrong.allowed, wrong.failed), (0, 2));
    assert!(
        wrong
            .to_string()
            .contains("I said so: not needed, remove it"),
        "{wrong}"
    );
}

#[test]
fn point_that_a_rule_leaves_out_is_not_tried() {
    let sweep = Sweep::new(create_once).faults([SweepFault::RequestLost, SweepFault::ReplyLost]);
    let rule = "reply-lost:1:create2:1:/a because the caller looks itself";
    let report = sweep.leave_out(rule).unwrap().run();
    assert_eq!(found(&report), ["request-lost:1:create2:1:/a"]);
    let text = report.to_string();
    assert!(text.contains("; 1 point left out by rules"), "{text}");
    assert!(
        text.contains(&format!("Left out: {rule}: 1 point\n")),
        "{text}"
    );
    let error = Sweep::new(create_once)
        .leave_out("reply-lost")
        .err()
        .unwrap();
    assert!(error.to_string().contains("no reason"), "{error}");
}

#[test]
fn sweep_ends_with_the_first_failure() {
    let all = Sweep::new(create_once).run();
    let first = Sweep::new(create_once).first().run();
    assert!(
        all.failures.len() > 1 && first.failures.len() == 1,
        "{first}"
    );
    // Its failure is confirmed.
    assert!(first.runs < all.runs && !first.failures[0].is_flaky);
    assert_eq!(first.state(), SweepState::Failed);
}

/// The test looks only at what it was told.
async fn leave_something(server: Arc<Server>) {
    let client = connect(&server).await.unwrap();
    while client
        .create("/n-", b"", CreateMode::PersistentSequential)
        .await
        .is_err()
    {
        sleep(Duration::from_millis(10)).await;
    }
    client.close().await;
}

#[test]
fn end_is_compared_with_that_without_faults() {
    Sweep::new(leave_something).run().assert_clean();
    let report = Sweep::new(leave_something).compare().run();
    let found = found(&report);
    assert!(
        found.contains(&"reply-lost:1:create2:1:/n-".to_owned()),
        "{report}"
    );
    assert!(
        !found.contains(&"request-lost:1:create2:1:/n-".to_owned()),
        "{report}"
    );
    let message = &report.failures[0].message;
    assert!(
        message.contains("the znode /n-* is there 2 times, and once without faults"),
        "{message}"
    );
    assert_eq!(report.groups().len(), 1, "{report}");
}

#[test]
fn goal_that_no_run_reaches_makes_a_sweep_incomplete() {
    let sweep = |is_reached: bool| {
        let test = move |server: Arc<Server>| async move {
            let client = connect(&server).await.unwrap();
            let created = client.create("/a", b"", CreateMode::Persistent).await;
            // Only some fault loses it.
            server.sometimes("the create was lost", is_reached && created.is_err());
        };
        Sweep::new(test).run()
    };
    sweep(true).assert_clean();
    let report = sweep(false);
    assert_eq!(
        report.reasons(),
        ["no run has reached the goal \"the create was lost\""]
    );
    assert_eq!(report.state(), SweepState::Incomplete);
}

#[test]
fn test_can_ask_which_fault_is_tried() {
    let test = |server: Arc<Server>| async move {
        let faults = server.sweep_faults();
        let client = connect(&server).await.unwrap();
        let created = client.create("/a", b"", CreateMode::Persistent).await;
        assert!(
            created.is_ok() || !faults.is_empty(),
            "a failure without a fault"
        );
        assert!(faults.len() < 2);
        server.sometimes("a lost reply", faults == [SweepFault::ReplyLost]);
    };
    Sweep::new(test).run().assert_clean();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = Server::builder().start().await.unwrap();
        assert!(server.sweep_faults().is_empty());
        server.sometimes("nothing", false);
    });
}

#[test]
fn most_different_points_come_first_and_the_report_says_what_is_left() {
    let test = |server: Arc<Server>| async move {
        let client = connect(&server).await.unwrap();
        for number in 0..10 {
            let _ = client.exists(&format!("/a/{number}")).await;
        }
        let _ = client.create("/b", b"", CreateMode::Persistent).await;
    };
    let all = Sweep::new(test).run();
    let report = Sweep::new(test).runs(15).run();
    assert!(report.left > 0);
    let coverage = report.coverage();
    let of = |by: &str, name: &str| {
        let found = coverage.iter().find(|it| it.by == by && it.name == name);
        found.map_or((0, 0), |it| (it.tried, it.known))
    };
    // One of eleven requests is a create.
    assert!(of("operation", "create2").0 >= 3, "{coverage:?}");
    let faults = coverage.iter().filter(|it| it.by == "fault");
    assert!(faults.clone().all(|it| it.tried > 0), "{coverage:?}");
    assert_eq!(faults.map(|it| it.known).sum::<u64>(), all.points);
    assert!(
        report.to_string().contains("operation exists: "),
        "{report}"
    );
    assert!(all.coverage().iter().all(|it| it.tried == it.known));
}

/// Holds a lock as long as its session lives, as it believes.
async fn hold(server: &Arc<Server>, token: Option<u64>) {
    let client = connect(server).await.unwrap();
    while client
        .create("/lock", b"", CreateMode::Ephemeral)
        .await
        .is_err()
    {
        sleep(Duration::from_millis(10)).await;
    }
    let entry = server.enter("printer", None, token).unwrap();
    let _ = client.exists("/").await;
    sleep(Duration::from_millis(100)).await;
    // Whether it is accepted is not looked at.
    let _ = entry.write();
    drop(entry);
    let _ = client.delete("/lock", None).await;
}

#[test]
fn run_in_which_a_resource_is_not_safe_fails_though_the_test_passes() {
    let sweep = |tokens: [Option<u64>; 2]| {
        let test = move |server: Arc<Server>| async move {
            tokio::join!(hold(&server, tokens[0]), hold(&server, tokens[1]));
        };
        Sweep::new(test).faults([SweepFault::SessionExpired]).run()
    };
    let report = sweep([None; 2]);
    assert!(
        found(&report).contains(&"session-expired:1:create2:1:/lock".to_owned()),
        "{report}"
    );
    let text = report.to_string();
    assert!(text.contains("resource \"printer\" is unsafe: "), "{text}");
    // Nobody checks these tokens but the resource.
    sweep([Some(1), Some(2)]).assert_clean();
}

#[test]
fn order_in_which_a_resource_is_not_safe_fails() {
    let test = |server: Arc<Server>| async move {
        let inside = async || {
            let client = connect(&server).await.unwrap();
            let entry = server.enter("printer", None, None).unwrap();
            client.exists("/").await.unwrap();
            drop(entry);
        };
        tokio::join!(inside(), inside());
    };
    let report = Sweep::new(test).orders().run();
    assert_eq!(report.state(), SweepState::Failed, "{report}");
    let text = report.to_string();
    assert!(text.contains("resource \"printer\" is unsafe: "), "{text}");
}
