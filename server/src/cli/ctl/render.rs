//! Renders the answers of verbs as text for people, by the kinds of their fields.
//!
//! Data, paths and other text of clients are escaped: they could contain the control characters of a
//! terminal.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use minikeeper::control::{Field, FieldKind, Verb};
use serde_json::{Map, Value};

/// A column of a table.
struct Column {
    title: &'static str,
    cell: fn(&Value) -> String,
}

const SESSIONS: &[Column] = &[
    column("SESSION", |session| text(&session["id"])),
    column("STATE", session_state),
    column("ADDRESS", |session| text(&session["address"])),
    column("EXPIRES IN", |session| {
        duration(&session["timeout_left_ms"])
    }),
    column("TIMEOUT", |session| duration(&session["timeout_ms"])),
    column("EPHEMERALS", |session| length(&session["ephemerals"])),
    column("WATCHES", |session| length(&session["watches"])),
    column(
        "LAST OPERATION",
        |session| match &session["last_operation"] {
            Value::Null => String::new(),
            last => format!("{} at {}", text(&last["name"]), duration(&last["at_ms"])),
        },
    ),
];

const FAULTS: &[Column] = &[
    column("FAULT", |fault| text(&fault["fault"])),
    column("ACTION", |fault| {
        let action = text(&fault["action"]);
        match (&fault["delay_ms"], &fault["error"]) {
            (Value::Number(_), _) => format!("{action} {}", duration(&fault["delay_ms"])),
            (_, Value::String(_)) => format!("{action} {}", text(&fault["error"])),
            _ => action,
        }
    }),
    column("OPERATIONS", |fault| match &fault["op"] {
        Value::String(op) if op.is_empty() => "all".to_owned(),
        op => text(op),
    }),
    column("PATH", |fault| text(&fault["path"])),
    column("CLIENT", |fault| match &fault["session"] {
        Value::Null => text(&fault["address"]),
        session => text(session),
    }),
    column("MATCHES", |fault| text(&fault["matches"])),
    column("HITS", |fault| match &fault["count"] {
        Value::Null => text(&fault["hits"]),
        count => format!("{} of {}", text(&fault["hits"]), text(count)),
    }),
    column("HELD", |fault| text(&fault["held"])),
];

const CHILDREN: &[Column] = &[
    column("NAME", |child| text(&child["name"])),
    column("CHILDREN", |child| match &child["num_children"] {
        count if count == 0 => String::new(),
        count => text(count),
    }),
    column("DATA", |child| match child["data_length"].as_u64() {
        None => "null".to_owned(),
        Some(0) => String::new(),
        Some(length) => size(length),
    }),
    column("EPHEMERAL OF", |child| text(&child["ephemeral_owner"])),
    column("TTL", |child| duration(&child["ttl_ms"])),
];

const SNAPSHOTS: &[Column] = &[
    column("SNAPSHOT", |snapshot| text(&snapshot["snapshot"])),
    column("TAKEN", |snapshot| time(&snapshot["taken_ms"])),
    column("", |snapshot| match snapshot["is_there"] == true {
        true => String::new(),
        false => "gone".to_owned(),
    }),
];

const CHANGES: &[Column] = &[
    column("CHANGE", |change| text(&change["change"])),
    column("PATH", |change| text(&change["path"])),
    column("BEFORE", |change| text(&change["before"])),
    column("AFTER", |change| text(&change["after"])),
];

const fn column(title: &'static str, cell: fn(&Value) -> String) -> Column {
    Column { title, cell }
}

/// Renders an answer, with a newline after each line.
pub(crate) fn render(verb: &Verb, answer: &Value) -> String {
    let mut out = String::new();
    // The server has rendered the other fields itself.
    if let Some(Value::String(text)) = answer.get("text")
        && (verb.answer.iter())
            .any(|field| matches!(field.kind, FieldKind::Parts(part) if ["Lock", "Finding"].contains(&part.name)))
    {
        return text.clone();
    }
    match verb.answer {
        [] => out.push_str("done\n"),
        [field] => put_alone(&mut out, field, &answer[field.name]),
        fields => put_fields(&mut out, fields, answer),
    }
    out
}

/// Renders the only field of an answer: its value says enough.
fn put_alone(out: &mut String, field: &Field, value: &Value) {
    if !put_list(out, field, value) {
        put_line(out, &scalar(field.kind, value));
    }
}

