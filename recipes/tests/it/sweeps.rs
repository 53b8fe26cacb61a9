//! Every recipe, dropped, disconnected (after every message and at every byte) and expired at every
//! step, alone and behind another contender: afterwards other contenders can acquire the lock, and
//! nothing is left behind.
//!
//! Source: `docs/curator-recipes.md` sections 4.6 and 15.9 (1, 2 and 9); hazards H5, H20 to H24.

use std::{
    hash::{BuildHasher as _, RandomState},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use minikeeper::Server;
use minikeeper_client::Client;
use minikeeper_recipes::LockOptions;
use minikeeper_test_kit::random::seed_or;
use tokio::time::{sleep, timeout};

use crate::{
    every_lock::Polls,
    every_recipe::{Failure, Kept, Recipe, Waiting, every_recipe},
    kit::{both_ways, client, soon, start, until},
    wire::{Fault, Wire},
};

/// When the contender ahead leaves.
pub(crate) const DELAY: Duration = Duration::from_millis(500);

/// The largest number of messages that it takes to find the outcome after a lost reply.
const RECOVERY: usize = 8;

/// A recipe, its options, and whether another contender is ahead.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) recipe: Recipe,
    pub(crate) is_contended: bool,
    pub(crate) options: LockOptions,
}

/// A server, a client that meets faults, and another client that does not.
pub(crate) struct Scene {
    pub(crate) case: Case,
    pub(crate) server: Arc<Server>,
    pub(crate) wire: Wire,
    pub(crate) client: Client,
    pub(crate) other: Client,
}

pub(crate) fn cases(recipe: Recipe) -> Vec<Case> {
    let ways = both_ways();
    let ways = if recipe.has_options() {
        &ways[..]
    } else {
        &ways[..1]
    };
    let case = |options: &LockOptions| {
        [false, true].map(|is_contended| Case {
            recipe,
            is_contended,
            options: options.clone(),
        })
    };
    ways.iter().flat_map(case).collect()
}

pub(crate) async fn scene(case: &Case) -> Scene {
    let server = start().await;
    let wire = Wire::to(&server);
    let (other, _) = client(&server, 1).await;
    Scene {
        case: case.clone(),
        client: wire.client(2).await,
        server,
        wire,
        other,
    }
}

/// Returns all znodes below the root except the server's own. The server deletes empty containers.
pub(crate) fn left(server: &Server) -> Vec<String> {
    let mut left = Vec::new();
    let mut paths = vec!["/".to_owned()];
    while let Some(path) = paths.pop() {
        for name in server.children(&path).unwrap_or_default() {
            let path = minikeeper_recipes::naming::join(&path, &name);
            if path != "/zookeeper" {
                paths.push(path);
            }
        }
        if path != "/" {
            left.push(path);
        }
    }
    left
}

impl Scene {
    pub(crate) async fn begin(&self) -> Waiting {
        let Case {
            recipe,
            is_contended,
            options,
        } = &self.case;
        if *is_contended {
            recipe
                .enter_contended(&self.client, options, &self.other, DELAY)
                .await
        } else {
            recipe.enter(&self.client, options)
        }
    }

    /// Checks that the other client and then the faulty one can acquire the lock, and that nothing
    /// is left afterwards.
    pub(crate) async fn check(self) {
        let Case {
            recipe, options, ..
        } = &self.case;
        sleep(2 * DELAY).await;
        for client in [&self.other, &self.client] {
            let kept = soon(recipe.enter(client, options)).await.unwrap();
            soon(kept.give_back()).await;
        }
        let clients = [&self.client, &self.other];
        until("nothing is pending", || {
            clients.iter().all(|client| client.clean_ups_pending() == 0)
        })
        .await;
        until("nothing is left", || left(&self.server) == recipe.stays()).await;
        until("no watch is left", || !self.server.dump().contains("watch")).await;
        self.server.check().unwrap();
    }

