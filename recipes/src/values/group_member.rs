//! The group member: a process announces itself and sees the others.
//!
//! Source: Curator's `GroupMember`.

use std::{collections::BTreeMap, fmt, sync::Arc};

use minikeeper_client::{Client, CreateMode, Error, ZnodePath};

use crate::{
    caches::{CacheError, CachedZnode, ChildrenChanges, ChildrenEvent, PathChildrenCache},
    error::LockError,
    queue::naming,
    values::persistent_node::PersistentNode,
};

/// A member of a group of processes, compatible with Curator's class of the same name in Java. It
/// announces itself by an ephemeral znode, which survives lost sessions, and sees the other members.
///
/// Dropping it leaves the group, in the background.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::GroupMember;
///
/// let member = GroupMember::start(client, "/groups/billing", "host-7", b"10.0.0.7")?;
/// member.joined().await?;
/// for (id, payload) in member.members() {
///     println!("{id}: {} bytes", payload.len());
/// }
/// member.close().await?;
/// # Ok(()) });
/// ```
pub struct GroupMember {
    id: String,
    payload: parking_lot::Mutex<Arc<[u8]>>,
    node: PersistentNode,
    cache: PathChildrenCache,
}

impl fmt::Debug for GroupMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupMember")
            .field("id", &self.id)
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

impl GroupMember {
    /// Starts to join the group in this directory, as the member of this id, which is the name of its
    /// znode. Members with the same id join one after the other.
    ///
    /// Default payload in Curator: the IP address of the host.
    ///
    /// # Errors
    /// [`Error::Path`] if the directory or the id is invalid. [`Error::NoRuntime`] outside a tokio
    /// runtime.
    pub fn start(client: Client, directory: &str, id: &str, payload: &[u8]) -> Result<Self, Error> {
        ZnodePath::new(directory)?;
        // With a slash the id would be a path below the directory: doubled, that is refused.
        let path = naming::join(directory, &id.replace('/', "//"));
        let cache = PathChildrenCache::start(client.clone(), directory)?;
        let node = PersistentNode::start(client, &path, payload, CreateMode::Ephemeral)?;
        Ok(Self {
            id: id.to_owned(),
            payload: parking_lot::Mutex::new(payload.into()),
            node,
            cache,
        })
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits until this member's znode exists and the others are known.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect: the member continues to join.
    ///
    /// # Errors
    /// [`GroupError`] when a server refuses or the client is closed, or after the client's
    /// [`call_timeout`](Client::call_timeout): the member continues to join.
    pub async fn joined(&self) -> Result<(), GroupError> {
        // Together, so that both have the same limit.
        let (created, initialized) =
            tokio::join!(self.node.created(), self.cache.cache().initialized());
        created?;
        Ok(initialized?)
    }

    /// Returns all members that are known, by id, with their payloads. This one is always among
    /// them, as in Curator. Sends nothing.
    #[must_use]
    pub fn members(&self) -> BTreeMap<String, Arc<[u8]>> {
        let entry = |znode: Arc<CachedZnode>| (znode.name().to_owned(), znode.data().into());
        let mut members: BTreeMap<_, _> =
            self.cache.current_data().into_iter().map(entry).collect();
        members.insert(self.id.clone(), Arc::clone(&self.payload.lock()));
        members
    }

    /// Returns a stream of the later changes of the group.
    #[must_use]
    pub fn changes(&self) -> GroupChanges {
        GroupChanges {
            changes: self.cache.changes(),
        }
    }

    /// Sets this member's payload. Does not wait.
    pub fn set_payload(&self, payload: &[u8]) {
        // Locked until the end: of two calls, the same one is last in both.
        let mut current = self.payload.lock();
        *current = payload.into();
        self.node.set_data(payload);
    }

    /// Leaves the group, and waits until this member's znode is deleted.
    ///
    /// # Cancel safety
    /// Once polled, leaving continues when the future is dropped.
    ///
    /// # Errors
    /// Those of [`PersistentNode::close`].
    pub async fn close(&self) -> Result<(), LockError> {
        let left = self.node.close().await;
        self.cache.cache().close().await;
        left
    }
}

/// The reason why a member did not join.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The member's znode was not created.
    #[error(transparent)]
    Node(#[from] LockError),
    /// The other members are not known.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

impl From<Error> for GroupError {
    fn from(error: Error) -> Self {
        Self::Node(error.into())
    }
}

/// A stream of changes of a group. Returned by [`GroupMember::changes`].
#[derive(Debug)]
pub struct GroupChanges {
    changes: ChildrenChanges,
}

impl GroupChanges {
    /// Waits until the members or a payload change, and returns the id of the member that joined,
    /// changed or left; `None` if several may have. [`GroupMember::members`] then shows the change.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    ///
    /// # Errors
    /// [`CacheError`] when the cache has ended, for example because the member was closed.
    pub async fn next(&mut self) -> Result<Option<String>, CacheError> {
        Ok(match self.changes.next().await? {
            ChildrenEvent::ChildAdded { child }
            | ChildrenEvent::ChildUpdated { child, .. }
            | ChildrenEvent::ChildRemoved { child } => Some(child.name().to_owned()),
            ChildrenEvent::Initialized | ChildrenEvent::Lagged { .. } => None,
        })
    }
}
