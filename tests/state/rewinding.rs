//! Rewinds random traces to a mark.

use minikeeper_engine::{ConnId, Engine, Settings};
use minikeeper_protocol::SessionId;

use crate::{
    effort,
    model::{Run, run_property, settings},
    traces::Step,
};

const TRACES: u32 = 45;

/// Rewinding to a mark restores the state of the mark, whatever has changed since, and leaves a
/// working engine. Each random trace has three parts, with a mark after the first and the second.
/// The test rewinds to the second mark, plays the third part again, and rewinds to the first mark,
/// twice.
#[test]
fn random_changes_are_rewound() {
    check_random(&settings());
}

/// The counts of enforced quotas are data of znodes.
#[test]
fn random_changes_under_quotas_are_rewound() {
    let settings = Settings {
        enforce_quota: true,
        ..settings()
    };
    check_random(&settings);
}

fn check_random(settings: &Settings) {
    run_property(TRACES * effort(), |steps| check(settings, steps));
}

fn check(settings: &Settings, steps: &[Step]) -> Result<(), String> {
    let mut run = Run::new(settings);
    let (first, rest) = steps.split_at(steps.len() / 3);
    let (second, third) = rest.split_at(rest.len() / 2);
    play(&mut run, first)?;
    let before = (lasting(run.drive.engine()), run.connected());
    let early = run.drive.mark();
    play(&mut run, second)?;
    let later = (lasting(run.drive.engine()), run.connected());
    let late = run.drive.mark();
    play(&mut run, third)?;
    rewind(&mut run, late, &later)?;
    play(&mut run, third)?;
    rewind(&mut run, early, &before)?;
    if run.drive.rewind(late).is_ok() {
        return Err("a mark set after the one that was rewound to still exists".into());
    }
    play(&mut run, third)?;
    rewind(&mut run, early, &before)?;
    play(&mut run, second)
}

fn play(run: &mut Run, steps: &[Step]) -> Result<(), String> {
    for step in steps {
        run.apply_only(step)?;
    }
    Ok(())
}

fn rewind(
    run: &mut Run,
    mark: minikeeper_engine::Mark,
    (expected, connected_then): &(String, Vec<(SessionId, ConnId, u32)>),
) -> Result<(), String> {
    for conn in run.drive.rewind(mark)? {
        run.record_closed(conn);
    }
    let found = lasting(run.drive.engine());
    // Watches end with their connection: a session that has none now, or another one, has lost its.
    let connected: Vec<_> = run
        .connected()
        .into_iter()
        .filter(|connected| connected_then.contains(connected))
        .map(|(id, ..)| format!("watch {id} "))
        .collect();
    let comparable = |text: &str| -> String {
        text.lines()
            .filter(|line| {
                !line.starts_with("watch ")
                    || connected.iter().any(|session| line.starts_with(session))
            })
            .map(|line| format!("{line}\n"))
            .collect()
    };
    let (found, expected) = (comparable(&found), comparable(expected));
    // Watches registered since the mark stay.
    let watches = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with("watch "));
        lines.map(str::to_owned).collect()
    };
    let without = |text: &str| -> String {
        let lines = text.lines().filter(|line| !line.starts_with("watch "));
        lines.map(|line| format!("{line}\n")).collect()
    };
    let there = watches(&found);
    let is_kept = |watch: &String| there.iter().any(|other| includes(other, watch));
    if without(&found) == without(&expected) && watches(&expected).iter().all(is_kept) {
        Ok(())
    } else {
        Err(format!("before\n{expected}\nafter the rewind\n{found}"))
    }
}

/// Returns whether a line describes the same watch as another, in its modes and perhaps in more.
fn includes(line: &str, other: &str) -> bool {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (line, other) = (words(line), words(other));
    line.len() == other.len()
        && line.iter().zip(&other).all(|(word, other)| {
            let modes: Vec<_> = word.split('+').collect();
            word == other || other == "-" || other.split('+').all(|mode| modes.contains(&mode))
        })
}

/// Returns the part of a state that a rewind restores, as text: all but the zxid, connections and
/// deadlines, with watches by their session.
fn lasting(engine: &Engine) -> String {
    let owner = |conn: &str| {
        let mut sessions = engine.sessions();
        let found = sessions
            .find(|(.., conn_of)| conn_of.is_some_and(|ConnId(number)| number.to_string() == conn));
        found.map_or_else(String::new, |(id, ..)| id.to_string())
    };
    let mut watches = Vec::new();
    let mut text = String::new();
    for line in engine.dump().lines().skip(1) {
        if let Some(watch) = line.strip_prefix("watch ") {
            let (path, rest) = watch
                .split_once(" conn ")
                .expect("every watch has a connection");
            let (conn, modes) = rest.split_once(' ').expect("every watch has modes");
            watches.push(format!("watch {} {path} {modes}\n", owner(conn)));
        } else if line.starts_with("session ") {
            let (session, _) = line
                .split_once(" timeout ")
                .expect("every session has a timeout");
            text += &format!("{session}\n");
        } else {
            text += &format!("{line}\n");
        }
    }
    let mut znodes: Vec<_> = engine
        .image()
        .znodes()
        .map(|znode| String::from_utf8_lossy(znode.path).into_owned())
        .collect();
    for path in &mut znodes {
        let children = engine.children(path).unwrap_or_default();
        *path += &format!(" {children:?}\n");
    }
    znodes.sort();
    watches.sort();
    text + &znodes.concat() + &watches.concat()
}
