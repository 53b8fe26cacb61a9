//! A holder never counts as one once another contender may have the lock: while its client closes,
//! and on a read-only server, which keeps no session alive.

use std::time::Duration;

use minikeeper_client::{ConnectionState, CreateMode};
use minikeeper_recipes::{LeaderLatch, LeaderSelector, PersistentNode, SelectorOptions, Status};
use tokio::time::{sleep, timeout};

use crate::{
    every_recipe::{Kept, Recipe},
    kit::{PATH, SESSION_TIMEOUT, soon, start, until},
    sweeps::{cases, in_case, scene},
    wire::{Fault, Wire},
};

/// The largest number of messages while a client closes.
const CLOSING: usize = 6;

fn exclusive() -> impl Iterator<Item = Recipe> {
    let leads = |recipe: &Recipe| recipe.is_exclusive() || *recipe == Recipe::Latch;
    Recipe::ALL.iter().copied().filter(leads)
}

/// This also holds if one of the replies is lost, or is the last of its session.
#[tokio::test(start_paused = true)]
async fn closing_client_holds_nothing_once_another_contender_has_it() {
    let faults: [fn(usize) -> Fault; 3] = [Fault::Notify, Fault::LoseReply, Fault::ExpireAtReply];
    for case in exclusive().flat_map(cases).filter(|it| !it.is_contended) {
        for (fault, step) in faults
            .iter()
            .flat_map(|fault| (0..CLOSING).map(move |it| (fault, it)))
        {
            let closing = async {
                let scene = scene(&case).await;
                let kept = soon(scene.begin().await).await.unwrap();
                assert!(kept.is_held());
                let theirs = case.recipe.enter(&scene.other, &case.options);
                let theirs = async {
                    let theirs = soon(theirs).await.unwrap();
                    assert!(!kept.is_held(), "two have it");
                    theirs
                };
                let close = async {
                    // The other contender waits by now.
                    sleep(Duration::from_millis(200)).await;
                    assert!(kept.is_held());
                    scene.wire.arm([fault(step)]);
                    scene.client.close().await;
                    assert!(!kept.is_held());
                };
                let (theirs, ()) = tokio::join!(theirs, close);
                assert!(!kept.is_held() && theirs.is_held());
            };
            in_case(&case, fault(step), step, closing).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_held_on_a_read_only_server_after_the_session_timeout() {
    for case in exclusive().flat_map(cases).filter(|it| !it.is_contended) {
        let cut_off = async {
            let scene = scene(&case).await;
            let kept = soon(scene.begin().await).await.unwrap();
            let session = scene.client.session_id().unwrap();
            scene.wire.arm(None);
            scene.wire.read_only(true);
            scene.wire.cut();
            sleep(SESSION_TIMEOUT).await;
            assert!(scene.wire.requests() > 0, "it is connected");
            // The other servers end the session.
            scene.server.expire(session).unwrap();
            for _ in 0..50 {
                assert!(!kept.is_held());
                sleep(SESSION_TIMEOUT / 10).await;
            }
        };
        in_case(&case, "read-only", 0, cut_off).await;
    }
}

/// The session stays the same: it goes to a read-only server, and back in time.
#[tokio::test(start_paused = true)]
async fn holder_is_suspended_on_a_read_only_server_and_holds_again_on_the_next() {
    let all = Recipe::ALL.iter().copied().flat_map(cases);
    for case in all.filter(|it| !it.is_contended) {
        let there_and_back = async {
            let scene = scene(&case).await;
            let kept = soon(scene.begin().await).await.unwrap();
            if !kept.is_held() {
                return;
            }
            let client = &scene.client;
            let session = client.session_id();
            let safe_until = client.safe_until().unwrap();
            scene.wire.read_only(true);
            scene.wire.cut();
            let is_read_only = || matches!(client.state(), ConnectionState::ReadOnly { .. });
            until("it is connected", is_read_only).await;
            assert!(!kept.is_held());
            assert_eq!(client.safe_until(), Some(safe_until));
            if let Kept::Guard(guard) = &kept {
                assert_eq!(guard.status(), Status::Suspended { until: safe_until });
            }
            scene.wire.read_only(false);
            scene.wire.cut();
            until("it is held again", || kept.is_held()).await;
            assert_eq!(client.session_id(), session);
            assert!(client.safe_until().unwrap() > safe_until);
        };
        in_case(&case, "read-only", 0, there_and_back).await;
    }
}

/// A read-only server can create a session, but no other server knows it, so it holds nothing.
#[tokio::test(start_paused = true)]
async fn session_of_a_read_only_server_acquires_nothing() {
    for case in exclusive().flat_map(cases).filter(|it| !it.is_contended) {
        let from_the_beginning = async {
            let server = start().await;
            let wire = Wire::to(&server);
            wire.read_only(true);
            let client = wire.client(1).await;
            assert_eq!(client.safe_until(), None);
            let begun = case.recipe.enter(&client, &case.options);
            if let Ok(Ok(kept)) = timeout(SESSION_TIMEOUT / 4, begun).await {
                assert!(!kept.is_held(), "it is held");
            }
            wire.read_only(false);
            wire.cut();
            until("there is another session", || client.safe_until().is_some()).await;
            let kept = soon(case.recipe.enter(&client, &case.options))
                .await
                .unwrap();
            assert!(kept.is_held());
            assert_eq!(client.epoch().0, 2);
        };
        in_case(&case, "read-only", 0, from_the_beginning).await;
    }
}

#[tokio::test(start_paused = true)]
async fn selector_does_not_lead_on_a_read_only_server() {
    let server = start().await;
    let wire = Wire::to(&server);
    let client = wire.client(1).await;
    let options = SelectorOptions::default();
    let selector = LeaderSelector::start(client.clone(), PATH, "id", options, |_| {
        Box::pin(std::future::pending())
    });
    let selector = selector.unwrap();
    until("it leads", || selector.has_leadership()).await;
    wire.read_only(true);
    wire.cut();
    let is_read_only = || matches!(client.state(), ConnectionState::ReadOnly { .. });
    until("it is connected", is_read_only).await;
    for _ in 0..50 {
        assert!(!selector.has_leadership());
        sleep(SESSION_TIMEOUT / 20).await;
    }
}

/// Being at a read-only server passes: what runs in the background goes on afterwards.
#[tokio::test(start_paused = true)]
async fn background_recipes_go_on_after_a_read_only_server() {
    let server = start().await;
    let wire = Wire::to(&server);
    wire.read_only(true);
    let client = wire.client(1).await;
    let node = "/locks/node";
    let kept = PersistentNode::start(client.clone(), node, b"", CreateMode::Ephemeral).unwrap();
    let latch = LeaderLatch::start(client.clone(), PATH, "id").unwrap();
    sleep(3 * SESSION_TIMEOUT).await;
    assert!(kept.path().is_none() && !latch.has_leadership());
    wire.read_only(false);
    wire.cut();
    until("it exists", || kept.path().is_some()).await;
    until("it leads", || latch.has_leadership()).await;

    // The znode is deleted while the client is at a read-only server again.
    wire.read_only(true);
    wire.cut();
    let is_read_only = || matches!(client.state(), ConnectionState::ReadOnly { .. });
    until("it is connected", is_read_only).await;
    server.delete(node, None).unwrap();
    sleep(SESSION_TIMEOUT / 4).await;
    wire.read_only(false);
    wire.cut();
    until("it is back", || server.get(node).is_some()).await;
    until("it leads again", || latch.has_leadership()).await;
}
