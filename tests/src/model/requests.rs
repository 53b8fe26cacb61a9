//! The operations of the model, with the order of checks of `docs/zookeeper-protocol.md` sections 10
//! and 13.

use bytes::Bytes;
use minikeeper_protocol::{
    AclList, AddWatchMode, Create, CreateMode, CreateOp, ErrorCode, MultiOp, MultiReadOp,
    MultiResult, Reply, Request, Stat, Ustring, WatcherType, Xid, Zxid,
};

use crate::drive::Sent;

use super::{
    Model, Node,
    access::{ADMIN, CREATE, DELETE, READ, WRITE},
    rules::{self, Outcome, text, validated},
    watching::Mode,
};

fn names(names: &[String]) -> Vec<Ustring> {
    names.iter().map(|name| name.as_str().into()).collect()
}

/// A change that succeeded, with what its reply and its events need.
enum Change {
    Created(String, [AclList; 2]),
    Deleted(String, [AclList; 2]),
    DataSet(String, Stat, AclList),
    Checked,
}

impl Model {
    pub(super) fn serve(&mut self, conn: u32, xid: Xid, request: &Request) {
        match request {
            Request::Ping => return self.reply(conn, Xid::PING, Ok(Reply::Empty)),
            Request::CloseSession => return self.close_session(conn, xid),
            Request::Check { .. } | Request::CreateSession | Request::DeleteContainer { .. } => {
                return self.refuse_unknown(conn, xid);
            }
            Request::Auth { scheme, data, .. } => {
                return self.auth(conn, xid, scheme.as_ref(), data.as_deref());
            }
            Request::Sasl { .. } => {
                let zxid = std::mem::replace(&mut self.zxid, 0);
                self.reply(conn, xid, Ok(Reply::Token(None)));
                self.zxid = zxid;
                return;
            }
            Request::MultiRead(ops) => return self.multi_read(conn, xid, ops),
            _ => {}
        }
        let outcome = self.outcome(conn, request);
        self.reply(conn, xid, outcome);
    }

    fn outcome(&mut self, conn: u32, request: &Request) -> Outcome {
        match request {
            Request::Create(create) => {
                let path = self.write(conn, &MultiOp::Create(create.clone()))?;
                let stat = self.stat(&path);
                Ok(match create.op {
                    CreateOp::Create => Reply::Path(Some(path.into())),
                    _ => Reply::PathStat(path.into(), stat),
                })
            }
            Request::Delete { path, version } => {
                let (path, version) = (path.clone(), *version);
                self.write(conn, &MultiOp::Delete { path, version })?;
                Ok(Reply::Empty)
            }
            Request::SetData {
                path,
                data,
                version,
            } => {
                let (path, data, version) = (path.clone(), data.clone(), *version);
                let path = self.write(
                    conn,
                    &MultiOp::SetData {
                        path,
                        data,
                        version,
                    },
                )?;
                Ok(Reply::Stat(self.stat(&path)))
            }
            Request::SetAcl { path, acl, version } => {
                self.zxid += 1;
                let path = validated(path.as_ref())?;
                let acl = self.fix_up(conn, acl)?;
                self.nodes.get(&path).ok_or(ErrorCode::NoNode)?;
                self.allow(conn, &path, ADMIN)?;
                let node = self.nodes.get_mut(&path).expect("just found");
                if *version != -1 && *version != node.stat.aversion {
                    return Err(ErrorCode::BadVersion);
                }
                node.stat.aversion += 1;
                node.acl = acl;
                Ok(Reply::Stat(self.stat(&path)))
            }
            Request::Multi(ops) => self.multi(conn, ops),
            Request::Reconfig { .. } => {
                self.zxid += 1;
                Err(ErrorCode::ReconfigDisabled)
            }
            _ => self.read(conn, request),
        }
    }

