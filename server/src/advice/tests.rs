//! Each rule with the entries that it finds, and with similar ones that are no mistake.

use std::time::{Duration, SystemTime};

use minikeeper_protocol::{ErrorCode, EventKind, OpCode, SessionId, Zxid};

use super::*;
use crate::{
    JournalOperation,
    advice::rules::RuleId,
    journal::entry::{JournalRequest, Occurrence},
};

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
        entries.push(JournalEntry {
            number: entries.len() as u64 + 1,
            at,
            wall: SystemTime::UNIX_EPOCH,
            connection: Some(1),
            session: session.parse().ok().map(SessionId),
            address: Some(([127, 0, 0, 1], port).into()),
            what: occurrence(what),
        });
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
            JournalOperation {
                op: it.op,
                path: it.path.unwrap(),
                version: it.version,
                mode: it.mode,
                data_bytes: it.data_bytes,
            }
        })
        .collect();
    let (result, created) = result.split_once(' ').unwrap_or((result, ""));
    Occurrence::Request(JournalRequest {
        is_answered: result != "NONE",
        error: ErrorCode::from_name(result),
        created: (!created.is_empty()).then(|| created.to_owned()),
        operation_count: u32::try_from(operations.len()).unwrap(),
        operations,
        ..arguments(before)
    })
}

fn arguments(text: &str) -> JournalRequest {
    let mut words = text.split(' ');
    let op = words.next().unwrap();
    let mut request = JournalRequest {
        op: OpCode::from_name(op).unwrap().name(),
        version: matches!(op, "setData" | "delete" | "check").then_some(-1),
        ..JournalRequest::default()
    };
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

/// Returns the names of the rules that find something.
fn found(text: &str) -> Vec<&'static str> {
    let advice = Advice::of(&journal(text), &[]).unwrap();
    advice.findings.iter().map(|it| it.rule.name).collect()
}

/// Returns lines with `#` replaced by each number of a range.
fn repeated(range: std::ops::Range<u32>, lines: &str) -> String {
    range
        .map(|number| lines.replace('#', &number.to_string()) + "\n")
        .collect()
}

const NOTHING: [&str; 0] = [];

#[test]
fn rules_are_in_the_order_of_their_places() {
    assert_eq!(AdviceRule::ALL.len(), RuleId::RecursiveDelete as usize + 1);
    for (rule, name) in [
        (RuleId::UnprotectedSequential, "unprotected-sequential"),
        (RuleId::LostUpdate, "lost-update"),
        (RuleId::ChangeNotRead, "change-not-read"),
        (RuleId::RecreatedEphemeral, "recreated-ephemeral"),
        (RuleId::RecursiveDelete, "recursive-delete"),
    ] {
        assert_eq!(AdviceRule::ALL[rule as usize].name, name);
    }
}

#[test]
fn unprotected_sequential_has_no_id_in_its_name() {
    let naive = "1 create /l/lock- EPHEMERAL_SEQUENTIAL -> OK /l/lock-0000000000";
    assert_eq!(found(naive), ["unprotected-sequential"]);
    for name in [
        "_c_0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d10-lock-", // Curator
        "_c_0e6a1a3a6c1e4b0d9f0a2f6a3b1c9d10-lock-",     // go-zookeeper
        "0e6a1a3a6c1e4b0d9f0a2f6a3b1c9d10__lock__",      // kazoo
        "x-72057594037927937-",                          // ZooKeeper's WriteLock
    ] {
        let line = format!(
            "72057594037927937 create /l/{name} EPHEMERAL_SEQUENTIAL -> OK /l/{name}0000000000"
        );
        assert_eq!(found(&line), NOTHING, "{name}");
    }
    assert_eq!(
        found("1 create /l/lock- PERSISTENT_SEQUENTIAL -> OK /l/lock-0000000000"),
        NOTHING
    );
    assert_eq!(
        found("1 create /l/lock- EPHEMERAL_SEQUENTIAL -> NONODE"),
        NOTHING
    );
}

