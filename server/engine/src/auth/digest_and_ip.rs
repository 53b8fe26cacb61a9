//! Who a connection is: the identities of the `digest` and `ip` schemes.

// Addresses alone: what does I/O with them is in `std::net`.
use core::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use md5::Md5;
use sha1::{Digest, Sha1};
use sha2::{Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};

use crate::auth::java_text::{decode_utf8, parse_int};

/// The hash of a `digest` identity: those that Java 17 knows, but MD2.
///
/// It is read from the names that Java takes, in upper or lower case: `SHA-256`, `SHA256`,
/// `SHA-512/224`, `SHA3-256`; for SHA-1 `SHA` too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[expect(missing_docs, reason = "each is named by its algorithm")]
pub enum DigestAlgorithm {
    Md5,
    #[default]
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Sha512Of224,
    Sha512Of256,
    Sha3Of224,
    Sha3Of256,
    Sha3Of384,
    Sha3Of512,
}

impl DigestAlgorithm {
    /// Each with the names that Java has for it, the standard one first.
    const NAMES: [(Self, &[&str]); 12] = [
        (Self::Md5, &["MD5"]),
        (Self::Sha1, &["SHA-1", "SHA1", "SHA"]),
        (Self::Sha224, &["SHA-224", "SHA224"]),
        (Self::Sha256, &["SHA-256", "SHA256"]),
        (Self::Sha384, &["SHA-384", "SHA384"]),
        (Self::Sha512, &["SHA-512", "SHA512"]),
        (Self::Sha512Of224, &["SHA-512/224", "SHA512/224"]),
        (Self::Sha512Of256, &["SHA-512/256", "SHA512/256"]),
        (Self::Sha3Of224, &["SHA3-224"]),
        (Self::Sha3Of256, &["SHA3-256"]),
        (Self::Sha3Of384, &["SHA3-384"]),
        (Self::Sha3Of512, &["SHA3-512"]),
    ];

    /// The hash, in Base64.
    fn hash(self, text: &str) -> String {
        fn encoded<D: Digest>(text: &str) -> String {
            STANDARD.encode(D::digest(text.as_bytes()))
        }
        match self {
            Self::Md5 => encoded::<Md5>(text),
            Self::Sha1 => encoded::<Sha1>(text),
            Self::Sha224 => encoded::<Sha224>(text),
            Self::Sha256 => encoded::<Sha256>(text),
            Self::Sha384 => encoded::<Sha384>(text),
            Self::Sha512 => encoded::<Sha512>(text),
            Self::Sha512Of224 => encoded::<Sha512_224>(text),
            Self::Sha512Of256 => encoded::<Sha512_256>(text),
            Self::Sha3Of224 => encoded::<Sha3_224>(text),
            Self::Sha3Of256 => encoded::<Sha3_256>(text),
            Self::Sha3Of384 => encoded::<Sha3_384>(text),
            Self::Sha3Of512 => encoded::<Sha3_512>(text),
        }
    }
}

/// A name that is none of a [`DigestAlgorithm`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownDigestAlgorithm(String);

impl core::error::Error for UnknownDigestAlgorithm {}

impl fmt::Display for UnknownDigestAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = DigestAlgorithm::NAMES.map(|(_, names)| names[0]).join(", ");
        write!(
            f,
            "digest algorithm {:?} is unknown; there are {names}",
            self.0
        )
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

/// Whether data for the `ensemble` scheme names one of these ensembles. Who names none, or asks a
/// server that was told none, is not checked.
///
/// Source: the original's `EnsembleAuthenticationProvider`.
pub(crate) fn is_of_ensemble(names: &[String], data: &[u8]) -> bool {
    data.is_empty() || names.is_empty() || names.iter().any(|name| *name == decode_utf8(data))
}

/// Whether data for the `key` scheme is a multiple of the key, both being numbers in text.
///
/// Source: the original's sample `KeyAuthenticationProvider`.
pub(crate) fn is_multiple_of_key(key: &[u8], data: &[u8]) -> bool {
    let (key, data) = (decode_utf8(key), decode_utf8(data));
    let (Some(key), Some(data)) = (parse_int(&key, 10), parse_int(&data, 10)) else {
        return false;
    };
    key == 0 || data.wrapping_rem(key) == 0
}

/// The `digest` identity that an auth request's data stands for: the user in front of the first
/// colon, and the hash of all of it.
///
/// There is none for which it fails: data without a colon is a user without a password.
///
/// Source: `docs/zookeeper-protocol.md` section 9.7, the original's `DigestAuthenticationProvider`.
pub(crate) fn digest_identity(data: &[u8], algorithm: DigestAlgorithm) -> String {
    let text = decode_utf8(data);
    let user = text.split(':').next().unwrap_or_default();
    format!("{user}:{}", algorithm.hash(&text))
}