    /// Checks that no other contender acquires the lock while it is held.
    pub(crate) async fn check_kept(&self, result: Result<Kept, Failure>) {
        let recipe = self.case.recipe;
        let kept = match result {
            Ok(kept) => kept,
            Err(error) => {
                assert!(recipe.may_fail(), "{error}");
                return;
            }
        };
        if recipe.is_exclusive() && kept.is_held() {
            // The client may not know yet that its session has just ended.
            let theirs = recipe.enter(&self.other, &self.case.options);
            let is_got = timeout(DELAY, theirs).await.is_ok();
            assert!(!is_got || !kept.is_held(), "two have it");
        }
        soon(kept.give_back()).await;
    }
}

/// The point at which a future is dropped.
#[derive(Clone, Copy, Debug)]
enum Drop {
    /// After N polls.
    Poll,
    /// After N polls, once everything that it waits for has arrived.
    LatePoll,
    /// When reply N arrives.
    Reply,
    LateReply,
}

/// The distance between two messages, polls or replies at which a fault happens. See [`steps`].
pub(crate) const STEPS_STRIDE: usize = 24;

/// The distance between two bytes at which the connection is cut. See [`steps`].
const BYTES_STRIDE: usize = 601;

/// Returns the steps at which a fault happens: every `stride`th from a random one on, without an
/// end; all steps with `MINIKEEPER_SWEEP=full`. A run that finds no more messages ends the sweep.
pub(crate) fn steps(stride: usize) -> impl Iterator<Item = usize> {
    static SEED: OnceLock<u64> = OnceLock::new();
    if is_full() {
        return (0..).step_by(1);
    }
    let seed = *SEED.get_or_init(|| seed_or(RandomState::new().hash_one(())));
    say(&format!("MINIKEEPER_SEED={seed}"));
    let first = usize::try_from(seed % stride as u64).expect("the first is below the stride");
    (first..).step_by(stride)
}

/// Returns whether to take every step, which takes half an hour.
pub(crate) fn is_full() -> bool {
    std::env::var("MINIKEEPER_SWEEP").is_ok_and(|sweep| sweep == "full")
}

/// Drops the future at this point; false if it was ready before.
async fn drop_at(case: &Case, how: Drop, step: usize) -> bool {
    let scene = scene(case).await;
    let mut future = scene.begin().await;
    let done = match how {
        Drop::Poll | Drop::LatePoll => soon(Polls::new(future.as_mut(), step)).await,
        Drop::Reply | Drop::LateReply => {
            scene.wire.arm(Some(Fault::Notify(step)));
            soon(async {
                tokio::select! {
                    biased;
                    () = scene.wire.notified() => None,
                    done = future.as_mut() => Some(done),
                }
            })
            .await
        }
    };
    let is_dropped = done.is_none();
    if matches!(how, Drop::LatePoll | Drop::LateReply) {
        sleep(2 * DELAY).await;
    }
    drop(future);
    drop(done);
    scene.check().await;
    is_dropped
}

async fn drop_everywhere(recipe: Recipe, how: Drop) {
    for case in cases(recipe) {
        for step in steps(STEPS_STRIDE) {
            assert!(step < 200, "the loop does not end");
            if !in_case(&case, how, step, drop_at(&case, how, step)).await {
                break;
            }
        }
    }
}

/// Injects a fault at the Nth message; false if there are fewer.
async fn fail_at(case: &Case, fault: fn(&Scene, usize) -> Fault, step: usize) -> bool {
    let scene = scene(case).await;
    let future = pin!(scene.begin().await);
    scene.wire.arm(Some(fault(&scene, step)));
    let result = soon(future).await;
    let is_reached = !scene.wire.is_armed();
    scene.check_kept(result).await;
    scene.wire.arm(None);
    scene.check().await;
    is_reached
}

