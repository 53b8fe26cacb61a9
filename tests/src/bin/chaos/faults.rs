//! Injects random faults: into each client separately, and into the server.

use std::{sync::Arc, time::Duration};

use clap::ValueEnum;
use minikeeper::{ErrorCode, Fault, FaultOp, Keep, Server, SessionId};
use minikeeper_client::Client;
use tokio::time::{Instant, sleep, sleep_until};

use minikeeper_tests::sim::CLIENTS;

use crate::{chance::Chance, clock, judge::Judge, worlds::World};

/// Errors which mean that a request was not executed and may be retried.
const ERRORS: [ErrorCode; 5] = [
    ErrorCode::ThrottledOp,
    ErrorCode::ConnectionLoss,
    ErrorCode::OperationTimeout,
    ErrorCode::SessionMoved,
    ErrorCode::SessionExpired,
];

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum FaultKind {
    /// A connection is cut.
    Cut,
    /// The server executes requests, and cuts the connection instead of sending the replies.
    LostReply,
    /// The connection is cut in the middle of a reply.
    HalfReply,
    /// The connection is cut instead of serving requests.
    LostRequest,
    /// Nothing that the client sends arrives, possibly until its session expires.
    Silence,
    /// Requests are delayed.
    Delay,
    /// Events are delayed.
    HeldEvents,
    /// Requests fail with a transient error.
    Error,
    /// Connecting is refused.
    Refuse,
    /// The session is expired before its timeout.
    Expiry,
    /// The server restarts and keeps all state.
    Restart,
    /// The server restarts and keeps the data, but not the sessions.
    RestartWithoutSessions,
}

impl FaultKind {
    pub(crate) const ALL: [Self; 12] = [
        Self::Cut,
        Self::LostReply,
        Self::HalfReply,
        Self::LostRequest,
        Self::Silence,
        Self::Delay,
        Self::HeldEvents,
        Self::Error,
        Self::Refuse,
        Self::Expiry,
        Self::Restart,
        Self::RestartWithoutSessions,
    ];

    const fn is_for_all(self) -> bool {
        matches!(
            self,
            Self::Refuse | Self::Restart | Self::RestartWithoutSessions
        )
    }
}

/// The server, its clients and the judge.
pub(crate) struct Site {
    pub(crate) server: Arc<Server>,
    pub(crate) clients: Vec<Client>,
    pub(crate) judge: Arc<Judge>,
}

/// Injects faults until `end`, then removes them.
pub(crate) async fn inject_faults(site: &Arc<Site>, kinds: &[FaultKind], seed: u64, end: Instant) {
    let (for_all, for_one): (Vec<_>, Vec<_>) = kinds.iter().partition(|kind| kind.is_for_all());
    let mut tasks = Vec::new();
    for victim in 0..site.clients.len() {
        let chance = Chance::from_seed(seed.wrapping_mul(1_000) + 500 + victim as u64);
        let (site, kinds) = (Arc::clone(site), for_one.clone());
        tasks.push(tokio::spawn(fault_client(site, victim, kinds, chance, end)));
    }
    let chance = Chance::from_seed(seed.wrapping_mul(1_000) + 900);
    fault_server(site, &for_all, chance, end).await;
    for task in tasks {
        task.await.unwrap();
    }
    site.server.reset_faults();
}

/// Injects faults into one client.
async fn fault_client(
    site: Arc<Site>,
    victim: usize,
    kinds: Vec<FaultKind>,
    mut chance: Chance,
    end: Instant,
) {
    let (client, server) = (&site.clients[victim], &site.server);
    while pause(&site.judge, &mut chance, 8_000, end).await && !kinds.is_empty() {
        let kind = one_of(&mut chance, &kinds);
        // Replies overtake held events, which never happens in ZooKeeper. Other recipes watch paths
        // that are used once. A barrier reuses its path, and the late event of one barrier would
        // let contenders through the next.
        if kind == FaultKind::HeldEvents && World::ALL[victim / CLIENTS] == World::Barrier {
            continue;
        }
        // Reads the session first: an epoch read afterwards belongs to it or to a later session.
        let Some(session) = client.session_id() else {
            continue;
        };
        let epoch = client.epoch();
        let faults = match kind {
            FaultKind::Cut => {
                server.disconnect(session).unwrap_or(0);
                vec![]
            }
            FaultKind::Expiry => {
                site.judge.expired(victim, epoch);
                server.expire(session).unwrap_or(0);
                vec![]
            }
            kind => fault_of(kind, session, &mut chance),
        };
        site.judge.fault(name(kind), Some(victim));
        let faults: Vec<_> = faults
            .into_iter()
            .filter_map(|fault| server.inject(fault.optional()).ok())
            .collect();
        if !faults.is_empty() {
            // Sometimes shorter than the session timeout, sometimes longer.
            pause(&site.judge, &mut chance, 8_000, end).await;
        }
        drop(faults);
        if kind == FaultKind::Silence {
            // No connection continues after messages on it were lost.
            server.disconnect(session).unwrap_or(0);
        }
    }
}