/// The `ip` identity of a connection from there: the address as Java prints it. IPv6 has all its
/// eight groups; an IPv4 address mapped into IPv6 is an IPv4 address.
pub(crate) fn ip_identity(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let groups = address.segments().map(|group| format!("{group:x}"));
            groups.join(":")
        }
    }
}

/// Whether this is an `ip` entry's id that makes sense: an address, and perhaps the number of bits
/// that count.
///
/// Source: `docs/zookeeper-protocol.md` section 9.6, the original's
/// `IPAuthenticationProvider.isValid`; every case of the tests has been put to a live server.
pub(crate) fn is_ip_id(id: &str) -> bool {
    parse_ip_id(id).is_some()
}

/// Whether a connection from there is meant by an `ip` entry with this id.
///
/// Source: `docs/zookeeper-protocol.md` section 9.6, the original's
/// `IPAuthenticationProvider.matches`.
pub(crate) fn ip_matches(id: &str, address: IpAddr) -> bool {
    let Some((wanted, bits)) = parse_ip_id(id) else {
        return false;
    };
    match (wanted, address.to_canonical()) {
        (IpAddr::V4(wanted), IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or_default();
            wanted.to_bits() & mask == address.to_bits() & mask
        }
        (IpAddr::V6(wanted), IpAddr::V6(address)) => {
            // Java prints a link-local address with its zone, which the original's parser of
            // addresses does not understand: no entry matches it.
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or_default();
            !address.is_unicast_link_local() && wanted.to_bits() & mask == address.to_bits() & mask
        }
        _ => false,
    }
}

/// The address of an id and how many of its leading bits count.
fn parse_ip_id(id: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = match id.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (id, None),
    };
    let (address, bits_max) = if address.contains(':') {
        (IpAddr::V6(parse_ipv6(address)?), 128)
    } else {
        (IpAddr::V4(parse_ipv4(address)?.into()), 32)
    };
    let bits = match bits {
        Some(bits) => u32::try_from(parse_int(bits, 10)?).ok()?,
        None => bits_max,
    };
    (bits <= bits_max).then_some((address, bits))
}

/// Four numbers; more lenient than the standard library in what a number is (`+1`, `01`).
fn parse_ipv4(text: &str) -> Option<[u8; 4]> {
    let mut parts = text.split('.');
    let mut octets = [0; 4];
    for octet in &mut octets {
        *octet = u8::try_from(parse_int(parts.next()?, 10)?).ok()?;
    }
    parts.next().is_none().then_some(octets)
}

