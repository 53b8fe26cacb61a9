//! Time.

use serde_json::json;

use crate::control::{
    fault::Fault,
    parameter::{Kind, Parameter},
    schema,
    verb::{Handler, Method, Verb},
};

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "now",
        method: Method::Get,
        summary: "The server's time: since its start, of day, and whether it stands still",
        parameters: &[],
        plain: None,
        answer: || {
            schema::object(&[
                ("elapsed_ms", schema::count()),
                ("wall_ms", schema::integer()),
                ("is_frozen", schema::boolean()),
            ])
        },
        handler: Handler::AtOnce(|call| {
            let clock = call.universe.shared.turns.clock();
            let now = clock.now();
            Ok(json!({
                "elapsed_ms": now.elapsed_ms,
                "wall_ms": now.wall_ms,
                "is_frozen": clock.is_manual(),
            }))
        }),
    },
    Verb {
        name: "advance",
        method: Method::Post,
        summary: "Move a clock that stands still; done when all that was due has happened",
        parameters: &[Parameter::required("by_ms", Kind::DurationMs, "How far")],
        plain: None,
        answer: schema::nothing,
        handler: Handler::AtOnce(|call| {
            let by = call.arguments.duration("by_ms")?;
            if !call.universe.shared.turns.clock().is_manual() {
                return Err(Fault::cannot_now(
                    "the clock runs by itself; only one that stands still is moved by hand",
                ));
            }
            call.universe.advance(by);
            Ok(json!({}))
        }),
    },
];
