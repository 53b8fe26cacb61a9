//! Adds a universe's prefix to the paths in replies.

use minikeeper_protocol::{MultiResult, ReplyHeader, ReplyRef, ReplyTooLong};

/// Returns the path as clients of the server know it.
pub(crate) fn path(prefix: &str, path: &[u8]) -> Vec<u8> {
    if path == b"/" {
        prefix.as_bytes().to_vec()
    } else {
        [prefix.as_bytes(), path].concat()
    }
}

/// Returns whether a reply contains paths, which [`encode`] must change.
#[inline]
pub(crate) const fn has_paths(body: &ReplyRef<'_>) -> bool {
    matches!(
        body,
        ReplyRef::Path(Some(_))
            | ReplyRef::PathStat(..)
            | ReplyRef::Multi(_)
            | ReplyRef::Ephemerals(_)
    )
}

/// Encodes a reply with the prefix added to its paths.
///
/// # Errors
/// When the reply would be longer than `bytes_max`.
#[cold]
pub(crate) fn encode(
    prefix: &str,
    header: ReplyHeader,
    body: ReplyRef<'_>,
    out: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<(), ReplyTooLong> {
    match body {
        ReplyRef::Path(Some(short)) => {
            ReplyRef::Path(Some(&path(prefix, short))).encode(header, out, bytes_max)
        }
        ReplyRef::PathStat(short, stat) => {
            ReplyRef::PathStat(&path(prefix, short), stat).encode(header, out, bytes_max)
        }
        ReplyRef::Multi(results) => {
            let mut results = results.to_vec();
            for result in &mut results {
                if let MultiResult::Create { path: short }
                | MultiResult::Create2 { path: short, .. } = result
                {
                    *short = bytes::Bytes::from(path(prefix, short.as_bytes())).into();
                }
            }
            ReplyRef::Multi(&results).encode(header, out, bytes_max)
        }
        ReplyRef::Ephemerals(paths) => {
            let paths: Vec<_> = paths.map(|short| path(prefix, short)).collect();
            let mut paths = paths.iter().map(Vec::as_slice);
            ReplyRef::Ephemerals(&mut paths).encode(header, out, bytes_max)
        }
        other => other.encode(header, out, bytes_max),
    }
}
