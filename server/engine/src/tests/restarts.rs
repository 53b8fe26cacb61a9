//! The state after a restart. Source: `docs/zookeeper-protocol.md` section 14.7.

use super::*;
use crate::Keep;

const LATER: Now = Now {
    elapsed_ms: 1_000_000,
    wall_ms: 1_000_000,
};

/// Creates an engine with a session on connection 0 that has an ephemeral, a container and a watch.
fn used() -> Engine {
    let mut engine = engine(1, Settings::default());
    for asked in [
        create("/p", CreateMode::Persistent),
        create("/e", CreateMode::Ephemeral),
        create("/c", CreateMode::Container),
        get("/p"),
    ] {
        assert_eq!(outcome(&mut engine, 0, asked), Ok(()));
    }
    engine
}

#[test]
fn restart_with_everything_keeps_znodes_and_sessions_with_their_full_timeout() {
    let mut engine = used();
    let before = engine.dump();
    let znodes = |dump: &str| {
        let lines = dump.lines().filter(|line| line.starts_with("znode "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let (zxid, sessions) = (engine.zxid(), engine.image().sessions());
    let mark = engine.mark();
    engine.restart(Keep::Everything, LATER);
    engine.check().unwrap();
    assert_eq!(znodes(&engine.dump()), znodes(&before));
    assert_eq!(engine.zxid(), zxid);
    assert_eq!(engine.image().sessions(), sessions);
    assert!(engine.sessions().all(|(.., conn)| conn.is_none()));
    assert_eq!(engine.counts().watches, 0);
    // Ten seconds from the restart, rounded up to the next tick of three.
    assert_eq!(engine.next_deadline_ms(Now::default()), Some(1_011_000));
    assert!(!engine.rewind(mark, LATER, &mut Seen::default()));
    // The connection is no longer known.
    engine.apply(
        LATER,
        &Input::Disconnect { conn: ConnId(0) },
        &mut Seen::default(),
    );
    engine.check().unwrap();
}

#[test]
fn restart_with_data_drops_sessions_and_ephemerals() {
    let mut engine = used();
    let zxid = engine.zxid();
    engine.restart(Keep::Data, LATER);
    engine.check().unwrap();
    assert_eq!(engine.children("/").unwrap(), ["zookeeper", "p", "c"]);
    assert_eq!(engine.sessions().count(), 0);
    assert_eq!(engine.zxid(), Zxid(zxid.0 + 1));
    assert_eq!(engine.get("/").unwrap().1.pzxid, engine.zxid());
    // The container is still cleaned up.
    assert!(engine.next_tick_ms().is_some());
}

#[test]
fn restart_with_nothing_empties_the_tree_but_zxids_and_session_ids_continue() {
    let mut engine = used();
    let (zxid, next) = (engine.zxid(), engine.next_session_id());
    let mark = engine.mark();
    engine.restart(Keep::Nothing, LATER);
    engine.check().unwrap();
    assert_eq!(engine.children("/").unwrap(), ["zookeeper"]);
    assert_eq!(engine.counts().znodes, 4);
    assert_eq!(engine.zxid(), Zxid(zxid.0 + 1));
    assert_eq!(engine.next_session_id(), next);
    // A mark from before the restart does not match one set after it.
    let new = engine.mark();
    assert_ne!(new, mark);
    assert!(!engine.rewind(mark, LATER, &mut Seen::default()));
}

#[test]
fn zxids_and_session_ids_of_a_replaced_state_continue_from_both_states() {
    let mut engine = used();
    let settings = Settings {
        first_session_id: SessionId(1 << 60),
        ..Settings::default()
    };
    let mut other = super::engine(1, settings);
    assert_eq!(
        outcome(&mut other, 0, create("/o", CreateMode::Ephemeral)),
        Ok(())
    );
    let (zxid, next) = (engine.zxid(), other.next_session_id());
    engine.replace(other, LATER);
    engine.check().unwrap();
    assert_eq!(engine.children("/").unwrap(), ["zookeeper", "o"]);
    assert_eq!(engine.zxid(), Zxid(zxid.0 + 1));
    assert_eq!(engine.next_session_id(), next);
    assert_eq!(engine.next_deadline_ms(Now::default()), Some(1_011_000));
}