#[test]
fn unprotected_sequential_names_the_lost_reply_first() {
    let text = "1 create /l/lock- EPHEMERAL_SEQUENTIAL -> OK /l/lock-0000000000
                1 fault lose-reply
                1 create /l/lock- EPHEMERAL_SEQUENTIAL -> OK /l/lock-0000000001";
    let advice = Advice::of(&journal(text), &[]).unwrap();
    let finding = &advice.findings[0];
    assert!(
        finding.text.ends_with("and the reply was lost"),
        "{}",
        finding.text
    );
    assert_eq!((finding.count, &finding.entries[..]), (2, &[3, 1][..]));
}

/// Three sessions queue below /l, and one release wakes them.
fn woken(name: &str, events: &str) -> String {
    repeated(
        1..5,
        &format!("# create /l/{name} EPHEMERAL_SEQUENTIAL -> OK /l/{name}000000000#"),
    ) + &format!("1 delete /l/{name}0000000001\n")
        + &repeated(2..5, events)
}

const UUID_LOCK: &str = "0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d10-lock-";

fn events_of(contender: u32) -> String {
    format!("# <- deleted /l/{UUID_LOCK}000000000{contender} 9")
}

#[test]
fn herd_is_woken_by_one_release() {
    let deleted = format!("# <- deleted /l/{UUID_LOCK}0000000001 9");
    assert_eq!(found(&woken(UUID_LOCK, &deleted)), ["herd"]);
    assert_eq!(found(&woken(UUID_LOCK, "# <- children /l 9")), ["herd"]);
    let lock = "1 create /l EPHEMERAL
                2 create /l EPHEMERAL -> NODEEXISTS
                3 create /l EPHEMERAL -> NODEEXISTS
                4 create /l EPHEMERAL -> NODEEXISTS
                1 delete /l\n";
    assert_eq!(
        found(&(lock.to_owned() + &repeated(2..5, "# <- deleted /l 9"))),
        ["herd"]
    );
}

#[test]
fn no_herd_where_one_waiter_is_woken_or_readers_are() {
    let one = format!("2 <- deleted /l/{UUID_LOCK}0000000001 #");
    assert_eq!(found(&woken(UUID_LOCK, &one)), NOTHING);
    let readers = "0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d10-__READ__";
    let deleted = format!("# <- deleted /l/{readers}0000000001 9");
    assert_eq!(found(&woken(readers, &deleted)), NOTHING);
    // Our recipes watch up to three znodes ahead of their own, the nearest included.
    let ahead = repeated(
        3..5,
        &format!(
            "# getData /l/{UUID_LOCK}0000000001 watch\n# getData /l/{UUID_LOCK}0000000002 watch"
        ),
    );
    let release = format!("1 delete /l/{UUID_LOCK}0000000001");
    let early = woken(UUID_LOCK, &events_of(1)).replace(&release, &(ahead + &release));
    assert_eq!(found(&early), NOTHING);
    // They watch their own znode, too; and a contender that gave up may have left its watch.
    let own = woken(UUID_LOCK, "").replace(
        &format!("1 delete /l/{UUID_LOCK}0000000001"),
        &format!("2 delete /l/{UUID_LOCK}0000000002\n1 delete /l/{UUID_LOCK}0000000001"),
    );
    assert_eq!(found(&(own + &repeated(1..4, &events_of(1)))), NOTHING);
    // A configuration that many watch.
    let config = "1 create /c PERSISTENT 5B\n1 delete /c\n".to_owned();
    assert_eq!(
        found(&(config + &repeated(2..9, "# <- deleted /c 9"))),
        NOTHING
    );
}

#[test]
fn polling_is_the_same_read_without_a_watch_or_a_change() {
    assert_eq!(
        found(&repeated(0..10, "1 exists /a -> NONODE")),
        ["polling"]
    );
    assert_eq!(
        found(&repeated(0..10, "1 getChildren /a\n1 setData /own# 1B")),
        ["polling"]
    );
    for other in [
        &repeated(0..9, "1 getData /a"),
        &repeated(0..50, "1 getData /a watch"),
        &repeated(0..50, "# getData /a"),
        &repeated(0..50, "1 getData /a#"),
        &repeated(0..50, "1 getData /a\n2 setData /a 1B"),
        &repeated(0..50, "1 getChildren /a\n2 create /a/# PERSISTENT"),
        &repeated(0..50, "1 sync /a\n1 getData /a"),
        // A parent is made sure to exist before each use.
        &repeated(0..50, "1 exists /a\n1 create /b# PERSISTENT"),
    ] {
        assert_eq!(found(other), NOTHING, "{other}");
    }
}

