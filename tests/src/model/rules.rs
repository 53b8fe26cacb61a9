//! Rules that need no state: valid paths, session passwords.

use minikeeper_protocol::{ErrorCode, Reply, Ustring};

pub(super) type Outcome<T = Reply> = Result<T, ErrorCode>;

/// The znodes of a new server. Source: `docs/zookeeper-protocol.md` section 5.4.
pub(super) const SPECIAL: [&str; 4] = ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"];

/// The path up to the last slash; the root for top-level paths.
pub(super) fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

/// The text after the last slash.
pub(super) fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Source: `docs/zookeeper-protocol.md` section 8.1.
pub(super) fn is_valid(path: &str) -> bool {
    if path == "/" {
        return true;
    }
    let Some(rest) = path.strip_prefix('/') else {
        return false;
    };
    rest.split('/').all(|name| !matches!(name, "" | "." | ".."))
        && path.chars().all(|c| {
            !(c <= '\u{1f}'
                || ('\u{7f}'..='\u{9f}').contains(&c)
                || ('\u{e000}'..='\u{f8ff}').contains(&c)
                || ('\u{fff0}'..='\u{ffff}').contains(&c)
                || c > '\u{ffff}')
        })
}

/// Returns the text of a path; a null path is a marshalling error.
pub(super) fn text(path: Option<&Ustring>) -> Outcome<String> {
    let path = path.ok_or(ErrorCode::MarshallingError)?;
    Ok(path.to_str_lossy().into_owned())
}

/// Returns a valid path; a null path is invalid. Source: `docs/zookeeper-protocol.md` section 8.1.
pub(super) fn validated(path: Option<&Ustring>) -> Outcome<String> {
    let path = text(path).map_err(|_| ErrorCode::BadArguments)?;
    if is_valid(&path) {
        Ok(path)
    } else {
        Err(ErrorCode::BadArguments)
    }
}

/// Source: `docs/zookeeper-protocol.md` section 6.7.
pub(super) fn password(id: i64) -> [u8; 16] {
    let mut state = (id.cast_unsigned() ^ 0xB341_5C00 ^ 0x5_DEEC_E66D) % (1 << 48);
    let mut password = [0; 16];
    for part in password.chunks_exact_mut(4) {
        state = (u128::from(state) * 0x5_DEEC_E66D + 0xB)
            .rem_euclid(1 << 48)
            .try_into()
            .expect("48 bits fit 64");
        part.copy_from_slice(&((state >> 16) % (1 << 32)).to_le_bytes()[..4]);
    }
    password
}
