//! Owned copies of the changes that an engine reports to a log, for replay.

use minikeeper_engine::{Change, ChangeHead, ImageError, Life, Restoration};
use minikeeper_protocol::{AclList, Zxid};

/// An owned copy of a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The session, xid, zxid and time of the change.
    pub head: ChangeHead,
    what: What,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum What {
    Nothing,
    OpenSession(i32),
    CloseSession(Vec<Vec<u8>>),
    Create {
        path: Vec<u8>,
        data: Option<Vec<u8>>,
        acl: AclList,
        life: Life,
        created_children: Option<i32>,
    },
    Delete(Vec<u8>),
    SetData(Vec<u8>, Option<Vec<u8>>, i32),
    SetAcl(Vec<u8>, AclList, i32),
}

impl Kept {
    /// Copies a change.
    ///
    /// # Panics
    /// If the kind of change is unknown here.
    #[must_use]
    pub fn new(head: ChangeHead, change: &Change<'_>) -> Self {
        let what = match *change {
            Change::Nothing => What::Nothing,
            Change::OpenSession { timeout_ms } => What::OpenSession(timeout_ms),
            Change::CloseSession { paths } => {
                What::CloseSession(paths.iter().map(|path| path.to_vec()).collect())
            }
            Change::Create {
                path,
                data,
                acl,
                life,
                created_children,
            } => What::Create {
                path: path.to_vec(),
                data: data.map(<[u8]>::to_vec),
                acl: acl.clone(),
                life,
                created_children,
            },
            Change::Delete { path } => What::Delete(path.to_vec()),
            Change::SetData {
                path,
                data,
                version,
            } => What::SetData(path.to_vec(), data.map(<[u8]>::to_vec), version),
            Change::SetAcl {
                path,
                acl,
                aversion,
            } => What::SetAcl(path.to_vec(), acl.clone(), aversion),
            _ => panic!("unknown kind of change: {change:?}"),
        };
        Self { head, what }
    }

    /// The zxid of the change.
    #[must_use]
    pub const fn zxid(&self) -> Zxid {
        self.head.zxid
    }

    /// Replays the change onto a restoration.
    ///
    /// # Errors
    /// Those of [`Restoration::replay`].
    pub fn replay(&self, onto: &mut Restoration) -> Result<(), ImageError> {
        let change = match &self.what {
            What::Nothing => Change::Nothing,
            What::OpenSession(timeout_ms) => Change::OpenSession {
                timeout_ms: *timeout_ms,
            },
            What::CloseSession(paths) => {
                let paths: Vec<_> = paths.iter().map(Vec::as_slice).collect();
                return onto.replay(self.head, &Change::CloseSession { paths: &paths });
            }
            What::Create {
                path,
                data,
                acl,
                life,
                created_children,
            } => Change::Create {
                path,
                data: data.as_deref(),
                acl,
                life: *life,
                created_children: *created_children,
            },
            What::Delete(path) => Change::Delete { path },
            What::SetData(path, data, version) => Change::SetData {
                path,
                data: data.as_deref(),
                version: *version,
            },
            What::SetAcl(path, acl, aversion) => Change::SetAcl {
                path,
                acl,
                aversion: *aversion,
            },
        };
        onto.replay(self.head, &change)
    }
}
