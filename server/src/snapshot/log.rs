//! How far a transaction log of the original reaches. Its entries are not replayed.
//!
//! Source: reference section 22.3; the original's `FileTxnLog`.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    path::Path,
};

use minikeeper_protocol::Zxid;

const MAGIC: [u8; 4] = *b"ZKLG";

/// The header of a transaction up to its zxid: session, xid, zxid.
const UP_TO_ZXID: usize = 8 + 4 + 8;

/// The newest change in a log; `None` if it has no whole entry.
pub(crate) fn newest_change(path: &Path) -> io::Result<Option<Zxid>> {
    let mut log = BufReader::new(File::open(path)?);
    let mut newest = None;
    let mut header = [0; 16];
    if log.read_exact(&mut header).is_err() || !header.starts_with(&MAGIC) {
        return Ok(None);
    }
    // An entry: checksum, length, the transaction, one byte. What is not written yet is zero.
    let mut head = [0; 8 + 4 + UP_TO_ZXID];
    while log.read_exact(&mut head).is_ok() {
        let [.., b0, b1, b2, b3, b4, b5, b6, b7] = head;
        let length = i64::from(i32::from_be_bytes([head[8], head[9], head[10], head[11]]));
        let rest = length - UP_TO_ZXID as i64;
        // The byte behind the transaction is there only if all of it is.
        if rest < 0 || log.seek_relative(rest).is_err() || log.fill_buf()?.is_empty() {
            break;
        }
        log.consume(1);
        let zxid = Zxid(i64::from_be_bytes([b0, b1, b2, b3, b4, b5, b6, b7]));
        newest = newest.max(Some(zxid));
    }
    Ok(newest)
}