/// Renders the fields of an answer: lists first, then names and values in two columns, then data of
/// several lines.
fn put_fields(out: &mut String, fields: &[Field], answer: &Value) {
    let mut rows = Vec::new();
    let mut block = String::new();
    for field in fields {
        let value = &answer[field.name];
        let name = spoken(field.name);
        match field.kind {
            FieldKind::Data => match data_lines(answer) {
                Some(lines) => block = lines,
                None => rows.push(vec![name, data(answer)]),
            },
            FieldKind::Part(_) => {
                let stat = value.as_object().into_iter().flatten();
                rows.extend(stat.map(|(name, value)| vec![spoken(name), stat_value(name, value)]));
            }
            // A mark, not a value.
            FieldKind::Flag if field.name == "is_truncated" => {
                if value == &Value::Bool(true) {
                    rows.push(vec!["... there are more".to_owned()]);
                }
            }
            _ if put_list(out, field, value) => {}
            kind => rows.push(vec![name, scalar(kind, value)]),
        }
    }
    put_rows(out, &rows);
    if !block.is_empty() {
        out.push('\n');
        out.push_str(&block);
    }
}

/// Renders a field with several lines. Returns whether it is one.
fn put_list(out: &mut String, field: &Field, value: &Value) -> bool {
    let Value::Array(items) = value else {
        return false;
    };
    if items.is_empty() {
        put_line(out, &format!("no {}", spoken(field.name)));
        return true;
    }
    let part = match field.kind {
        FieldKind::Parts(part) => part.name,
        _ => "",
    };
    match part {
        "Session" => put_table(out, SESSIONS, items),
        "InjectedFault" => put_table(out, FAULTS, items),
        "ListedZnode" => put_tree(out, items),
        "ListedChild" => put_table(out, CHILDREN, items),
        "TakenSnapshot" => put_table(out, SNAPSHOTS, items),
        "ZnodeChange" => put_table(out, CHANGES, items),
        "JournalEntry" => items
            .iter()
            .for_each(|item| put_line(out, &text(&item["text"]))),
        _ if items.iter().all(Value::is_object) => put_any_table(out, items),
        _ => items.iter().for_each(|item| put_line(out, &text(item))),
    }
    true
}

/// Renders a table without the columns that are empty in each row.
fn put_table(out: &mut String, columns: &[Column], items: &[Value]) {
    let mut rows = vec![Vec::new(); items.len() + 1];
    for Column { title, cell } in columns {
        let cells: Vec<_> = items.iter().map(cell).collect();
        if cells.iter().all(String::is_empty) {
            continue;
        }
        let column = std::iter::once((*title).to_owned()).chain(cells);
        for (row, cell) in rows.iter_mut().zip(column) {
            row.push(cell);
        }
    }
    put_rows(out, &rows);
}

/// Renders a table of objects of a kind without columns of its own: one column for each name.
fn put_any_table(out: &mut String, items: &[Value]) {
    let mut names: Vec<&String> = Vec::new();
    for name in items
        .iter()
        .filter_map(Value::as_object)
        .flat_map(Map::keys)
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let cell = |item: &Value, name: &str| match name.ends_with("_ms") {
        true => duration(&item[name]),
        false => text(&item[name]),
    };
    let titles = names.iter().map(|name| spoken(name).to_uppercase());
    let rows = items
        .iter()
        .map(|item| names.iter().map(|name| cell(item, name)).collect());
    let rows: Vec<Vec<_>> = std::iter::once(titles.collect()).chain(rows).collect();
    put_rows(out, &rows);
}

/// Renders znodes that are in the order of a tree, each below its parent by its name.
fn put_tree(out: &mut String, znodes: &[Value]) {
    let path = |znode: &Value| znode["path"].as_str().unwrap_or_default().to_owned();
    let depth = |path: &str| path.split('/').filter(|name| !name.is_empty()).count();
    let top = znodes.first().map(path).unwrap_or_default();
    let rows: Vec<_> = znodes
        .iter()
        .map(|znode| {
            let path = path(znode);
            let (depth, is_top) = (depth(&path).saturating_sub(depth(&top)), path == top);
            let name = match path.rsplit_once('/') {
                Some((_, name)) if !is_top => name,
                _ => &path,
            };
            let mut about = match &znode["data_length"] {
                Value::Null => "null".to_owned(),
                length if length == 0 => String::new(),
                length => size(length.as_u64().unwrap_or_default()),
            };
            let mut add = |word: String| {
                if !about.is_empty() {
                    about.push_str(", ");
                }
                about.push_str(&word);
            };
            if let Value::String(owner) = &znode["ephemeral_owner"] {
                add(format!("ephemeral of {}", escaped(owner)));
            }
            if znode["container"] == true {
                add("container".to_owned());
            }
            if !znode["ttl_ms"].is_null() {
                add(format!("ttl {}", duration(&znode["ttl_ms"])));
            }
            vec![format!("{}{}", "  ".repeat(depth), escaped(name)), about]
        })
        .collect();
    put_rows(out, &rows);
}

