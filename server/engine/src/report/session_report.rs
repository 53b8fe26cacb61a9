//! Everything about a session at once, and who watches a path: for tests that look inside.
//!
//! Nothing here changes anything; the order of every list follows from the state alone.
//!
//! Source: `docs/zookeeper-protocol.md` sections 9.1, 12.1 and 14.

use minikeeper_protocol::SessionId;

use crate::{
    Engine,
    auth::{digest_and_ip as identity, identities::Scheme},
    input::ConnId,
    state::{
        watch_modes::Modes,
        watches::{Place, Watch},
    },
};

/// In which way a path is watched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum WatchKind {
    /// Once, the znode: set by getData and exists.
    Data,
    /// Once, the list of its children: set by getChildren.
    Children,
    /// Until removed, both.
    Persistent,
    /// Until removed, the znode and everything below it.
    PersistentRecursive,
}

impl WatchKind {
    /// In lower case, with underscores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Children => "children",
            Self::Persistent => "persistent",
            Self::PersistentRecursive => "persistent_recursive",
        }
    }

    /// Those that a watch was registered as.
    fn of(watch: &Watch) -> impl Iterator<Item = Self> + use<> {
        let Watch { data, child, .. } = *watch;
        let both = data.with(child);
        [
            (Self::Data, data.has(Modes::STANDARD)),
            (Self::Children, child.has(Modes::STANDARD)),
            (Self::Persistent, both.has(Modes::PERSISTENT)),
            (Self::PersistentRecursive, both.has(Modes::RECURSIVE)),
        ]
        .into_iter()
        .filter_map(|(kind, is_set)| is_set.then_some(kind))
    }
}

impl std::fmt::Display for WatchKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A session, with everything that is its.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionReport {
    /// Its id.
    pub id: SessionId,
    /// Its timeout as negotiated. Unit: milliseconds.
    pub timeout_ms: u32,
    /// When it expires unless it is heard of, in milliseconds since the start.
    pub deadline_ms: u64,
    /// The connection it has now.
    pub conn: Option<ConnId>,
    /// Scheme and id of what that connection has proven, as whoAmI tells it: without passwords.
    pub identities: Vec<(&'static str, String)>,
    /// The paths of its ephemerals, oldest first.
    pub ephemerals: Vec<String>,
    /// What it watches, by path.
    pub watches: Vec<(String, WatchKind)>,
}

impl Engine {
    /// Everything about every session, in the order of the table.
    pub fn session_reports(&self) -> impl Iterator<Item = SessionReport> {
        let sessions = &self.state.sessions;
        sessions.iter().map(|(key, session)| SessionReport {
            id: session.id,
            timeout_ms: session.timeout_ms,
            deadline_ms: sessions.deadline_ms(key),
            conn: session.conn,
            identities: session
                .conn
                .map(|conn| self.identities(conn))
                .unwrap_or_default(),
            ephemerals: session
                .ephemerals
                .iter()
                .map(|(_, id)| text(self.state.tree[*id].path()))
                .collect(),
            watches: session
                .conn
                .map(|conn| self.watches_of(conn))
                .unwrap_or_default(),
        })
    }

    /// What a connection has proven: scheme and id, as whoAmI tells it.
    #[must_use]
    pub fn identities(&self, conn: ConnId) -> Vec<(&'static str, String)> {
        let Some(conn) = self.state.conns.announced(conn) else {
            return Vec::new();
        };
        let who = self.state.identities.get(conn.identities);
        let mut identities = vec![(Scheme::Ip.name(), identity::ip_identity(who.address))];
        identities.extend(who.added().iter().map(|identity| {
            let id = text(identity.id.as_bytes());
            let shown = match identity.scheme {
                // Behind the colon is a hash of the password.
                Scheme::Digest => id.split(':').next().unwrap_or_default().to_owned(),
                Scheme::Super => String::new(),
                _ => id,
            };
            (identity.scheme.name(), shown)
        }));
        identities
    }

    fn watches_of(&self, conn: ConnId) -> Vec<(String, WatchKind)> {
        let (watches, tree) = (&self.state.watches, &self.state.tree);
        let mut list: Vec<_> = watches
            .conn_watches(conn)
            .flat_map(|id| {
                let watch = watches.at(id);
                let path = watches.path(tree, watch.place);
                WatchKind::of(watch).map(move |kind| (text(path), kind))
            })
            .collect();
        list.sort_unstable();
        list
    }

    /// Whether somebody would hear of a change at this path: by a watch on it, or by a recursive
    /// one on an ancestor.
    #[must_use]
    pub fn is_watched(&self, path: &str) -> bool {
        let (watches, tree) = (&self.state.watches, &self.state.tree);
        let is_recursive = |place| {
            let ring = watches.ring(tree, place).unwrap_or_default();
            ring.into_iter()
                .any(|id| watches.at(id).data.has(Modes::RECURSIVE))
        };
        let place = |path| watches.place(tree, path);
        let is_at = |place: Place| {
            watches
                .ring(tree, place)
                .is_some_and(|ring| !ring.is_empty())
        };
        place(path.as_bytes()).is_some_and(is_at)
            || ancestors(path).any(|path| place(path.as_bytes()).is_some_and(is_recursive))
    }

    /// What is watched, by path, each way once; no more than asked for. Looks at every watch.
    #[must_use]
    pub fn watched_paths(&self, max: usize) -> Vec<(String, WatchKind)> {
        let (watches, tree) = (&self.state.watches, &self.state.tree);
        let mut list: Vec<_> = watches
            .iter(tree)
            .flat_map(|(_, watch, path)| WatchKind::of(watch).map(move |kind| (path, kind)))
            .collect();
        list.sort_unstable();
        list.dedup();
        let rows = list.into_iter().take(max);
        rows.map(|(path, kind)| (text(path), kind)).collect()
    }
}

/// The paths above a path, the root last.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| match (path.rfind('/')?, path.len()) {
        (0, 1) => None,
        (0, _) => Some("/"),
        (end, _) => Some(&path[..end]),
    })
    .skip(1)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_lead_to_the_root() {
        for (path, above) in [
            ("/", &[][..]),
            ("/a", &["/"]),
            ("/a/b/c", &["/a/b", "/a", "/"]),
            ("no path", &[]),
        ] {
            assert_eq!(ancestors(path).collect::<Vec<_>>(), above, "{path}");
        }
    }
}
