//! What a request reads and writes, to tell whether two requests could also have come in the other order.
//!
//! A footprint is an upper bound, computed before the request is served: it has what the request would
//! touch if it succeeds and if it fails. So two requests of which this says that they commute do: in
//! both orders the replies, the events and the state are equal, except for the numbers of zxids, the
//! order in which a parent lists its children, of which ZooKeeper promises nothing, and limits of the
//! whole server, which one of two requests may be the first to reach.
//!
//! Source: `docs/zookeeper-protocol.md` sections 1, 5 to 8, 12 and 14.

use std::collections::BTreeMap;

use minikeeper_protocol::{
    Create, CreateMode, MultiOp, MultiReadOp, Request, SessionId, Ustring, path,
};

use crate::{
    Engine,
    input::ConnId,
    ops::create::push_suffix,
    state::{State, keys::WatchId, watches::Modes},
};

/// The most resources of a footprint, because each is compared with each of another. A request with more,
/// such as a large multi, commutes with none.
const RESOURCES_MAX: usize = 1_000;

/// What a request may touch.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Resource {
    /// That a znode exists, its access list and its owner.
    Znode(Vec<u8>),
    /// A znode's data, with its version.
    Data(Vec<u8>),
    /// The names of a znode's children.
    Children(Vec<u8>),
    /// How many children a znode has had, which numbers the next sequential one.
    Created(Vec<u8>),
    /// Znodes of this path with any number behind it.
    Numbered(Vec<u8>),
    /// Everything at a path and below it.
    Subtree(Vec<u8>),
    /// What a session is sent: replies and events in their order, and its watches.
    Stream(SessionId),
    /// The list of a session's ephemerals.
    Owned(SessionId),
    /// All of it.
    Everything,
}

/// How a request touches a resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Touch {
    /// It depends on what is there.
    Reads,
    /// It adds to a count or a set, whatever is there.
    Adds,
    /// It changes what is there.
    Writes,
}

impl Touch {
    fn clashes_with(self, other: Self) -> bool {
        self != other || self == Self::Writes
    }
}

/// What a request reads and writes in the state in which [`Engine::footprint`] was called.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Footprint(BTreeMap<Resource, Touch>);

impl Footprint {
    /// Returns whether both orders of two requests of different sessions give the same.
    #[must_use]
    pub fn commutes_with(&self, other: &Self) -> bool {
        let clash = |(resource, touch): (&Resource, &Touch)| {
            let others = other.0.iter();
            others
                .filter(|(at, _)| resource.overlaps(at))
                .any(|(_, with)| touch.clashes_with(*with))
        };
        !self.0.iter().any(clash)
    }

    /// Returns the footprint that commutes with no other.
    #[must_use]
    pub fn everything() -> Self {
        Self(BTreeMap::from([(Resource::Everything, Touch::Writes)]))
    }

    /// Returns whether a session may be sent something: the one that asks, and those that watch.
    #[must_use]
    pub fn tells(&self, session: SessionId) -> bool {
        self.0.contains_key(&Resource::Everything)
            || self.0.contains_key(&Resource::Stream(session))
    }

    fn touch(&mut self, resource: Resource, touch: Touch) {
        if self.0.len() >= RESOURCES_MAX {
            self.0.clear();
            self.0.insert(Resource::Everything, Touch::Writes);
        }
        if self.0.contains_key(&Resource::Everything) {
            return;
        }
        let known = self.0.entry(resource).or_insert(touch);
        // What is read and added to is as good as written.
        if *known != touch {
            *known = Touch::Writes;
        }
    }

    fn reads(&mut self, resource: Resource) {
        self.touch(resource, Touch::Reads);
    }

    fn writes(&mut self, resource: Resource) {
        self.touch(resource, Touch::Writes);
    }

    /// Reads what a stat and a check of permissions depend on.
    fn reads_stat(&mut self, path: &[u8]) {
        self.reads(Resource::Znode(path.to_vec()));
        self.reads(Resource::Data(path.to_vec()));
        self.reads(Resource::Children(path.to_vec()));
    }

    fn writes_whole(&mut self, path: &[u8]) {
        self.writes(Resource::Znode(path.to_vec()));
        self.writes(Resource::Data(path.to_vec()));
        self.writes(Resource::Children(path.to_vec()));
    }
}