/// Renders rows with columns as wide as their widest cell, two blanks apart.
fn put_rows(out: &mut String, rows: &[Vec<String>]) {
    let mut widths: Vec<usize> = Vec::new();
    // A row with a single cell is a remark.
    for row in rows.iter().filter(|row| row.len() > 1) {
        for (index, cell) in row.iter().enumerate() {
            match widths.get_mut(index) {
                Some(width) => *width = (*width).max(cell.chars().count()),
                None => widths.push(cell.chars().count()),
            }
        }
    }
    for row in rows {
        let mut line = String::new();
        for (index, cell) in row.iter().enumerate() {
            let width = widths.get(index).map_or(0, |width| width + 2);
            // Writing to a string cannot fail.
            let _ = write!(line, "{cell:width$}");
        }
        put_line(out, line.trim_end());
    }
}

fn put_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

/// Formats a field with one value.
fn scalar(kind: FieldKind, value: &Value) -> String {
    match (kind, value) {
        (FieldKind::DurationMs, value) => duration(value),
        (FieldKind::UnixMs, value) => time(value),
        (_, Value::Bool(true)) => "yes".to_owned(),
        (_, Value::Bool(false)) => "no".to_owned(),
        // It may have lines.
        (FieldKind::Text, Value::String(text)) => {
            let lines: Vec<_> = text.lines().map(escaped).collect();
            lines.join("\n")
        }
        (_, value) => text(value),
    }
}

fn stat_value(name: &str, value: &Value) -> String {
    match name {
        "ctime_ms" | "mtime_ms" => time(value),
        "ephemeral_owner" if value == "0x0" => "none".to_owned(),
        _ => text(value),
    }
}

fn session_state(session: &Value) -> String {
    let connected = match session["is_connected"] == true {
        true => "connected",
        false => "disconnected",
    };
    let marks = [("is_silenced", "silenced"), ("is_unbound", "unbound")];
    let marks = marks.iter().filter(|(name, _)| session[*name] == true);
    let words: Vec<_> = std::iter::once(connected)
        .chain(marks.map(|(_, word)| *word))
        .collect();
    words.join(", ")
}

/// Returns the data in an answer as indented lines, if it is text of several lines.
fn data_lines(answer: &Value) -> Option<String> {
    let text = answer["data"].as_str()?;
    if !text.trim_end_matches('\n').contains('\n') {
        return None;
    }
    let mut lines = "data\n".to_owned();
    for line in text.lines() {
        put_line(&mut lines, format!("  {}", escaped(line)).trim_end());
    }
    Some(lines)
}

/// Formats the data in an answer: text in quotes, other bytes escaped.
fn data(answer: &Value) -> String {
    if let Some(coded) = answer["data_base64"].as_str() {
        let bytes = STANDARD.decode(coded).unwrap_or_default();
        return format!("bytes \"{}\"", bytes.escape_ascii());
    }
    match &answer["data"] {
        Value::String(text) => format!("{text:?}"),
        _ => "null".to_owned(),
    }
}

/// Formats any value in one line.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => escaped(text),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(" "),
        other => escaped(&other.to_string()),
    }
}

/// Escapes what a terminal would interpret or not show. Quotes stay as they are.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for symbol in text.chars() {
        match symbol {
            '\'' | '"' => out.push(symbol),
            _ => out.extend(symbol.escape_debug()),
        }
    }
    out
}

/// Formats the name of a field: `elapsed_ms` as `elapsed`, `is_frozen` as `frozen`.
fn spoken(name: &str) -> String {
    let name = name.trim_end_matches("_ms").trim_start_matches("is_");
    name.replace('_', " ")
}

