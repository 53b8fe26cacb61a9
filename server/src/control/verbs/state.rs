//! The tree.

use minikeeper_core::trees::{Lifetime, Tree, Znode, seed_error::SeedError};
use minikeeper_protocol::ErrorCode;
use serde_json::{Map, Value, json};

use crate::{
    control::{
        error::ControlError,
        parameter::{Parameter, ParameterKind},
        verb::{Call, Handler, Method, Verb},
    },
    universe::{
        changes::ChangeError,
        inspect::{ChildOrder, ListedChild, ListedZnode},
    },
    views::{
        json,
        schema::{Field, FieldKind, Part},
    },
};

/// The limit of the entries of `tree`.
const TREE_ZNODES_MAX: u64 = 10_000;

const VERSION: Parameter = Parameter::required(
    "version",
    ParameterKind::Version,
    "The version that the znode must have; -1 for any",
)
.with_default("-1");

const PATH: Parameter = Parameter::required("path", ParameterKind::Path, "The znode's path");

pub(super) const MAX: Parameter = Parameter::required(
    "max",
    ParameterKind::Count(TREE_ZNODES_MAX),
    "The limit of the znodes to list, at most 10000",
)
.with_default("1000");

const STAT: Part = Part::new(
    "Stat",
    "The metadata of a znode",
    &[
        Field::new("czxid", FieldKind::Hex).help("The zxid of its creation"),
        Field::new("mzxid", FieldKind::Hex).help("The zxid of the last change of its data"),
        Field::new("pzxid", FieldKind::Hex).help("The zxid of the last change of its children"),
        Field::new("ctime_ms", FieldKind::UnixMs).help("When it was created"),
        Field::new("mtime_ms", FieldKind::UnixMs).help("When its data was changed last"),
        Field::new("version", FieldKind::Integer).help("The number of changes of its data"),
        Field::new("cversion", FieldKind::Integer).help("The number of changes of its children"),
        Field::new("aversion", FieldKind::Integer).help("The number of changes of its access list"),
        Field::new("ephemeral_owner", FieldKind::Session)
            .help("The session that owns it; 0x0 if it is not ephemeral"),
        Field::new("data_length", FieldKind::Integer).help("The length of its data in bytes"),
        Field::new("num_children", FieldKind::Integer).help("How many children it has"),
    ],
);

const ZNODE: Part = Part::new(
    "ListedZnode",
    "A znode, without its data",
    &[
        Field::new("path", FieldKind::Text),
        Field::optional("data_length", FieldKind::Count)
            .help("The length of its data; null if it has none"),
        Field::optional("ephemeral_owner", FieldKind::Session)
            .help("The session that owns it; null if it is not ephemeral"),
        Field::new("container", FieldKind::Flag).help("Whether it is a container"),
        Field::optional("ttl_ms", FieldKind::DurationMs).help("Its time to live; null without one"),
    ],
);

