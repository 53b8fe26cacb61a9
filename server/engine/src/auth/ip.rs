//! The scheme `ip`: the address of the connection, and entries of access lists that match it.
//!
//! Source: `docs/zookeeper-protocol.md` section 9.6.

use core::net::{IpAddr, Ipv6Addr};

use crate::auth::java_text::parse_int;

/// Returns the `ip` identity of a connection from this address, as Java prints it: IPv6 with all
/// eight groups, and an IPv4 address mapped into IPv6 as IPv4.
pub(crate) fn ip_identity(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let groups = address.segments().map(|group| format!("{group:x}"));
            groups.join(":")
        }
    }
}

/// Returns whether this is a valid id of an `ip` entry: an address, and optionally the length of a
/// prefix.
///
/// Source: `docs/zookeeper-protocol.md` section 9.6, ZooKeeper's
/// `IPAuthenticationProvider.isValid`; every case of the tests was compared with a live server.
pub(crate) fn is_ip_id(id: &str) -> bool {
    parse_ip_id(id).is_some()
}

/// Returns whether an `ip` entry with this id matches a connection from this address.
///
/// Source: `docs/zookeeper-protocol.md` section 9.6, ZooKeeper's
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
            // Java prints a link-local address with its zone, which ZooKeeper's address parser
            // rejects: no entry matches it.
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or_default();
            !address.is_unicast_link_local() && wanted.to_bits() & mask == address.to_bits() & mask
        }
        _ => false,
    }
}

/// Parses an id into the address and the number of leading bits to compare.
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

/// Parses four numbers, in more forms than the standard library (`+1`, `01`).
fn parse_ipv4(text: &str) -> Option<[u8; 4]> {
    let mut parts = text.split('.');
    let mut octets = [0; 4];
    for octet in &mut octets {
        *octet = u8::try_from(parse_int(parts.next()?, 10)?).ok()?;
    }
    parts.next().is_none().then_some(octets)
}

/// Parses eight groups, or fewer around one `::`, which stands for at least one group. Accepts no
/// IPv4 notation in the last groups and no zone; but a group may have a sign.
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
            // `::` stands for at least one group.
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
        // Up to four characters, so it fits; a negative number becomes its low bits.
        u16::try_from(value & 0xffff).ok()
    };
    // More groups than an address has need not be parsed.
    text.split(':').take(9).map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// A live 3.9.5 accepted or refused each of these in a setACL.
    #[test]
    fn ip_ids_are_valid_if_a_live_server_accepts_them() {
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
    fn ip_matches_in_the_leading_bits() {
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
