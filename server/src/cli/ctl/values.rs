//! Parses durations, sessions and trees on the command line.

use std::{
    io::{self, Read as _},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use minikeeper_core::files;
use serde_json::Value;

/// Parses a duration with its unit.
///
/// # Errors
/// When the text is not one; says how to write it.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration; write it as in 200ms, 5s, 1m or 1h");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let count: u64 = digits.parse().map_err(|_| wrong())?;
    count
        .checked_mul(unit_ms)
        .map(Duration::from_millis)
        .ok_or_else(wrong)
}

/// Parses a duration with its unit, or `never`.
///
/// # Errors
/// When the text is neither; says how to write a duration.
pub(crate) fn duration_or_never(text: &str) -> Result<Option<Duration>, String> {
    if text == "never" {
        return Ok(None);
    }
    duration(text).map(Some)
}

/// Returns the field that selects sessions by this kind of text.
pub(crate) fn who(text: &str) -> &'static str {
    let is_session = text.starts_with("0x") || text.bytes().all(|byte| byte.is_ascii_digit());
    let is_address =
        text.parse::<std::net::SocketAddr>().is_ok() || text.parse::<std::net::IpAddr>().is_ok();
    match text {
        _ if text.starts_with('/') => "owner",
        _ if is_session => "session",
        _ if is_address => "address",
        _ => "identity",
    }
}

/// Reads a file with a tree. Returns the field for it and the field's value.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn tree(file: &str) -> Result<(&'static str, Value), String> {
    let cannot_read = |error: io::Error| format!("cannot read {file}: {error}");
    let text = match file {
        "-" => io::read_to_string(io::stdin()),
        file => files::read_to_string(file.as_ref(), files::SEED_BYTES_MAX),
    };
    let text = text.map_err(cannot_read)?;
    if !file.ends_with(".json") {
        return Ok(("yaml", text.into()));
    }
    let value = files::parse_json(text.as_bytes());
    let value = value.map_err(|error| format!("{file} is not JSON: {error}"))?;
    Ok(("tree", value))
}

/// Reads the data of a znode: the text, or stdin for `-`. Returns the field for it and the field's
/// value.
///
/// # Errors
/// When stdin cannot be read.
pub(crate) fn data(text: &str) -> Result<(&'static str, Value), String> {
    if text != "-" {
        return Ok(("data", text.into()));
    }
    let mut bytes = Vec::new();
    let read = io::stdin().read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot read stdin: {error}"))?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => ("data", text.into()),
        Err(error) => ("data_base64", STANDARD.encode(error.as_bytes()).into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, millis) in [
            ("0ms", 0),
            ("200ms", 200),
            ("5s", 5_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "5",
            "s",
            "-5s",
            "+5s",
            "5 s",
            "1.5s",
            "5d",
            "99999999999999999999s",
            "9999999999999999h",
            "ä",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(duration_or_never("never"), Ok(None));
    }

    #[test]
    fn sessions_are_selected_in_four_ways() {
        for (text, field) in [
            ("0x1000a2b3c0001", "session"),
            ("72057594037927936", "session"),
            ("127.0.0.1:4711", "address"),
            ("127.0.0.1", "address"),
            ("[::1]:4711", "address"),
            ("::1", "address"),
            ("digest:alice", "identity"),
            ("/locks/x", "owner"),
        ] {
            assert_eq!(who(text), field, "{text}");
        }
    }
}
