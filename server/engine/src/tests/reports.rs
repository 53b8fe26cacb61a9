//! Reports for an administrator: bounded, in a fixed order, and true to the tables.

use super::*;
use crate::{Group, Listing, Room, WatchKind, WatchSummary};

/// Creates an engine with three connections, two ephemerals, and watches in one table, in both, and
/// recursive.
fn watched() -> Engine {
    let mut engine = engine(3, Settings::default());
    for (conn, asked) in [
        (0, create("/e", CreateMode::Ephemeral)),
        (0, create("/f", CreateMode::Ephemeral)),
        (0, get("/e")),
        (0, list("/")),
        (1, get("/e")),
        (1, add_watch("/p", 0)),
        (2, add_watch("/e", 1)),
    ] {
        request(&mut engine, conn, asked);
    }
    engine
}

/// `docs/zookeeper-protocol.md` section 18.8: `wchs` counts only the data table, the watch count
/// both.
#[test]
fn watches_are_summed_in_the_data_table_and_counted_in_both() {
    let mut engine = watched();
    let summary = WatchSummary {
        connections: 3,
        paths: 2,
        watches: 4,
    };
    assert_eq!(summary_of(&engine), summary);
    // The child table has the watch on "/" and the other half of the persistent watch.
    assert_eq!(engine.watches_in_tables(), 6);

    request(&mut engine, 0, delete("/e"));
    let fired = summary_of(&engine);
    assert_eq!((fired.connections, fired.paths, fired.watches), (3, 2, 2));
    apply(&mut engine, &Input::Disconnect { conn: ConnId(1) });
    let left = summary_of(&engine);
    assert_eq!((left.connections, left.paths, left.watches), (2, 1, 1));
    assert_eq!(engine.watches_in_tables(), 1);
}

fn rows(rows: usize) -> Room {
    Room {
        rows,
        bytes: usize::MAX,
    }
}

/// A limit on the number of rows alone is not enough: ten thousand rows of 1 MB are 10 GB.
#[test]
fn listing_has_no_more_text_than_there_is_room_for() {
    let mut engine = engine(1, Settings::default());
    for count in 0..10 {
        let path = format!("/{count}{}", "x".repeat(1_000));
        request(&mut engine, 0, create(&path, CreateMode::Ephemeral));
        request(&mut engine, 0, get(&path));
    }
    let room = Room {
        rows: 100,
        bytes: 5_000,
    };
    let length = |paths: &mut dyn Iterator<Item = &String>| paths.map(String::len).sum::<usize>();
    let ephemerals = engine.ephemerals(room);
    assert_eq!(
        (ephemerals.groups[0].rows.len(), ephemerals.left_out),
        (4, 6)
    );
    assert!(length(&mut ephemerals.groups[0].rows.iter()) <= room.bytes);
    let by_conn = engine.watches_by_connection(room);
    assert_eq!((by_conn.groups[0].rows.len(), by_conn.left_out), (4, 6));
    let by_path = listed_by_path(&engine, room);
    assert_eq!((by_path.groups.len(), by_path.left_out), (4, 12));
    assert!(length(&mut by_path.groups.iter().map(|group| &group.head)) <= room.bytes);
}

#[test]
fn watches_are_listed_by_connection_and_by_path_as_far_as_there_is_room() {
    let engine = watched();
    let session = |conn| engine.session_of(ConnId(conn)).unwrap().0;
    let by_path = listed_by_path(&engine, rows(100));
    assert_eq!((by_path.groups_total, by_path.left_out), (2, 0));
    let group = |head: &str, conns: &[u32]| Group {
        head: head.to_owned(),
        rows_total: conns.len(),
        rows: conns.iter().map(|conn| session(*conn)).collect(),
    };
    assert_eq!(by_path.groups, [group("/e", &[0, 1, 2]), group("/p", &[1])]);

    let by_conn = engine.watches_by_connection(rows(4));
    assert_eq!((by_conn.groups_total, by_conn.left_out), (3, 3));
    let group = |conn, rows_total, rows: &[&str]| Group {
        head: session(conn),
        rows_total,
        rows: rows.iter().map(|path| (*path).to_owned()).collect(),
    };
    assert_eq!(
        by_conn.groups,
        [group(0, 1, &["/e"]), group(1, 2, &["/p"])],
        "two headings and two of four paths"
    );
    let none = listed_by_path(&engine, rows(0));
    assert_eq!((none.groups.len(), none.left_out), (0, 6));
}

