//! Contenders on links that misbehave by chance, from a seed: cuts, freezes, lost requests and
//! replies, delays, expired sessions, cancelled waits. At no time do two hold the lock, tokens
//! grow, and once the links behave everybody is served.
//!
//! `SIMULATION_SEED` runs one seed alone; `SIMULATION_SEEDS` sets how many are run.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::{Client, Epoch};
use minikeeper_recipes::{Guard, InterProcessMutex, LockOptions, Planted, Status};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    clock,
    kit::{self, PATIENCE, contender_with, queue, start, until},
    link::{Link, Mode},
};

/// How long the links misbehave, for each seed.
const CHAOS: Duration = Duration::from_secs(60);

const CONTENDERS: u64 = 4;

/// Numbers from a seed (`SplitMix64`).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn millis(&mut self, below: u64) -> Duration {
        Duration::from_millis(self.below(below))
    }
}

/// What everybody sees of a run.
#[derive(Default)]
struct History {
    /// Who believes to hold the lock, as of the grant.
    holders: Vec<Option<Arc<Guard<Client>>>>,
    /// Whose session a server ended before its time, which no client can know before it is told.
    expired: Vec<Epoch>,
    last_token: i64,
    grants: u64,
    violations: Vec<String>,
    faults: BTreeMap<&'static str, u64>,
}

impl History {
    fn granted(&mut self, number: usize, guard: &Arc<Guard<Client>>) {
        self.grants += 1;
        for (other, holder) in self.holders.iter().enumerate() {
            if let Some(holder) = holder
                && holder.epoch() > self.expired[other]
                && !matches!(holder.status(), Status::Lost(_))
            {
                self.violations
                    .push(format!("{other} holds the lock that {number} is granted"));
            }
        }
        if guard.token().czxid <= self.last_token {
            self.violations
                .push(format!("token {} after {}", guard.token(), self.last_token));
        }
        self.last_token = self.last_token.max(guard.token().czxid);
        self.holders[number] = Some(Arc::clone(guard));
    }

    fn fault(&mut self, name: &'static str) {
        *self.faults.entry(name).or_default() += 1;
    }
}

async fn contend(
    number: usize,
    lock: InterProcessMutex<Client>,
    history: Arc<Mutex<History>>,
    mut chance: Chance,
    end: Instant,
) {
    while clock::now() < end {
        sleep(chance.millis(50)).await;
        let wait = match chance.below(3) {
            0 => chance.millis(200),
            1 => chance.millis(5_000),
            _ => PATIENCE,
        };
        // Half of those who give up are cancelled, half have a deadline.
        let acquired = if chance.below(2) == 0 {
            lock.acquire_within(wait).await.ok()
        } else {
            timeout(wait, lock.acquire())
                .await
                .ok()
                .and_then(Result::ok)
        };
        let Some(guard) = acquired else {
            history.lock().fault("given up");
            continue;
        };
        let guard = Arc::new(guard);
        history.lock().granted(number, &guard);
        let hold = chance.millis(300);
        let _ = timeout(hold, guard.lost()).await;
        history.lock().holders[number] = None;
        let guard = Arc::into_inner(guard).expect("nobody else keeps it");
        if chance.below(2) == 0 {
            drop(guard);
        } else {
            let _ = timeout(PATIENCE, guard.release()).await;
        }
    }
}

async fn disturb(
    server: Arc<Server>,
    clients: Vec<(Client, Link)>,
    history: Arc<Mutex<History>>,
    mut chance: Chance,
    end: Instant,
) {
    while clock::now() < end {
        sleep(chance.millis(2_000)).await;
        let victim = usize::try_from(chance.below(CONTENDERS)).unwrap();
        let (client, link) = &clients[victim];
        let name = match chance.below(7) {
            0 => {
                link.cut();
                "cut"
            }
            1 => {
                link.set(Mode::Cut);
                "partition"
            }
            2 => {
                link.set(Mode::Freeze);
                "freeze"
            }
            3 => {
                link.set(Mode::SwallowRequests);
                "lost requests"
            }
            4 => {
                link.set(Mode::SwallowReplies);
                "lost replies"
            }
            5 => {
                link.delay_replies(chance.millis(100));
                "delay"
            }
            _ => {
                if let Some(session) = client.session_id() {
                    history.lock().expired[victim] = client.epoch();
                    server.expire_session(session);
                }
                "expiry"
            }
        };
        history.lock().fault(name);
        // Sometimes shorter than a session lives without a word, sometimes longer.
        sleep(chance.millis(8_000)).await;
        link.delay_replies(Duration::ZERO);
        if chance.below(2) == 0 {
            link.set(Mode::Pass);
        } else {
            link.cut();
        }
    }
    for (_, link) in &clients {
        link.delay_replies(Duration::ZERO);
        link.cut();
    }
}