const CHILD: Part = Part::new(
    "ListedChild",
    "A child of a znode, without its data",
    &[
        Field::new("name", FieldKind::Text),
        Field::new("num_children", FieldKind::Count).help("How many children it has"),
        Field::optional("data_length", FieldKind::Count)
            .help("The length of its data; null if it has none"),
        Field::optional("ephemeral_owner", FieldKind::Session)
            .help("The session that owns it; null if it is not ephemeral"),
        Field::new("container", FieldKind::Flag).help("Whether it is a container"),
        Field::optional("ttl_ms", FieldKind::DurationMs).help("Its time to live; null without one"),
    ],
);

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
            Field::new("stat", FieldKind::Part(&STAT)).help("Its metadata"),
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
               The root of an empty tree has the child zookeeper, as in ZooKeeper; `export_tree` \
               leaves it out. Fails (404) if there is no such znode.",
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
        name: "list_children",
        method: Method::Get,
        docs: "List a znode's children sorted by name, some at a time\n\n\
               Pass the last name as `after` to read on. In another order the first ones are listed, and \
               equal ones by name. `total` is the number of children that \
               contain the text, and `is_truncated` says whether there are more after the last one. \
               Fails (404) if there is no such znode.",
        parameters: &[
            PATH,
            Parameter::required(
                "after",
                ParameterKind::Text,
                "Only children whose names are after this one",
            )
            .with_default(""),
            Parameter::required(
                "containing",
                ParameterKind::Text,
                "Only children whose names contain this text",
            )
            .with_default(""),
            MAX,
            Parameter::required(
                "sort_by",
                ParameterKind::OneOf(ChildOrder::NAMES),
                "By name, the newest first, or those with the most children first",
            )
            .with_default("name"),
        ],
        plain: None,
        answer: &[
            Field::new("children", FieldKind::Parts(&CHILD)).help("The children, in the order"),
            Field::new("total", FieldKind::Count).help("How many match, listed or not"),
            Field::new("is_truncated", FieldKind::Flag).help("Whether there are more"),
        ],
        handler: Handler::AtOnce(|call| {
            let text = |name| call.arguments.text(name);
            let (path, after) = (text("path")?, text("after")?);
            let order = ChildOrder::named(text("sort_by")?);
            let which = (after, text("containing")?);
            let listing = (call.universe).list_children_by(order, path, which, max(call)?);
            let listing = listing.ok_or_else(|| no_znode(path))?;
            let children: Vec<_> = listing.children.iter().map(child).collect();
            Ok(json!({
                "children": children,
                "total": listing.total,
                "is_truncated": listing.is_truncated,
            }))
        }),
    },
    Verb {
        name: "find_znodes",
        method: Method::Get,
        docs: "Find znodes whose path contains a text, or whose data does\n\n\
               Returns the paths, children by name below their parent. Upper and lower case differ. \
               Fails (404) if there is no znode to begin at.",
        parameters: &[
            Parameter::required("containing", ParameterKind::Text, "The text to find"),
            Parameter::required("path", ParameterKind::Path, "The top of the subtree")
                .with_default("/"),
            Parameter::required(
                "in_data",
                ParameterKind::Flag,
                "Whether to search the data of znodes too",
            )
            .with_default("false"),
            MAX,
        ],
        plain: None,
        answer: &[
            Field::new("paths", FieldKind::Texts),
            Field::new("is_truncated", FieldKind::Flag).help("Whether there are more"),
        ],
        handler: Handler::AtOnce(|call| {
            let (text, path) = (
                call.arguments.text("containing")?,
                call.arguments.text("path")?,
            );
            let in_data = call.arguments.flag("in_data");
            let found = call.universe.find_znodes(path, text, in_data, max(call)?);
            let (paths, is_truncated) = found.ok_or_else(|| no_znode(path))?;
            Ok(json!({"paths": paths, "is_truncated": is_truncated}))
        }),
    },
    Verb {
        name: "acl",
        method: Method::Get,
        docs: "Read the access list of a znode in ZooKeeper's notation, as in world:anyone:cdrwa\n\n\
               Fails (404) if there is no such znode.",
        parameters: &[PATH],
        plain: None,
        answer: &[Field::new("acl", FieldKind::Texts)],
        handler: Handler::AtOnce(|call| {
            let path = call.arguments.text("path")?;
            let acl = call.universe.acl(path).ok_or_else(|| no_znode(path))?;
            Ok(json!({"acl": acl}))
        }),
    },
    Verb {
        name: "tree",
        method: Method::Get,
        docs: "List a znode and everything below it, with data lengths and the owners of ephemerals\n\n\
               Children are sorted by name below their parent. `is_truncated` says whether znodes \
               after the last one are omitted; paths of more than 4 MiB are omitted too. \
               Fails (404) if there is no such znode.",
        parameters: &[
            Parameter::required("path", ParameterKind::Path, "The top of the subtree")
                .with_default("/"),
            MAX,
        ],
        plain: None,
        answer: &[
            Field::new("znodes", FieldKind::Parts(&ZNODE))
                .help("The znodes, parents before their children"),
            Field::new("is_truncated", FieldKind::Flag).help("Whether there are more"),
        ],
        handler: Handler::AtOnce(|call| {
            let path = call.arguments.text("path")?;
            let listing = call
                .universe
                .tree(path, max(call)?)
                .ok_or_else(|| no_znode(path))?;
            let znodes: Vec<_> = listing.znodes.iter().map(listed).collect();
            Ok(json!({"znodes": znodes, "is_truncated": listing.is_truncated}))
        }),
    },
    Verb {
        name: "create",
        method: Method::Post,
        docs: "Create a znode outside of any session; returns its path\n\n\
               The parent must exist. Watches fire as after a client's create; access lists are not \
               checked, and the znode is open to all clients. It cannot be ephemeral, because no \
               session would own it. Fails (409) if it exists already, and (404) without a parent.",
        parameters: &[
            PATH,
            Parameter::required("data", ParameterKind::Data, "The data; empty by default")
                .with_default(""),
            Parameter::required(
                "sequential",
                ParameterKind::Flag,
                "Whether to append a number to the name",
            )
            .with_default("false"),
            Parameter::required(
                "container",
                ParameterKind::Flag,
                "Whether the znode ends some time after its last child",
            )
            .with_default("false"),
            Parameter::required(
                "ttl_ms",
                ParameterKind::DurationMs,
                "The time to live without children and new data; 0 for no limit",
            )
            .with_default("0"),
        ],
        plain: Some("path"),
        answer: &[Field::new("path", FieldKind::Text).help("Its path")],
        handler: Handler::AtOnce(|call| {
            let (path, flag) = (call.arguments.text("path")?, |name| {
                call.arguments.flag(name)
            });
            let ttl = call.arguments.duration("ttl_ms")?;
            let znode = Znode::from(call.arguments.data()?);
            let znode = match (flag("container"), ttl.is_zero()) {
                (false, true) => znode,
                (true, true) => znode.container(),
                (false, false) => znode.time_to_live(ttl),
                (true, false) => {
                    return Err(ControlError::bad_input(
                        "give at most one of container, ttl_ms",
                    ));
                }
            };
            let path = if flag("sequential") {
                call.universe.create_sequential(path, znode)
            } else {
                let created = call.universe.create(path, znode);
                created.map(|()| path.to_owned())
            };
            Ok(json!({"path": path.map_err(not_changed)?}))
        }),
    },
    Verb {
        name: "set",
        method: Method::Post,
        docs: "Set the data of a znode outside of any session; returns its new version\n\n\
               Watches fire as after a client's setData; access lists are not checked. Fails (404) if \
               there is no such znode, and (409) if it has another version.",
        parameters: &[
            PATH,
            Parameter::required("data", ParameterKind::Data, "The data"),
            VERSION,
        ],
        plain: None,
        answer: &[Field::new("version", FieldKind::Count)],
        handler: Handler::AtOnce(|call| {
            let (path, data) = (call.arguments.text("path")?, call.arguments.data()?);
            let version = call.arguments.version("version")?;
            let stat = call
                .universe
                .set(path, data, version)
                .map_err(not_changed)?;
            Ok(json!({"version": stat.version}))
        }),
    },
    Verb {
        name: "delete",
        method: Method::Post,
        docs: "Delete a znode outside of any session; returns how many znodes were deleted\n\n\
               Watches fire as after a client's delete; access lists are not checked. Fails (404) if \
               there is no such znode, and (409) if it has another version, or has children and \
               `recursive` is not set.",
        parameters: &[
            PATH,
            VERSION,
            Parameter::required(
                "recursive",
                ParameterKind::Flag,
                "Whether to delete everything below it too; more than 1,000 znodes in several turns",
            )
            .with_default("false"),
        ],
        plain: None,
        answer: &[Field::new("deleted", FieldKind::Count)],
        handler: Handler::AtOnce(|call| {
            let path = call.arguments.text("path")?;
            let version = call.arguments.version("version")?;
            let deleted = if call.arguments.flag("recursive") {
                call.universe.delete_recursively(path, version)
            } else {
                call.universe.delete(path, version).map(|()| 1)
            };
            Ok(json!({"deleted": deleted.map_err(not_changed)?}))
        }),
    },
    Verb {
        name: "dump",
        method: Method::Get,
        docs: "Print znodes, sessions and watches as text; equal trees give equal text\n\n\
               Whatever depends on the time and order of changes is left out: sessions are numbered \
               in the order of what they own. Children are sorted by name, data is quoted or escaped, \
               and access lists that are open to all clients are omitted.",
        parameters: &[Parameter::required(
            "ids",
            ParameterKind::Flag,
            "Whether to print session ids, zxids, times and versions too",
        )
        .with_default("false")],
        plain: Some("dump"),
        answer: &[Field::new("dump", FieldKind::Text)],
        handler: Handler::AtOnce(|call| {
            let dump = match call.arguments.flag("ids") {
                true => call.universe.dump_with_ids(),
                false => call.universe.dump(),
            };
            Ok(json!({"dump": dump}))
        }),
    },
    Verb {
        name: "export_tree",
        method: Method::Get,
        docs: "Export the tree in the format of `seed`, without /zookeeper; lists ephemerals separately\n\n\
               Fails (404) if there is no such znode.",
        parameters: &[
            Parameter::optional(
                "format",
                ParameterKind::OneOf(&["json", "yaml"]),
                "Whether to return the tree as a JSON object or as YAML text",
            )
            .with_default("json"),
            Parameter::required("path", ParameterKind::Path, "The top of the subtree")
                .with_default("/"),
        ],
        plain: Some("tree"),
        answer: &[
            Field::new("tree", FieldKind::Tree),
            Field::new("ephemerals", FieldKind::Texts),
        ],
        handler: Handler::AtOnce(|call| {
            let path = call.arguments.text("path")?;
            let exported = call.universe.export_with_ephemerals(path);
            let (tree, ephemerals) = exported.ok_or_else(|| no_znode(path))?;
            let tree = match call.arguments.text("format")? {
                "yaml" => tree.to_yaml().into(),
                _ => tree.to_json_value(),
            };
            Ok(json!({"tree": tree, "ephemerals": ephemerals}))
        }),
    },
    Verb {
        name: "seed",
        method: Method::Post,
        docs: "Create the znodes of a tree that are missing and set those that differ\n\n\
               A tree of up to 1,000 znodes and 1 MiB is seeded in one turn, a larger one in several: \
               clients are served in between and may see its first part. \
               Missing parents are created. A znode of the tree is its data, or an object with \
               the fields data, acl, container and ttl_ms.",
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

/// Tells a missing znode (404) from one in another state (409) and from a wrong request (400).
fn not_changed(error: ChangeError) -> ControlError {
    match error {
        ChangeError::Invalid(error) => not_seeded(error),
        ChangeError::Root | ChangeError::SequentialContainer => {
            ControlError::bad_input(error.to_string())
        }
        ChangeError::NoParent { .. }
        | ChangeError::Refused {
            error: ErrorCode::NoNode,
            ..
        } => ControlError::not_found(error.to_string()),
        _ => ControlError::cannot_now(error.to_string()),
    }
}

fn listed(znode: &ListedZnode) -> Value {
    json!({
        "path": znode.path,
        "data_length": znode.data_length,
        "ephemeral_owner": znode.owner.map(|owner| owner.to_string()),
        "container": znode.lifetime == Lifetime::Container,
        "ttl_ms": ttl_ms(znode.lifetime),
    })
}

fn child(child: &ListedChild) -> Value {
    json!({
        "name": child.name,
        "num_children": child.num_children,
        "data_length": child.data_length,
        "ephemeral_owner": child.owner.map(|owner| owner.to_string()),
        "container": child.lifetime == Lifetime::Container,
        "ttl_ms": ttl_ms(child.lifetime),
    })
}

fn ttl_ms(lifetime: Lifetime) -> Option<u64> {
    match lifetime {
        Lifetime::TimeToLive(ttl) => u64::try_from(ttl.as_millis()).ok(),
        _ => None,
    }
}

pub(super) fn max(call: &Call) -> Result<usize, ControlError> {
    let max = call.arguments.count("max")?;
    Ok(usize::try_from(max).unwrap_or(usize::MAX))
}

fn no_znode(path: &str) -> ControlError {
    ControlError::not_found(format!("no znode {path:?}"))
}
