//! The operations of a client, one method each, and the options of a creation.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use minikeeper_protocol::{
    AclList, AddWatchMode, ClientInfo, Create, CreateMode, CreateOp, MultiReadOp, MultiResult,
    Request, Stat, Ustring,
};

use crate::{
    call::{Call, Children, Created, Data, Names},
    client::Client,
    core::{cleanup::Target, outcome::Epoch, requests::IfAbandoned, watches::WatchKind},
    error::Error,
    multi::Multi,
    notifications::Slot,
    paths,
    watch::{OneShot, Persistent},
};

#[cfg(doc)]
use crate::ErrorCode;

impl Client {
    // Changes.

    /// Creates a znode. A sequential one gets ten digits appended to its name.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NodeExists`], [`ErrorCode::NoNode`] if the parent is
    /// missing, [`ErrorCode::NoChildrenForEphemerals`] if it is ephemeral; otherwise as [`Call`]
    /// says.
    ///
    /// # Cancel safety
    /// Dropping the call does not recall the request: the znode may exist. With
    /// [`CreateOptions::withdrawn_if_dropped`] the client deletes it.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// use minikeeper_client::CreateMode;
    ///
    /// client.create("/queue", b"", CreateMode::Persistent).await?;
    /// let created = client.create("/queue/n-", b"", CreateMode::EphemeralSequential).await?;
    /// assert_eq!(created.path, "/queue/n-0000000000");
    /// # Ok(()) });
    /// ```
    pub fn create(
        &self,
        path: &str,
        data: &[u8],
        options: impl Into<CreateOptions>,
    ) -> Call<Created> {
        let options = options.into();
        self.call(path, options.mode.is_sequential(), None, |path| {
            let if_abandoned = options.is_withdrawn.then(|| withdrawn(&path));
            let create = options.encode(self, path, Bytes::copy_from_slice(data));
            (Request::Create(create), if_abandoned)
        })
    }

    /// Deletes a childless znode if it has this version; `None` matches any.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`], [`ErrorCode::BadVersion`],
    /// [`ErrorCode::NotEmpty`] if it has children; otherwise as [`Call`] says.
    pub fn delete(&self, path: &str, version: Option<i32>) -> Call<()> {
        self.plain(path, |path| Request::Delete {
            path,
            version: version.unwrap_or(-1),
        })
    }

    /// Deletes a childless znode of any version, and retries if the reply is lost or the call is
    /// dropped: in the same session until the znode is gone, in the next session once.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`] or [`ErrorCode::NotEmpty`]; otherwise as
    /// [`Call`] says, while the client retries in the background.
    ///
    /// # Cancel safety
    /// Dropping the call does not stop the deletion: the client retries in the background.
    pub fn delete_for_certain(&self, path: &str) -> Call<()> {
        self.call(path, false, None, |path| {
            let if_abandoned = Some(IfAbandoned::DeleteStill(path.clone()));
            let delete = Request::Delete {
                path: Some(path),
                version: -1,
            };
            (delete, if_abandoned)
        })
    }

    /// Sets a znode's data if the znode has this version; `None` matches any.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`] or [`ErrorCode::BadVersion`]; otherwise as
    /// [`Call`] says.
    pub fn set_data(&self, path: &str, data: &[u8], version: Option<i32>) -> Call<Stat> {
        self.plain(path, |path| Request::SetData {
            path,
            data: Some(Bytes::copy_from_slice(data)),
            version: version.unwrap_or(-1),
        })
    }

    /// Sets a znode's access list if the list has this version (`aversion`); `None` matches any.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`], [`ErrorCode::BadVersion`],
    /// [`ErrorCode::InvalidAcl`]; otherwise as [`Call`] says.
    pub fn set_acl(&self, path: &str, acl: &AclList, version: Option<i32>) -> Call<Stat> {
        self.plain(path, |path| Request::SetAcl {
            path,
            acl: acl.clone(),
            version: version.unwrap_or(-1),
        })
    }

