//! Rule: however the files of a data directory are damaged, the server loads the acknowledged state,
//! or that state with changes it was writing when killed, or refuses with an error that names a file.
//!
//! Method: builds histories of random changes, runs, saves and kills, and damages their files at
//! random. `MINIKEEPER_SEED` repeats a run, `MINIKEEPER_DAMAGE_VARIANTS` sets the number of variants.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
};

use minikeeper_engine::{
    Change, ChangeHead, CloseReason, ConnId, Effects, Engine, Event, Input, Keep, Limit, Now,
    Settings,
};
use minikeeper_protocol::{
    AclList, ConnectRequest, ConnectResponse, Create, CreateMode, MultiOp, ReplyHeader, ReplyRef,
    Request, Xid, Zxid, jute,
};
use minikeeper_test_kit::random::{Random, number_of_environment, seed_or};
use tokio::sync::Notify;

use super::dir::Scratch;
use crate::data::{
    DataDir, DataSource, LogSettings, LogWriter, SavedState, copy,
    log::{is_ours, is_whole},
};

/// The number of variants without the environment variable.
const VARIANTS_DEFAULT: u64 = 400;

/// The file that notes how far the changes reach.
const NOTE: &str = "minikeeper.lock";

/// The number of variants of one history.
const VARIANTS_PER_HISTORY: u64 = 40;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Durability {
    SnapshotOnly,
    Write,
    Sync,
}

/// Sends changes to the log, as a turn does.
struct Logged<'a>(Option<&'a mut LogWriter>);

impl Effects for Logged<'_> {
    fn connected(&mut self, _: ConnId, _: &ConnectResponse) {}
    fn reply(&mut self, _: ConnId, _: ReplyHeader, _: ReplyRef<'_>) {}
    fn event(&mut self, _: ConnId, _: &Event<'_>) {}
    fn close(&mut self, _: ConnId, _: CloseReason) {}
    fn limit_hit(&mut self, _: Limit, _: usize) {}

    fn keeps_changes(&self) -> bool {
        self.0.is_some()
    }

    fn changed(&mut self, head: ChangeHead, change: &Change<'_>) {
        if let Some(log) = &mut self.0 {
            log.keep(head, change);
        }
    }

    fn taken_back(&mut self, zxid: Zxid) {
        if let Some(log) = &mut self.0 {
            log.take_back(zxid);
        }
    }
}

/// The files that servers left, and the states that may be loaded from them.
struct History {
    /// Every file, by its name in the directory.
    files: BTreeMap<String, Vec<u8>>,
    /// The state that was acknowledged.
    answered: String,
    /// The states that were being written when the server was killed.
    possible: BTreeSet<String>,
    /// Every state of the history.
    past: BTreeSet<String>,
    /// Whether the last log ends inside an entry.
    is_torn: bool,
}

/// Dumps a state after a round trip through a snapshot, without the zxid, which a kill raises.
fn shown(engine: &Engine) -> String {
    let loaded = SavedState::of(engine).load(Settings::default()).unwrap();
    without_zxid(&loaded)
}

fn without_zxid(engine: &Engine) -> String {
    let dump = engine.dump();
    dump.split_once('\n').unwrap().1.to_owned()
}

fn path(random: &mut Random) -> String {
    let path = format!("/n{}", random.below(6));
    if random.one_in(2) {
        return path;
    }
    format!("{path}/c{}", random.below(4))
}

fn data(random: &mut Random) -> Vec<u8> {
    let length = [0, 3, 40, 700][random.below(4)];
    // Some bytes look like the end of an entry, others like padding.
    let byte = [b'B', 0, b'x'][random.below(3)];
    vec![byte; length]
}

fn request(random: &mut Random) -> Request {
    let modes = [
        CreateMode::Persistent,
        CreateMode::PersistentSequential,
        CreateMode::Ephemeral,
        CreateMode::EphemeralSequential,
        CreateMode::Container,
    ];
    let at = path(random);
    match random.below(8) {
        0..=3 => Request::Create(Create::new(&at, &data(random), modes[random.below(5)])),
        4 => Request::SetData {
            path: Some(at.as_str().into()),
            data: Some(data(random).into()),
            version: -1,
        },
        5 => Request::Delete {
            path: Some(at.as_str().into()),
            version: -1,
        },
        6 => Request::SetAcl {
            path: Some(at.as_str().into()),
            acl: AclList::world_read(),
            version: -1,
        },
        _ => {
            let path = Some(at.as_str().into());
            let set = MultiOp::SetData {
                path,
                data: Some(data(random).into()),
                version: -1,
            };
            let create = Create::new("/m", b"multi", CreateMode::PersistentSequential);
            Request::Multi(vec![MultiOp::Create(create), set])
        }
    }
}

/// One run of a server.
struct Run<'a> {
    random: &'a mut Random,
    durability: Durability,
    dir: DataDir,
    engine: Engine,
    log: Option<LogWriter>,
    xid: i32,
    /// The state after each change.
    states: BTreeSet<String>,
}

