//! Rule: any saved records and changes are either refused or restored to a sound state that can be
//! served, because they may come from anywhere.
//!
//! Method: small states with random fields, each of which goes through everything that a server
//! does. `MINIKEEPER_SEED` repeats a run, `MINIKEEPER_IMAGE_VARIANTS` sets the number of states.

use std::panic::{AssertUnwindSafe, catch_unwind};

use minikeeper_protocol::{Acl, Perms};
use minikeeper_test_kit::random::{Random, number_of_environment, seed_or};

use super::{
    records::{session, znode},
    *,
};
use crate::{Change, ChangeHead, Keep, Life, Restoration, ZnodeImage};

const VARIANTS_DEFAULT: u64 = 1_000;

const PATHS: [&str; 16] = [
    "/",
    "/zookeeper",
    "/zookeeper/quota",
    "/zookeeper/config",
    "/a",
    "/a/b",
    "/a/b/c",
    "/e",
    "/e/c",
    "/q",
    "/q/r",
    "/zookeeper/quota/q",
    "/zookeeper/quota/q/zookeeper_limits",
    "/zookeeper/quota/q/zookeeper_stats",
    "/zookeeper/quota/q/r",
    "/zookeeper/quota/q/r/zookeeper_limits",
];

const LONGS: [i64; 16] = [
    0,
    1,
    5,
    9,
    -1,
    -5,
    i64::MAX,
    i64::MIN,
    i64::MIN + 1,
    0xff << 56,
    (0xff << 56) | 1,
    (0xff << 56) | 0xff_ffff_ffff,
    (0xff << 56) | (1 << 40),
    1 << 56,
    (1 << 32) + 3,
    i64::MAX - (1 << 33),
];

const INTS: [i32; 8] = [0, 1, -1, 7, i32::MAX, i32::MAX - 1, i32::MIN, 10_000];

const DATA: [&[u8]; 7] = [
    b"",
    b"data",
    b"count=4,bytes=5",
    b"count=-1,bytes=-1=;byteHardLimit=1;countHardLimit=1",
    b"count=9223372036854775807,bytes=9223372036854775807",
    b"count=-9223372036854775808,bytes=-9223372036854775808",
    b"\xff\xfe",
];

/// Returns mostly the usual value, and one time in `odds` an odd one.
fn long(random: &mut Random, usual: i64, odds: usize) -> i64 {
    if random.one_in(odds) {
        random.pick(&LONGS)
    } else {
        usual
    }
}

/// Returns mostly 0, and one time in `odds` an odd number.
fn int(random: &mut Random, odds: usize) -> i32 {
    if random.one_in(odds) {
        random.pick(&INTS)
    } else {
        0
    }
}

fn list(random: &mut Random) -> AclList {
    let entry = |(scheme, id): (&'static str, &'static str)| Acl {
        perms: Perms::ALL,
        scheme: Some(scheme.into()),
        id: Some(id.into()),
    };
    let some = [
        ("world", "anyone"),
        ("auth", ""),
        ("digest", "a:b"),
        ("ip", "x"),
    ];
    let entries: Vec<_> = (0..random.below(3))
        .map(|_| entry(random.pick(&some)))
        .collect();
    AclList::new(&entries)
}

/// Builds a state from random records, followed by random changes.
fn build(random: &mut Random, odds: usize) -> Result<Engine, crate::ImageError> {
    let settings = Settings {
        extended_types: random.one_in(2),
        enforce_quota: random.one_in(2),
        digests: random.one_in(2),
        container_check_interval_ms: 1_000,
        container_max_never_used_ms: random.below(2) as u64 * 5_000,
        ..Settings::default()
    };
    let mut restoration = Restoration::new(settings);
    for id in [5, 1 << 56] {
        if random.one_in(2) {
            let timeout_ms = [10_000, int(random, 2)][random.below(2)];
            restoration.session(session(long(random, id, odds), timeout_ms))?;
        }
    }
    for id in [1, 2] {
        restoration.access_list(long(random, id, odds * 4), &list(random))?;
    }
    for path in PATHS {
        let is_needed = path.len() == 1 || path.starts_with("/zookeeper") && path.len() < 20;
        if !is_needed && random.one_in(3) {
            continue;
        }
        let acl = random.pick(&[-1, 1, 2]);
        let image = ZnodeImage {
            data: (!random.one_in(4)).then(|| random.pick(&DATA)),
            acl: long(random, acl, odds * 8),
            czxid: Zxid(long(random, 3, odds * 2)),
            mzxid: Zxid(long(random, 3, odds * 2)),
            pzxid: Zxid(long(random, 9, odds * 2)),
            ctime_ms: long(random, 0, odds),
            mtime_ms: long(random, 0, odds),
            version: int(random, odds),
            created_children: int(random, odds),
            aversion: int(random, odds),
            owner: long(random, 0, odds),
            ..znode(path, 3)
        };
        restoration.znode(&image)?;
    }
    for zxid in 10..10 + random.below(6) as i64 {
        let head = ChangeHead {
            session: SessionId(long(random, 5, 4)),
            zxid: Zxid(long(random, zxid, odds * 2)),
            wall_ms: long(random, 0, odds),
        };
        let path = random.pick(&PATHS).as_bytes();
        let acl = list(random);
        let data = Some(random.pick(&DATA));
        let lives = [
            Life::Persistent,
            Life::Session(head.session),
            Life::Container,
            Life::Ttl { ms: 1_000 },
        ];
        let change = match random.below(6) {
            0 => Change::OpenSession { timeout_ms: 10_000 },
            1 => Change::CloseSession { paths: &[path] },
            2 => Change::Create {
                path,
                data,
                acl: &acl,
                life: random.pick(&lives),
                created_children: [None, Some(int(random, 2))][random.below(2)],
            },
            3 => Change::Delete { path },
            4 => Change::SetData {
                path,
                data,
                version: int(random, 2),
            },
            _ => Change::SetAcl {
                path,
                acl: &acl,
                aversion: int(random, 2),
            },
        };
        restoration.replay(head, &change)?;
    }
    Engine::restore(restoration, Zxid(long(random, 20, odds)))
}

