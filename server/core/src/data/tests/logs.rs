//! Transaction logs: replay, incomplete ends, and refused damage.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.3; ZooKeeper's `FileTxnLog` and
//! `SerializeUtils`.

use minikeeper_engine::Engine;
use minikeeper_protocol::{AclList, Zxid, jute};

use super::dir::{Scratch, load};
use crate::data::{DataSource, copy};

pub(super) const HEADER: &[u8] = b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0";

/// Encodes an entry of session 5 with this body.
pub(super) fn txn(zxid: i64, kind: i32, body: &[u8]) -> Vec<u8> {
    let mut entry = Vec::new();
    jute::put_long(&mut entry, 5);
    jute::put_int(&mut entry, 7);
    jute::put_long(&mut entry, zxid);
    jute::put_long(&mut entry, 1_000 + zxid);
    jute::put_int(&mut entry, kind);
    entry.extend(body);
    entry
}

/// Encodes a log of these entries, padded with zeros as ZooKeeper does.
pub(super) fn log(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = HEADER.to_vec();
    for entry in entries {
        jute::put_long(&mut bytes, adler2::adler32_slice(entry).into());
        jute::put_buffer(&mut bytes, Some(entry));
        bytes.push(b'B');
    }
    bytes.extend([0; 100]);
    bytes
}

fn path(path: &str) -> Vec<u8> {
    let mut body = Vec::new();
    jute::put_buffer(&mut body, Some(path.as_bytes()));
    body
}

/// Encodes the path, data and access list that start the body of a create.
fn start_of_create(at: &str) -> Vec<u8> {
    let mut body = path(at);
    jute::put_buffer(&mut body, Some(b"data"));
    AclList::world_all().encode(&mut body);
    body
}

pub(super) fn create(at: &str, is_ephemeral: bool, created_children: i32) -> Vec<u8> {
    let mut body = start_of_create(at);
    jute::put_bool(&mut body, is_ephemeral);
    jute::put_int(&mut body, created_children);
    body
}

fn numbered(mut body: Vec<u8>, number: i32) -> Vec<u8> {
    jute::put_int(&mut body, number);
    body
}

fn set(at: &str, data: &[u8], version: i32) -> Vec<u8> {
    let mut body = path(at);
    jute::put_buffer(&mut body, Some(data));
    numbered(body, version)
}