async fn fail_everywhere(recipe: Recipe, fault: fn(&Scene, usize) -> Fault) {
    for case in cases(recipe) {
        for step in steps(STEPS_STRIDE) {
            assert!(step < 200, "the loop does not end");
            if !in_case(&case, "failing", step, fail_at(&case, fault, step)).await {
                assert!(step > 0, "{case:?}: no message");
                break;
            }
        }
    }
}

/// Loses one reply, and drops the future when a later one arrives. Returns whether each happened.
async fn lose_and_drop(case: &Case, lost: usize, told: usize) -> (bool, bool) {
    let scene = scene(case).await;
    let mut future = scene.begin().await;
    scene
        .wire
        .arm([Fault::LoseReply(lost), Fault::Notify(told)]);
    let is_dropped = soon(async {
        tokio::select! {
            biased;
            () = scene.wire.notified() => true,
            _ = future.as_mut() => false,
        }
    })
    .await;
    let is_lost = is_dropped || scene.wire.armed() < 2;
    drop(future);
    scene.wire.arm(None);
    scene.check().await;
    (is_lost, is_dropped)
}

async fn lose_and_drop_everywhere(recipe: Recipe) {
    for case in cases(recipe) {
        for lost in steps(STEPS_STRIDE) {
            assert!(lost < 200, "the loop does not end");
            let mut told = lost + 1;
            let is_lost = loop {
                let run = lose_and_drop(&case, lost, told);
                let (is_lost, is_dropped) = in_case(&case, ("losing", lost), told, run).await;
                told += 1;
                if !is_dropped || told > lost + RECOVERY {
                    break is_lost;
                }
            };
            if !is_lost {
                break;
            }
        }
    }
}

/// Prints the case if the run panics.
pub(crate) async fn in_case<T>(
    case: &Case,
    how: impl std::fmt::Debug,
    step: usize,
    what: impl Future<Output = T>,
) -> T {
    struct Told(Option<String>);
    impl std::ops::Drop for Told {
        #[expect(clippy::print_stdout, reason = "shown only when a test fails")]
        fn drop(&mut self) {
            if let Some(told) = &self.0 {
                println!("{told}");
            }
        }
    }
    let look_ahead = case.options.look_ahead;
    let (recipe, is_contended) = (case.recipe, case.is_contended);
    let mut told = Told(Some(format!(
        "{recipe:?}, contended {is_contended}, looking {look_ahead} ahead, {how:?} {step}"
    )));
    let result = what.await;
    told.0 = None;
    result
}

/// Makes one run, in its own runtime so that nothing is left of the previous one. `None` if it
/// failed.
pub(crate) fn alone(
    case: &Case,
    how: impl std::fmt::Debug,
    step: usize,
    what: impl Future<Output = bool>,
) -> Option<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let what = in_case(case, how, step, what);
    catch_unwind(AssertUnwindSafe(|| runtime.block_on(what))).ok()
}

fn lose_reply(_: &Scene, step: usize) -> Fault {
    Fault::LoseReply(step)
}

fn lose_request(_: &Scene, step: usize) -> Fault {
    Fault::LoseRequest(step)
}

fn expire(scene: &Scene, step: usize) -> Fault {
    Fault::ExpireAfter(scene.client.session_id().unwrap(), step)
}

/// Cuts the connection after every number of bytes, in one direction.
///
/// Reports all failures, not only the first.
fn cut_at_bytes(recipe: Recipe) {
    let directions: [fn(&Scene, usize) -> Fault; 2] = [
        |_, at| Fault::CutRequests(at),
        |_, at| Fault::CutReplies(at),
    ];
    let (mut runs, mut failed) = (0, 0);
    for case in cases(recipe) {
        for (direction, fault) in ["requests", "replies"].into_iter().zip(directions) {
            for at in steps(BYTES_STRIDE) {
                let how = ("cutting", direction);
                runs += 1;
                match alone(&case, how, at, fail_at(&case, fault, at)) {
                    Some(true) => {}
                    Some(false) => break,
                    None => failed += 1,
                }
                assert!(at < 100_000, "the loop does not end");
            }
        }
    }
    say(&format!("{recipe:?}: {runs} cuts, {failed} failed"));
    assert_eq!(failed, 0, "cuts of {runs}");
}

