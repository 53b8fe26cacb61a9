//! Splits a line into words, as zkCli does.
//!
//! A word that begins with a quote ends at the next quote of the same kind and may hold blanks; there
//! is no escape. A quote inside a word is an ordinary character. A quote without an end is dropped.

/// Returns the words of a line, without the quotes around them.
pub(crate) fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches(is_blank);
        let Some(first) = rest.chars().next() else {
            return words;
        };
        if first == '"' || first == '\'' {
            let inside = &rest[1..];
            rest = match inside.split_once(first) {
                Some((word, after)) => {
                    words.push(word.to_owned());
                    after
                }
                None => inside,
            };
            continue;
        }
        let end = rest.find(is_blank).unwrap_or(rest.len());
        words.push(rest[..end].to_owned());
        rest = &rest[end..];
    }
}

/// Returns whether this is a blank to Java's regular expressions: ASCII only.
const fn is_blank(symbol: char) -> bool {
    matches!(symbol, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_zkcli_splits_them() {
        for (line, expected) in [
            ("ls /", &["ls", "/"][..]),
            ("  get\t-s  /a ", &["get", "-s", "/a"]),
            (r#"set /a "b c""#, &["set", "/a", "b c"]),
            ("set /a 'b \"c'", &["set", "/a", "b \"c"]),
            (r#"create /a """#, &["create", "/a", ""]),
            (r#"set /a b"c d""#, &["set", "/a", "b\"c", "d\""]),
            (r#"set /a "b"c"#, &["set", "/a", "b", "c"]),
            (r#"set /a "b c"#, &["set", "/a", "b", "c"]),
            ("set /a \u{a0}", &["set", "/a", "\u{a0}"]),
            ("", &[]),
            (" \t", &[]),
            ("'", &[]),
        ] {
            assert_eq!(split(line), expected, "{line:?}");
        }
    }
}