/// What many requests have touched, to find those with which a further one does not commute.
#[derive(Clone, Debug, Default)]
pub struct Footprints {
    /// The resources that overlap only themselves, and those that overlap others.
    exact: BTreeMap<Resource, Vec<LastTouch>>,
    broad: BTreeMap<Resource, Vec<LastTouch>>,
}

/// The last request of a client that touched a resource in this way.
#[derive(Clone, Copy, Debug)]
struct LastTouch {
    touch: Touch,
    client: usize,
    request: usize,
}

impl Footprints {
    /// Adds a request of a client. Requests have growing numbers.
    pub fn add(&mut self, client: usize, request: usize, footprint: &Footprint) {
        for (resource, touch) in &footprint.0 {
            let known = match resource.is_broad() {
                true => &mut self.broad,
                false => &mut self.exact,
            };
            let known = match known.get_mut(resource) {
                Some(known) => known,
                None => known.entry(resource.clone()).or_default(),
            };
            let mut of_both = known.iter_mut();
            match of_both.find(|last| last.touch == *touch && last.client == client) {
                Some(last) => last.request = request,
                None => known.push(LastTouch {
                    touch: *touch,
                    client,
                    request,
                }),
            }
        }
    }

    /// Shows for each client its last request, and perhaps earlier ones, that does not commute with this.
    pub fn each_clash(&self, footprint: &Footprint, mut show: impl FnMut(usize, usize)) {
        for (resource, touch) in &footprint.0 {
            let mut look = |known: &[LastTouch]| {
                for last in known.iter().filter(|last| touch.clashes_with(last.touch)) {
                    show(last.client, last.request);
                }
            };
            if resource.is_broad() {
                let known = self.exact.iter().filter(|(at, _)| resource.overlaps(at));
                known.for_each(|(_, known)| look(known));
            } else if let Some(known) = self.exact.get(resource) {
                look(known);
            }
            let known = self.broad.iter().filter(|(at, _)| resource.overlaps(at));
            known.for_each(|(_, known)| look(known));
        }
    }
}

impl Resource {
    /// Returns whether it overlaps others than itself.
    const fn is_broad(&self) -> bool {
        matches!(
            self,
            Self::Numbered(_) | Self::Subtree(_) | Self::Everything
        )
    }

    fn overlaps(&self, other: &Self) -> bool {
        use Resource::{
            Children, Created, Data, Everything, Numbered, Owned, Stream, Subtree, Znode,
        };
        match (self, other) {
            (Everything, _) | (_, Everything) => true,
            (Stream(one), Stream(other)) | (Owned(one), Owned(other)) => one == other,
            (Created(one), Created(other)) => one == other,
            (Stream(_) | Owned(_) | Created(_), _) | (_, Stream(_) | Owned(_) | Created(_)) => {
                false
            }
            (Numbered(prefix), Numbered(other)) => {
                prefix.starts_with(other) || other.starts_with(prefix)
            }
            (Numbered(prefix), Znode(path) | Data(path) | Children(path))
            | (Znode(path) | Data(path) | Children(path), Numbered(prefix)) => {
                path.starts_with(prefix)
            }
            (Subtree(top), Numbered(path)) | (Numbered(path), Subtree(top)) => {
                is_below(path, top) || top.starts_with(path)
            }
            (Subtree(one), Subtree(other)) => is_below(one, other) || is_below(other, one),
            (Subtree(top), Znode(path) | Data(path) | Children(path))
            | (Znode(path) | Data(path) | Children(path), Subtree(top)) => is_below(path, top),
            (Znode(one), Znode(other))
            | (Data(one), Data(other))
            | (Children(one), Children(other)) => one == other,
            (Znode(_) | Data(_) | Children(_), _) => false,
        }
    }
}

/// Returns whether a path is `top` or below it.
fn is_below(path: &[u8], top: &[u8]) -> bool {
    match path.strip_prefix(top) {
        Some(rest) => rest.is_empty() || rest[0] == b'/' || top == b"/",
        None => false,
    }
}

/// Returns the path that a read looks at: some take the empty path for the root.
fn read_path(path: &Ustring) -> &[u8] {
    match path.as_bytes() {
        b"" => b"/",
        path => path,
    }
}

/// A footprint while it is put together.
struct Builder<'a> {
    state: &'a State,
    found: Footprint,
}

