//! Patterns for paths: `*` within a name, `**` across names.

use crate::work;

/// The longest pattern. Unit: bytes.
pub(crate) const GLOB_BYTES_MAX: usize = 1_024;

/// A parsed pattern, as an automaton whose states are bits of words.
///
/// State `n` says that the path so far matches the first `n` literal bytes of the pattern, and the
/// stars before the next one. Each byte of a path moves all states at once: a literal byte moves
/// them on by one, a star lets them stay. So matching takes one step a byte and word, of which there
/// are 17 at most, whatever the pattern. Backtracking would take up to the product of the lengths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Glob {
    /// The literal bytes before the first star, which every matching path begins with.
    prefix: Vec<u8>,
    /// The number of words that the states take.
    words: usize,
    /// By byte value: which row of `advances` says where the byte is next. Row 0 says nowhere.
    rows: Box<[u16; 256]>,
    /// For each row the states that its byte moves on.
    advances: Vec<u64>,
    /// The states that stay at any byte other than a slash: a star follows.
    stays_in_name: Vec<u64>,
    /// The states that stay at any byte: two stars follow.
    stays: Vec<u64>,
    /// The state that matches.
    last: usize,
}

const WORD: usize = u64::BITS as usize;

impl Glob {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The fault of the pattern.
    pub fn new(pattern: &str) -> Result<Self, &'static str> {
        if pattern.len() > GLOB_BYTES_MAX {
            return Err("longer than 1024 bytes");
        }
        if !pattern.starts_with(['/', '*']) {
            return Err("must begin with \"/\" or \"*\" to match a path");
        }
        check_names(pattern)?;
        let literals: Vec<u8> = pattern.bytes().filter(|byte| *byte != b'*').collect();
        let words = literals.len() / WORD + 1;
        let mut glob = Self {
            prefix: pattern.bytes().take_while(|byte| *byte != b'*').collect(),
            words,
            rows: Box::new([0; 256]),
            advances: vec![0; words],
            stays_in_name: vec![0; words],
            stays: vec![0; words],
            last: literals.len(),
        };
        for (state, byte) in literals.into_iter().enumerate() {
            let row = &mut glob.rows[usize::from(byte)];
            if *row == 0 {
                *row = u16::try_from(glob.advances.len() / words).expect("at most 256 rows");
                glob.advances.resize(glob.advances.len() + words, 0);
            }
            let row = usize::from(*row) * words;
            glob.advances[row + state / WORD] |= 1 << (state % WORD);
        }
        let (mut state, mut rest) = (0, pattern.as_bytes());
        while let Some((&first, behind)) = rest.split_first() {
            rest = behind;
            let bit = 1 << (state % WORD);
            match first {
                b'*' if rest.first() == Some(&b'*') => {
                    rest = &rest[1..];
                    glob.stays[state / WORD] |= bit;
                    glob.stays_in_name[state / WORD] |= bit;
                }
                b'*' => glob.stays_in_name[state / WORD] |= bit,
                _ => state += 1,
            }
        }
        Ok(glob)
    }

    /// Returns whether the pattern matches the whole path.
    pub fn matches(&self, path: &[u8]) -> bool {
        if !path.starts_with(&self.prefix) {
            return false;
        }
        let mut states = [0; GLOB_BYTES_MAX / WORD + 1];
        let states = &mut states[..self.words];
        states[self.prefix.len() / WORD] = 1 << (self.prefix.len() % WORD);
        for byte in &path[self.prefix.len()..] {
            work::count(self.words);
            let row = usize::from(self.rows[usize::from(*byte)]) * self.words;
            let advances = &self.advances[row..row + self.words];
            let stays = if *byte == b'/' {
                &self.stays
            } else {
                &self.stays_in_name
            };
            let (mut carry, mut any) = (0, 0);
            for ((state, advance), stay) in states.iter_mut().zip(advances).zip(stays) {
                let moved = *state & advance;
                *state = *state & stay | moved << 1 | carry;
                carry = moved >> (WORD - 1);
                any |= *state;
            }
            if any == 0 {
                return false;
            }
        }
        states[self.last / WORD] >> (self.last % WORD) & 1 == 1
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

    /// One request with such a pattern held the server for 14 s: each byte of each path took a step
    /// for each byte of the pattern.
    #[test]
    fn matching_takes_a_step_a_byte_and_word_whatever_the_pattern() {
        let path = format!("/{}", "a".repeat(2_000));
        for pattern in ["*a", "**a", "*a*", "a**", "*", "a"] {
            for tail in ["", "b", "/b"] {
                let pattern = format!("/*{}{tail}", pattern.repeat(1_000 / pattern.len()));
                let glob = Glob::new(&pattern).unwrap();
                let steps = work::counted(|| {
                    glob.matches(path.as_bytes());
                });
                assert!(steps <= 17 * path.len(), "{steps} steps for {pattern}");
            }
        }
    }

    /// The same by trying everything.
    fn slow(pattern: &[u8], path: &[u8]) -> bool {
        match (pattern, path) {
            ([], path) => path.is_empty(),
            ([b'*', b'*', rest @ ..], path) => {
                (0..=path.len()).any(|length| slow(rest, &path[length..]))
            }
            ([b'*', rest @ ..], path) => (0..=path.len())
                .take_while(|length| !path[..*length].contains(&b'/'))
                .any(|length| slow(rest, &path[length..])),
            ([wanted, pattern @ ..], [byte, path @ ..]) => wanted == byte && slow(pattern, path),
            _ => false,
        }
    }

    #[test]
    fn glob_matches_what_trying_everything_does() {
        let mut number = 1_u64;
        let mut draw = |below: usize| {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from(number >> 33).unwrap() % below
        };
        let (mut tried, mut matched) = (0, 0);
        while tried < 20_000 {
            // Long ones have states in several words.
            let stem = "/long-name".repeat(draw(2) * 7);
            let mut text = |alphabet: &[&str], length: usize| {
                let parts: Vec<_> = (0..draw(length))
                    .map(|_| alphabet[draw(alphabet.len())])
                    .collect();
                format!("{stem}/{}", parts.concat())
            };
            let pattern = text(&["a", "b", "/", "*", "**"], 8);
            let path = text(&["a", "b", "/"], 8);
            let Ok(glob) = Glob::new(&pattern) else {
                continue;
            };
            let is_match = glob.matches(path.as_bytes());
            assert_eq!(
                is_match,
                slow(pattern.as_bytes(), path.as_bytes()),
                "{pattern} on {path}"
            );
            tried += 1;
            matched += usize::from(is_match);
        }
        assert!(matched > 1_000, "{matched}");
    }
}