#[test]
fn large_list_needs_a_watch_and_1000_children() {
    let children = |count| repeated(0..count, "1 create /a/# PERSISTENT");
    let listed = |count, list: &str| found(&(children(count) + list));
    assert_eq!(listed(1_000, "2 getChildren2 /a watch"), ["large-list"]);
    assert_eq!(listed(999, "2 getChildren2 /a watch"), NOTHING);
    assert_eq!(listed(1_000, "2 getChildren2 /a"), NOTHING);
    let fewer = children(1_000) + "1 delete /a/7\n2 getChildren /a watch";
    assert_eq!(found(&fewer), NOTHING);
    // What was left out may have deleted them.
    assert_eq!(
        found(&(children(1_000) + "0 omitted\n2 getChildren /a watch")),
        NOTHING
    );
}

#[test]
fn lost_update_is_a_write_without_the_version_that_was_read() {
    let lost = "1 getData /a\n2 getData /a\n2 setData /a 1B v3\n1 setData /a 1B";
    assert_eq!(found(lost), ["lost-update"]);
    let both = "1 getData /a\n1 setData /a 1B\n2 getData /a\n2 setData /a 1B";
    assert_eq!(found(both), ["lost-update"]);
    assert_eq!(
        found("1 getData /a\n1 multi [setData /a, delete /b]\n2 getData /a\n2 setData /a"),
        ["lost-update"]
    );
    assert_eq!(
        found(&repeated(0..5, "1 getData /a\n1 setData /a 1B")),
        ["lost-update"]
    );
    for other in [
        "1 getData /a\n1 setData /a 1B",
        "1 getData /a\n2 setData /a 1B\n1 setData /a 1B v7",
        "1 getData /a\n2 setData /a 1B\n1 setData /a 1B v7 -> BADVERSION",
        "1 setData /a 1B\n2 setData /a 1B\n1 setData /a 1B",
        "1 create /a EPHEMERAL\n1 getData /a\n1 setData /a\n2 getData /a",
        "1 getData /a\n1 multi [check /a v3, setData /a]\n2 getData /a\n2 multi [check /a v3, setData /a]",
        "1 getData /a\n1 setData /b 1B\n2 getData /a\n2 setData /c 1B",
    ] {
        assert_eq!(found(other), NOTHING, "{other}");
    }
}

/// Sessions that read and write under a lock were told that they lose updates.
#[test]
fn no_update_is_lost_under_a_lock_that_excludes_the_others() {
    let lock = |name: &str| {
        format!(
            "# create /l/{name} EPHEMERAL_SEQUENTIAL -> OK /l/{name}000000000#
             # getData /a\n# setData /a 1B\n# delete /l/{name}000000000#"
        )
    };
    let writer = "0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d10-__WRIT__";
    for name in [UUID_LOCK, writer] {
        assert_eq!(found(&repeated(1..9, &lock(name))), NOTHING, "{name}");
    }
    // The journal has other locks of the session, and those that wait.
    let waiting = repeated(
        1..5,
        &format!("# create /l/{UUID_LOCK} EPHEMERAL_SEQUENTIAL -> OK /l/{UUID_LOCK}000000000#"),
    ) + &repeated(
        1..5,
        &format!("# getData /a\n# setData /a 1B\n# delete /l/{UUID_LOCK}000000000#"),
    );
    assert_eq!(found(&waiting), NOTHING);
    // Whoever holds no lock, another one, one that admits others, or has let go of it in between, does lose updates.
    let unlocked = "8 getData /a\n8 setData /a 1B\n";
    let other = lock(UUID_LOCK).replace("/l/", "/m/").replace('#', "8");
    let reader = "0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d10-__READ__";
    let between = lock(UUID_LOCK)
        .replace("# setData /a 1B\n", "")
        .replace('#', "8")
        + "\n8 setData /a 1B\n";
    let mut too_late = lock(UUID_LOCK).replace('#', "8");
    too_late = format!(
        "8 getData /a\n{}",
        too_late.replacen("8 getData /a\n", "", 1)
    );
    for lossy in [
        repeated(1..5, &lock(UUID_LOCK)) + unlocked,
        repeated(1..5, &lock(UUID_LOCK)) + &other,
        repeated(1..5, &lock(UUID_LOCK)) + &between,
        repeated(1..5, &lock(UUID_LOCK)) + &too_late,
        repeated(1..5, &lock(reader)),
        // A second place in the queue is no lock.
        format!("7 create /l/{UUID_LOCK} EPHEMERAL_SEQUENTIAL -> OK /l/{UUID_LOCK}0000000000\n")
            + &repeated(1..5, &lock(UUID_LOCK)),
    ] {
        assert!(found(&lossy).contains(&"lost-update"), "{lossy}");
    }
    // An update that is lost is one, with a lock or without.
    let lost = format!(
        "1 create /l/{UUID_LOCK} EPHEMERAL_SEQUENTIAL -> OK /l/{UUID_LOCK}0000000001
         1 getData /a\n2 setData /a 1B\n1 setData /a 1B"
    );
    assert_eq!(found(&lost), ["lost-update"]);
}

