//! The changes a client makes, its watches and identities, one method each.

use std::sync::Arc;

use bytes::Bytes;
use minikeeper_protocol::{AclList, AddWatchMode, Create, MultiResult, Request, Stat, Ustring};

#[cfg(doc)]
use crate::{Error, ErrorCode};
use crate::{
    call::Call,
    client::Client,
    core::{requests::IfAbandoned, watches::WatchKind},
    create::{CreateOptions, withdrawn},
    multi::{self, Multi},
    notifications::Slot,
    results::Created,
    watch::Persistent,
};

impl Client {
    // Changes.

    /// Creates a znode. A sequential one gets ten digits behind its name.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NodeExists`], [`ErrorCode::NoNode`] if the parent is
    /// missing, [`ErrorCode::NoChildrenForEphemerals`] if it is ephemeral; otherwise as [`Call`]
    /// says.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_client::CreateMode;
    ///
    /// client.create("/queue", b"", CreateMode::Persistent).await?;
    /// let created = client.create("/queue/n-", b"", CreateMode::EphemeralSequential).await?;
    /// assert_eq!(created.path, "/queue/n-0000000000");
    /// # Ok(()) }
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
            let create = Request::Create(Create {
                op: multi::create_op(options.mode),
                path: Some(path),
                data: Some(Bytes::copy_from_slice(data)),
                acl: options.acl,
                flags: options.mode.flags(),
                ttl_ms: options.ttl_ms,
            });
            (create, if_abandoned)
        })
    }

    /// Deletes a childless znode, if it has this version unless that is `None`.
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

    /// Deletes a childless znode whatever its version, and goes on trying if the answer gets lost
    /// or nobody waits for it: in this session until it is gone, in the next once.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`] or [`ErrorCode::NotEmpty`]; otherwise as
    /// [`Call`] says, and it is tried again all the same.
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

    /// Sets a znode's data, if it has this version unless that is `None`.
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

    /// Sets a znode's access list, if that has this version (`aversion`) unless it is `None`.
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

    /// Makes several changes together or not at all.
    ///
    /// # Errors
    /// [`Error::MultiRefused`] with the first operation that was refused: none of them was carried
    /// out. Otherwise as [`Call`] says.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// # client.create("/a", b"hello", CreateMode::Persistent).await?;
    /// use minikeeper_client::{Error, Multi};
    ///
    /// let refused = Multi::new().set_data("/a", b"bye", None).check("/b", None);
    /// match client.multi(refused).await {
    ///     Err(Error::MultiRefused { index, path, .. }) => assert_eq!((index, &*path), (1, "/b")),
    ///     other => panic!("there is no /b, so not {other:?}"),
    /// }
    /// assert_eq!(client.get_data("/a").await?.as_bytes(), b"hello");
    /// # Ok(()) }
    /// ```
    pub fn multi(&self, multi: Multi) -> Call<Vec<MultiResult>> {
        match multi.encode(self.shared.chroot.as_ref()) {
            Ok(ops) => self.request(Request::Multi(ops), None, None),
            Err(error) => self.failed(&Request::Multi(Vec::new()), error.into()),
        }
    }

    // Watches and identities.

    /// Watches a znode and its children, or all below it, until the watch is dropped.
    ///
    /// # Errors
    /// As [`Call`] says. The znode may be missing.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// use minikeeper_client::{AddWatchMode, CreateMode, WatchEvent};
    ///
    /// let mut changes = client.add_watch("/", AddWatchMode::PersistentRecursive).await?;
    /// client.create("/a", b"", CreateMode::Persistent).await?;
    /// match changes.next().await {
    ///     WatchEvent::Event { path, .. } => assert_eq!(path, "/a"),
    ///     other => panic!("something was created, so not {other:?}"),
    /// }
    /// # Ok(()) }
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

    /// Says who this client is, here and on every later connection. A server that does not accept
    /// it ends the client.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] with [`Cause::SessionLost`](crate::Cause::SessionLost) or
    /// [`Cause::Closed`](crate::Cause::Closed) if the server does not accept it.
    #[expect(
        clippy::missing_panics_doc,
        reason = "memory ends before a slot's number does"
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
            let caller = u32::try_from(slot).expect("memory ends before this many calls");
            inner
                .core
                .add_identity(now, scheme, data, caller, &mut inner.notifications);
            slot
        });
        Call::made(Arc::clone(&self.shared), slot, self.about(&about), None)
    }
}
