//! The leader latch. Tests that Curator's `TestLeaderLatch` also has keep their names.

use std::{sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::Client;
use minikeeper_recipes::{
    CloseMode, ErrorPolicy, FencingToken, LatchError, LatchOptions, LeaderLatch, Leadership,
    LockOptions, naming,
};
use tokio::time::{sleep, timeout};

use crate::{
    kit::{PATH, both_ways, client, queue, soon, start, until},
    link::{Link, Mode},
};

pub(crate) struct Contender {
    pub(crate) client: Client,
    pub(crate) link: Link,
    pub(crate) latch: LeaderLatch,
}

impl Contender {
    pub(crate) async fn own_name(&self) -> String {
        until("it has a znode", || self.latch.own_path().is_some()).await;
        naming::name_of(&self.latch.own_path().unwrap()).to_owned()
    }

    pub(crate) fn expire(&self, server: &Server) {
        if let Some(session) = self.client.session_id() {
            server.expire(session).unwrap();
        }
    }
}

pub(crate) async fn contender(server: &Arc<Server>, seed: u64) -> Contender {
    contender_with(server, seed, LatchOptions::default()).await
}

pub(crate) async fn contender_with(
    server: &Arc<Server>,
    seed: u64,
    options: LatchOptions,
) -> Contender {
    let (client, link) = client(server, seed).await;
    let id = format!("id {seed}");
    let latch = LeaderLatch::start_with(client.clone(), PATH, &id, options).unwrap();
    Contender {
        client,
        link,
        latch,
    }
}

/// Starts contenders one after the other; the first one leads.
pub(crate) async fn contenders(
    server: &Arc<Server>,
    count: u64,
    options: &LatchOptions,
) -> Vec<Contender> {
    let mut all = Vec::new();
    for seed in 1..=count {
        let contender = contender_with(server, seed, options.clone()).await;
        contender.own_name().await;
        all.push(contender);
    }
    if let Some(first) = all.first() {
        soon(first.latch.wait()).await.unwrap();
    }
    all
}

pub(crate) fn options(lock: LockOptions) -> LatchOptions {
    let mut options = LatchOptions::default();
    options.lock = lock;
    options
}

pub(crate) async fn until_clean(server: &Server, contender: &Contender) {
    until("nothing is pending", || {
        contender.client.clean_ups_pending() == 0
    })
    .await;
    until("no watch is left", || !server.dump().contains("watch")).await;
}

#[tokio::test(start_paused = true)]
async fn test_basic() {
    for lock in both_ways() {
        let server = start().await;
        let all = contenders(&server, 10, &options(lock)).await;
        let mut last = FencingToken { czxid: 0, pass: 0 };
        for at in 0..all.len() {
            let token = soon(all[at].latch.wait()).await.unwrap();
            assert!(token > last);
            last = token;
            let leaders = all.iter().filter(|other| other.latch.has_leadership());
            assert_eq!(leaders.count(), 1);
            all[at].latch.close().await.unwrap();
            assert!(!all[at].latch.has_leadership());
            assert_eq!(queue(&server).len(), all.len() - at - 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn test_correct_watching() {
    // Contenders behind the leader leave, one by closing, one by the end of its session: the leader
    // stays.
    for lock in both_ways() {
        let server = start().await;
        let mut all = contenders(&server, 5, &options(lock)).await;
        all.remove(2).latch.close().await.unwrap();
        all[1].expire(&server);
        sleep(Duration::from_secs(10)).await;
        assert!(all[0].latch.has_leadership());
        assert!(all[1..].iter().all(|other| !other.latch.has_leadership()));
        drop(all.remove(0));
        // The contender that lost its session is now last.
        for at in [1, 2, 0] {
            soon(all[at].latch.wait()).await.unwrap();
            all[at].latch.close().await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn test_waiting() {
    let server = start().await;
    let all = contenders(&server, 2, &LatchOptions::default()).await;
    let short = Duration::from_secs(5);
    assert!(timeout(short, all[1].latch.wait()).await.is_err());
    assert_eq!(all[1].latch.leadership(), Leadership::Follower);
    let token = all[0].latch.wait().await.unwrap();
    assert_eq!(all[0].latch.leadership(), Leadership::Leader { token });
    let (next, ()) = tokio::join!(soon(all[1].latch.wait()), async {
        all[0].latch.close().await.unwrap();
    });
    assert!(next.unwrap() > token);
}

#[tokio::test(start_paused = true)]
async fn test_closing() {
    let server = start().await;
    let all = contenders(&server, 3, &LatchOptions::default()).await;
    // A follower closes, then the leader; closing again changes nothing.
    for at in [1, 0] {
        let path = all[at].latch.own_path().unwrap();
        all[at].latch.close().await.unwrap();
        assert!(
            server.get(&path).is_none(),
            "the znode is deleted when close returns"
        );
        assert_eq!(all[at].latch.own_path(), None);
        all[at].latch.close().await.unwrap();
        let error = all[at].latch.wait().await.unwrap_err();
        assert_eq!(error.to_string(), "leader latch \"/locks/a\": closed");
    }
    soon(all[2].latch.wait()).await.unwrap();
    // Closing ends a wait.
    all[2].latch.close().await.unwrap();
    let waiter = contender(&server, 4).await;
    soon(waiter.latch.wait()).await.unwrap();
    let other = contender(&server, 5).await;
    let (result, _) = tokio::join!(soon(other.latch.wait()), async {
        sleep(Duration::from_secs(1)).await;
        other.latch.close().await.unwrap();
    });
    assert!(matches!(result, Err(LatchError::Closed { .. })));
}

#[tokio::test(start_paused = true)]
async fn closing_without_a_connection_leaves_nothing_behind() {
    let server = start().await;
    let all = contenders(&server, 1, &LatchOptions::default()).await;
    all[0].link.set(Mode::Cut);
    let (closed, ()) = tokio::join!(soon(all[0].latch.close()), async {
        sleep(Duration::from_secs(1)).await;
        assert!(!all[0].latch.has_leadership());
        all[0].link.set(Mode::Pass);
    });
    drop(closed);
    until("its znode is deleted", || queue(&server).is_empty()).await;
    until_clean(&server, &all[0]).await;
}

#[tokio::test(start_paused = true)]
async fn test_no_server_at_start() {
    let server = start().await;
    let (client, link) = client(&server, 1).await;
    link.set(Mode::Cut);
    sleep(Duration::from_millis(50)).await;
    let latch = LeaderLatch::start(client, PATH, "").unwrap();
    sleep(Duration::from_secs(10)).await;
    assert!(!latch.has_leadership());
    link.set(Mode::Pass);
    soon(latch.wait()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn participants_have_their_ids() {
    let server = start().await;
    let all = contenders(&server, 3, &LatchOptions::default()).await;
    let participants = all[2].latch.participants().await.unwrap();
    let seen: Vec<_> = participants
        .iter()
        .map(|one| (one.id.as_str(), one.is_leader))
        .collect();
    assert_eq!(seen, [("id 1", true), ("id 2", false), ("id 3", false)]);
    let path = all[0].latch.own_path();
    assert_eq!(Some(participants[0].path.clone()), path);
    let name = all[0].own_name().await;
    assert!(naming::is_protected(&name));
    assert!(naming::without_protection(&name).starts_with("latch-"));
    all[0].latch.close().await.unwrap();
    let leader = all[2].latch.leader().await.unwrap().unwrap();
    assert_eq!(leader.id, "id 2");
    for other in &all {
        other.latch.close().await.unwrap();
    }
    assert_eq!(all[0].latch.leader().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn test_lost_connection() {
    // Also hazard H42: no latch creates a new znode after a reconnect.
    for lock in both_ways() {
        let server = start().await;
        let all = contenders(&server, 3, &options(lock)).await;
        let token = soon(all[0].latch.wait()).await.unwrap();
        let mut changes = all[0].latch.changes();
        let leader = Some(Leadership::Leader { token });
        assert_eq!(changes.next().await, leader);
        let before = queue(&server);
        for round in 0..10 {
            for contender in &all {
                contender.link.set(Mode::Cut);
            }
            let follower = soon(changes.next()).await;
            assert_eq!(follower, Some(Leadership::Follower), "{round}");
            assert!(!all[0].latch.has_leadership());
            for contender in &all {
                contender.link.set(Mode::Pass);
            }
            assert_eq!(soon(changes.next()).await, leader, "{round}");
            assert_eq!(queue(&server), before);
        }
        let quiet = Duration::from_secs(60);
        assert!(timeout(quiet, changes.next()).await.is_err());
        assert!(!all[1].latch.has_leadership() && !all[2].latch.has_leadership());
        all[0].latch.close().await.unwrap();
        assert_eq!(soon(changes.next()).await, Some(Leadership::Follower));
        assert_eq!(soon(changes.next()).await, None);
        soon(all[1].latch.wait()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn interruption_that_ends_before_the_next_call_is_still_reported() {
    let server = start().await;
    let all = contenders(&server, 1, &LatchOptions::default()).await;
    let token = soon(all[0].latch.wait()).await.unwrap();
    let mut changes = all[0].latch.changes();
    let leader = Some(Leadership::Leader { token });
    assert_eq!(changes.next().await, leader);
    all[0].link.cut();
    // The caller reads no change until the interruption is over.
    sleep(Duration::from_secs(3)).await;
    assert!(all[0].latch.has_leadership());
    assert_eq!(changes.next().await, Some(Leadership::Follower));
    assert_eq!(changes.next().await, leader);
}

#[tokio::test(start_paused = true)]
async fn test_error_policies() {
    let server = start().await;
    let mut options = LatchOptions::default();
    options.error_policy = ErrorPolicy::Session;
    let all = contenders(&server, 2, &options).await;
    let mut changes = all[0].latch.changes();
    assert!(matches!(
        changes.next().await,
        Some(Leadership::Leader { .. })
    ));
    // A short interruption changes nothing.
    all[0].link.set(Mode::Cut);
    sleep(Duration::from_secs(1)).await;
    assert!(all[0].latch.has_leadership());
    all[0].link.set(Mode::Pass);
    let quiet = Duration::from_secs(60);
    assert!(timeout(quiet, changes.next()).await.is_err());
    // A long one ends the leadership before the other latch leads.
    all[0].link.set(Mode::Freeze);
    let (follower, ()) = tokio::join!(soon(changes.next()), async {
        soon(all[1].latch.wait()).await.unwrap();
        assert!(!all[0].latch.has_leadership());
    });
    assert_eq!(follower, Some(Leadership::Follower));
}

#[tokio::test(start_paused = true)]
async fn h2_paused_leader_sees_the_loss_in_its_first_call() {
    for error_policy in [ErrorPolicy::Standard, ErrorPolicy::Session] {
        let server = start().await;
        let mut options = LatchOptions::default();
        options.error_policy = error_policy;
        let all = contenders(&server, 1, &options).await;
        all[0].link.set(Mode::Freeze);
        tokio::time::advance(crate::kit::SESSION_TIMEOUT).await;
        assert!(!all[0].latch.has_leadership());
    }
}

#[tokio::test(start_paused = true)]
async fn test_watched_node_deleted() {
    // An operator deletes the leader's znode, and a follower's: they queue again at the end.
    for lock in both_ways() {
        let server = start().await;
        let is_seen_at_once = lock.look_ahead > 0;
        let all = contenders(&server, 3, &options(lock)).await;
        let first = soon(all[0].latch.wait()).await.unwrap();
        let path = all[0].latch.own_path().unwrap();
        all[2].client.delete(&path, None).await.unwrap();
        let second = soon(all[1].latch.wait()).await.unwrap();
        until("it knows", || !all[0].latch.has_leadership()).await;
        let path = all[2].latch.own_path().unwrap();
        all[1].client.delete(&path, None).await.unwrap();
        let is_back = || queue(&server).len() == 3 && all[2].latch.own_path() != Some(path.clone());
        // Curator's followers do not watch their own znodes: they notice the deletion in the next
        // list.
        if is_seen_at_once {
            until("all are back", is_back).await;
        }
        all[1].latch.close().await.unwrap();
        let third = soon(all[0].latch.wait()).await.unwrap();
        assert!(first < second && second < third);
        all[0].latch.close().await.unwrap();
        soon(all[2].latch.wait()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn leader_whose_data_is_changed_keeps_leading() {
    let server = start().await;
    let all = contenders(&server, 2, &LatchOptions::default()).await;
    let mut changes = all[0].latch.changes();
    changes.next().await.unwrap();
    let path = all[0].latch.own_path().unwrap();
    for data in [b"1", b"2"] {
        all[1].client.set_data(&path, data, None).await.unwrap();
        let quiet = Duration::from_secs(10);
        assert!(timeout(quiet, changes.next()).await.is_err());
    }
    // The latch still watches its znode.
    all[1].client.delete(&path, None).await.unwrap();
    assert_eq!(soon(changes.next()).await, Some(Leadership::Follower));
}

#[tokio::test(start_paused = true)]
async fn closed_client_ends_the_latch() {
    let server = start().await;
    let all = contenders(&server, 1, &LatchOptions::default()).await;
    let mut changes = all[0].latch.changes();
    changes.next().await.unwrap();
    all[0].client.close().await;
    assert_eq!(soon(changes.next()).await, Some(Leadership::Follower));
    assert_eq!(soon(changes.next()).await, None);
    let error = soon(all[0].latch.wait()).await.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("the client is closed"), "{message}");
    all[0].latch.close().await.unwrap();
}

/// Curator's `testCloseModes` of `TestLeaderLatch`.
#[tokio::test(start_paused = true)]
async fn test_close_modes() {
    let server = start().await;
    for (mode, expected) in [
        (CloseMode::Silent, None),
        (CloseMode::NotifyLeader, Some(Leadership::Follower)),
    ] {
        for by_options in [true, false] {
            for is_dropped in [false, by_options] {
                let (client, _) = client(&server, 1).await;
                let mut options = LatchOptions::default();
                if by_options {
                    options.close_mode = mode;
                }
                let latch = LeaderLatch::start_with(client, PATH, "id", options).unwrap();
                let mut changes = latch.changes();
                let first = soon(changes.next()).await;
                assert!(matches!(first, Some(Leadership::Leader { .. })));
                match (is_dropped, by_options) {
                    (true, _) => drop(latch),
                    (false, true) => latch.close().await.unwrap(),
                    (false, false) => latch.close_with(mode).await.unwrap(),
                }
                assert_eq!(soon(changes.next()).await, expected, "{mode:?}");
                assert_eq!(soon(changes.next()).await, None);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn silent_latch_reports_a_lost_session() {
    let server = start().await;
    let (client, _) = client(&server, 1).await;
    let mut options = LatchOptions::default();
    options.close_mode = CloseMode::Silent;
    let latch = LeaderLatch::start_with(client.clone(), PATH, "id", options).unwrap();
    let mut changes = latch.changes();
    soon(changes.next()).await.unwrap();
    server.expire(client.session_id().unwrap()).unwrap();
    assert_eq!(soon(changes.next()).await, Some(Leadership::Follower));
    let next = soon(changes.next()).await;
    assert!(matches!(next, Some(Leadership::Leader { .. })));
}
