//! How a znode is created, and taken back.

use std::time::Duration;

use minikeeper_protocol::{AclList, CreateMode, Ustring};

use crate::core::requests::IfAbandoned;

/// How a znode is created, beside its path, data and mode.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use std::time::Duration;
///
/// use minikeeper_client::{CreateMode, CreateOptions};
///
/// let brief = CreateOptions::new(CreateMode::PersistentWithTtl).ttl(Duration::from_secs(60));
/// client.create("/brief", b"", brief).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateOptions {
    pub(crate) mode: CreateMode,
    pub(crate) acl: AclList,
    pub(crate) ttl_ms: i64,
    pub(crate) is_withdrawn: bool,
}

impl CreateOptions {
    /// A znode of this mode, open to everybody.
    ///
    /// # Examples
    /// ```
    /// # use minikeeper_client::{CreateMode, CreateOptions};
    /// let options = CreateOptions::new(CreateMode::Ephemeral);
    /// assert_eq!(options, CreateMode::Ephemeral.into());
    /// ```
    #[must_use]
    pub const fn new(mode: CreateMode) -> Self {
        Self {
            mode,
            acl: AclList::world_all(),
            ttl_ms: 0,
            is_withdrawn: false,
        }
    }

    /// Who may do what with the znode.
    #[must_use]
    pub fn acl(mut self, acl: AclList) -> Self {
        self.acl = acl;
        self
    }

    /// How long the znode lives untouched and childless, for the modes with a time to live.
    ///
    /// Unit: whole milliseconds. Range: 1 ms to about 34 years.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl_ms = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
        self
    }

    /// Whether dropping the call takes the znode away again, for certain: also if it was being
    /// created just then, or if the reply gets lost. It is found by the name given, which must
    /// then be like no other: locks put a UUID in front.
    #[must_use]
    pub const fn withdrawn_if_dropped(mut self, is_withdrawn: bool) -> Self {
        self.is_withdrawn = is_withdrawn;
        self
    }
}

impl From<CreateMode> for CreateOptions {
    fn from(mode: CreateMode) -> Self {
        Self::new(mode)
    }
}

/// How to take back what was created under this name.
pub(crate) fn withdrawn(path: &Ustring) -> IfAbandoned {
    let bytes = path.clone().into_bytes();
    let slash = bytes.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    IfAbandoned::DeleteCreated {
        parent: bytes.slice(..slash.max(1)).into(),
        prefix: bytes.slice(slash + 1..).into(),
    }
}
