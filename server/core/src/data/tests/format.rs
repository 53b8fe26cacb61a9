//! The bytes of a snapshot file.

use minikeeper_engine::{Engine, Settings};
use minikeeper_protocol::{SessionId, Stat, Zxid, jute};

use super::engine;
use crate::data::{copy, snapshot_file::decode, source::Damage};

fn read(bytes: &[u8]) -> Result<Engine, Damage> {
    decode(bytes, Settings::default(), Zxid(0))
}

#[track_caller]
fn fault(bytes: &[u8]) -> String {
    let Damage { offset, fault } = read(bytes).unwrap_err();
    format!("{offset}: {fault}")
}

/// Appends the checksum of everything before it, and the mark.
fn seal(bytes: &mut Vec<u8>) {
    let adler = adler2::adler32_slice(bytes);
    jute::put_long(bytes, adler.into());
    jute::put_buffer(bytes, Some(b"/"));
}

#[test]
fn decoded_state_equals_the_encoded_one() {
    let saved = engine();
    let bytes = copy(&saved);
    let loaded = read(&bytes).unwrap();
    loaded.check().unwrap();
    assert_eq!(loaded.dump(), saved.dump());
    assert_eq!(copy(&loaded), bytes);
    assert!(loaded.dump().contains("container"));
}

/// Laid out by hand from `docs/zookeeper-protocol.md` section 22.1.
#[test]
fn smallest_snapshot_has_the_documented_bytes() {
    let mut bytes = b"ZKSN\0\0\0\x02minikeep".to_vec();
    // No session; one access list, of /zookeeper/config.
    bytes.extend(b"\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01");
    bytes.extend(b"\0\0\0\x01\0\0\0\x01\0\0\0\x05world\0\0\0\x06anyone");
    for (path, acl, aversion) in [
        ("", -1, 0),
        ("/zookeeper", -1, 0),
        ("/zookeeper/quota", -1, 0),
        ("/zookeeper/config", 1, -1),
    ] {
        jute::put_buffer(&mut bytes, Some(path.as_bytes()));
        jute::put_buffer(&mut bytes, Some(b""));
        jute::put_long(&mut bytes, acl);
        for _ in 0..4 {
            jute::put_long(&mut bytes, 0);
        }
        for number in [0, 0, aversion] {
            jute::put_int(&mut bytes, number);
        }
        for _ in 0..2 {
            jute::put_long(&mut bytes, 0);
        }
    }
    jute::put_buffer(&mut bytes, Some(b"/"));
    seal(&mut bytes);
    bytes.extend(b"\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0");
    seal(&mut bytes);
    bytes.extend(b"\0\0\0\0\0\0\0\x07");
    seal(&mut bytes);
    let settings = Settings {
        zxid: Zxid(7),
        ..Settings::default()
    };
    assert_eq!(copy(&Engine::new(settings)), bytes);
}

/// A live 3.9.5 and a live 3.8.0 wrote these files; the expected numbers are those that a client read
/// from them.
#[test]
fn captured_zookeeper_snapshots_are_read() {
    let captured: [(&[u8], i64, [i64; 4]); 2] = [
        (
            include_bytes!("../captured/3.9.5.snapshot"),
            0x100_00c9_3172_0000,
            [1_795_268_219_812, 1_795_268_219_833, 219_853, 219_903],
        ),
        (
            include_bytes!("../captured/3.8.0.snapshot"),
            0x100_00c9_62bf_0000,
            [1_795_268_231_466, 1_795_268_231_486, 231_505, 231_538],
        ),
    ];
    for (bytes, session, [ctime_ms, mtime_ms, seq_time, ephemeral_time]) in captured {
        let engine = decode(bytes, Settings::default(), Zxid(0x26)).unwrap();
        engine.check().unwrap();
        assert_eq!(engine.zxid(), Zxid(0x26));
        let sessions: Vec<_> = engine.sessions().collect();
        assert_eq!(sessions, [(SessionId(session), 30_000, None)]);
        let (data, stat) = engine.get("/plain").unwrap();
        assert_eq!(data, Some(&b"again"[..]));
        let plain = Stat {
            czxid: Zxid(2),
            mzxid: Zxid(4),
            ctime_ms,
            mtime_ms,
            version: 2,
            cversion: 0,
            aversion: 1,
            ephemeral_owner: SessionId::NONE,
            data_length: 5,
            num_children: 0,
            pzxid: Zxid(2),
        };
        assert_eq!(stat, plain);
        let (data, stat) = engine.get("/seq").unwrap();
        assert_eq!(data, None);
        assert_eq!(stat.ctime_ms, 1_795_268_000_000 + seq_time);
        assert_eq!(
            (stat.cversion, stat.num_children, stat.pzxid),
            (6, 2, Zxid(16))
        );
        let (data, stat) = engine.get("/cont/e-0000000001").unwrap();
        assert_eq!(data, Some(&b"e"[..]));
        assert_eq!(stat.mtime_ms, 1_795_268_000_000 + ephemeral_time);
        assert_eq!(stat.ephemeral_owner, SessionId(session));
        let (data, _) = engine.get("/déjà vu").unwrap();
        assert_eq!(data, Some("€".as_bytes()));
        let deepest: String = (0..12).map(|depth| format!("/deep{depth}")).collect();
        assert_eq!(engine.get(&deepest).unwrap().0, Some(&b"d11"[..]));
        assert_eq!(engine.get("/zookeeper/config").unwrap().1.aversion, -1);
        let dump = engine.dump();
        let line = |path: &str| {
            let start = format!("znode {path} ");
            let line = dump.lines().find(|line| line.starts_with(&start));
            line.unwrap_or_default().to_owned()
        };
        assert_eq!(engine.get("/ttl").unwrap().0, Some(&b"t"[..]));
        assert!(line("/cont").contains(" container "), "{}", line("/cont"));
        assert!(line("/acl").contains("bob:dGVzdA=="), "{}", line("/acl"));
        assert!(line("/acl/in").contains("127.0.0.1"), "{}", line("/acl/in"));
    }
}

