//! The tree.

use serde_json::{Map, json};

use crate::{
    control::{
        error::ControlError,
        json,
        parameter::{Parameter, ParameterKind},
        verb::{Field, FieldKind, Handler, Method, Verb},
    },
    tree::Tree,
    universe::seeding::SeedError,
};

const PATH: Parameter = Parameter::required("path", ParameterKind::Path, "The znode's path");

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "get",
        method: Method::Get,
        docs: "Read the data and stat of a znode\n\n\
               Fails (404) if there is no such znode.",
        parameters: &[PATH],
        plain: None,
        answer: &[
            Field::new("data", FieldKind::Data).help("Its data, null if it has none"),
            Field::new("stat", FieldKind::Stat).help("Its metadata"),
        ],
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
        docs: "List the names of a znode's children, oldest first\n\n\
               Fails (404) if there is no such znode.",
        parameters: &[PATH],
        plain: None,
        answer: &[Field::new("children", FieldKind::Texts)],
        handler: Handler::AtOnce(|call| {
            let path = call.arguments.text("path")?;
            let children = call.universe.children(path).ok_or_else(|| no_znode(path))?;
            Ok(json!({"children": children}))
        }),
    },
    Verb {
        name: "dump",
        method: Method::Get,
        docs: "Print znodes, sessions and watches as text; equal trees give equal text",
        parameters: &[],
        plain: Some("dump"),
        answer: &[Field::new("dump", FieldKind::Text)],
        handler: Handler::AtOnce(|call| Ok(json!({"dump": call.universe.dump()}))),
    },
    Verb {
        name: "export_tree",
        method: Method::Get,
        docs: "Export the tree in the format of `seed`, without /zookeeper; lists ephemerals separately",
        parameters: &[Parameter::optional(
            "format",
            ParameterKind::OneOf(&["json", "yaml"]),
            "Whether to return the tree as a JSON object or as YAML text",
        )
        .with_default("json")],
        plain: Some("tree"),
        answer: &[
            Field::new("tree", FieldKind::Tree),
            Field::new("ephemerals", FieldKind::Texts),
        ],
        handler: Handler::AtOnce(|call| {
            let tree = call.universe.export_tree();
            let tree = match call.arguments.text("format")? {
                "yaml" => tree.to_yaml().into(),
                _ => tree.to_json_value(),
            };
            Ok(json!({"tree": tree, "ephemerals": call.universe.ephemerals()}))
        }),
    },
    Verb {
        name: "seed",
        method: Method::Post,
        docs: "Create the znodes of a tree that are missing and set those that differ, in one turn\n\n\
               Missing parents are created. A znode of the tree is its data, or an object with \
               the fields `data`, `acl`, `container` and `ttl_ms`.",
        parameters: &[Parameter::required(
            "file",
            ParameterKind::Tree,
            "A tree in YAML or JSON (.json); - reads stdin",
        )],
        plain: None,
        answer: &[
            Field::new("created", FieldKind::Count).help("How many znodes were created"),
            Field::new("changed", FieldKind::Count)
                .help("How many znodes got different data or a different ACL"),
        ],
        handler: Handler::AtOnce(|call| {
            let tree = match call.arguments.alternative(ParameterKind::Tree)? {
                ("yaml", text) => Tree::from_yaml(text.as_str().unwrap_or_default()),
                (_, value) => Tree::from_value(value),
            };
            let tree = tree.map_err(|error| ControlError::bad_input(error.to_string()))?;
            let seeded = call.universe.seed(&tree).map_err(not_seeded)?;
            Ok(json!({"created": seeded.created, "changed": seeded.changed}))
        }),
    },
];

/// Tells a tree that is always invalid (400) from one that the current state refuses (409).
fn not_seeded(error: SeedError) -> ControlError {
    match error {
        SeedError::Lifetime { .. }
        | SeedError::ParentIsEphemeral { .. }
        | SeedError::TreeTooLarge { .. }
        | SeedError::Refused { .. }
        | SeedError::Stopped => ControlError::cannot_now(error.to_string()),
        _ => ControlError::bad_input(error.to_string()),
    }
}

fn no_znode(path: &str) -> ControlError {
    ControlError::not_found(format!("no znode {path:?}"))
}
