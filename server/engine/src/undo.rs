//! The undo list of a multi: every change made so far, to be taken back in reverse.
//!
//! Changes are made in place, so later operations of the multi see them without a second tree;
//! the list is what makes that safe. Outside a multi nothing is noted down.

use minikeeper_protocol::Zxid;

use crate::{keys::ZnodeId, znode::Znode};

/// One change, with what is needed to take it back.
#[derive(Debug)]
pub(crate) enum Undo {
    /// A znode was created.
    Created { id: ZnodeId, parent: Before },
    /// A znode was deleted.
    Deleted {
        id: ZnodeId,
        znode: Box<Znode>,
        parent: Before,
    },
    /// Data was set.
    DataSet {
        id: ZnodeId,
        data: Option<Box<[u8]>>,
        version: i32,
        mzxid: Zxid,
        mtime_ms: i64,
    },
    /// The counts of a quota were written into their znode.
    StatsWritten {
        id: ZnodeId,
        data: Option<Box<[u8]>>,
    },
    /// The quota of a path was switched on or off.
    QuotaSwitched(Box<[u8]>),
}

/// The counters of a parent before its children changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    pub(crate) pzxid: Zxid,
    pub(crate) created_children: i32,
}
