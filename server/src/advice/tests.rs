//! Journals written as text, and tests of what is common to all rules. Each rule has its own tests.

use std::time::{Duration, SystemTime};

use minikeeper_core::journal::entry::{JournalOperation, JournalRequest, Occurrence};
use minikeeper_protocol::{ErrorCode, EventKind, OpCode, SessionId, Zxid};

use super::*;

/// Makes entries of lines such as `1 create /a EPHEMERAL 5B v3 watch -> OK /a0000000000`, `1 <- deleted /a 7`,
/// `1 opened`, `1 left`, `1 expired`, `1 closed`; `multi` has operations like `[delete /a v0, setData /b]`. `at 5s` moves the
/// time, and the first word is the session.
fn journal(text: &str) -> Vec<JournalEntry> {
    let mut at = Duration::ZERO;
    let mut entries = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(seconds) = line.strip_prefix("at ") {
            at = Duration::from_secs(seconds.trim_end_matches('s').parse().unwrap());
            continue;
        }
        let (session, what) = line.split_once(' ').unwrap();
        let port = 4_000 + u16::try_from(entries.len() % 1_000).unwrap();
        let number = entries.len() as u64 + 1;
        let mut entry = JournalEntry::new(number, at, SystemTime::UNIX_EPOCH, occurrence(what));
        entry.connection = Some(1);
        entry.session = session.parse().ok().map(SessionId);
        entry.address = Some(([127, 0, 0, 1], port).into());
        entries.push(entry);
    }
    entries
}

fn occurrence(what: &str) -> Occurrence {
    let timeout = Duration::from_secs(10);
    match what {
        "opened" => {
            return Occurrence::SessionBegan {
                timeout,
                is_new: true,
            };
        }
        "resumed" => {
            return Occurrence::SessionBegan {
                timeout,
                is_new: false,
            };
        }
        "expired" => return Occurrence::SessionEnded { expired: true },
        "closed" => return Occurrence::SessionEnded { expired: false },
        "left" => {
            return Occurrence::ConnectionClosed {
                reason: "closed by the client".to_owned(),
            };
        }
        "omitted" => return Occurrence::Omitted { count: 5 },
        _ => {}
    }
    if let Some(event) = what.strip_prefix("<- ") {
        let words: Vec<_> = event.split(' ').collect();
        return Occurrence::Event {
            kind: match words[0] {
                "created" => EventKind::Created,
                "deleted" => EventKind::Deleted,
                "changed" => EventKind::DataChanged,
                _ => EventKind::ChildrenChanged,
            },
            path: words[1].to_owned(),
            zxid: Zxid(words[2].parse().unwrap()),
            cause: None,
            is_held: false,
        };
    }
    if let Some(verb) = what.strip_prefix("verb ") {
        return Occurrence::Verb(verb.to_owned());
    }
    if let Some(action) = what.strip_prefix("fault ") {
        let (action, path) = (action.to_owned(), None);
        return Occurrence::Fault {
            fault: 1,
            action,
            op: "create",
            path,
        };
    }
    let (before, result) = what.split_once(" -> ").unwrap_or((what, "OK"));
    let (before, multi) = before.split_once(" [").unwrap_or((before, ""));
    let operations = multi
        .trim_end_matches(']')
        .split(", ")
        .filter(|it| !it.is_empty());
    let operations: Vec<_> = operations
        .map(|it| {
            let it = arguments(it);
            let mut operation = JournalOperation::new(it.op, it.path.unwrap());
            operation.version = it.version;
            operation.mode = it.mode;
            operation.data_bytes = it.data_bytes;
            operation
        })
        .collect();
    let (result, created) = result.split_once(' ').unwrap_or((result, ""));
    let mut request = arguments(before);
    request.is_answered = result != "NONE";
    request.error = ErrorCode::from_name(result);
    request.created = (!created.is_empty()).then(|| created.to_owned());
    request.operation_count = u32::try_from(operations.len()).unwrap();
    request.operations = operations;
    Occurrence::Request(request)
}

