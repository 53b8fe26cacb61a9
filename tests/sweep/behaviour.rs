//! What a sweep finds, and what it says of it.

use std::{sync::Arc, time::Duration};

use minikeeper::{Server, Sweep, SweepFault, SweepReport, SweepState};
use minikeeper_client::{Client, CreateMode, Error};
use minikeeper_test_kit::{link::Link, servers};

pub(crate) async fn connect(server: &Arc<Server>) -> Result<Client, Error> {
    let link = Link::to(server);
    loop {
        match servers::client_builder(&link, 1).connect().await {
            Err(error) if error.is_retryable() => {}
            other => return other,
        }
    }
}

/// Returns the points that failed, in order.
pub(crate) fn found(report: &SweepReport) -> Vec<String> {
    let mut found: Vec<_> = (report.failures.iter())
        .map(|failure| failure.text())
        .collect();
    found.sort();
    found
}

/// Creates a sequential znode, again after each error, and so sometimes two.
async fn join(client: &Client) -> String {
    loop {
        let created = client
            .create("/n-", b"", CreateMode::EphemeralSequential)
            .await;
        if let Ok(created) = created {
            return created.path.to_string();
        }
    }
}

async fn naive(server: Arc<Server>) {
    let client = connect(&server).await.unwrap();
    join(&client).await;
    let children = server.children("/").unwrap();
    let own = children.iter().filter(|name| name.starts_with("n-"));
    assert!(own.count() < 2, "znodes of one contender");
}

#[test]
fn lost_reply_to_a_create_that_is_sent_again_is_found() {
    let report = Sweep::new(naive).run();
    assert_eq!(found(&report), ["reply-lost:1:create2:1:/n-"]);
    assert_eq!((report.hung, report.not_reached, report.flaky), (0, 0, 0));
    let failure = &report.failures[0];
    assert!(
        failure.message.contains("znodes of one contender"),
        "{failure:?}"
    );
    assert!(failure.message.contains("behaviour.rs:"), "{failure:?}");
    assert!(
        failure.before.last().unwrap().contains("session opened"),
        "{failure:?}"
    );
    assert!(
        failure.after[0].contains("lose-reply create2 /n-"),
        "{failure:?}"
    );
    let text = report.to_string();
    assert!(
        text.contains("--only 'reply-lost:1:create2:1:/n-'"),
        "{text}"
    );
    // The same once more, and the points after it.
    let again = Sweep::new(naive)
        .only("reply-lost:1:create2:1:/n-")
        .unwrap()
        .run();
    assert_eq!((found(&again), again.tried), (found(&report), 1));
    assert!(
        Sweep::new(naive)
            .faults([SweepFault::RequestLost])
            .run()
            .is_clean()
    );
}

#[test]
fn test_that_never_ends_hangs() {
    let report = Sweep::new(async |server: Arc<Server>| {
        let client = connect(&server).await.unwrap();
        if client
            .create("/a", b"", CreateMode::Persistent)
            .await
            .is_err()
        {
            std::future::pending::<()>().await;
        }
    })
    .hang_after(Duration::from_secs(3_600))
    .run();
    assert!(report.hung > 0 && report.failed == 0, "{report}");
    assert!(
        report.failures[0].message.contains("within 3600 s"),
        "{report}"
    );
}

/// Paused time does not move while a task can go on, so that no limit of it is ever reached: the sweep did not end.
#[test]
fn test_that_goes_on_without_a_pause_hangs() {
    let report = Sweep::new(async |server: Arc<Server>| {
        let client = connect(&server).await.unwrap();
        let created = client.create("/a", b"", CreateMode::Persistent).await;
        if created.is_err() {
            servers::spawn(async {
                loop {
                    tokio::task::yield_now().await;
                }
            });
            std::future::pending::<()>().await;
        }
    })
    .faults([SweepFault::RequestLost])
    .stuck_after(Duration::from_millis(20))
    .run();
    assert_eq!((report.hung, report.failed), (1, 0), "{report}");
    let message = &report.failures[0].message;
    assert!(message.contains("paused time stands still"), "{message}");
}

#[test]
fn errors_and_panics_of_tasks_are_failures() {
    let report = Sweep::new(async |server: Arc<Server>| {
        let client = connect(&server).await?;
        let task = servers::spawn(async move {
            client
                .create("/a", b"", CreateMode::Persistent)
                .await
                .expect("created");
        });
        task.await.map_err(|error| error.to_string())?;
        Ok::<_, Box<dyn std::error::Error>>(())
    })
    .run();
    let found = found(&report);
    assert!(
        found.contains(&"request-lost:1:create2:1:/a".to_owned()),
        "{found:?}"
    );
    assert!(report.failures[0].message.contains("panic"), "{report}");
}

/// The first loss is expected, the second is not.
async fn retries_once(server: Arc<Server>) -> Result<(), Error> {
    let client = connect(&server).await?;
    match client.exists("/a").await {
        Err(error) if error.is_retryable() => client.exists("/a").await.map(drop),
        other => other.map(drop),
    }
}

#[test]
fn pairs_find_what_single_faults_do_not() {
    let only = [SweepFault::ReplyLost];
    assert!(Sweep::new(retries_once).faults(only).run().is_clean());
    let report = Sweep::new(retries_once).faults(only).pairs().run();
    assert_eq!(
        found(&report),
        ["reply-lost:1:exists:1:/a+reply-lost:1:exists:1:/a"],
        "{report}"
    );
    let again = Sweep::new(retries_once)
        .only(&found(&report)[0])
        .unwrap()
        .run();
    assert_eq!(found(&again), found(&report));
}

#[test]
fn late_event_is_found_by_a_test_that_relies_on_its_order() {
    let report = Sweep::new(async |server: Arc<Server>| {
        let (writer, reader) = (
            connect(&server).await.unwrap(),
            connect(&server).await.unwrap(),
        );
        // Numbers the clients.
        writer.create("/a", b"1", CreateMode::Persistent).await.ok();
        let Ok((_, watch)) = reader.get_data_and_watch("/a").await else {
            return;
        };
        if writer.set_data("/a", b"2", None).await.is_err() {
            return;
        }
        let Ok(read) = reader.get_data("/a").await else {
            return;
        };
        // The event of a change comes before a reply that shows it, which a late event does not.
        let is_new = read.as_bytes() == b"2";
        assert!(
            !is_new || watch.fired().is_some(),
            "no event, and the new data"
        );
    })
    .faults([SweepFault::EventLate])
    .run();
    assert_eq!(found(&report), ["event-late:2:event:1:/a"], "{report}");
}

/// What the journal has dropped is tried by no run: the sweep was clean.
#[test]
fn journal_that_is_too_small_makes_a_sweep_incomplete() {
    let report = Sweep::new(async |server: Arc<Server>| {
        // A client that tries again, so that no fault ends the test.
        let client = connect(&server).await.unwrap();
        for _ in 0..2_000 {
            let _ = client.children("/").await;
        }
    })
    .server(|| Server::builder().configure(|config| config.journal_bytes = Some(8 << 10)))
    .run();
    assert_eq!(report.state(), SweepState::Incomplete, "{report}");
    let reasons = report.reasons();
    assert!(
        reasons.len() == 1 && reasons[0].contains("--journal-bytes"),
        "{reasons:?}"
    );
}
