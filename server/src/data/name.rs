//! What files in `version-2` are, by their names.
//!
//! Source: `docs/zookeeper-protocol.md` section 22; the original's `Util.getZxidFromName`.

use minikeeper_protocol::Zxid;

/// What a file of the original's data directory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Snapshot,
    /// A snapshot, compressed.
    Gzip,
    /// A snapshot, compressed.
    Snappy,
    Log,
}

/// What a file is, and the zxid in its name; `None` if it is none of the original's.
pub(crate) fn parse(name: &str) -> Option<(Kind, Zxid)> {
    let (kind, rest) = name.split_once('.')?;
    let (zxid, kind) = match (kind, rest.split_once('.')) {
        ("snapshot", None) => (rest, Kind::Snapshot),
        ("snapshot", Some((zxid, "gz"))) => (zxid, Kind::Gzip),
        ("snapshot", Some((zxid, "snappy"))) => (zxid, Kind::Snappy),
        ("log", None) => (rest, Kind::Log),
        _ => return None,
    };
    if !zxid.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    i64::from_str_radix(zxid, 16)
        .ok()
        .map(|zxid| (kind, Zxid(zxid)))
}

/// The name of a snapshot; its zxid is not below zero, or the name could not be read again.
pub(crate) fn of_snapshot(zxid: Zxid) -> String {
    format!("snapshot.{:x}", zxid.0)
}

/// The name of the log that begins with this change.
pub(crate) fn of_log(zxid: Zxid) -> String {
    format!("log.{:x}", zxid.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_original_are_known() {
        for (name, expected) in [
            ("snapshot.0", Some((Kind::Snapshot, Zxid(0)))),
            ("snapshot.1a2B", Some((Kind::Snapshot, Zxid(0x1a2b)))),
            ("snapshot.5.gz", Some((Kind::Gzip, Zxid(5)))),
            ("snapshot.5.snappy", Some((Kind::Snappy, Zxid(5)))),
            ("log.7", Some((Kind::Log, Zxid(7)))),
            ("snapshot.", None),
            ("snapshot.+5", None),
            ("snapshot.-5", None),
            ("snapshot.5.new", None),
            ("snapshot.ffffffffffffffff", None),
            ("snapshot", None),
            ("log.7.gz", None),
            ("acceptedEpoch", None),
        ] {
            assert_eq!(parse(name), expected, "{name}");
        }
        assert_eq!(of_snapshot(Zxid(0x1a2b)), "snapshot.1a2b");
        assert_eq!(of_log(Zxid(0x1a2b)), "log.1a2b");
    }
}