/// `docs/zookeeper-protocol.md` section 18.7: a session whose ephemerals were deleted is still
/// listed.
#[test]
fn sessions_are_listed_by_deadline_and_with_their_ephemerals() {
    let mut engine = watched();
    request(&mut engine, 1, create("/g", CreateMode::Ephemeral));
    request(&mut engine, 1, delete("/g"));
    let ephemerals = engine.ephemerals(rows(100));
    let listed: Vec<_> = ephemerals.groups.iter().map(|group| &group.rows).collect();
    assert_eq!(listed, [&vec!["/e".to_owned(), "/f".to_owned()], &vec![]]);
    assert_eq!(ephemerals.left_out, 0);

    let expiries = engine.expiries(rows(2));
    assert_eq!((expiries.groups_total, expiries.left_out), (1, 2));
    assert_eq!(
        expiries.groups[0].head,
        engine.next_deadline_ms(Now::default()).unwrap()
    );
    assert_eq!(expiries.groups[0].rows_total, 3);
    assert_eq!(expiries.groups[0].rows.len(), 1);
}

/// `docs/zookeeper-protocol.md` section 20.1: the size excludes the server's own overhead.
#[test]
fn data_size_is_that_of_paths_and_data() {
    let mut engine = engine(1, Settings::default());
    assert_eq!(engine.data_bytes(), 44, "the four built-in znodes");
    request(&mut engine, 0, create("/abc", CreateMode::Persistent));
    assert_eq!(engine.data_bytes(), 44 + "/abcdata".len());
}

#[test]
fn scan_in_slices_visits_every_znode_once() {
    let engine = watched();
    let mut seen = Vec::new();
    let mut slot = Some(0);
    while let Some(from) = slot {
        slot = engine.scan(from, 2, |znode| {
            let (path, is_ephemeral) =
                (znode.path, matches!(znode.life(), crate::Life::Session(_)));
            seen.push((String::from_utf8_lossy(path).into_owned(), is_ephemeral));
        });
    }
    seen.sort_unstable();
    let ephemerals = seen.iter().filter(|(_, is_ephemeral)| *is_ephemeral);
    assert_eq!(
        ephemerals.map(|(path, _)| &**path).collect::<Vec<_>>(),
        ["/e", "/f"]
    );
    assert_eq!(seen.len(), engine.counts().znodes);
    seen.dedup();
    assert_eq!(seen.len(), engine.counts().znodes);
    assert_eq!(engine.scan(usize::MAX, usize::MAX, |_| panic!()), None);
}

#[test]
fn watchers_of_a_path_are_listed_with_each_kind() {
    let engine = watched();
    let session = |conn| engine.session_of(ConnId(conn)).expect("it has one").0;
    let watchers = |path| engine.watchers(path).collect::<Vec<_>>();
    assert_eq!(
        watchers("/e"),
        [
            (session(0), WatchKind::Data),
            (session(1), WatchKind::Data),
            (session(2), WatchKind::PersistentRecursive),
        ]
    );
    assert_eq!(watchers("/"), [(session(0), WatchKind::Children)]);
    assert_eq!(watchers("/p"), [(session(1), WatchKind::Persistent)]);
    assert_eq!(watchers("/f"), []);
    assert_eq!(watchers("/absent"), []);
    assert!(engine.has_recursive_watches());
}

#[test]
fn children_and_lease_are_read_alone() {
    let mut engine = watched();
    let names: Vec<_> = engine.child_names("/").collect();
    assert_eq!(names, [&b"zookeeper"[..], b"e", b"f"]);
    assert_eq!(engine.child_names("/absent").count(), 0);
    let (id, timeout_ms) = engine.session_of(ConnId(0)).expect("it has one");
    let lease = engine.session_lease(id).expect("it exists");
    assert_eq!(
        (lease.timeout_ms, lease.conn),
        (timeout_ms, Some(ConnId(0)))
    );
    apply(&mut engine, &Input::Disconnect { conn: ConnId(0) });
    assert_eq!(engine.session_lease(id).expect("it lives on").conn, None);
    assert_eq!(engine.session_lease(SessionId(7)), None);
}

fn listed_by_path(engine: &Engine, room: Room) -> Listing<String, SessionId> {
    let mut listing = Listing::new(room);
    let mut next = Some(0);
    while let Some(from) = next {
        next =
            engine.scan_watched_paths(from, 2, |path, sessions| listing.add_path(path, sessions));
    }
    listing
}

fn summary_of(engine: &Engine) -> WatchSummary {
    let room = Room { rows: 0, bytes: 0 };
    WatchSummary {
        paths: listed_by_path(engine, room).groups_total,
        ..engine.watch_summary()
    }
}
