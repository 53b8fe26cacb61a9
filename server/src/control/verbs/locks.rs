//! Locks and their contenders.

use crate::{
    control::verb::{Handler, Method, Verb},
    views::{
        locks,
        schema::{Field, FieldKind},
    },
};

pub(super) const VERBS: &[Verb] = &[Verb {
    name: "locks",
    method: Method::Get,
    docs: "List every lock, semaphore and election: who holds it, who waits for whom, what is wrong\n\n\
           Recognises the znodes of Curator, kazoo, go-zookeeper, ZooKeeper's own recipes and the \
           Rust crates by their names. A deadlock is a cycle of sessions that wait for each other \
           over several locks. Lists at most 1000 locks and 10000 contenders, 1000 of one lock.",
    parameters: &[],
    plain: None,
    answer: &[
        Field::new("locks", FieldKind::Parts(&locks::LOCK)).help("The locks, by path"),
        Field::new("deadlocks", FieldKind::Parts(&locks::DEADLOCK))
            .help("The deadlocks, each with its cycle"),
        Field::new("is_truncated", FieldKind::Flag)
            .help("Whether there are more locks or contenders than listed"),
        Field::new("text", FieldKind::Text).help("The same for people"),
    ],
    handler: Handler::AtOnce(|call| Ok(locks::locks(&call.universe.locks()))),
}];