    /// Makes several changes, all or none.
    ///
    /// # Errors
    /// [`Error::MultiRefused`] with the first operation that was refused: nothing was changed.
    /// Otherwise as [`Call`] says.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// # use minikeeper_client::CreateMode;
    /// # client.create("/a", b"hello", CreateMode::Persistent).await?;
    /// use minikeeper_client::{Error, Multi};
    ///
    /// let refused = Multi::new().set_data("/a", b"bye", None).check("/b", None);
    /// match client.multi(refused).await {
    ///     Err(Error::MultiRefused { index, path, .. }) => assert_eq!((index, &*path), (1, "/b")),
    ///     other => panic!("/b does not exist, but the multi returned {other:?}"),
    /// }
    /// assert_eq!(client.get_data("/a").await?.as_bytes(), b"hello");
    /// # Ok(()) });
    /// ```
    pub fn multi(&self, multi: Multi) -> Call<Vec<MultiResult>> {
        match multi.encode(self) {
            Ok(ops) => self.request(Request::Multi(ops), None, None),
            Err(error) => self.failed(&Request::Multi(Vec::new()), error.into()),
        }
    }

    /// Changes the members of an ensemble, and returns the new configuration.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::ReconfigDisabled`], as from minikeeper and by default from
    /// ZooKeeper, [`ErrorCode::Unimplemented`] from a standalone server, [`ErrorCode::NoAuth`],
    /// [`ErrorCode::BadVersion`], [`ErrorCode::BadArguments`], [`ErrorCode::NewConfigNoQuorum`] or
    /// [`ErrorCode::ReconfigInProgress`]; otherwise as [`Call`] says.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// use minikeeper_client::Reconfiguration;
    ///
    /// let change = Reconfiguration::new().joining("server.4=zk4:2888:3888;2181").leaving("1");
    /// // Only ensembles accept it.
    /// assert!(client.reconfigure(change).await.is_err());
    /// # Ok(()) });
    /// ```
    pub fn reconfigure(&self, change: Reconfiguration) -> Call<Data> {
        let text = |text: Option<String>| text.map(Ustring::from);
        let request = Request::Reconfig {
            joining: text(change.joining),
            leaving: text(change.leaving),
            members: text(change.members),
            config_id: change.from_version,
        };
        self.outside_chroot(request, None)
    }

    // Watches and identities.

    /// Watches a znode and its list of children, or all znodes below it, until the watch is
    /// dropped.
    ///
    /// # Errors
    /// See [`Call`]. The znode may be missing.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// use minikeeper_client::{AddWatchMode, CreateMode, WatchEvent};
    ///
    /// let mut changes = client.add_watch("/", AddWatchMode::PersistentRecursive).await?;
    /// client.create("/a", b"", CreateMode::Persistent).await?;
    /// match changes.next().await {
    ///     WatchEvent::Event { path, .. } => assert_eq!(path, "/a"),
    ///     other => panic!("/a was created, but the watch returned {other:?}"),
    /// }
    /// # Ok(()) });
    /// ```
    pub fn add_watch(&self, path: &str, mode: AddWatchMode) -> Call<Persistent> {
        let kind = match mode {
            AddWatchMode::Persistent => WatchKind::Persistent,
            AddWatchMode::PersistentRecursive => WatchKind::PersistentRecursive,
        };
        self.watching(path, kind, |path| Request::AddWatch {
            path,
            mode: mode.code(),
        })
    }

    /// Sends an identity now and on every later connection. If a server rejects it, the client
    /// ends.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] with [`Cause::SessionLost`](crate::Cause::SessionLost) or
    /// [`Cause::Closed`](crate::Cause::Closed) if the server does not accept it.
    #[expect(
        clippy::missing_panics_doc,
        reason = "memory runs out before the number of a slot does"
    )]
    pub fn add_identity(&self, scheme: &str, data: &[u8]) -> Call<()> {
        let (scheme, data) = (Ustring::from(scheme), Bytes::copy_from_slice(data));
        let about = Request::Auth {
            kind: 0,
            scheme: None,
            data: None,
        };
        let slot = self.shared.with_rearm(|inner, now| {
            let slot = inner.notifications.slots.insert(Slot::Waiting(None));
            let caller = u32::try_from(slot).expect("memory runs out before 2^32 calls");
            inner
                .core
                .add_identity(now, scheme, data, caller, &mut inner.notifications);
            slot
        });
        Call::made(Arc::clone(&self.shared), slot, self.about(&about), None)
    }
}

impl Client {
    /// Reads the stat of a znode; `None` if it does not exist.
    ///
    /// # Errors
    /// See [`Call`]; a missing znode is not an error.
    pub fn exists(&self, path: &str) -> Call<Option<Stat>> {
        self.plain(path, |path| Request::Exists { path, watch: false })
    }

