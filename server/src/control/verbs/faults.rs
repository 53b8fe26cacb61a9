//! Fault injection.

use std::time::Duration;

use minikeeper_core::faults::{
    action::FaultAction,
    error::{FaultError, NotHit},
    fault::Fault,
    op::FaultOp,
    who::FaultFor,
};
use serde_json::{Value, json};

use crate::{
    control::{
        error::ControlError,
        parameter::{Arguments, Parameter, ParameterKind},
        verb::{Handler, Method, Verb},
    },
    views::{
        faults,
        schema::{Field, FieldKind},
    },
};
use minikeeper_protocol::ErrorCode;

const FAULT: Parameter = Parameter::required(
    "fault",
    ParameterKind::Fault,
    "The fault that inject returned",
);

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "inject",
        method: Method::Post,
        docs: "Inject a fault, until `remove_fault` or `reset_faults`",
        parameters: &[
            Parameter::required(
                "action",
                ParameterKind::OneOf(FaultAction::NAMES),
                "What the fault does to a matching operation",
            ),
            Parameter::optional(
                "op",
                ParameterKind::Text,
                "Operations that the fault applies to, separated by commas: create, connect, ping",
            ),
            Parameter::optional(
                "path",
                ParameterKind::Text,
                "Paths that the fault applies to: * matches within a name, ** across names",
            ),
            Parameter::optional(
                "session",
                ParameterKind::Text,
                "The session that the fault applies to",
            ),
            Parameter::optional(
                "client",
                ParameterKind::Count(u32::MAX as u64),
                "The session that the fault applies to, by its number: sessions are numbered from 1 \
                 in the order of their first requests since there has been any fault",
            ),
            Parameter::optional(
                "address",
                ParameterKind::Text,
                "The client address that the fault applies to",
            ),
            Parameter::optional(
                "skip",
                ParameterKind::Count(u64::MAX),
                "How many matching operations to skip first",
            ),
            Parameter::optional(
                "count",
                ParameterKind::Count(u64::MAX),
                "How many times the fault acts; without a limit if absent",
            ),
            Parameter::optional(
                "probability",
                ParameterKind::Json(probability),
                "The probability that the fault acts on a match, from 0 to 1",
            ),
            Parameter::optional(
                "seed",
                ParameterKind::Count(u64::MAX),
                "The seed of the random numbers for probability",
            ),
            Parameter::optional(
                "delay_ms",
                ParameterKind::DurationMs,
                "The delay, for the actions delay and delay-reply; the longest delay for delay-events",
            ),
            Parameter::optional(
                "error",
                ParameterKind::Text,
                "The error, for the action error: NODEEXISTS",
            ),
            Parameter::required(
                "optional",
                ParameterKind::Flag,
                "Whether removing the fault succeeds even if it never acted",
            )
            .with_default("false"),
        ],
        plain: None,
        answer: &[Field::new("fault", FieldKind::Fault)],
        handler: Handler::AtOnce(|call| {
            let guard = call.universe.inject(fault(&call.arguments)?);
            let guard = guard.map_err(|error| ControlError::bad_input(error.to_string()))?;
            Ok(json!({"fault": guard.keep()}))
        }),
    },
    Verb {
        name: "faults",
        method: Method::Get,
        docs: "List the injected faults and how often each has acted",
        parameters: &[],
        plain: None,
        answer: &[Field::new("faults", FieldKind::Parts(&faults::INJECTED))],
        handler: Handler::AtOnce(|call| {
            let faults: Vec<_> = call.universe.faults().iter().map(faults::fault).collect();
            Ok(json!({"faults": faults}))
        }),
    },
    Verb {
        name: "remove_fault",
        method: Method::Post,
        docs: "Remove a fault and release what it holds back; fails if it never acted, unless it is optional\n\n\
               Returns how often it has acted. A fault that never acted has tested nothing: it is \
               removed, and the verb fails (409). An unknown fault is an error (404).",
        parameters: &[FAULT],
        plain: None,
        answer: &[Field::new("hits", FieldKind::Count)],
        handler: Handler::AtOnce(|call| {
            let removed = call.universe.remove_fault(call.arguments.count("fault")?);
            let hits = removed.map_err(|error| match error {
                NotHit::Unknown { .. } => ControlError::not_found(error.to_string()),
                _ => ControlError::cannot_now(error.to_string()),
            })?;
            Ok(json!({"hits": hits}))
        }),
    },
    Verb {
        name: "reset_faults",
        method: Method::Post,
        docs: "Remove all faults and release what they hold back",
        parameters: &[],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            call.universe.reset_faults();
            Ok(json!({}))
        }),
    },
    Verb {
        name: "until_hit",
        method: Method::Post,
        docs: "Wait until a fault has acted N times\n\n\
               Returns how often it has acted. The JSON also has `last_hit`: the session, op, path and \
               xid of what it acted on last, as `faults` has. Fails (408) if it times out.",
        parameters: &[
            FAULT,
            Parameter::required("hits", ParameterKind::Count(u64::MAX), "How many times")
                .with_default("1"),
            super::waiting::WITHIN,
        ],
        plain: None,
        answer: &[Field::new("hits", FieldKind::Count)],
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let id = call.arguments.count("fault")?;
                let hits = call.arguments.count("hits")?;
                let within = call.arguments.duration("within_ms")?;
                if call.universe.faults().iter().all(|fault| fault.id != id) {
                    return Err(ControlError::not_found(NotHit::Unknown { id }.to_string()));
                }
                let hits = call.universe.until_hit(id, hits, within).await;
                let hits = hits.map_err(|error| ControlError::ran_out(error.to_string()))?;
                let info = (call.universe.faults().into_iter()).find(|fault| fault.id == id);
                let last_hit = info.and_then(|info| info.last_hit);
                Ok(json!({"hits": hits, "last_hit": last_hit.as_ref().map(faults::hit)}))
            })
        }),
    },
];

