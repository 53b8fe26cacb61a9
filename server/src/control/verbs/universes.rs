//! Universes behind the same port.

use serde_json::json;

use crate::{
    control::{
        error::ControlError,
        parameter::{Parameter, ParameterKind},
        verb::{Handler, Method, Outcome, Verb},
    },
    universe::{UniverseError, UniverseGuard},
    views::schema::{Field, FieldKind},
};

const NAME: Parameter =
    Parameter::required("name", ParameterKind::Name, "Its name: one part of a path");

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "create_universe",
        method: Method::Post,
        docs: "Create a universe with an empty tree behind the same port",
        parameters: &[NAME],
        plain: Some("connect_string"),
        answer: CONNECT_STRING,
        handler: Handler::AtOnce(|call| {
            let name = call.arguments.text("name")?;
            kept(call.universe.create_universe(name))
        }),
    },
    Verb {
        name: "universes",
        method: Method::Get,
        docs: "List the universes, without the server's own",
        parameters: &[],
        plain: None,
        answer: &[Field::new("universes", FieldKind::Texts)],
        handler: Handler::AtOnce(|call| Ok(json!({"universes": call.universe.universes()}))),
    },
    Verb {
        name: "drop_universe",
        method: Method::Post,
        docs: "Drop a universe: close its connections and delete its state",
        parameters: &[NAME],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            let name = call.arguments.text("name")?;
            let dropped = call.universe.universe_named(name);
            if !call.universe.drop_universe(name) {
                return Err(ControlError::not_found(format!("no universe {name:?}")));
            }
            if let Some(dropped) = dropped {
                call.controls.snapshots.forget(&dropped);
            }
            Ok(json!({}))
        }),
    },
];

pub(super) const CONNECT_STRING: &[Field] =
    &[Field::new("connect_string", FieldKind::ConnectString)];

/// Keeps a created universe until it is dropped, and returns its connect string.
pub(super) fn kept(made: Result<UniverseGuard, UniverseError>) -> Outcome {
    let made = made.map_err(|error| match error {
        UniverseError::InvalidName { .. } => ControlError::bad_input(error.to_string()),
        _ => ControlError::cannot_now(error.to_string()),
    });
    Ok(json!({"connect_string": made?.keep().connect_string()}))
}