/// One run; what went wrong, how many grants, which faults.
fn simulate(seed: u64, options: &LockOptions) -> History {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = start().await;
        let began = clock::now();
        let end = began + CHAOS;
        let history = Arc::new(Mutex::new(History {
            holders: (0..CONTENDERS).map(|_| None).collect(),
            expired: (0..CONTENDERS).map(|_| Epoch(0)).collect(),
            ..History::default()
        }));
        let (mut tasks, mut clients) = (Vec::new(), Vec::new());
        for number in 0..CONTENDERS {
            let client_seed = seed * 1_000 + number;
            let contender = contender_with(&server, client_seed, options.clone()).await;
            clients.push((contender.client.clone(), contender.link.clone()));
            let number = usize::try_from(number).unwrap();
            let chance = Chance(client_seed + 500);
            let history = Arc::clone(&history);
            tasks.push(tokio::spawn(contend(
                number,
                contender.lock,
                history,
                chance,
                end,
            )));
        }
        let chance = Chance(seed);
        disturb(
            Arc::clone(&server),
            clients.clone(),
            Arc::clone(&history),
            chance,
            end,
        )
        .await;
        for task in tasks {
            let ended = timeout(PATIENCE, task).await;
            if !matches!(ended, Ok(Ok(()))) {
                history
                    .lock()
                    .violations
                    .push("a contender is never served".into());
            }
        }
        for (client, _) in &clients {
            until("nothing is pending", || client.clean_ups_pending() == 0).await;
        }
        if !queue(&server).is_empty() {
            let left = format!("left behind: {:?}", queue(&server));
            history.lock().violations.push(left);
        }
        server.check().unwrap();
        drop(clients);
        std::mem::take(&mut *history.lock())
    })
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("SIMULATION_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SIMULATION_SEEDS").unwrap_or(200),
    }
}

/// Runs seeds until one shows a violation; says which and what.
fn first_violation(
    seeds: std::ops::Range<u64>,
    options: &[LockOptions],
) -> Result<Total, (u64, Vec<String>)> {
    let mut total = Total::default();
    for seed in seeds {
        let way = usize::try_from(seed).unwrap() % options.len();
        let history = simulate(seed, &options[way]);
        if !history.violations.is_empty() {
            return Err((seed, history.violations));
        }
        total.grants += history.grants;
        total.runs += 1;
        for (name, count) in history.faults {
            *total.faults.entry(name).or_default() += count;
        }
    }
    Ok(total)
}

#[derive(Default)]
struct Total {
    runs: u64,
    grants: u64,
    faults: BTreeMap<&'static str, u64>,
}

#[test]
fn no_two_hold_the_lock_whatever_happens_to_the_links() {
    let total = first_violation(seeds(), &kit::both_ways());
    let Total {
        runs,
        grants,
        faults,
    } = total.unwrap_or_else(|(seed, violations)| {
        panic!("SIMULATION_SEED={seed}: {violations:#?}");
    });
    let minutes = runs * CHAOS.as_secs() / 60;
    println!(
        "{runs} seeds, {minutes} simulated minutes, {grants} grants, no violation; {faults:?}"
    );
    assert!(grants > runs * 10, "{grants} grants in {runs} runs");
}

#[test]
fn seed_repeats_exactly() {
    let run = || {
        let history = simulate(7, &LockOptions::default());
        (history.grants, history.last_token, history.faults)
    };
    assert_eq!(run(), run());
}

#[test]
fn planted_bugs_are_found() {
    for planted in Planted::ALL {
        let mut options = LockOptions::default();
        options.planted = Some(planted);
        let found = first_violation(0..200, &[options]);
        let (seed, violations) = found
            .err()
            .unwrap_or_else(|| panic!("{planted:?} is not found"));
        println!("{planted:?}: seed {seed}: {}", violations[0]);
    }
}
