//! The operations of a client, one method each.

use std::sync::Arc;

use bytes::Bytes;
use minikeeper_protocol::{
    AclList, AddWatchMode, ClientInfo, Create, MultiReadOp, MultiResult, Request, Stat, Ustring,
};

use crate::{
    call::Call,
    client::Client,
    core::{requests::IfAbandoned, watches::WatchKind},
    create::{CreateOptions, withdrawn},
    multi::{self, Multi},
    news::Slot,
    paths,
    results::{Children, Created, Data, Names},
    watch::{OneShot, Persistent},
};

impl Client {
    // Changes.

    /// Creates a znode. A sequential one gets ten digits behind its name.
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
    pub fn delete(&self, path: &str, version: Option<i32>) -> Call<()> {
        self.plain(path, |path| Request::Delete {
            path,
            version: version.unwrap_or(-1),
        })
    }

    /// Deletes a childless znode whatever its version, and goes on trying if the answer gets lost
    /// or nobody waits for it: in this session until it is gone, in the next once.
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
    pub fn set_data(&self, path: &str, data: &[u8], version: Option<i32>) -> Call<Stat> {
        self.plain(path, |path| Request::SetData {
            path,
            data: Some(Bytes::copy_from_slice(data)),
            version: version.unwrap_or(-1),
        })
    }

    /// Sets a znode's access list, if that has this version (`aversion`) unless it is `None`.
    pub fn set_acl(&self, path: &str, acl: &AclList, version: Option<i32>) -> Call<Stat> {
        self.plain(path, |path| Request::SetAcl {
            path,
            acl: acl.clone(),
            version: version.unwrap_or(-1),
        })
    }

    /// Makes several changes together or not at all.
    pub fn multi(&self, multi: Multi) -> Call<Vec<MultiResult>> {
        match multi.encode(self.shared.chroot.as_ref()) {
            Ok(ops) => self.request(Request::Multi(ops), None, None),
            Err(error) => self.failed(&Request::Multi(Vec::new()), error.into()),
        }
    }

    // Reads.

    /// The stat of a znode; `None` if it is not there.
    pub fn exists(&self, path: &str) -> Call<Option<Stat>> {
        self.plain(path, |path| Request::Exists { path, watch: false })
    }

    /// The same, and a watch on its creation, data or deletion.
    pub fn exists_and_watch(&self, path: &str) -> Call<(Option<Stat>, OneShot)> {
        self.watching(path, WatchKind::Data, |path| Request::Exists {
            path,
            watch: true,
        })
    }

    /// The data of a znode.
    pub fn get_data(&self, path: &str) -> Call<Data> {
        self.plain(path, |path| Request::GetData { path, watch: false })
    }

    /// The same, and a watch on its data and deletion.
    pub fn get_data_and_watch(&self, path: &str) -> Call<(Data, OneShot)> {
        self.watching(path, WatchKind::Data, |path| Request::GetData {
            path,
            watch: true,
        })
    }

    /// The names of a znode's children, with its stat.
    pub fn children(&self, path: &str) -> Call<Children> {
        self.plain(path, |path| Request::GetChildren2 { path, watch: false })
    }

    /// The names of a znode's children only: 68 bytes less to come back.
    pub fn child_names(&self, path: &str) -> Call<Names> {
        self.plain(path, |path| Request::GetChildren { path, watch: false })
    }

    /// The same as [`Client::children`], and a watch on the children and on its deletion.
    pub fn children_and_watch(&self, path: &str) -> Call<(Children, OneShot)> {
        self.watching(path, WatchKind::Child, |path| Request::GetChildren2 {
            path,
            watch: true,
        })
    }

    /// The access list of a znode.
    pub fn get_acl(&self, path: &str) -> Call<(AclList, Stat)> {
        self.plain(path, |path| Request::GetAcl { path })
    }

    /// Returns when this server knows every change the service had made when it was asked.
    pub fn sync(&self, path: &str) -> Call<()> {
        self.plain(path, |path| Request::Sync { path })
    }

    /// Several reads at once, each with its own outcome: data of the first paths, names of the
    /// children of the others.
    pub fn multi_read(&self, data: &[&str], children: &[&str]) -> Call<Vec<MultiResult>> {
        let full = |path: &&str| paths::full(self.shared.chroot.as_ref(), path, false).map(Some);
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

    /// The paths of this session's ephemeral znodes that begin with this text.
    pub fn ephemerals(&self, prefix: &str) -> Call<Vec<String>> {
        self.plain(prefix, |prefix| Request::GetEphemerals { prefix })
    }

    /// How many znodes lie below this one, at any depth.
    pub fn all_children_number(&self, path: &str) -> Call<u32> {
        self.plain(path, |path| Request::GetAllChildrenNumber { path })
    }

    /// The identities the server knows this client by.
    pub fn who_am_i(&self) -> Call<Vec<ClientInfo>> {
        self.request(Request::WhoAmI, None, None)
    }

    // Watches and identities.

    /// Watches a znode and its children, or all below it, until the watch is dropped.
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
    pub fn add_identity(&self, scheme: &str, data: &[u8]) -> Call<()> {
        let (scheme, data) = (Ustring::from(scheme), Bytes::copy_from_slice(data));
        let about = Request::Auth {
            kind: 0,
            scheme: None,
            data: None,
        };
        let slot = self.shared.with_rearm(|inner, now| {
            let slot = inner.news.slots.insert(Slot::Waiting(None));
            let caller = u32::try_from(slot).expect("memory ends before this many calls");
            inner
                .core
                .add_identity(now, scheme, data, caller, &mut inner.news);
            slot
        });
        Call::made(Arc::clone(&self.shared), slot, self.about(&about), None)
    }
}
