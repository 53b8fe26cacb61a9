//! Snapshots and forks.

use serde_json::json;

use super::universes;
use crate::control::{
    error::ControlError,
    parameter::{Parameter, ParameterKind},
    verb::{Call, Field, FieldKind, Handler, Method, Verb},
};

const SNAPSHOT: Parameter = Parameter::required(
    "snapshot",
    ParameterKind::Count(u64::MAX),
    "The number that snapshot returned",
);

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "snapshot",
        method: Method::Post,
        docs: "Take a snapshot of znodes, sessions and watches, for `restore`\n\n\
               Returns the number of the snapshot.",
        parameters: &[],
        plain: None,
        answer: &[Field::new("snapshot", FieldKind::Count)],
        handler: Handler::AtOnce(|call| {
            let snapshot = call.controls.snapshots.add(&call.universe)?;
            Ok(json!({"snapshot": snapshot}))
        }),
    },
    Verb {
        name: "restore",
        method: Method::Post,
        docs: "Restore a snapshot, which can be restored again",
        parameters: &[SNAPSHOT],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            let snapshot = call.controls.snapshots.get(id(call)?)?;
            let restored = call.universe.restore(&snapshot);
            restored.map_err(|error| ControlError::cannot_now(error.to_string()))?;
            Ok(json!({}))
        }),
    },
    Verb {
        name: "drop_snapshot",
        method: Method::Post,
        docs: "Drop a snapshot and free its memory",
        parameters: &[SNAPSHOT],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            call.controls.snapshots.remove(id(call)?)?;
            Ok(json!({}))
        }),
    },
    Verb {
        name: "fork",
        method: Method::Post,
        docs: "Create a universe as a copy of this one",
        parameters: &[Parameter::required(
            "name",
            ParameterKind::Name,
            "The name of the copy: one part of a path",
        )],
        plain: Some("connect_string"),
        answer: universes::CONNECT_STRING,
        handler: Handler::AtOnce(|call| {
            let name = call.arguments.text("name")?;
            universes::kept(call.universe.fork(name))
        }),
    },
];

fn id(call: &Call) -> Result<u64, ControlError> {
    call.arguments.count("snapshot")
}
