//! A holder never counts as one once another contender may have the lock: while its client closes,
//! and on a read-only server, which keeps no session alive.

use std::time::Duration;

use tokio::time::sleep;

use crate::{
    every_recipe::Recipe,
    kit::{SESSION_TIMEOUT, soon},
    sweeps::{cases, in_case, scene},
    wire::Fault,
};

/// The largest number of messages while a client closes.
const CLOSING: usize = 6;

fn exclusive() -> impl Iterator<Item = Recipe> {
    let leads = |recipe: &Recipe| recipe.is_exclusive() || *recipe == Recipe::Latch;
    Recipe::ALL.into_iter().filter(leads)
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
            scene.wire.read_only();
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