fn multi(parts: &[(i32, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    jute::put_length(&mut body, parts.len());
    for (kind, part) in parts {
        jute::put_int(&mut body, *kind);
        jute::put_buffer(&mut body, Some(part));
    }
    body
}

/// Appends a digest of the tree, as 3.6 and later do to an entry.
fn digested(mut body: Vec<u8>) -> Vec<u8> {
    jute::put_int(&mut body, 2);
    jute::put_long(&mut body, 0x1234_5678_9abc_def0);
    body
}

/// Creates a directory with a snapshot of a fresh tree and these logs.
fn with_logs(name: &str, logs: &[(&str, Vec<u8>)]) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.put(
        "snapshot.0",
        &copy(&Engine::new(super::Settings::default())),
    );
    for (name, bytes) in logs {
        scratch.put(name, bytes);
    }
    scratch
}

fn loaded(scratch: &Scratch) -> Engine {
    let engine = load(&mut scratch.open().unwrap());
    engine.check().unwrap();
    engine
}

#[test]
fn every_kind_of_change_is_replayed() {
    let mut ttl = numbered(start_of_create("/t"), 5);
    jute::put_long(&mut ttl, 60_000);
    let mut list = path("/a");
    AclList::world_read().encode(&mut list);
    let mut closed = Vec::new();
    jute::put_ustrings(&mut closed, Some(&["/e2".into()]));
    let entries = [
        txn(1, -10, &digested(numbered(Vec::new(), 4_000))),
        txn(2, 1, &digested(create("/a", false, 1))),
        txn(3, 15, &digested(create("/b", false, 2))),
        txn(4, 19, &digested(numbered(start_of_create("/c"), 3))),
        txn(5, 1, &digested(create("/e", true, 4))),
        txn(6, 21, &digested(ttl)),
        txn(7, 5, &digested(set("/a", b"other", 1))),
        txn(8, 7, &digested(numbered(list, 1))),
        txn(9, 2, &digested(path("/b"))),
        txn(10, 20, &digested(path("/c"))),
        txn(11, -1, &numbered(Vec::new(), -101)),
        txn(
            12,
            16,
            &digested(set("/zookeeper/config", b"server.1=x", 1)),
        ),
        txn(
            13,
            14,
            &digested(multi(&[
                (1, create("/m", false, 6)),
                (13, numbered(path("/a"), 1)),
                (5, set("/m", b"set", 1)),
                (2, path("/t")),
            ])),
        ),
        // Failed: none of its parts has happened.
        txn(
            14,
            14,
            &multi(&[
                (1, create("/n", false, 7)),
                (-1, numbered(Vec::new(), -101)),
            ]),
        ),
        txn(15, 1, &create("/e2", true, 7)),
    ];
    let scratch = with_logs("kinds", &[("log.1", log(&entries))]);
    let engine = loaded(&scratch);
    assert_eq!(engine.zxid(), Zxid(15));
    assert_eq!(
        engine.children("/").unwrap(),
        ["zookeeper", "a", "e", "m", "e2"]
    );
    let (data, stat) = engine.get("/a").unwrap();
    assert_eq!(data, Some(&b"other"[..]));
    assert_eq!((stat.version, stat.aversion, stat.mzxid), (1, 1, Zxid(7)));
    assert_eq!((stat.ctime_ms, stat.mtime_ms), (1_002, 1_007));
    assert_eq!(engine.get("/m").unwrap().0, Some(&b"set"[..]));
    assert_eq!(
        engine.get("/zookeeper/config").unwrap().0,
        Some(&b"server.1=x"[..])
    );
    assert_eq!(engine.get("/").unwrap().1.pzxid, Zxid(15));
    assert_eq!(engine.image().znodes().next().unwrap().created_children, 7);
    assert_eq!(engine.sessions().count(), 1);

    scratch.put("log.10", &log(&[txn(16, -11, &digested(closed))]));
    let engine = loaded(&scratch);
    assert_eq!(engine.children("/").unwrap(), ["zookeeper", "a", "m"]);
    assert_eq!(engine.sessions().count(), 0);
}

/// Source: `docs/zookeeper-protocol.md` section 22.3; ZooKeeper's `CreateTxnV0`, and
/// `CloseSessionTxn` of 3.6.
#[test]
fn bodies_of_older_versions_are_shorter() {
    let mut first = start_of_create("/v0");
    jute::put_bool(&mut first, true);
    for closed in [Vec::new(), digested(Vec::new())] {
        let entries = [
            txn(1, -10, &numbered(Vec::new(), 4_000)),
            txn(2, 1, &first),
            txn(3, 1, &create("/e", true, -1)),
            txn(4, -11, &closed),
        ];
        let scratch = with_logs("older", &[("log.1", log(&entries[..3]))]);
        let engine = loaded(&scratch);
        assert_eq!(engine.children("/").unwrap(), ["zookeeper", "v0", "e"]);
        assert_eq!(engine.image().znodes().next().unwrap().created_children, 2);
        scratch.put("log.1", &log(&entries));
        assert_eq!(loaded(&scratch).children("/").unwrap(), ["zookeeper"]);
    }
}

#[test]
fn only_changes_after_the_snapshot_are_replayed() {
    let logs = [
        (
            "log.1",
            log(&[txn(1, 1, &create("/a", false, 1)), txn(2, 99, &[])]),
        ),
        (
            "log.3",
            log(&[
                txn(3, 1, &create("/b", false, 2)),
                txn(4, 1, &create("/c", false, 3)),
            ]),
        ),
        ("log.5", log(&[txn(5, 1, &create("/d", false, 4))])),
    ];
    let scratch = with_logs("behind", &logs);
    let settings = super::Settings {
        zxid: Zxid(3),
        ..super::Settings::default()
    };
    scratch.put("snapshot.3", &copy(&Engine::new(settings)));
    // The first log, which has an unknown transaction type, is not read.
    let engine = loaded(&scratch);
    assert_eq!(engine.children("/").unwrap(), ["zookeeper", "c", "d"]);
    assert_eq!(engine.zxid(), Zxid(5));
}

/// Goal: a killed server's log is read up to its last complete entry. Method: truncates a log at every
/// byte.
#[test]
fn log_ends_at_its_first_incomplete_entry() {
    let whole = log(&[
        txn(1, 1, &create("/a", false, 1)),
        txn(2, 1, &create("/b", false, 2)),
    ]);
    let written = whole.len() - 100;
    let first = HEADER.len() + (written - HEADER.len()) / 2;
    for length in 0..=whole.len() {
        let scratch = with_logs("cut", &[("log.1", whole[..length].to_vec())]);
        let expected = i64::from(length >= first) + i64::from(length >= written);
        assert_eq!(
            loaded(&scratch).zxid(),
            Zxid(expected),
            "truncated at {length}"
        );
        // The padding of zeros may already be there.
        let mut zeroed = whole[..length].to_vec();
        zeroed.resize(whole.len(), 0);
        if length >= HEADER.len() && length != first - 1 && length != written - 1 {
            let is_header = |at: usize| length > at && length < at + 12;
            if !is_header(HEADER.len()) && !is_header(first) {
                let scratch = with_logs("zeroed", &[("log.1", zeroed)]);
                assert_eq!(
                    loaded(&scratch).zxid(),
                    Zxid(expected),
                    "zeros from {length}"
                );
            }
        }
    }
}

#[test]
fn truncated_log_is_continued_by_the_next() {
    let mut cut = log(&[
        txn(1, 1, &create("/a", false, 1)),
        txn(2, 1, &create("/b", false, 2)),
    ]);
    cut.truncate(cut.len() - 110);
    let next = log(&[txn(2, 1, &create("/c", false, 2))]);
    let scratch = with_logs(
        "next",
        &[("log.1", cut), ("log.2", next), ("log.3", Vec::new())],
    );
    assert_eq!(
        loaded(&scratch).children("/").unwrap(),
        ["zookeeper", "a", "c"]
    );
    // Any log but the last must have a complete header.
    scratch.put("log.2", b"ZKLG");
    let text = scratch.refusal();
    assert!(
        text.starts_with("\"log.2\" at byte 4: the file ends 4 bytes too early; "),
        "{text}"
    );
}

#[test]
fn damaged_log_is_refused_by_name_and_offset() {
    let good = [
        txn(1, 1, &create("/a", false, 1)),
        txn(2, 1, &create("/b", false, 2)),
    ];
    let whole = log(&good);
    let second = HEADER.len() + (whole.len() - 100 - HEADER.len()) / 2;
    let mut changed = whole.clone();
    changed[second + 40] ^= 1;
    let other_version = [&b"ZKLG\0\0\0\x03"[..], &whole[8..]].concat();
    let failing = |entry: Vec<u8>| log(&[good[0].clone(), entry]);
    for (bytes, fault) in [
        (changed, format!("{second}: checksum 0x")),
        (
            b"ZKSN\0\0\0\x02".to_vec(),
            "0: starts with 0x5a4b534e, but a transaction log".to_owned(),
        ),
        (
            other_version,
            "4: unknown format version 3, expected 2".to_owned(),
        ),
        (
            failing(txn(2, 99, &[])),
            format!("{second}: unknown transaction type 99"),
        ),
        (
            failing(txn(2, 14, &multi(&[(7, Vec::new())]))),
            format!("{second}: unknown transaction type 7"),
        ),
        (
            failing(txn(2, 2, &[0, 0, 0, 9])),
            format!("{second}: unreadable entry: message ends 9 bytes early"),
        ),
        (
            failing(txn(2, 2, &[0xff; 4])),
            format!("{second}: null instead of a path"),
        ),
        (
            failing(txn(2, 2, &path("/a/"))),
            format!("{second}: path \"/a/\": ends with a slash"),
        ),
        (
            failing(vec![1, 2, 3]),
            format!("{second}: unreadable entry: message ends 5 bytes early"),
        ),
    ] {
        let scratch = with_logs("damaged-log", &[("log.1", bytes)]);
        let text = scratch.refusal();
        let expected = format!("\"log.1\" at byte {fault}");
        assert!(text.starts_with(&expected), "{text}\n{expected}");
        assert!(
            text.contains("; restore the file, or lose the changes that cannot be read"),
            "{text}"
        );
    }
}

/// A flipped bit in a length or an end byte was taken for the end of the log: the server omitted the
/// later changes without an error.
#[test]
fn flipped_bit_in_length_or_end_byte_is_refused() {
    let entries: Vec<_> = (1..=5)
        .map(|zxid| txn(zxid, 1, &create(&format!("/n{zxid}"), false, 1)))
        .collect();
    let whole = log(&entries);
    let size = (whole.len() - 100 - HEADER.len()) / 5;
    for entry in 0..5 {
        let start = HEADER.len() + entry * size;
        for at in (start + 8..start + 12).chain([start + size - 1]) {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                let scratch = with_logs("flipped", &[("log.1", bytes)]);
                let text = scratch.refusal();
                assert!(text.starts_with("\"log.1\" at byte "), "{at} {bit}: {text}");
            }
        }
    }
}

