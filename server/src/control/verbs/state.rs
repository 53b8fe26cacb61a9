//! The tree and what is kept of it.

use serde_json::{Map, json};

use crate::control::{
    fault::Fault,
    json,
    parameter::{Kind, Parameter},
    schema,
    verb::{Call, Handler, Method, Outcome, Verb},
};

const PATH: Parameter = Parameter::required("path", Kind::Path, "The znode's path");

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "get",
        method: Method::Get,
        summary: "The data and stat of a znode",
        parameters: &[PATH],
        plain: None,
        answer: || {
            let answer =
                |field, data| schema::object(&[(field, data), ("stat", json::stat_schema())]);
            json!({"oneOf": [
                answer("data", schema::or_null(schema::text())),
                answer("data_base64", schema::text()),
            ]})
        },
        handler: Handler::AtOnce(|call| {
            let path = call.arguments.text("path")?;
            let (data, stat) = call.universe.get(path).ok_or_else(|| no_znode(path))?;
            let mut answer = Map::new();
            json::put_data(&mut answer, data);
            answer.insert("stat".to_owned(), json::stat(&stat));
            Ok(answer.into())
        }),
    },
    Verb {
        name: "children",
        method: Method::Get,
        summary: "The names of a znode's children, oldest first",
        parameters: &[PATH],
        plain: None,
        answer: || schema::object(&[("children", schema::list(&schema::text()))]),
        handler: Handler::AtOnce(|call| {
            let path = call.arguments.text("path")?;
            let children = call.universe.children(path).ok_or_else(|| no_znode(path))?;
            Ok(json!({"children": children}))
        }),
    },
    Verb {
        name: "dump",
        method: Method::Get,
        summary: "The whole state as text",
        parameters: &[],
        plain: Some("dump"),
        answer: || schema::object(&[("dump", schema::text())]),
        handler: Handler::AtOnce(|call| Ok(json!({"dump": call.universe.dump()}))),
    },
    Verb {
        name: "save",
        method: Method::Post,
        summary: "Save the state to the data directory now",
        parameters: &[],
        plain: None,
        answer: schema::nothing,
        handler: Handler::Waits(|call| Box::pin(save(call))),
    },
];

fn no_znode(path: &str) -> Fault {
    Fault::not_found(format!("no znode {path:?}"))
}

async fn save(call: &Call) -> Outcome {
    if call.universe.shared.config.data_dir.is_none() {
        return Err(Fault::cannot_now(
            "there is no data directory; start the server with --data-dir",
        ));
    }
    let saved = call.controls.saving.save().await;
    saved.map_err(|error| Fault::cannot_now(format!("not saved: {error}")))?;
    Ok(json!({}))
}
