//! Runs the functions of the fuzz targets on their seeds and on random bytes.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

use minikeeper_fuzz::{BODIES, Body};
use minikeeper_test_kit::random::{Random, number_of_environment, seed};

/// Returns the number of inputs of a function. Half are random bytes, half are mutated seeds.
fn inputs(name: &str) -> u64 {
    let inputs = match name {
        // These are slow: a whole engine, checked after each operation, or files.
        "engine_ops" | "read_log" | "replay_changes" | "replay_recording" => 500,
        _ => 10_000,
    };
    inputs * number_of_environment("MINIKEEPER_EFFORT", 1)
}

#[test]
fn every_function_has_a_target_with_its_name() {
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    for (name, _) in BODIES {
        let target = folder().join(format!("fuzz_targets/{name}.rs"));
        let target = fs::read_to_string(target).unwrap();
        assert!(
            target.contains(&format!("minikeeper_fuzz::{name}(data)")),
            "{name}"
        );
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        assert!(TESTED.contains(name), "{name}");
    }
}

#[test]
fn functions_pass_on_all_seeds() {
    let seeds: Vec<_> = BODIES.iter().flat_map(|(name, _)| seeds(name)).collect();
    for body in BODIES {
        for input in &seeds {
            run(*body, input, "a seed file");
        }
    }
}

/// Runs a function on random bytes and mutated seeds.
fn check_on_random_bytes(name: &str) {
    let body = *BODIES
        .iter()
        .find(|(known, _)| *known == name)
        .expect("a function of this name");
    let seed = seed();
    let mut random = Random::new(seed);
    let seeds = seeds(name);
    for number in 0..inputs(name) {
        let input = if number % 2 == 0 {
            random_bytes(name, &mut random)
        } else {
            let mut input = seeds[random.below(seeds.len())].clone();
            mutate(&mut input, &mut random);
            input
        };
        let origin = format!("MINIKEEPER_SEED={seed}, input {number}");
        run(body, &input, &origin);
    }
}

fn run((name, body): Body, input: &[u8], origin: &str) {
    // The panic prints its own message; this one adds the input.
    if catch_unwind(AssertUnwindSafe(|| body(input))).is_err() {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("{name} fails on {hex} ({origin})");
    }
}

/// Returns random bytes: of any value, or only of values that are common in paths, lengths and
/// small numbers.
fn random_bytes(name: &str, random: &mut Random) -> Vec<u8> {
    let common = b"\0\0\0\x01\x02\x04\x08\xff/.ab\x7f";
    let is_engine = name == "engine_ops";
    let is_any = is_engine || random.one_in(2);
    let length = random.below(if is_engine { 400 } else { 96 });
    // Settings, and handshakes, since the engine refuses requests without a session.
    let mut bytes = match is_engine {
        true => vec![random.byte(), 0x00, 0x64, 0x40, 0x64, 0x80, 0x64],
        false => Vec::new(),
    };
    bytes.extend((0..length).map(|_| match is_any {
        true => random.byte(),
        false => random.pick(common),
    }));
    bytes
}

/// Makes one to four changes of the kinds that break decoders.
fn mutate(input: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        match random.below(5) {
            0 => input.truncate(at),
            1 => input.insert(at, random.byte()),
            2 if at < input.len() => {
                input.remove(at);
            }
            3 if at < input.len() => input[at] ^= 1 << random.below(8),
            _ => {
                let ends = [i32::MAX, i32::MIN, -1, -2, 0, 1, 0xfffff];
                let int = random.pick(&ends).to_be_bytes();
                let end = input.len().min(at + int.len());
                input.splice(at..end, int);
            }
        }
    }
}

/// Returns the seeds of a function.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let mut files: Vec<_> = fs::read_dir(folder().join("seeds").join(name))
        .expect("each function has a folder of seeds")
        .map(|entry| entry.expect("the folder is readable").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{name} has seeds");
    files
        .iter()
        .map(|file| fs::read(file).expect("the file is readable"))
        .collect()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

macro_rules! random_bytes {
    ($($name:ident)*) => {
        /// The functions with a test below.
        const TESTED: &[&str] = &[$(stringify!($name)),*];

        mod passes_on_random_bytes {
            $(#[test]
            fn $name() {
                super::check_on_random_bytes(stringify!($name));
            })*
        }
    };
}

random_bytes! {
    decode_request decode_reply split_frames path engine_ops read_log replay_changes
    replay_recording
}
