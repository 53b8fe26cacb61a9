//! The leader latch under faults at every step.

use std::time::Duration;

use minikeeper::{Fault, OpCode};
use minikeeper_client::ErrorCode;
use minikeeper_recipes::{LatchOptions, LeaderLatch, naming};
use tokio::time::sleep;

use crate::{
    kit::{PATH, SESSION_TIMEOUT, both_ways, client, queue, soon, start, until},
    leader_latch::{Contender, contender, contenders, options},
    link::Mode,
};

#[tokio::test(start_paused = true)]
async fn h5_expiring_at_every_step_makes_no_second_leader() {
    for lock in both_ways() {
        for is_second in [false, true] {
            for delay_ms in 0..12 {
                let server = start().await;
                let count = u64::from(is_second);
                let other = contenders(&server, count, &options(lock.clone())).await;
                let (client, link) = client(&server, 7).await;
                link.delay_replies(Duration::from_millis(1));
                let session = client.session_id().unwrap();
                let latch =
                    LeaderLatch::start_with(client.clone(), PATH, "", options(lock.clone()))
                        .unwrap();
                sleep(Duration::from_millis(delay_ms)).await;
                server.expire(session).unwrap();
                drop(other);
                soon(latch.wait()).await.unwrap();
                until("one is left", || queue(&server).len() == 1).await;
                sleep(2 * SESSION_TIMEOUT).await;
                assert!(latch.has_leadership(), "after {delay_ms} ms");
                let stat = server.get(&latch.own_path().unwrap()).unwrap().1;
                assert_eq!(Some(stat.ephemeral_owner), client.session_id());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h29_nothing_is_stuck_after_a_storm() {
    // All kinds of faults occur repeatedly, at varying offsets.
    for lock in both_ways() {
        let server = start().await;
        let all = contenders(&server, 4, &options(lock)).await;
        for round in 0..40_u64 {
            for (at, contender) in (0..).zip(&all) {
                match (round + at * 3) % 7 {
                    0 => contender.expire(&server),
                    1 => contender.link.cut(),
                    2 => contender.link.set(Mode::Freeze),
                    3 => contender.link.set(Mode::SwallowReplies),
                    4 => contender.link.set(Mode::Cut),
                    _ => contender.link.set(Mode::Pass),
                }
            }
            sleep(Duration::from_millis(round * 53 % 1700)).await;
            let leaders = all.iter().filter(|one| one.latch.has_leadership());
            assert!(leaders.count() <= 1, "round {round}");
        }
        for contender in &all {
            contender.link.set(Mode::Pass);
        }
        sleep(Duration::from_secs(60)).await;
        assert_eq!(queue(&server).len(), all.len());
        let mut left: Vec<_> = all.iter().collect();
        while !left.is_empty() {
            let leads = |one: &&Contender| one.latch.has_leadership();
            until("one leads", || left.iter().any(leads)).await;
            let at = left.iter().position(leads).unwrap();
            left.remove(at).latch.close().await.unwrap();
        }
        assert!(queue(&server).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn h39_late_reply_of_an_old_session_names_no_znode() {
    // The reply to the creation arrives long after its session is over.
    for lock in both_ways() {
        let server = start().await;
        let (client, link) = client(&server, 1).await;
        link.delay_replies(Duration::from_millis(500));
        let session = client.session_id().unwrap();
        let latch = LeaderLatch::start_with(client.clone(), PATH, "", options(lock)).unwrap();
        until("it is created", || queue(&server).len() == 1).await;
        let first = queue(&server).remove(0);
        server.expire(session).unwrap();
        soon(latch.wait()).await.unwrap();
        let own = latch.own_path().unwrap();
        assert_ne!(naming::name_of(&own), first);
        assert_eq!(queue(&server), [naming::name_of(&own)]);
        sleep(Duration::from_secs(60)).await;
        assert!(latch.has_leadership());
        assert_eq!(client.clean_ups_pending(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn h20_losing_the_link_at_every_step_makes_no_second_znode() {
    for lock in both_ways() {
        for mode in [Mode::SwallowReplies, Mode::SwallowRequests, Mode::Cut] {
            for delay_ms in 0..10 {
                let server = start().await;
                let (client, link) = client(&server, 1).await;
                link.delay_replies(Duration::from_millis(1));
                let latch =
                    LeaderLatch::start_with(client, PATH, "", options(lock.clone())).unwrap();
                sleep(Duration::from_millis(delay_ms)).await;
                link.set(mode);
                sleep(Duration::from_millis(200)).await;
                link.set(Mode::Pass);
                link.cut();
                soon(latch.wait()).await.unwrap();
                until("it is one", || queue(&server).len() == 1).await;
                let own = latch.own_path().unwrap();
                assert_eq!(queue(&server), [naming::name_of(&own)]);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_at_every_step_leaves_nothing() {
    for is_awaited in [false, true] {
        for is_second in [false, true] {
            for step in 0..60_u32 {
                let server = start().await;
                let count = u64::from(is_second);
                let other = contenders(&server, count, &LatchOptions::default()).await;
                let dropper = contender(&server, 7).await;
                if step < 50 {
                    for _ in 0..step {
                        tokio::task::yield_now().await;
                    }
                } else {
                    dropper.link.delay_replies(Duration::from_millis(1));
                    sleep(Duration::from_millis(u64::from(step - 50))).await;
                }
                let Contender { client, latch, .. } = dropper;
                if is_awaited {
                    latch.close().await.unwrap();
                }
                drop(latch);
                until("its znode is deleted", || {
                    queue(&server).len() == other.len()
                })
                .await;
                until("nothing is pending", || client.clean_ups_pending() == 0).await;
                drop(other);
                until("no watch is left", || !server.dump().contains("watch")).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn znode_whose_deletion_is_refused_at_close_does_not_stay_for_the_session() {
    // Closing gave up, and nothing deleted the znode later: nobody led for as long as the session lived.
    let server = start().await;
    let mut all = contenders(&server, 2, &LatchOptions::default()).await;
    let refused = Fault::error(ErrorCode::ThrottledOp)
        .on(OpCode::Delete)
        .times(5);
    server.inject(refused).unwrap().keep();
    let first = all.remove(0);
    soon(first.latch.close()).await.unwrap_err();
    soon(all[0].latch.wait()).await.unwrap();
    assert_eq!(queue(&server).len(), 1);
}
