//! Records of a snapshot, for tests that build states from them.

use minikeeper_protocol::{SessionId, Zxid};

use crate::{SessionImage, ZnodeImage};

pub(super) const ROOT: ZnodeImage<'static> = ZnodeImage {
    path: b"/",
    data: Some(b""),
    acl: -1,
    czxid: Zxid(0),
    mzxid: Zxid(0),
    ctime_ms: 0,
    mtime_ms: 0,
    version: 0,
    created_children: 0,
    aversion: 0,
    owner: 0,
    pzxid: Zxid(9),
};

/// Returns a znode created by the change with this zxid and never changed since.
pub(super) fn znode(path: &str, zxid: i64) -> ZnodeImage<'_> {
    let zxid = Zxid(zxid);
    ZnodeImage {
        path: path.as_bytes(),
        czxid: zxid,
        mzxid: zxid,
        pzxid: zxid,
        ..ROOT
    }
}

pub(super) const fn session(id: i64, timeout_ms: i32) -> SessionImage {
    let id = SessionId(id);
    SessionImage { id, timeout_ms }
}
