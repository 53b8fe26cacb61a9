//! Every error code as the reply to every request of every recipe, once and from then on: the
//! recipe continues or reports the refusal, sends requests at a bounded rate, and leaves nothing
//! behind.
//!
//! The link of one client makes the refusals, in any session, so that the server serves the other
//! clients. A refused request is not carried out.
//!
//! By default one request in sixteen gets the codes that recipes or the client handle specially,
//! and one of the other codes in turn; with `MINIKEEPER_SWEEP=full` every request gets every code.

use std::{pin::pin, time::Duration};

use minikeeper_client::ErrorCode;
use tokio::time::{sleep, timeout};

use crate::{
    every_recipe::{Failure, Recipe, every_recipe},
    kit::soon,
    sweeps::{Case, STEPS_STRIDE, Scene, alone, cases, is_full, say, scene, steps},
    wire::Fault,
};

/// Temporary errors, after which a request is retried: the server has not decided about it.
pub(crate) const PASSING: [ErrorCode; 6] = [
    ErrorCode::ConnectionLoss,
    ErrorCode::OperationTimeout,
    ErrorCode::RequestTimeout,
    ErrorCode::SessionExpired,
    ErrorCode::SessionMoved,
    ErrorCode::ThrottledOp,
];

/// Errors about znodes, on which recipes rely. When they are false, the recipe may end without
/// naming them.
const TELLING: [ErrorCode; 4] = [
    ErrorCode::NoNode,
    ErrorCode::NodeExists,
    ErrorCode::BadVersion,
    ErrorCode::NotEmpty,
];

/// How long everything is refused.
const REFUSING: Duration = Duration::from_secs(20);

/// The largest number of requests while everything is refused, including the client's own
/// clean-ups. With pauses that double from 20 ms to 1 s, half of each random, one loop makes at
/// most 50. A contender for three leases has five loops, one for each znode to clean up and its own.
const REQUESTS_MAX: usize = 300;

/// The largest number of steps that are refused, one at a time.
const STEPS_MAX: usize = 60;

fn is_passing(code: ErrorCode) -> bool {
    PASSING.contains(&code)
}

/// Returns the codes that a request of this number gets, once and from then on.
fn codes(case: &Case, step: usize) -> [Vec<ErrorCode>; 2] {
    // If the server does not know containers, the client creates a persistent directory, which
    // stays.
    let is_once = |code: &ErrorCode| *code != ErrorCode::Unimplemented;
    if is_full() {
        let mut all = ErrorCode::ALL.to_vec();
        all.push(ErrorCode::Other(-999));
        return [all.iter().copied().filter(is_once).collect(), all];
    }
    let turn = step * 7 + case.recipe as usize * 3;
    let others: Vec<_> = ErrorCode::ALL
        .iter()
        .filter(|code| !is_passing(**code) && !TELLING.contains(code))
        .copied()
        .collect();
    let other = others[turn % others.len()];
    let telling = TELLING[turn % TELLING.len()];
    let mut once = PASSING.to_vec();
    once.extend([telling, other].into_iter().filter(is_once));
    let passing = PASSING[turn % PASSING.len()];
    [once, vec![ErrorCode::ThrottledOp, passing, telling, other]]
}

/// Checks that the error names the refusal, unless the code may lead to another error.
fn check_error(case: &Case, code: ErrorCode, error: &Failure) {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    if TELLING.contains(&code) {
        return;
    }
    assert!(
        text.contains(&code.code().to_string()) || is_passing(code) && case.recipe.may_fail(),
        "{text}"
    );
    assert!(
        !is_passing(code) || case.recipe.may_fail(),
        "a temporary refusal failed the recipe: {text}"
    );
}

/// Returns whether a znode may stay until the session is over: the server lied about znodes, or did
/// not permit their deletion. A persistent node reports a refused deletion, and ends.
fn may_stay(case: &Case, code: ErrorCode) -> bool {
    let is_node = matches!(case.recipe, Recipe::EphemeralNode | Recipe::SequentialNode);
    code == ErrorCode::NoNode || code == ErrorCode::NoAuth || is_node && !is_passing(code)
}

