//! Patterns for paths: `*` within a name, `**` across names.

/// The longest pattern. Unit: bytes.
pub(crate) const GLOB_BYTES_MAX: usize = 1_024;

/// A pattern, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Glob {
    tokens: Vec<GlobToken>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum GlobToken {
    Byte(u8),
    /// Any number of bytes but no slash.
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
            return Err("begins with neither \"/\" nor \"*\", so it can match no path");
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

    /// Whether the whole path is as the pattern says.
    ///
    /// Every place in the pattern at which the path so far can be is tracked at once: the time is
    /// the product of both lengths, whatever the pattern. Backtracking would be exponential.
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

    /// A star may stand for nothing.
    fn pass_stars(&self, at: &mut [bool]) {
        for (index, token) in self.tokens.iter().enumerate() {
            if at[index] && !matches!(token, GlobToken::Byte(_)) {
                at[index + 1] = true;
            }
        }
    }
}

/// Names that no path has, so that a pattern with one of them can match none.
fn check_names(pattern: &str) -> Result<(), &'static str> {
    if pattern.contains('\0') {
        return Err("has a null character, which no path has");
    }
    let mut names = pattern.split('/').skip(1).peekable();
    while let Some(name) = names.next() {
        match name {
            // The last one: the path of the root, or of a sequential create.
            "" if names.peek().is_none() => {}
            "" => return Err("has an empty name (//), which no path has"),
            "." | ".." => return Err("has a name . or .., which no path has"),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a pattern matches only paths that end with a slash: those of sequential creates, which
/// get a name that is nothing but their number.
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
            // No other character means anything else than itself.
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

    /// Backtracking over this many stars would take forever.
    #[test]
    fn many_stars_cost_no_more_than_other_characters() {
        let glob = Glob::new(&format!("/{}b", "*a".repeat(400))).unwrap();
        assert!(!glob.matches(format!("/{}", "a".repeat(2_000)).as_bytes()));
    }
}
