//! A copy made in pieces shows the state at its beginning, whatever happens in between.

use super::*;
use crate::{CopyStep, EngineCopy, work::visits};

/// Everything that a copy has.
fn shown(engine: &Engine) -> String {
    let mut text = format!("{:?}\n{:?}\n", engine.zxid(), engine.image().sessions());
    for (id, list) in engine.image().access_lists() {
        text += &format!("{id} {list:?}\n");
    }
    for znode in engine.image().znodes() {
        text += &format!("{znode:?}\n");
    }
    text
}

/// Copies the rest in pieces of this many slots, with a change before each.
fn copied(engine: &mut Engine, slots: usize, mut change: impl FnMut(&mut Engine)) -> EngineCopy {
    loop {
        change(engine);
        match engine.copy_more(slots, usize::MAX) {
            CopyStep::More => {}
            CopyStep::Whole(copy) => return copy,
            CopyStep::Lost => panic!("the state was not replaced"),
        }
    }
}

#[test]
fn copy_shows_the_state_at_its_beginning_whatever_changes_meanwhile() {
    let mut changes = 0;
    for seed in 0..60 {
        let mut numbers = Numbers(seed);
        let mut engine = engine(2, Settings::default());
        let mut change = |engine: &mut Engine| {
            let names = ["/a", "/b", "/a/x", "/a/y", "/a/x/1", "/c", "/d", "/e"];
            let path = names[numbers.index(names.len())];
            let conn = u32::from(numbers.below(2) == 0);
            let modes = [
                CreateMode::Persistent,
                CreateMode::Ephemeral,
                CreateMode::Container,
                CreateMode::PersistentSequential,
            ];
            let acl = AclList::new(&[minikeeper_protocol::Acl {
                perms: minikeeper_protocol::Perms::ALL,
                scheme: Some("world".into()),
                id: Some("anyone".into()),
            }]);
            let asked = match numbers.below(9) {
                0..4 => create(path, modes[numbers.index(modes.len())]),
                4 => set(path, b"other"),
                5 => Request::SetAcl {
                    path: Some(path.into()),
                    acl,
                    version: -1,
                },
                6 => get(path),
                7 => Request::Multi(vec![
                    create_op("/multi", CreateMode::Persistent),
                    delete_op("/multi"),
                    delete_op(path),
                ]),
                _ => delete(path),
            };
            request(engine, conn, asked);
            changes += 1;
        };
        for _ in 0..15 {
            change(&mut engine);
        }
        let mark = (seed % 3 == 0).then(|| engine.mark());
        for _ in 0..5 {
            change(&mut engine);
        }
        let before = shown(&engine);
        engine.begin_copy();
        // Pieces beyond the first, so that changes come before and behind them.
        let mut rounds = 0;
        let copy = copied(&mut engine, 1, |engine| {
            change(engine);
            rounds += 1;
            if let Some(mark) = mark.filter(|_| rounds == 5) {
                engine.rewind(mark, Now::default(), &mut Seen::default());
            }
        });
        let copy = copy.finish(SessionId(9));
        copy.check().unwrap();
        engine.check().unwrap();
        assert_eq!(shown(&copy), before, "seed {seed}");
    }
    assert!(changes > 1_000, "{changes}");
}

/// An export of 300,000 znodes held the lock for 4 s.
#[test]
fn no_piece_of_a_copy_is_larger_than_asked() {
    let mut engine = engine(1, Settings::default());
    for number in 0..5 {
        let ops = (0..1_000).map(|at| create_op(&format!("/{number}-{at}"), CreateMode::Ephemeral));
        request(&mut engine, 0, Request::Multi(ops.collect()));
    }
    assert!(visits(|| engine.begin_copy()) <= 1);
    let mut pieces = 0;
    loop {
        let mut step = CopyStep::Lost;
        let visits = visits(|| step = engine.copy_more(100, usize::MAX));
        assert!(visits <= 100, "{visits} visits");
        pieces += 1;
        // A change copies what it changes: here a znode, its parent and its sibling.
        let (_, visits) = {
            let path = format!("/new-{pieces}");
            let input = Input::Request {
                conn: ConnId(0),
                xid: Xid(1),
                request: create(&path, CreateMode::Persistent),
            };
            let mut seen = Seen::default();
            let visits = crate::work::visits(|| engine.apply(Now::default(), &input, &mut seen));
            (seen, visits)
        };
        assert!(visits <= 3, "{visits} visits");
        match step {
            CopyStep::More => {}
            CopyStep::Whole(copy) => {
                let copy = copy.finish(SessionId(9));
                assert_eq!(copy.counts().ephemerals, 5_000);
                copy.check().unwrap();
                break;
            }
            CopyStep::Lost => panic!("the state was not replaced"),
        }
    }
    assert!(pieces >= 50, "{pieces}");
}

#[test]
fn pieces_are_bounded_in_bytes_too() {
    let mut engine = engine(1, Settings::default());
    for number in 0..10 {
        let path = format!("/{number}");
        let create = Create::new(&path, &[7; 10_000], CreateMode::Persistent);
        request(&mut engine, 0, Request::Create(create));
    }
    engine.begin_copy();
    let mut pieces = 1;
    while matches!(engine.copy_more(usize::MAX, 10_000), CopyStep::More) {
        pieces += 1;
    }
    assert!(pieces >= 10, "{pieces}");
}

#[test]
fn copy_is_lost_when_the_state_is_replaced() {
    let mut engine = engine(1, Settings::default());
    assert!(matches!(engine.copy_more(1, 1), CopyStep::Lost));
    engine.begin_copy();
    assert!(matches!(engine.copy_more(1, 1), CopyStep::More));
    engine.restart(crate::Keep::Nothing, Now::default());
    assert!(matches!(engine.copy_more(1, 1), CopyStep::Lost));
}