/// If a log in the middle was removed, or filled with zeros, the server omitted its changes without an
/// error.
#[test]
fn missing_or_damaged_middle_log_is_refused() {
    let logs = |middle: Option<Vec<u8>>| {
        let name = |at: i64| create(&format!("/n{at}"), false, 1);
        let of = |from: i64| log(&[txn(from, 1, &name(from)), txn(from + 1, 1, &name(from + 1))]);
        let scratch = with_logs("middle", &[("log.1", of(1)), ("log.5", of(5))]);
        if let Some(bytes) = middle {
            scratch.put("log.3", &bytes);
        }
        (scratch, of(3))
    };
    let (scratch, middle) = logs(None);
    let gap = "change 0x5 does not follow 0x2, the last one in \"log.1\"";
    let text = scratch.refusal();
    assert!(text.starts_with("\"log.5\" at byte 16: "), "{text}");
    assert!(text.contains(gap), "{text}");
    let mut zeros = middle.clone();
    zeros[16..].fill(0);
    let text = logs(Some(zeros)).0.refusal();
    assert!(text.contains(gap), "{text}");
    for bytes in [vec![0; middle.len()], Vec::new(), middle[..40].to_vec()] {
        let text = logs(Some(bytes)).0.refusal();
        assert!(text.starts_with("\"log.3\" at byte "), "{text}");
    }
    assert_eq!(loaded(&logs(Some(middle)).0).zxid(), Zxid(6));
}

