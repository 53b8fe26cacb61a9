//! The group member. The test that Curator's `TestGroupMember` also has keeps its name.

use std::time::Duration;

use minikeeper_client::CreateMode;
use minikeeper_recipes::{CacheError, GroupMember};
use tokio::time::sleep;

use crate::{
    kit::{client, create, soon, start, until},
    link::Mode,
};

const GROUP: &str = "/groups/billing";

fn ids(member: &GroupMember) -> Vec<String> {
    member.members().into_keys().collect()
}

#[tokio::test]
async fn payloads_set_by_two_threads_end_as_one() {
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    let member = GroupMember::start(client, GROUP, "1", b"").unwrap();
    soon(member.joined()).await.unwrap();
    for round in 0..20 {
        std::thread::scope(|threads| {
            for thread in 0..2 {
                let member = &member;
                threads.spawn(move || {
                    for change in 0..500 {
                        member.set_payload(format!("{round} {thread} {change}").as_bytes());
                    }
                });
            }
        });
        let path = format!("{GROUP}/1");
        until("the last payload is there", || {
            let (data, _) = server.get(&path).unwrap();
            data.unwrap_or_default()[..] == member.members()["1"][..]
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn test_basic() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let (two, _) = client(&server, 2).await;
    let first = GroupMember::start(one, GROUP, "1", b"one").unwrap();
    assert_eq!(first.id(), "1");
    // This member is among them from the start.
    assert_eq!(ids(&first), ["1"]);
    soon(first.joined()).await.unwrap();
    let second = GroupMember::start(two, GROUP, "2", b"two").unwrap();
    soon(second.joined()).await.unwrap();
    until("both see both", || {
        ids(&first).len() == 2 && ids(&second).len() == 2
    })
    .await;
    assert_eq!(&*first.members()["2"], b"two");
    second.set_payload(b"changed");
    assert_eq!(&*second.members()["2"], b"changed");
    until("the payload is seen", || {
        &*first.members()["2"] == b"changed"
    })
    .await;
    soon(second.close()).await.unwrap();
    until("the second has left", || ids(&first) == ["1"]).await;
    drop(first);
    until("nothing is left", || server.get("/groups").is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn members_survive_lost_sessions_and_see_those_that_do_not() {
    let server = start().await;
    let (one, link) = client(&server, 1).await;
    let (two, theirs) = client(&server, 2).await;
    let first = GroupMember::start(one.clone(), GROUP, "1", b"").unwrap();
    let second = GroupMember::start(two, GROUP, "2", b"").unwrap();
    soon(second.joined()).await.unwrap();
    for round in 0..6 {
        match round % 2 {
            0 => link.cut(),
            _ => drop(server.expire(one.session_id().unwrap())),
        }
        until("it has joined again", || {
            ids(&second).len() == 2 && ids(&first).len() == 2
        })
        .await;
        sleep(Duration::from_millis(50)).await;
    }
    let mut changes = first.changes();
    theirs.set(Mode::SwallowRequests);
    until("the silent member is gone", || ids(&first) == ["1"]).await;
    while soon(changes.next()).await.unwrap().as_deref() != Some("2") {}
    theirs.set(Mode::Pass);
    theirs.cut();
    until("it is back", || ids(&first).len() == 2).await;
    while soon(changes.next()).await.unwrap().as_deref() != Some("2") {}
    soon(first.close()).await.unwrap();
    while soon(changes.next()).await.is_ok() {}
    let end = soon(changes.next()).await;
    assert!(matches!(end, Err(CacheError::Closed { .. })), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn ids_are_names_and_the_second_of_an_id_waits() {
    let server = start().await;
    let (one, _) = client(&server, 1).await;
    let (two, _) = client(&server, 2).await;
    for wrong in ["", ".", "a/b", "/a", "a/", "a\0"] {
        assert!(
            GroupMember::start(one.clone(), GROUP, wrong, b"").is_err(),
            "{wrong:?}"
        );
    }
    let first = GroupMember::start(one, GROUP, "1", b"one").unwrap();
    soon(first.joined()).await.unwrap();
    let same = GroupMember::start(two.clone(), GROUP, "1", b"two").unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(&*first.members()["1"], b"one");
    drop(first);
    until("the other has joined", || {
        let path = format!("{GROUP}/1");
        server
            .get(&path)
            .is_some_and(|(data, _)| data.is_some_and(|data| data == b"two"))
    })
    .await;
    drop(same);
    // What other programs put there is seen as it is.
    until("it is empty", || server.get(GROUP).is_none()).await;
    two.create("/groups", b"", CreateMode::Persistent)
        .await
        .ok();
    create(&two, GROUP).await;
    two.create(&format!("{GROUP}/other"), b"x", CreateMode::Persistent)
        .await
        .unwrap();
    let member = GroupMember::start(two, GROUP, "1", b"").unwrap();
    soon(member.joined()).await.unwrap();
    assert_eq!(ids(&member), ["1", "other"]);
}
