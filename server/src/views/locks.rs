//! Locks and their contenders as JSON.

use std::time::Duration;

use minikeeper_protocol::SessionId;
use serde_json::{Map, Value, json};

use crate::{
    locks::{Contender, Deadlock, LockHistory, LockInfo, Locks, Spread},
    views::{
        json::put_data,
        schema::{Field, FieldKind, Part},
    },
};

pub(crate) const LOCK: Part = Part::new(
    "Lock",
    "A lock, semaphore or election",
    &[
        Field::new("path", FieldKind::Text),
        Field::new(
            "kind",
            FieldKind::OneOf(&[
                "mutex",
                "read_write",
                "semaphore",
                "leader_latch",
                "leader_election",
            ]),
        ),
        Field::optional("family", FieldKind::Text)
            .help("The library whose names the znodes have; null if they have those of several"),
        Field::optional("max_leases", FieldKind::Count)
            .help("The leases of a semaphore; null if it does not say"),
        Field::new("holders", FieldKind::Parts(&CONTENDER)).help("Who holds it"),
        Field::new("waiters", FieldKind::Parts(&CONTENDER))
            .help("Who waits, in the order of the queue"),
        Field::new("contenders_total", FieldKind::Count)
            .help("How many hold it or wait, listed or not"),
        Field::new("warnings", FieldKind::Parts(&WARNING)).help("What is wrong"),
        Field::optional("history", FieldKind::Part(&HISTORY))
            .help("What happened to it, as far as the journal goes back"),
    ],
);

const CONTENDER: Part = Part::new(
    "Contender",
    "A znode in the queue of a lock",
    &[
        Field::new("path", FieldKind::Text),
        Field::new("is_reader", FieldKind::Flag)
            .help("Whether it shares the lock with other readers"),
        Field::optional("session", FieldKind::Session)
            .help("Its session; null if no session owns it"),
        Field::optional("address", FieldKind::Text)
            .help("HOST:PORT of its client; null if it is not connected"),
        Field::new("is_connected", FieldKind::Flag),
        Field::new("is_silenced", FieldKind::Flag),
        Field::new("since_ms", FieldKind::UnixMs).help("When it was created"),
        Field::new("age_ms", FieldKind::DurationMs).help("How long ago that was"),
        Field::optional("data", FieldKind::Data).help("Its data, at most 256 bytes"),
        Field::new("data_length", FieldKind::Count).help("The length of its data in bytes"),
        Field::new("waits_for", FieldKind::Texts).help("The paths that it waits for"),
        Field::new("is_watching", FieldKind::Flag).help("Whether it watches one of them"),
    ],
);

const WARNING: Part = Part::new(
    "LockWarning",
    "What is wrong with a lock",
    &[
        Field::new("code", FieldKind::Text)
            .help("`herd`, `waiter-without-watch`, `silent-session`, `no-connection` or `orphan`"),
        Field::new("path", FieldKind::Text).help("The znode concerned"),
        Field::new("text", FieldKind::Text).help("A sentence"),
    ],
);

const HISTORY: Part = Part::new(
    "LockHistory",
    "What the journal knows of a lock",
    &[
        Field::new("acquisitions", FieldKind::Count),
        Field::new("sessions", FieldKind::Parts(&SHARE)).help("The sessions that acquired it"),
        Field::new("sessions_total", FieldKind::Count).help("How many there are, listed or not"),
        Field::optional("fairness", FieldKind::Number)
            .help("Jain's index: 1 if all sessions acquired it equally often"),
        Field::new("hand_overs", FieldKind::Count),
        Field::optional("hand_over_ms", FieldKind::Part(&SPREAD))
            .help("How long it was free while a contender waited"),
        Field::optional("wait_ms", FieldKind::Part(&SPREAD)).help("How long contenders waited"),
        Field::new("gave_up", FieldKind::Count)
            .help("How many contenders left without having held it"),
    ],
);

const SHARE: Part = Part::new(
    "LockShare",
    "How often a session acquired a lock",
    &[
        Field::new("session", FieldKind::Session),
        Field::new("acquisitions", FieldKind::Count),
    ],
);

const SPREAD: Part = Part::new(
    "Spread",
    "The spread of times, in milliseconds",
    &[
        Field::new("min", FieldKind::DurationMs),
        Field::new("median", FieldKind::DurationMs),
        Field::new("max", FieldKind::DurationMs),
    ],
);

pub(crate) const DEADLOCK: Part = Part::new(
    "Deadlock",
    "Sessions that wait for each other over several locks",
    &[
        Field::new("code", FieldKind::Text).help("Always `deadlock`"),
        Field::new("text", FieldKind::Text).help("A sentence"),
        Field::new("cycle", FieldKind::Parts(&STEP)),
        Field::new("sessions", FieldKind::SessionIds),
    ],
);

const STEP: Part = Part::new(
    "DeadlockStep",
    "A session of a deadlock, and what it waits for",
    &[
        Field::new("session", FieldKind::Session),
        Field::optional("address", FieldKind::Text)
            .help("HOST:PORT of its client; null if it is not connected"),
        Field::new("lock", FieldKind::Text).help("The path of the lock"),
        Field::new("contender", FieldKind::Text).help("The path of its znode"),
        Field::new("waits_for", FieldKind::Session).help("The session that it waits for"),
        Field::new("is_held", FieldKind::Flag).help("Whether that session holds the lock"),
    ],
);

pub(crate) fn locks(report: &Locks) -> Value {
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
