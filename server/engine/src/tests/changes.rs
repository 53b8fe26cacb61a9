//! What has changed since a mark.

use minikeeper_protocol::CreateMode;

use super::*;
use crate::{Mark, report::changes::ZnodeState};

/// Returns the changes as text: the path, with the data before and after.
fn changes(engine: &Engine, mark: Mark) -> Vec<String> {
    let data = |state: Option<ZnodeState<'_>>| {
        let data = state.map(|state| String::from_utf8_lossy(state.data.unwrap_or(b"null")));
        data.map_or_else(|| "-".to_owned(), |data| format!("{data:?}"))
    };
    let changes = engine.changes_since(mark).unwrap();
    changes
        .iter()
        .map(|change| {
            let path = String::from_utf8_lossy(change.path);
            format!("{path} {} {}", data(change.before), data(change.after))
        })
        .collect()
}

#[test]
fn changes_are_those_between_the_mark_and_now() {
    let mut engine = engine(2, Settings::default());
    for path in ["/a", "/b", "/c", "/d"] {
        request(&mut engine, 0, create(path, CreateMode::Persistent));
        request(&mut engine, 0, set(path, b"1"));
    }
    let mark = engine.mark();
    assert_eq!(changes(&engine, mark), [""; 0]);
    for change in [
        set("/a", b"2"),
        set("/a", b"3"),
        delete("/b"),
        // In the slot of /b, and gone again.
        create("/x", CreateMode::Persistent),
        delete("/x"),
        create("/new", CreateMode::Ephemeral),
        // Deleted and created again with the same data.
        delete("/c"),
        create("/c", CreateMode::Persistent),
        set("/c", b"1"),
        set("/d", b"2"),
        set("/d", b"1"),
    ] {
        request(&mut engine, 0, change);
    }
    let new = engine.get("/new").unwrap().0.unwrap();
    let new = format!("/new - {:?}", String::from_utf8_lossy(new));
    let wanted = [r#"/a "1" "3""#, r#"/b "1" -"#, &new];
    assert_eq!(changes(&engine, mark), wanted);
    let second = engine.mark();
    request(&mut engine, 0, set("/a", b"1"));
    assert_eq!(changes(&engine, mark), &wanted[1..]);
    assert_eq!(changes(&engine, second), [r#"/a "3" "1""#]);
    assert!(engine.has_mark(second) && engine.forget_mark(second));
    assert!(!engine.has_mark(second));
    assert_eq!(engine.changes_since(second), None);
}

/// Whatever a random client has done, undoing it gives what `before` says.
#[test]
fn changes_lead_back_to_the_state_at_the_mark() {
    let mut numbers = Numbers(minikeeper_test_kit::random::seed());
    let data_of = |engine: &Engine| -> std::collections::BTreeMap<Vec<u8>, Option<Vec<u8>>> {
        let znodes = engine.image().znodes();
        znodes
            .map(|znode| (znode.path.to_vec(), znode.data.map(<[u8]>::to_vec)))
            .collect()
    };
    for _ in 0..50 {
        let mut engine = engine(1, Settings::default());
        let mut change = |engine: &mut Engine| {
            let path = format!("/{}", numbers.below(6));
            let change = match numbers.below(4) {
                0 => create(&path, CreateMode::Persistent),
                1 => delete(&path),
                2 => set(&path, b"1"),
                _ => set(&path, b"2"),
            };
            request(engine, 0, change);
        };
        (0..20).for_each(|_| change(&mut engine));
        let (mark, before) = (engine.mark(), data_of(&engine));
        (0..30).for_each(|_| change(&mut engine));
        let mut undone = data_of(&engine);
        for change in engine.changes_since(mark).unwrap() {
            let data = |state: ZnodeState<'_>| state.data.map(<[u8]>::to_vec);
            let now = undone.remove(change.path);
            assert_eq!(now, change.after.map(data));
            if let Some(before) = change.before {
                undone.insert(change.path.to_vec(), data(before));
            }
        }
        assert_eq!(undone, before);
    }
}
