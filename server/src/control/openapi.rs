//! Describes the API in OpenAPI 3.1, from the table of verbs.

use serde_json::{Map, Value, json};

use crate::{
    control::{
        parameter,
        verb::{Handler, Method, Verb},
        verbs,
    },
    views::json,
};

/// The error statuses of every verb, and their reasons.
const FAULTS: [(&str, &str); 7] = [
    ("400", "The request is malformed"),
    ("401", "The token is missing or wrong"),
    (
        "403",
        "Without a token, control serves only this machine, and no web page but its own",
    ),
    ("404", "The object of the request does not exist"),
    ("409", "The server's state does not allow the request"),
    ("413", "The body is too large"),
    ("503", "Clients leave too many answers unread"),
];

/// Returns the OpenAPI document.
pub(crate) fn description() -> Value {
    let mut paths = Map::new();
    for verb in verbs::all() {
        paths.insert(format!("/v1/{}", verb.name), path(verb, false));
    }
    for verb in verbs::of_universes() {
        let name = format!("/v1/universes/{{universe}}/{}", verb.name);
        paths.insert(name, path(verb, true));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "minikeeper control",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Controls a minikeeper server from a test: clock, sessions, data, \
                faults. The verbs are the same as in Rust and in `minikeeper ctl`.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": json::object(&[("error", json::text())])},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    })
}

/// Describes a verb's path, or the path of the same verb in another universe.
fn path(verb: &Verb, is_elsewhere: bool) -> Value {
    let mut methods = Map::new();
    let method = verb.method.name().to_ascii_lowercase();
    let mut operation = operation(verb);
    if is_elsewhere {
        operation["operationId"] = format!("universe_{}", verb.name).into();
        let universe = json!({
            "name": "universe",
            "in": "path",
            "required": true,
            "description": "The name of the universe",
            "schema": {"type": "string", "minLength": 1},
        });
        methods.insert("parameters".to_owned(), json!([universe]));
    }
    methods.insert(method, operation);
    methods.into()
}

fn operation(verb: &Verb) -> Value {
    let mut responses = Map::new();
    let done = if verb.is_stream() {
        let lines = json!({"schema": json::text()});
        json!({"description": "Lines of JSON", "content": {"application/x-ndjson": lines}})
    } else {
        response("Done", &verb.answer_schema())
    };
    responses.insert("200".to_owned(), done);
    let timed_out = matches!(verb.handler, Handler::Waits(_))
        .then_some(("408", "The wait timed out; the error says what was seen"));
    let error = json!({"$ref": "#/components/schemas/Error"});
    for (status, why) in FAULTS.into_iter().chain(timed_out) {
        responses.insert(status.to_owned(), response(why, &error));
    }
    let mut operation = json!({
        "operationId": verb.name,
        "summary": verb.summary(),
        "responses": responses,
    });
    if !verb.details().is_empty() {
        operation["description"] = verb.details().into();
    }
    match verb.method {
        Method::Get => {
            let parameters: Vec<_> = verb
                .parameters
                .iter()
                .map(|parameter| {
                    json!({
                        "name": parameter.name,
                        "in": "query",
                        "required": parameter.is_required,
                        "description": parameter.help,
                        "schema": parameter.schema(),
                    })
                })
                .collect();
            operation["parameters"] = parameters.into();
        }
        Method::Post => {
            let is_required = verb
                .parameters
                .iter()
                .any(|parameter| parameter.is_required);
            operation["requestBody"] = json!({
                "required": is_required,
                "content": content(&parameter::body_schema(verb.parameters)),
            });
        }
    }
    operation
}

fn response(why: &str, schema: &Value) -> Value {
    json!({"description": why, "content": content(schema)})
}

fn content(schema: &Value) -> Value {
    json!({"application/json": {"schema": schema}})
}
