//! Reads transaction logs of ZooKeeper, version 3.4 to 3.9, and our own.
//!
//! ZooKeeper takes a log to end at the first empty or incomplete entry, so one flipped bit hides every
//! later change. Here only changes that no server can have acknowledged may be missing:
//!
//! - Every change has the zxid after that of the change before it, across entries and files, and a
//!   file is named by its first change.
//! - An incomplete entry may end the last log, where a server was killed, if no sound entry follows
//!   it. It may also end an earlier log, if the next log continues with the same change.
//!
//! ZooKeeper pads its files with zeros in advance; ours end with their last entry.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.3; ZooKeeper's `FileTxnLog`.

use std::{
    fs::File,
    io::{self, BufReader, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use adler2::Adler32;
use bytes::Bytes;
use minikeeper_engine::Restoration;
use minikeeper_protocol::{Reader, Zxid};

use crate::{
    data::{
        BUFFER_BYTES,
        error::{DataDirError, SnapshotFault as Fault},
        snapshot_file::{DB_ID, ENTRY_END, LOG_MAGIC, VERSION},
        source::{Damage, Decoded, Source},
        txn::{self, TxnHead},
    },
    files,
};

/// The checksum and the length before an entry. Unit: bytes.
const FRONT_BYTES: usize = 8 + 4;

/// The shortest entry: a header without a body. Unit: bytes.
const ENTRY_BYTES_MIN: usize = 8 + 4 + 8 + 8 + 4;

/// How much is searched for sound entries after an unreadable one. Unit: bytes.
const SEARCH_BYTES_MAX: usize = 256 << 20;

/// A position in the logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LogPlace {
    /// The index of the log among all of them.
    pub(crate) log: usize,
    /// The entry's offset in it. Unit: bytes.
    pub(crate) offset: u64,
}

/// A fault in the logs, and the position from which they cannot be used.
#[derive(Debug)]
pub(crate) struct LogFault {
    pub(crate) from: LogPlace,
    /// The earlier logs that are damaged too, but whose successor continued where they had stopped.
    pub(crate) passed_over: Vec<usize>,
    pub(crate) error: DataDirError,
}

/// Replays every change after the snapshot at `snapshot`; `logs` are sorted by zxid. Stops at `until`
/// if it is given. Returns the newest change.
pub(crate) fn replay(
    logs: &[(Zxid, PathBuf)],
    snapshot: (Zxid, &Path),
    until: Option<LogPlace>,
    restoration: &mut Restoration,
) -> Result<Zxid, LogFault> {
    let mut chain = Chain {
        first: Zxid(snapshot.0.0.saturating_add(1)),
        last: snapshot.0,
        last_in: snapshot.1.to_owned(),
        unread: None,
        passed_over: Vec::new(),
        restoration,
    };
    let before = logs.iter().filter(|(start, _)| *start < chain.first);
    let mut from = before.count();
    // ZooKeeper's log may span the snapshot; we begin a new log with each snapshot.
    if from > 0 && !is_ours(&logs[from - 1].1) {
        from -= 1;
    }
    for log in from..logs.len() {
        let (name, path) = &logs[log];
        if until == Some(LogPlace { log, offset: 0 }) {
            break;
        }
        let is_last = log + 1 == logs.len();
        if let Err(fault) = chain.read(log, *name, path, is_last, until) {
            return Err(chain.failed(fault));
        }
        if until.is_some_and(|until| until.log == log) {
            chain.unread = None;
            break;
        }
    }
    if let Some(unread) = chain.unread.take()
        && !unread.is_torn
    {
        return Err(chain.failed(unread.fault));
    }
    Ok(chain.last)
}

/// Returns whether a log is sound to its last byte.
pub(crate) fn is_whole(path: &Path) -> bool {
    let read = || {
        let mut log = LogReader::open(path)?;
        log.header()?;
        let mut last = None;
        while let Some((_, entry)) = log.next()? {
            let head = TxnHead::decode(&mut Reader::new(&entry)).map_err(Fault::from);
            let zxid = head.map_err(|fault| log.source.damage(fault))?.head.zxid;
            if last.is_some_and(|last: Zxid| last.0 + 1 != zxid.0) {
                return Ok(false);
            }
            last = Some(zxid);
        }
        Ok::<_, Damage>(true)
    };
    matches!(read(), Ok(true))
}

/// Returns whether minikeeper wrote a log or snapshot.
pub(crate) fn is_ours(path: &Path) -> bool {
    let mut header = [0; 16];
    files::open_regular(path)
        .and_then(|mut file| file.read_exact(&mut header))
        .is_ok_and(|()| header.ends_with(&DB_ID))
}

/// The state of a replay across logs.
struct Chain<'a> {
    /// The first change to replay.
    first: Zxid,
    /// The newest change so far.
    last: Zxid,
    /// The file with that change.
    last_in: PathBuf,
    /// The unreadable end of the logs read so far.
    unread: Option<Unread>,
    /// The damaged logs whose successor continued where they had stopped.
    passed_over: Vec<usize>,
    restoration: &'a mut Restoration,
}

