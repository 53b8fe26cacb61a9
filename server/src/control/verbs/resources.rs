//! Resources, which the locks of a test protect.

use serde_json::{Value, json};

use crate::{
    control::{
        error::ControlError,
        parameter::{Parameter, ParameterKind},
        verb::{Call, Handler, Method, Verb},
    },
    views::schema::{Field, FieldKind},
};
use minikeeper_core::state::resources::{ResourceError, ResourceVerdict};

const RESOURCE: Parameter = Parameter::required(
    "resource",
    ParameterKind::Text,
    "Its name, at most 200 characters",
);

const ENTRY: Parameter = Parameter::required(
    "entry",
    ParameterKind::Count(u64::MAX),
    "The number that resource_enter returned",
);

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "resource_enter",
        method: Method::Post,
        docs: "Enter a resource that a lock protects, until `resource_leave`\n\n\
               `resource_verdict` says whether two were inside at a time. Call it while the lock is held, and wait for the \
               answer. A run of a sweep in which a resource is not safe fails.",
        parameters: &[
            RESOURCE,
            Parameter::optional("holder", ParameterKind::Text, "Who enters, for the verdict"),
            Parameter::optional(
                "fencing_token",
                ParameterKind::Count(u64::MAX),
                "The fencing token of the lock: the resource refuses those that are lower than one that it has seen",
            ),
        ],
        plain: Some("entry"),
        answer: &[Field::new("entry", FieldKind::Count).help("The number of the entry")],
        handler: Handler::AtOnce(|call| {
            let text = |name| call.arguments.given(name).and_then(Value::as_str);
            let token = call
                .arguments
                .given("fencing_token")
                .and_then(Value::as_u64);
            let resource = call.arguments.text("resource")?;
            let entry = call
                .universe
                .resource_enter(resource, text("holder"), token);
            Ok(json!({"entry": entry.map_err(refused)?}))
        }),
    },
    Verb {
        name: "resource_write",
        method: Method::Post,
        docs: "Write to a resource, and say whether it accepts that\n\n\
               It does unless it has seen a higher token.",
        parameters: &[ENTRY],
        plain: None,
        answer: &[Field::new("is_accepted", FieldKind::Flag)
            .help("Whether the resource has seen no higher token")],
        handler: Handler::AtOnce(|call| {
            let accepted = call.universe.resource_write(entry(call)?);
            Ok(json!({"is_accepted": accepted.map_err(refused)?}))
        }),
    },
    Verb {
        name: "resource_leave",
        method: Method::Post,
        docs: "Leave a resource, before the lock is released",
        parameters: &[ENTRY],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            call.universe
                .resource_leave(entry(call)?)
                .map_err(refused)?;
            Ok(json!({}))
        }),
    },
    Verb {
        name: "resource_verdict",
        method: Method::Get,
        docs: "Say whether what was done to a resource was safe\n\n\
               It was \"safe\" if no two holders were inside at a time, or the resource has refused the lower of their tokens. It \
               is \"undecided\" if no holder has entered, or a holder that has not left may have been inside when another one entered.",
        parameters: &[RESOURCE],
        plain: None,
        answer: &[
            Field::new("verdict", FieldKind::OneOf(ResourceVerdict::NAMES)),
            Field::new("entries", FieldKind::Count)
                .help("The number of entries whose token it has accepted"),
            Field::new("writes", FieldKind::Count).help("The writes that it has accepted"),
            Field::new("refused", FieldKind::Count).help("How often it has refused a token"),
            Field::new("text", FieldKind::Text)
                .help("The verdict for people, with the acts that decide it"),
        ],
        handler: Handler::AtOnce(|call| {
            let report = call.universe.resource(call.arguments.text("resource")?);
            Ok(json!({
                "verdict": report.verdict.name(),
                "entries": report.entries,
                "writes": report.writes,
                "refused": report.refused,
                "text": report.to_string(),
            }))
        }),
    },
];

fn entry(call: &Call) -> Result<u64, ControlError> {
    call.arguments.count("entry")
}

fn refused(error: ResourceError) -> ControlError {
    ControlError::bad_input(error.to_string())
}