impl Engine {
    /// Returns what a request of this connection would read and write now.
    ///
    /// With [`Footprint::commutes_with`] a test that tries the orders of requests leaves out those that
    /// cannot make a difference.
    #[must_use]
    pub fn footprint(&self, conn: ConnId, request: &Request) -> Footprint {
        let mut builder = Builder {
            state: &self.state,
            found: Footprint::default(),
        };
        if let Some(session) = builder.session_of(conn) {
            builder.found.writes(Resource::Stream(session));
        }
        builder.request(conn, request);
        builder.found
    }
}

impl Builder<'_> {
    fn session_of(&self, conn: ConnId) -> Option<SessionId> {
        let key = self.state.session_of(conn)?;
        Some(self.state.sessions[key].id)
    }

    fn request(&mut self, conn: ConnId, request: &Request) {
        // Usage is counted at every znode above, and quotas are znodes.
        if !self.state.quotas.is_empty() {
            return self.found.writes(Resource::Everything);
        }
        match request {
            Request::Create(create) => self.create(create, false),
            Request::Delete { path, .. } => self.delete(path.as_ref()),
            Request::SetData { path, .. } => self.set_data(path.as_ref()),
            Request::SetAcl { path, .. } => {
                let Some(path) = path else { return };
                self.may_set_quota(path.as_bytes());
                self.found.reads_stat(path.as_bytes());
                self.found.writes(Resource::Znode(path.as_bytes().to_vec()));
            }
            Request::Exists { path, .. }
            | Request::GetData { path, .. }
            | Request::GetAcl { path }
            | Request::GetChildren { path, .. }
            | Request::GetChildren2 { path, .. } => self.read(path.as_ref()),
            Request::GetAllChildrenNumber { path } => self.read_below(path.as_ref()),
            Request::GetEphemerals { .. } => {
                let own = self.session_of(conn).map(Resource::Owned);
                own.into_iter().for_each(|own| self.found.reads(own));
            }
            Request::Multi(requests) => requests.iter().for_each(|it| self.part(it)),
            Request::MultiRead(requests) => {
                for request in requests {
                    match request {
                        MultiReadOp::GetData { path, .. }
                        | MultiReadOp::GetChildren { path, .. } => {
                            self.read(path.as_ref());
                        }
                    }
                }
            }
            Request::SetWatches {
                data, exist, child, ..
            } => {
                for path in data.iter().chain(exist).chain(child) {
                    self.read(Some(path));
                }
            }
            Request::SetWatches2 {
                data,
                exist,
                child,
                persistent,
                persistent_recursive,
                ..
            } => {
                for path in data.iter().chain(exist).chain(child).chain(persistent) {
                    self.read(Some(path));
                }
                for path in persistent_recursive {
                    self.read_below(Some(path));
                }
            }
            // A recursive watch is told of changes anywhere below. The others are treated alike.
            Request::AddWatch { path, .. }
            | Request::CheckWatches { path, .. }
            | Request::RemoveWatches { path, .. } => self.read_below(path.as_ref()),
            Request::CloseSession => self.close(conn),
            Request::Ping
            | Request::Sync { .. }
            | Request::Auth { .. }
            | Request::Sasl { .. }
            | Request::WhoAmI
            | Request::Reconfig { .. }
            | Request::MultiReadOfChanges(_)
            | Request::Check { .. }
            | Request::CreateSession
            | Request::DeleteContainer { .. } => {}
        }
    }

    fn part(&mut self, part: &MultiOp) {
        match part {
            MultiOp::Create(create) => self.create(create, true),
            MultiOp::Delete { path, .. } => self.delete(path.as_ref()),
            MultiOp::SetData { path, .. } => self.set_data(path.as_ref()),
            MultiOp::Check { path, .. } => self.read(path.as_ref()),
        }
    }

    /// A change below `/zookeeper` may set a quota, which counts everything below its path.
    fn may_set_quota(&mut self, path: &[u8]) {
        if is_below(path, b"/zookeeper") {
            self.found.writes(Resource::Everything);
        }
    }

    fn read(&mut self, path: Option<&Ustring>) {
        if let Some(path) = path {
            self.found.reads_stat(read_path(path));
        }
    }

    fn read_below(&mut self, path: Option<&Ustring>) {
        if let Some(path) = path {
            let top = read_path(path).to_vec();
            self.found.reads(Resource::Subtree(top));
        }
    }

    /// Touches what a create does. Within a multi the number of a sequential znode depends on the parts
    /// before it.
    fn create(&mut self, create: &Create, is_part: bool) {
        let Some(path) = &create.path else { return };
        let path = path.as_bytes();
        self.may_set_quota(path);
        let Some(parent) = path::parent_of(path) else {
            return;
        };
        self.found.reads(Resource::Znode(parent.to_vec()));
        self.found
            .touch(Resource::Children(parent.to_vec()), Touch::Adds);
        let is_numbered =
            CreateMode::from_flags(create.flags).is_some_and(CreateMode::is_sequential);
        let created = Resource::Created(parent.to_vec());
        if !is_numbered {
            self.found.touch(created, Touch::Adds);
            self.creates(path);
        } else {
            self.found.writes(created);
            if is_part {
                self.creates_any_of(path);
            } else if let Some(parent) = self.state.tree.find(parent) {
                let mut numbered = path.to_vec();
                push_suffix(&mut numbered, self.state.tree[parent].created_children());
                self.creates(&numbered);
            }
        }
        self.tells(parent);
        self.tells_above(path);
    }

    fn creates(&mut self, path: &[u8]) {
        self.found.writes_whole(path);
        self.tells(path);
    }

    fn creates_any_of(&mut self, path: &[u8]) {
        self.found.writes(Resource::Numbered(path.to_vec()));
        let absent = self.state.watches.absent_paths();
        let absent: Vec<_> = absent
            .filter(|(_, watched)| watched.starts_with(path))
            .map(|(_, watched)| watched.to_vec())
            .collect();
        absent.iter().for_each(|watched| self.tells(watched));
    }

    fn delete(&mut self, path: Option<&Ustring>) {
        let Some(path) = path else { return };
        let path = path.as_bytes();
        self.may_set_quota(path);
        self.delete_at(path);
    }

    fn delete_at(&mut self, path: &[u8]) {
        self.found.writes_whole(path);
        self.tells(path);
        self.tells_above(path);
        if let Some(owner) = self.owner_of(path) {
            self.found.writes(Resource::Owned(owner));
        }
        let Some(parent) = path::parent_of(path) else {
            return;
        };
        self.found.reads(Resource::Znode(parent.to_vec()));
        self.found
            .touch(Resource::Children(parent.to_vec()), Touch::Adds);
        self.tells(parent);
    }

    fn set_data(&mut self, path: Option<&Ustring>) {
        let Some(path) = path else { return };
        let path = path.as_bytes();
        self.may_set_quota(path);
        self.found.reads_stat(path);
        self.found.writes(Resource::Data(path.to_vec()));
        self.tells(path);
        self.tells_above(path);
    }

    fn close(&mut self, conn: ConnId) {
        let Some(key) = self.state.session_of(conn) else {
            return;
        };
        let owned = self.state.sessions[key].ephemerals.iter();
        let owned: Vec<_> = owned
            .map(|(_, znode)| self.state.tree[*znode].path().to_vec())
            .collect();
        owned.iter().for_each(|path| self.delete_at(path));
    }

    fn owner_of(&self, path: &[u8]) -> Option<SessionId> {
        let znode = &self.state.tree[self.state.tree.find(path)?];
        let owner = znode.stat().ephemeral_owner;
        znode.owner.is_ephemeral().then_some(owner)
    }

    /// Sessions that watch this path may be sent an event.
    fn tells(&mut self, path: &[u8]) {
        self.tells_if(path, |_| true);
    }

    /// Sessions with a recursive watch above this path may be sent an event.
    fn tells_above(&mut self, path: &[u8]) {
        let mut above = Some(path);
        while let Some(at) = above {
            self.tells_if(at, |data| data.has(Modes::RECURSIVE));
            above = (at != b"/").then(|| path::parent_of(at)).flatten();
        }
    }

    fn tells_if(&mut self, path: &[u8], is_told: impl Fn(Modes) -> bool) {
        let (watches, tree) = (&self.state.watches, &self.state.tree);
        let ring = watches
            .place(tree, path)
            .and_then(|place| watches.ring(tree, place));
        let ring: Vec<WatchId> = ring.unwrap_or_default();
        for id in ring {
            let watch = watches.at(id);
            let conn = watches.conn_of(watch).filter(|_| is_told(watch.data));
            if let Some(session) = conn.and_then(|conn| self.session_of(conn)) {
                self.found.writes(Resource::Stream(session));
            }
        }
    }
}
