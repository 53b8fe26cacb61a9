//! Formats what servers send, as zkCli prints it.

use std::{env, fmt::Write as _};

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use minikeeper_client::{Acl, AclList, Data, Perms, Stat};
use tz::{DateTime, TimeZone};

/// Formats a stat: one field a line, times in the local time zone.
pub(crate) fn stat(stat: &Stat) -> String {
    stat_in(stat, &local_zone())
}

/// Returns the time zone of `TZ`, else that of the system; UTC if it is unknown.
fn local_zone() -> TimeZone {
    let zone = match env::var("TZ") {
        Ok(name) if !name.is_empty() => TimeZone::from_posix_tz(&name),
        _ => TimeZone::local(),
    };
    zone.unwrap_or_else(|_| TimeZone::utc())
}

fn stat_in(stat: &Stat, zone: &TimeZone) -> String {
    format!(
        "cZxid = {:#x}\n\
         ctime = {}\n\
         mZxid = {:#x}\n\
         mtime = {}\n\
         pZxid = {:#x}\n\
         cversion = {}\n\
         dataVersion = {}\n\
         aclVersion = {}\n\
         ephemeralOwner = {:#x}\n\
         dataLength = {}\n\
         numChildren = {}",
        stat.czxid.0,
        date(stat.ctime_ms, zone),
        stat.mzxid.0,
        date(stat.mtime_ms, zone),
        stat.pzxid.0,
        stat.cversion,
        stat.version,
        stat.aversion,
        stat.ephemeral_owner.0,
        stat.data_length,
        stat.num_children,
    )
}

/// Formats a time as Java's `Date` does: `Thu Jan 01 00:00:00 UTC 1970`.
fn date(ms: i64, zone: &TimeZone) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let Ok(at) = DateTime::from_timespec(ms.div_euclid(1_000), 0, zone.as_ref()) else {
        // The year has more digits than an i32.
        return format!("{ms} ms");
    };
    let day = DAYS.get(usize::from(at.week_day())).unwrap_or(&"");
    let month = usize::from(at.month()).checked_sub(1);
    let month = month.and_then(|month| MONTHS.get(month)).unwrap_or(&"");
    // That of UTC has no name.
    let zone = match at.local_time_type().time_zone_designation() {
        "" => "UTC",
        name => name,
    };
    format!(
        "{day} {month} {:02} {:02}:{:02}:{:02} {zone} {:04}",
        at.month_day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.year(),
    )
}

/// Formats the data of a znode; null is the word.
pub(crate) fn text(data: &Data) -> String {
    match &data.data {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => "null".to_owned(),
    }
}

/// Formats an access list, two lines for each entry.
pub(crate) fn acl(acl: &AclList) -> String {
    let mut text = String::new();
    for Acl { perms, scheme, id } in acl.entries() {
        let part =
            |part: Option<_>| part.map_or_else(String::new, |part| quoted(&format!("{part}")));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{},{}\n: {}", part(scheme), part(id), letters(perms));
    }
    text
}

/// Quotes a text as Java prints the fields of a record.
fn quoted(text: &str) -> String {
    let mut out = "'".to_owned();
    for symbol in text.chars() {
        match symbol {
            '\0' | '\n' | '\r' | ',' | '}' | '%' => {
                let _ = write!(out, "%{:02X}", u32::from(symbol));
            }
            _ => out.push(symbol),
        }
    }
    out
}

const PERMISSIONS: [(char, Perms); 5] = [
    ('c', Perms::CREATE),
    ('d', Perms::DELETE),
    ('r', Perms::READ),
    ('w', Perms::WRITE),
    ('a', Perms::ADMIN),
];

fn letters(perms: Perms) -> String {
    let given = PERMISSIONS.iter().filter(|(_, one)| perms.0 & one.0 != 0);
    given.map(|(letter, _)| *letter).collect()
}

/// Reads an access list, `scheme:id:permissions` separated by commas. Calls `complain` for each entry
/// that it leaves out and each letter that it ignores.
pub(crate) fn parse_acl(text: &str, mut complain: impl FnMut(String)) -> AclList {
    let mut entries = Vec::new();
    let kept = text.trim_end_matches(',');
    let count = if kept.is_empty() && !text.is_empty() {
        0
    } else {
        usize::MAX
    };
    for entry in kept.split(',').take(count) {
        let parts = entry.split_once(':').and_then(|(scheme, rest)| {
            let (id, letters) = rest.rsplit_once(':')?;
            Some((scheme, id, letters))
        });
        let Some((scheme, id, letters)) = parts else {
            complain(format!("{entry} does not have the form scheme:id:perm"));
            continue;
        };
        let mut perms = Perms(0);
        for letter in letters.chars() {
            match PERMISSIONS.iter().find(|(known, _)| *known == letter) {
                Some((_, one)) => perms.0 |= one.0,
                None => complain(format!("Unknown perm type: {letter}")),
            }
        }
        entries.push(Acl {
            perms,
            scheme: Some(scheme.into()),
            id: Some(id.into()),
        });
    }
    AclList::new(&entries)
}