/// Changes one byte of a reply or an event; false if there are fewer bytes.
///
/// The recipe ends, with any result: damage that makes another valid message cannot be seen, so two
/// may hold a lock.
async fn damage_at(case: &Case, at: usize, bits: u8) -> bool {
    let scene = scene(case).await;
    let future = pin!(scene.begin().await);
    scene.wire.arm([Fault::DamageReplies(at, bits)]);
    if let Ok(kept) = soon(future).await {
        soon(kept.give_back()).await;
    }
    let is_reached = !scene.wire.is_armed();
    scene.wire.arm(None);
    scene.check().await;
    is_reached
}

/// Returns the bytes to damage: one in 67, the same in each run, because some damage cannot be seen and
/// leaves a znode until its session ends; all with `MINIKEEPER_SWEEP=full`.
fn damaged_bytes() -> impl Iterator<Item = usize> {
    (0..).step_by(if is_full() { 1 } else { 67 })
}

/// Damages every byte of every reply, each in a run of its own.
fn damage_bytes(recipe: Recipe) {
    const BITS: [u8; 4] = [0x01, 0x10, 0x80, 0xff];
    let (mut runs, mut failed) = (0, 0);
    for case in cases(recipe) {
        for at in damaged_bytes() {
            let mut is_reached = false;
            // The lowest bit makes another digit of the number of its znode, which the node then does
            // not find: it stays until the session ends.
            let tried = match recipe {
                Recipe::SequentialNode => &BITS[1..],
                _ => &BITS[..],
            };
            for &bits in tried {
                let run = alone(&case, ("damaging", bits), at, damage_at(&case, at, bits));
                runs += 1;
                failed += u32::from(run.is_none());
                is_reached |= run != Some(false);
            }
            if !is_reached {
                break;
            }
            assert!(at < 100_000, "the loop does not end");
        }
    }
    say(&format!(
        "{recipe:?}: {runs} damaged bytes, {failed} failed"
    ));
    assert_eq!(failed, 0, "damaged bytes of {runs}");
}

/// A member of a double barrier whose znode is missing in a list, because its name or the count was
/// damaged, deletes that znode: it counted as another member for as long as the session.
#[tokio::test(start_paused = true)]
async fn damaged_list_leaves_no_member_of_a_double_barrier() {
    for case in cases(Recipe::Enter) {
        // The list of members, with the end of the reply before it and the start of that after it.
        for at in (400..480).step_by(3) {
            let run = damage_at(&case, at, 0x01);
            assert!(in_case(&case, "damaging", at, run).await, "byte {at}");
        }
    }
}

/// A znode for which the client looks after a lost reply is not left behind when the future is
/// dropped.
#[tokio::test(start_paused = true)]
async fn two_faults_leave_nothing() {
    for recipe in [
        Recipe::Mutex,
        Recipe::Downgrade,
        Recipe::Leases,
        Recipe::Enter,
        Recipe::Latch,
    ] {
        lose_and_drop_everywhere(recipe).await;
    }
}

/// Cuts the connection at one message, ends the session before the next connection, and loses a
/// reply in the next session. Returns whether each happened.
async fn change_session(case: &Case, fault: Fault, lost: usize) -> (bool, bool) {
    let scene = scene(case).await;
    let future = pin!(scene.begin().await);
    scene.wire.arm([fault, Fault::LoseReply(lost)]);
    let result = soon(future).await;
    let left = scene.wire.armed();
    scene.check_kept(result).await;
    scene.wire.arm(None);
    scene.check().await;
    (left < 2, left == 0)
}

