//! Numbers that no client can guess.

use std::{collections::hash_map::RandomState, hash::BuildHasher as _};

#[cfg(feature = "sasl")]
pub(crate) fn nonce_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    for chunk in seed.chunks_mut(8) {
        chunk.copy_from_slice(&random().to_be_bytes());
    }
    seed
}

/// Returns a random seed for the hash tables of an engine, whose keys come from clients.
pub(crate) fn hash_seed() -> [u64; 2] {
    [random(), random()]
}

/// Returns a number that no client can guess, from the seed of the standard library's hash tables.
fn random() -> u64 {
    RandomState::new().hash_one(0)
}
