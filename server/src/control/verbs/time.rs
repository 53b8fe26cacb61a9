//! The clock.

use serde_json::json;

use crate::control::{
    parameter::{Parameter, ParameterKind},
    verb::{Field, FieldKind, Handler, Method, Verb},
};

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "now",
        method: Method::Get,
        summary: "Read the server's clock: since the start, wall clock, and whether it is frozen",
        parameters: &[],
        plain: None,
        answer: &[
            Field::new("elapsed_ms", FieldKind::Count),
            Field::new("wall_ms", FieldKind::Integer),
            Field::new("is_frozen", FieldKind::Flag),
        ],
        handler: Handler::AtOnce(|call| {
            let now = call.universe.shared.turns.clock().now();
            Ok(json!({
                "elapsed_ms": now.elapsed_ms,
                "wall_ms": now.wall_ms,
                "is_frozen": call.universe.now().is_frozen,
            }))
        }),
    },
    Verb {
        name: "advance",
        method: Method::Post,
        summary: "Advance the clock; returns when everything due has happened. Connected sessions live on",
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
        summary: "Freeze the clock",
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
        summary: "Let the clock run again",
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
        summary: "Advance a frozen clock to the next deadline whenever all clients are idle",
        parameters: &[Parameter::required(
            "idle_ms",
            ParameterKind::DurationMsOrNull,
            "How long all clients must have been idle, in real time; null switches it off",
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
