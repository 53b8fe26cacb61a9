//! A naive tree that random operations are compared with.
//!
//! It is written from `docs/zookeeper-protocol.md` alone and shares no code with the engine: every
//! lookup walks a map of paths, children are found by a scan of all paths, and a multi works on a
//! copy of the whole state. It returns the values that a [`Drive`](crate::drive::Drive) records.

mod access;
mod requests;
mod rules;
mod watching;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use minikeeper_engine::{CloseReason, Input, Now, Settings};
use minikeeper_protocol::{
    AclList, ConnectRequest, ConnectResponse, ErrorCode, EventKind, Reply, Request, SessionId,
    Stat, Xid, Zxid,
};

use crate::drive::Sent;
use watching::Modes;

/// Replies, events and closes, each with its connection.
pub type Output = Vec<(u32, Sent)>;

/// A znode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// The data; null is not the same as empty.
    pub data: Option<Vec<u8>>,
    /// The access list.
    pub acl: AclList,
    /// The owning session of an ephemeral, otherwise zero.
    pub owner: i64,
    /// The number of children ever created.
    pub created: i32,
    /// The stat, without the fields that follow from the rest.
    pub stat: Stat,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Session {
    timeout_ms: u32,
    deadline_ms: u64,
    conn: Option<u32>,
}

/// The state of one server.
#[derive(Clone, Debug)]
pub struct Model {
    settings: Settings,
    zxid: i64,
    now: Now,
    nodes: BTreeMap<String, Node>,
    sessions: BTreeMap<i64, Session>,
    next_session: i64,
    /// By connection and path.
    watches: BTreeMap<(u32, String), Modes>,
    /// The digest identities of each connection, in the order of authentication.
    logins: BTreeMap<u32, Vec<String>>,
    /// Whether a multi is being applied.
    is_multi: bool,
    /// The containers of that multi which were requested as ephemerals: ZooKeeper shows them as
    /// ephemerals to the later operations of the multi.
    looks_ephemeral: BTreeSet<String>,
    output: Output,
}

