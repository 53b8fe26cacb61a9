//! Deletion of containers and of znodes with a time to live. Source: `docs/zookeeper-protocol.md`
//! section 15.

use super::*;

/// Creates an engine with this number of containers that have lost their only child.
fn with_containers(count: usize, settings: Settings) -> Engine {
    let mut engine = engine(1, settings);
    for number in 0..count {
        let path = format!("/c{number}");
        let container = Create::new(&path, b"".as_slice(), CreateMode::Container);
        let child = format!("{path}/x");
        for asked in [
            Request::Create(container),
            create(&child, CreateMode::Persistent),
            delete(&child),
        ] {
            outcome(&mut engine, 0, asked).unwrap();
        }
    }
    engine
}

fn look(engine: &mut Engine, minutes: u64) {
    let now = Now {
        elapsed_ms: minutes * 60_000,
        wall_ms: 0,
    };
    engine.apply(now, &Input::Tick, &mut Seen::default());
    engine.check().unwrap();
}

fn containers(engine: &Engine) -> usize {
    let names = engine.children("/").unwrap();
    names.iter().filter(|name| name.starts_with('c')).count()
}

#[test]
fn deletions_per_check_are_limited() {
    // `docs/zookeeper-protocol.md` section 15, rule 3.
    let settings = Settings {
        container_max_per_minute: 2,
        ..Settings::default()
    };
    let mut engine = with_containers(5, settings);
    for (minutes, left) in [(1, 3), (2, 1), (3, 0)] {
        look(&mut engine, minutes);
        assert_eq!(containers(&engine), left);
    }
}

#[test]
fn container_never_used_is_deleted_only_if_its_age_is_limited() {
    // `docs/zookeeper-protocol.md` section 15, rules 2 and 7.
    for (max_ms, left) in [(0, 1), (1_000, 0)] {
        let settings = Settings {
            container_max_never_used_ms: max_ms,
            ..Settings::default()
        };
        let mut engine = engine(1, settings);
        let container = Create::new("/c", b"".as_slice(), CreateMode::Container);
        outcome(&mut engine, 0, Request::Create(container)).unwrap();
        let now = Now {
            elapsed_ms: 60_000,
            wall_ms: 60_000,
        };
        engine.apply(now, &Input::Tick, &mut Seen::default());
        assert_eq!(containers(&engine), left);
    }
}

/// The changes that an engine made without a request, with their times.
#[derive(Default)]
struct Deeds {
    at_ms: u64,
    done: Vec<(u64, Zxid, String)>,
}

