//! Formats a received message as the expectation that it meets.

use super::{
    Got,
    env::Env,
    expect::{Facts, ZXIDS, facts_of},
};

/// Returns the words after the arrow that describe a received message, with all fields.
///
/// `zxids` is false if the zxid in the header of an event has no meaning.
pub(crate) fn expectation(got: &Got, env: &Env, zxids: bool) -> String {
    let (kind, mut facts, results) = facts_of(got, env);
    // `ok` is implied by the fields.
    let mut words: Vec<_> = (kind != "ok" || facts.is_empty())
        .then(|| kind.clone())
        .into_iter()
        .collect();
    if kind == "event" {
        words.extend(facts.remove("event"));
        if !zxids {
            facts.remove("zxid");
        }
    }
    if kind == "results" || kind == "broken_off" {
        let parts: Vec<_> = results
            .into_iter()
            .map(|mut facts| {
                let mut words: Vec<_> = facts.remove("kind").into_iter().collect();
                words.extend(fields(facts, env));
                words.join(" ")
            })
            .collect();
        words.push(format!("{{ {} }}", parts.join(" ; ")));
    }
    words.extend(fields(facts, env));
    words.join(" ")
}

fn fields(mut facts: Facts, env: &Env) -> Vec<String> {
    // The clock is manual, so both times are nearly always equal.
    if facts.contains_key("ctime") && facts.get("ctime") == facts.get("mtime") {
        facts.remove("ctime");
        facts.insert("mtime".to_owned(), "ctime".to_owned());
    }
    facts
        .into_iter()
        .map(|(name, value)| {
            let value = match name.as_str() {
                name if ZXIDS.contains(&name) => zxid(&value, env),
                "names" | "paths" | "ids" => word(&format!("[{value}]")),
                // Already quoted.
                "data" | "path" | "token" => value,
                _ => word(&value),
            };
            if name == "zxid" && value.starts_with(['z', '$']) {
                return value;
            }
            format!("{name}={value}")
        })
        .collect()
}

/// The name of the mark from which zxids count while it is set.
pub(crate) const MARK: &str = "before";

/// Formats a zxid relative to the mark or to the newest one. 0 and -1 stay absolute.
fn zxid(value: &str, env: &Env) -> String {
    let mark = env.marks.get(MARK).copied();
    match value.parse::<i64>() {
        Ok(zxid @ 1..) if mark.is_some_and(|mark| mark <= zxid) => {
            match zxid - mark.unwrap_or_default() {
                0 => format!("${MARK}"),
                by => format!("${MARK}{by:+}"),
            }
        }
        Ok(-1) => "none".to_owned(),
        Ok(zxid @ 1..) => match zxid - env.zxid {
            0 => "zxid".to_owned(),
            by => format!("zxid{by:+}"),
        },
        _ => value.to_owned(),
    }
}

/// Quotes text that is not valid as a bare word.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '#' | ';');
    if text.chars().all(plain) {
        return text.to_owned();
    }
    quoted(text.as_bytes())
}

/// Returns a quoted word: printable ASCII unchanged, everything else escaped.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend(['\\', byte.into()]),
            b' '..=b'~' => out.push(byte.into()),
            _ => out += &format!("\\x{byte:02x}"),
        }
    }
    out.push('"');
    out
}