/// Eight groups, or fewer around one `::`, which stands for at least one group. No IPv4 notation
/// in the last groups, no zone; but a group may have a sign.
fn parse_ipv6(text: &str) -> Option<Ipv6Addr> {
    let mut parts = text.split("::");
    let (front, back) = (parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    let front = parse_groups(front, back.is_some())?;
    let groups = match back {
        None if front.len() == 8 => front,
        None => return None,
        Some(back) => {
            let back = parse_groups(back, true)?;
            // `::` stands for one group at least.
            let zeros = 7_usize.checked_sub(front.len() + back.len())? + 1;
            [front, vec![0; zeros], back].concat()
        }
    };
    <[u16; 8]>::try_from(groups).ok().map(Ipv6Addr::from)
}

fn parse_groups(text: &str, may_be_empty: bool) -> Option<Vec<u16>> {
    if text.is_empty() && may_be_empty {
        return Some(Vec::new());
    }
    let group = |text: &str| {
        let is_short = text.encode_utf16().count() <= 4;
        let value = parse_int(text, 16).filter(|_| is_short)?;
        // Up to four characters, so it fits; of a negative number the low bits are taken.
        u16::try_from(value & 0xffff).ok()
    };
    // More groups than an address has need not be looked at.
    text.split(':').take(9).map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/zookeeper-protocol.md` section 9.7; all have been put to a live 3.9.5.
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

    /// What ZooKeeper's AuthSHA2Test and AuthSHA3Test expect of SHA-256 and SHA3-256, and what
    /// OpenJDK 17 gives for the others.
    #[test]
    fn digest_identity_has_the_hash_that_is_asked_for() {
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

    /// Names as OpenJDK 17 takes them; MD2 is the one that is left out.
    #[test]
    fn digest_algorithm_is_read_as_java_reads_it() {
        for name in ["SHA", "SHA-1", "Sha1"] {
            assert_eq!(name.parse(), Ok(DigestAlgorithm::Sha1), "{name}");
        }
        for name in [
            "", "MD2", "SHA3256", "SHA3_256", "SHAKE128", " SHA1", "SHA-2",
        ] {
            let error = name.parse::<DigestAlgorithm>().unwrap_err().to_string();
            assert!(error.starts_with("digest algorithm \""), "{error}");
            assert!(error.ends_with("SHA3-384, SHA3-512"), "{error}");
        }
    }

    /// The cases of ZooKeeper's KeyAuthClientTest, and what Java's `parseInt` and `%` make of others.
    #[test]
    fn key_is_met_by_its_multiples() {
        for (key, data, is_met) in [
            ("5", "25", true),
            ("5", "125", true),
            ("5", "26", false),
            ("5", "0", true),
            ("5", "-10", true),
            ("-1", "-2147483648", true),
            ("0", "7", true),
            ("5", "", false),
            ("", "5", false),
            ("five", "5", false),
            ("5", " 5", false),
            ("5", "2147483650", false),
        ] {
            let is = is_multiple_of_key(key.as_bytes(), data.as_bytes());
            assert_eq!(is, is_met, "{key:?} and {data:?}");
        }
    }

    #[test]
    fn ip_identity_is_what_java_prints() {
        for (address, text) in [
            ("127.0.0.1", "127.0.0.1"),
            ("::ffff:127.0.0.1", "127.0.0.1"),
            ("::1", "0:0:0:0:0:0:0:1"),
            ("2001:DB8::a:0", "2001:db8:0:0:0:0:a:0"),
        ] {
            assert_eq!(ip_identity(address.parse().unwrap()), text);
        }
    }

    /// Each of these has been put to a live 3.9.5 with setACL.
    #[test]
    fn ip_ids_are_valid_as_a_live_server_finds_them() {
        let valid = [
            "127.0.0.1",
            "127.0.0.1/32",
            "127.0.0.1/0",
            "127.0.0.1/-0",
            "127.1.2.3/8",
            "127.0.0.1/08",
            "127.0.0.1/+8",
            "127.0.0.1/00000000000000032",
            "01.002.3.4",
            "+1.2.3.4",
            "-0.2.3.4",
            "::",
            "::/0",
            "::/128",
            "::1",
            "::1/128",
            "::1/64",
            "1::",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7:8/128",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1::3:4:5:6:7:8",
            "::ffff:102:304",
            "fe80::1",
            "::0001",
            "::+1",
            "::-1",
            "::-fff",
            "::ABCD",
            "::1/08",
            "\u{661}.\u{662}.\u{663}.\u{664}",
            "::\u{ff21}",
            "127.0.0.1/\u{968}\u{96a}",
        ];
        let invalid = [
            "127.0.0.1/33",
            "127.0.0.1/-1",
            "127.0.0.1/",
            "127.0.0.1/a",
            "127.0.0.1/8/8",
            "127.0.0.1/ 8",
            "127.0.0.1/4294967296",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.",
            ".1.2.3",
            "1..2.3",
            "-1.2.3.4",
            "256.1.1.1",
            "0x7f.0.0.1",
            " 1.2.3.4",
            "1.2.3.4 ",
            "1.2.3.a",
            "1",
            "",
            "/",
            "/8",
            "localhost",
            ".",
            "...",
            "::/129",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "1:2:3:4::5:6:7:8",
            "::1::",
            "1::2::3",
            ":::",
            "::::",
            ":::1",
            "1:::",
            ":",
            ":1",
            "1:",
            "1:2:3:4:5:6:7:",
            ":2:3:4:5:6:7:8",
            "::ffff:1.2.3.4",
            "::1.2",
            "fe80::1%lo",
            "fe80::1%1",
            "::12345",
            "::g",
            "::00001",
            "::-",
            "::+",
            "[::1]",
            "::1/",
            "::1/x",
            "::1/-1",
            "1.2.3.4:5",
            "::\u{1d7d8}",
            "::\u{ff47}",
        ];
        for id in valid {
            assert!(is_ip_id(id), "{id:?}");
        }
        for id in invalid {
            assert!(!is_ip_id(id), "{id:?}");
            assert!(!ip_matches(id, IpAddr::from([127, 0, 0, 1])), "{id:?}");
        }
    }

    /// `docs/zookeeper-protocol.md` section 9.6. Compared with `IPAuthenticationProvider.matches`
    /// of 3.9.5.
    #[test]
    fn ip_matches_in_the_bits_that_count() {
        for (id, address, matches) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("127.0.0.1", "::ffff:127.0.0.1", true),
            ("127.1.2.3/8", "127.9.9.9", true),
            ("127.1.2.3/8", "126.1.2.3", false),
            ("10.0.0.64/26", "10.0.0.127", true),
            ("10.0.0.64/26", "10.0.0.128", false),
            ("1.2.3.4/0", "9.9.9.9", true),
            ("1.2.3.4/32", "1.2.3.5", false),
            ("01.2.3.4", "1.2.3.4", true),
            ("::1", "::1", true),
            ("::1", "::2", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "127.0.0.1", false),
            ("0.0.0.0/0", "::1", false),
            ("::ffff:7f00:1", "127.0.0.1", false),
            ("2001:db8::/33", "2001:db8:7fff::1", true),
            ("2001:db8::/33", "2001:db8:8000::1", false),
            ("2001:db8::/128", "2001:db8::", true),
            ("::-1", "::ffff:0:0:ffff", false),
            ("::-1", "::ffff", true),
            ("fe80::1", "fe80::1", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(ip_matches(id, address), matches, "{id} and {address}");
        }
    }
}
