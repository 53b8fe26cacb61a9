//! Runs the bodies that fuzz more than the protocol over their seeds and over random bytes.

// The files are those of the fuzz targets, which have a crate of their own.
#[path = "../fuzz/engine_bodies.rs"]
#[allow(unreachable_pub, reason = "the crate of the targets passes them on")]
mod bodies;
#[path = "../fuzz/data_bodies.rs"]
#[allow(unreachable_pub, reason = "the crate of the targets passes them on")]
mod data_bodies;

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

use bodies::{BODIES, Body};

use minikeeper_tests::random::Random;

use crate::{effort, seed};

const INPUTS: u32 = 800;

fn all() -> impl Iterator<Item = &'static Body> {
    BODIES.iter().chain(data_bodies::BODIES)
}

#[test]
fn every_engine_body_has_a_target_of_its_name() {
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    for (body, _) in all() {
        let target = folder().join(format!("fuzz_targets/{body}.rs"));
        let target = fs::read_to_string(target).unwrap();
        assert!(
            target.contains(&format!("minikeeper_fuzz::{body}(data)")),
            "{body}"
        );
        assert!(manifest.contains(&format!("name = \"{body}\"")), "{body}");
    }
}

#[test]
fn engine_bodies_pass_over_their_seeds() {
    for body in all() {
        let files: Vec<_> = fs::read_dir(folder().join("seeds").join(body.0))
            .expect("every body has a folder of seeds")
            .collect();
        assert!(!files.is_empty(), "{} has seeds", body.0);
        for file in files {
            run(
                *body,
                &fs::read(file.unwrap().path()).unwrap(),
                "a seed file",
            );
        }
    }
}

#[test]
fn engine_bodies_pass_over_random_bytes() {
    let seed = seed();
    for body in all() {
        let mut random = Random::new(seed);
        for number in 0..INPUTS * effort() {
            // Sessions first, or nothing happens; then anything.
            let mut input = vec![0x00, 0x64, 0x40, 0x64, 0x80, 0x64];
            let length = random.below(400);
            input.extend((0..length).map(|_| u8::try_from(random.below(256)).unwrap()));
            run(
                *body,
                &input,
                &format!("MINIKEEPER_SEED={seed}, input {number}"),
            );
        }
    }
}

fn run((name, body): Body, input: &[u8], origin: &str) {
    // What was broken is printed by the panic itself; here is what broke it.
    if catch_unwind(AssertUnwindSafe(|| body(input))).is_err() {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("{name} fails on {hex} ({origin})");
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}