/// Formats bytes as 16 columns of hexadecimal numbers beside their characters. Empty for no bytes.
pub(crate) fn hex_dump(bytes: &[u8]) -> String {
    const RULE: &str = "+-------------------------------------------------+";
    if bytes.is_empty() {
        return String::new();
    }
    let mut text = format!("         {RULE}\n         |");
    for column in 0..16 {
        // Writing to a string cannot fail.
        let _ = write!(text, "{column:>3x}");
    }
    let _ = write!(text, " |\n+--------{RULE}----------------+");
    for (row, line) in bytes.chunks(16).enumerate() {
        let _ = write!(text, "\n|{:08x}|", row * 16);
        for column in 0..16 {
            match line.get(column) {
                Some(byte) => {
                    let _ = write!(text, " {byte:02x}");
                }
                None => text.push_str("   "),
            }
        }
        text.push_str(" |");
        for column in 0..16 {
            text.push(match line.get(column) {
                Some(byte) if (0x20..0x7f).contains(byte) => char::from(*byte),
                Some(_) => '.',
                None => ' ',
            });
        }
        text.push('|');
    }
    let _ = write!(text, "\n+--------{RULE}----------------+");
    text
}

/// Java's decoder takes Base64 with and without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(crate) fn base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Reads Base64.
///
/// # Errors
/// When it is not Base64.
pub(crate) fn parse_base64(text: &str) -> Result<Vec<u8>, String> {
    BASE64
        .decode(text)
        .map_err(|error| format!("{text:?} is not Base64: {error}"))
}

/// Returns the client addresses in a configuration: `version host:port,host:port`.
pub(crate) fn client_config(config: &str) -> String {
    let (mut version, mut addresses) = ("", Vec::new());
    for line in config.lines() {
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if key == "version" {
            version = value;
        } else if key.starts_with("server.")
            && let Some((server, client)) = value.split_once(';')
        {
            // The address may be left out: then it is that of the server.
            addresses.push(if client.contains(':') {
                client.to_owned()
            } else {
                let host = server.split(':').next().unwrap_or_default();
                format!("{host}:{client}")
            });
        }
    }
    format!("{version} {}", addresses.join(","))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use minikeeper_client::{SessionId, Zxid};

    use super::*;

    #[test]
    fn stat_is_printed_field_by_field() {
        let it = Stat {
            czxid: Zxid(2),
            mzxid: Zxid(0x1_0000_000a),
            ctime_ms: 0,
            mtime_ms: 1_709_210_096_789,
            version: 1,
            cversion: -1,
            aversion: 0,
            ephemeral_owner: SessionId(-1),
            data_length: 5,
            num_children: 0,
            pzxid: Zxid(2),
        };
        expect![[r#"
            cZxid = 0x2
            ctime = Thu Jan 01 00:00:00 UTC 1970
            mZxid = 0x10000000a
            mtime = Thu Feb 29 12:34:56 UTC 2024
            pZxid = 0x2
            cversion = -1
            dataVersion = 1
            aclVersion = 0
            ephemeralOwner = 0xffffffffffffffff
            dataLength = 5
            numChildren = 0"#]]
        .assert_eq(&stat_in(&it, &TimeZone::utc()));
        assert_eq!(
            date(i64::MAX, &TimeZone::utc()),
            "Sun Aug 17 07:12:55 UTC 292278994"
        );
        let berlin = TimeZone::from_posix_tz("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(date(-1, &berlin), "Thu Jan 01 00:59:59 CET 1970");
        let summer = date(1_720_000_000_000, &berlin);
        assert_eq!(summer, "Wed Jul 03 11:46:40 CEST 2024");
    }

    #[test]
    fn access_lists_are_read_and_printed() {
        let mut complaints = Vec::new();
        let list = parse_acl("world:anyone:r,digest:a:b=:cdx,none,ip:1:2", |text| {
            complaints.push(text);
        });
        let expected = [
            "Unknown perm type: x",
            "none does not have the form scheme:id:perm",
            "Unknown perm type: 2",
        ];
        assert_eq!(complaints, expected);
        assert_eq!(
            acl(&list),
            "'world,'anyone\n: r\n'digest,'a:b=\n: cd\n'ip,'1\n: \n"
        );
        assert_eq!(quoted("a,b%\n"), "'a%2Cb%25%0A");
    }

    #[test]
    fn hex_dump_has_16_columns() {
        expect![[r#"
                     +-------------------------------------------------+
                     |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |
            +--------+-------------------------------------------------+----------------+
            |00000000| 68 65 6c 6c 6f 00 1b 7f c3 a4 20 2e 2e 2e 2e 2e |hello..... .....|
            |00000010| 21                                              |!               |
            +--------+-------------------------------------------------+----------------+"#]]
        .assert_eq(&hex_dump("hello\0\u{1b}\u{7f}ä .....!".as_bytes()));
        assert_eq!(hex_dump(b""), "");
    }

    #[test]
    fn client_config_lists_the_addresses_for_clients() {
        let config = "server.1=a:2888:3888:participant;0.0.0.0:2181\nserver.2=b:2888:3888;2182\nserver.3=c:1:2\nversion=100000000";
        assert_eq!(client_config(config), "100000000 0.0.0.0:2181,b:2182");
        assert_eq!(client_config(""), " ");
    }

    #[test]
    fn base64_needs_no_padding() {
        assert_eq!(base64(b"\xff"), "/w==");
        assert_eq!(parse_base64("/w").unwrap(), b"\xff");
        assert!(parse_base64("?").is_err());
    }
}