impl Run<'_> {
    fn apply(&mut self, input: &Input) {
        let now = Now {
            wall_ms: 1_000,
            ..Now::default()
        };
        self.engine
            .apply(now, input, &mut Logged(self.log.as_mut()));
        self.states.insert(shown(&self.engine));
    }

    fn request(&mut self) {
        self.xid += 1;
        let input = match self.random.below(12) {
            // The session ends, and its ephemerals go.
            0 => Input::Request {
                conn: ConnId(0),
                xid: Xid(self.xid),
                request: Request::CloseSession,
            },
            _ => Input::Request {
                conn: ConnId(0),
                xid: Xid(self.xid),
                request: request(self.random),
            },
        };
        let ends = matches!(
            input,
            Input::Request {
                request: Request::CloseSession,
                ..
            }
        );
        self.apply(&input);
        if ends {
            self.apply(&Input::Disconnect { conn: ConnId(0) });
            self.connect();
        }
    }

    fn connect(&mut self) {
        let hello = ConnectRequest::new(10_000);
        self.apply(&Input::Connect {
            conn: ConnId(0),
            hello,
            is_read_only: false,
        });
    }

    /// Ends a turn: logs and acknowledges its changes.
    fn answer(&mut self) {
        if let Some(log) = &mut self.log {
            log.keep_up(self.engine.zxid(), 1_000);
            assert!(log.write(), "{:?}", log.take_failure());
        }
    }

    fn save(&mut self) {
        let zxid = self.engine.zxid();
        if self.dir.saved() == Some(zxid) {
            return;
        }
        if let Some(log) = &mut self.log {
            log.go_on_from(zxid);
        }
        let copy = copy(&self.engine);
        let written = self.dir.save(zxid, |out| {
            use std::io::Write as _;
            out.write_all(&copy)
        });
        written.unwrap();
    }
}

fn start(durability: Durability, at: &Path) -> (DataDir, Engine, Option<LogWriter>) {
    let mut dir = DataDir::open(at).unwrap();
    let settings = Settings {
        zxid: Zxid(0x2_fffffff0),
        ..Settings::default()
    };
    let engine = dir.load(settings, false).unwrap();
    dir.begin(&engine).unwrap();
    let log = (durability != Durability::SnapshotOnly).then(|| {
        let zxid = engine.zxid();
        if dir.saved() != Some(zxid) {
            let copy = copy(&engine);
            let written = dir.save(zxid, |out| {
                use std::io::Write as _;
                out.write_all(&copy)
            });
            written.unwrap();
        }
        let settings = LogSettings {
            syncs: durability == Durability::Sync,
            changes_max: u64::MAX,
        };
        dir.log(zxid, settings, Arc::new(Notify::new()))
    });
    (dir, engine, log)
}

