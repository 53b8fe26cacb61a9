//! The digest of the tree, recorded every 128 changes for the command `hash`.
//!
//! Each digest is computed from the whole tree, so that the changes in between cost nothing.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.2; ZooKeeper's `DigestCalculator`, version 2.

use std::collections::VecDeque;

use minikeeper_protocol::Zxid;

use crate::state::{tree::Tree, znode::Znode};

/// A digest is recorded after every change whose zxid is a multiple of this.
const INTERVAL: i64 = 128;

/// The number of digests kept.
const KEPT_MAX: usize = 1_024;

/// The digests recorded so far.
#[derive(Debug)]
pub(crate) struct Digests {
    /// The zxid with which the server began, which is not a change of this run.
    first: Option<Zxid>,
    /// Oldest first.
    noted: VecDeque<(Zxid, u64)>,
}

impl Digests {
    pub(crate) const fn new() -> Self {
        Self {
            first: None,
            noted: VecDeque::new(),
        }
    }

    fn is_due(&self, zxid: Zxid) -> bool {
        let is_noted = self.noted.back().is_some_and(|(last, _)| *last == zxid);
        zxid.0 % INTERVAL == 0 && self.first.is_some_and(|first| first != zxid) && !is_noted
    }

    /// Records the digest of the tree after this change, if it is due. Called before each input,
    /// when the change of the previous one is complete; of several changes in one tick it sees only
    /// the last.
    pub(crate) fn note(&mut self, zxid: Zxid, tree: &Tree) {
        self.first.get_or_insert(zxid);
        if !self.is_due(zxid) {
            return;
        }
        if self.noted.len() == KEPT_MAX {
            self.noted.pop_front();
        }
        self.noted.push_back((zxid, digest(tree)));
    }

    /// Returns the recorded digests, and the one that would be recorded before the next change.
    pub(crate) fn list(&self, zxid: Zxid, tree: &Tree) -> Vec<(Zxid, u64)> {
        let mut list: Vec<_> = self.noted.iter().copied().collect();
        if self.is_due(zxid) {
            list.push((zxid, digest(tree)));
        }
        list.drain(..list.len().saturating_sub(KEPT_MAX));
        list
    }
}

/// Computes the digest of a tree.
fn digest(tree: &Tree) -> u64 {
    tree.iter()
        .filter(|(_, znode)| !znode.path().starts_with(b"/zookeeper/"))
        .map(|(_, znode)| u64::from(digest_of(znode)))
        .fold(0, u64::wrapping_add)
}

fn digest_of(znode: &Znode) -> u32 {
    let mut crc = Crc::new();
    // The root counts as the empty path.
    match znode.path() {
        b"/" => {}
        path => crc.add(path),
    }
    crc.add(znode.data().unwrap_or_default());
    for number in [
        znode.czxid.0,
        znode.mzxid.0,
        znode.pzxid().0,
        znode.ctime_ms,
        znode.mtime_ms,
    ] {
        crc.add(&number.to_be_bytes());
    }
    for number in [znode.version, znode.created_children(), znode.aversion] {
        crc.add(&number.to_be_bytes());
    }
    crc.add(&znode.owner.0.to_be_bytes());
    crc.sum()
}

/// CRC-32 as in zip files.
struct Crc(u32);

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 {
                0xedb8_8320 ^ (rest >> 1)
            } else {
                rest >> 1
            };
            bit += 1;
        }
        table[byte as usize] = rest;
        byte += 1;
    }
    table
};

impl Crc {
    const fn new() -> Self {
        Self(!0)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let index = (self.0 ^ u32::from(*byte)) & 0xff;
            self.0 = TABLE[index as usize] ^ (self.0 >> 8);
        }
    }

    const fn sum(&self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_of_the_standard_check_text_is_the_standard_value() {
        let mut crc = Crc::new();
        crc.add(b"1234");
        crc.add(b"56789");
        assert_eq!(crc.sum(), 0xcbf4_3926);
    }

    /// Computed by the formula from the stats of a live 3.9.5, whose `hash` agreed.
    #[test]
    fn fresh_tree_has_the_digest_of_zookeeper() {
        assert_eq!(digest(&Tree::new([0; 2])), 1_371_985_504);
    }
}