#[test]
fn check_then_create_is_a_race_between_sessions() {
    let raced = "1 exists /a -> NONODE\n2 create /a EPHEMERAL\n1 create /a EPHEMERAL -> NODEEXISTS";
    assert_eq!(found(raced), ["check-then-create"]);
    let both = "1 exists /a -> NONODE\n1 create /a PERSISTENT 3B\n1 delete /a\n2 exists /a -> NONODE\n2 create /a PERSISTENT 3B";
    assert_eq!(found(both), ["check-then-create"]);
    for other in [
        &repeated(
            0..50,
            "1 exists /a/# -> NONODE\n1 create /a/# EPHEMERAL\n1 delete /a/#",
        ),
        // Parents, as libraries create them.
        &repeated(
            0..9,
            "# exists /a -> NONODE\n# create /a PERSISTENT 0B -> NODEEXISTS",
        ),
        "1 exists /a -> NONODE\n2 create /a EPHEMERAL\n1 exists /a",
        "2 create /a EPHEMERAL\n1 create /a EPHEMERAL -> NODEEXISTS",
    ] {
        assert_eq!(found(other), NOTHING, "{other}");
    }
}

#[test]
fn former_session_owns_the_ephemeral() {
    let before = "1 opened\n1 create /me EPHEMERAL\n1 left\n2 opened\n2 create /me EPHEMERAL -> NODEEXISTS\n";
    let goes_on = |what: &str| found(&(before.to_owned() + what));
    assert_eq!(goes_on("2 getData /work"), ["former-session"]);
    assert_eq!(
        goes_on("2 getData /work\n1 expired\n2 getData /work"),
        ["former-session"]
    );
    for handled in [
        "",
        "2 delete /me\n2 create /me EPHEMERAL",
        "2 exists /me watch\n2 getData /work",
        "2 getData /work\n2 create /me EPHEMERAL",
    ] {
        assert_eq!(goes_on(handled), NOTHING, "{handled}");
    }
    // A rival that lives, and one that was there before the owner left.
    let rival = "1 opened\n2 opened\n1 create /me EPHEMERAL\n2 create /me EPHEMERAL -> NODEEXISTS\n2 getData /work";
    assert_eq!(found(rival), NOTHING);
    let waiting = "1 opened\n2 opened\n1 create /me EPHEMERAL\n1 left\n2 create /me EPHEMERAL -> NODEEXISTS\n2 getData /work";
    assert_eq!(found(waiting), NOTHING);
    // The reply to the create was lost, and the session went on.
    let same = "1 opened\n1 create /me EPHEMERAL\n1 left\n1 resumed\n1 create /me EPHEMERAL -> NODEEXISTS\n1 getData /work";
    assert_eq!(found(same), NOTHING);
}

