//! Quotas: `docs/zookeeper-protocol.md` section 16. The differential tester compares them with a
//! live 3.9.5.

use super::*;
use crate::state::{State, keys::AclId, quota::Growth, znode::Owner};

fn enforcing() -> Engine {
    engine(
        1,
        Settings {
            enforce_quota: true,
            ..Settings::default()
        },
    )
}

/// Sets a quota as zkCli's setquota does: creates the ancestors, the limits, then the stats.
fn set_quota(engine: &mut Engine, path: &str, limits: &str) {
    let mut at = "/zookeeper/quota".to_owned();
    for name in path[1..].split('/') {
        at = format!("{at}/{name}");
        let _ = outcome(engine, 0, create(&at, CreateMode::Persistent));
    }
    for (name, data) in [
        ("zookeeper_limits", limits),
        ("zookeeper_stats", "count=0,bytes=0"),
    ] {
        let path = format!("{at}/{name}");
        let asked = Create::new(&path, data.as_bytes(), CreateMode::Persistent);
        outcome(engine, 0, Request::Create(asked)).unwrap();
    }
}

fn stats(engine: &Engine, path: &str) -> String {
    let path = format!("/zookeeper/quota{path}/zookeeper_stats");
    let (data, stat) = engine.get(&path).unwrap();
    // `docs/zookeeper-protocol.md` section 16, rule 4: neither version nor mzxid changes.
    assert_eq!((stat.version, stat.mzxid), (0, stat.czxid));
    String::from_utf8(data.unwrap().to_vec()).unwrap()
}

#[test]
fn creating_the_stats_counts_the_existing_znodes() {
    // `docs/zookeeper-protocol.md` section 16, rule 3: the znode itself included.
    let mut engine = engine(1, Settings::default());
    for path in ["/a", "/a/b", "/a/b/c"] {
        outcome(&mut engine, 0, create(path, CreateMode::Persistent)).unwrap();
    }
    set_quota(&mut engine, "/a", "count=10,bytes=100");
    assert_eq!(stats(&engine, "/a"), "count=3,bytes=12");
}

#[test]
fn changes_are_counted_only_for_the_deepest_quota() {
    // `docs/zookeeper-protocol.md` section 16, rule 4.
    let mut engine = engine(1, Settings::default());
    for path in ["/a", "/a/b"] {
        outcome(&mut engine, 0, create(path, CreateMode::Persistent)).unwrap();
    }
    set_quota(&mut engine, "/a", "count=10,bytes=-1");
    set_quota(&mut engine, "/a/b", "count=10,bytes=-1");
    outcome(&mut engine, 0, create("/a/b/c", CreateMode::Persistent)).unwrap();
    outcome(&mut engine, 0, set("/a/b/c", b"123456")).unwrap();
    assert_eq!(stats(&engine, "/a/b"), "count=2,bytes=10");
    assert_eq!(stats(&engine, "/a"), "count=2,bytes=8");
    outcome(&mut engine, 0, delete("/a/b/c")).unwrap();
    assert_eq!(stats(&engine, "/a/b"), "count=1,bytes=4");
}

#[test]
fn quota_ends_when_its_limits_are_deleted() {
    // `docs/zookeeper-protocol.md` section 16, rule 3.
    let mut engine = engine(1, Settings::default());
    outcome(&mut engine, 0, create("/a", CreateMode::Persistent)).unwrap();
    set_quota(&mut engine, "/a", "count=1,bytes=-1");
    let limits = "/zookeeper/quota/a/zookeeper_limits";
    outcome(&mut engine, 0, delete(limits)).unwrap();
    outcome(&mut engine, 0, create("/a/b", CreateMode::Persistent)).unwrap();
    assert_eq!(stats(&engine, "/a"), "count=1,bytes=4");
}