/// Changes the session at every message, and loses each of the following replies.
async fn change_session_everywhere(recipe: Recipe) {
    let mut runs = 0;
    for case in cases(recipe) {
        for is_request in [false, true] {
            for step in steps(STEPS_STRIDE) {
                assert!(step < 200, "the loop does not end");
                let fault = if is_request {
                    Fault::ExpireAtRequest(step)
                } else {
                    Fault::ExpireAtReply(step)
                };
                let mut is_cut = false;
                for lost in step + 1..=step + RECOVERY {
                    let run = change_session(&case, fault, lost);
                    let (is_first, is_second) = in_case(&case, fault, lost, run).await;
                    runs += 1;
                    is_cut |= is_first;
                    if !is_second {
                        break;
                    }
                }
                if !is_cut {
                    break;
                }
            }
        }
    }
    say(&format!("{recipe:?}: {runs} changes of session"));
}

#[expect(clippy::print_stdout, reason = "shown when a test fails, or on demand")]
pub(crate) fn say(what: &str) {
    println!("{what}");
}

/// Closes recipes that run in the background after each reply, with and without the loss of the
/// next reply.
#[tokio::test(start_paused = true)]
async fn closing_after_every_reply_leaves_nothing() {
    for recipe in [Recipe::Latch, Recipe::Selector, Recipe::SequentialNode] {
        for case in cases(recipe) {
            for (step, is_lost) in (0..16).flat_map(|step| [(step, false), (step, true)]) {
                in_case(
                    &case,
                    ("closing, losing", is_lost),
                    step,
                    close_at(&case, step, is_lost),
                )
                .await;
            }
        }
    }
}

async fn close_at(case: &Case, step: usize, is_lost: bool) {
    let scene = scene(case).await;
    if case.is_contended {
        // Another contender is ahead, and leaves later.
        drop(scene.begin().await);
    }
    let kept = case.recipe.start(&scene.client, &case.options);
    let lost = is_lost.then_some(Fault::LoseReply(step + 1));
    scene
        .wire
        .arm([Fault::Notify(step)].into_iter().chain(lost));
    // There may be fewer messages.
    let _ = timeout(DELAY, scene.wire.notified()).await;
    soon(kept.give_back()).await;
    scene.wire.arm(None);
    scene.check().await;
}

macro_rules! sweeps {
    ($($recipe:ident $module:ident,)+) => {
        $(mod $module {
            use super::*;

            #[tokio::test(start_paused = true)]
            async fn dropping_at_every_poll_leaves_nothing() {
                drop_everywhere(Recipe::$recipe, Drop::Poll).await;
            }

            #[tokio::test(start_paused = true)]
            async fn dropping_long_after_every_poll_leaves_nothing() {
                drop_everywhere(Recipe::$recipe, Drop::LatePoll).await;
            }

            #[tokio::test(start_paused = true)]
            async fn dropping_after_every_reply_leaves_nothing() {
                drop_everywhere(Recipe::$recipe, Drop::Reply).await;
                drop_everywhere(Recipe::$recipe, Drop::LateReply).await;
            }

            #[tokio::test(start_paused = true)]
            async fn losing_every_reply_leaves_nothing() {
                fail_everywhere(Recipe::$recipe, lose_reply).await;
            }

            #[tokio::test(start_paused = true)]
            async fn losing_every_request_leaves_nothing() {
                fail_everywhere(Recipe::$recipe, lose_request).await;
            }

            #[test]
            fn cutting_at_every_byte_leaves_nothing() {
                cut_at_bytes(Recipe::$recipe);
            }

            #[test]
            fn damaging_every_byte_of_every_reply_leaves_nothing() {
                damage_bytes(Recipe::$recipe);
            }

            #[tokio::test(start_paused = true)]
            async fn expiring_after_every_reply_leaves_nothing() {
                fail_everywhere(Recipe::$recipe, expire).await;
            }

            #[tokio::test(start_paused = true)]
            async fn changing_the_session_at_every_message_leaves_nothing() {
                change_session_everywhere(Recipe::$recipe).await;
            }
        })+
    };
}

every_recipe!(sweeps);