impl Effects for Deeds {
    fn connected(&mut self, _: ConnId, _: &ConnectResponse) {}
    fn reply(&mut self, _: ConnId, _: ReplyHeader, _: ReplyRef<'_>) {}
    fn event(&mut self, _: ConnId, _: &Event<'_>) {}
    fn close(&mut self, _: ConnId, _: CloseReason) {}
    fn limit_hit(&mut self, _: Limit, _: usize) {}
    fn keeps_changes(&self) -> bool {
        true
    }
    fn changed(&mut self, head: crate::ChangeHead, change: &crate::Change<'_>) {
        self.done
            .push((self.at_ms, head.zxid, format!("{change:?}")));
    }
}

const WALL_START_MS: i64 = 1_700_000_000_000;

fn at(elapsed_ms: u64) -> Now {
    Now {
        elapsed_ms,
        wall_ms: WALL_START_MS + elapsed_ms.cast_signed(),
    }
}

/// Stops at every check of collectables, whether it deletes something or not. Returns how often.
fn walk(engine: &mut Engine, from_ms: u64, until_ms: u64, deeds: &mut Deeds) -> usize {
    let mut steps = 0;
    let mut now_ms = from_ms;
    loop {
        let expiry = engine.state.sessions.next_deadline_ms();
        let next_ms = expiry.into_iter().chain(engine.state.cleanup_ms).min();
        let Some(next_ms) = next_ms.filter(|next_ms| *next_ms <= until_ms) else {
            return steps;
        };
        now_ms = now_ms.max(next_ms);
        deeds.at_ms = now_ms;
        engine.apply(at(now_ms), &Input::Tick, deeds);
        steps += 1;
    }
}

/// Stops only when something is due. Returns how often.
fn leap(engine: &mut Engine, from_ms: u64, until_ms: u64, deeds: &mut Deeds) -> usize {
    let mut steps = 0;
    let mut now_ms = from_ms;
    loop {
        let next_ms = engine.next_deadline_ms(at(now_ms));
        let to_ms = next_ms.filter(|next_ms| *next_ms <= until_ms);
        engine.skip_idle_cleanups(at(now_ms), to_ms.unwrap_or(until_ms));
        let Some(next_ms) = to_ms else {
            return steps;
        };
        now_ms = now_ms.max(next_ms);
        deeds.at_ms = now_ms;
        engine.apply(at(now_ms), &Input::Tick, deeds);
        steps += 1;
    }
}

/// With a check every millisecond, advancing the clock by a year took an hour and a half, with one
/// step per check.
#[test]
fn skipping_idle_checks_makes_the_same_changes_in_fewer_steps() {
    let (mut walked, mut leapt, mut due) = (0, 0, 0);
    for seed in 0..40 {
        let mut numbers = Numbers(seed);
        let settings = Settings {
            container_check_interval_ms: [7, 100, 1_000][numbers.index(3)],
            container_max_per_minute: [1, 600, 10_000][numbers.index(3)],
            container_max_never_used_ms: [0, 900][numbers.index(2)],
            rounds_expiry: numbers.index(2) == 0,
            tick_ms: 500,
            session_timeout_min_ms: 1_000,
            ..Settings::default()
        };
        let mut engines = [engine(0, settings.clone()), engine(0, settings)];
        let mut deeds = [Deeds::default(), Deeds::default()];
        let mut now_ms = 0;
        for _ in 0..40 {
            let conn = ConnId(u32::try_from(numbers.below(3)).unwrap());
            let mut hello = ConnectRequest::new(2_000);
            hello.timeout_ms = [1_000, 3_300][numbers.index(2)];
            let container = format!("/c{}", numbers.below(4));
            let child = format!("{container}/{}", numbers.below(3));
            let ttl_ms = [1, 99, 100, 2_500][numbers.index(4)];
            let asked = match numbers.below(7) {
                0 | 1 => Request::Create(Create::new(
                    &container,
                    b"".as_slice(),
                    CreateMode::Container,
                )),
                2 => create(&child, CreateMode::Ephemeral),
                3 => create(&child, CreateMode::Persistent),
                4 => delete(&child),
                5 => Request::Create(Create {
                    ttl_ms,
                    ..Create::new(&child, b"".as_slice(), CreateMode::PersistentWithTtl)
                }),
                _ => set(&child, b"new"),
            };
            let asked = Input::Request {
                conn,
                xid: Xid(1),
                request: asked,
            };
            let until_ms = now_ms + [0, 1, 350, 5_000][numbers.index(4)];
            for (engine, deeds) in engines.iter_mut().zip(&mut deeds) {
                deeds.at_ms = now_ms;
                if engine.state.session_of(conn).is_none() {
                    let hello = hello.clone();
                    engine.apply(
                        at(now_ms),
                        &Input::Connect {
                            conn,
                            hello,
                            is_read_only: false,
                        },
                        deeds,
                    );
                }
                engine.apply(at(now_ms), &asked, deeds);
            }
            let before = deeds[1].done.len();
            walked += walk(&mut engines[0], now_ms, until_ms, &mut deeds[0]);
            let steps = leap(&mut engines[1], now_ms, until_ms, &mut deeds[1]);
            let done = deeds[1].done.len() - before;
            assert!(
                steps <= done,
                "{steps} steps for {done} changes, seed {seed}"
            );
            leapt += steps;
            due += done;
            now_ms = until_ms;
            assert_eq!(deeds[0].done, deeds[1].done, "seed {seed}");
            assert_eq!(engines[0].dump(), engines[1].dump(), "seed {seed}");
        }
    }
    assert!(due > 300 && walked > 5 * leapt, "{due}, {walked}, {leapt}");
}