    fn read(&mut self, conn: u32, request: &Request) -> Outcome {
        match request {
            Request::Exists { path, watch } => {
                let path = text(path.as_ref())?;
                if path.contains('\0') {
                    return Err(ErrorCode::BadArguments);
                }
                if let Some(found) = self.read_path(&path) {
                    self.allow(conn, found, READ)?;
                }
                if *watch {
                    self.watch(conn, &path, Some(Mode::Standard), None);
                }
                let path = self.read_path(&path).ok_or(ErrorCode::NoNode)?;
                Ok(Reply::Stat(self.stat(path)))
            }
            Request::GetData { path, watch } => {
                let path = text(path.as_ref())?;
                let found = self.read_path(&path).ok_or(ErrorCode::NoNode)?;
                self.allow(conn, found, READ)?;
                if *watch {
                    self.watch(conn, &path, Some(Mode::Standard), None);
                }
                let data = self.nodes[found].data.clone().map(Bytes::from);
                Ok(Reply::Data(data, self.stat(found)))
            }
            Request::GetChildren { path, watch } | Request::GetChildren2 { path, watch } => {
                let path = text(path.as_ref())?;
                let found = self.read_path(&path).ok_or(ErrorCode::NoNode)?;
                self.allow(conn, found, READ)?;
                if *watch {
                    self.watch(conn, &path, None, Some(Mode::Standard));
                }
                let names = names(&self.children(found));
                Ok(match request {
                    Request::GetChildren { .. } => Reply::Children(names),
                    _ => Reply::Children2(names, self.stat(found)),
                })
            }
            Request::GetAcl { path } => {
                let path = text(path.as_ref())?;
                let found = self.read_path(&path).ok_or(ErrorCode::NoNode)?;
                self.allow(conn, found, READ | ADMIN)?;
                Ok(Reply::Acl(self.shown(conn, found), self.stat(found)))
            }
            Request::GetAllChildrenNumber { path } => {
                let path = text(path.as_ref())?;
                let found = self.read_path(&path).ok_or(ErrorCode::NoNode)?;
                self.allow(conn, found, READ)?;
                // The empty path counts the root too.
                let count = self.descendants(found) + usize::from(path.is_empty());
                Ok(Reply::Count(
                    i32::try_from(count).expect("trees in tests are small"),
                ))
            }
            Request::GetEphemerals { prefix } => {
                let prefix = text(prefix.as_ref()).unwrap_or_default();
                let session = self.session_of(conn).expect("a served connection has one");
                let is_wanted = |(path, node): &(&String, &Node)| {
                    node.owner == session && (prefix.trim().is_empty() || path.starts_with(&prefix))
                };
                let found = self.nodes.iter().filter(is_wanted);
                Ok(Reply::Ephemerals(
                    found.map(|(path, _)| path.as_str().into()).collect(),
                ))
            }
            Request::WhoAmI => Ok(self.who_am_i(conn)),
            Request::Sync { path } => Ok(Reply::Path(path.clone())),
            Request::AddWatch { path, mode } => {
                let mode = AddWatchMode::from_code(*mode).ok_or(ErrorCode::MarshallingError)?;
                self.add_watch(conn, &text(path.as_ref())?, mode);
                Ok(Reply::WatchAdded)
            }
            Request::CheckWatches { path, kind } | Request::RemoveWatches { path, kind } => {
                let kind = WatcherType::from_code(*kind).ok_or(ErrorCode::MarshallingError)?;
                let path = text(path.as_ref()).map_err(|_| ErrorCode::NoWatcher)?;
                let found = match request {
                    Request::CheckWatches { .. } => self.is_watching(conn, &path, kind),
                    _ => self.unwatch(conn, &path, kind),
                };
                found.then_some(Reply::Empty).ok_or(ErrorCode::NoWatcher)
            }
            Request::SetWatches {
                relative_zxid,
                data,
                exist,
                child,
            } => {
                self.set_watches(conn, *relative_zxid, &[data, exist, child]);
                Ok(Reply::Empty)
            }
            Request::SetWatches2 {
                relative_zxid,
                data,
                exist,
                child,
                persistent,
                persistent_recursive,
            } => {
                let lists: [&[Ustring]; 5] = [data, exist, child, persistent, persistent_recursive];
                self.set_watches(conn, *relative_zxid, &lists);
                Ok(Reply::Empty)
            }
            other => unreachable!("{other:?} is served elsewhere"),
        }
    }

    /// Applies a single change: takes a zxid, changes the tree, sends the events. Returns the path.
    fn write(&mut self, conn: u32, op: &MultiOp) -> Outcome<String> {
        self.zxid += 1;
        let change = self.change(conn, op)?;
        self.fire_change(&change);
        Ok(match change {
            Change::Created(path, _) | Change::Deleted(path, _) | Change::DataSet(path, ..) => path,
            Change::Checked => unreachable!("check occurs in multis only"),
        })
    }

    fn fire_change(&mut self, change: &Change) {
        match change {
            Change::Created(path, acls) => self.fire_created(path, acls),
            Change::Deleted(path, acls) => self.fire_deleted(path, acls),
            Change::DataSet(path, _, acl) => {
                self.fire_data(minikeeper_protocol::EventKind::DataChanged, path, acl);
            }
            Change::Checked => {}
        }
    }