#[test]
fn soft_limits_and_limits_that_are_not_enforced_refuse_nothing() {
    // `docs/zookeeper-protocol.md` section 16, rules 5 and 6.
    for (is_enforced, limits) in [
        (true, "count=1,bytes=1"),
        (false, "count=1,bytes=1=;byteHardLimit=1;countHardLimit=1"),
    ] {
        let settings = Settings {
            enforce_quota: is_enforced,
            ..Settings::default()
        };
        let mut engine = engine(1, settings);
        outcome(&mut engine, 0, create("/a", CreateMode::Persistent)).unwrap();
        set_quota(&mut engine, "/a", limits);
        outcome(&mut engine, 0, create("/a/b", CreateMode::Persistent)).unwrap();
        outcome(&mut engine, 0, set("/a/b", b"much more")).unwrap();
        assert_eq!(stats(&engine, "/a"), "count=2,bytes=13");
    }
}

#[test]
fn change_beyond_a_hard_limit_is_refused() {
    // `docs/zookeeper-protocol.md` section 16, rule 6, and 10.8: checked before the version.
    let mut engine = enforcing();
    outcome(&mut engine, 0, create("/a", CreateMode::Persistent)).unwrap();
    let limits = "count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=2";
    set_quota(&mut engine, "/a", limits);
    outcome(&mut engine, 0, create("/a/b", CreateMode::Persistent)).unwrap();
    let refused = Err(ErrorCode::QuotaExceeded);
    let more = create("/a/c", CreateMode::Persistent);
    assert_eq!(outcome(&mut engine, 0, more), refused);
    assert_eq!(outcome(&mut engine, 0, set("/a/b", b"1234567")), refused);
    let stale = Request::SetData {
        path: Some("/a/b".into()),
        data: Some((&b"1234567"[..]).into()),
        version: 9,
    };
    assert_eq!(outcome(&mut engine, 0, stale), refused);
    outcome(&mut engine, 0, set("/a/b", b"123456")).unwrap();
    assert_eq!(stats(&engine, "/a"), "count=2,bytes=10");
}

#[test]
fn multi_is_checked_against_the_usage_before_it() {
    // `docs/zookeeper-protocol.md` section 16, rule 6: the usage lags behind requests in flight,
    // also behind those of one multi.
    let mut engine = enforcing();
    outcome(&mut engine, 0, create("/a", CreateMode::Persistent)).unwrap();
    set_quota(&mut engine, "/a", "count=-1,bytes=-1=;countHardLimit=2");
    let ops = ["/a/b", "/a/c"].map(|path| create_op(path, CreateMode::Persistent));
    outcome(&mut engine, 0, Request::Multi(ops.to_vec())).unwrap();
    assert_eq!(stats(&engine, "/a"), "count=3,bytes=12");
    let more = create("/a/d", CreateMode::Persistent);
    assert_eq!(outcome(&mut engine, 0, more), Err(ErrorCode::QuotaExceeded));
}

#[test]
fn failed_multi_does_not_change_the_usage() {
    let mut engine = engine(1, Settings::default());
    outcome(&mut engine, 0, create("/a", CreateMode::Persistent)).unwrap();
    set_quota(&mut engine, "/a", "count=5,bytes=-1");
    let before = engine.dump();
    let limits = "/zookeeper/quota/a/zookeeper_limits";
    let ops = vec![
        create_op("/a/b", CreateMode::Persistent),
        delete_op("/a/b"),
        delete_op(limits),
        create_op("/a/c", CreateMode::Persistent),
        create_op(limits, CreateMode::Persistent),
        check_op("/missing"),
    ];
    request(&mut engine, 0, Request::Multi(ops));
    let without_zxid = |dump: &str| dump.split_once('\n').map(|(_, rest)| rest.to_owned());
    assert_eq!(without_zxid(&engine.dump()), without_zxid(&before));
}

#[test]
fn malformed_limits_are_an_internal_error_when_enforced() {
    // A live 3.9.5 gives the same reply.
    let mut engine = enforcing();
    outcome(&mut engine, 0, create("/a", CreateMode::Persistent)).unwrap();
    set_quota(&mut engine, "/a", "nonsense");
    let more = create("/a/b", CreateMode::Persistent);
    assert_eq!(
        outcome(&mut engine, 0, more),
        Err(ErrorCode::MarshallingError)
    );
}