/// Source: ZooKeeper's `Leader`: the first change of an epoch has 1 in the low half of its zxid.
#[test]
fn first_change_of_a_later_epoch_follows() {
    let entry = |zxid: i64| txn(zxid, 1, &create(&format!("/n{zxid:x}"), false, 1));
    let later = 7 << 32;
    let both = log(&[entry(1), entry(later + 1), entry(later + 2)]);
    let scratch = with_logs("epochs", &[("log.1", both)]);
    assert_eq!(loaded(&scratch).zxid(), Zxid(later + 2));
    for zxid in [later, later + 2, 1, 0] {
        let scratch = with_logs("epochs", &[("log.1", log(&[entry(1), entry(zxid)]))]);
        let text = scratch.refusal();
        assert!(text.contains("does not follow 0x1"), "{zxid:#x}: {text}");
    }
}

/// With `trust_damaged_data` the server omits what it cannot read and renames those files, so that the
/// next start does not need the setting.
#[test]
fn damaged_log_is_set_aside_if_damage_is_trusted() {
    let entries = |from: i64| {
        let entry = |zxid: i64| txn(zxid, 1, &create(&format!("/n{zxid}"), false, 1));
        log(&[entry(from), entry(from + 1), entry(from + 2)])
    };
    let mut damaged = entries(4);
    let last = damaged.len() - 101;
    damaged[last] ^= 1;
    let logs = [
        ("log.1", entries(1)),
        ("log.4", damaged),
        ("log.7", entries(7)),
    ];
    let scratch = with_logs("trusted", &logs);
    scratch.refusal();
    let mut dir = scratch.open().unwrap();
    let engine = dir.load(super::Settings::default(), true).unwrap();
    let names = ["zookeeper", "n1", "n2", "n3", "n4", "n5"];
    assert_eq!(engine.children("/").unwrap(), names);
    dir.begin(&engine).unwrap();
    drop(dir);
    // Above every zxid that clients can have seen.
    let saved = (1 << 32) + 7;
    assert_eq!(engine.zxid(), Zxid(saved));
    let snapshot = format!("snapshot.{saved:x}");
    let left = [
        "log.1",
        "snapshot.0",
        &snapshot,
        "unread.log.4",
        "unread.log.7",
    ];
    assert_eq!(scratch.names(), left);
    assert_eq!(loaded(&scratch).children("/").unwrap(), names);
    let source = DataSource::new(&scratch.0);
    assert!(source.load(super::Settings::default()).is_ok());
}

