//! Time.

use serde_json::json;

use crate::control::{
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
        summary: "Move time ahead; done when all that was due has happened",
        parameters: &[Parameter::required("by_ms", Kind::DurationMs, "How far")],
        plain: None,
        answer: schema::nothing,
        handler: Handler::AtOnce(|call| {
            let by = call.arguments.duration("by_ms")?;
            call.universe.advance(by);
            Ok(json!({}))
        }),
    },
];