fn fault_of(kind: FaultKind, session: SessionId, chance: &mut Chance) -> Vec<Fault> {
    let times = 1 + chance.below(4);
    let skip = chance.below(6);
    let fault = match kind {
        FaultKind::LostReply => Fault::lose_reply(),
        FaultKind::HalfReply => Fault::cut_reply(),
        FaultKind::LostRequest => Fault::cut(),
        FaultKind::Silence => return vec![Fault::silence(session)],
        FaultKind::Delay => Fault::delay(chance.millis(200)),
        FaultKind::HeldEvents => return vec![Fault::hold_events().of(session)],
        _ => {
            let at = usize::try_from(chance.below(ERRORS.len() as u64)).unwrap_or_default();
            Fault::error(ERRORS[at])
        }
    };
    vec![fault.of(session).skip(skip).times(times)]
}

/// Injects faults that affect all clients.
async fn fault_server(site: &Site, kinds: &[FaultKind], mut chance: Chance, end: Instant) {
    let server = &site.server;
    while pause(&site.judge, &mut chance, 15_000, end).await && !kinds.is_empty() {
        let kind = one_of(&mut chance, kinds);
        site.judge.fault(name(kind), None);
        if kind == FaultKind::Refuse {
            let refusing = server.inject(
                Fault::refuse()
                    .with_probability(0.7, chance.below(1 << 40))
                    .optional(),
            );
            let connecting = Fault::cut().on(FaultOp::Connect);
            let cutting = server.inject(
                connecting
                    .with_probability(0.3, chance.below(1 << 40))
                    .optional(),
            );
            server.disconnect_all();
            pause(&site.judge, &mut chance, 6_000, end).await;
            drop((refusing, cutting));
            continue;
        }
        server.go_down().await;
        // Sometimes longer than the session timeout. When the server is back, the session has its
        // whole timeout again, but a client cannot rely on that.
        let below_ms = if chance.once_in(3) { 8_000 } else { 1_000 };
        sleep(Duration::from_millis(200)).await;
        pause(&site.judge, &mut chance, below_ms, end).await;
        let keep = if kind == FaultKind::Restart {
            Keep::Everything
        } else {
            for (number, client) in site.clients.iter().enumerate() {
                site.judge.expired(number, client.epoch());
            }
            Keep::Data
        };
        if let Err(error) = server.come_up(keep).await {
            site.judge
                .violation(format!("the server stays down: {error}"));
            return;
        }
    }
}

fn one_of(chance: &mut Chance, kinds: &[FaultKind]) -> FaultKind {
    kinds[usize::try_from(chance.below(kinds.len() as u64)).unwrap_or_default()]
}

const fn name(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Cut => "cut",
        FaultKind::LostReply => "lost reply",
        FaultKind::HalfReply => "half a reply",
        FaultKind::LostRequest => "lost request",
        FaultKind::Silence => "silence",
        FaultKind::Delay => "delay",
        FaultKind::HeldEvents => "held events",
        FaultKind::Error => "error",
        FaultKind::Refuse => "refusal",
        FaultKind::Expiry => "expiry",
        FaultKind::Restart => "restart",
        FaultKind::RestartWithoutSessions => "restart without sessions",
    }
}

/// Sleeps for a random time below `below_ms`. Returns `false` at the end.
async fn pause(judge: &Judge, chance: &mut Chance, below_ms: u64, end: Instant) -> bool {
    let until = clock::now() + chance.millis(below_ms);
    sleep_until(until.min(end)).await;
    judge.look();
    clock::now() < end
}
