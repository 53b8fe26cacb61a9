//! Paths of znodes, and the rules they must meet.
//!
//! Source: `docs/zookeeper-protocol.md` section 8.1; ZooKeeper's `PathUtils.validatePath`.

use std::fmt;

use crate::jute::Ustring;

/// A path, valid by construction.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ZnodePath(Ustring);

impl ZnodePath {
    /// Checks a path.
    ///
    /// # Errors
    /// The first rule that it breaks, with the position.
    ///
    /// # Examples
    /// ```
    /// use minikeeper_protocol::ZnodePath;
    /// let path = ZnodePath::new("/locks/printer")?;
    /// assert_eq!(path.name(), "printer");
    /// assert_eq!(path.parent().unwrap().as_str(), "/locks");
    /// let error = ZnodePath::new("/a//b").unwrap_err();
    /// assert_eq!(error.to_string(), r#"path "/a//b": empty component at byte 3"#);
    /// # Ok::<(), minikeeper_protocol::PathError>(())
    /// ```
    pub fn new(path: impl Into<Ustring>) -> Result<Self, PathError> {
        let path = path.into();
        validate(path.as_bytes())?;
        Ok(Self(path))
    }

    /// Returns the path of the root.
    #[must_use]
    pub const fn root() -> Self {
        Self(Ustring::from_static("/"))
    }

    /// Returns the text.
    ///
    /// # Panics
    /// Never: a valid path is UTF-8.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.0.as_bytes()).expect("a valid path is UTF-8")
    }

    /// Returns the wire form.
    #[must_use]
    pub const fn as_ustring(&self) -> &Ustring {
        &self.0
    }

    /// Returns the last component; empty for the root.
    #[must_use]
    pub fn name(&self) -> &str {
        self.as_str().rsplit('/').next().unwrap_or_default()
    }

    /// Returns the path of the parent; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let bytes = self.0.as_bytes();
        if bytes.len() == 1 {
            return None;
        }
        let parent = parent_of(bytes)?;
        Some(if parent == b"/" {
            Self::root()
        } else {
            Self(self.0.clone().into_bytes().slice(..parent.len()).into())
        })
    }

    /// Returns the path of a child.
    ///
    /// # Errors
    /// When the name is not one component, or has a forbidden character.
    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        let parent = if self.0.as_bytes().len() == 1 {
            ""
        } else {
            self.as_str()
        };
        let path = format!("{parent}/{name}");
        let name_at = parent.len() + 1;
        // Checked here, because the joined path may be valid: the root's or a grandchild's.
        let (fault, at) = match name.find('/') {
            Some(slash) => (PathFault::ForbiddenCharacter('/'), name_at + slash),
            None if path == "/" => (PathFault::EmptyComponent, name_at),
            None => return Self::new(path),
        };
        Err(PathError { path, fault, at })
    }
}

impl From<ZnodePath> for Ustring {
    fn from(path: ZnodePath) -> Self {
        path.0
    }
}

impl std::str::FromStr for ZnodePath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::new(text)
    }
}

impl fmt::Debug for ZnodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for ZnodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A path that breaks a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathError {
    /// The path, with malformed UTF-8 replaced.
    pub path: String,
    /// The rule that it breaks.
    pub fault: PathFault,
    /// The position of the fault, in bytes from the start.
    pub at: usize,
}

/// The rule that a path breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PathFault {
    /// The path is empty.
    Empty,
    /// The path does not start with a slash.
    NotAbsolute,
    /// The path ends with a slash.
    TrailingSlash,
    /// The path has two slashes in a row.
    EmptyComponent,
    /// A component is `.` or `..`.
    Relative,
    /// The path has a control, surrogate, private-use or special character, or one above U+FFFF.
    ForbiddenCharacter(char),
    /// The path is not UTF-8.
    Malformed,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {:?}: ", self.path)?;
        match self.fault {
            PathFault::Empty => return f.write_str("empty; a path starts with a slash"),
            PathFault::NotAbsolute => return f.write_str("does not start with a slash"),
            PathFault::TrailingSlash => f.write_str("ends with a slash")?,
            PathFault::EmptyComponent => f.write_str("empty component")?,
            PathFault::Relative => f.write_str("relative component")?,
            PathFault::ForbiddenCharacter(c) => {
                write!(f, "forbidden character U+{:04X}", u32::from(c))?;
            }
            PathFault::Malformed => f.write_str("malformed UTF-8")?,
        }
        write!(f, " at byte {}", self.at)
    }
}

