//! What one has is never claimed when another may have it: while the client is being closed, and
//! behind a server that only reads, which keeps no session alive.

use std::time::Duration;

use tokio::time::sleep;

use crate::{
    every::Recipe,
    kit::{SESSION_TIMEOUT, soon},
    sweeps::{cases, in_case, scene},
    wire::Fault,
};

/// How many messages there may be while a client is being closed.
const CLOSING: usize = 6;

fn exclusive() -> impl Iterator<Item = Recipe> {
    let leads = |recipe: &Recipe| recipe.is_exclusive() || *recipe == Recipe::Latch;
    Recipe::ALL.into_iter().filter(leads)
}

/// Also if one of the replies is lost, or is the last of its session.
#[tokio::test(start_paused = true)]
async fn nothing_is_held_once_another_has_it_while_the_client_closes() {
    let faults: [fn(usize) -> Fault; 3] = [Fault::Tell, Fault::LoseReply, Fault::ExpireAtReply];
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
                    // The other waits.
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
async fn nothing_is_held_for_long_behind_a_server_that_only_reads() {
    for case in exclusive().flat_map(cases).filter(|it| !it.is_contended) {
        let cut_off = async {
            let scene = scene(&case).await;
            let kept = soon(scene.begin().await).await.unwrap();
            let session = scene.client.session_id().unwrap();
            scene.wire.arm(None);
            scene.wire.read_only();
            scene.wire.cut();
            sleep(SESSION_TIMEOUT).await;
            assert!(scene.wire.requests() > 0, "it is connected");
            // For the others the session is over.
            scene.server.expire(session).unwrap();
            for _ in 0..50 {
                assert!(!kept.is_held());
                sleep(SESSION_TIMEOUT / 10).await;
            }
        };
        in_case(&case, "only reads", 0, cut_off).await;
    }
}
