//! The table of verbs, one file per family.
//!
//! A row has the verb's name, HTTP method, help, parameters, answer and handler.

pub(crate) mod advice;
mod ensemble;
pub(crate) mod faults;
pub(crate) mod journal;
pub(crate) mod locks;
mod recording;
mod resources;
mod restarting;
mod server;
pub(crate) mod sessions;
mod snapshots;
mod state;
mod story;
mod sweep;
mod time;
mod universes;
mod waiting;

use crate::control::verb::Verb;

/// The verbs of every universe: `/v1/VERB` and `/v1/universes/NAME/VERB`.
const OF_UNIVERSES: &[&[Verb]] = &[
    time::VERBS,
    sessions::VERBS,
    faults::VERBS,
    journal::VERBS,
    advice::VERBS,
    locks::VERBS,
    story::VERBS,
    recording::VERBS,
    resources::VERBS,
    sweep::VERBS,
    state::VERBS,
    snapshots::VERBS,
    waiting::VERBS,
    restarting::OF_UNIVERSES,
];

/// The verbs of the whole server: `/v1/VERB`.
const OF_THE_SERVER: &[&[Verb]] = &[
    universes::VERBS,
    restarting::VERBS,
    ensemble::VERBS,
    server::VERBS,
];

/// Returns every verb of the API, grouped by family.
pub fn all() -> impl Iterator<Item = &'static Verb> {
    of_universes().chain(of_the_server())
}

/// Returns the verbs that act on one universe.
pub(crate) fn of_universes() -> impl Iterator<Item = &'static Verb> {
    OF_UNIVERSES.iter().copied().flatten()
}

fn of_the_server() -> impl Iterator<Item = &'static Verb> {
    OF_THE_SERVER.iter().copied().flatten()
}

/// Returns the verb of this name.
pub(crate) fn find(name: &str) -> Option<&'static Verb> {
    all().find(|verb| verb.name == name)
}

/// Returns the verb of this name if it acts on one universe.
pub(crate) fn find_of_universes(name: &str) -> Option<&'static Verb> {
    of_universes().find(|verb| verb.name == name)
}
