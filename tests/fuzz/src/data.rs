//! Fuzz targets of data directories: transaction logs, and the replay of changes.

use std::{fs, path::PathBuf};

use minikeeper::DataSource;
use minikeeper_engine::{Change, ChangeHead, Engine, Life, Restoration, Settings};
use minikeeper_protocol::{AclList, SessionId, Zxid};

/// Reads a transaction log, which succeeds or is refused. A state that was read can be written and
/// read again.
///
/// If the lowest bit of the first byte is 1, the rest is the file after its header. Otherwise the
/// rest is a list of entries, each a length, a type and a body; their checksums, zxids and times
/// are generated, since most inputs would otherwise end at the first entry.
pub fn read_log(data: &[u8]) {
    let (first, data) = data.split_first().unwrap_or((&0, data));
    let mut log = b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0".to_vec();
    if first & 1 == 0 {
        put_entries(data, &mut log);
    } else {
        log.extend(data);
    }
    let scratch = Scratch::new();
    let folder = scratch.0.join("version-2");
    fs::create_dir_all(&folder).expect("a folder for temporary files");
    fs::write(folder.join("log.1"), log).expect("room for a file");
    let source = DataSource::new(&scratch.0).trust_empty_snapshot();
    let Ok(state) = source.read() else {
        return;
    };
    let copy = scratch.0.join("copy");
    let zxid = state.export_data(&copy).expect("room for a copy");
    let again = DataSource::new(copy)
        .read()
        .expect("an exported state can be read");
    assert_eq!((again.zxid(), state.zxid()), (zxid, zxid));
}

fn put_entries(mut data: &[u8], log: &mut Vec<u8>) {
    const TYPES: [i32; 15] = [1, 15, 19, 21, 2, 20, 5, 7, 14, 16, -1, -10, -11, 13, 99];
    let mut zxid = 0_i64;
    while let [length, kind, rest @ ..] = data {
        let (body, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        data = rest;
        zxid += 1;
        let mut entry = Vec::new();
        entry.extend(i64::from(kind >> 4).to_be_bytes());
        entry.extend([0; 4]);
        entry.extend(zxid.to_be_bytes());
        entry.extend([0; 8]);
        entry.extend(TYPES[usize::from(*kind) % TYPES.len()].to_be_bytes());
        entry.extend(body);
        log.extend(u64::from(adler32(&entry)).to_be_bytes());
        let length = u32::try_from(entry.len()).expect("an entry is short");
        log.extend(length.to_be_bytes());
        log.extend(entry);
        log.push(b'B');
    }
}

/// Returns the checksum of RFC 1950, section 9.
fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut a, mut b) = (1, 0);
    for byte in bytes {
        a = (a + u32::from(*byte)) % MODULUS;
        b = (b + a) % MODULUS;
    }
    b << 16 | a
}

/// Few and colliding paths, one of them malformed.
const PATHS: [&str; 12] = [
    "/a",
    "/a/b",
    "/a/b/c",
    "/b",
    "/b/a",
    "/",
    "/zookeeper",
    "/zookeeper/quota",
    "/zookeeper/quota/a",
    "/zookeeper/quota/a/zookeeper_limits",
    "/zookeeper/config",
    "a//",
];

/// Replays changes of three bytes each, also in orders that no log has. The result is a consistent
/// state or an error.
pub fn replay_changes(data: &[u8]) {
    let settings = Settings {
        sessions_max: 4,
        tree_bytes_max: 3_000,
        ..Settings::default()
    };
    let mut restoration = Restoration::fresh(settings);
    for (index, bytes) in data.chunks_exact(3).enumerate() {
        let [what, which, number] = bytes else {
            return;
        };
        let path = PATHS[usize::from(*which) % PATHS.len()].as_bytes();
        let zxid = i64::try_from(index).unwrap_or(i64::MAX) + i64::from(*number) - 100;
        let head = ChangeHead {
            session: SessionId(i64::from(which >> 5)),
            zxid: Zxid(zxid),
            wall_ms: zxid,
        };
        let (list, number) = (AclList::world_read(), i32::from(*number) - 128);
        let data = (number & 1 == 0).then_some(&b"data"[..]);
        let life = match what >> 4 & 3 {
            0 => Life::Persistent,
            1 => Life::Session(head.session),
            2 => Life::Container,
            _ => Life::Ttl { ms: number.into() },
        };
        let change = match what & 7 {
            0 => Change::Nothing,
            1 => Change::OpenSession { timeout_ms: number },
            2 => Change::CloseSession { paths: &[path] },
            3 => Change::Delete { path },
            4 => Change::SetData {
                path,
                data,
                version: number,
            },
            5 => Change::SetAcl {
                path,
                acl: &list,
                aversion: number,
            },
            _ => Change::Create {
                path,
                data,
                acl: &list,
                life,
                created_children: (number >= 0).then_some(number),
            },
        };
        // An invalid change is refused, and the replay continues.
        let _ = restoration.replay(head, &change);
    }
    if let Ok(engine) = Engine::restore(restoration, Zxid(0)) {
        engine.check().expect("a restored state is consistent");
    }
}

/// A temporary directory for one run.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let thread = std::thread::current().id();
        let name = format!("minikeeper-fuzz-{}-{thread:?}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
