//! The connection is cut after each single byte, in either direction: every watch fires, every call
//! ends, and every result agrees with the server.

use std::collections::BTreeSet;

use minikeeper_client::{Client, CreateMode, ErrorClass, Multi};
use tokio::time::timeout;

use crate::{
    kit::{PATIENCE, scene},
    link::Direction,
};

const LEFT_ALONE: &str = "/kept";

/// The paths that the transaction changes, all of them watched.
const DELETED: [&str; 3] = ["/gone1", "/gone2", "/gone3"];
const CREATED: &str = "/new";
const CHANGED: &str = "/changed";

fn transaction() -> Multi {
    DELETED
        .iter()
        .fold(Multi::new(), |multi, path| multi.delete(*path, None))
        .create(CREATED, b"", CreateMode::Persistent)
        .set_data(CHANGED, b"2", None)
}

/// Registers seven watches on znodes that a transaction of another client changes, and cuts the
/// connection after `at` bytes. Returns `false` if it carried fewer.
async fn watch_with_cut(direction: Direction, at: usize) -> bool {
    let scene = scene().await;
    let (client, other) = (&scene.client, scene.other().await);
    for path in DELETED.into_iter().chain([CHANGED, LEFT_ALONE]) {
        other
            .create(path, b"1", CreateMode::Persistent)
            .await
            .unwrap();
    }
    let mut watches = Vec::new();
    for path in DELETED {
        watches.push(client.get_data_and_watch(path).await.unwrap().1);
    }
    watches.push(client.children_and_watch(DELETED[0]).await.unwrap().1);
    watches.push(client.children_and_watch("/").await.unwrap().1);
    watches.push(client.exists_and_watch(CREATED).await.unwrap().1);
    watches.push(client.get_data_and_watch(CHANGED).await.unwrap().1);
    let (_, kept) = client.get_data_and_watch(LEFT_ALONE).await.unwrap();

    scene.link.cut_behind(direction, at);
    let theirs = tokio::spawn(async move { other.multi(transaction()).await });
    let ours = requests(client);
    let all = async {
        for watch in watches {
            watch.await;
        }
        theirs.await.unwrap().unwrap();
        ours.await;
        // The link is cut once, or has carried fewer bytes.
        client.sync("/").await
    };
    let result = timeout(PATIENCE, all).await;
    let result = result.unwrap_or_else(|_| panic!("{direction:?}, {at} bytes: a watch is silent"));
    if let Err(error) = result {
        assert_eq!(error.class(), ErrorClass::Again, "{error}");
    }
    assert_eq!(kept.fired(), None);
    !scene.link.is_cut_pending()
}

/// Makes calls whose outcomes must agree with the server afterwards.
async fn requests(client: &Client) {
    let created = client.create("/mine", b"", CreateMode::Persistent).await;
    let set = client.set_data(LEFT_ALONE, b"1", Some(7)).await;
    let listed = client.children("/").await;
    if let Ok(listed) = listed {
        let names: BTreeSet<_> = listed.names().collect();
        assert!(created.is_err() || names.contains("mine"));
    }
    assert!(set.is_err(), "the version does not match");
    if let Err(error) = created {
        assert_eq!(error.class(), ErrorClass::Again, "{error}");
        let is_there = loop {
            match client.exists("/mine").await {
                Ok(stat) => break stat.is_some(),
                Err(error) => assert_eq!(error.class(), ErrorClass::Again, "{error}"),
            }
        };
        assert!(error.is_outcome_unknown() || !is_there, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_watch_fires_after_a_cut_at_any_byte() {
    for direction in [Direction::Requests, Direction::Replies] {
        let mut at = 0;
        while watch_with_cut(direction, at).await {
            at += 1;
            assert!(at < 10_000, "too many bytes");
        }
        assert!(at > 100, "{at} bytes");
    }
}