#[test]
fn change_not_read_before_a_write_or_a_new_watch() {
    let told = "1 getData /a watch\n2 setData /a 1B\n1 <- changed /a 5\n";
    let then = |what: &str| found(&(told.to_owned() + what));
    assert_eq!(then("1 setData /a 1B"), ["change-not-read"]);
    let twice = "1 exists /a watch\n2 setData /a 1B\n1 <- changed /a 6\n1 exists /a watch";
    assert_eq!(then(twice), ["change-not-read"]);
    for read in [
        "",
        "1 exists /a watch\n1 getData /a",
        "1 getData /a watch\n1 setData /a 1B v4",
        "1 setData /a 1B v4 -> BADVERSION",
        "1 exists /a watch\n2 setData /a 1B\n1 <- changed /a 6\n1 getData /a watch",
    ] {
        assert_eq!(then(read), NOTHING, "{read}");
    }
    // One that never reads the data only wants to know when it changes.
    let signal = "1 exists /a watch\n2 setData /a 1B\n1 <- changed /a 5\n";
    assert_eq!(found(&signal.repeat(5)), NOTHING);
}

#[test]
fn session_per_operation_is_opened_and_closed_again_and_again() {
    let session = "# opened\n# getData /config\n# closed";
    assert_eq!(found(&repeated(1..11, session)), ["session-per-operation"]);
    assert_eq!(found(&repeated(1..10, session)), NOTHING);
    let busy = "# opened\n# getData /a\n# getData /b\n# getData /c\n# getData /d\n# closed";
    assert_eq!(found(&repeated(1..20, busy)), NOTHING);
    let idle = "# opened\n# closed";
    assert_eq!(found(&repeated(1..20, idle)), NOTHING);
    // A suite of tests opens a client for each, with a path of its own.
    let test = "# opened\n# getData /test#\n# closed";
    assert_eq!(found(&repeated(1..50, test)), NOTHING);
    // A monitor stays for events.
    let monitor = "# opened\n# getData /config watch\n# closed";
    assert_eq!(found(&repeated(1..50, monitor)), NOTHING);
    // Sessions that are older than the journal may have done more.
    assert_eq!(
        found(&repeated(1..20, "# getData /config\n# closed")),
        NOTHING
    );
}

#[test]
fn session_not_closed_expires_after_its_client_is_gone() {
    let gone = "at 0s\n# opened\n# create /a# EPHEMERAL\n# left\nat 10s\n# expired\n";
    assert_eq!(found(&repeated(1..4, gone)), ["session-not-closed"]);
    let advice = Advice::of(&journal(&repeated(1..4, gone)), &[]).unwrap();
    assert!(
        advice.findings[0].text.contains("kept 1 ephemerals"),
        "{advice}"
    );
    for other in [
        // One crash or two are no habit.
        &repeated(1..3, gone),
        // A test expires them.
        &repeated(1..9, "# opened\n# expired"),
        &repeated(1..9, "# opened\n# left\n# expired"),
        // A fault cut them off.
        &repeated(
            1..9,
            "at 0s\n# opened\n# fault disconnect\n# left\nat 10s\n# expired",
        ),
        &repeated(1..9, "# opened\n# create /a# EPHEMERAL\n# closed"),
    ] {
        assert_eq!(found(other), NOTHING, "{other}");
    }
}

#[test]
fn watch_leak_is_many_watches_that_do_not_fire() {
    let missing = |range| repeated(range, "1 exists /l/# watch -> NONODE");
    assert_eq!(found(&missing(0..100)), ["watch-leak"]);
    assert_eq!(found(&missing(0..99)), NOTHING);
    assert_eq!(
        found(&repeated(0..1_000, "1 getData /l/# watch")),
        ["watch-leak"]
    );
    assert_eq!(found(&repeated(0..999, "1 getData /l/# watch")), NOTHING);
    let fired = repeated(0..500, "1 exists /l/# watch -> NONODE\n1 <- created /l/# 5");
    assert_eq!(found(&fired), NOTHING);
    assert_eq!(
        found(&repeated(0..500, "1 exists /l/a watch -> NONODE")),
        NOTHING
    );
    // getData leaves no watch on what is missing.
    assert_eq!(
        found(&repeated(0..500, "1 getData /l/# watch -> NONODE")),
        NOTHING
    );
}

