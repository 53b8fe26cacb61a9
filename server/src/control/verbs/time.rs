//! Time.

use serde_json::json;

use crate::control::{
    parameter::{Parameter, ParameterKind},
    verb::{Field, FieldKind, Handler, Method, Verb},
};

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "now",
        method: Method::Get,
        summary: "The server's time: since its start, of day, and whether it stands still",
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
        summary: "Move time ahead; done when all that was due has happened. Connected sessions live on",
        parameters: &[
            Parameter::required("by_ms", ParameterKind::DurationMs, "How far"),
            Parameter::required(
                "strict",
                ParameterKind::Flag,
                "Whether connected sessions expire too, as if no client had said a word on the way",
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
        summary: "Let time stand still",
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
        summary: "Let time go on by itself",
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
        summary: "Move time that stands still to what is due next, whenever nobody asks for anything",
        parameters: &[Parameter::required(
            "idle_ms",
            ParameterKind::DurationMsOrNull,
            "For how long nobody has to ask, in real time; null ends it",
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
