//! The servers of the ensemble.

use minikeeper_core::ensemble::ServerMode;
use serde_json::json;

use crate::{
    control::{
        error::{ControlError, with_causes},
        parameter::{Parameter, ParameterKind},
        verb::{Call, Handler, Method, Outcome, Verb},
    },
    universe::ensemble::{EnsembleError, ServerStatus},
    views::schema::{Field, FieldKind, Part},
};

const SERVER: Parameter = Parameter::required(
    "server",
    ParameterKind::Count(9),
    "The number of the server, from 1",
);

const MODES: &[&str] = &["up", "down", "cut-off", "read-only"];

const STATUS: Part = Part::new(
    "EnsembleServer",
    "A server of the ensemble",
    &[
        Field::new("id", FieldKind::Count).help("Its number, from 1"),
        Field::new("address", FieldKind::Text).help("HOST:PORT"),
        Field::new("mode", FieldKind::OneOf(MODES)).help("What it does for its clients"),
        Field::new("is_leader", FieldKind::Flag).help("Whether it says that it is the leader"),
        Field::new("sessions", FieldKind::SessionIds)
            .help("The sessions of the universe that are connected to it"),
    ],
);

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "servers",
        method: Method::Get,
        docs: "List the servers of the ensemble, with their modes and sessions\n\n\
               There is one, unless the server was started with `--servers`.",
        parameters: &[],
        plain: None,
        answer: &[Field::new("servers", FieldKind::Parts(&STATUS))],
        handler: Handler::AtOnce(|call| {
            let servers: Vec<_> = call.universe.servers().iter().map(shown).collect();
            Ok(json!({"servers": servers}))
        }),
    },
    Verb {
        name: "set_server",
        method: Method::Post,
        docs: "Take a server of the ensemble down or up, cut it off, or make it read-only\n\n\
               A server that is down does not listen; one that is cut off accepts connections and \
               answers nothing; one that is read-only serves reads, to clients that accept that. \
               Clients fail over to the other servers, which serve the same state.",
        parameters: &[
            SERVER,
            Parameter::required(
                "mode",
                ParameterKind::OneOf(MODES),
                "What it does for its clients",
            ),
        ],
        plain: None,
        answer: &[],
        handler: Handler::Waits(|call| Box::pin(set_server(call))),
    },
    Verb {
        name: "set_leader",
        method: Method::Post,
        docs: "Choose the server of the ensemble that says it is the leader\n\n\
               As all servers serve one state, only what `srvr`, `stat` and `mntr` say changes. While \
               the chosen server is not up, the first one that is up leads.",
        parameters: &[SERVER],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            let set = call.universe.set_leader(server(call)?);
            set.map_err(|error| refused(&error))?;
            Ok(json!({}))
        }),
    },
];

fn server(call: &Call) -> Result<u8, ControlError> {
    Ok(u8::try_from(call.arguments.count("server")?).unwrap_or(u8::MAX))
}

async fn set_server(call: &Call) -> Outcome {
    let id = server(call)?;
    let name = call.arguments.text("mode")?;
    let mode = ServerMode::from_name(name).expect("the argument was checked");
    let shared = &call.universe.shared;
    let ensemble = &shared.server.ensemble;
    let is_down = |other| ensemble.mode(other) == ServerMode::Down;
    let is_last = || ensemble.ids().all(|other| other == id || is_down(other));
    if mode == ServerMode::Down && shared.config.control.listen.is_none() && is_last() {
        return Err(ControlError::cannot_now(format!(
            "server {id} is the last one that listens, and control with it; `go_down` takes all \
             servers down, or start the server with --control-listen"
        )));
    }
    // To its end, even if the client disconnects.
    let universe = call.universe.clone();
    let set = tokio::spawn(async move { universe.set_server(id, mode).await }).await;
    let set = set.map_err(|_| ControlError::cannot_now("the server is being stopped"))?;
    set.map_err(|error| refused(&error))?;
    Ok(json!({}))
}

fn refused(error: &EnsembleError) -> ControlError {
    match error {
        EnsembleError::NoServer { .. } => ControlError::not_found(error.to_string()),
        EnsembleError::NotUp { .. } | EnsembleError::Start(_) => {
            ControlError::cannot_now(with_causes(error))
        }
    }
}

fn shown(server: &ServerStatus) -> serde_json::Value {
    let sessions: Vec<_> = server.sessions.iter().map(ToString::to_string).collect();
    json!({
        "id": server.id,
        "address": server.address.to_string(),
        "mode": server.mode.name(),
        "is_leader": server.is_leader,
        "sessions": sessions,
    })
}
