//! Waiting for a condition.

use std::time::Duration;

use minikeeper_core::session_selector::SessionSelector;
use serde_json::json;

use crate::{
    control::{
        error::ControlError,
        parameter::{Parameter, ParameterKind},
        verb::{Call, Handler, HandlerFuture, Method, Outcome, Verb},
        verbs::sessions::who,
    },
    universe::WaitError,
};

pub(super) const WITHIN: Parameter = Parameter::required(
    "within_ms",
    ParameterKind::DurationMs,
    "The limit of the wait, in real time",
)
.with_default("10000");

const COUNT: Parameter =
    Parameter::required("count", ParameterKind::Count(u32::MAX as u64), "How many");

pub(super) const VERBS: &[Verb] = &[
    waits(
        "until_watched",
        "Wait until a client watches a path",
        &[
            Parameter::required(
                "path",
                ParameterKind::Path,
                "The watched path, whatever the kind of watch",
            ),
            WITHIN,
        ],
        |call| {
            Box::pin(async move {
                let path = call.arguments.text("path")?;
                answered(call.universe.until_watched(path, within(call)?).await)
            })
        },
    ),
    waits(
        "until_exists",
        "Wait until a znode exists",
        &[
            Parameter::required("path", ParameterKind::Path, "The znode"),
            WITHIN,
        ],
        |call| {
            Box::pin(async move {
                let path = call.arguments.text("path")?;
                answered(call.universe.until_exists(path, within(call)?).await)
            })
        },
    ),
    waits(
        "until_children",
        "Wait until a znode has N children",
        &[
            Parameter::required("path", ParameterKind::Path, "The znode"),
            COUNT,
            WITHIN,
        ],
        |call| {
            Box::pin(async move {
                let (path, count) = (call.arguments.text("path")?, count(call)?);
                let children = call.universe.until_children(path, count, within(call)?);
                answered(children.await)
            })
        },
    ),
    waits(
        "until_contenders",
        "Wait until N contenders hold a lock or queue for it",
        &[
            Parameter::required("lock", ParameterKind::Path, "The path of the lock"),
            COUNT,
            WITHIN,
        ],
        |call| {
            Box::pin(async move {
                let (lock, count) = (call.arguments.text("lock")?, count(call)?);
                let contenders = call.universe.until_contenders(lock, count, within(call)?);
                answered(contenders.await)
            })
        },
    ),
    waits(
        "until_sessions",
        "Wait until there are N sessions, connected or not",
        &[COUNT, WITHIN],
        |call| {
            Box::pin(async move {
                let sessions = call.universe.until_sessions(count(call)?, within(call)?);
                answered(sessions.await)
            })
        },
    ),
    waits(
        "until_noticed",
        "Wait until a client has noticed that its session has ended\n\n\
         It has when it asked for the session as it connected again, and was told that the session has expired; its \
         callbacks run after that. Give the session's id: an ended session has no address, identity or ephemeral. \
         The server remembers the newest 1,024 sessions that clients have asked for in vain.",
        &[Parameter::who(), WITHIN],
        |call| {
            Box::pin(async move {
                let SessionSelector::Session(session) = who(&call.arguments)? else {
                    return Err(ControlError::bad_input(
                        "select the session by its id: an ended session has no address, identity or ephemeral",
                    ));
                };
                answered(call.universe.until_noticed(session, within(call)?).await)
            })
        },
    ),
    waits(
        "until_idle",
        "Wait until no client has sent a request for a while",
        &[
            Parameter::required(
                "quiet_ms",
                ParameterKind::DurationMs,
                "How long no client may have sent a request, in real time",
            )
            .with_default("50"),
            WITHIN,
        ],
        |call| {
            Box::pin(async move {
                let quiet = call.arguments.duration("quiet_ms")?;
                answered(call.universe.until_idle(quiet, within(call)?).await)
            })
        },
    ),
];

/// Creates a verb that waits for a condition and returns nothing.
const fn waits(
    name: &'static str,
    docs: &'static str,
    parameters: &'static [Parameter],
    handler: for<'a> fn(&'a Call) -> HandlerFuture<'a>,
) -> Verb {
    Verb {
        name,
        method: Method::Post,
        docs,
        parameters,
        plain: None,
        answer: &[],
        handler: Handler::Waits(handler),
    }
}

fn within(call: &Call) -> Result<Duration, ControlError> {
    call.arguments.duration("within_ms")
}

fn count(call: &Call) -> Result<usize, ControlError> {
    let count = call.arguments.count("count")?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

fn answered(outcome: Result<(), WaitError>) -> Outcome {
    outcome.map_err(|error| ControlError::ran_out(error.to_string()))?;
    Ok(json!({}))
}