fn files(at: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for (folder, prefix) in [(at.to_owned(), ""), (at.join("version-2"), "version-2/")] {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
                files.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    files
}

fn put(at: &Path, files: &BTreeMap<String, Vec<u8>>) {
    let _ = fs::remove_dir_all(at);
    fs::create_dir_all(at.join("version-2")).unwrap();
    for (name, bytes) in files {
        fs::write(at.join(name), bytes).unwrap();
    }
}

/// Makes a history of one to three servers, the last of which may be killed.
fn history(random: &mut Random, durability: Durability) -> History {
    let scratch = Scratch::new(&format!("history-{:x}", random.number()));
    fs::create_dir_all(&scratch.0).unwrap();
    let mut past = BTreeSet::from([without_zxid(&Engine::new(Settings::default()))]);
    let mut answered;
    let runs = 1 + random.below(3);
    for run in 1.. {
        let (dir, engine, log) = start(durability, &scratch.0);
        let mut run_of = Run {
            random,
            durability,
            dir,
            engine,
            log,
            xid: 0,
            states: BTreeSet::new(),
        };
        answered = shown(&run_of.engine);
        past.insert(answered.clone());
        run_of.connect();
        run_of.answer();
        for _ in 0..run_of.random.below(25) {
            for _ in 0..=run_of.random.below(4) {
                run_of.request();
            }
            run_of.answer();
            if run_of.durability != Durability::SnapshotOnly {
                answered = shown(&run_of.engine);
            }
            if run_of.random.one_in(30) {
                // A change that a log cannot express.
                run_of.engine.restart(Keep::Data, Now::default());
                run_of.save();
                answered = shown(&run_of.engine);
                past.insert(answered.clone());
                run_of.connect();
                run_of.answer();
            }
            if run_of.random.one_in(8) {
                run_of.save();
                answered = shown(&run_of.engine);
            }
        }
        // Sessions are changes too.
        run_of.answer();
        past.append(&mut run_of.states);
        if run_of.durability != Durability::SnapshotOnly {
            answered = shown(&run_of.engine);
        }
        if run_of.random.one_in(3) {
            run_of.save();
            run_of.dir.note_saved().unwrap();
            answered = shown(&run_of.engine);
        }
        if run < runs {
            continue;
        }
        let mut possible = BTreeSet::new();
        let mut left = files(&scratch.0);
        let is_torn = run_of.log.is_some() && run_of.random.one_in(2);
        if is_torn {
            // The server is killed while it writes one more batch.
            let before = left.clone();
            for _ in 0..=run_of.random.below(3) {
                run_of.request();
            }
            run_of.answer();
            possible.append(&mut run_of.states);
            past.extend(possible.iter().cloned());
            left = files(&scratch.0);
            for (name, bytes) in &mut left {
                let written = before.get(name).map_or(0, Vec::len);
                if name.ends_with(".lock") {
                    bytes.clone_from(&before[name]);
                } else if bytes.len() > written {
                    let end = written + run_of.random.below(bytes.len() - written);
                    bytes.truncate(end);
                }
            }
        }
        return History {
            files: left,
            answered,
            possible,
            past,
            is_torn,
        };
    }
    unreachable!("the last run returns")
}

/// Damages a file. Returns the kind of damage and the file's name.
fn damage(random: &mut Random, files: &mut BTreeMap<String, Vec<u8>>) -> (&'static str, String) {
    let names: Vec<_> = files.keys().cloned().collect();
    let name = names[random.below(names.len())].clone();
    let kinds = [
        "flip",
        "flip",
        "flip",
        "cut",
        "cut",
        "remove",
        "zeros",
        "zeros to the end",
        "copied range",
        "swapped",
        "garbage",
        "cut out",
        "overwritten",
    ];
    let kind = kinds[random.below(kinds.len())];
    let other = names[random.below(names.len())].clone();
    let noise: [u8; 8] = std::array::from_fn(|_| random.byte());
    let other_bytes = files[&other].clone();
    let bytes = files.get_mut(&name).unwrap();
    let length = bytes.len().max(1);
    let at = random.below(length).min(bytes.len());
    let end = (at + 1 + random.below(length)).min(bytes.len());
    match kind {
        "flip" if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        "cut" => bytes.truncate(at),
        "remove" => drop(files.remove(&name)),
        "zeros" if at < bytes.len() => bytes[at..end].fill(0),
        "zeros to the end" if at < bytes.len() => bytes[at..].fill(0),
        "copied range" if at < bytes.len() => {
            let range = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, range);
        }
        "cut out" if at < bytes.len() => drop(bytes.drain(at..end)),
        "overwritten" if at < bytes.len() => {
            for (index, byte) in bytes[at..end].iter_mut().take(20).enumerate() {
                *byte = noise[index % 8];
            }
        }
        "swapped" => {
            let these = std::mem::replace(bytes, other_bytes);
            files.insert(other, these);
        }
        _ => bytes.extend(&noise[..=random.below(8)]),
    }
    (kind, name)
}

#[derive(Default, Debug)]
struct Counts {
    equal: u64,
    longer: u64,
    refused: u64,
    without_torn: u64,
}