    fn change(&mut self, conn: u32, op: &MultiOp) -> Outcome<Change> {
        match op {
            MultiOp::Create(create) => {
                let path = self.create(conn, create)?;
                let acls = self.acls(&path);
                Ok(Change::Created(path, acls))
            }
            MultiOp::Delete { path, version } => {
                let path = text(path.as_ref())?;
                let is_special = rules::SPECIAL.contains(&path.as_str());
                if !path.contains('/') || path.contains('\0') || is_special {
                    return Err(ErrorCode::BadArguments);
                }
                let parent = rules::parent(&path);
                self.nodes.get(parent).ok_or(ErrorCode::NoNode)?;
                self.allow(conn, parent, DELETE)?;
                self.check_version(&path, *version)?;
                if !self.children(&path).is_empty() {
                    return Err(ErrorCode::NotEmpty);
                }
                let acls = self.acls(&path);
                self.remove(&path);
                Ok(Change::Deleted(path, acls))
            }
            MultiOp::SetData {
                path,
                data,
                version,
            } => {
                let path = validated(path.as_ref())?;
                self.check_exists(conn, &path, WRITE)?;
                self.check_version(&path, *version)?;
                let (zxid, wall_ms) = (Zxid(self.zxid), self.now.wall_ms);
                let node = self.nodes.get_mut(&path).expect("just found");
                node.data = data.as_ref().map(|data| data.to_vec());
                node.stat.version += 1;
                (node.stat.mzxid, node.stat.mtime_ms) = (zxid, wall_ms);
                let stat = self.stat(&path);
                let acl = self.nodes[&path].acl.clone();
                Ok(Change::DataSet(path, stat, acl))
            }
            MultiOp::Check { path, version } => {
                let path = validated(path.as_ref())?;
                self.check_exists(conn, &path, READ)?;
                self.check_version(&path, *version)?;
                Ok(Change::Checked)
            }
        }
    }

    fn check_exists(&self, conn: u32, path: &str, perms: i32) -> Outcome<()> {
        self.nodes.get(path).ok_or(ErrorCode::NoNode)?;
        self.allow(conn, path, perms)
    }

    fn check_version(&self, path: &str, version: i32) -> Outcome<()> {
        let node = self.nodes.get(path).ok_or(ErrorCode::NoNode)?;
        if version != -1 && version != node.stat.version {
            return Err(ErrorCode::BadVersion);
        }
        Ok(())
    }

    /// `docs/zookeeper-protocol.md` sections 10.1 to 10.3.
    fn create(&mut self, conn: u32, create: &Create) -> Outcome<String> {
        let mode = CreateMode::from_flags(create.flags).ok_or(ErrorCode::BadArguments)?;
        if mode.has_ttl() && !self.settings.extended_types {
            return Err(ErrorCode::Unimplemented);
        }
        if mode.has_ttl() != (create.op == CreateOp::Ttl)
            || mode.has_ttl() && (create.ttl_ms <= 0 || create.ttl_ms >= 1 << 40)
        {
            return Err(ErrorCode::BadArguments);
        }
        let mut path = text(create.path.as_ref())?;
        if !path.contains('/') || path.contains('\0') {
            return Err(ErrorCode::BadArguments);
        }
        let acl = self.fix_up(conn, &create.acl)?;
        let parent_path = rules::parent(&path).to_owned();
        let parent = self.nodes.get(&parent_path).ok_or(ErrorCode::NoNode)?;
        self.allow(conn, &parent_path, CREATE)?;
        if mode.is_sequential() {
            path = format!("{path}{:010}", parent.created);
        }
        if !rules::is_valid(&path) {
            return Err(ErrorCode::BadArguments);
        }
        if self.nodes.contains_key(&path) {
            return Err(ErrorCode::NodeExists);
        }
        if parent.owner != 0 || self.looks_ephemeral.contains(&parent_path) {
            return Err(ErrorCode::NoChildrenForEphemerals);
        }
        let is_ephemeral = create.op != CreateOp::Container && mode.is_ephemeral();
        let zxid = Zxid(self.zxid);
        let node = Node {
            data: create.data.as_ref().map(|data| data.to_vec()),
            acl,
            owner: if is_ephemeral {
                self.session_of(conn).expect("a served connection has one")
            } else {
                0
            },
            created: 0,
            stat: Stat {
                czxid: zxid,
                mzxid: zxid,
                pzxid: zxid,
                ctime_ms: self.now.wall_ms,
                mtime_ms: self.now.wall_ms,
                ..Stat::default()
            },
        };
        self.insert(&path, node);
        if self.is_multi && mode.is_ephemeral() && !is_ephemeral {
            self.looks_ephemeral.insert(path.clone());
        }
        Ok(path)
    }

