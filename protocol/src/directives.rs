//! The `key=value, key="value"` lists of DIGEST-MD5, which both sides of a SASL exchange send.
//!
//! Source: OpenJDK's `DigestMD5Base.parseDirectives`, which ZooKeeper uses, and which is more lenient
//! than RFC 2831.

/// A key and its value, without quotes and escapes.
pub type Directive<'a> = (&'a [u8], Vec<u8>);

/// Parses a list. Nothing follows a fault. Only the length of the list bounds the memory, so the
/// caller must limit that.
///
/// # Examples
/// ```
/// let list = minikeeper_protocol::directives::parse(br#"realm="a \"b\"",charset=utf-8"#);
/// let list: Vec<_> = list.collect::<Result<_, _>>()?;
/// assert_eq!(list[0], (&b"realm"[..], br#"a "b""#.to_vec()));
/// assert_eq!(list[1], (&b"charset"[..], b"utf-8".to_vec()));
/// # Ok::<(), &str>(())
/// ```
pub fn parse(list: &[u8]) -> impl Iterator<Item = Result<Directive<'_>, &'static str>> {
    let mut rest = list;
    std::iter::from_fn(move || {
        rest = skip_separators(rest);
        if rest.is_empty() {
            return None;
        }
        let taken = Taken::from(rest);
        rest = taken.as_ref().map_or(b"", |taken| taken.rest);
        Some(taken.map(|taken| (taken.key, taken.value)))
    })
}

/// One directive and what follows it.
struct Taken<'a> {
    key: &'a [u8],
    value: Vec<u8>,
    rest: &'a [u8],
}

impl<'a> Taken<'a> {
    /// Splits the first directive off a list.
    fn from(list: &'a [u8]) -> Result<Self, &'static str> {
        let ends_key = |byte: &u8| matches!(byte, b',' | b'=') || is_lws(*byte);
        let Some(end) = list.iter().position(ends_key) else {
            // The last key needs no value.
            return Ok(Self {
                key: list,
                value: Vec::new(),
                rest: b"",
            });
        };
        let (key, rest) = list.split_at(end);
        if rest[0] == b',' {
            return Err("a comma inside a key");
        }
        if key.is_empty() {
            return Err("a value without a key");
        }
        let rest = skip_lws(rest);
        let Some(rest) = rest.strip_prefix(b"=") else {
            return Err("no '=' after a key");
        };
        let rest = skip_lws(rest);
        let ends_value = |byte: &u8| *byte == b',' || is_lws(*byte);
        let (value, rest) = match rest.split_first() {
            None => return Err("nothing after '='"),
            Some((b'"', quoted)) => {
                let (value, rest) = unquote(quoted)?;
                if rest.first().is_some_and(|byte| !ends_value(byte)) {
                    return Err("no comma after a quoted value");
                }
                (value, rest)
            }
            Some(_) => {
                let end = rest.iter().position(ends_value).unwrap_or(rest.len());
                (rest[..end].to_vec(), &rest[end..])
            }
        };
        // Skips one separator and the white space after it; a comma after white space is left, and
        // skipped as an empty element.
        let rest = skip_lws(rest.get(1..).unwrap_or_default());
        Ok(Self { key, value, rest })
    }
}

/// Splits a text into the unescaped value before the closing quote, and the rest after it.
fn unquote(text: &[u8]) -> Result<(Vec<u8>, &[u8]), &'static str> {
    let mut value = Vec::new();
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => return Ok((value, rest)),
            b'\\' => {
                let (&escaped, after) = rest.split_first().ok_or("an escape at the end")?;
                value.push(escaped);
                rest = after;
            }
            _ => value.push(byte),
        }
    }
    Err("a quoted value without its closing quote")
}

/// Returns whether a byte is linear white space.
const fn is_lws(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n' | b' ' | b'\t')
}

fn skip_lws(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_lws(*byte));
    &text[start.unwrap_or(text.len())..]
}

fn skip_separators(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_lws(*byte) && *byte != b',');
    &text[start.unwrap_or(text.len())..]
}