/// Goal and method: see the module.
#[test]
fn damage_is_refused_or_does_no_harm() {
    let seed = seed_or(1);
    let variants = number_of_environment("MINIKEEPER_DAMAGE_VARIANTS", VARIANTS_DEFAULT);
    println!("MINIKEEPER_SEED={seed} MINIKEEPER_DAMAGE_VARIANTS={variants}");
    let mut counts = BTreeMap::<Durability, Counts>::new();
    let (mut kinds, mut trusted) = (BTreeMap::new(), (0, 0));
    let scratch = Scratch::new(&format!("damage-{seed}"));
    for group in 0..variants.div_ceil(VARIANTS_PER_HISTORY) {
        let random = &mut Random::new(seed.wrapping_add(group) << 1);
        let durability = [
            Durability::SnapshotOnly,
            Durability::Write,
            Durability::Sync,
        ];
        let durability = durability[random.below(3)];
        let history = history(random, durability);
        for variant in 0..VARIANTS_PER_HISTORY {
            let mut files_now = history.files.clone();
            let mut done = vec![damage(random, &mut files_now)];
            // Only the note shows that a file was truncated. A damaged note is noticed, but one that is
            // missing, empty or that of another time cannot be.
            let note = files_now.get(NOTE);
            let is_noticed = note.is_some_and(|note| !note.is_empty()) && done[0].0 != "swapped";
            if random.one_in(5) && is_noticed {
                let note = files_now.remove(NOTE);
                if !files_now.is_empty() {
                    done.push(damage(random, &mut files_now));
                }
                files_now.extend(note.map(|note| (NOTE.to_owned(), note)));
            }
            put(&scratch.0, &files_now);
            let place = format!(
                "MINIKEEPER_SEED={} variant {variant} {durability:?} {done:?}\n{:?}",
                seed + group,
                history.files.keys().collect::<Vec<_>>()
            );
            let counts = counts.entry(durability).or_default();
            let outcome = open_and_load(&scratch.0, false);
            let kind = done[0].0;
            let of_kind: &mut (u64, u64) = kinds.entry(kind).or_default();
            match outcome {
                Ok((dir, engine)) => {
                    engine.check().unwrap();
                    let state = without_zxid(&engine);
                    of_kind.0 += 1;
                    if state == history.answered {
                        counts.equal += 1;
                        counts.without_torn += u64::from(history.is_torn);
                    } else {
                        assert!(
                            history.possible.contains(&state),
                            "{place}: a different state"
                        );
                        counts.longer += 1;
                    }
                    nothing_unread_is_deleted(random, dir, engine, &scratch.0, &place);
                }
                Err(text) => {
                    of_kind.1 += 1;
                    counts.refused += 1;
                    let is_named = text.contains("version-2") || text.contains(NOTE);
                    assert!(is_named, "{place}: {text}");
                    assert_eq!(files(&scratch.0), files_now, "{place}: changed");
                    // The advice in the error works, and the next start needs it no more.
                    let Ok((mut dir, engine)) = open_and_load(&scratch.0, true) else {
                        trusted.1 += 1;
                        continue;
                    };
                    trusted.0 += 1;
                    let state = without_zxid(&engine);
                    assert!(history.past.contains(&state), "{place}: not a past state");
                    dir.begin(&engine).unwrap();
                    drop(dir);
                    let (_, again) = open_and_load(&scratch.0, false)
                        .unwrap_or_else(|text| panic!("{place}: refused again: {text}"));
                    assert_eq!(
                        without_zxid(&again),
                        state,
                        "{place}: a different state later"
                    );
                    assert!(again.zxid() >= engine.zxid(), "{place}: zxid goes back");
                }
            }
        }
    }
    println!("outcomes by durability: {counts:#?}");
    println!("by kind of damage, accepted and refused: {kinds:?}");
    println!("with trust_damaged_data, accepted and refused: {trusted:?}");
}

fn open_and_load(at: &Path, trusts_damaged: bool) -> Result<(DataDir, Engine), String> {
    let mut dir = DataDir::open(at).map_err(|error| error.to_string())?;
    let engine = dir.load(Settings::default(), trusts_damaged);
    let engine = engine.map_err(|error| error.to_string())?;
    Ok((dir, engine))
}

