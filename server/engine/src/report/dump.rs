//! Prints the whole state as text. Equal states give equal texts.

use std::fmt::Write as _;

use crate::state::{State, keys::SessionKey, znode::Owner};

pub(crate) fn dump(state: &State) -> String {
    let mut out = String::new();
    write_all(state, &mut out).expect("writing to a string cannot fail");
    out
}

fn write_all(state: &State, out: &mut String) -> std::fmt::Result {
    writeln!(out, "zxid {}", state.zxid)?;
    let mut znodes: Vec<_> = state.tree.iter().map(|(_, znode)| znode).collect();
    znodes.sort_unstable_by_key(|znode| znode.path());
    for znode in znodes {
        let stat = znode.stat();
        write!(out, "znode {}", String::from_utf8_lossy(znode.path()))?;
        match znode.data() {
            None => write!(out, " null")?,
            // Keeps every byte, so that different states never look alike.
            Some(data) => write!(out, " \"{}\"", data.escape_ascii())?,
        }
        write!(
            out,
            " czxid {} mzxid {} pzxid {} ctime {} mtime {}",
            stat.czxid, stat.mzxid, stat.pzxid, stat.ctime_ms, stat.mtime_ms
        )?;
        write!(
            out,
            " version {} cversion {} aversion {} created {}",
            stat.version,
            stat.cversion,
            stat.aversion,
            znode.created_children()
        )?;
        if znode.owner.is_ephemeral() {
            write!(out, " owner {}", stat.ephemeral_owner)?;
        } else if znode.owner == Owner::CONTAINER {
            write!(out, " container")?;
        } else if let Some(ttl_ms) = znode.owner.ttl_ms() {
            write!(out, " ttl {ttl_ms} ms")?;
        }
        writeln!(out, " acl {:?}", state.acls.get(znode.acl))?;
    }
    let mut sessions: Vec<_> = state.sessions.iter().collect();
    sessions.sort_unstable_by_key(|(_, session)| session.id);
    for (key, session) in sessions {
        write_session(state, key, out)?;
        match session.conn {
            Some(conn) => writeln!(out, " conn {conn}")?,
            None => writeln!(out, " no conn")?,
        }
        for (_, id) in &session.ephemerals {
            writeln!(
                out,
                "  ephemeral {}",
                String::from_utf8_lossy(state.tree[*id].path())
            )?;
        }
    }
    let watches = state.watches.iter(&state.tree);
    let mut watches: Vec<_> = watches
        .filter_map(|(_, watch, path)| Some((path, state.watches.conn_of(watch)?, watch)))
        .collect();
    watches.sort_unstable_by_key(|(path, conn, _)| (*path, *conn));
    for (path, conn, watch) in watches {
        let path = String::from_utf8_lossy(path);
        writeln!(
            out,
            "watch {path} conn {} data {} child {}",
            conn, watch.data, watch.child
        )?;
    }
    Ok(())
}

fn write_session(state: &State, key: SessionKey, out: &mut String) -> std::fmt::Result {
    let session = &state.sessions[key];
    let deadline_ms = state.sessions.deadline_ms(key);
    write!(
        out,
        "session {} timeout {} ms due {deadline_ms} ms",
        session.id, session.timeout_ms
    )
}
