//! Sorts the directives of a client's response as leniently as OpenJDK does.
//!
//! Source: OpenJDK's `DigestMD5Base.parseDirectives`, which ZooKeeper uses.

use minikeeper_protocol::directives;

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
        for directive in directives::parse(list) {
            let (key, value) = directive?;
            directives.add(key, value)?;
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
