//! Injected faults as JSON.

use minikeeper_core::faults::{
    FaultInfo, action::FaultAction, fault::Fault, hits::FaultHit, who::FaultFor,
};
use serde_json::{Value, json};

use crate::views::schema::{Field, FieldKind, Part};

pub(crate) const INJECTED: Part = Part::new(
    "InjectedFault",
    "A fault, and how often it has acted",
    &[
        Field::new("fault", FieldKind::Count).help("Its number"),
        Field::new("action", FieldKind::OneOf(FaultAction::NAMES)).help("What it does"),
        Field::new("op", FieldKind::Text)
            .help("The operations, separated by commas; empty for all"),
        Field::optional("path", FieldKind::Text).help("The paths; null for all"),
        Field::optional("session", FieldKind::Session).help("The session that it applies to"),
        Field::optional("client", FieldKind::Count)
            .help("The number of the client that it applies to"),
        Field::optional("address", FieldKind::Text).help("The address that it applies to"),
        Field::new("skip", FieldKind::Count).help("How many matches it skips first"),
        Field::optional("count", FieldKind::Count)
            .help("How many times it acts; null without a limit"),
        Field::new("probability", FieldKind::Number)
            .help("The probability that it acts on a match"),
        Field::new("seed", FieldKind::Count)
            .help("The seed of the random numbers for the probability"),
        Field::new("optional", FieldKind::Flag)
            .help("Whether it may be removed without having acted"),
        Field::optional("delay_ms", FieldKind::DurationMs)
            .help("The delay, for the actions `delay`, `delay-reply` and `delay-events`"),
        Field::optional("error", FieldKind::Text).help("The error, for the action `error`"),
        Field::new("matches", FieldKind::Count).help("How many requests or events matched"),
        Field::new("hits", FieldKind::Count).help("How often it has acted"),
        Field::new("held", FieldKind::Count).help("How many events it holds"),
        Field::optional("last_hit", FieldKind::Part(&HIT))
            .help("What it has acted on last; null if it has not acted"),
    ],
);

const HIT: Part = Part::new(
    "FaultHit",
    "What a fault has acted on",
    &[
        Field::optional("session", FieldKind::Session).help("The session; null for a connection that is refused, and for a handshake that opened no session"),
        Field::new("op", FieldKind::Text).help("The operation, `createSession` for a handshake; the kind of an event, such as `NodeDeleted`"),
        Field::optional("path", FieldKind::Text).help("The path, the first if there are several; null without one"),
        Field::optional("xid", FieldKind::Integer).help("The number that its client gave the request; null for handshakes, connections and events"),
    ],
);

pub(crate) fn fault(info: &FaultInfo) -> Value {
    let Fault {
        action,
        ops,
        path,
        who,
        skip,
        count,
        probability,
        seed,
        is_optional,
        ..
    } = &info.fault;
    let ops: Vec<_> = ops.iter().map(|op| op.name()).collect();
    let mut shown = json!({
        "fault": info.id,
        "action": action.name(),
        "op": ops.join(","),
        "path": path,
        "skip": skip,
        "count": count,
        "probability": probability,
        "seed": seed,
        "optional": is_optional,
        "matches": info.matches,
        "hits": info.hits,
        "held": info.held,
        "last_hit": info.last_hit.as_ref().map(hit),
    });
    match who {
        FaultFor::Session(session) => shown["session"] = json!(session.to_string()),
        FaultFor::Client(number) => shown["client"] = json!(number),
        FaultFor::Address(address) => shown["address"] = json!(address.to_string()),
        FaultFor::Ip(ip) => shown["address"] = json!(ip.to_string()),
        _ => {}
    }
    if let FaultAction::Error(error) = action {
        shown["error"] = json!(error.name());
    }
    if let Some(by) = action.delay() {
        shown["delay_ms"] = json!(u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
    }
    shown
}

pub(crate) fn hit(hit: &FaultHit) -> Value {
    json!({
        "session": hit.session.map(|session| session.to_string()),
        "op": hit.op,
        "path": hit.path,
        "xid": hit.xid,
    })
}
