//! Reads transaction logs of the original, version 3.4 to 3.9.
//!
//! Files are filled with zeros ahead of what is written, so a log ends where an entry is empty, or
//! where the last one is not all there: a server that was killed has not answered for that one.
//!
//! Source: reference section 22.3; the original's `FileTxnLog`, whose rules these are.

use std::{
    fs::File,
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use minikeeper_engine::Restoration;
use minikeeper_protocol::{Reader, Zxid};

use crate::snapshot::{
    BUFFER_BYTES,
    error::{DataDirError, SnapshotFault as Fault},
    format::{ENTRY_END, LOG_MAGIC, VERSION},
    source::{Damage, Decoded, Source},
    txn::{self, TxnHead},
};

/// Makes every change from `first` on once more; `logs` are in the order of their names. Gives
/// the newest one.
pub(crate) fn replay(
    logs: &[(Zxid, PathBuf)],
    first: Zxid,
    restoration: &mut Restoration,
) -> Result<Option<Zxid>, DataDirError> {
    // The last log that starts before is the first that may matter.
    let before = logs.iter().filter(|(start, _)| *start < first).count();
    let logs = &logs[before.saturating_sub(1)..];
    let mut newest = None;
    for (index, (_, path)) in logs.iter().enumerate() {
        let is_last = index + 1 == logs.len();
        let zxid = replay_file(path, first, is_last, restoration)?;
        newest = newest.max(zxid);
    }
    Ok(newest)
}

fn replay_file(
    path: &Path,
    first: Zxid,
    is_last: bool,
    restoration: &mut Restoration,
) -> Result<Option<Zxid>, DataDirError> {
    let file = File::open(path).map_err(DataDirError::io("open", path))?;
    let input = BufReader::with_capacity(BUFFER_BYTES, file);
    replay_stream(input, first, is_last, restoration).map_err(|damage| DataDirError::DamagedLog {
        path: path.to_owned(),
        offset: damage.offset,
        fault: damage.fault,
    })
}

/// Makes the changes of one log once more. The last log may not even have a whole header: it was
/// made when the server was killed.
fn replay_stream(
    input: impl io::Read,
    first: Zxid,
    is_last: bool,
    restoration: &mut Restoration,
) -> Decoded<Option<Zxid>> {
    let mut source = Source::new(input);
    match header(&mut source) {
        Err(damage) if is_last && is_end(&damage) => return Ok(None),
        outcome => outcome?,
    }
    let mut newest = None;
    loop {
        let start = source.offset;
        let Some(entry) = next_entry(&mut source)? else {
            return Ok(newest);
        };
        let zxid = replay_entry(&entry, first, restoration).map_err(|fault| Damage {
            offset: start,
            fault,
        })?;
        newest = newest.max(zxid);
    }
}

fn header(source: &mut Source<impl io::Read>) -> Decoded<()> {
    let magic = source.int()?.cast_unsigned();
    if magic != LOG_MAGIC {
        return Err(source.damage(Fault::LogMagic { magic }));
    }
    let version = source.int()?;
    if version != VERSION {
        return Err(source.damage(Fault::Version { version }));
    }
    // Which database it belongs to.
    source.long().map(|_| ())
}

/// The next entry, its checksum looked at; `None` where the log ends.
fn next_entry(source: &mut Source<impl io::Read>) -> Decoded<Option<Bytes>> {
    let start = source.offset;
    let mut entry = Vec::new();
    let read = read_entry(source, &mut entry);
    let (found, end) = match read {
        Err(damage) if is_end(&damage) => return Ok(None),
        read => read?,
    };
    if entry.is_empty() || end != ENTRY_END {
        return Ok(None);
    }
    let computed = adler2::adler32_slice(&entry);
    if found != i64::from(computed) {
        return Err(Damage {
            offset: start,
            fault: Fault::EntryChecksum { found, computed },
        });
    }
    Ok(Some(entry.into()))
}

/// The checksum in front of an entry, and the byte behind it.
fn read_entry(source: &mut Source<impl io::Read>, entry: &mut Vec<u8>) -> Decoded<(i64, u8)> {
    let found = source.long()?;
    source.buffer(entry)?;
    if entry.is_empty() {
        return Ok((found, 0));
    }
    let [end] = source.array()?;
    Ok((found, end))
}

/// Gives the zxid of an entry that was made once more.
fn replay_entry(
    entry: &Bytes,
    first: Zxid,
    restoration: &mut Restoration,
) -> Result<Option<Zxid>, Fault> {
    let mut reader = Reader::new(entry);
    let txn = TxnHead::decode(&mut reader)?;
    let zxid = txn.head.zxid;
    if zxid < first {
        return Ok(None);
    }
    txn::replay(txn, &mut reader, restoration)?;
    Ok(Some(zxid))
}

const fn is_end(damage: &Damage) -> bool {
    matches!(damage.fault, Fault::Ends { .. })
}