/// A damaged log does no harm if the next one continues where it stopped. When that was set aside,
/// the next start found the first one damaged and refused.
#[test]
fn log_passed_over_is_set_aside_with_its_damaged_successor() {
    let damaged = |from: i64, to: i64| {
        let entry = |zxid: i64| txn(zxid, 1, &create(&format!("/n{zxid}"), false, 1));
        let mut bytes = log(&(from..=to).map(entry).collect::<Vec<_>>());
        let last = bytes.len() - 101;
        bytes[last] ^= 1;
        bytes
    };
    let logs = [("log.1", damaged(1, 4)), ("log.4", damaged(4, 6))];
    let scratch = with_logs("passed-over", &logs);
    assert!(scratch.refusal().starts_with("\"log.4\""));
    let mut dir = scratch.open().unwrap();
    let engine = dir.load(super::Settings::default(), true).unwrap();
    dir.begin(&engine).unwrap();
    drop(dir);
    let names = scratch.names();
    let unread = names.iter().filter(|name| name.starts_with("unread."));
    assert_eq!(unread.collect::<Vec<_>>(), ["unread.log.1", "unread.log.4"]);
    let names = ["zookeeper", "n1", "n2", "n3", "n4", "n5"];
    assert_eq!(loaded(&scratch).children("/").unwrap(), names);
}

/// Source: ZooKeeper's `FileTxnSnapLog.restore`, ZOOKEEPER-3056.
#[test]
fn logs_without_a_snapshot_are_refused_unless_trusted() {
    let scratch = Scratch::new("alone");
    scratch.put("log.1", &log(&[txn(1, 1, &create("/a", false, 1))]));
    let text = scratch.refusal();
    assert!(
        text.starts_with("\"log.1\" has changes, but there is no snapshot"),
        "{text}"
    );
    let source = DataSource::new(&scratch.0);
    let settings = super::Settings::default;
    assert!(source.load(settings()).is_err());
    let engine = source.trust_empty_snapshot().load(settings()).unwrap();
    engine.check().unwrap();
    assert_eq!(engine.children("/").unwrap(), ["zookeeper", "a"]);
    assert_eq!(engine.zxid(), Zxid(1));
}
