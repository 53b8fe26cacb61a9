//! The numbers of the original's formats of snapshots and logs.
//!
//! Source: `docs/zookeeper-protocol.md` sections 22.1 and 22.3; the original's `FileSnap` and
//! `FileHeader`.

/// "ZKSN".
pub(crate) const MAGIC: u32 = 0x5a4b_534e;

/// "ZKLG".
pub(crate) const LOG_MAGIC: u32 = 0x5a4b_4c47;

/// The only version there has ever been, of either.
pub(crate) const VERSION: i32 = 2;

/// Who wrote the file. The original writes -1 and does not look at it when it reads, so that we
/// can tell our own files, which we delete when they are old, from those of an original.
pub(crate) const DB_ID: [u8; 8] = *b"minikeep";

/// The version of the original's tree digest that an absent digest is written with.
pub(crate) const DIGEST_VERSION: i32 = 2;

/// Ends the list of znodes, and follows every checksum.
pub(crate) const END: &[u8] = b"/";

/// What stands behind every whole entry of a log.
pub(crate) const ENTRY_END: u8 = b'B';
