//! Access lists for new znodes.

use minikeeper_protocol::AclList;

/// Chooses the access list of each znode that a client creates without naming one: its own, those
/// of recipes, and their directories.
///
/// An [`AclList`] is the provider that returns it for every path, and so is a function from paths to
/// lists. Servers refuse an empty list with
/// [`ErrorCode::InvalidAcl`](crate::ErrorCode::InvalidAcl).
///
/// All contenders of a lock need all permissions on its directory: each creates a znode there,
/// deletes it again, and reads those of the others.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// use minikeeper_client::{Acl, AclList, Client, CreateMode, Perms};
///
/// let owner = Acl::new(Perms::ALL, "auth", "");
/// let reader = Acl::new(Perms::READ, "world", "anyone");
/// let client = Client::builder(&address)?
///     .identity("digest", "app:secret")
///     .acl_provider(move |path: &str| match path {
///         "/status" => AclList::new(&[owner.clone(), reader.clone()]),
///         _ => AclList::new(&[owner.clone()]),
///     })
///     .connect()
///     .await?;
/// client.create("/status", b"", CreateMode::Persistent).await?;
/// client.create("/private", b"", CreateMode::Persistent).await?;
///
/// let stranger = Client::connect(&address).await?;
/// assert!(stranger.get_data("/status").await.is_ok());
/// assert!(stranger.get_data("/private").await.is_err());
/// # Ok(()) });
/// ```
pub trait AclProvider: Send + Sync + 'static {
    /// Returns the access list for a new znode.
    ///
    /// The path has the client's namespace and not the chroot; for the chroot itself and the znodes
    /// above it, it is `/`. A sequential znode's path has no number yet. Called for each creation,
    /// so it should neither wait nor compute much.
    fn acl(&self, path: &str) -> AclList;
}

impl AclProvider for AclList {
    fn acl(&self, _path: &str) -> AclList {
        self.clone()
    }
}

impl<F: Fn(&str) -> AclList + Send + Sync + 'static> AclProvider for F {
    fn acl(&self, path: &str) -> AclList {
        self(path)
    }
}
