//! Parses Java properties, the format of ZooKeeper's configuration file.
//!
//! Source: `java.util.Properties.load(InputStream)`. Java 17 gave the same result for all strings of
//! up to six bytes among `a \ = # \n \r` and blank, except for an empty key if the last line is a
//! single backslash.

/// One `key=value` of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Property {
    /// Never trimmed: an escaped space at either end is part of it.
    pub(crate) key: String,
    /// Empty when nothing follows the key.
    pub(crate) value: String,
    /// The line where it starts; the first line is 1.
    pub(crate) line: usize,
}

/// A file that is not a properties file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("\\u must be followed by four hexadecimal digits")]
pub(crate) struct PropertiesError {
    /// The line where the faulty property starts.
    pub(crate) line: usize,
}

/// Parses every property, in order; a key may occur several times.
///
/// # Errors
/// [`PropertiesError`] for the only thing the format forbids, a broken `\uXXXX`.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<Property>, PropertiesError> {
    let mut found = Vec::new();
    let mut lines = natural_lines(bytes).into_iter().zip(1..).peekable();
    while let Some((first, line)) = lines.next() {
        let mut logical = without_indent(first).to_vec();
        // Skips an empty line, a comment, and a continuation of an empty line.
        if matches!(logical[..], [] | [b'#' | b'!', ..])
            || logical == b"\\" && lines.peek().is_some()
        {
            continue;
        }
        while ends_in_continuation(&logical) {
            let Some((next, _)) = lines.next() else { break };
            logical.pop();
            logical.extend_from_slice(without_indent(next));
        }
        found.push(property(&logical, line)?);
    }
    Ok(found)
}

/// Splits at `\n`, `\r` or both together.
fn natural_lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        lines.push(&rest[..end]);
        let width = if rest[end..].starts_with(b"\r\n") {
            2
        } else {
            1
        };
        rest = &rest[end + width..];
    }
    lines.push(rest);
    lines
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\x0c')
}

fn without_indent(line: &[u8]) -> &[u8] {
    let start = line.iter().position(|&byte| !is_blank(byte));
    &line[start.unwrap_or(line.len())..]
}

/// Returns whether a line ends in an unescaped backslash.
fn ends_in_continuation(line: &[u8]) -> bool {
    let backslashes = line.iter().rev().take_while(|&&byte| byte == b'\\');
    backslashes.count() % 2 == 1
}

/// Splits a logical line at the first unescaped `=`, `:` or blank.
fn property(logical: &[u8], line: usize) -> Result<Property, PropertiesError> {
    let mut key_end = logical.len();
    let mut is_escaped = false;
    for (at, &byte) in logical.iter().enumerate() {
        if !is_escaped && (is_blank(byte) || matches!(byte, b'=' | b':')) {
            key_end = at;
            break;
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    let (key, rest) = logical.split_at(key_end);
    let rest = without_indent(rest);
    let value = match rest {
        [b'=' | b':', value @ ..] => without_indent(value),
        value => value,
    };
    let text = |escaped| unescape(escaped).ok_or(PropertiesError { line });
    Ok(Property {
        key: text(key)?,
        value: text(value)?,
        line,
    })
}

/// Decodes a text: bytes are ISO 8859-1, as in ZooKeeper; other characters are written as `\uXXXX`.
fn unescape(escaped: &[u8]) -> Option<String> {
    let mut units: Vec<u16> = Vec::with_capacity(escaped.len());
    let mut bytes = escaped.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'\\' {
            units.push(byte.into());
            continue;
        }
        match bytes.next() {
            None => {}
            Some(b't') => units.push(b'\t'.into()),
            Some(b'r') => units.push(b'\r'.into()),
            Some(b'n') => units.push(b'\n'.into()),
            Some(b'f') => units.push(0x0c),
            Some(b'u') => {
                let digits = bytes.as_slice().get(..4)?;
                bytes = bytes.as_slice()[4..].iter();
                let mut unit = 0;
                for &digit in digits {
                    unit = unit << 4 | char::from(digit).to_digit(16)?;
                }
                units.push(u16::try_from(unit).ok()?);
            }
            Some(&other) => units.push(other.into()),
        }
    }
    Some(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts the properties, sorted by key, as Java printed them.
    #[track_caller]
    fn assert_read(text: &[u8], expected: &[(&str, &str)]) {
        let mut read: Vec<_> = parse(text)
            .unwrap()
            .into_iter()
            .map(|property| (property.key, property.value))
            .collect();
        read.sort();
        let read: Vec<_> = read.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn separators_blanks_and_comments_are_parsed_as_in_java() {
        assert_read(
            b"a=1\nb : 2\nc 3\n  d  =  4  \n# comment = x\n! other\n#cont\\\ne=5\nf\\=g=6\n\
              \n i=7\n=empty\nk\nl=a\\\\\nm==2\nn=\xc3\xa9\no=end\\",
            &[
                ("", "empty"),
                ("a", "1"),
                ("b", "2"),
                ("c", "3"),
                ("d", "4  "),
                ("e", "5"),
                ("f=g", "6"),
                ("i", "7"),
                ("k", ""),
                ("l", "a\\"),
                ("m", "=2"),
                ("n", "\u{c3}\u{a9}"),
                ("o", "end"),
            ],
        );
    }

    #[test]
    fn continued_lines_and_escapes_are_parsed_as_in_java() {
        assert_read(
            b"a=1\rb=2\r\nc=3\\\r\n 4\r\n\x0cf=5\ng\\\n=7\n#a\\\n\nh=\\\n#i\nj=\\\n\n\nk=1\n\
              x\\ty=3\\ \nu=\\u0041\\t\\q\nz\\",
            &[
                ("a", "1"),
                ("b", "2"),
                ("c", "34"),
                ("f", "5"),
                ("g", "7"),
                ("h", "#i"),
                ("j", ""),
                ("k", "1"),
                ("u", "A\tq"),
                ("x\ty", "3 "),
                ("z", ""),
            ],
        );
    }

    #[test]
    fn continued_empty_line_is_skipped() {
        assert_read(b"\\\n\n#a\n\\\n#b=1\n\\\r\n c=2", &[("c", "2")]);
    }

    #[test]
    fn line_of_a_property_is_where_it_starts() {
        let read = parse(b"# top\r\na=1\\\n\\\n 2\n\nb=3\n").unwrap();
        let lines: Vec<_> = read
            .iter()
            .map(|property| (property.key.as_str(), property.line))
            .collect();
        assert_eq!(lines, [("a", 2), ("b", 6)]);
        assert_eq!(read[0].value, "12");
    }

    #[test]
    fn broken_unicode_escape_is_refused_with_its_line() {
        for text in ["a=1\nx=\\u00zz\n", "a=1\nx=\\u00", "a=1\n\\u+123=1"] {
            assert_eq!(parse(text.as_bytes()), Err(PropertiesError { line: 2 }));
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        // Every string of up to six special bytes.
        let bytes = b"\\u=\n#a";
        for length in 0..=6_u32 {
            for mut number in 0..bytes.len().pow(length) {
                let mut text = Vec::new();
                for _ in 0..length {
                    text.push(bytes[number % bytes.len()]);
                    number /= bytes.len();
                }
                let _ = parse(&text);
            }
        }
    }
}