impl std::error::Error for PathError {}

/// Checks a path without storing it.
///
/// # Errors
/// The first rule that it breaks, with the position.
pub fn validate(path: &[u8]) -> Result<(), PathError> {
    if is_plain(path) {
        return Ok(());
    }
    match find_fault(path) {
        None => Ok(()),
        Some((fault, at)) => Err(PathError {
            path: String::from_utf8_lossy(path).into_owned(),
            fault,
            at,
        }),
    }
}

/// Returns whether [`validate`] accepts the path, without building an error.
#[must_use]
pub fn is_valid(path: &[u8]) -> bool {
    is_plain(path) || find_fault(path).is_none()
}

/// Returns the path up to the last slash; `/` for a top-level path, `None` without any slash.
///
/// Returns `/` for the root too: callers must handle the root themselves.
#[must_use]
#[inline]
pub fn parent_of(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|&byte| byte == b'/')?;
    Some(if slash == 0 { b"/" } else { &path[..slash] })
}

/// Returns the text after the last slash.
#[must_use]
pub fn name_of(path: &[u8]) -> &[u8] {
    let start = path
        .iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |slash| slash + 1);
    &path[start..]
}

/// Returns whether a path is printable ASCII and meets every rule. Most paths do, and this checks
/// them in one pass without a branch per byte. Leaves names with a leading dot to [`find_fault`].
fn is_plain(path: &[u8]) -> bool {
    let [b'/', rest @ ..] = path else {
        return false;
    };
    let (mut is_odd, mut before) = (false, b'/');
    for &byte in rest {
        is_odd |= byte.wrapping_sub(0x20) >= 0x5f;
        is_odd |= (before == b'/') & ((byte == b'/') | (byte == b'.'));
        before = byte;
    }
    !is_odd && before != b'/'
}

fn find_fault(path: &[u8]) -> Option<(PathFault, usize)> {
    match path {
        [] => return Some((PathFault::Empty, 0)),
        [b'/'] => return None,
        [b'/', ..] => {}
        _ => return Some((PathFault::NotAbsolute, 0)),
    }
    if path.iter().any(|&byte| !(0x20..0x7f).contains(&byte))
        && let Some(fault) = find_forbidden_character(path)
    {
        return Some(fault);
    }
    let mut start = 1;
    for component in path[1..].split(|&byte| byte == b'/') {
        match component {
            [] if start == path.len() => return Some((PathFault::TrailingSlash, start - 1)),
            [] => return Some((PathFault::EmptyComponent, start)),
            [b'.'] | [b'.', b'.'] => return Some((PathFault::Relative, start)),
            _ => start += component.len() + 1,
        }
    }
    None
}

fn find_forbidden_character(path: &[u8]) -> Option<(PathFault, usize)> {
    let text = match std::str::from_utf8(path) {
        Ok(text) => text,
        Err(error) => return Some((PathFault::Malformed, error.valid_up_to())),
    };
    text.char_indices().find_map(|(at, c)| {
        // ZooKeeper checks UTF-16 units: characters above U+FFFF are surrogates there.
        let forbidden = matches!(c, '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{e000}'..='\u{f8ff}')
            || c >= '\u{fff0}';
        forbidden.then_some((PathFault::ForbiddenCharacter(c), at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_check_accepts_no_path_that_the_rules_refuse() {
        // Every path of up to six bytes out of those that some rule treats specially.
        const BYTES: [u8; 9] = [b'/', b'.', b'a', b' ', b'~', 0, 0x1f, 0x7f, 0xc3];
        let mut plain = 0;
        for length in 0..=6 {
            for number in 0..BYTES.len().pow(length) {
                let digit = |at| BYTES[number / BYTES.len().pow(at) % BYTES.len()];
                let path: Vec<u8> = (0..length).map(digit).collect();
                if is_plain(&path) {
                    plain += 1;
                    assert_eq!(find_fault(&path), None, "{path:?}");
                }
            }
        }
        assert!(plain > 1_000, "{plain} plain paths");
        assert!(is_plain(b"/locks/_c_8a-lock-0000000001"));
    }
}