/// Runs a server that saves until it would delete every old file, and checks that it keeps the logs
/// that were not read to their end.
fn nothing_unread_is_deleted(
    random: &mut Random,
    mut dir: DataDir,
    mut engine: Engine,
    at: &Path,
    place: &str,
) {
    if !random.one_in(4) {
        return;
    }
    let logs = files(at).into_iter().filter(|(name, _)| {
        name.contains("/log.") && !(is_ours(&at.join(name)) && is_whole(&at.join(name)))
    });
    let unread: Vec<_> = logs.collect();
    dir.begin(&engine).unwrap();
    for _ in 0..5 {
        engine.skip_to(Zxid(engine.zxid().0 + 1));
        let copy = copy(&engine);
        let saved = dir.save(engine.zxid(), |out| {
            use std::io::Write as _;
            out.write_all(&copy)
        });
        saved.unwrap();
    }
    for (name, bytes) in unread {
        let left = fs::read(at.join(&name)).ok();
        assert_eq!(left, Some(bytes), "{place}: {name} was not read to its end");
    }
}

/// ZooKeeper leaves no note, and pads its logs with zeros: a log that was truncated between two entries
/// looks like a complete one. But no flipped bit may go unnoticed.
#[test]
fn damage_to_files_of_zookeeper_is_refused_or_does_no_harm() {
    let seed = seed_or(1);
    let variants = number_of_environment("MINIKEEPER_DAMAGE_VARIANTS", VARIANTS_DEFAULT) / 2;
    println!("MINIKEEPER_SEED={seed}, {variants} variants");
    let mut outcomes = BTreeMap::<(&str, &str), u64>::new();
    let scratch = Scratch::new(&format!("damage-theirs-{seed}"));
    for group in 0..variants.div_ceil(VARIANTS_PER_HISTORY) {
        let random = &mut Random::new(seed.wrapping_add(group) << 2);
        let mut history = history(random, Durability::Write);
        history.files.remove("minikeeper.lock");
        for (name, bytes) in &mut history.files {
            if name.contains("/log.") {
                // ZooKeeper writes the header before it pads, so a log without one gets no zeros.
                if bytes.len() >= 16 {
                    bytes[8..16].fill(0);
                    bytes.extend([0; 300]);
                }
            } else {
                theirs(bytes);
            }
        }
        put(&scratch.0, &history.files);
        let whole = DataSource::new(&scratch.0).load(Settings::default());
        let whole = without_zxid(&whole.unwrap());
        assert!(whole == history.answered || history.possible.contains(&whole));
        for variant in 0..VARIANTS_PER_HISTORY {
            let mut files_now = history.files.clone();
            let (kind, name) = damage(random, &mut files_now);
            put(&scratch.0, &files_now);
            let place = format!(
                "MINIKEEPER_SEED={} variant {variant} {kind} {name}\n{:?}",
                seed + group,
                history.files.keys().collect::<Vec<_>>()
            );
            let outcome = match DataSource::new(&scratch.0).load(Settings::default()) {
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("damage-theirs"), "{place}: {text}");
                    "refused"
                }
                Ok(engine) if without_zxid(&engine) == whole => "equal",
                Ok(engine) => {
                    engine.check().unwrap();
                    let state = without_zxid(&engine);
                    // Snapshots of that version do not contain their zxid.
                    let is_past = history.past.contains(&state) || kind == "swapped";
                    assert!(is_past, "{place}: not a past state");
                    assert!(!["flip", "garbage"].contains(&kind), "{place}: unnoticed");
                    "shorter"
                }
            };
            *outcomes.entry((kind, outcome)).or_default() += 1;
            assert_eq!(files(&scratch.0), files_now, "{place}: changed");
        }
    }
    println!("outcomes by kind of damage: {outcomes:#?}");
}

/// Turns our snapshot into one of ZooKeeper 3.5, which ends with its znodes.
fn theirs(bytes: &mut Vec<u8>) {
    let sections = (20 + 13) + (8 + 13);
    bytes.truncate(bytes.len() - sections - 13);
    bytes[8..16].copy_from_slice(&[0xff; 8]);
    let adler = adler2::adler32_slice(bytes);
    jute::put_long(bytes, adler.into());
    jute::put_buffer(bytes, Some(b"/"));
}