/// With 20,000 quotas each multi took 18 ms, because it began by copying all of them.
#[test]
fn cost_of_a_multi_does_not_depend_on_quotas_it_does_not_touch() {
    let taken = |quotas: usize| {
        let mut engine = enforcing();
        for number in 0..quotas {
            let path = format!("/q{number:04}");
            outcome(&mut engine, 0, create(&path, CreateMode::Persistent)).unwrap();
            set_quota(&mut engine, &path, "count=100,bytes=-1=;countHardLimit=100");
        }
        let multi = Input::Request {
            conn: ConnId(0),
            xid: Xid(1),
            request: Request::Multi(vec![
                create_op("/q0000/a", CreateMode::Persistent),
                create_op("/q0001/a", CreateMode::Persistent),
                create_op("/q0000/b", CreateMode::Persistent),
            ]),
        };
        let mut seen = Seen::default();
        let info = allocation_counter::measure(|| {
            engine.apply(Now::default(), &multi, &mut seen);
        });
        assert_eq!(seen.reply.unwrap().error, None);
        assert_eq!(stats(&engine, "/q0000"), "count=3,bytes=12");
        info.count_total
    };
    let (few, many) = (taken(4), taken(150));
    assert!(
        many <= few + 20,
        "{few} allocations, and {many} with more quotas"
    );
}

/// The rule behind that: whatever a multi does, quotas are checked as they were when it began.
#[test]
fn quotas_are_checked_as_they_were_when_the_multi_began() {
    const SUBJECTS: [&str; 5] = ["/a", "/a/b", "/a/b/c", "/zookeeper", "/zookeeper/quota"];
    let paths: Vec<String> = SUBJECTS
        .iter()
        .flat_map(|subject| {
            let at = format!("/zookeeper/quota{subject}");
            let parts = ["", "/zookeeper_limits", "/zookeeper_stats"];
            let quota = parts.map(|part| format!("{at}{part}"));
            [(*subject).to_owned()].into_iter().chain(quota)
        })
        .collect();
    let texts: [&'static [u8]; 4] = [
        b"count=1,bytes=-1=;countHardLimit=1",
        b"count=3,bytes=-1=;countHardLimit=3",
        b"count=-1,bytes=9=;byteHardLimit=9",
        b"nonsense",
    ];
    let growths = [(1, 0), (0, 5), (2, 20)].map(|(znodes, bytes)| Growth { znodes, bytes });
    let now = Now::default();
    let mut refused = 0;
    for seed in 0..15 {
        let mut numbers = Numbers(seed);
        let mut engine = enforcing();
        for round in 0..12 {
            let state = &mut engine.state;
            let before = state.fork(SessionId(7));
            if round % 3 != 0 {
                state.begin();
            }
            for _ in 0..12 {
                let path = &paths[numbers.index(paths.len())];
                let data = texts[numbers.index(texts.len())];
                change(state, path.as_bytes(), data, numbers.index(3), now);
                if !state.undo.is_in_multi() {
                    continue;
                }
                for path in &paths {
                    for growth in growths {
                        let expected = before.check_quota(path.as_bytes(), growth);
                        let found = state.check_quota(path.as_bytes(), growth);
                        assert_eq!(found, expected, "{path} in round {round} of seed {seed}");
                        refused += usize::from(found.is_err());
                    }
                }
            }
            match (state.undo.is_in_multi(), numbers.index(2)) {
                (false, _) => {}
                (true, 0) => state.roll_back(),
                (true, _) => state.commit(),
            }
            engine.check().unwrap();
        }
    }
    assert!(refused > 300, "only {refused} checks refuse");
}

/// Creates, deletes or sets a znode, if possible.
fn change(state: &mut State, path: &[u8], data: &[u8], what: usize, now: Now) {
    let zxid = state.next_zxid();
    match (state.tree.find(path), what) {
        (None, _) => {
            let parent = minikeeper_protocol::path::parent_of(path).unwrap();
            if let Some(parent) = state.tree.find(parent) {
                let owner = Owner::PERSISTENT;
                state.create(parent, path, Some(data), owner, AclId::WORLD_ALL, zxid, now);
            }
        }
        (Some(id), 0) => {
            let is_built_in = crate::state::tree::SPECIAL.contains(&path);
            if state.tree[id].num_children() == 0 && !is_built_in {
                let acl = state.delete(id, zxid);
                state.forget_acl(acl);
            }
        }
        (Some(id), _) => state.set_data(id, Some(data), zxid, now),
    }
}