/// Older versions lack the sections after the tree, or write the digest as a string.
#[test]
fn sections_after_the_tree_may_be_missing() {
    let saved = engine();
    let whole = copy(&saved);
    // The digest, the zxid, and their seals.
    let tree = &whole[..whole.len() - (20 + 13) - (8 + 13)];
    let mut with_zxid = tree.to_vec();
    jute::put_long(&mut with_zxid, 99);
    seal(&mut with_zxid);
    let mut with_text = tree.to_vec();
    jute::put_long(&mut with_text, 5);
    jute::put_int(&mut with_text, 1);
    jute::put_buffer(&mut with_text, Some(b"cafe"));
    seal(&mut with_text);
    for (bytes, zxid) in [
        (tree, saved.zxid()),
        (&whole[..whole.len() - (8 + 13)], saved.zxid()),
        (&with_zxid, Zxid(99)),
        (&with_text, saved.zxid()),
    ] {
        let loaded = read(bytes).unwrap();
        assert_eq!(loaded.zxid(), zxid);
        assert_eq!(loaded.counts(), saved.counts());
    }
}

#[test]
fn fault_is_reported_with_its_offset() {
    let whole = copy(&engine());
    let changed = |at: usize, bytes: &[u8]| {
        let mut copy = whole.clone();
        copy[at..at + bytes.len()].copy_from_slice(bytes);
        copy
    };
    assert_eq!(fault(b""), "0: the file ends 4 bytes too early");
    assert_eq!(
        fault(b"SQLite format 3\0"),
        "0: starts with 0x53514c69, but a snapshot starts with 0x5a4b534e (\"ZKSN\")"
    );
    assert_eq!(
        fault(&changed(4, &[0, 0, 0, 3])),
        "4: unknown format version 3, expected 2"
    );
    assert_eq!(
        fault(&changed(16, &[0xff; 4])),
        "16: number of sessions of -1 is negative"
    );
    let surplus = [&whole[..], b"x"].concat();
    assert_eq!(
        fault(&surplus),
        format!("{}: data after the end of the snapshot", whole.len())
    );
    let data = whole.windows(4).position(|bytes| bytes == b"data").unwrap();
    let sealed = whole.len() - (8 + 13) - (20 + 13) - 13;
    let text = fault(&changed(data, b"atad"));
    assert!(
        text.starts_with(&format!("{sealed}: checksum 0x")),
        "{text}"
    );
    let a = whole.windows(2).position(|bytes| bytes == b"/a").unwrap();
    assert_eq!(
        fault(&changed(a, b"//")),
        format!("{}: path \"//\": empty component at byte 1", a - 4)
    );
    assert_eq!(
        fault(&changed(a - 4, &[0x7f, 0xff, 0xff, 0xff])),
        format!(
            "{}: the file ends {} bytes too early",
            a - 4,
            0x7fff_ffff - (whole.len() - a)
        )
    );
}

/// Goal: every damage is noticed, and none causes a panic. Method: truncates a small file at every
/// byte, and changes each of its bytes in three ways.
#[test]
fn every_truncation_and_every_changed_byte_is_noticed() {
    let whole = copy(&engine());
    let without_zxid = whole.len() - (8 + 13);
    let without_digest = without_zxid - (20 + 13);
    for length in 0..whole.len() {
        let outcome = read(&whole[..length]);
        // At these lengths it is a complete file of an older version.
        let is_whole = length == without_zxid || length == without_digest;
        assert_eq!(outcome.is_ok(), is_whole, "truncated at {length}");
        if let Err(damage) = outcome {
            assert!(damage.offset <= length as u64, "{damage:?} of {length}");
        }
    }
    for at in 0..whole.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            assert!(read(&bytes).is_err(), "{change:#x} at {at}");
        }
    }
}
