//! Listings in ZooKeeper's order.

use super::*;

/// Captured from `java.util.HashSet` of OpenJDK 17: added (+) and removed (-) names, then the
/// order.
const HISTORIES: &str = include_str!("listings.txt");

fn in_java_order() -> Engine {
    engine(
        1,
        Settings {
            java_listing_order: true,
            ..Settings::default()
        },
    )
}

/// Returns the names in the order in which they are sent.
fn names(engine: &Engine, path: &str) -> Vec<String> {
    let tree = &engine.state.tree;
    tree.listing(tree.find(path.as_bytes()).unwrap())
        .map(|child| String::from_utf8(tree[child].name().to_vec()).unwrap())
        .collect()
}

fn step(engine: &mut Engine, parent: &str, step: &str) {
    let (what, name) = step.split_at(1);
    let path = format!("{parent}/{name}");
    let asked = match what {
        "+" => create(&path, CreateMode::Persistent),
        _ => delete(&path),
    };
    outcome(engine, 0, asked).unwrap();
}

#[test]
fn children_are_listed_in_the_order_of_a_java_hash_set() {
    let lines: Vec<_> = HISTORIES.lines().collect();
    assert_eq!(lines.len(), 12);
    for history in lines.chunks(2) {
        let mut engine = in_java_order();
        outcome(&mut engine, 0, create("/p", CreateMode::Persistent)).unwrap();
        for change in history[0].split(' ') {
            step(&mut engine, "/p", change);
        }
        let listed = names(&engine, "/p");
        assert_eq!(listed.join(" "), history[1]);
        // A fork continues with the same table.
        let fork = Engine {
            state: engine.state.fork(SessionId(9)),
            digests: None,
            elapsed_ms: 0,
        };
        assert_eq!(names(&fork, "/p"), listed);
    }
}

/// A table that grew during a failed multi is as small as before again.
#[test]
fn failed_multi_does_not_change_the_order_of_a_listing() {
    let mut engine = in_java_order();
    for number in 0..6 {
        step(&mut engine, "", &format!("+n{number}"));
    }
    let before = names(&engine, "/");
    let mut ops: Vec<_> = (6..60)
        .map(|number| create_op(&format!("/n{number}"), CreateMode::Persistent))
        .collect();
    ops.insert(0, delete_op("/n3"));
    ops.push(check_op("/absent"));
    request(&mut engine, 0, Request::Multi(ops));
    assert_eq!(names(&engine, "/"), before);
}

#[test]
fn children_are_listed_in_order_of_creation_by_default() {
    let mut engine = engine(1, Settings::default());
    for name in ["z", "a", "m"] {
        step(&mut engine, "", &format!("+{name}"));
    }
    assert_eq!(names(&engine, "/"), ["zookeeper", "z", "a", "m"]);
}
