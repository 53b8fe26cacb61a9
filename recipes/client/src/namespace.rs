//! The client's root: the chroot of the connect string, and a namespace below it.
//!
//! Source: `docs/curator-recipes.md` section 1.8; `docs/client.md` section 10.

use bytes::Bytes;
use minikeeper_protocol::{CreateMode, ErrorCode, PathError, Request, Stat, Ustring, ZnodePath};

use crate::{
    call::{Call, Created},
    client::Client,
    error::Error,
    operations::CreateOptions,
    paths,
};

impl Client {
    /// Returns a handle whose paths are below this znode of the chroot, in place of the namespace
    /// that this handle may have. An empty namespace means none. Sends nothing.
    ///
    /// The znode must exist before the handle creates others: see [`Client::create_root`]. The
    /// recipes call it when they need it.
    ///
    /// # Errors
    /// [`PathError`] if `/` followed by the namespace is not a valid path.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// use minikeeper_client::CreateMode;
    ///
    /// let billing = client.with_namespace("billing/eu")?;
    /// billing.create_root().await?;
    /// billing.create("/jobs", b"", CreateMode::Persistent).await?;
    /// assert!(client.exists("/billing/eu/jobs").await?.is_some());
    /// # Ok(()) });
    /// ```
    pub fn with_namespace(&self, namespace: &str) -> Result<Self, PathError> {
        let namespace = paths::namespace(namespace)?;
        let mut client = self.clone();
        client.root = paths::root(self.shared.chroot.as_ref(), namespace.as_ref());
        Ok(client)
    }

    /// Creates the znode that is `/` for this handle, and those above it, if they are missing: the
    /// namespace, and the chroot if [`ClientBuilder::create_chroot`] permits it.
    ///
    /// They are persistent and empty, with the access lists of the client's
    /// [`AclProvider`](crate::AclProvider).
    ///
    /// # Errors
    /// [`Error::NoRoot`] if the chroot is missing and may not be created. Otherwise as [`Call`]
    /// says; some of the znodes may have been created, and it is safe to retry.
    ///
    /// # Cancel safety
    /// Dropping the future does not recall the requests.
    ///
    /// [`ClientBuilder::create_chroot`]: crate::ClientBuilder::create_chroot
    pub async fn create_root(&self) -> Result<(), Error> {
        let Some(root) = &self.root else {
            return Ok(());
        };
        let exists: Call<Option<Stat>> = self.outside_chroot(
            Request::Exists {
                path: Some(root.as_ustring().clone()),
                watch: false,
            },
            None,
        );
        match exists.await {
            Ok(None) => {}
            // It exists, and may not be read.
            Err(error) if error.is(ErrorCode::NoAuth) => return Ok(()),
            found => return found.map(drop),
        }
        let chroot_bytes = match self.shared.creates_chroot {
            true => 0,
            false => paths::bytes_of(self.shared.chroot.as_ref()),
        };
        let root = root.as_str();
        let ends = root
            .match_indices('/')
            .map(|(at, _)| at)
            .chain([root.len()]);
        // All of them leave together: what matters is that the last one exists.
        let creates: Vec<Call<Created>> = ends
            .filter(|end| *end > chroot_bytes)
            .map(|end| {
                let path = Ustring::from(&root[..end]);
                let options = CreateOptions::new(CreateMode::Persistent);
                let create = options.encode(self, path, Bytes::new());
                self.outside_chroot(Request::Create(create), None)
            })
            .collect();
        // Without any, the chroot is the root.
        let mut outcome = Err(self.no_root());
        let mut cause = None;
        for create in creates {
            outcome = match create.await {
                Err(error) if !error.is(ErrorCode::NodeExists) => {
                    Err(cause.get_or_insert(error).clone())
                }
                _ => Ok(()),
            };
        }
        outcome.map_err(|error| match error.code() {
            Some(ErrorCode::NoNode) => self.no_root(),
            _ => error,
        })
    }

    /// Returns the error for a chroot that is missing and may not be created.
    fn no_root(&self) -> Error {
        let chroot = self.shared.chroot.as_ref();
        Error::NoRoot {
            op: "create2",
            path: "/".to_owned(),
            root: chroot.map_or("/", ZnodePath::as_str).to_owned(),
        }
    }
}
