//! Locks and their contenders.

use std::time::Duration;

use minikeeper_protocol::SessionId;
use serde_json::{Map, Value, json};

use crate::{
    control::{
        json::put_data,
        verb::{Field, FieldKind, Handler, Method, Verb},
    },
    locks::{Contender, Deadlock, LockHistory, LockInfo, Locks, Spread},
};

pub(super) const VERBS: &[Verb] = &[Verb {
    name: "locks",
    method: Method::Get,
    docs: "List every lock, semaphore and election: who holds it, who waits for whom, what is wrong\n\n\
           Recognises the znodes of Curator, kazoo, go-zookeeper, ZooKeeper's own recipes and the \
           Rust crates by their names. A deadlock is a cycle of sessions that wait for each other \
           over several locks. Lists at most 1000 locks and 10000 contenders, 1000 of one lock.",
    parameters: &[],
    plain: None,
    answer: &[
        Field::new("locks", FieldKind::Locks).help("The locks, by path"),
        Field::new("deadlocks", FieldKind::Deadlocks).help("The deadlocks, each with its cycle"),
        Field::new("is_truncated", FieldKind::Flag)
            .help("Whether there are more locks or contenders than listed"),
        Field::new("text", FieldKind::Text).help("The same for people"),
    ],
    handler: Handler::AtOnce(|call| Ok(shown(&call.universe.locks()))),
}];

pub(crate) fn shown(report: &Locks) -> Value {
    let locks: Vec<_> = report.locks.iter().map(lock).collect();
    let deadlocks: Vec<_> = report.deadlocks.iter().map(deadlock).collect();
    json!({
        "locks": locks,
        "deadlocks": deadlocks,
        "is_truncated": report.is_truncated,
        "text": report.to_string(),
    })
}

fn lock(lock: &LockInfo) -> Value {
    let warnings: Vec<_> = lock
        .warnings
        .iter()
        .map(|warning| json!({"code": warning.code.name(), "path": warning.path, "text": warning.text}))
        .collect();
    let mut shown = json!({
        "path": lock.path,
        "kind": lock.kind.name(),
        "family": lock.family.map(|family| family.name()),
        "max_leases": lock.max_leases,
        "holders": contenders(&lock.holders),
        "waiters": contenders(&lock.waiters),
        "contenders_total": lock.contenders_total,
        "warnings": warnings,
    });
    if let Some(past) = &lock.history {
        shown["history"] = history(past);
    }
    shown
}

/// The sessions of a history that an answer lists.
const SHARES_MAX: usize = 100;

fn history(history: &LockHistory) -> Value {
    let sessions = history.sessions.iter().take(SHARES_MAX);
    let sessions: Vec<_> = sessions
        .map(|it| json!({"session": hex(it.session), "acquisitions": it.acquisitions}))
        .collect();
    json!({
        "acquisitions": history.acquisitions(),
        "sessions": sessions,
        "sessions_total": history.sessions.len(),
        "fairness": history.fairness(),
        "hand_overs": history.hand_overs,
        "hand_over_ms": history.hand_over_times.map(spread),
        "wait_ms": history.waits.map(spread),
        "gave_up": history.gave_up,
    })
}

fn spread(spread: Spread) -> Value {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    json!({"min": ms(spread.min), "median": ms(spread.median), "max": ms(spread.max)})
}

fn contenders(contenders: &[Contender]) -> Value {
    contenders.iter().map(contender).collect()
}

fn contender(contender: &Contender) -> Value {
    let mut shown = Map::new();
    put_data(&mut shown, contender.data.clone());
    let fields = json!({
        "path": contender.path,
        "is_reader": contender.is_reader,
        "session": contender.session.map(hex),
        "address": contender.address.map(|address| address.to_string()),
        "is_connected": contender.is_connected,
        "is_silenced": contender.is_silenced,
        "since_ms": contender.since_ms,
        "age_ms": u64::try_from(contender.age.as_millis()).unwrap_or(u64::MAX),
        "data_length": contender.data_length,
        "waits_for": contender.waits_for,
        "is_watching": contender.is_watching,
    });
    if let Value::Object(fields) = fields {
        shown.extend(fields);
    }
    Value::Object(shown)
}

fn deadlock(deadlock: &Deadlock) -> Value {
    let steps: Vec<_> = deadlock
        .cycle
        .iter()
        .map(|step| {
            json!({
                "session": hex(step.session),
                "address": step.address.map(|address| address.to_string()),
                "lock": step.lock,
                "contender": step.contender,
                "waits_for": hex(step.waits_for),
                "is_held": step.is_held,
            })
        })
        .collect();
    let sessions: Vec<_> = deadlock.sessions.iter().copied().map(hex).collect();
    json!({
        "code": "deadlock",
        "text": deadlock.to_string(),
        "cycle": steps,
        "sessions": sessions,
    })
}

fn hex(session: SessionId) -> String {
    session.to_string()
}
