//! Waiters of a lock that watch the same znode, or all of them.

use std::mem;

use minikeeper_protocol::{CreateMode, EventKind};

use super::{AdviceRule, ClientStep, FactTable, Finder, Scene, facts, name_of, parent_of};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "herd",
    title: "one release of a lock wakes several waiters",
    why: "all but one of them ask again in vain, so n waiters cost n requests for each release",
    remedy: "let each waiter watch only the znode before its own",
    occurrences_min: 1,
};

#[derive(Debug, Default)]
pub(super) struct Herd {
    uses: FactTable<QueueUse>,
    paths: FactTable<Waking>,
}

/// What a session does with a path.
#[derive(Debug, Default)]
struct QueueUse {
    /// Whether it tried to create it and was late.
    was_late: bool,
    /// The number of sequential ephemerals that it has below it, and whether those of a reader.
    contends: u64,
    is_reader: bool,
}

/// The change of a path that sent events, the contenders that it woke, and the first event.
#[derive(Debug, Default)]
struct Waking {
    zxid: i64,
    woken: u64,
    first: u64,
}

impl Finder for Herd {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        match step {
            ClientStep::Request(it) if it.is_late() => {
                self.uses.of(&scene.use_key(it.path)).was_late = true;
            }
            ClientStep::Request(it) if it.is_queue() => {
                let place = self.uses.of(&scene.use_key(parent_of(it.path)));
                let marks = ["READ", "rlock"];
                place.is_reader = marks.iter().any(|mark| name_of(it.path).contains(mark));
            }
            ClientStep::Create(path, CreateMode::EphemeralSequential) => {
                self.uses.of(&scene.use_key(parent_of(path))).contends += 1;
            }
            ClientStep::Delete { path, .. } => {
                let facts = scene.facts.path(path);
                if let (Some(owner), true) = (facts.owner, facts.is_sequential_ephemeral) {
                    let place = self.uses.of(&facts::use_key(owner, parent_of(path)));
                    place.contends = place.contends.saturating_sub(1);
                }
            }
            ClientStep::Event { kind, path, zxid } => self.event(kind, path, zxid, scene),
            _ => {}
        }
    }

    fn forget_tree(&mut self) {
        *self = Self::default();
    }
}

impl Herd {
    fn event(&mut self, kind: EventKind, path: &str, zxid: i64, scene: &mut Scene<'_>) {
        let session = scene.at.session;
        let place = self.uses.of(&scene.use_key(path));
        let (contends, is_late) = (place.contends, mem::take(&mut place.was_late));
        let parent = parent_of(path);
        let above = self.uses.of(&scene.use_key(parent));
        // One that watches a znode nearer to its own, too, looks ahead: our recipes watch three of them.
        let looks_ahead = scene.facts.using(session, parent).below.all > 0;
        let waits = above.contends > 0 && !above.is_reader && !looks_ahead;
        let facts = scene.facts.path(path);
        let is_woken = match kind {
            EventKind::Deleted => waits && facts.is_sequential_ephemeral || is_late,
            EventKind::ChildrenChanged => contends > 0 && facts.has_had_ephemerals,
            _ => false,
        };
        // The one that releases may watch its own znode.
        if !is_woken || facts.changed_by == Some(session) {
            return;
        }
        let waking = self.paths.of(path);
        if waking.zxid != zxid {
            *waking = Waking {
                zxid,
                woken: 0,
                first: scene.at.number,
            };
        }
        waking.woken += 1;
        let woken = waking.woken;
        if woken >= WOKEN_MIN {
            let text = format!("a change of {path} woke {woken} sessions that queue");
            let is_of_queue = kind == EventKind::Deleted && !is_late;
            let group = if is_of_queue { parent } else { path };
            let count = u64::from(woken == WOKEN_MIN);
            scene.report(group, woken, count, &[waking.first], text);
        }
    }
}

/// The number of contenders that a change must wake to be a herd; as in the report of locks.
const WOKEN_MIN: u64 = 3;

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, UUID_LOCK, found, repeated};

    /// Three sessions queue below /l, and one release wakes them.
    fn woken(name: &str, events: &str) -> String {
        repeated(
            1..5,
            &format!("# create /l/{name} EPHEMERAL_SEQUENTIAL -> OK /l/{name}000000000#"),
        ) + &format!("1 delete /l/{name}0000000001\n")
            + &repeated(2..5, events)
    }

    fn events_of(contender: u32) -> String {
        format!("# <- deleted /l/{UUID_LOCK}000000000{contender} 9")
    }

    #[test]
    fn herd_is_woken_by_one_release() {
        let deleted = format!("# <- deleted /l/{UUID_LOCK}0000000001 9");
        assert_eq!(found(&woken(UUID_LOCK, &deleted)), ["herd"]);
        assert_eq!(found(&woken(UUID_LOCK, "# <- children /l 9")), ["herd"]);
        let lock = "1 create /l EPHEMERAL
                    2 create /l EPHEMERAL -> NODEEXISTS
                    3 create /l EPHEMERAL -> NODEEXISTS
                    4 create /l EPHEMERAL -> NODEEXISTS
                    1 delete /l\n";
        assert_eq!(
            found(&(lock.to_owned() + &repeated(2..5, "# <- deleted /l 9"))),
            ["herd"]
        );
    }

    #[test]
    fn no_herd_where_one_waiter_is_woken_or_readers_are() {
        let one = format!("2 <- deleted /l/{UUID_LOCK}0000000001 #");
        assert_eq!(found(&woken(UUID_LOCK, &one)), NOTHING);
        let readers = "0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d10-__READ__";
        let deleted = format!("# <- deleted /l/{readers}0000000001 9");
        assert_eq!(found(&woken(readers, &deleted)), NOTHING);
        // Our recipes watch up to three znodes ahead of their own, the nearest included.
        let ahead = repeated(
            3..5,
            &format!(
                "# getData /l/{UUID_LOCK}0000000001 watch\n# getData /l/{UUID_LOCK}0000000002 watch"
            ),
        );
        let release = format!("1 delete /l/{UUID_LOCK}0000000001");
        let early = woken(UUID_LOCK, &events_of(1)).replace(&release, &(ahead + &release));
        assert_eq!(found(&early), NOTHING);
        // They watch their own znode, too; and a contender that gave up may have left its watch.
        let own = woken(UUID_LOCK, "").replace(
            &format!("1 delete /l/{UUID_LOCK}0000000001"),
            &format!("2 delete /l/{UUID_LOCK}0000000002\n1 delete /l/{UUID_LOCK}0000000001"),
        );
        assert_eq!(found(&(own + &repeated(1..4, &events_of(1)))), NOTHING);
        // A configuration that many watch.
        let config = "1 create /c PERSISTENT 5B\n1 delete /c\n".to_owned();
        assert_eq!(
            found(&(config + &repeated(2..9, "# <- deleted /c 9"))),
            NOTHING
        );
    }
}