impl Scene {
    fn end_session(&self) {
        let session = self.client.session_id();
        session.map(|session| self.server.expire(session));
    }

    async fn forgive(&self, code: ErrorCode) {
        if may_stay(&self.case, code) {
            sleep(REFUSING).await;
            self.end_session();
        }
    }

    /// Waits for a future that may depend on the end of the session: a contender's own znode may be
    /// in its way.
    async fn forgiving<T>(&self, code: ErrorCode, what: impl Future<Output = T>) -> T {
        let mut what = pin!(what);
        if may_stay(&self.case, code) {
            if let Ok(result) = timeout(REFUSING, &mut what).await {
                return result;
            }
            self.end_session();
        }
        soon(what).await
    }
}

/// Refuses the Nth request; false if there were fewer.
async fn refuse_once(case: &Case, code: ErrorCode, step: usize) -> bool {
    let scene = scene(case).await;
    let future = pin!(scene.begin().await);
    scene.wire.arm(Some(Fault::Refuse(step, code)));
    let result = scene.forgiving(code, future).await;
    let is_reached = !scene.wire.is_armed();
    if let Err(error) = &result {
        check_error(case, code, error);
    } else {
        scene.forgiving(code, scene.check_kept(result)).await;
    }
    // The release may have been refused too.
    scene.wire.arm(None);
    scene.forgive(code).await;
    scene.check().await;
    is_reached
}

/// Refuses all requests from the Nth on, for a while; false if there were fewer.
async fn refuse_from(case: &Case, code: ErrorCode, step: usize) -> bool {
    let scene = scene(case).await;
    let mut future = scene.begin().await;
    scene.wire.arm(Some(Fault::RefuseFrom(step, code)));
    let result = match timeout(REFUSING, &mut future).await {
        Ok(result) => Some(result),
        Err(_) => {
            assert!(
                is_passing(code) || TELLING.contains(&code),
                "a permanent refusal must end the recipe"
            );
            None
        }
    };
    let is_reached = scene.wire.refused() > 0;
    let requests = scene.wire.requests();
    assert!(requests <= REQUESTS_MAX, "{requests} requests");
    scene.wire.arm(None);
    let result = match result {
        Some(result) => result,
        None => scene.forgiving(code, future).await,
    };
    match &result {
        Err(error) => check_error_of_many(case, code, error),
        Ok(_) => scene.forgiving(code, scene.check_kept(result)).await,
    }
    scene.forgive(code).await;
    scene.check().await;
    is_reached
}

/// Like [`check_error`], when everything was refused: a recipe gives up after too many lost
/// sessions.
fn check_error_of_many(case: &Case, code: ErrorCode, error: &Failure) {
    let is_given_up = code == ErrorCode::SessionExpired && error.to_string().contains("times");
    if !is_given_up {
        check_error(case, code, error);
    }
}

/// Reports all failures, not only the first.
fn sweep(recipe: Recipe) {
    let (mut runs, mut failed) = (0, 0);
    for case in cases(recipe) {
        for step in steps(STEPS_STRIDE) {
            assert!(step < STEPS_MAX, "the loop does not end");
            let mut is_reached = false;
            let [once, always] = codes(&case, step);
            for code in once {
                let run = alone(&case, ("once", code), step, refuse_once(&case, code, step));
                runs += 1;
                failed += u32::from(run.is_none());
                is_reached |= run == Some(true);
            }
            for code in always {
                let how = ("from then on", code);
                let run = alone(&case, how, step, refuse_from(&case, code, step));
                runs += 1;
                failed += u32::from(run.is_none());
                is_reached |= run == Some(true);
            }
            if !is_reached {
                break;
            }
        }
    }
    say(&format!("{recipe:?}: {runs} runs, {failed} failed"));
    assert_eq!(failed, 0, "refusals of {runs}");
}

macro_rules! sweeps {
    ($($recipe:ident $module:ident,)+) => {
        $(mod $module {
            use super::*;

            #[test]
            fn every_refusal_of_every_request_has_its_outcome() {
                sweep(Recipe::$recipe);
            }
        })+
    };
}

every_recipe!(sweeps);