    /// Like [`Client::exists`], with a watch for creation, changes of data and deletion.
    ///
    /// # Errors
    /// See [`Call`]; a missing znode is not an error.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// # use minikeeper_client::CreateMode;
    /// let (stat, created) = client.exists_and_watch("/a").await?;
    /// assert!(stat.is_none());
    /// client.create("/a", b"", CreateMode::Persistent).await?;
    /// created.await;
    /// # Ok(()) });
    /// ```
    pub fn exists_and_watch(&self, path: &str) -> Call<(Option<Stat>, OneShot)> {
        self.watching(path, WatchKind::Data, |path| Request::Exists {
            path,
            watch: true,
        })
    }

    /// Reads the data of a znode.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`]; otherwise as [`Call`] says.
    pub fn get_data(&self, path: &str) -> Call<Data> {
        self.plain(path, |path| Request::GetData { path, watch: false })
    }

    /// Like [`Client::get_data`], with a watch for changes of data and deletion.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`], which leaves no watch; otherwise as [`Call`]
    /// says.
    pub fn get_data_and_watch(&self, path: &str) -> Call<(Data, OneShot)> {
        self.watching(path, WatchKind::Data, |path| Request::GetData {
            path,
            watch: true,
        })
    }

    /// Reads the configuration of the ensemble, in `/zookeeper/config`, also with a chroot.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`] from servers before 3.5; otherwise as [`Call`]
    /// says.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// let config = client.config().await?;
    /// println!("{}", String::from_utf8_lossy(config.as_bytes()));
    /// # Ok(()) });
    /// ```
    pub fn config(&self) -> Call<Data> {
        self.outside_chroot(read_config(false), None)
    }

    /// Like [`Client::config`], with a watch for changes.
    ///
    /// # Errors
    /// As [`Client::config`]; an error leaves no watch.
    pub fn config_and_watch(&self) -> Call<(Data, OneShot)> {
        self.outside_chroot(read_config(true), Some(WatchKind::Data))
    }

    /// Reads the names of a znode's children, and the znode's stat.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`]; otherwise as [`Call`] says.
    pub fn children(&self, path: &str) -> Call<Children> {
        self.plain(path, |path| Request::GetChildren2 { path, watch: false })
    }

    /// Reads the names of a znode's children without the znode's stat, which saves 68 bytes.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`]; otherwise as [`Call`] says.
    pub fn child_names(&self, path: &str) -> Call<Names> {
        self.plain(path, |path| Request::GetChildren { path, watch: false })
    }

    /// Like [`Client::children`], with a watch for created and deleted children and the deletion of
    /// the znode.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`], which leaves no watch; otherwise as [`Call`]
    /// says.
    pub fn children_and_watch(&self, path: &str) -> Call<(Children, OneShot)> {
        self.watching(path, WatchKind::Child, |path| Request::GetChildren2 {
            path,
            watch: true,
        })
    }

    /// Reads the access list of a znode.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`]; otherwise as [`Call`] says.
    pub fn get_acl(&self, path: &str) -> Call<(AclList, Stat)> {
        self.plain(path, |path| Request::GetAcl { path })
    }

    /// Waits until this server has applied all changes that the service had committed at the time
    /// of the request.
    ///
    /// # Errors
    /// See [`Call`].
    pub fn sync(&self, path: &str) -> Call<()> {
        self.plain(path, |path| Request::Sync { path })
    }

    /// Reads several znodes in one request, each with its own result: the data of the paths in
    /// `data`, the names of the children of the paths in `children`.
    ///
    /// # Errors
    /// See [`Call`].
    pub fn multi_read(&self, data: &[&str], children: &[&str]) -> Call<Vec<MultiResult>> {
        let full = |path: &&str| paths::full(self.root.as_ref(), path, false).map(Some);
        let data = data.iter().map(|path| {
            let path = full(path)?;
            Ok(MultiReadOp::GetData { path, watch: false })
        });
        let children = children.iter().map(|path| {
            let path = full(path)?;
            Ok(MultiReadOp::GetChildren { path, watch: false })
        });
        match data.chain(children).collect() {
            Ok(ops) => self.request(Request::MultiRead(ops), None, None),
            Err(error) => self.failed(&Request::MultiRead(Vec::new()), error),
        }
    }

    /// Lists the paths of this session's ephemeral znodes that begin with a prefix.
    ///
    /// # Errors
    /// See [`Call`].
    pub fn ephemerals(&self, prefix: &str) -> Call<Vec<String>> {
        self.plain(prefix, |prefix| Request::GetEphemerals { prefix })
    }