/// The end of a log that cannot be read.
struct Unread {
    fault: LogFault,
    /// Whether it looks like what a killed server leaves.
    is_torn: bool,
}

impl Chain<'_> {
    /// Reads one log.
    fn read(
        &mut self,
        index: usize,
        name: Zxid,
        path: &Path,
        is_last: bool,
        until: Option<LogPlace>,
    ) -> Result<(), LogFault> {
        let fault = |offset: u64, error: DataDirError| LogFault {
            from: LogPlace { log: index, offset },
            passed_over: Vec::new(),
            error,
        };
        let damaged = |damage: Damage| DataDirError::DamagedLog {
            path: path.to_owned(),
            offset: damage.offset,
            fault: damage.fault,
        };
        let mut log = LogReader::open(path).map_err(|damage| fault(0, damaged(damage)))?;
        let is_ours = match log.header() {
            Ok(is_ours) => is_ours,
            Err(damage) => {
                // The last log may lack even a header, if the server was killed as it created the file.
                let is_torn = is_last && matches!(damage.fault, Fault::Ends { .. });
                self.keep_unread(is_torn, fault(0, damaged(damage)));
                return Ok(());
            }
        };
        let mut is_first = true;
        loop {
            let start = log.source.offset;
            if until
                == Some(LogPlace {
                    log: index,
                    offset: start,
                })
            {
                return Ok(());
            }
            let wrong = |fault: Fault| {
                damaged(Damage {
                    offset: start,
                    fault,
                })
            };
            let entry = match log.next() {
                Ok(None) => return Ok(()),
                Ok(Some((_, entry))) => entry,
                Err(damage) => {
                    if let Some((is_torn, damage)) = judge(path, start, self.last, damage) {
                        self.keep_unread(is_torn, fault(start, damaged(damage)));
                    }
                    return Ok(());
                }
            };
            let mut reader = Reader::new(&entry);
            let txn =
                TxnHead::decode(&mut reader).map_err(|error| fault(start, wrong(error.into())))?;
            let zxid = txn.head.zxid;
            if std::mem::take(&mut is_first) && zxid != name {
                return Err(fault(start, wrong(Fault::LogName { zxid })));
            }
            if zxid < self.first && self.last < self.first {
                continue;
            }
            if !follows(self.last, zxid, is_ours) {
                // If an entry before was unreadable, it explains why changes are missing.
                let unread = self.unread.take().map(|unread| unread.fault);
                let gap = || DataDirError::LogGap {
                    path: path.to_owned(),
                    offset: start,
                    found: zxid,
                    last: self.last,
                    before: self.last_in.clone(),
                };
                return Err(unread.unwrap_or_else(|| fault(start, gap())));
            }
            if let Some(unread) = self.unread.take() {
                tracing::warn!(err = %unread.fault.error, "the next log continues from there");
                if !unread.is_torn {
                    self.passed_over.push(unread.fault.from.log);
                }
            }
            txn::replay(txn, &mut reader, self.restoration)
                .map_err(|error| fault(start, wrong(error)))?;
            self.last = zxid;
            if self.last_in != path {
                path.clone_into(&mut self.last_in);
            }
        }
    }

    fn failed(self, fault: LogFault) -> LogFault {
        let Self { passed_over, .. } = self;
        LogFault {
            passed_over,
            ..fault
        }
    }

    fn keep_unread(&mut self, is_torn: bool, fault: LogFault) {
        // The first fault explains those that follow.
        if self.unread.as_ref().is_none_or(|unread| unread.is_torn) {
            self.unread = Some(Unread { fault, is_torn });
        }
    }
}

/// Returns whether `next` can be the change after `last`: its zxid is the next, or, in an ensemble's
/// log, the first of a later epoch.
const fn follows(last: Zxid, next: Zxid, is_ours: bool) -> bool {
    if next.0 == last.0 + 1 {
        return true;
    }
    !is_ours && next.0 >> 32 > last.0 >> 32 && next.0 & 0xffff_ffff == 1
}

/// Reads one log, entry by entry.
struct LogReader {
    source: Source<BufReader<File>>,
}

impl LogReader {
    fn open(path: &Path) -> Decoded<Self> {
        let opened = files::open_regular(path).map_err(|error| Damage {
            offset: 0,
            fault: error.into(),
        });
        let input = BufReader::with_capacity(BUFFER_BYTES, opened?);
        let source = Source::new(input);
        Ok(Self { source })
    }

    /// Reads the header. Returns whether minikeeper wrote the log.
    fn header(&mut self) -> Decoded<bool> {
        let source = &mut self.source;
        let magic = source.int()?.cast_unsigned();
        if magic != LOG_MAGIC {
            return Err(source.damage(Fault::LogMagic { magic }));
        }
        let version = source.int()?;
        if version != VERSION {
            return Err(source.damage(Fault::Version { version }));
        }
        Ok(source.array::<8>()? == DB_ID)
    }

