//! The judge on histories written by hand.

use super::{Finding, judge};
use crate::{
    history::{Event, History, What},
    peers::{Access, Kind},
};

/// A history from `(time, contender, what)`.
fn history(kind: Kind, contenders: usize, events: &[(u64, u32, What)]) -> History {
    History {
        kind,
        sessions: (0..contenders).map(|at| format!("s{at}")).collect(),
        events: events
            .iter()
            .map(|(at_ns, contender, what)| Event {
                at_ns: *at_ns,
                contender: *contender,
                what: *what,
            })
            .collect(),
    }
}

const ASKED: What = What::Asked(Access::Exclusive);
const READS: What = What::Asked(Access::Shared);
const GRANTED: What = What::Granted { token: None };

const fn token(token: u64) -> What {
    What::Granted { token: Some(token) }
}

const fn wrote(token: u64, is_accepted: bool) -> What {
    What::Wrote {
        token: Some(token),
        is_accepted,
    }
}

/// The events of one hold, from the request to the return of release.
fn hold(from: u64, to: u64, who: u32, granted: What) -> [(u64, u32, What); 4] {
    [
        (from - 1, who, ASKED),
        (from, who, granted),
        (to, who, What::Releasing),
        (to + 1, who, What::Released),
    ]
}

fn sorted(parts: &[[(u64, u32, What); 4]]) -> Vec<(u64, u32, What)> {
    let mut events: Vec<_> = parts.iter().flatten().copied().collect();
    events.sort_by_key(|event| event.0);
    events
}

#[test]
fn one_after_the_other_holds() {
    let events = sorted(&[hold(10, 20, 0, token(5)), hold(20, 30, 1, token(6))]);
    let verdict = judge(&history(Kind::Mutex, 2, &events), Some(0.5));
    assert_eq!(verdict.exclusion, Finding::Holds { checked: 2 });
    assert_eq!(verdict.fencing, Finding::Holds { checked: 2 });
    assert_eq!((verdict.unknown, verdict.refusal), (0, None));
}

#[test]
fn overlap_is_found_and_the_smallest_shown() {
    let events = sorted(&[
        hold(10, 50, 0, GRANTED),
        hold(20, 60, 1, GRANTED),
        hold(100, 110, 2, GRANTED),
        hold(105, 120, 0, GRANTED),
    ]);
    let verdict = judge(&history(Kind::Mutex, 3, &events), None);
    let Finding::Violated {
        times,
        counterexample,
    } = verdict.exclusion
    else {
        panic!("{verdict:?}");
    };
    assert_eq!(times, 2);
    // The second pair took less time.
    let expected = ["contender 2: asks", "contender 2: HAS", "contender 0: asks"];
    let lines: Vec<_> = counterexample.lines().collect();
    assert!(
        expected
            .iter()
            .zip(&lines)
            .all(|(part, line)| line.contains(part)),
        "{counterexample}"
    );
    assert_eq!(lines.len(), 5, "{counterexample}");
    assert!(
        verdict
            .refusal
            .is_some_and(|why| why.contains("more contenders"))
    );
}

#[test]
fn hold_ends_where_its_client_learns_of_the_loss_or_dies() {
    for end in [What::Lost, What::Died] {
        let mut events = vec![(1, 0, ASKED), (2, 0, GRANTED), (10, 0, end)];
        events.extend(hold(11, 20, 1, GRANTED));
        let verdict = judge(&history(Kind::Mutex, 2, &events), None);
        assert_eq!(verdict.exclusion, Finding::Holds { checked: 2 }, "{end:?}");
    }
    // Without such an event there are two holders.
    let mut events = vec![(1, 0, ASKED), (2, 0, GRANTED)];
    events.extend(hold(11, 20, 1, GRANTED));
    assert!(
        judge(&history(Kind::Mutex, 2, &events), None)
            .exclusion
            .is_violated()
    );
}

#[test]
fn readers_share_and_writers_do_not() {
    let read = |from, to, who| {
        let mut part = hold(from, to, who, GRANTED);
        part[0].2 = READS;
        part
    };
    let shared = sorted(&[read(10, 30, 0), read(15, 25, 1), hold(31, 40, 2, GRANTED)]);
    let verdict = judge(&history(Kind::ReadWrite, 3, &shared), None);
    assert_eq!(verdict.exclusion, Finding::Holds { checked: 3 });
    let broken = sorted(&[read(10, 30, 0), hold(15, 25, 1, GRANTED)]);
    assert!(
        judge(&history(Kind::ReadWrite, 2, &broken), None)
            .exclusion
            .is_violated()
    );
}

#[test]
fn semaphore_counts_its_leases() {
    let two = [hold(10, 30, 0, GRANTED), hold(12, 32, 1, GRANTED)];
    let of = |leases, events: &[_], contenders| {
        judge(&history(Kind::Semaphore(leases), contenders, events), None).exclusion
    };
    let three = sorted(&[two[0], two[1], hold(14, 34, 2, GRANTED)]);
    assert_eq!(of(2, &sorted(&two), 3), Finding::Holds { checked: 2 });
    assert!(of(2, &three, 3).is_violated());
    // As many leases as contenders: it cannot go wrong, so nothing was checked.
    assert!(matches!(of(3, &three, 3), Finding::NotChecked(_)));
}

