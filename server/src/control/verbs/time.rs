//! The clock.

use serde_json::json;

use crate::{
    control::{
        parameter::{Parameter, ParameterKind},
        verb::{Handler, Method, Verb},
    },
    views::schema::{Field, FieldKind},
};

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "now",
        method: Method::Get,
        docs: "Read the server's clock: since the start, wall clock, and whether it is frozen",
        parameters: &[],
        plain: None,
        answer: &[
            Field::new("elapsed_ms", FieldKind::DurationMs)
                .help("Time since the start; it decides when sessions expire"),
            Field::new("wall_ms", FieldKind::UnixMs).help("The time of day that stats show"),
            Field::new("is_frozen", FieldKind::Flag).help("Whether the clock is frozen"),
            Field::new("has_journal", FieldKind::Flag).help("Whether the server keeps a journal"),
        ],
        handler: Handler::AtOnce(|call| {
            let now = call.universe.shared.turns.clock().now();
            Ok(json!({
                "elapsed_ms": now.elapsed_ms,
                "wall_ms": now.wall_ms,
                "is_frozen": call.universe.now().is_frozen,
                "has_journal": call.universe.next_journal_entry().is_ok(),
            }))
        }),
    },
    Verb {
        name: "advance",
        method: Method::Post,
        docs: "Advance the clock; returns when everything due has happened. Connected sessions live on\n\n\
               The clock moves from deadline to deadline. A connected session lives on however \
               far the clock moves, because its client would have sent pings meanwhile. A \
               session expires if it has no connection, is silenced, or a fault drops its pings.",
        parameters: &[
            Parameter::required("by_ms", ParameterKind::DurationMs, "How far to advance"),
            Parameter::required(
                "strict",
                ParameterKind::Flag,
                "Whether connected sessions expire too, as if no client had sent anything meanwhile",
            )
            .with_default("false"),
        ],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            let by = call.arguments.duration("by_ms")?;
            if call.arguments.flag("strict") {
                call.universe.advance_strictly(by);
            } else {
                call.universe.advance(by);
            }
            Ok(json!({}))
        }),
    },
    Verb {
        name: "freeze",
        method: Method::Post,
        docs: "Freeze the clock\n\n\
               While the clock is frozen nothing expires, even if a client stops at a \
               breakpoint.",
        parameters: &[],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            call.universe.freeze();
            Ok(json!({}))
        }),
    },
    Verb {
        name: "unfreeze",
        method: Method::Post,
        docs: "Unfreeze the clock",
        parameters: &[],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            call.universe.unfreeze();
            Ok(json!({}))
        }),
    },
    Verb {
        name: "auto_advance",
        method: Method::Post,
        docs: "Advance a frozen clock to the next deadline whenever all clients are idle\n\n\
               Connected sessions live on, as with `advance`. Off by default.",
        parameters: &[Parameter::required(
            "idle_ms",
            ParameterKind::DurationMsOrNull,
            "How long all clients must have been idle, in real time; null disables it",
        )],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            let idle = match call.arguments.given("idle_ms") {
                None => None,
                Some(_) => Some(call.arguments.duration("idle_ms")?),
            };
            call.universe.auto_advance(idle);
            Ok(json!({}))
        }),
    },
];