    /// Counts the znodes below this one, at any depth.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`]; otherwise as [`Call`] says.
    pub fn all_children_number(&self, path: &str) -> Call<u32> {
        self.plain(path, |path| Request::GetAllChildrenNumber { path })
    }

    /// Lists the identities of this client that the server has accepted.
    ///
    /// # Errors
    /// See [`Call`].
    pub fn who_am_i(&self) -> Call<Vec<ClientInfo>> {
        self.request(Request::WhoAmI, None, None)
    }
}

/// The options of the creation of a znode. A [`CreateMode`] converts into it.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use std::time::Duration;
///
/// use minikeeper_client::{CreateMode, CreateOptions};
///
/// let brief = CreateOptions::new(CreateMode::PersistentWithTtl).ttl(Duration::from_secs(60));
/// client.create("/brief", b"", brief).await?;
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateOptions {
    pub(crate) mode: CreateMode,
    /// `None` leaves the choice to the client's provider.
    acl: Option<AclList>,
    ttl_ms: i64,
    is_withdrawn: bool,
    is_null: bool,
}

impl CreateOptions {
    /// The shortest time to live: 1 ms.
    pub const TTL_MIN: Duration = Duration::from_millis(1);
    /// The longest time to live: 2^40 - 1 ms, about 34.8 years.
    pub const TTL_MAX: Duration = Duration::from_millis((1 << 40) - 1);

    /// Returns options for a znode of this mode.
    #[must_use]
    pub const fn new(mode: CreateMode) -> Self {
        Self {
            mode,
            acl: None,
            ttl_ms: 0,
            is_withdrawn: false,
            is_null: false,
        }
    }

    /// Creates the znode with null instead of the data, which differs from empty data. Default: false.
    #[must_use]
    pub const fn null_data(mut self, is_null: bool) -> Self {
        self.is_null = is_null;
        self
    }

    /// Sets the access list. Default: that of the client's [`AclProvider`](crate::AclProvider).
    #[must_use]
    pub fn acl(mut self, acl: AclList) -> Self {
        self.acl = Some(acl);
        self
    }

    /// Sets how long the znode lives without changes and children, for the modes with a time to
    /// live. Servers refuse one out of range, with BADARGUMENTS.
    ///
    /// Unit: whole milliseconds. Range: [`Self::TTL_MIN`] to [`Self::TTL_MAX`].
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl_ms = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
        self
    }

    /// Sets whether dropping the call deletes the znode, even if the request is still pending or
    /// the reply is lost. The client finds the znode by its name, so the name must be unique: locks
    /// put a UUID in front. Default: false.
    #[must_use]
    pub const fn withdrawn_if_dropped(mut self, is_withdrawn: bool) -> Self {
        self.is_withdrawn = is_withdrawn;
        self
    }

    /// Returns the request for a znode at this path, which is the server's.
    pub(crate) fn encode(&self, client: &Client, path: Ustring, data: Bytes) -> Create {
        let acl = self.acl.clone();
        Create {
            op: match self.mode {
                CreateMode::Container => CreateOp::Container,
                mode if mode.has_ttl() => CreateOp::Ttl,
                _ => CreateOp::Create2,
            },
            acl: acl.unwrap_or_else(|| client.acl_for(&path)),
            path: Some(path),
            data: (!self.is_null).then_some(data),
            flags: self.mode.flags(),
            ttl_ms: self.ttl_ms,
        }
    }
}

/// A change of the members of an ensemble: some join or leave, or all are replaced.
///
/// # Examples
/// ```
/// use minikeeper_client::Reconfiguration;
/// let change = Reconfiguration::new().leaving("1,2").from_version(Some(0x10000002a));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "nothing is changed until it is passed to `Client::reconfigure`"]
pub struct Reconfiguration {
    joining: Option<String>,
    leaving: Option<String>,
    members: Option<String>,
    from_version: i64,
}

impl Reconfiguration {
    /// Creates an empty change, for any version of the configuration.
    pub const fn new() -> Self {
        Self {
            joining: None,
            leaving: None,
            members: None,
            from_version: -1,
        }
    }

    /// Sets the servers that join, or whose addresses change: `server.ID=HOST:PORT:PORT;PORT`,
    /// separated by commas.
    pub fn joining(mut self, servers: impl Into<String>) -> Self {
        self.joining = Some(servers.into());
        self
    }

    /// Sets the ids of the servers that leave, separated by commas.
    pub fn leaving(mut self, ids: impl Into<String>) -> Self {
        self.leaving = Some(ids.into());
        self
    }

