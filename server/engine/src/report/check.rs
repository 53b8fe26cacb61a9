//! Verifies every invariant of the whole state. For tests and fuzzing: it reads everything.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use minikeeper_protocol::path;

use crate::state::{
    State,
    keys::{SessionKey, WatchId, ZnodeId},
    quota::Role,
    tree::ZNODE_BYTES,
    watches::Place,
};

/// An invariant that does not hold: a bug.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken(String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken invariant: {}", self.0)
    }
}

impl std::error::Error for Broken {}

macro_rules! ensure {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err(Broken(format!($($text)+)));
        }
    };
}

pub(crate) fn check(state: &State) -> Result<(), Broken> {
    check_tree(state)?;
    check_sessions(state)?;
    check_wheel(state)?;
    check_watches(state)?;
    check_acls(state)?;
    check_identities(state)?;
    check_special(state)?;
    ensure!(!state.undo.is_in_multi(), "a multi is not over");
    ensure!(
        state.undo.has_marks() || state.undo.is_clear(),
        "changes are recorded without a mark"
    );
    Ok(())
}

fn text(path: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(path)
}

/// Checks that index and arena are one-to-one, parents and children agree both ways, no zxid is
/// from the future, and totals are sums.
fn check_tree(state: &State) -> Result<(), Broken> {
    let tree = &state.tree;
    let (mut bytes, mut ephemerals, mut reachable) = (0, 0, 1);
    for (id, znode) in tree.iter() {
        let path = znode.path();
        let name = text(path);
        ensure!(
            tree.find(path) == Some(id),
            "{name}: the index does not find it"
        );
        ensure!(path::is_valid(path), "{name}: invalid path");
        bytes += ZNODE_BYTES + znode.body_bytes();
        ephemerals += usize::from(znode.owner.is_ephemeral());
        for zxid in [znode.czxid, znode.mzxid, znode.pzxid()] {
            ensure!(
                zxid <= state.zxid,
                "{name}: zxid {zxid} is above {}",
                state.zxid
            );
        }
        if id == ZnodeId::ROOT {
            ensure!(
                znode.parent == ZnodeId::NONE && path == b"/",
                "the root has a parent"
            );
        } else {
            let parent = tree.find(path::parent_of(path).unwrap_or_default());
            ensure!(
                parent == Some(znode.parent),
                "{name}: its parent is another znode"
            );
        }
        ensure!(
            !znode.owner.is_ephemeral() || znode.num_children() == 0,
            "{name}: ephemeral with children"
        );
        let (mut prev, mut count, mut names_bytes) = (ZnodeId::NONE, 0, 0);
        for child_id in tree.children(id) {
            let child = &tree[child_id];
            ensure!(
                child.parent == id,
                "{}: in the list of another parent",
                text(child.path())
            );
            ensure!(
                child.prev == prev,
                "{}: sibling links disagree",
                text(child.path())
            );
            ensure!(
                znode.pzxid() >= child.czxid || znode.created_children() == i32::MAX,
                "{name}: pzxid is below the czxid of a child"
            );
            names_bytes += child.name().len();
            (prev, count) = (child_id, count + 1);
            ensure!(count <= tree.len(), "{name}: its children form a ring");
        }
        ensure!(
            count == znode.num_children() as usize,
            "{name}: {count} children are linked"
        );
        ensure!(
            names_bytes == znode.names_bytes(),
            "{name}: the names of its children have {names_bytes} bytes, counted {}",
            znode.names_bytes()
        );
        let last = znode
            .family
            .as_ref()
            .map_or(ZnodeId::NONE, |family| family.last);
        ensure!(last == prev, "{name}: its last child is another one");
        reachable += count;
    }
    ensure!(
        reachable == tree.len(),
        "{reachable} znodes are reachable of {}",
        tree.len()
    );
    ensure!(
        bytes == tree.bytes(),
        "the tree has {bytes} bytes, counted {}",
        tree.bytes()
    );
    ensure!(
        ephemerals == tree.ephemerals(),
        "there are {ephemerals} ephemerals"
    );
    Ok(())
}

/// Checks that exactly its owner lists each ephemeral, and that sessions and connections agree.
fn check_sessions(state: &State) -> Result<(), Broken> {
    let mut listed = BTreeSet::new();
    for (key, session) in state.sessions.iter() {
        ensure!(
            state.sessions.find(session.id) == Some(key),
            "{}: not in the index",
            session.id
        );
        for &(czxid, id) in &session.ephemerals {
            let znode = &state.tree[id];
            ensure!(
                znode.owner.is_ephemeral() && znode.owner.0 == session.id.0,
                "{}: lists {} of another owner",
                session.id,
                text(znode.path())
            );
            ensure!(
                znode.czxid == czxid,
                "{}: lists a stale ephemeral",
                session.id
            );
            listed.insert(id);
        }
        if let Some(conn) = session.conn {
            ensure!(
                state.session_of(conn) == Some(key),
                "{}: its connection {conn} has another session",
                session.id
            );
        }
    }
    for (id, znode) in state.tree.iter() {
        ensure!(
            znode.owner.is_ephemeral() == listed.contains(&id),
            "{}: ephemeral without a living owner",
            text(znode.path())
        );
    }
    for (conn, entry) in state.conns.iter() {
        ensure!(
            entry.session == SessionKey::NONE || state.sessions[entry.session].conn == Some(conn),
            "connection {conn}: its session has another connection"
        );
    }
    Ok(())
}