#[test]
fn recreated_ephemeral_or_parent_is_gone_in_between() {
    let refreshed = "1 create /me EPHEMERAL\n1 delete /me\n";
    assert_eq!(found(&refreshed.repeat(6)), ["recreated-ephemeral"]);
    assert_eq!(found(&refreshed.repeat(5)), NOTHING);
    let parent = "1 create /p PERSISTENT\n1 create /p/e EPHEMERAL\n1 delete /p/e\n1 delete /p\n";
    assert_eq!(found(&parent.repeat(4)), ["recreated-ephemeral"]);
    assert_eq!(found(&parent.repeat(3)), NOTHING);
    // A lock: another session waits for it, or it does something in between.
    let lock = "1 create /me EPHEMERAL\n2 create /me EPHEMERAL -> NODEEXISTS\n1 delete /me\n";
    assert_eq!(found(&lock.repeat(9)), NOTHING);
    let away = repeated(0..20, "at #s\n1 create /me EPHEMERAL\n1 delete /me");
    assert_eq!(found(&away), NOTHING);
    assert_eq!(
        found(&repeated(
            0..9,
            "1 create /me# EPHEMERAL\n1 delete /me#\n1 create /me# EPHEMERAL"
        )),
        NOTHING
    );
    let apart = "1 create /me EPHEMERAL\n1 delete /me\n1 getData /work watch\n";
    assert_eq!(found(&apart.repeat(9)), NOTHING);
    let plain = "1 create /p PERSISTENT\n1 delete /p\n";
    assert_eq!(found(&plain.repeat(9)), NOTHING);
}

#[test]
fn foreign_release_deletes_the_ephemeral_of_a_live_session() {
    let held = "1 opened\n1 create /l/a EPHEMERAL\n";
    let then = |what: &str| found(&(held.to_owned() + what));
    assert_eq!(then("2 delete /l/a"), ["foreign-release"]);
    for other in [
        "1 delete /l/a",
        "2 delete /l/a -> NONODE",
        // Left over by a session without a connection.
        "1 left\n2 delete /l/a",
        // The end of a test clears the tree.
        "2 delete /l/a\n2 delete /l",
    ] {
        assert_eq!(then(other), NOTHING, "{other}");
    }
    assert_eq!(
        found("1 opened\n1 create /a PERSISTENT\n2 delete /a"),
        NOTHING
    );
}

#[test]
fn large_data_is_half_of_the_limit() {
    assert_eq!(found("1 create /a PERSISTENT 524288B"), ["large-data"]);
    assert_eq!(
        found("1 setData /a 900000B v3 -> BADVERSION"),
        ["large-data"]
    );
    assert_eq!(
        found("1 multi [setData /a 300000B, setData /b 300000B]"),
        ["large-data"]
    );
    assert_eq!(found("1 create /a PERSISTENT 524287B"), NOTHING);
    assert_eq!(found("1 setData /a 300000B\n1 setData /b 300000B"), NOTHING);
}

#[test]
fn recursive_delete_is_one_finding_for_the_tree() {
    let children = |count| repeated(0..count, "1 delete /t/a/#");
    let whole = children(10) + "1 delete /t/a\n1 delete /t\n";
    let advice = Advice::of(&journal(&whole), &[]).unwrap();
    assert_eq!(advice.findings.len(), 1, "{advice}");
    assert_eq!(
        advice.findings[0].text,
        "session 0x1 deleted /t and 11 znodes below it one by one"
    );
    assert_eq!(found(&(children(9) + "1 delete /t/a")), NOTHING);
    assert_eq!(found(&children(50)), NOTHING);
    assert_eq!(found(&(children(10) + "2 delete /t/a")), NOTHING);
    let operations: Vec<_> = (0..20).map(|it| format!("delete /t/{it}")).collect();
    assert_eq!(
        found(&format!("1 multi [{}, delete /t]", operations.join(", "))),
        NOTHING
    );
}

#[test]
fn similar_paths_are_one_finding_and_rules_and_paths_are_silenced() {
    let text = repeated(
        10..30,
        "1 create /q/#/n- EPHEMERAL_SEQUENTIAL -> OK /q/#/n-0000000000",
    );
    let advice = Advice::of(&journal(&text), &[]).unwrap();
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
        pass.entry(&JournalEntry {
            number,
            at: Duration::ZERO,
            wall: SystemTime::UNIX_EPOCH,
            connection: None,
            session: Some(SessionId(i64::try_from(number % 1_000).unwrap() + 1)),
            address: None,
            what,
        });
    }
    let (items, groups) = pass.sizes();
    assert!(items <= 1 << 16 && groups <= 1_000, "{items} {groups}");
}