fn arguments(text: &str) -> JournalRequest {
    let mut words = text.split(' ');
    let op = words.next().unwrap();
    let mut request = JournalRequest::default();
    request.op = OpCode::from_name(op).unwrap().name();
    request.version = matches!(op, "setData" | "delete" | "check").then_some(-1);
    for word in words {
        if word.starts_with('/') {
            request.path = Some(word.to_owned());
        } else if word == "watch" {
            request.watch = true;
        } else if let Some(version) = word.strip_prefix('v') {
            request.version = Some(version.parse().unwrap());
        } else if let Some(bytes) = word.strip_suffix('B') {
            request.data_bytes = Some(bytes.parse().unwrap());
        } else {
            request.mode = Some(word.to_owned().leak());
        }
    }
    request
}

/// Returns the advice on a journal.
pub(super) fn advice(text: &str) -> Advice {
    Advice::of(&journal(text), &[]).unwrap()
}

/// Returns the names of the rules that find something.
pub(super) fn found(text: &str) -> Vec<&'static str> {
    advice(text)
        .findings
        .iter()
        .map(|it| it.rule.name)
        .collect()
}

/// Returns lines with `#` replaced by each number of a range.
pub(super) fn repeated(range: std::ops::Range<u32>, lines: &str) -> String {
    range
        .map(|number| lines.replace('#', &number.to_string()) + "\n")
        .collect()
}

pub(super) const NOTHING: [&str; 0] = [];

pub(super) const UUID_LOCK: &str = "0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d10-lock-";

#[test]
fn similar_paths_are_one_finding_and_rules_and_paths_are_silenced() {
    let text = repeated(
        10..30,
        "1 create /q/#/n- EPHEMERAL_SEQUENTIAL -> OK /q/#/n-0000000000",
    );
    let advice = advice(&text);
    assert_eq!(advice.findings.len(), 1, "{advice}");
    let finding = &advice.findings[0];
    assert_eq!(
        (finding.path.as_str(), finding.count, finding.entries.len()),
        ("/q/*/n-", 20, 8)
    );
    for (ignored, count) in [
        ("unprotected-sequential", 0),
        ("/q/**", 0),
        ("herd", 20),
        ("/q/1*/n-", 10),
    ] {
        let advice = Advice::of(&journal(&text), &[ignored]).unwrap();
        let found: u64 = advice.findings.iter().map(|it| it.count).sum();
        assert_eq!(found, count, "{ignored}");
    }
    let error = Advice::of(&[], &["heard"]).unwrap_err().to_string();
    assert_eq!(
        error,
        "filter: \"heard\" is not the name of a rule of advice, such as herd, or a pattern of paths"
    );
}

/// Each path of a journal is matched with every pattern, and the number of patterns had no limit.
#[test]
fn patterns_to_ignore_have_a_limit() {
    assert!(Advice::of(&[], &["/a"; 100]).is_ok());
    let error = Advice::of(&[], &["/a"; 101]).unwrap_err().to_string();
    assert_eq!(
        error,
        "101 rules and paths to ignore exceed the limit of 100; use patterns such as /config/**"
    );
}

#[test]
fn text_tells_what_why_and_what_to_do() {
    let text = "1 create /l/n- EPHEMERAL_SEQUENTIAL -> OK /l/n-0000000000\n".repeat(2);
    let advice = Advice::of(&journal(&text)[1..], &[]).unwrap();
    expect_test::expect![[r"
        unprotected-sequential: sequential ephemeral whose name does not tell who created it
          session 0x1 created /l/n- as EPHEMERAL_SEQUENTIAL (entry #2)
          why: if the reply is lost, the client does not know the number, and the znode blocks the queue until its session ends
          do:  put a UUID into the name, and after a lost connection look for it among the children (Curator: withProtection)

        the journal begins at entry #2; older ones were not read
    "]]
    .assert_eq(&advice.to_string());
    assert_eq!(
        Advice::of(&[], &[]).unwrap().to_string(),
        "no known mistakes in 0 entries\n"
    );
}

#[test]
fn memory_is_bounded() {
    let mut pass = pass::Pass::new(Ignored::default());
    for number in 0..200_000_u64 {
        let what = occurrence(&format!("create /l/{number} EPHEMERAL_SEQUENTIAL"));
        let mut entry = JournalEntry::new(number, Duration::ZERO, SystemTime::UNIX_EPOCH, what);
        entry.session = Some(SessionId(i64::try_from(number % 1_000).unwrap() + 1));
        pass.entry(&entry);
    }
    let (items, groups) = pass.sizes();
    assert!(items <= 1 << 16 && groups <= 1_000, "{items} {groups}");
}