/// Checks that every session is in exactly one bucket.
fn check_wheel(state: &State) -> Result<(), Broken> {
    let listed = state.sessions.expiry().sessions();
    ensure!(listed.is_some(), "the links of an expiry bucket disagree");
    let listed = listed.unwrap_or_default();
    let distinct: BTreeSet<_> = listed.iter().map(|key| key.0).collect();
    ensure!(
        distinct.len() == listed.len(),
        "a session is in two buckets"
    );
    let living: BTreeSet<_> = state.sessions.iter().map(|(key, _)| key.0).collect();
    ensure!(
        distinct == living,
        "{} sessions exist, {} are in buckets",
        living.len(),
        listed.len()
    );
    Ok(())
}

/// Checks that the rings of paths and the lists of connections contain the same watches, each once.
fn check_watches(state: &State) -> Result<(), Broken> {
    let (tree, watches) = (&state.tree, &state.watches);
    let mut in_rings = BTreeMap::new();
    let znodes = tree
        .iter()
        .filter(|(_, znode)| znode.watched != WatchId::NONE);
    let places = znodes
        .map(|(id, _)| Place::Znode(id))
        .chain(watches.absent_paths().map(|(place, _)| place));
    for place in places {
        let ring = watches.ring(tree, place);
        ensure!(ring.is_some(), "the ring of watches at {place:?} is broken");
        for id in ring.unwrap_or_default() {
            ensure!(
                in_rings.insert(id.0, place).is_none(),
                "watch {id:?} is in two rings"
            );
        }
    }
    for (_, path) in watches.absent_paths() {
        ensure!(
            tree.find(path).is_none(),
            "{}: watched as absent, but exists",
            text(path)
        );
    }
    let (mut count, mut recursive, mut in_both) = (0, 0, 0);
    let (mut ended, mut ended_in_both) = (0, 0);
    for (id, watch, path) in watches.iter(tree) {
        let path = text(path);
        ensure!(
            in_rings.get(&id.0) == Some(&watch.place),
            "watch on {path}: not in its ring"
        );
        ensure!(
            !watch.data.is_empty() || !watch.child.is_empty(),
            "watch on {path}: without a mode"
        );
        if let Some(conn) = watches.conn_of(watch) {
            ensure!(
                state.session_of(conn).is_some(),
                "watch on {path}: connection {conn} has no session"
            );
            ensure!(
                watches.conn_watches(conn).any(|other| other == id),
                "watch on {path}: connection {conn} does not list it"
            );
            in_both += usize::from(watch.is_in_both());
        } else {
            ensure!(
                watches.watches_of(watch.watcher).any(|other| other == id),
                "watch on {path}: its ended watcher does not list it"
            );
            ended += 1;
            ended_in_both += usize::from(watch.is_in_both());
        }
        count += 1;
        recursive += usize::from(watch.data.has(crate::state::watches::Modes::RECURSIVE));
    }
    ensure!(
        count == in_rings.len(),
        "{count} watches, {} in rings",
        in_rings.len()
    );
    ensure!(
        count == watches.index_len(),
        "{count} watches, {} indexed",
        watches.index_len()
    );
    ensure!(
        recursive == watches.recursive(),
        "{recursive} watches are recursive"
    );
    ensure!(
        in_both == watches.in_both(),
        "{in_both} watches are in both tables"
    );
    let (watchers, counted, counted_in_both) = watches.ended();
    ensure!(
        (ended, ended_in_both) == (counted, counted_in_both) && (ended == 0 || watchers > 0),
        "{ended} watches of ended connections, {ended_in_both} of them in both tables; counted \
         {counted} and {counted_in_both}"
    );
    Ok(())
}

/// Checks that the uses of each set of identities equal the connections that have it.
fn check_identities(state: &State) -> Result<(), Broken> {
    for (identities, users) in state.identities.users() {
        let conns = state.conns.iter();
        let used = conns
            .filter(|(_, conn)| conn.identities == identities)
            .count();
        ensure!(
            used == users,
            "identities {identities:?}: {used} connections have them, counted {users}"
        );
    }
    Ok(())
}

/// Checks that the collectables and quotas are those of the tree.
fn check_special(state: &State) -> Result<(), Broken> {
    let collectables = state
        .tree
        .iter()
        .filter(|(_, znode)| znode.owner.is_collectable());
    ensure!(
        collectables.map(|(id, _)| id).collect::<BTreeSet<_>>() == state.collectables,
        "the containers and times to live in the tree are not the collectables"
    );
    ensure!(
        state.collectables.is_empty()
            || state.cleanup_ms.is_some()
            || state.settings.container_check_interval_ms == 0,
        "no check of containers is scheduled"
    );
    let limited = state
        .tree
        .iter()
        .filter_map(|(_, znode)| match Role::of(znode.path()) {
            Role::Limits(subject) => Some(subject),
            _ => None,
        });
    ensure!(
        limited.collect::<BTreeSet<_>>() == state.quotas.limited().collect(),
        "the quotas in the tree are not those that count"
    );
    Ok(())
}

/// Checks that the uses of each access list equal those by znodes and by the undo list.
fn check_acls(state: &State) -> Result<(), Broken> {
    for (acl, users) in state.acls.users() {
        let used = state
            .tree
            .iter()
            .filter(|(_, znode)| znode.acl == acl)
            .count();
        let kept = state.undo.acls().filter(|kept| *kept == acl).count();
        ensure!(
            used + kept == users,
            "access list {acl:?}: {used} znodes and {kept} changes use it, counted {users}"
        );
    }
    Ok(())
}
