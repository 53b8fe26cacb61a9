//! Formats the subject of a certificate as in RFC 2253, with the details of Java.
//!
//! Source: `docs/zookeeper-protocol.md` section 9.12; Java's `X500Principal.getName()`.

use std::fmt::Write as _;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// The attribute types that RFC 2253 names, by their encoding; others are written as numbers.
const KEYWORDS: [(&[u8], &str); 9] = [
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "STREET"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
    (&[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
];

/// Formats a name from its DER encoding without the outermost tag and length. Returns `None` if it
/// is invalid.
pub(super) fn rfc2253(mut name: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    while !name.is_empty() {
        let mut pairs = expect(&mut name, SET)?;
        let mut part = String::new();
        while !pairs.is_empty() {
            let mut pair = expect(&mut pairs, SEQUENCE)?;
            if !part.is_empty() {
                part.push('+');
            }
            let kind = expect(&mut pair, OBJECT_IDENTIFIER)?;
            let encoding = pair;
            let (tag, value) = take(&mut pair)?;
            let keyword = KEYWORDS.iter().find(|(known, _)| *known == kind);
            match (keyword, text(tag, value)) {
                (Some((_, keyword)), Some(text)) => {
                    write!(part, "{keyword}={}", escaped(&text)).ok()?;
                }
                (keyword, _) => {
                    match keyword {
                        Some((_, keyword)) => part.push_str(keyword),
                        None => part.push_str(&numbers(kind)?),
                    }
                    part.push_str("=#");
                    for byte in encoding {
                        write!(part, "{byte:02x}").ok()?;
                    }
                }
            }
        }
        parts.push(part);
    }
    parts.reverse();
    Some(parts.join(","))
}

/// Splits one value off the front. Returns its tag and its content.
fn take<'a>(bytes: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let [tag, length, rest @ ..] = *bytes else {
        return None;
    };
    let (length, rest) = match *length {
        short @ 0..=0x7f => (usize::from(short), rest),
        0x81 => (usize::from(*rest.first()?), &rest[1..]),
        0x82 => {
            let (length, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some((*tag, content))
}

fn expect<'a>(bytes: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    take(bytes)
        .filter(|(found, _)| *found == tag)
        .map(|(_, content)| content)
}

/// Decodes a text value. Returns `None` for other kinds of values.
fn text(tag: u8, value: &[u8]) -> Option<String> {
    let latin = || value.iter().map(|&byte| char::from(byte)).collect();
    match tag {
        // UTF-8, printable, IA5
        0x0c | 0x13 | 0x16 => Some(String::from_utf8_lossy(value).into_owned()),
        // T61, general
        0x14 | 0x1b => Some(latin()),
        // UTF-16
        0x1e => {
            let units: Vec<_> = value
                .chunks_exact(2)
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
                .collect();
            Some(String::from_utf16_lossy(&units))
        }
        _ => None,
    }
}

/// Puts a backslash before characters with a meaning in names, and before blanks at the ends.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    let is_blank = |c| c == ' ' || c == '\r';
    let start = text.len() - text.trim_start_matches(is_blank).len();
    let end = text.trim_end_matches(is_blank).len();
    for (at, c) in text.char_indices() {
        if c == '\0' {
            out.push_str("\\00");
            continue;
        }
        if at < start || at >= end || ",=+<>#;\"\\".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Formats an object identifier as numbers with dots.
fn numbers(encoding: &[u8]) -> Option<String> {
    let mut out = String::new();
    let mut number: u128 = 0;
    for byte in encoding {
        number = number.checked_mul(128)? + u128::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        if out.is_empty() {
            let first = (number / 40).min(2);
            write!(out, "{first}.{}", number - 40 * first).ok()?;
        } else {
            write!(out, ".{number}").ok()?;
        }
        number = 0;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    /// `docs/zookeeper-protocol.md` section 9.12: encodings and texts of Java's `X500Principal`.
    #[test]
    fn subject_is_what_java_prints() {
        for (encoding, text) in [
            ("3000", ""),
            ("3011310f300d06035504031306636c69656e74", "CN=client"),
            (
                "304b310b300906035504061302444531133011060355040a130a41636d652c20496e632e3119300a06035504\
                 0b1303646576300b0603550407130468657265310c300a06035504031303626f62",
                "CN=bob,OU=dev+L=here,O=Acme\\, Inc.,C=DE",
            ),
            (
                "3020310a300806035504031301783112301006092a864886f70d0109011603614062",
                "1.2.840.113549.1.9.1=#1603614062,CN=x",
            ),
            ("300e310c300a06035504031303206120", "CN=\\ a\\ "),
            ("3010310e300c06035504030c05613d622363", "CN=a\\=b\\#c"),
            (
                "303531133011060a0992268993f22c64011916036f72673111300f060a0992268993f22c6401191601783\
                 10b300906035504030c02c3a9",
                "CN=é,DC=x,DC=org",
            ),
            (
                "3044310c300a0605883787c44013017a310a30080603550408130174310a300806035504091301733111300f\
                 060a0992268993f22c6401011301753109300706022a03130134",
                "1.2.3=#130134,UID=u,STREET=s,ST=t,2.999.123456=#13017a",
            ),
        ] {
            let byte = |at| u8::from_str_radix(&encoding[at..at + 2], 16).unwrap();
            let bytes: Vec<_> = (0..encoding.len()).step_by(2).map(byte).collect();
            assert_eq!(super::rfc2253(&bytes[2..]).as_deref(), Some(text));
            for end in 3..bytes.len() {
                // A truncated encoding is invalid, or a shorter name.
                assert_ne!(super::rfc2253(&bytes[2..end]).as_deref(), Some(text));
            }
        }
    }
}
