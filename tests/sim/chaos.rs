//! Injects random faults: on each link separately, and on the server and all links at once.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};

use crate::{chance::Chance, clock, judge::Judge, link::Mode, site::Site};

/// Injects faults into links, sessions and the server until `end`, and then restores the links.
pub(crate) async fn inject_faults(site: Arc<Site>, judge: Arc<Judge>, seed: u64, end: Instant) {
    let mut tasks = Vec::new();
    for victim in 0..site.clients.len() {
        let chance = Chance::from_seed(seed * 1_000 + 900 + victim as u64);
        let (site, judge) = (Arc::clone(&site), Arc::clone(&judge));
        tasks.push(tokio::spawn(fault_link(site, judge, victim, chance, end)));
    }
    let chance = Chance::from_seed(seed * 1_000 + 800);
    fault_server(&site, &judge, chance, end).await;
    for task in tasks {
        task.await.unwrap();
    }
    for (_, link) in &site.clients {
        link.delay_replies(Duration::ZERO);
        link.cut();
    }
}

/// Injects faults into the link and session of one client.
async fn fault_link(
    site: Arc<Site>,
    judge: Arc<Judge>,
    victim: usize,
    mut chance: Chance,
    end: Instant,
) {
    let (client, link) = &site.clients[victim];
    while pause(&judge, &mut chance, 8_000, end).await {
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
            _ => match (site.server(), client.session_id()) {
                (Some(server), Some(session)) if server.expire(session).is_ok() => {
                    judge.expired(victim, client.epoch());
                    "expiry"
                }
                _ => continue,
            },
        };
        judge.fault(name, Some(victim));
        // Sometimes shorter than the session timeout, sometimes longer.
        pause(&judge, &mut chance, 8_000, end).await;
        link.delay_replies(Duration::ZERO);
        // A connection must not continue after lost bytes: an event would be missing for ever,
        // although the client has seen later changes.
        let is_torn = name.starts_with("lost");
        if chance.once_in(2) && !is_torn {
            link.set(Mode::Pass);
        } else {
            link.cut();
        }
    }
}

/// Restarts the server and cuts all links.
async fn fault_server(site: &Site, judge: &Judge, mut chance: Chance, end: Instant) {
    while pause(judge, &mut chance, 30_000, end).await {
        match chance.below(4) {
            0 => {
                judge.fault("restart", None);
                site.restart(chance.millis(2_000)).await;
            }
            1 => {
                // Can be longer than the session timeout. A restarted server gives sessions their
                // whole timeout again, but a client cannot rely on that.
                judge.fault("long restart", None);
                let down = Duration::from_secs(3) + chance.millis(9_000);
                let rest = end.saturating_duration_since(clock::now());
                site.restart(down.min(rest)).await;
            }
            kind => {
                let is_restart = kind == 2;
                let name = if is_restart {
                    "restart, some late"
                } else {
                    "outage"
                };
                judge.fault(name, None);
                for (_, link) in &site.clients {
                    if !is_restart || chance.once_in(2) {
                        link.set(Mode::Cut);
                    }
                }
                if is_restart {
                    site.restart(chance.millis(2_000)).await;
                }
                // Can be long enough for the sessions of cut clients to expire.
                pause(judge, &mut chance, 10_000, end).await;
                for (_, link) in &site.clients {
                    // A connection that lost bytes meanwhile must not continue.
                    link.cut();
                }
            }
        }
    }
}

/// Sleeps for less than `below_ms`, at most until `end`. Returns false at the end.
async fn pause(judge: &Judge, chance: &mut Chance, below_ms: u64, end: Instant) -> bool {
    let until = clock::now() + chance.millis(below_ms);
    sleep_until(until.min(end)).await;
    judge.look();
    clock::now() < end
}