    /// `docs/zookeeper-protocol.md` sections 13.1 to 13.3: all or nothing, on a copy of the state.
    fn multi(&mut self, conn: u32, ops: &[MultiOp]) -> Outcome {
        let mut decoded = Vec::new();
        for op in ops {
            match decode(op) {
                Some(op) => decoded.push(op),
                None => {
                    let is_null_list = matches!(op, MultiOp::Create(create)
                        if create.acl.is_null() && create.op != CreateOp::Ttl);
                    self.zxid += i64::from(!is_null_list);
                    return Err(ErrorCode::MarshallingError);
                }
            }
        }
        self.zxid += 1;
        let mut copy = self.clone();
        copy.is_multi = true;
        let (mut results, mut changes) = (Vec::new(), Vec::new());
        for op in &decoded {
            match copy.change(conn, op) {
                Ok(change) => {
                    results.push(copy.result(op, &change));
                    changes.push(change);
                }
                // An internal error ends the whole request. Source: `docs/zookeeper-protocol.md`
                // section 7.6.
                Err(error @ ErrorCode::MarshallingError) => return Err(error),
                Err(error) => {
                    let mut results = vec![MultiResult::Error(None); results.len()];
                    results.push(MultiResult::Error(Some(error)));
                    let untried = MultiResult::Error(Some(ErrorCode::RuntimeInconsistency));
                    results.resize(ops.len(), untried);
                    return Ok(Reply::Multi(results));
                }
            }
        }
        copy.is_multi = false;
        copy.looks_ephemeral.clear();
        *self = copy;
        for change in &changes {
            self.fire_change(change);
        }
        Ok(Reply::Multi(results))
    }

    fn result(&self, op: &MultiOp, change: &Change) -> MultiResult {
        match (op, change) {
            (MultiOp::Create(create), Change::Created(path, _)) => {
                let path_on_wire = path.as_str().into();
                match create.op {
                    CreateOp::Create => MultiResult::Create { path: path_on_wire },
                    _ => MultiResult::Create2 {
                        path: path_on_wire,
                        stat: self.stat(path),
                    },
                }
            }
            (_, Change::DataSet(_, stat, _)) => MultiResult::SetData { stat: *stat },
            (_, Change::Deleted(..)) => MultiResult::Delete,
            _ => MultiResult::Check,
        }
    }

    /// `docs/zookeeper-protocol.md` section 13.4. A null path stops the request.
    fn multi_read(&mut self, conn: u32, xid: Xid, ops: &[MultiReadOp]) {
        let mut results = Vec::new();
        for op in ops {
            match self.read_in_multi(conn, op) {
                Err(error @ ErrorCode::MarshallingError) => {
                    let broken_off = Sent::BrokenOff {
                        xid,
                        zxid: self.zxid(),
                        error,
                        results,
                    };
                    return self.output.push((conn, broken_off));
                }
                Err(error) => results.push(MultiResult::Error(Some(error))),
                Ok(result) => results.push(result),
            }
        }
        self.reply(conn, xid, Ok(Reply::Multi(results)));
    }

    fn read_in_multi(&self, conn: u32, op: &MultiReadOp) -> Outcome<MultiResult> {
        let (MultiReadOp::GetData { path, .. } | MultiReadOp::GetChildren { path, .. }) = op;
        let path = text(path.as_ref())?;
        let path = self.read_path(&path).ok_or(ErrorCode::NoNode)?;
        self.allow(conn, path, READ)?;
        Ok(match op {
            MultiReadOp::GetData { .. } => MultiResult::GetData {
                data: self.nodes[path].data.clone().map(Bytes::from),
                stat: self.stat(path),
            },
            MultiReadOp::GetChildren { .. } => MultiResult::GetChildren {
                names: names(&self.children(path)),
            },
        })
    }
}

/// Decodes an operation of a multi as ZooKeeper does; `None` fails the whole request.
/// Source: `docs/zookeeper-protocol.md` section 13.1.
fn decode(op: &MultiOp) -> Option<MultiOp> {
    match op {
        MultiOp::Delete { path, .. }
        | MultiOp::SetData { path, .. }
        | MultiOp::Check { path, .. } => path.is_some().then(|| op.clone()),
        MultiOp::Create(create) => {
            // The fields of a createTTL are checked later, by the operation itself.
            let is_ttl = create.op == CreateOp::Ttl;
            let mode = match CreateMode::from_flags(create.flags) {
                None if is_ttl => CreateMode::Persistent,
                mode => mode?,
            };
            if create.path.is_none() || (!is_ttl && (create.acl.is_null() || mode.has_ttl())) {
                return None;
            }
            let op = match (mode, create.op) {
                (CreateMode::Container, _) => CreateOp::Container,
                (mode, CreateOp::Ttl) if !mode.has_ttl() => CreateOp::Create,
                (_, op) => op,
            };
            Some(MultiOp::Create(Create {
                op,
                ..create.clone()
            }))
        }
    }
}
