//! How much one look for containers and times to live deletes. Source: reference section 15.

use super::*;

/// Where an engine looks whether containers are due, with what was created and deleted before.
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
fn deletions_of_one_look_are_limited() {
    // Reference section 15, rule 3.
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
fn container_never_used_goes_when_it_may() {
    // Reference section 15, rules 2 and 7: never, unless there is a limit to its age.
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
