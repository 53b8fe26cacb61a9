//! A delete and a create where a change would do.

use std::time::Duration;

use super::{AdviceRule, ClientStep, FactTable, Finder, Scene};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "recreated-ephemeral",
    title: "ephemeral, or the parent of ephemerals, deleted and created again",
    why: "in between others see it gone: watches fire, locks are free, creates below it fail with NONODE",
    remedy: "change an ephemeral with setData; leave parents in place, or make them containers",
    occurrences_min: 1,
};

#[derive(Debug, Default)]
pub(super) struct RecreatedEphemeral {
    paths: FactTable<Recreation>,
}

#[derive(Debug, Default)]
struct Recreation {
    /// How often it was created again, as a parent of ephemerals or as an ephemeral.
    times: u64,
    /// Whether several sessions try to create it.
    has_rivals: bool,
}

impl Finder for RecreatedEphemeral {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        match step {
            ClientStep::Request(request) if request.is_late() => {
                let is_own = scene.facts.path(request.path).owner == Some(scene.at.session);
                if scene.facts.knows(request.path) && !is_own {
                    self.paths.of(request.path).has_rivals = true;
                }
            }
            ClientStep::Create(path, mode) => self.create(path, mode.is_ephemeral(), scene),
            _ => {}
        }
    }

    fn forget_tree(&mut self) {
        self.paths.clear();
    }
}

impl RecreatedEphemeral {
    fn create(&mut self, path: &str, is_ephemeral: bool, scene: &mut Scene<'_>) {
        let session = scene.at.session;
        let facts = scene.facts.path(path);
        if facts.deleted == 0 {
            return;
        }
        let recreation = self.paths.of(path);
        let is_own = facts.deleted_by == Some(session) && facts.deleted == scene.client.last;
        let is_at_once = scene.at.time.saturating_sub(facts.deleted_at) <= AT_ONCE;
        let (min, what) = if facts.has_had_ephemerals && !is_ephemeral {
            (PARENTS_MIN, "the parent of ephemerals")
        } else if is_ephemeral && is_own && !recreation.has_rivals && is_at_once {
            (REFRESHES_MIN, "its ephemeral")
        } else {
            return;
        };
        recreation.times += 1;
        let times = recreation.times;
        if times >= min {
            let text = format!(
                "session {session} created {path} again, {what}, which was deleted {times} times"
            );
            let count = if times == min { times } else { 1 };
            scene.report(path, times, count, &[facts.deleted], text);
        }
    }
}

/// The numbers of times that a parent of ephemerals, and an ephemeral, is created again.
const PARENTS_MIN: u64 = 3;
const REFRESHES_MIN: u64 = 5;

/// The longest time from the delete of an ephemeral to its create that is a refresh. After more, a member left and came back.
const AT_ONCE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, found, repeated};

    #[test]
    fn recreated_ephemeral_or_parent_is_gone_in_between() {
        let refreshed = "1 create /me EPHEMERAL\n1 delete /me\n";
        assert_eq!(found(&refreshed.repeat(6)), ["recreated-ephemeral"]);
        assert_eq!(found(&refreshed.repeat(5)), NOTHING);
        let parent =
            "1 create /p PERSISTENT\n1 create /p/e EPHEMERAL\n1 delete /p/e\n1 delete /p\n";
        assert_eq!(found(&parent.repeat(4)), ["recreated-ephemeral"]);
        assert_eq!(found(&parent.repeat(3)), NOTHING);
        // A lock: another session waits for it, or it does something in between.
        let lock = "1 create /me EPHEMERAL\n2 create /me EPHEMERAL -> NODEEXISTS\n1 delete /me\n";
        assert_eq!(found(&lock.repeat(9)), NOTHING);
        let away = repeated(0..20, "at #s\n1 create /me EPHEMERAL\n1 delete /me");
        assert_eq!(found(&away), NOTHING);
        assert_eq!(
            found(&repeated(
                0..9,
                "1 create /me# EPHEMERAL\n1 delete /me#\n1 create /me# EPHEMERAL"
            )),
            NOTHING
        );
        let apart = "1 create /me EPHEMERAL\n1 delete /me\n1 getData /work watch\n";
        assert_eq!(found(&apart.repeat(9)), NOTHING);
        let plain = "1 create /p PERSISTENT\n1 delete /p\n";
        assert_eq!(found(&plain.repeat(9)), NOTHING);
    }
}