#[test]
fn tokens_have_to_rise() {
    for second in [5, 4] {
        let events = sorted(&[hold(10, 20, 0, token(5)), hold(20, 30, 1, token(second))]);
        let verdict = judge(&history(Kind::Mutex, 2, &events), None);
        assert!(verdict.fencing.is_violated(), "{second}");
        assert!(verdict.refusal.is_some(), "{second}");
    }
}

/// A late write that is refused is what tokens are for; one that is accepted is a lost update.
#[test]
fn late_writes_have_to_be_refused() {
    let with = |late: What| {
        let mut events = vec![
            (1, 0, ASKED),
            (2, 0, token(5)),
            (3, 0, wrote(5, true)),
            (9, 1, ASKED),
            (10, 1, token(6)),
            (11, 1, wrote(6, true)),
            (12, 1, What::Releasing),
            (13, 1, What::Released),
        ];
        events.extend([(20, 0, late), (21, 0, What::Releasing)]);
        events.push((22, 0, What::ReleaseRefused));
        judge(&history(Kind::Mutex, 2, &events), None)
    };
    let refused = with(wrote(5, false));
    assert_eq!(refused.fencing, Finding::Holds { checked: 2 });
    assert!(
        refused.exclusion.is_violated(),
        "it believed in its lock throughout"
    );
    let Finding::Violated { counterexample, .. } = with(wrote(5, true)).fencing else {
        panic!("a lost update");
    };
    assert!(counterexample.contains("contender 0: writes with token 5: accepted"));
}

#[test]
fn rightful_write_must_not_be_refused() {
    let mut events = vec![
        (1, 0, ASKED),
        (2, 0, token(5)),
        (3, 0, wrote(5, false)),
        (4, 0, What::Releasing),
        (5, 0, What::Released),
    ];
    events.extend(hold(10, 20, 1, token(6)));
    assert!(
        judge(&history(Kind::Mutex, 2, &events), None)
            .fencing
            .is_violated()
    );
}

#[test]
fn late_write_without_a_token_is_a_lost_update_too() {
    let write = What::Wrote {
        token: None,
        is_accepted: true,
    };
    let mut events = vec![(1, 0, ASKED), (2, 0, GRANTED), (9, 1, ASKED)];
    events.extend([(10, 1, GRANTED), (11, 1, write), (12, 1, What::Releasing)]);
    events.extend([
        (13, 1, What::Released),
        (20, 0, write),
        (21, 0, What::Releasing),
    ]);
    assert!(
        judge(&history(Kind::Mutex, 2, &events), None)
            .fencing
            .is_violated()
    );
}

#[test]
fn unchecked_question_is_not_a_pass() {
    let alone = sorted(&[hold(10, 20, 0, token(1)), hold(30, 40, 0, token(2))]);
    let verdict = judge(&history(Kind::Mutex, 2, &alone), None);
    assert!(matches!(verdict.exclusion, Finding::NotChecked(_)));
    let without = sorted(&[hold(10, 20, 0, GRANTED), hold(30, 40, 1, GRANTED)]);
    let verdict = judge(&history(Kind::Mutex, 2, &without), None);
    assert!(matches!(verdict.fencing, Finding::NotChecked(_)));
    let empty = judge(&history(Kind::Mutex, 2, &[]), None);
    assert!(matches!(empty.exclusion, Finding::NotChecked(_)));
    assert!(empty.refusal.is_some());
}

#[test]
fn unknown_outcomes_are_counted() {
    let mut events = vec![(1, 0, ASKED), (2, 0, What::AcquireUnknown)];
    events.extend(hold(10, 20, 1, GRANTED));
    events.extend([(30, 0, ASKED), (31, 0, GRANTED), (32, 0, What::Releasing)]);
    events.push((33, 0, What::ReleaseUnknown));
    let verdict = judge(&history(Kind::Mutex, 2, &events), None);
    assert_eq!(verdict.unknown, 2);
    assert_eq!(verdict.exclusion, Finding::Holds { checked: 2 });
}

#[test]
fn shared_sessions_and_busy_generators_are_not_published() {
    let events = sorted(&[hold(10, 20, 0, GRANTED), hold(20, 30, 1, GRANTED)]);
    let mut shared = history(Kind::Mutex, 2, &events);
    shared.sessions[1] = "s0".into();
    let why = judge(&shared, None).refusal.expect("one session for two");
    assert_eq!(why, "contenders 0 and 1 share session s0");
    shared.sessions[1].clear();
    assert!(judge(&shared, None).refusal.is_some());
    let busy = judge(&history(Kind::Mutex, 2, &events), Some(0.99));
    assert!(busy.refusal.is_some_and(|why| why.contains("saturated")));
}

#[test]
fn nonsense_is_not_judged() {
    let verdict = judge(&history(Kind::Mutex, 1, &[(5, 0, GRANTED)]), None);
    let why = verdict.refusal.expect("granted without being asked for");
    assert!(why.contains("which is idle"), "{why}");
}
