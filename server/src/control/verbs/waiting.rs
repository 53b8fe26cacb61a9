//! Waiting for something to happen, without sleeping.

use serde_json::json;

use crate::{
    control::{
        fault::Fault,
        parameter::{Kind, Parameter},
        schema,
        verb::{Handler, Method, Outcome, Verb},
    },
    universe::WaitError,
};

pub(super) const WITHIN: Parameter = Parameter::required(
    "within_ms",
    Kind::DurationMs,
    "How long to wait at most, in real time",
)
.with_default("10000");

const COUNT: Parameter = Parameter::required("count", Kind::Count(u32::MAX as u64), "How many");

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "until_watched",
        method: Method::Post,
        summary: "Wait until somebody watches a path",
        parameters: &[
            Parameter::required("path", Kind::Path, "The path, watched in any way"),
            WITHIN,
        ],
        plain: None,
        answer: schema::nothing,
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let within = call.arguments.duration("within_ms")?;
                let path = call.arguments.text("path")?;
                told(call.universe.until_watched(path, within).await)
            })
        }),
    },
    Verb {
        name: "until_children",
        method: Method::Post,
        summary: "Wait until a znode has so many children",
        parameters: &[
            Parameter::required("path", Kind::Path, "The znode"),
            COUNT,
            WITHIN,
        ],
        plain: None,
        answer: schema::nothing,
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let within = call.arguments.duration("within_ms")?;
                let path = call.arguments.text("path")?;
                let count = number(call.arguments.count("count")?);
                told(call.universe.until_children(path, count, within).await)
            })
        }),
    },
    Verb {
        name: "until_contenders",
        method: Method::Post,
        summary: "Wait until so many hold a lock or queue for it",
        parameters: &[
            Parameter::required("lock", Kind::Path, "The path of the lock"),
            COUNT,
            WITHIN,
        ],
        plain: None,
        answer: schema::nothing,
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let within = call.arguments.duration("within_ms")?;
                let lock = call.arguments.text("lock")?;
                let count = number(call.arguments.count("count")?);
                told(call.universe.until_contenders(lock, count, within).await)
            })
        }),
    },
    Verb {
        name: "until_idle",
        method: Method::Post,
        summary: "Wait until no client has asked for anything for a while",
        parameters: &[
            Parameter::required("quiet_ms", Kind::DurationMs, "For how long, in real time")
                .with_default("50"),
            WITHIN,
        ],
        plain: None,
        answer: schema::nothing,
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let within = call.arguments.duration("within_ms")?;
                let quiet = call.arguments.duration("quiet_ms")?;
                told(call.universe.until_idle(quiet, within).await)
            })
        }),
    },
];

fn number(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn told(outcome: Result<(), WaitError>) -> Outcome {
    outcome.map_err(|error| Fault::ran_out(error.to_string()))?;
    Ok(json!({}))
}
