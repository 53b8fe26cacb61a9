//! Deletes containers that have lost their last child, and znodes whose time to live is over.
//!
//! Source: `docs/zookeeper-protocol.md` sections 10.5 and 15; ZooKeeper's `ContainerManager`.

use crate::{
    effects::{Effects, Removal},
    input::Now,
    ops::delete,
    persist::change,
    state::{State, keys::ZnodeId},
};

/// Checks every collectable if a check is due, and deletes those that are due, each with its own
/// zxid.
///
/// All checks come before the first deletion. So a parent that becomes due by a deletion waits for
/// the next check, and so do the znodes beyond the limit of deletions per check.
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
        change::collecting(state, zxid, id, now, effects);
        let why = match state.tree[id].owner.ttl_ms() {
            Some(_) => Removal::TimeToLive,
            None => Removal::EmptyContainer,
        };
        effects.removed(state.tree[id].path(), zxid, why);
        delete::delete_and_notify(state, id, zxid, effects);
    }
    state.cleanup_ms = None;
    state.schedule_cleanup(now);
}

/// Returns the time of the first check that would delete something, in milliseconds since the
/// start, provided that nothing happens until then and that the time of day keeps pace with the
/// elapsed time.
pub(crate) fn next_due_ms(state: &State, now: Now) -> Option<u64> {
    let next_look_ms = state.cleanup_ms?;
    let mut first_ms = u64::MAX;
    for id in &state.collectables {
        first_ms = first_ms.min(due_ms(state, *id, now).unwrap_or(u64::MAX));
        if first_ms <= next_look_ms {
            return Some(next_look_ms);
        }
    }
    look_from(state, first_ms)
}

/// Skips the checks before `until_ms` that would delete nothing: the clock advances to then, and
/// nothing happens on the way.
pub(crate) fn skip_idle(state: &mut State, now: Now, until_ms: u64) {
    if state.cleanup_ms.is_some_and(|look_ms| look_ms < until_ms) {
        let due_ms = next_due_ms(state, now).unwrap_or(u64::MAX);
        let until_ms = look_from(state, until_ms).unwrap_or(u64::MAX);
        state.cleanup_ms = Some(due_ms.min(until_ms));
    }
}

/// Returns the time of the first regular check at or after this time.
fn look_from(state: &State, elapsed_ms: u64) -> Option<u64> {
    elapsed_ms.checked_next_multiple_of(u64::from(state.settings.container_check_interval_ms))
}

fn is_due(state: &State, id: ZnodeId, now: Now) -> bool {
    due_ms(state, id, now).is_some_and(|due_ms| due_ms <= now.elapsed_ms)
}

/// Returns the time from which a znode may be deleted, in milliseconds since the start; `None` if
/// it never may without another change.
fn due_ms(state: &State, id: ZnodeId, now: Now) -> Option<u64> {
    let znode = &state.tree[id];
    if znode.num_children() > 0 {
        return None;
    }
    // Setting data restarts the time to live; creating and deleting children does not.
    let age_ms = now.wall_ms.saturating_sub(znode.mtime_ms);
    let older_than = |ms: i64| {
        let left_ms = ms.saturating_sub(age_ms).saturating_add(1).max(0);
        now.elapsed_ms.saturating_add(left_ms.cast_unsigned())
    };
    match znode.owner.ttl_ms() {
        Some(ttl_ms) => Some(older_than(ttl_ms)),
        // A container that has never had a child is kept longer, or for ever.
        None if znode.created_children() > 0 => Some(now.elapsed_ms),
        None => match state.settings.container_max_never_used_ms {
            0 => None,
            max_ms => Some(older_than(i64::try_from(max_ms).unwrap_or(i64::MAX))),
        },
    }
}

fn deletions_max(state: &State) -> usize {
    let settings = &state.settings;
    let per_minute = u64::from(settings.container_max_per_minute);
    let share = per_minute * u64::from(settings.container_check_interval_ms) / 60_000;
    usize::try_from(share.max(1)).unwrap_or(usize::MAX)
}
