//! Hashes the keys of the engine's tables.
//!
//! Clients choose paths, access lists and identities. If they could compute the hashes, they could
//! send keys that all have the same hash, and every lookup would compare with each of them. So
//! every hash depends on the secrets in [`Settings::hash_seed`](crate::Settings::hash_seed), which
//! the server chooses at random when it starts. The order of a table is never visible, so outputs
//! do not depend on them.
//!
//! Foldhash mixes its input with secret numbers: some for all tables, one for each table. Both
//! kinds are computed from the seed. Its `FixedState` takes only the second kind; then there are
//! keys that collide whatever that number is. With a secret seed, two keys of a client's choice
//! collide with a probability below 2^-26. In theory, a client that measures the time of many
//! lookups can learn a seed. SipHash would prevent that, but takes several times as long for a
//! path, on every request.

use std::hash::{Hash, Hasher};

use foldhash::{SharedSeed, fast::FoldHasher};

/// Hashes the keys of one table.
#[derive(Clone, Debug)]
pub(crate) struct TableHasher {
    own: u64,
    shared: SharedSeed,
}

impl TableHasher {
    /// Creates the hasher of the table with this name, from the engine's seed.
    pub(crate) fn new(seed: [u64; 2], table: &[u8; 8]) -> Self {
        Self {
            own: seed[1] ^ u64::from_le_bytes(*table),
            shared: SharedSeed::from_u64(seed[0]),
        }
    }

    /// Hashes only the bytes: the length that the standard hash of a slice adds is not needed.
    #[inline]
    pub(crate) fn hash_bytes(&self, bytes: &[u8]) -> u64 {
        let mut state = FoldHasher::with_seed(self.own, &self.shared);
        state.write(bytes);
        state.finish()
    }

    #[inline]
    pub(crate) fn hash_one(&self, key: impl Hash) -> u64 {
        let mut state = FoldHasher::with_seed(self.own, &self.shared);
        key.hash(&mut state);
        state.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use hashbrown::HashTable;

    use super::*;

    /// The seed that an attacker knows: that of the default settings.
    const KNOWN: [u64; 2] = [0, 0];

    /// The number of other keys in the table.
    const OTHERS: u32 = 800;

    /// The number of colliding keys.
    const COLLIDING: usize = 24;

    /// Returns paths whose hashes are equal in the bits that a table of this size uses: the lowest
    /// ten select the slot, the topmost seven are compared before the key.
    fn colliding(hasher: &TableHasher) -> Vec<String> {
        const LOOKED_AT: u64 = (0x7f << 57) | 0x3ff;
        let wanted = hasher.hash_bytes(b"/wanted") & LOOKED_AT;
        (0_u32..)
            .map(|number| format!("/locks/member-{number:010}"))
            .filter(|path| hasher.hash_bytes(path.as_bytes()) & LOOKED_AT == wanted)
            .take(COLLIDING)
            .collect()
    }

    /// Returns how many keys are compared when each of the paths is looked up once.
    fn comparisons(hasher: &TableHasher, paths: &[String]) -> usize {
        let mut table: HashTable<String> = HashTable::new();
        let others = (0..OTHERS).map(|number| format!("/others/{number}"));
        for path in paths.iter().cloned().chain(others) {
            let hash = hasher.hash_bytes(path.as_bytes());
            table.insert_unique(hash, path, |path| hasher.hash_bytes(path.as_bytes()));
        }
        let compared = Cell::new(0);
        for path in paths {
            let found = table.find(hasher.hash_bytes(path.as_bytes()), |other| {
                compared.set(compared.get() + 1);
                other == path
            });
            assert!(found.is_some());
        }
        compared.get()
    }

    /// With a seed compiled into the program, 100,000 such paths cost 51 s of processor time.
    #[test]
    fn keys_that_collide_under_one_seed_do_not_under_another() {
        let known = TableHasher::new(KNOWN, b"minikeep");
        let paths = colliding(&known);
        let known_comparisons = comparisons(&known, &paths);
        assert!(
            known_comparisons >= COLLIDING * COLLIDING / 2,
            "the paths collide where the seed is known: {known_comparisons} comparisons"
        );
        for seed in 1..=50_u64 {
            // Changing either half of the seed is enough.
            for seed in [[seed, 0], [0, seed], [seed, seed << 32]] {
                let hasher = TableHasher::new(seed, b"minikeep");
                let compared = comparisons(&hasher, &paths);
                assert!(
                    compared <= 2 * COLLIDING,
                    "{compared} comparisons, {seed:?}"
                );
            }
        }
    }

    /// Tables share only the engine's seed: collisions in one reveal nothing about another.
    #[test]
    fn tables_hash_differently() {
        let hashes = [b"minikeep", b"watches!"].map(|table| {
            let hasher = TableHasher::new(KNOWN, table);
            (hasher.hash_bytes(b"/a"), hasher.hash_one(7_u32))
        });
        assert!(hashes[0].0 != hashes[1].0 && hashes[0].1 != hashes[1].1);
    }
}
