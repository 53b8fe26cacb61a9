//! The scheme `digest`: a user name and the hash of name and password.
//!
//! Source: `docs/zookeeper-protocol.md` section 9.7.

use core::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha1::{Digest, Sha1};

use crate::auth::java_text::decode_utf8;

macro_rules! algorithms {
    ($($(#[cfg($cfg:meta)])? $name:ident($hash:ty): $($java_name:literal),+;)*) => {
        /// The hash algorithm of `digest` identities: one of Java 17's, except MD2. All but SHA-1
        /// need the feature `digest-algorithms`.
        ///
        /// It parses from the names that Java accepts, in upper or lower case: `SHA-256`, `SHA256`,
        /// `SHA-512/224`, `SHA3-256`; for SHA-1 also `SHA`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[expect(missing_docs, reason = "each variant is named after its algorithm")]
        #[non_exhaustive]
        pub enum DigestAlgorithm {
            $($(#[cfg($cfg)])? $name,)*
        }

        impl DigestAlgorithm {
            /// Each algorithm with Java's names for it, the standard one first.
            const NAMES: &[(Self, &[&str])] = &[
                $($(#[cfg($cfg)])? (Self::$name, &[$($java_name),+]),)*
            ];

            /// Returns Java's standard name for it.
            #[must_use]
            pub fn name(self) -> &'static str {
                let mut names = Self::NAMES.iter();
                let found = names.find(|(algorithm, _)| *algorithm == self);
                found.map_or("", |(_, names)| names[0])
            }

            /// Computes the hash, in Base64.
            fn hash(self, text: &str) -> String {
                match self {
                    $($(#[cfg($cfg)])? Self::$name => STANDARD.encode(<$hash>::digest(text)),)*
                }
            }
        }
    };
}

algorithms! {
    #[cfg(feature = "digest-algorithms")]
    Md5(md5::Md5): "MD5";
    Sha1(Sha1): "SHA-1", "SHA1", "SHA";
    #[cfg(feature = "digest-algorithms")]
    Sha224(sha2::Sha224): "SHA-224", "SHA224";
    #[cfg(feature = "digest-algorithms")]
    Sha256(sha2::Sha256): "SHA-256", "SHA256";
    #[cfg(feature = "digest-algorithms")]
    Sha384(sha2::Sha384): "SHA-384", "SHA384";
    #[cfg(feature = "digest-algorithms")]
    Sha512(sha2::Sha512): "SHA-512", "SHA512";
    #[cfg(feature = "digest-algorithms")]
    Sha512Of224(sha2::Sha512_224): "SHA-512/224", "SHA512/224";
    #[cfg(feature = "digest-algorithms")]
    Sha512Of256(sha2::Sha512_256): "SHA-512/256", "SHA512/256";
    #[cfg(feature = "digest-algorithms")]
    Sha3Of224(sha3::Sha3_224): "SHA3-224";
    #[cfg(feature = "digest-algorithms")]
    Sha3Of256(sha3::Sha3_256): "SHA3-256";
    #[cfg(feature = "digest-algorithms")]
    Sha3Of384(sha3::Sha3_384): "SHA3-384";
    #[cfg(feature = "digest-algorithms")]
    Sha3Of512(sha3::Sha3_512): "SHA3-512";
}

#[expect(clippy::derivable_impls, reason = "the rows take no attribute but cfg")]
impl Default for DigestAlgorithm {
    fn default() -> Self {
        Self::Sha1
    }
}

/// A name that no [`DigestAlgorithm`] has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownDigestAlgorithm(String);

impl core::error::Error for UnknownDigestAlgorithm {}

impl fmt::Display for UnknownDigestAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = DigestAlgorithm::NAMES
            .iter()
            .map(|(_, names)| names[0])
            .collect();
        let names = names.join(", ");
        write!(f, "unknown digest algorithm {:?}; one of {names}", self.0)
    }
}

impl FromStr for DigestAlgorithm {
    type Err = UnknownDigestAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownDigestAlgorithm> {
        let found = Self::NAMES.iter().find(|(_, names)| {
            let mut names = names.iter();
            names.any(|known| known.eq_ignore_ascii_case(name))
        });
        found
            .map(|(algorithm, _)| *algorithm)
            .ok_or_else(|| UnknownDigestAlgorithm(name.to_owned()))
    }
}

/// Computes the `digest` identity for the data of an auth request: the user before the first colon,
/// and the hash of all the data.
///
/// Never fails: data without a colon is a user without a password.
///
/// Source: `docs/zookeeper-protocol.md` section 9.7, ZooKeeper's `DigestAuthenticationProvider`.
pub(crate) fn digest_identity(data: &[u8], algorithm: DigestAlgorithm) -> String {
    let text = decode_utf8(data);
    let user = text.split(':').next().unwrap_or_default();
    format!("{user}:{}", algorithm.hash(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/zookeeper-protocol.md` section 9.7; a live 3.9.5 gave the same identities.
    #[test]
    fn digest_identity_is_user_and_hash_of_all() {
        for (data, identity) in [
            (&b"bob:pw"[..], "bob:ikIaKsbtGweaHnb/jKn7OHqbunM="),
            (b"", ":2jmj7l5rSw0yVb/vlWAYkK/YBwk="),
            (b"bob", "bob:SBgazSKz7a68ikR4aKfffOYpkgo="),
            (b":", ":BaefBs8/Z/cm2uaNGKIpD2yaUMk="),
            (b"bob:", "bob:tK1fpNO1hB0F++FhHpSq0Fa4tv0="),
            (b"a:b:c", "a:cLzgnoJ6mP5qz3w+mwvPE2vDgu0="),
            (b"\xed\xa0\x80:x", "\u{fffd}:MRJvuUNgOr/X35TrsstivNIZKtg="),
            (
                b"b\xffb:\xe2\x82",
                "b\u{fffd}b:qaIJYgNRp4OPv48Etcdw00FfheA=",
            ),
        ] {
            assert_eq!(digest_identity(data, DigestAlgorithm::Sha1), identity);
        }
    }

    /// The hashes that ZooKeeper's AuthSHA2Test and AuthSHA3Test expect for SHA-256 and SHA3-256,
    /// and that OpenJDK 17 computes for the others.
    #[test]
    fn digest_identity_has_the_hash_of_the_configured_algorithm() {
        for (name, identity) in [
            ("MD5", "super:yzhcGieXAe2NBWh0Znxa3g=="),
            ("SHA1", "super:D/InIHSb7yEEbrWz8b9l71RjZJU="),
            ("SHA-224", "super:opwh3FU/0WUpM+8JAOS98bsQFC+823kv438mIg=="),
            (
                "SHA-256",
                "super:wjySwxg860UATFtciuZ1lpzrCHrPeov6SPu/ZD56uig=",
            ),
            (
                "SHA-384",
                "super:FA/2SgoedA21NnGcUl5C1HBsMwuibAPXlAq/FqXTuUQPExUJgxpf8gWeD4eOupjP",
            ),
            (
                "SHA-512",
                "super:cMAGk13FCMtJkaVQImGEKhjqoGELCiVjYdIhiD8stB1FnIpdGeFvKwAHh5mf4tUYmBR2ZY9181dZ\
                 TXEHMlkVhg==",
            ),
            (
                "SHA-512/224",
                "super:Jbob8j2c9tikAuLuqxcIJr3TG4aS6fcELZsiHw==",
            ),
            (
                "SHA-512/256",
                "super:GV6U44a5U7SXgFZS9GkWgmwq2+im64wGlYXjCHia3mo=",
            ),
            ("SHA3-224", "super:774X6Nz1d3BUO6raVFndfjoMF6e1LHrnHVv5IA=="),
            (
                "SHA3-256",
                "super:cRy/KPYuDpW/dtsepniTMpuiuupnWgdU9txltIfv3hA=",
            ),
            (
                "SHA3-384",
                "super:a3efqz9Fj+qRHgJMpOPAzqpMP86/aPKowwZfSsm/gM+qBf87ZmeQYtueLs53P8Rw",
            ),
            (
                "SHA3-512",
                "super:AdTSPtJYC1bEo1Z0UG5z1VXkw2AEUReEjF0RV0jap6VKcDva8ZPEO/WxrOy888alfiJyM5cm5BKh\
                 rI4X/YFcTg==",
            ),
        ] {
            let algorithm = name.parse().unwrap();
            assert_eq!(
                digest_identity(b"super:test", algorithm),
                identity,
                "{name}"
            );
        }
        for (name, data, identity) in [
            (
                "sha256",
                &b"super:zookeeper"[..],
                "super:Ie58Fw6KA4ucTEDj23imIltKrXNDxQg8Rwtu0biQFcU=",
            ),
            (
                "sha3-256",
                b"super:zookeeper",
                "super:gM3M1QcrKC6b+h4oZ5Ixc4GTVaAsggI+AqkUaF6E1Is=",
            ),
            ("sha", b"super:foo", "super:t6lQTvqID/Gl5Or0n4FYE6kKP8w="),
        ] {
            let algorithm = name.parse().unwrap();
            assert_eq!(digest_identity(data, algorithm), identity, "{name}");
        }
    }

    /// Names as OpenJDK 17 accepts them, except MD2.
    #[test]
    fn digest_algorithm_parses_from_javas_names() {
        for name in ["SHA", "SHA-1", "Sha1"] {
            assert_eq!(name.parse(), Ok(DigestAlgorithm::Sha1), "{name}");
        }
        for name in [
            "", "MD2", "SHA3256", "SHA3_256", "SHAKE128", " SHA1", "SHA-2",
        ] {
            let error = name.parse::<DigestAlgorithm>().unwrap_err().to_string();
            assert!(error.starts_with("unknown digest algorithm \""), "{error}");
            assert!(error.ends_with("SHA3-384, SHA3-512"), "{error}");
        }
    }
}
