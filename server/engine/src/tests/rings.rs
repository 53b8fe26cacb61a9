//! Rings of watches: which connections get events, in which order, and which watches stay.

use super::*;

fn notified(seen: &Seen) -> Vec<u32> {
    seen.events.iter().map(|(conn, ..)| *conn).collect()
}

fn with_znode(conns: u32) -> Engine {
    let mut engine = engine(conns, Settings::default());
    request(&mut engine, 0, create("/x", CreateMode::Persistent));
    engine
}

#[test]
fn watchers_get_events_in_the_order_of_registration() {
    let mut engine = with_znode(4);
    for conn in [2, 0, 3, 1] {
        request(&mut engine, conn, get("/x"));
    }
    assert_eq!(
        notified(&request(&mut engine, 0, set("/x", b""))),
        [2, 0, 3, 1]
    );
    assert_eq!(engine.counts().watches, 0);
    assert!(notified(&request(&mut engine, 0, set("/x", b""))).is_empty());
}

#[test]
fn one_shots_leave_the_ring_and_persistent_watches_stay() {
    // Every subset of four watchers is persistent, so that heads, tails and whole rings are
    // removed.
    for persistent in 0..16_u32 {
        let mut engine = with_znode(4);
        for conn in 0..4 {
            let is_persistent = persistent & (1 << conn) != 0;
            let watch = if is_persistent {
                add_watch("/x", 0)
            } else {
                get("/x")
            };
            request(&mut engine, conn, watch);
        }
        assert_eq!(
            notified(&request(&mut engine, 0, set("/x", b""))),
            [0, 1, 2, 3]
        );
        let left: Vec<_> = (0..4)
            .filter(|conn| persistent & (1 << conn) != 0)
            .collect();
        assert_eq!(notified(&request(&mut engine, 0, set("/x", b""))), left);
        assert_eq!(engine.counts().watches, left.len());
    }
}

#[test]
fn firing_removes_only_the_one_shot_mode_of_a_persistent_watch() {
    let mut engine = with_znode(2);
    request(&mut engine, 1, add_watch("/x", 0));
    request(&mut engine, 1, get("/x"));
    request(&mut engine, 1, list("/x"));
    assert_eq!(engine.counts().watches, 1);
    assert_eq!(notified(&request(&mut engine, 0, delete("/x"))), [1]);
    assert_eq!(engine.counts().watches, 1);
    let seen = request(&mut engine, 0, create("/x", CreateMode::Persistent));
    assert_eq!(notified(&seen), [1]);
}

#[test]
fn watches_move_to_the_path_on_deletion_and_back_on_creation() {
    let mut engine = with_znode(3);
    for conn in [2, 1] {
        request(&mut engine, conn, add_watch("/x", 0));
    }
    for _ in 0..3 {
        assert_eq!(notified(&request(&mut engine, 0, delete("/x"))), [2, 1]);
        assert_eq!(engine.state.watches.absent_paths().count(), 1);
        let seen = request(&mut engine, 0, create("/x", CreateMode::Persistent));
        assert_eq!(notified(&seen), [2, 1]);
        assert_eq!(engine.state.watches.absent_paths().count(), 0);
    }
}

#[test]
fn disconnect_removes_the_connection_from_every_ring() {
    for gone in 0..3 {
        let mut engine = with_znode(3);
        request(&mut engine, 0, create("/y", CreateMode::Persistent));
        for conn in 0..3 {
            for path in ["/x", "/y", "/missing"] {
                request(&mut engine, conn, add_watch(path, 0));
                request(&mut engine, conn, list(path));
            }
        }
        apply(&mut engine, &Input::Disconnect { conn: ConnId(gone) });
        let left: Vec<_> = (0..3).filter(|conn| *conn != gone).collect();
        assert_eq!(engine.counts().watches, 6);
        let writer = left[0];
        for path in ["/x", "/y"] {
            assert_eq!(
                notified(&request(&mut engine, writer, set(path, b""))),
                left
            );
        }
        let seen = request(
            &mut engine,
            writer,
            create("/missing", CreateMode::Persistent),
        );
        assert_eq!(notified(&seen), left);
    }
}

#[test]
fn count_of_recursive_watches_falls_to_zero_with_the_last() {
    let mut engine = with_znode(2);
    request(&mut engine, 0, add_watch("/", 1));
    request(&mut engine, 0, add_watch("/", 1));
    request(&mut engine, 1, add_watch("/x", 1));
    assert_eq!(engine.state.watches.recursive(), 2);
    let path = Some("/".into());
    request(&mut engine, 0, Request::RemoveWatches { path, kind: 5 });
    assert_eq!(engine.state.watches.recursive(), 1);
    apply(&mut engine, &Input::Disconnect { conn: ConnId(1) });
    assert_eq!(engine.state.watches.recursive(), 0);
}

#[test]
fn reused_connection_number_starts_without_watches() {
    let mut engine = with_znode(2);
    request(&mut engine, 1, get("/x"));
    apply(&mut engine, &Input::Disconnect { conn: ConnId(1) });
    open(&mut engine, 1);
    assert!(notified(&request(&mut engine, 0, set("/x", b""))).is_empty());
}

#[test]
fn watch_on_an_invalid_path_is_removed_with_its_connection() {
    let mut engine = engine(1, Settings::default());
    for path in ["", "nonsense", "//", "/x/"] {
        assert_eq!(outcome(&mut engine, 0, add_watch(path, 0)), Ok(()));
    }
    assert_eq!(engine.counts().watches, 4);
    apply(&mut engine, &Input::Disconnect { conn: ConnId(0) });
    assert_eq!(engine.counts().watches, 0);
    assert_eq!(engine.state.watches.absent_paths().count(), 0);
}
