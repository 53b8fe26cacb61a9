//! Words about watches, all three about the data table alone: a watch on children is not seen.
//!
//! Source: `docs/zookeeper-protocol.md` sections 18.2 and 18.8.

use super::rows::{add_left_out, room};
use crate::universe::state::Shared;

pub(crate) fn wchs(shared: &Shared) -> String {
    let summary = shared
        .turns
        .inspect(minikeeper_engine::Engine::watch_summary);
    format!(
        "{} connections watching {} paths\nTotal watches:{}\n",
        summary.connections, summary.paths, summary.watches
    )
}

pub(crate) fn wchc(shared: &Shared) -> String {
    let room = room(&shared.config);
    let listing = shared
        .turns
        .inspect(|engine| engine.watches_by_connection(room));
    let mut text = String::new();
    for group in listing.groups {
        text.push_str(&format!("{}\n", group.head));
        for path in group.rows {
            text.push_str(&format!("\t{path}\n"));
        }
    }
    text.push('\n');
    add_left_out(&mut text, listing.left_out, &shared.config);
    text
}

pub(crate) fn wchp(shared: &Shared) -> String {
    let room = room(&shared.config);
    let listing = shared.turns.inspect(|engine| engine.watches_by_path(room));
    let mut text = String::new();
    for group in listing.groups {
        text.push_str(&format!("{}\n", group.head));
        for session in group.rows {
            text.push_str(&format!("\t{session}\n"));
        }
    }
    text.push('\n');
    add_left_out(&mut text, listing.left_out, &shared.config);
    text
}
