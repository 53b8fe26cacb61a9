//! Runs the bodies of the fuzz targets over their seeds and over random bytes.
//!
//! The seeds are the exchanges of reference section 27 and sample paths. When those change,
//! `MINIKEEPER_WRITE_SEEDS=1` writes the files anew.

#[path = "../../tests/fuzz/bodies.rs"]
pub mod bodies;
#[path = "common/seed.rs"]
mod seed;
#[path = "common/vectors.rs"]
mod vectors;

use std::{
    collections::BTreeMap,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

use bodies::{BODIES, Body};
use minikeeper_protocol::frame;
use seed::seed;
use vectors::hex;

/// Inputs for each body, half of them random bytes and half of them seeds with random changes.
const INPUTS: u32 = 20_000;

#[test]
fn seed_files_are_those_made_from_the_vectors() {
    let should_write = std::env::var_os("MINIKEEPER_WRITE_SEEDS").is_some();
    for (body, _) in BODIES {
        let folder = fuzz_folder().join("seeds").join(body);
        let expected = expected_seeds(body);
        if should_write {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            for (name, bytes) in &expected {
                fs::write(folder.join(name), bytes).unwrap();
            }
        }
        assert!(!expected.is_empty(), "{body} has seeds");
        assert!(
            seeds(body) == expected,
            "{body}: write again with MINIKEEPER_WRITE_SEEDS=1"
        );
    }
}

#[test]
fn every_body_has_a_target_of_its_name() {
    let manifest = fs::read_to_string(fuzz_folder().join("Cargo.toml")).unwrap();
    for (body, _) in BODIES {
        let target = fuzz_folder().join(format!("fuzz_targets/{body}.rs"));
        let target = fs::read_to_string(target).unwrap();
        assert!(
            target.contains(&format!("minikeeper_fuzz::{body}(data)")),
            "{body}"
        );
        assert!(manifest.contains(&format!("name = \"{body}\"")), "{body}");
    }
}

#[test]
fn bodies_pass_over_their_seeds() {
    for body in BODIES {
        for input in seeds(body.0).values() {
            run(*body, input, "a seed file");
        }
    }
}

#[test]
fn bodies_pass_over_seeds_of_each_other() {
    for body in BODIES {
        for (other, _) in BODIES {
            for input in seeds(other).values() {
                run(*body, input, "a seed file");
            }
        }
    }
}

#[test]
fn bodies_pass_over_random_bytes() {
    let seed = seed();
    for body in BODIES {
        let mut random = Xorshift::new(seed);
        let seeds: Vec<_> = seeds(body.0).into_values().collect();
        for number in 0..INPUTS {
            let input = if number % 2 == 0 {
                random_bytes(&mut random)
            } else {
                let mut input = seeds[random.below(seeds.len())].clone();
                mutate(&mut input, &mut random);
                input
            };
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

/// Bytes of any value, or of those few that make paths, lengths and small numbers.
fn random_bytes(random: &mut Xorshift) -> Vec<u8> {
    let common = b"\0\0\0\x01\x02\x04\x08\xff/.ab\x7f";
    let is_any = random.below(2) == 0;
    let length = random.below(96);
    (0..length)
        .map(|_| match is_any {
            true => random.byte(),
            false => common[random.below(common.len())],
        })
        .collect()
}

/// One to four changes of the kinds that break decoders.
fn mutate(input: &mut Vec<u8>, random: &mut Xorshift) {
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
                let int = ends[random.below(ends.len())].to_be_bytes();
                let end = input.len().min(at + int.len());
                input.splice(at..end, int);
            }
        }
    }
}

/// The seed files of a body, as they are on disk.
fn seeds(body: &str) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(fuzz_folder().join("seeds").join(body))
        .expect("every body has a folder of seeds")
        .map(|entry| {
            let path = entry.expect("the folder is readable").path();
            let name = path
                .file_name()
                .expect("a file has a name")
                .to_string_lossy();
            let bytes = fs::read(&path).expect("the file is readable");
            (name.into_owned(), bytes)
        })
        .collect()
}

/// The seed files of a body, as they should be.
fn expected_seeds(body: &str) -> BTreeMap<String, Vec<u8>> {
    let message = |text: &str| hex(text)[frame::PREFIX_BYTES..].to_vec();
    let mut seeds = BTreeMap::new();
    let mut add = |name: &str, bytes: Vec<u8>| {
        assert!(
            seeds.insert(format!("{name}.bin"), bytes).is_none(),
            "{name} twice"
        );
    };
    match body {
        "decode_request" => {
            for exchange in vectors::ALL {
                add(exchange.name, message(exchange.client));
            }
        }
        "decode_reply" => {
            for exchange in vectors::ALL {
                for (number, text) in exchange.server.iter().enumerate() {
                    add(&format!("{}_{number}", exchange.name), message(text));
                }
            }
        }
        "split_frames" => {
            let texts = vectors::ALL
                .iter()
                .filter(|exchange| !exchange.is_handshake);
            let client = texts.clone().flat_map(|exchange| hex(exchange.client));
            add("client", client.collect());
            let server = texts
                .flat_map(|exchange| exchange.server)
                .copied()
                .flat_map(hex);
            add("server", server.collect());
            add("over_limit", hex("00000000 000003e9"));
            add("negative", hex("00000001 00 ffffffff"));
        }
        "path" => {
            for (name, path) in [
                ("root", &b"/"[..]),
                ("deep", b"/zookeeper/config/a/b"),
                ("dots", b"/.../.a/a../..a"),
                ("accents", "/é/日本".as_bytes()),
                ("edges", "/\u{a0}\u{d7ff}\u{f900}\u{ffef}".as_bytes()),
                ("empty", b""),
                ("not_absolute", b"a/b"),
                ("empty_component", b"/a//b"),
                ("trailing_slash", b"/a/"),
                ("relative", b"/a/../b/."),
                ("nul", b"/a\0b"),
                ("emoji", "/😀".as_bytes()),
                ("private_use", "/\u{e000}".as_bytes()),
                ("surrogates", b"/\xed\xa0\xbd\xed\xb8\x80"),
            ] {
                add(name, path.to_vec());
            }
        }
        _ => panic!("no seeds are written down for {body}"),
    }
    seeds
}

fn fuzz_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz")
}

/// Marsaglia's xorshift64*: the same numbers on every machine and in every version.
struct Xorshift(u64);

impl Xorshift {
    fn new(seed: u64) -> Self {
        // The state may not be zero.
        Self(seed ^ 0x9e37_79b9_7f4a_7c15 | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[4]
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("a size fits 64 bits");
        usize::try_from(self.next() % end).expect("the number is below a size")
    }
}
