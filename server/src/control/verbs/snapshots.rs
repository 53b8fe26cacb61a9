//! Snapshots and forks.

use minikeeper_core::trees::{Znode, files};
use serde_json::{Value, json};

use super::universes;
use crate::{
    control::{
        error::ControlError,
        parameter::{Parameter, ParameterKind},
        verb::{Call, Handler, Method, Verb},
    },
    universe::Change,
    views::schema::{Field, FieldKind, Part},
};

const SNAPSHOT: Parameter = Parameter::required(
    "snapshot",
    ParameterKind::Count(u64::MAX),
    "The number that snapshot returned",
);

const TAKEN: Part = Part::new(
    "TakenSnapshot",
    "A snapshot",
    &[
        Field::new("snapshot", FieldKind::Count).help("Its number"),
        Field::new("taken_ms", FieldKind::UnixMs).help("When it was taken"),
        Field::new("is_there", FieldKind::Flag).help("Whether it can still be restored"),
    ],
);

const CHANGE: Part = Part::new(
    "ZnodeChange",
    "A znode that differs from the one in a snapshot",
    &[
        Field::new("path", FieldKind::Text),
        Field::new(
            "change",
            FieldKind::OneOf(&["created", "deleted", "changed"]),
        ),
        Field::optional("before", FieldKind::TreeZnode)
            .help("The znode then; null if it did not exist or its data is null"),
        Field::optional("after", FieldKind::TreeZnode)
            .help("The znode now; null if it does not exist or its data is null"),
    ],
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
        name: "snapshots",
        method: Method::Get,
        docs: "List the snapshots that `snapshot` has taken, oldest first\n\n\
               `is_there` is false for a snapshot that can no longer be restored: an older one was \
               restored, the server was restarted, or more than 256 MiB of changes were made since.",
        parameters: &[],
        plain: None,
        answer: &[Field::new("snapshots", FieldKind::Parts(&TAKEN))],
        handler: Handler::AtOnce(|call| {
            let kept = call.controls.snapshots.of(&call.universe);
            let shown = kept.iter().map(|(id, kept)| {
                json!({
                    "snapshot": id,
                    "taken_ms": kept.wall_ms,
                    "is_there": kept.snapshot.is_there(),
                })
            });
            Ok(json!({"snapshots": shown.collect::<Vec<_>>()}))
        }),
    },
    Verb {
        name: "changes_since",
        method: Method::Get,
        docs: "List the znodes that differ from those in a snapshot\n\n\
               `change` is created, deleted or changed; `before` and `after` are znodes as in \
               `export_tree`, or null. Compares data, lifetimes and access lists. Lists at most 4 MiB.",
        parameters: &[SNAPSHOT, super::state::MAX],
        plain: None,
        answer: &[
            Field::new("changes", FieldKind::Parts(&CHANGE)).help("The differences, by path"),
            Field::new("is_truncated", FieldKind::Flag).help("Whether there are more"),
        ],
        handler: Handler::AtOnce(|call| {
            let snapshot = call.controls.snapshots.get(id(call)?)?;
            let max = super::state::max(call)?;
            let found = call.universe.changes_since(&snapshot, max);
            let found = found.map_err(|error| ControlError::cannot_now(error.to_string()))?;
            let changes: Vec<_> = found.changes.iter().map(change).collect();
            Ok(json!({"changes": changes, "is_truncated": found.is_truncated}))
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

fn change(change: &Change) -> Value {
    let shown = |znode: &Option<Znode>| znode.as_ref().map_or(Value::Null, files::to_value);
    let what = match (&change.before, &change.after) {
        (None, _) => "created",
        (_, None) => "deleted",
        _ => "changed",
    };
    json!({
        "path": change.path,
        "change": what,
        "before": shown(&change.before),
        "after": shown(&change.after),
    })
}

fn id(call: &Call) -> Result<u64, ControlError> {
    call.arguments.count("snapshot")
}
