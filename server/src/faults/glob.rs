//! Patterns for paths: `*` within a name, `**` across names.

/// The longest pattern. Unit: bytes.
pub(crate) const GLOB_BYTES_MAX: usize = 1_024;

/// A parsed pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Glob {
    tokens: Vec<GlobToken>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum GlobToken {
    Byte(u8),
    /// Any number of bytes other than slashes.
    Name,
    /// Any number of bytes.
    Any,
}

impl Glob {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The fault of the pattern.
    pub(crate) fn new(pattern: &str) -> Result<Self, &'static str> {
        if pattern.len() > GLOB_BYTES_MAX {
            return Err("longer than 1024 bytes");
        }
        if !pattern.starts_with(['/', '*']) {
            return Err("must begin with \"/\" or \"*\" to match a path");
        }
        check_names(pattern)?;
        let mut tokens = Vec::new();
        let mut rest = pattern.as_bytes();
        while let Some((&first, behind)) = rest.split_first() {
            let (token, behind) = match (first, behind.split_first()) {
                (b'*', Some((b'*', behind))) => (GlobToken::Any, behind),
                (b'*', _) => (GlobToken::Name, behind),
                (byte, _) => (GlobToken::Byte(byte), behind),
            };
            tokens.push(token);
            rest = behind;
        }
        Ok(Self { tokens })
    }

    /// Returns whether the pattern matches the whole path.
    ///
    /// Tracks all positions in the pattern that the path so far can reach, so that the time is at
    /// most proportional to the product of both lengths. Backtracking would be exponential.
    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        let mut at = vec![false; self.tokens.len() + 1];
        at[0] = true;
        self.pass_stars(&mut at);
        let mut next = vec![false; at.len()];
        for &byte in path {
            next.fill(false);
            for (index, token) in self.tokens.iter().enumerate() {
                if !at[index] {
                    continue;
                }
                match token {
                    GlobToken::Byte(wanted) if *wanted == byte => next[index + 1] = true,
                    GlobToken::Name if byte != b'/' => next[index] = true,
                    GlobToken::Any => next[index] = true,
                    GlobToken::Byte(_) | GlobToken::Name => {}
                }
            }
            self.pass_stars(&mut next);
            std::mem::swap(&mut at, &mut next);
        }
        at[self.tokens.len()]
    }

    /// Steps past stars, which may match nothing.
    fn pass_stars(&self, at: &mut [bool]) {
        for (index, token) in self.tokens.iter().enumerate() {
            if at[index] && !matches!(token, GlobToken::Byte(_)) {
                at[index + 1] = true;
            }
        }
    }
}

/// Rejects names that no path can have: a pattern with one of them matches nothing.
fn check_names(pattern: &str) -> Result<(), &'static str> {
    if pattern.contains('\0') {
        return Err("has a null character, which no path can have");
    }
    let mut names = pattern.split('/').skip(1).peekable();
    while let Some(name) = names.next() {
        match name {
            // The last name: the path is the root, or that of a sequential create.
            "" if names.peek().is_none() => {}
            "" => return Err("has an empty name (//), which no path can have"),
            "." | ".." => return Err("has a name . or .., which no path can have"),
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether a pattern matches only paths that end with a slash. Only sequential creates have
/// such paths; their znode's name is just the number.
pub(crate) fn ends_with_slash(pattern: &str) -> bool {
    pattern.len() > 1 && pattern.ends_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_within_a_name_and_across_names() {
        for (pattern, path, is_match) in [
            ("/a", "/a", true),
            ("/a", "/ab", false),
            ("/a", "/", false),
            ("/a/*", "/a/b", true),
            ("/a/*", "/a/b/c", false),
            ("/a/*", "/a", false),
            ("/a/*", "/a/", true),
            ("/a/**", "/a/b/c", true),
            ("/a/**", "/a", false),
            ("/a**", "/a", true),
            ("/a**", "/ab/c", true),
            ("**", "/anything/at/all", true),
            ("*", "/a", false),
            ("/locks/*/lock-*", "/locks/printer/lock-0000000001", true),
            ("/locks/*/lock-*", "/locks/printer/x/lock-1", false),
            ("/**/leaf", "/a/b/leaf", true),
            ("/**/leaf", "/leaf", false),
            ("**/leaf", "/leaf", true),
            ("/*-lock-", "/_c_0000-lock-", true),
            ("/a*b*c", "/axxbxxc", true),
            ("/a*b*c", "/axxbxx", false),
            ("/***", "/a/b", true),
            // All other characters match only themselves.
            ("/a?[b]", "/a?[b]", true),
            ("/ä*", "/äö", true),
        ] {
            let glob = Glob::new(pattern).unwrap();
            assert_eq!(
                glob.matches(path.as_bytes()),
                is_match,
                "{pattern} on {path}"
            );
        }
    }

    #[test]
    fn pattern_that_can_match_no_path_is_refused() {
        assert!(Glob::new("a/b").is_err());
        assert!(Glob::new("").is_err());
        for never in ["/a//b", "//", "**//b", "/a/./b", "/a/..", "/./*", "/a\0"] {
            assert!(Glob::new(never).is_err(), "{never:?}");
        }
        for fine in ["/", "*/a", "/a/.*", "/a/...", "/*.*/b", "/a/*/"] {
            assert!(Glob::new(fine).is_ok(), "{fine:?}");
        }
        assert!(Glob::new(&format!("/{}", "a".repeat(GLOB_BYTES_MAX))).is_err());
    }

    /// Backtracking over so many stars would take forever.
    #[test]
    fn many_stars_cost_no_more_than_other_characters() {
        let glob = Glob::new(&format!("/{}b", "*a".repeat(400))).unwrap();
        assert!(!glob.matches(format!("/{}", "a".repeat(2_000)).as_bytes()));
    }
}