impl Model {
    /// Creates the state of a new server. Source: `docs/zookeeper-protocol.md` section 5.4.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let mut nodes = BTreeMap::new();
        for path in rules::SPECIAL {
            let is_config = path == "/zookeeper/config";
            let node = Node {
                data: Some(Vec::new()),
                acl: if is_config {
                    AclList::world_read()
                } else {
                    AclList::world_all()
                },
                owner: 0,
                created: 0,
                stat: Stat {
                    aversion: if is_config { -1 } else { 0 },
                    ..Stat::default()
                },
            };
            nodes.insert(path.to_owned(), node);
        }
        Self {
            zxid: settings.zxid.0,
            next_session: settings.first_session_id.0,
            settings: settings.clone(),
            now: Now::default(),
            nodes,
            sessions: BTreeMap::new(),
            watches: BTreeMap::new(),
            logins: BTreeMap::new(),
            is_multi: false,
            looks_ephemeral: BTreeSet::new(),
            output: Vec::new(),
        }
    }

    /// Applies one input and returns all replies and events, in order.
    ///
    /// `ended` is the observed order of session ends: sessions with the same deadline may end in
    /// any order, and each takes a zxid.
    ///
    /// # Errors
    /// When `ended` has a session that is not due, has the wrong order, or lacks a session.
    pub fn apply(
        &mut self,
        now: Now,
        input: &Input,
        ended: &[SessionId],
    ) -> Result<Output, String> {
        self.now = now;
        match input {
            // Traces come from 127.0.0.1, as unannounced connections do.
            Input::Open { .. } | Input::Identify { .. } => {}
            Input::Connect { conn, hello, .. } => self.connect(conn.0, hello),
            Input::Request { conn, xid, request } => {
                let skips_touch = matches!(request, Request::Auth { .. } | Request::Sasl { .. });
                let is_served = if skips_touch {
                    self.session_of(conn.0).is_some()
                } else {
                    self.touch(conn.0)
                };
                if is_served {
                    self.serve(conn.0, *xid, request);
                }
            }
            Input::Undecodable {
                conn,
                xid,
                consumes_zxid,
            } => {
                if self.touch(conn.0) {
                    self.zxid += i64::from(*consumes_zxid);
                    self.reply(conn.0, *xid, Err(ErrorCode::MarshallingError));
                }
            }
            Input::UnknownOp { conn, xid } => {
                if self.touch(conn.0) {
                    self.refuse_unknown(conn.0, *xid);
                }
            }
            Input::Refused {
                conn, xid, error, ..
            } => {
                if self.touch(conn.0) {
                    self.reply(conn.0, *xid, Err(*error));
                }
            }
            Input::Disconnect { conn } => self.detach(conn.0),
            Input::Tick => self.tick(ended)?,
            Input::Expire { session } => {
                if self.sessions.contains_key(&session.0) {
                    self.expire(session.0);
                }
            }
        }
        Ok(std::mem::take(&mut self.output))
    }

    /// The newest zxid.
    #[must_use]
    pub const fn zxid(&self) -> Zxid {
        Zxid(self.zxid)
    }

    /// Every path.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// The data and stat of a znode.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<(Option<&[u8]>, Stat)> {
        let node = self.nodes.get(path)?;
        Some((node.data.as_deref(), self.stat(path)))
    }

    /// The names of a znode's children, sorted.
    #[must_use]
    pub fn children(&self, path: &str) -> Vec<String> {
        let mut names: Vec<_> = self
            .nodes
            .keys()
            .filter(|other| *other != "/" && rules::parent(other) == path)
            .map(|child| rules::name(child).to_owned())
            .collect();
        names.sort();
        names
    }

    /// Every session: its id, its timeout in milliseconds, and its connection.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, u32, Option<u32>)> {
        self.sessions
            .iter()
            .map(|(id, session)| (SessionId(*id), session.timeout_ms, session.conn))
    }

    /// The number of (connection, watched path) pairs.
    #[must_use]
    pub fn watches(&self) -> usize {
        self.watches.len()
    }

    fn stat(&self, path: &str) -> Stat {
        let node = &self.nodes[path];
        let children = i32::try_from(self.children(path).len()).expect("trees in tests are small");
        Stat {
            // `docs/zookeeper-protocol.md` section 5.3.
            cversion: 2 * node.created - children,
            num_children: children,
            data_length: i32::try_from(node.data.as_ref().map_or(0, Vec::len))
                .expect("data in tests is small"),
            ephemeral_owner: SessionId(node.owner),
            ..node.stat
        }
    }

    // Sessions. Source: `docs/zookeeper-protocol.md` sections 6.2 to 6.4 and 14.

    fn connect(&mut self, conn: u32, hello: &ConnectRequest) {
        if hello.last_zxid_seen.0 > self.zxid {
            return self
                .output
                .push((conn, Sent::Close(CloseReason::ZxidAhead)));
        }
        let (min_ms, max_ms) = (
            self.settings.session_timeout_min_ms,
            self.settings.session_timeout_max_ms,
        );
        let timeout_ms = u32::try_from(hello.timeout_ms.max(0))
            .expect("not negative")
            .max(min_ms)
            .min(max_ms);
        let mut id = hello.session_id.0;
        if id == 0 {
            id = self.next_session;
            self.next_session += 1;
            self.zxid += 1;
            let session = Session {
                timeout_ms,
                deadline_ms: 0,
                conn: None,
            };
            self.sessions.insert(id, session);
        } else {
            if let Some(old) = self.sessions.get(&id).and_then(|session| session.conn) {
                self.detach(old);
                self.output
                    .push((old, Sent::Close(CloseReason::SessionMoved)));
            }
            let is_right = hello.password.as_deref() == Some(&rules::password(id)[..]);
            if !is_right || !self.sessions.contains_key(&id) {
                let read_only = hello.read_only.map(|_| false);
                let refused = Sent::Connected(ConnectResponse {
                    protocol_version: 0,
                    timeout_ms: 0,
                    session_id: SessionId(0),
                    password: Some(Bytes::from_static(&[0; 16])),
                    read_only,
                });
                self.output.push((conn, refused));
                return self
                    .output
                    .push((conn, Sent::Close(CloseReason::SessionRefused)));
            }
        }
        let session = self.sessions.get_mut(&id).expect("found or created above");
        session.timeout_ms = timeout_ms;
        session.conn = Some(conn);
        self.touch(conn);
        let response = Sent::Connected(ConnectResponse {
            protocol_version: 0,
            timeout_ms: i32::try_from(timeout_ms).expect("timeouts in tests are small"),
            session_id: SessionId(id),
            password: Some(Bytes::copy_from_slice(&rules::password(id))),
            read_only: hello.read_only.map(|_| false),
        });
        self.output.push((conn, response));
    }

    fn session_of(&self, conn: u32) -> Option<i64> {
        let mut found = self.sessions.iter();
        found.find_map(|(id, session)| (session.conn == Some(conn)).then_some(*id))
    }

    /// Keeps the session of a connection alive, if it has one. Source: `docs/zookeeper-protocol.md`
    /// section 14.1.
    fn touch(&mut self, conn: u32) -> bool {
        let Some(id) = self.session_of(conn) else {
            return false;
        };
        let (now_ms, tick_ms) = (self.now.elapsed_ms, u64::from(self.settings.tick_ms));
        let session = self.sessions.get_mut(&id).expect("just found");
        session.deadline_ms = now_ms + u64::from(session.timeout_ms);
        if self.settings.rounds_expiry {
            session.deadline_ms = (session.deadline_ms / tick_ms + 1) * tick_ms;
        }
        true
    }

    fn detach(&mut self, conn: u32) {
        self.watches.retain(|(watcher, _), _| *watcher != conn);
        self.logins.remove(&conn);
        for session in self.sessions.values_mut() {
            if session.conn == Some(conn) {
                session.conn = None;
            }
        }
    }

    fn tick(&mut self, ended: &[SessionId]) -> Result<(), String> {
        let now_ms = self.now.elapsed_ms;
        let mut newest_ms = 0;
        for id in ended {
            let deadline_ms = match self.sessions.get(&id.0) {
                Some(session) if session.deadline_ms <= now_ms => session.deadline_ms,
                other => {
                    return Err(format!(
                        "session {id} ended at {now_ms} ms without being due: {other:?}"
                    ));
                }
            };
            if deadline_ms < newest_ms {
                return Err(format!(
                    "session {id} ended after a session with a later deadline"
                ));
            }
            newest_ms = deadline_ms;
            self.expire(id.0);
        }
        match self
            .sessions
            .iter()
            .find(|(_, session)| session.deadline_ms <= now_ms)
        {
            Some((id, _)) => Err(format!("session {id:#x} is due and did not end")),
            None => Ok(()),
        }
    }

    fn expire(&mut self, id: i64) {
        self.zxid += 1;
        let conn = self.sessions[&id].conn;
        self.end(id);
        if let Some(conn) = conn {
            self.output
                .push((conn, Sent::Close(CloseReason::SessionExpired)));
        }
    }

    /// `docs/zookeeper-protocol.md` section 14.6: every ephemeral under one zxid, then the session.
    fn end(&mut self, id: i64) {
        let owned: Vec<_> = self
            .nodes
            .iter()
            .filter(|(_, node)| node.owner == id)
            .map(|(path, _)| path.clone())
            .collect();
        for path in owned {
            let acls = self.acls(&path);
            self.remove(&path);
            self.fire_deleted(&path, &acls);
        }
        if let Some(conn) = self.sessions[&id].conn {
            self.detach(conn);
        }
        self.sessions.remove(&id);
    }

    fn close_session(&mut self, conn: u32, xid: Xid) {
        self.zxid += 1;
        let id = self
            .session_of(conn)
            .expect("a served connection has a session");
        self.end(id);
        self.reply(conn, xid, Ok(Reply::Empty));
        self.output
            .push((conn, Sent::Close(CloseReason::SessionClosed)));
    }

    // The tree.

    fn insert(&mut self, path: &str, node: Node) {
        let parent = self
            .nodes
            .get_mut(rules::parent(path))
            .expect("the caller checked the parent");
        parent.created += 1;
        parent.stat.pzxid = Zxid(self.zxid);
        self.nodes.insert(path.to_owned(), node);
    }

    fn remove(&mut self, path: &str) {
        self.nodes.remove(path);
        let parent = self
            .nodes
            .get_mut(rules::parent(path))
            .expect("not the root");
        parent.stat.pzxid = Zxid(self.zxid);
    }

    // Replies and events.

    /// The access lists of a znode and of its parent.
    fn acls(&self, path: &str) -> [AclList; 2] {
        [path, rules::parent(path)].map(|path| self.nodes[path].acl.clone())
    }

    fn fire_created(&mut self, path: &str, acls: &[AclList; 2]) {
        self.fire_data(EventKind::Created, path, &acls[0]);
        let parent = rules::parent(path);
        self.fire_child(EventKind::ChildrenChanged, parent, &[], &acls[1]);
    }

    fn fire_deleted(&mut self, path: &str, acls: &[AclList; 2]) {
        let notified = self.fire_data(EventKind::Deleted, path, &acls[0]);
        self.fire_child(EventKind::Deleted, path, &notified, &acls[0]);
        let parent = rules::parent(path);
        self.fire_child(EventKind::ChildrenChanged, parent, &[], &acls[1]);
    }

    fn event(&mut self, conn: u32, kind: EventKind, path: &str, zxid: i64) {
        let event = Sent::Event {
            kind,
            path: path.to_owned(),
            zxid: Zxid(zxid),
        };
        self.output.push((conn, event));
    }

    fn reply(&mut self, conn: u32, xid: Xid, outcome: Result<Reply, ErrorCode>) {
        let reply = Sent::Reply {
            xid,
            zxid: Zxid(self.zxid),
            outcome,
        };
        self.output.push((conn, reply));
    }

    /// `docs/zookeeper-protocol.md` sections 3.1 and 6.5: replies, then closes the connection; the
    /// session survives.
    fn refuse_unknown(&mut self, conn: u32, xid: Xid) {
        let reply = Sent::Reply {
            xid,
            zxid: Zxid(-1),
            outcome: Err(ErrorCode::Unimplemented),
        };
        self.output.push((conn, reply));
        self.detach(conn);
        self.output
            .push((conn, Sent::Close(CloseReason::UnknownOp)));
    }
}