fn probability() -> Value {
    json!({"type": "number", "minimum": 0, "maximum": 1})
}

fn fault(arguments: &Arguments) -> Result<Fault, ControlError> {
    let text = |name| arguments.given(name).and_then(Value::as_str);
    let number = |name| {
        arguments
            .given(name)
            .and_then(super::super::parameter::whole)
    };
    let bad = |error: FaultError| ControlError::bad_input(error.to_string());
    let error = match text("error") {
        None => None,
        Some(name) => {
            let unknown = || bad(FaultError::UnknownError(name.to_owned()));
            Some(ErrorCode::from_name(name).ok_or_else(unknown)?)
        }
    };
    let delay = number("delay_ms").map(Duration::from_millis);
    let action = FaultAction::from_name(arguments.text("action")?, delay, error).map_err(bad)?;
    let mut fault = Fault::new(action);
    for op in text("op").into_iter().flat_map(|ops| ops.split(',')) {
        fault = fault.on(op.trim().parse::<FaultOp>().map_err(bad)?);
    }
    if let Some(path) = text("path") {
        fault = fault.at(path);
    }
    let client = number("client").map(|number| format!("client-{number}"));
    let mut of = [text("session"), text("address"), client.as_deref()]
        .into_iter()
        .flatten();
    if let Some(who) = of.next() {
        fault = fault.of(who.parse::<FaultFor>().map_err(bad)?);
    }
    if of.next().is_some() {
        return Err(ControlError::bad_input(
            "give at most one of session, client, address",
        ));
    }
    fault.skip = number("skip").unwrap_or(0);
    fault.count = number("count");
    fault.seed = number("seed").unwrap_or(0);
    fault.is_optional = arguments.flag("optional");
    if let Some(probability) = arguments.given("probability") {
        fault.probability = probability
            .as_f64()
            .ok_or_else(|| ControlError::bad_input("parameter probability: not a number"))?;
    }
    Ok(fault)
}
