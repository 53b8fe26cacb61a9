//! Sessions and connections.

use std::net::{IpAddr, SocketAddr};

use minikeeper_core::{
    faults::error::FaultError,
    session_selector::{NoSession, SessionSelector, session_id},
};
use serde_json::json;

use crate::{
    control::{
        error::ControlError,
        parameter::{Arguments, Parameter},
        verb::{Handler, Method, Outcome, Verb},
    },
    views::{
        self,
        schema::{Field, FieldKind},
    },
};

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "sessions",
        method: Method::Get,
        docs: "List every session, connected or not\n\n\
               The first request with a path binds a session to a universe. Until then the \
               session is unbound: every universe of the server finds it by its id, or by its \
               address with the port. The server's own universe lists it, and so does a created \
               universe if it is the only one.",
        parameters: &[],
        plain: None,
        answer: &[Field::new(
            "sessions",
            FieldKind::Parts(&views::sessions::SESSION),
        )],
        handler: Handler::AtOnce(|call| {
            let sessions: Vec<_> = call
                .universe
                .sessions()
                .iter()
                .map(views::sessions::session)
                .collect();
            Ok(json!({"sessions": sessions}))
        }),
    },
    Verb {
        name: "expire",
        method: Method::Post,
        docs: "Expire sessions; returns when their watchers have been notified\n\n\
               Returns how many sessions matched. Their ephemerals are deleted and the events are \
               in the sockets of the watchers. No matching session is an error (404) unless \
               `allow_none` is set.",
        parameters: &[Parameter::who(), Parameter::allow_none()],
        plain: None,
        answer: &[Field::new("count", FieldKind::Count)],
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let met = call.universe.expire_and_flush(who(&call.arguments)?).await;
                counted(met, &call.arguments)
            })
        }),
    },
    Verb {
        name: "disconnect",
        method: Method::Post,
        docs: "Close the connections of sessions; the sessions live on\n\n\
               Returns how many sessions were connected. No matching session is an error (404) \
               unless `allow_none` is set.",
        parameters: &[Parameter::who(), Parameter::allow_none()],
        plain: None,
        answer: &[Field::new("count", FieldKind::Count)],
        handler: Handler::AtOnce(|call| {
            let met = call.universe.disconnect(who(&call.arguments)?);
            counted(met, &call.arguments)
        }),
    },
    Verb {
        name: "silence",
        method: Method::Post,
        docs: "Ignore everything that sessions send, pings too, as in a long pause of their clients\n\n\
               Returns how many sessions matched. A silenced session expires unless `unsilence` \
               comes first. No matching session is an error (404) unless `allow_none` is set.",
        parameters: &[Parameter::who(), Parameter::allow_none()],
        plain: None,
        answer: &[Field::new("count", FieldKind::Count)],
        handler: Handler::AtOnce(|call| match call.universe.silence(who(&call.arguments)?) {
            Err(FaultError::NoSession(none)) => counted(Err(none), &call.arguments),
            Err(error) => Err(ControlError::cannot_now(error.to_string())),
            Ok(count) => counted(Ok(count), &call.arguments),
        }),
    },
    Verb {
        name: "unsilence",
        method: Method::Post,
        docs: "Serve silenced sessions again\n\n\
               Returns how many sessions matched. No matching session is an error (404) unless \
               `allow_none` is set.",
        parameters: &[Parameter::who(), Parameter::allow_none()],
        plain: None,
        answer: &[Field::new("count", FieldKind::Count)],
        handler: Handler::AtOnce(|call| {
            let met = call.universe.unsilence(who(&call.arguments)?);
            counted(met, &call.arguments)
        }),
    },
    Verb {
        name: "disconnect_all",
        method: Method::Post,
        docs: "Close every client's connection; the sessions live on",
        parameters: &[],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            call.universe.disconnect_all();
            Ok(json!({}))
        }),
    },
];

/// Returns the number of matching sessions. None is an error unless `allow_none` is set.
fn counted(met: Result<usize, NoSession>, arguments: &Arguments) -> Outcome {
    let count = match met {
        Err(_) if arguments.flag("allow_none") => 0,
        met => met.map_err(|none| ControlError::not_found(none.to_string()))?,
    };
    Ok(json!({"count": count}))
}

/// Returns the selected sessions.
pub(super) fn who(arguments: &Arguments) -> Result<SessionSelector, ControlError> {
    let (field, text) = arguments.who()?;
    let wrong =
        |what| ControlError::bad_input(format!("parameter {field}: {text:?} is not {what}"));
    match field {
        "session" => session_id(text)
            .map(SessionSelector::Session)
            .ok_or_else(|| wrong("a session id")),
        "address" => {
            let address = text.parse::<SocketAddr>().map(SessionSelector::from);
            address
                .or_else(|_| text.parse::<IpAddr>().map(SessionSelector::from))
                .map_err(|_| wrong("an address"))
        }
        "identity" => Ok(SessionSelector::Identity(text.to_owned())),
        _ => Ok(SessionSelector::Owner(text.to_owned())),
    }
}
