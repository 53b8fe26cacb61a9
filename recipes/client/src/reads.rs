//! What a client reads, one method each.

use minikeeper_protocol::{AclList, ClientInfo, MultiReadOp, MultiResult, Request, Stat};

#[cfg(doc)]
use crate::{Error, ErrorCode};
use crate::{
    call::Call,
    client::Client,
    core::watches::WatchKind,
    paths,
    results::{Children, Data, Names},
    watch::OneShot,
};

impl Client {
    /// The stat of a znode; `None` if it is not there.
    ///
    /// # Errors
    /// As [`Call`] says; a missing znode is none.
    pub fn exists(&self, path: &str) -> Call<Option<Stat>> {
        self.plain(path, |path| Request::Exists { path, watch: false })
    }

    /// The same, and a watch on its creation, data or deletion.
    ///
    /// # Errors
    /// As [`Call`] says; a missing znode is none.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// let (stat, created) = client.exists_and_watch("/a").await?;
    /// assert!(stat.is_none());
    /// client.create("/a", b"", CreateMode::Persistent).await?;
    /// created.await;
    /// # Ok(()) }
    /// ```
    pub fn exists_and_watch(&self, path: &str) -> Call<(Option<Stat>, OneShot)> {
        self.watching(path, WatchKind::Data, |path| Request::Exists {
            path,
            watch: true,
        })
    }

    /// The data of a znode.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`]; otherwise as [`Call`] says.
    pub fn get_data(&self, path: &str) -> Call<Data> {
        self.plain(path, |path| Request::GetData { path, watch: false })
    }

    /// The same, and a watch on its data and deletion.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`]: then there is no watch either; otherwise as
    /// [`Call`] says.
    pub fn get_data_and_watch(&self, path: &str) -> Call<(Data, OneShot)> {
        self.watching(path, WatchKind::Data, |path| Request::GetData {
            path,
            watch: true,
        })
    }

    /// The names of a znode's children, with its stat.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`]; otherwise as [`Call`] says.
    pub fn children(&self, path: &str) -> Call<Children> {
        self.plain(path, |path| Request::GetChildren2 { path, watch: false })
    }

    /// The names of a znode's children only: 68 bytes less to come back.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`]; otherwise as [`Call`] says.
    pub fn child_names(&self, path: &str) -> Call<Names> {
        self.plain(path, |path| Request::GetChildren { path, watch: false })
    }

    /// The same as [`Client::children`], and a watch on the children and on its deletion.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`]: then there is no watch either; otherwise as
    /// [`Call`] says.
    pub fn children_and_watch(&self, path: &str) -> Call<(Children, OneShot)> {
        self.watching(path, WatchKind::Child, |path| Request::GetChildren2 {
            path,
            watch: true,
        })
    }

    /// The access list of a znode.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`]; otherwise as [`Call`] says.
    pub fn get_acl(&self, path: &str) -> Call<(AclList, Stat)> {
        self.plain(path, |path| Request::GetAcl { path })
    }

    /// Returns when this server knows every change the service had made when it was asked.
    ///
    /// # Errors
    /// As [`Call`] says.
    pub fn sync(&self, path: &str) -> Call<()> {
        self.plain(path, |path| Request::Sync { path })
    }

    /// Several reads at once, each with its own outcome: data of the first paths, names of the
    /// children of the others.
    ///
    /// # Errors
    /// As [`Call`] says.
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
    ///
    /// # Errors
    /// As [`Call`] says.
    pub fn ephemerals(&self, prefix: &str) -> Call<Vec<String>> {
        self.plain(prefix, |prefix| Request::GetEphemerals { prefix })
    }

    /// How many znodes lie below this one, at any depth.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NoNode`]; otherwise as [`Call`] says.
    pub fn all_children_number(&self, path: &str) -> Call<u32> {
        self.plain(path, |path| Request::GetAllChildrenNumber { path })
    }

    /// The identities the server knows this client by.
    ///
    /// # Errors
    /// As [`Call`] says.
    pub fn who_am_i(&self) -> Call<Vec<ClientInfo>> {
        self.request(Request::WhoAmI, None, None)
    }
}
