//! X.500 names: which ids of `x509` entries are valid.
//!
//! Source: `docs/zookeeper-protocol.md` section 9.5; ZooKeeper uses Java's `X500Principal`.

/// Java's keywords for attribute types, compared without regard to case.
const KEYWORDS: [&str; 21] = [
    "c",
    "cn",
    "dc",
    "dnq",
    "dnqualifier",
    "email",
    "emailaddress",
    "generation",
    "givenname",
    "initials",
    "ip",
    "l",
    "o",
    "ou",
    "s",
    "serialnumber",
    "st",
    "street",
    "surname",
    "t",
    "uid",
];

/// Returns whether Java parses it as a name: pairs of a type and a value, separated by `,`, `;` or
/// `+`. The empty text is a name too.
pub(crate) fn is_name(text: &str) -> bool {
    text.is_empty() || pairs(text).into_iter().all(is_pair)
}

/// Splits a name at the separators that are neither quoted nor escaped.
fn pairs(text: &str) -> Vec<&str> {
    let (mut pairs, mut start) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' | ';' | '+' if !is_quoted => {
                pairs.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    pairs.push(&text[start..]);
    pairs
}

fn is_pair(pair: &str) -> bool {
    pair.split_once('=')
        .is_some_and(|(kind, value)| is_kind(kind.trim()) && is_value(value.trim_start()))
}

fn is_kind(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    if KEYWORDS.contains(&kind.as_str()) {
        return true;
    }
    let numbers: Vec<_> = kind
        .strip_prefix("oid.")
        .unwrap_or(&kind)
        .split('.')
        .collect();
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let [first, second, ..] = numbers[..] else {
        return false;
    };
    let is_in_range = match first.trim_start_matches('0') {
        "" | "1" => second.parse::<u8>().is_ok_and(|second| second < 40),
        "2" => true,
        _ => false,
    };
    numbers.iter().all(is_number) && is_in_range
}

fn is_value(value: &str) -> bool {
    if let Some(digits) = value.strip_prefix('#') {
        return is_encoding(digits);
    }
    match value.strip_prefix('"') {
        Some(quoted) => is_text(quoted, true),
        None => is_text(value, false),
    }
}

/// Returns whether a value has no unescaped special character and no invalid escape; if quoted,
/// also whether only blanks follow the closing quote.
fn is_text(text: &str, is_quoted: bool) -> bool {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted => return chars.as_str().trim().is_empty(),
            '\\' => match chars.next() {
                Some(first) if first.is_ascii_hexdigit() => {
                    if !chars
                        .next()
                        .is_some_and(|second| second.is_ascii_hexdigit())
                    {
                        return false;
                    }
                }
                Some(',' | '+' | '<' | '>' | ';' | '"' | '\\' | '#' | '=') => {}
                Some(' ') if !is_quoted => {}
                _ => return false,
            },
            '<' | '>' | '"' if !is_quoted => return false,
            _ => {}
        }
    }
    !is_quoted
}

/// Returns whether these are the hexadecimal digits of a tag, a length, and that many bytes.
fn is_encoding(digits: &str) -> bool {
    let byte = |pair: &[u8]| {
        let text = core::str::from_utf8(pair)
            .ok()
            .filter(|text| text.len() == 2)?;
        let is_digits = text.bytes().all(|b| b.is_ascii_hexdigit());
        u8::from_str_radix(text, 16).ok().filter(|_| is_digits)
    };
    let Some(bytes) = digits
        .as_bytes()
        .chunks(2)
        .map(byte)
        .collect::<Option<Vec<_>>>()
    else {
        return false;
    };
    let (length, rest) = match bytes.get(1..) {
        Some([short @ 0..=0x7f, rest @ ..]) => (usize::from(*short), rest),
        Some([0x81, length, rest @ ..]) => (usize::from(*length), rest),
        Some([0x82, high, low, rest @ ..]) => {
            (usize::from(u16::from_be_bytes([*high, *low])), rest)
        }
        _ => return false,
    };
    rest.len() == length
}

#[cfg(test)]
mod tests {
    use super::is_name;

    /// `docs/zookeeper-protocol.md` section 9.5; compared with Java's `X500Principal`.
    #[test]
    fn names_are_valid_if_java_accepts_them() {
        for name in [
            "",
            "CN=bob",
            "cn=bob",
            "CN = bob , O=x",
            "CN=a+OU=b",
            "CN=a;O=b",
            "CN=",
            "CN=,O=b",
            "1.2.3=4",
            "OID.1.2.3=4",
            "CN=#0c0161",
            "CN=\"a,b\"",
            "CN=a\\,b",
            "CN=a\\41",
            "CN=a=b",
            "CN=a#b",
            "CN=é",
            "EMAILADDRESS=a@b",
            "T=x",
            "UID=1",
            "DC=x",
            "S=x",
            "DNQ=1",
            "IP=1",
            "CN=\"a\" ,O=b",
            "CN=a O=b",
            "CN=a\nb",
            " CN=a",
            "2.999=1",
            "01.2=1",
            "CN=a\\ b",
            "CN=\"a\\#b\"",
            "CN=\"\"",
        ] {
            assert!(is_name(name), "{name:?}");
        }
        for name in [
            "bob",
            "=",
            "CN",
            "CN=a,",
            "CN=a,,O=b",
            ",CN=a",
            "X=1",
            "1.2.3=#0401",
            "1.2.3=#04",
            "1.2.3=#zz",
            "CN=\"a",
            "CN=a\\",
            "CN=a\\zz",
            "CN=a<b",
            "CN=a\"b",
            "E=a",
            "1=2",
            "9.9=1",
            "  ",
            "CN=\"a\"b",
            "CN=a++O=b",
            "CN=a+",
            "+CN=a",
            "CN=#",
            "TITLE=x",
            "3.1=1",
            "1.40=1",
            "-1.2=3",
            "CN=a\\xb",
            "CN=\"a\\ b\"",
            "CN=#0C0161 ",
            "CN=a\\4",
        ] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
