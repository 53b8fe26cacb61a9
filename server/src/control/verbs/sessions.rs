//! Sessions and connections.

use minikeeper_protocol::SessionId;
use serde_json::{Value, json};

use crate::control::{
    arguments::Arguments,
    fault::Fault,
    parameter::Parameter,
    schema,
    verb::{Handler, Method, Verb},
};

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "sessions",
        method: Method::Get,
        summary: "List every session, connected or not",
        parameters: &[],
        plain: None,
        answer: || {
            let session = schema::object(&[
                ("id", schema::hex()),
                ("timeout_ms", schema::count()),
                ("is_connected", schema::boolean()),
            ]);
            schema::object(&[("sessions", schema::list(&session))])
        },
        handler: Handler::AtOnce(|call| {
            let sessions = call.universe.sessions();
            let sessions: Vec<_> = sessions
                .iter()
                .map(|session| {
                    json!({
                        "id": session.id.to_string(),
                        "timeout_ms": u64::try_from(session.timeout.as_millis()).unwrap_or(u64::MAX),
                        "is_connected": session.is_connected,
                    })
                })
                .collect();
            Ok(json!({"sessions": sessions}))
        }),
    },
    Verb {
        name: "expire",
        method: Method::Post,
        summary: "End sessions as if their time were up; done when watchers have been told",
        parameters: &[Parameter::who()],
        plain: None,
        answer: how_many,
        handler: Handler::AtOnce(|call| {
            let session = who(&call.arguments)?;
            Ok(json!({"count": u32::from(call.universe.expire(session))}))
        }),
    },
    Verb {
        name: "disconnect",
        method: Method::Post,
        summary: "Cut the connections of sessions, which live on",
        parameters: &[Parameter::who()],
        plain: None,
        answer: how_many,
        handler: Handler::AtOnce(|call| {
            let session = who(&call.arguments)?;
            Ok(json!({"count": u32::from(call.universe.disconnect(session))}))
        }),
    },
    Verb {
        name: "disconnect_all",
        method: Method::Post,
        summary: "Cut every client's connection; all sessions live on",
        parameters: &[],
        plain: None,
        answer: schema::nothing,
        handler: Handler::AtOnce(|call| {
            call.universe.disconnect_all();
            Ok(json!({}))
        }),
    },
];

fn how_many() -> Value {
    schema::object(&[("count", schema::count())])
}

/// The session that is meant.
fn who(arguments: &Arguments) -> Result<SessionId, Fault> {
    match arguments.who()? {
        ("session", text) => session_id(text).ok_or_else(|| {
            Fault::bad_input(format!("parameter session: {text:?} is no session id"))
        }),
        (field, _) => Err(Fault::cannot_now(format!(
            "sessions cannot be named by {field} yet"
        ))),
    }
}

/// A session's id as people write it.
fn session_id(text: &str) -> Option<SessionId> {
    let is_number = |digits: &str, radix| {
        !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix))
    };
    match text.strip_prefix("0x") {
        Some(hex) if is_number(hex, 16) => u64::from_str_radix(hex, 16).ok(),
        None if is_number(text, 10) => text.parse().ok(),
        _ => None,
    }
    .map(|id| SessionId(id.cast_signed()))
}
