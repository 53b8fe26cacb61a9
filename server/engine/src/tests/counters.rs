//! Counters at their limits. Source: `docs/zookeeper-protocol.md` sections 10.8 and 11.

use super::*;

fn with_counter(created_children: i32) -> Engine {
    let mut engine = engine(1, Settings::default());
    request(&mut engine, 0, create("/p", CreateMode::Persistent));
    let id = engine.state.tree.find(b"/p").unwrap();
    engine.state.tree[id].family_mut().created_children = created_children;
    engine
}

#[test]
fn sequence_number_stays_at_its_maximum() {
    let mut engine = with_counter(i32::MAX - 1);
    let numbered = || create("/p/n", CreateMode::PersistentSequential);
    assert_eq!(
        request(&mut engine, 0, numbered()).path.unwrap(),
        "/p/n2147483646"
    );
    let pzxid = engine.get("/p").unwrap().1.pzxid;
    // The last number is used, and neither the counter nor the parent's pzxid changes.
    assert_eq!(
        request(&mut engine, 0, numbered()).path.unwrap(),
        "/p/n2147483647"
    );
    assert_eq!(engine.get("/p").unwrap().1.pzxid, pzxid);
    assert_eq!(
        outcome(&mut engine, 0, numbered()),
        Err(ErrorCode::NodeExists)
    );
    let other = create("/p/m", CreateMode::PersistentSequential);
    assert_eq!(
        request(&mut engine, 0, other).path.unwrap(),
        "/p/m2147483647"
    );
}

#[test]
fn sequence_at_its_maximum_survives_a_failed_multi() {
    let mut engine = with_counter(i32::MAX);
    let before = engine.dump();
    let ops = vec![
        create_op("/p/n", CreateMode::PersistentSequential),
        check_op("/missing"),
    ];
    request(&mut engine, 0, Request::Multi(ops));
    let after = engine.dump();
    assert_eq!(
        after.split_once('\n').unwrap().1,
        before.split_once('\n').unwrap().1
    );
}

#[test]
fn negative_counter_is_printed_with_its_sign() {
    let mut engine = with_counter(-1);
    let numbered = || create("/p/n", CreateMode::PersistentSequential);
    assert_eq!(
        request(&mut engine, 0, numbered()).path.unwrap(),
        "/p/n-000000001"
    );
    assert_eq!(
        request(&mut engine, 0, numbered()).path.unwrap(),
        "/p/n0000000000"
    );
}

#[test]
fn version_wraps_and_counts_up_to_zero_again() {
    let mut engine = with_counter(0);
    let id = engine.state.tree.find(b"/p").unwrap();
    engine.state.tree[id].version = i32::MAX;
    let set = |version| Request::SetData {
        path: Some("/p".into()),
        data: None,
        version,
    };
    assert_eq!(outcome(&mut engine, 0, set(i32::MAX)), Ok(()));
    assert_eq!(engine.get("/p").unwrap().1.version, i32::MIN);
    assert_eq!(
        outcome(&mut engine, 0, set(i32::MAX)),
        Err(ErrorCode::BadVersion)
    );
    assert_eq!(outcome(&mut engine, 0, set(i32::MIN)), Ok(()));
    engine.state.tree[id].version = -2;
    // Even when the version is -1, a request with version -1 matches any version.
    for version in [-2, -1, 0] {
        assert_eq!(outcome(&mut engine, 0, set(version)), Ok(()));
    }
    assert_eq!(engine.get("/p").unwrap().1.version, 1);
}

#[test]
fn aversion_wraps() {
    let mut engine = with_counter(0);
    let id = engine.state.tree.find(b"/p").unwrap();
    engine.state.tree[id].aversion = i32::MAX;
    let set = Request::SetAcl {
        path: Some("/p".into()),
        acl: AclList::world_all(),
        version: i32::MAX,
    };
    assert_eq!(outcome(&mut engine, 0, set), Ok(()));
    assert_eq!(engine.get("/p").unwrap().1.aversion, i32::MIN);
}