fn length(list: &Value) -> String {
    list.as_array().map_or(0, Vec::len).to_string()
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// Formats a time span in milliseconds.
fn duration(ms: &Value) -> String {
    let Some(ms) = ms.as_u64() else {
        return text(ms);
    };
    let (seconds, minutes, hours) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => match ms % 1_000 / 100 {
            0 => format!("{seconds} s"),
            tenths => format!("{seconds}.{tenths} s"),
        },
        60_000..3_600_000 => format!("{minutes} min {} s", seconds % 60),
        3_600_000..172_800_000 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

/// Formats milliseconds since 1970 as a time in UTC.
fn time(ms: &Value) -> String {
    const DAY_MS: i64 = 86_400_000;
    let Some(ms) = ms.as_i64() else {
        return text(ms);
    };
    let (days, ms) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    // The Gregorian calendar repeats after 146,097 days, and its years begin in March here, so that a
    // leap day is the last of its year.
    let since_march_0000 = days + 719_468;
    let (era, day) = (
        since_march_0000.div_euclid(146_097),
        since_march_0000.rem_euclid(146_097),
    );
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let months = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * months + 2) / 5 + 1;
    let month = if months < 10 { months + 3 } else { months - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
    let (second, ms) = (ms / 1_000 % 60, ms % 1_000);
    format!("{year:04}-{month:02}-{day_of_month:02} {hour:02}:{minute:02}:{second:02}.{ms:03} UTC")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::ctl::command;

    #[track_caller]
    fn check(verb: &str, answer: &Value, expected: &Expect) {
        let verb = command::find(verb).expect("a verb of this name");
        expected.assert_eq(&render(verb, answer));
    }

    #[test]
    fn locks_are_the_text_of_the_server() {
        let answer = json!({
            "locks": [{"path": "/l"}], "deadlocks": [], "is_truncated": false, "text": "mutex /l\n",
        });
        check("locks", &answer, &expect!["mutex /l\n"]);
    }

    #[test]
    fn sessions_are_a_table() {
        let sessions = json!({"sessions": [
            {
                "id": "0x1000a2b3c0001", "timeout_ms": 10_000, "timeout_left_ms": 8_740,
                "is_connected": true, "is_unbound": false, "is_silenced": true,
                "address": "127.0.0.1:40000", "identities": [["ip", "127.0.0.1"]],
                "ephemerals": ["/a", "/b"], "watches": [{"path": "/a", "kind": "data"}],
                "last_operation": {"name": "create2", "at_ms": 125_000},
            },
            {
                "id": "0x2", "timeout_ms": 400, "timeout_left_ms": 0,
                "is_connected": false, "is_unbound": true, "is_silenced": false,
                "address": null, "identities": [], "ephemerals": [], "watches": [],
                "last_operation": null,
            },
        ]});
        check(
            "sessions",
            &sessions,
            &expect![[r#"
            SESSION          STATE                  ADDRESS          EXPIRES IN  TIMEOUT  EPHEMERALS  WATCHES  LAST OPERATION
            0x1000a2b3c0001  connected, silenced    127.0.0.1:40000  8.7 s       10 s     2           1        create2 at 2 min 5 s
            0x2              disconnected, unbound                   0 ms        400 ms   0           0
        "#]],
        );
        check(
            "sessions",
            &json!({"sessions": []}),
            &expect![[r#"
            no sessions
        "#]],
        );
    }

    #[test]
    fn faults_are_a_table_without_empty_columns() {
        let fault = |id: u32, action: &str, more: Value| {
            let mut fault = json!({
                "fault": id, "action": action, "op": "", "path": null, "skip": 0, "count": null,
                "probability": null, "seed": 0, "optional": false, "matches": 3, "hits": 2, "held": 0,
            });
            for (name, value) in more.as_object().expect("an object") {
                fault[name] = value.clone();
            }
            fault
        };
        let faults = json!({"faults": [
            fault(1, "delay", json!({"delay_ms": 1_500, "op": "create,set", "path": "/a/**"})),
            fault(12, "error", json!({"error": "NONODE", "count": 5})),
        ]});
        check(
            "faults",
            &faults,
            &expect![[r#"
            FAULT  ACTION        OPERATIONS  PATH   MATCHES  HITS    HELD
            1      delay 1.5 s   create,set  /a/**  3        2       0
            12     error NONODE  all                3        2 of 5  0
        "#]],
        );
    }

    #[test]
    fn tree_is_indented() {
        let znode = |path: &str, more: Value| {
            let mut znode = json!({
                "path": path, "data_length": 0, "ephemeral_owner": null, "container": false,
                "ttl_ms": null,
            });
            for (name, value) in more.as_object().expect("an object") {
                znode[name] = value.clone();
            }
            znode
        };
        let tree = json!({"is_truncated": true, "znodes": [
            znode("/", json!({})),
            znode("/a", json!({"container": true})),
            znode("/a/b", json!({"data_length": 5, "ephemeral_owner": "0x10"})),
            znode("/a-b", json!({"data_length": null, "ttl_ms": 60_000})),
            znode("/big \u{202e}", json!({"data_length": 1_048_000})),
        ]});
        check(
            "tree",
            &tree,
            &expect![[r#"
            /
              a             container
                b           5 B, ephemeral of 0x10
              a-b           null, ttl 1 min 0 s
              big \u{202e}  1023 KiB
            ... there are more
        "#]],
        );
        let below = json!({"is_truncated": false, "znodes": [
            znode("/a/b", json!({})),
            znode("/a/b/c", json!({"data_length": 1})),
        ]});
        check(
            "tree",
            &below,
            &expect![[r#"
            /a/b
              c   1 B
        "#]],
        );
    }

    #[test]
    fn znode_shows_data_and_stat() {
        let stat = json!({
            "czxid": "0x1", "mzxid": "0x2", "pzxid": "0x1", "ctime_ms": 0,
            "mtime_ms": 1_709_210_096_789_i64, "version": 1, "cversion": 0, "aversion": 0,
            "ephemeral_owner": "0x0", "data_length": 5, "num_children": 0,
        });
        let znode = json!({"data": "\u{1b}[2J\u{9b}\u{7f}\"x\"", "stat": stat});
        check(
            "get",
            &znode,
            &expect![[r#"
            data             "\u{1b}[2J\u{9b}\u{7f}\"x\""
            aversion         0
            ctime            1970-01-01 00:00:00.000 UTC
            cversion         0
            czxid            0x1
            data length      5
            ephemeral owner  none
            mtime            2024-02-29 12:34:56.789 UTC
            mzxid            0x2
            num children     0
            pzxid            0x1
            version          1
        "#]],
        );
        let short = json!({"czxid": "0x1"});
        let lines = json!({"data": "{\n  \"a\": \"\u{1b}\"\n}\n", "stat": short});
        check(
            "get",
            &lines,
            &expect![[r#"
            czxid  0x1

            data
              {
                "a": "\u{1b}"
              }
        "#]],
        );
        let bytes = json!({"data_base64": "AP8=", "stat": short});
        check(
            "get",
            &bytes,
            &expect![[r#"
            data   bytes "\x00\xff"
            czxid  0x1
        "#]],
        );
        check(
            "get",
            &json!({"data": null, "stat": short}),
            &expect![[r#"
            data   null
            czxid  0x1
        "#]],
        );
    }

    #[test]
    fn small_answers_are_values() {
        check(
            "expire",
            &json!({"count": 1}),
            &expect![[r#"
            1
        "#]],
        );
        check(
            "freeze",
            &json!({}),
            &expect![[r#"
            done
        "#]],
        );
        check(
            "children",
            &json!({"children": ["a", "b\u{1b}"]}),
            &expect![[r#"
                a
                b\u{1b}
            "#]],
        );
        check(
            "children",
            &json!({"children": []}),
            &expect![[r#"
            no children
        "#]],
        );
        let now = json!({"elapsed_ms": 93_784_005_u64, "wall_ms": 951_782_400_000_u64, "is_frozen": true, "has_journal": true});
        check(
            "now",
            &now,
            &expect![[r#"
                elapsed      26 h 3 min
                wall         2000-02-29 00:00:00.000 UTC
                frozen       yes
                has journal  yes
            "#]],
        );
        check(
            "seed",
            &json!({"created": 2, "changed": 0}),
            &expect![[r#"
            created  2
            changed  0
        "#]],
        );
    }

    #[test]
    fn list_of_an_unknown_kind_is_a_table() {
        let mut out = String::new();
        let items = [
            json!({"at_ms": 3_200, "path": "/a"}),
            json!({"at_ms": 61_000, "held": true}),
        ];
        put_any_table(&mut out, &items);
        expect![[r#"
            AT         PATH  HELD
            3.2 s      /a
            1 min 1 s        yes
        "#]]
        .assert_eq(&out);
    }

    #[test]
    fn times_and_durations_are_readable() {
        for (ms, expected) in [
            (0, "1970-01-01 00:00:00.000 UTC"),
            (-1, "1969-12-31 23:59:59.999 UTC"),
            (951_782_399_999_i64, "2000-02-28 23:59:59.999 UTC"),
            (951_868_800_000, "2000-03-01 00:00:00.000 UTC"),
            (4_107_542_399_000, "2100-02-28 23:59:59.000 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00.000 UTC"),
        ] {
            assert_eq!(time(&json!(ms)), expected, "{ms}");
        }
        for (ms, expected) in [
            (0_u64, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (3_260, "3.2 s"),
            (60_000, "1 min 0 s"),
            (3_599_999, "59 min 59 s"),
            (3_660_000, "1 h 1 min"),
            (180_000_000, "2 d 2 h"),
        ] {
            assert_eq!(duration(&json!(ms)), expected, "{ms}");
        }
    }
}
