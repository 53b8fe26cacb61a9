//! Deletes containers that lost their last child, and znodes whose time to live is over.
//!
//! Source: reference sections 10.5 and 15; the original's `ContainerManager`.

use crate::{
    effects::Effects, input::Now, journal, keys::ZnodeId, ops::delete, state::State, znode::Znode,
};

/// Looks at every collectable if it is time to, and deletes those that are due, each with a zxid
/// of its own.
///
/// Who is due is decided before the first deletion, so a parent that becomes due by it waits for
/// the next time; and so does what exceeds the limit for one time.
pub(crate) fn run_if_due(state: &mut State, now: Now, effects: &mut impl Effects) {
    if state.cleanup_ms.is_none_or(|due| now.elapsed_ms < due) {
        return;
    }
    let deletions_max = deletions_max(state);
    let due: Vec<_> = state
        .collectables
        .iter()
        .copied()
        .filter(|id| is_due(state, *id, now))
        .take(deletions_max)
        .collect();
    for id in due {
        let zxid = state.next_zxid();
        journal::collecting(state, zxid, id, now, effects);
        delete::delete_and_tell(state, id, zxid, effects);
    }
    state.cleanup_ms = None;
    state.schedule_cleanup(now);
}

fn is_due(state: &State, id: ZnodeId, now: Now) -> bool {
    let znode = &state.tree[id];
    if znode.num_children() > 0 {
        return false;
    }
    let is_older = |than_ms: i64| now.wall_ms.saturating_sub(since(state, znode)) > than_ms;
    match znode.owner.ttl_ms() {
        Some(ttl_ms) => is_older(ttl_ms),
        // A container is for its children: one that has not had any yet is kept.
        None if znode.created_children() > 0 => true,
        None => match state.settings.container_max_never_used_ms {
            0 => false,
            max_ms => is_older(i64::try_from(max_ms).unwrap_or(i64::MAX)),
        },
    }
}

/// Setting data starts the time again; children do not.
fn since(state: &State, znode: &Znode) -> i64 {
    #[cfg(feature = "planted")]
    if state.planted(crate::planted::Planted::TtlFromCreation) {
        return znode.ctime_ms;
    }
    let _ = state;
    znode.mtime_ms
}

fn deletions_max(state: &State) -> usize {
    let settings = &state.settings;
    let per_minute = u64::from(settings.container_max_per_minute);
    let share = per_minute * u64::from(settings.container_check_interval_ms) / 60_000;
    usize::try_from(share.max(1)).unwrap_or(usize::MAX)
}
