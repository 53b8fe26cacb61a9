//! Parses the `key=value, key="value"` lists of DIGEST-MD5 as leniently as OpenJDK does.
//!
//! Source: OpenJDK's `DigestMD5Base.parseDirectives`, which ZooKeeper uses.

use crate::auth::java_text::{decode_utf8, eq_ignore_case};

/// The directives that a response may have; all others are skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DirectiveKey {
    Username,
    Realm,
    Nonce,
    Cnonce,
    NonceCount,
    Qop,
    DigestUri,
    Response,
    Maxbuf,
    Charset,
    Authzid,
}

/// In the order of [`DirectiveKey`]. The last two are not used, but must not occur twice either.
const NAMES: [&str; 13] = [
    "username",
    "realm",
    "nonce",
    "cnonce",
    "nonce-count",
    "qop",
    "digest-uri",
    "response",
    "maxbuf",
    "charset",
    "authzid",
    "cipher",
    "auth-param",
];

/// The values of one list, by [`DirectiveKey`].
#[derive(Debug, Default)]
pub(crate) struct Directives([Option<Vec<u8>>; NAMES.len()]);

impl Directives {
    pub(crate) fn get(&self, key: DirectiveKey) -> Option<&[u8]> {
        self.0[key as usize].as_deref()
    }

    /// Parses a list. Only its length bounds the memory, so the caller must limit that.
    ///
    /// # Errors
    /// The fault of the list.
    pub(crate) fn parse(list: &[u8]) -> Result<Self, &'static str> {
        let mut directives = Self::default();
        let mut rest = skip_lws(list);
        while let Some((&byte, after)) = rest.split_first() {
            if byte == b',' {
                rest = skip_lws(after);
                continue;
            }
            let directive = Directive::take(rest)?;
            directives.add(directive.key, directive.value)?;
            rest = directive.rest;
        }
        Ok(directives)
    }

    fn add(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), &'static str> {
        let key = decode_utf8(key);
        let Some(index) = NAMES.iter().position(|name| eq_ignore_case(&key, name)) else {
            return Ok(());
        };
        match self.0[index].replace(value) {
            None => Ok(()),
            Some(_) => Err("duplicate directive"),
        }
    }
}

/// One directive and what follows it.
struct Directive<'a> {
    key: &'a [u8],
    value: Vec<u8>,
    rest: &'a [u8],
}

impl<'a> Directive<'a> {
    /// Splits the first directive off a list.
    fn take(list: &'a [u8]) -> Result<Self, &'static str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn user_and_realm(list: &[u8]) -> Result<(Option<String>, Option<String>), &'static str> {
        let directives = Directives::parse(list)?;
        let text = |key| {
            directives
                .get(key)
                .map(|value| decode_utf8(value).into_owned())
        };
        Ok((text(DirectiveKey::Username), text(DirectiveKey::Realm)))
    }

    /// OpenJDK's parser gave the same results.
    #[test]
    fn lists_are_parsed_as_leniently_as_in_zookeeper() {
        for (list, user, realm) in [
            (&b""[..], None, None),
            (b" ,, \t,", None, None),
            (b"username=bob,realm=\"r\"", Some("bob"), Some("r")),
            (b"USERNAME = bob realm=r", Some("bob"), Some("r")),
            (
                b"username=\"b\\ob\\\"\" , realm=r,",
                Some("bob\""),
                Some("r"),
            ),
            (b"realm=r,username", Some(""), Some("r")),
            (b"username=,realm=r", Some(""), Some("r")),
            (b"username=a=b", Some("a=b"), None),
            (b"username=a\"b", Some("a\"b"), None),
            (b"other=1,other=2,username=bob", Some("bob"), None),
        ] {
            let (user, realm) = (user.map(str::to_owned), realm.map(str::to_owned));
            assert_eq!(
                user_and_realm(list),
                Ok((user, realm)),
                "{}",
                list.escape_ascii()
            );
        }
    }

    #[test]
    fn lists_that_zookeeper_refuses_are_refused() {
        for list in [
            &b"username,realm=r"[..],
            b"=r",
            b"username realm=r",
            b"username ",
            b"username=",
            b"username= ",
            b"username=\"bob",
            b"username=\"bob\\",
            b"username=\"bob\"x",
            b"username=bob,Username=bob",
            b"cipher=1,cipher=2",
        ] {
            assert!(Directives::parse(list).is_err(), "{}", list.escape_ascii());
        }
    }
}
