//! The resource that a lock protects: only one contender may write at a time. It refuses writers
//! whose token is smaller than the largest it has seen.
//!
//! Source: `docs/curator-recipes.md` section 10.3.

use std::sync::{Mutex, PoisonError};

/// A resource that checks fencing tokens.
#[derive(Debug, Default)]
pub struct Resource {
    largest: Mutex<u64>,
}

impl Resource {
    /// Writes; returns whether the write was accepted. Without a token nothing can be checked, and
    /// every write is accepted.
    pub fn write(&self, token: Option<u64>) -> bool {
        let Some(token) = token else {
            return true;
        };
        let mut largest = self.largest.lock().unwrap_or_else(PoisonError::into_inner);
        // An equal token belongs to the same holder.
        let is_accepted = token >= *largest;
        if is_accepted {
            *largest = token;
        }
        is_accepted
    }
}