    /// Sets all members, instead of those that join and leave; separated by commas or line ends.
    pub fn members(mut self, servers: impl Into<String>) -> Self {
        self.members = Some(servers.into());
        self
    }

    /// Sets the version that the configuration must have; `None` matches any. Default: `None`.
    pub fn from_version(mut self, version: Option<i64>) -> Self {
        self.from_version = version.unwrap_or(-1);
        self
    }
}

impl Default for Reconfiguration {
    fn default() -> Self {
        Self::new()
    }
}

fn read_config(watch: bool) -> Request {
    Request::GetData {
        path: Some(Ustring::from_static("/zookeeper/config")),
        watch,
    }
}

impl From<CreateMode> for CreateOptions {
    fn from(mode: CreateMode) -> Self {
        Self::new(mode)
    }
}

/// Returns the parent and the unique part of the name, if the name begins as those of Curator's
/// locks do: with `_c_`, a UUID and `-`.
fn protected(path: &Ustring) -> Option<(Ustring, Ustring)> {
    const BYTES: usize = 40;
    let bytes = path.clone().into_bytes();
    let slash = bytes.iter().rposition(|byte| *byte == b'/')?;
    let name = bytes.slice(slash + 1..);
    let is_protected = name.len() > BYTES
        && name.starts_with(b"_c_")
        && name[BYTES - 1] == b'-'
        && name[3..BYTES - 1]
            .iter()
            .all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    is_protected.then(|| {
        let parent = bytes.slice(..slash.max(1));
        (parent.into(), name.slice(..BYTES).into())
    })
}

/// Returns the clean-up that deletes the znode which a dropped call may have created.
pub(crate) fn withdrawn(path: &Ustring) -> IfAbandoned {
    let bytes = path.clone().into_bytes();
    let slash = bytes.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    IfAbandoned::DeleteCreated {
        parent: bytes.slice(..slash.max(1)).into(),
        prefix: bytes.slice(slash + 1..).into(),
    }
}

impl Client {
    /// Deletes a znode that was created in this epoch, in the background: it retries in the same
    /// session until the znode is gone, and tries once in the next session. Does nothing on a
    /// closed client, whose session is over anyway. A znode that has children is given up after
    /// about half a minute, see [`Client::clean_ups_forbidden`].
    ///
    /// If there is no znode with this path, and its name begins as those of Curator's locks do
    /// (`_c_`, a UUID, `-`), the client looks for a znode whose name begins with the same UUID.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn clean_up(&self, epoch: Epoch, path: &str) -> Result<(), Error> {
        let path = paths::full(self.root.as_ref(), path, false)?;
        let target = match protected(&path) {
            Some((parent, prefix)) => Target::Created {
                path,
                parent,
                prefix,
            },
            None => Target::Named(path),
        };
        self.hand_over(epoch, target);
        Ok(())
    }

    /// Like [`Client::clean_up`], for a znode whose creation got no reply: any child of `parent`
    /// whose name begins with `prefix`. The client looks for the znode only in the same session,
    /// after a sync.
    ///
    /// It lists the children of `parent`. If that list is longer than
    /// [`ClientBuilder::frame_bytes_max`](crate::ClientBuilder::frame_bytes_max), the reply ends the
    /// connection, once in a session. From then on the client finds ephemeral znodes, from a server
    /// of version 3.6 or later, and a znode whose whole name is `prefix`.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn clean_up_unanswered(
        &self,
        epoch: Epoch,
        parent: &str,
        prefix: &str,
    ) -> Result<(), Error> {
        let parent = paths::full(self.root.as_ref(), parent, false)?;
        let prefix = Ustring::from(prefix);
        self.hand_over(epoch, Target::Prefixed { parent, prefix });
        Ok(())
    }

    fn hand_over(&self, epoch: Epoch, target: Target) {
        self.shared
            .with_rearm(|inner, now| inner.core.clean_up(now, epoch, target));
        self.shared.flush();
    }

    /// Returns how many clean-ups are pending.
    #[must_use]
    pub fn clean_ups_pending(&self) -> usize {
        self.shared.with(|inner, _| inner.core.clean_ups_pending())
    }

    /// Returns how many clean-ups were given up because the server does not permit them, or because
    /// the znode has children.
    #[must_use]
    pub fn clean_ups_forbidden(&self) -> u64 {
        self.shared
            .with(|inner, _| inner.core.clean_ups_forbidden())
    }
}