/// Returns the dump without the usage of quotas, which every start counts anew.
fn lasting(engine: &Engine) -> Vec<String> {
    let dump = engine.dump();
    let lines = dump
        .lines()
        .filter(|line| !line.contains("/zookeeper_stats "));
    lines.map(str::to_owned).collect()
}

fn at(ms: u64) -> Now {
    Now {
        elapsed_ms: ms,
        wall_ms: ms as i64,
    }
}

/// Does everything that a server does to a state: saving, changes of each kind, the ends of
/// sessions, cleanup.
fn serve(engine: &mut Engine, random: &mut Random) {
    let image = engine.image();
    let mut again = Restoration::new(engine.settings().clone());
    for session in image.sessions() {
        again.session(session).unwrap();
    }
    for (id, list) in image.access_lists() {
        again.access_list(id, list).unwrap();
    }
    for znode in image.znodes() {
        again.znode(&znode).unwrap();
    }
    let again = Engine::restore(again, engine.zxid()).unwrap();
    again.check().unwrap();
    assert_eq!(lasting(&again), lasting(engine), "saved and loaded");
    open(engine, 0);
    let mut ms = 0;
    for path in PATHS {
        ms += 700;
        engine.apply(at(ms), &Input::Tick, &mut Seen::default());
        engine.check().unwrap();
        let below = format!("{}/n-", path.trim_end_matches('/'));
        for asked in [
            create(&below, CreateMode::PersistentSequential),
            create(&below, CreateMode::EphemeralSequential),
            set(path, b"more"),
            Request::GetAcl {
                path: Some(path.into()),
            },
            Request::Multi(vec![
                MultiOp::Create(Create::new(&below, b"m", CreateMode::PersistentSequential)),
                MultiOp::Delete {
                    path: Some(path.into()),
                    version: -1,
                },
            ]),
            delete(path),
        ] {
            let input = Input::Request {
                conn: ConnId(0),
                xid: Xid(1),
                request: asked,
            };
            engine.apply(at(ms), &input, &mut Seen::default());
            engine.check().unwrap();
        }
    }
    if random.one_in(4) {
        engine.restart(Keep::Data, at(ms));
        engine.check().unwrap();
    }
    let sessions: Vec<_> = engine.sessions().map(|(id, ..)| id).collect();
    for session in sessions.into_iter().take(2) {
        engine.apply(at(ms), &Input::Expire { session }, &mut Seen::default());
        engine.check().unwrap();
    }
    for _ in 0..20 {
        ms += 5_000;
        engine.apply(at(ms), &Input::Tick, &mut Seen::default());
        engine.check().unwrap();
    }
    engine.apply(at(i64::MAX as u64), &Input::Tick, &mut Seen::default());
    engine.check().unwrap();
}

/// For the rule and the method see the module.
#[test]
fn any_records_are_refused_or_restored_to_a_sound_state() {
    let seed = seed_or(1);
    let variants = number_of_environment("MINIKEEPER_IMAGE_VARIANTS", VARIANTS_DEFAULT);
    let mut served = 0;
    for seed in seed..seed + variants {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let random = &mut Random::new(seed);
            // From one odd field in a state to many.
            let odds = [20, 60, 200][random.below(3)];
            let Ok(mut engine) = build(random, odds) else {
                return false;
            };
            engine.check().unwrap();
            serve(&mut engine, random);
            true
        }));
        match outcome {
            Ok(is_served) => served += u64::from(is_served),
            Err(panic) => {
                println!("repeat with MINIKEEPER_SEED={seed} MINIKEEPER_IMAGE_VARIANTS=1");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{served} of {variants} states were valid");
    assert!(served > variants / 10, "{served} of {variants} were valid");
}