    /// Reads the next entry and checks its checksum. Returns its offset and bytes; `None` at the end of
    /// the file.
    fn next(&mut self) -> Decoded<Option<(u64, Bytes)>> {
        let source = &mut self.source;
        let start = source.offset;
        let at_start = |fault| Damage {
            offset: start,
            fault,
        };
        let found = match source.long() {
            Err(Damage {
                fault: Fault::Ends { missing: 8 },
                ..
            }) => return Ok(None),
            found => found?,
        };
        let mut entry = Vec::new();
        source.buffer(&mut entry)?;
        if entry.is_empty() {
            return Err(at_start(Fault::EntryEmpty));
        }
        let [end] = source.array()?;
        let computed = adler2::adler32_slice(&entry);
        if end == ENTRY_END && found == i64::from(computed) {
            return Ok(Some((start, entry.into())));
        }
        Err(at_start(if end == ENTRY_END {
            Fault::EntryChecksum { found, computed }
        } else {
            Fault::EntryEnd { found: end }
        }))
    }
}

/// Returns whether an unreadable entry looks like one that a killed server was writing, and its fault;
/// `None` if only ZooKeeper's padding of zeros follows.
fn judge(path: &Path, start: u64, last: Zxid, damage: Damage) -> Option<(bool, Damage)> {
    // A server writes an entry from start to end; what it did not write is zero or missing.
    let can_be_torn = matches!(
        damage.fault,
        Fault::Ends { .. } | Fault::EntryEmpty | Fault::EntryEnd { found: 0 }
    );
    if !can_be_torn {
        return Some((false, damage));
    }
    let rest = match rest(path, start) {
        Ok(Some(rest)) => rest,
        Ok(None) => return Some((false, damage)),
        Err(error) => {
            let fault = error.into();
            return Some((
                false,
                Damage {
                    offset: start,
                    fault,
                },
            ));
        }
    };
    if rest.iter().all(|byte| *byte == 0) {
        return None;
    }
    let fault = if let Some(bytes) = sound_length(&rest) {
        Fault::EntryLength { bytes }
    } else if let Some(at) = sound_entry(&rest, last) {
        Fault::EntryBeforeSound {
            at: start + at as u64,
        }
    } else {
        return Some((true, damage));
    };
    Some((
        false,
        Damage {
            offset: start,
            fault,
        },
    ))
}

/// Reads the file from an entry on; `None` if that exceeds `SEARCH_BYTES_MAX`, which is longer than any
/// entry.
fn rest(path: &Path, start: u64) -> io::Result<Option<Vec<u8>>> {
    let mut file = files::open_regular(path)?;
    file.seek(SeekFrom::Start(start))?;
    let mut rest = Vec::new();
    let bytes_max = SEARCH_BYTES_MAX as u64 + 1;
    file.take(bytes_max).read_to_end(&mut rest)?;
    let is_all = rest.len() <= SEARCH_BYTES_MAX;
    Ok(is_all.then_some(rest))
}

/// Returns the length that would make the first entry sound, if there is one: then only its length is
/// damaged.
fn sound_length(rest: &[u8]) -> Option<usize> {
    let (front, body) = rest.split_at_checked(FRONT_BYTES)?;
    let found = front.first_chunk().copied().map(i64::from_be_bytes)?;
    let mut adler = Adler32::new();
    for (length, byte) in body.iter().enumerate() {
        if *byte == ENTRY_END && length >= ENTRY_BYTES_MIN && found == i64::from(adler.checksum()) {
            return Some(length);
        }
        adler.write_slice(&[*byte]);
    }
    None
}

/// Returns the offset of a sound entry with a later change, if there is one.
fn sound_entry(rest: &[u8], last: Zxid) -> Option<usize> {
    // Bounds the cost of byte sequences that only look like entries.
    let mut checked_bytes_left = SEARCH_BYTES_MAX;
    let shortest = FRONT_BYTES + ENTRY_BYTES_MIN + 1;
    for at in 1..rest.len().saturating_sub(shortest - 1) {
        let entry = &rest[at..];
        // A checksum uses the low 32 bits of 64.
        if entry[..4] != [0; 4] {
            continue;
        }
        let length: [u8; 4] = *entry[8..].first_chunk()?;
        let length = u32::from_be_bytes(length) as usize;
        if length < ENTRY_BYTES_MIN || entry.get(FRONT_BYTES + length) != Some(&ENTRY_END) {
            continue;
        }
        let body = &entry[FRONT_BYTES..FRONT_BYTES + length];
        let is_later = TxnHead::decode(&mut Reader::new(&Bytes::copy_from_slice(
            &body[..ENTRY_BYTES_MIN],
        )))
        .is_ok_and(|txn| txn.head.zxid > last);
        if !is_later {
            continue;
        }
        let Some(left) = checked_bytes_left.checked_sub(length) else {
            return Some(at);
        };
        checked_bytes_left = left;
        if entry[4..8] == adler2::adler32_slice(body).to_be_bytes() {
            return Some(at);
        }
    }
    None
}
