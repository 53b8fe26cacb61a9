//! Prints values as Java does, for scripts that parse ZooKeeper's output.

use minikeeper_core::peer::Peer;

/// Prints a number as `Double.toString` does: with at least one decimal, and with an exponent outside
/// 0.001 to 10,000,000.
pub(crate) fn double(value: f64) -> String {
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let decimals = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{decimals}E{power}")
}

/// Prints an address as `InetSocketAddress.toString` does without a host name.
pub(crate) fn address(peer: &Peer) -> String {
    match peer {
        Peer::Local => "/in-process:0".to_owned(),
        Peer::V4(ip, port) => format!("/{ip}:{port}"),
        Peer::V6(address) => {
            let [a, b, c, d, e, f, g, h] = address.ip().segments();
            let scope = match address.scope_id() {
                0 => String::new(),
                scope => format!("%{scope}"),
            };
            let port = address.port();
            format!("/[{a:x}:{b:x}:{c:x}:{d:x}:{e:x}:{f:x}:{g:x}:{h:x}{scope}]:{port}")
        }
    }
}

/// Prints a time in milliseconds since 1970 as `Date.toString` does in UTC.
pub(crate) fn date(wall_ms: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let seconds = wall_ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let weekday = DAYS[usize::try_from(days.rem_euclid(7)).unwrap_or(0)];
    // Counts in eras of 400 years that begin in March, so that the leap day ends a year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = (march_month + 2) % 12;
    let year = era * 400 + year_of_era + i64::from(month < 2);
    let month = MONTHS[usize::try_from(month).unwrap_or(0)];
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{weekday} {month} {day:02} {hour:02}:{minute:02}:{second:02} UTC {year}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_printed_as_java_does() {
        for (value, text) in [
            (0.0, "0.0"),
            (2.7267, "2.7267"),
            (19.0, "19.0"),
            (0.001, "0.001"),
            (0.0005, "5.0E-4"),
            (12_345_678.5, "1.23456785E7"),
        ] {
            assert_eq!(double(value), text);
        }
    }

    #[test]
    fn dates_are_printed_as_java_does() {
        for (wall_ms, text) in [
            (0, "Thu Jan 01 00:00:00 UTC 1970"),
            (951_782_399_999, "Mon Feb 28 23:59:59 UTC 2000"),
            (951_782_400_000, "Tue Feb 29 00:00:00 UTC 2000"),
            (1_704_067_200_000, "Mon Jan 01 00:00:00 UTC 2024"),
            (1_795_247_533_000, "Sat Nov 21 07:52:13 UTC 2026"),
        ] {
            assert_eq!(date(wall_ms), text);
        }
    }

    #[test]
    fn addresses_are_printed_as_java_does() {
        for (given, text) in [
            ("127.0.0.1:39200", "/127.0.0.1:39200"),
            ("[::ffff:10.0.0.7]:1", "/10.0.0.7:1"),
            ("[::1]:2181", "/[0:0:0:0:0:0:0:1]:2181"),
            ("[fe80::a%2]:9", "/[fe80:0:0:0:0:0:0:a%2]:9"),
        ] {
            let given: std::net::SocketAddr = given.parse().expect("a socket address");
            assert_eq!(address(&given.into()), text);
        }
    }
}
