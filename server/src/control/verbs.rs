//! Which verbs there are. One file a family; each is a table.

mod sessions;
mod state;
mod time;

use crate::control::verb::Verb;

const FAMILIES: &[&[Verb]] = &[time::VERBS, sessions::VERBS, state::VERBS];

/// Every verb of the API, families together.
pub fn all() -> impl Iterator<Item = &'static Verb> {
    FAMILIES.iter().copied().flatten()
}

/// The verb of this name.
pub(crate) fn find(name: &str) -> Option<&'static Verb> {
    all().find(|verb| verb.name == name)
}
