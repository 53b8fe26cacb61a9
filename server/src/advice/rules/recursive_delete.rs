//! A tree that a client deletes from its leaves up.

use std::mem;

use super::{
    AdviceRule, ClientStep, FactTable, Facts, Finder, Findings, Scene, Suspicions, parent_of,
};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "recursive-delete",
    title: "tree deleted znode by znode",
    why: "others see it half deleted; a new child stops it with NOTEMPTY, and a crash leaves the rest",
    remedy: "delete it with one multi, in slices below 1 MB",
    occurrences_min: 1,
};

#[derive(Debug, Default)]
pub(super) struct RecursiveDelete {
    uses: FactTable<Deletes>,
    /// Until the session deletes the parent, with which the tree is larger.
    suspicions: Suspicions,
}

/// The znodes below a path that a session deleted one by one, and the first.
#[derive(Debug, Default)]
struct Deletes {
    count: u64,
    first: u64,
}

impl Finder for RecursiveDelete {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        let ClientStep::Delete { path, is_in_multi } = step else {
            return;
        };
        let session = scene.at.session;
        self.suspicions.explain(scene, |it| parent_of(it) == path);
        let place = self.uses.of(&scene.use_key(path));
        let (deleted, first) = (mem::take(&mut place.count), place.first);
        if is_in_multi {
            return;
        }
        let above = self.uses.of(&scene.use_key(parent_of(path)));
        if above.count == 0 {
            above.first = if deleted > 0 { first } else { scene.at.number };
        }
        above.count += deleted + 1;
        if deleted >= DELETES_MIN {
            let text = format!(
                "session {session} deleted {path} and {deleted} znodes below it one by one"
            );
            self.suspicions.add(scene, path, first, text);
        }
    }

    fn forget_tree(&mut self) {
        self.uses.clear();
    }

    fn finish(&mut self, _: &Facts, findings: &mut Findings) {
        self.suspicions.report(findings);
    }
}

/// The number of znodes that a recursive delete deletes one by one.
const DELETES_MIN: u64 = 10;

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, advice, found, repeated};

    #[test]
    fn recursive_delete_is_one_finding_for_the_tree() {
        let children = |count| repeated(0..count, "1 delete /t/a/#");
        let whole = children(10) + "1 delete /t/a\n1 delete /t\n";
        let advice = advice(&whole);
        assert_eq!(advice.findings.len(), 1, "{advice}");
        assert_eq!(
            advice.findings[0].text,
            "session 0x1 deleted /t and 11 znodes below it one by one"
        );
        assert_eq!(found(&(children(9) + "1 delete /t/a")), NOTHING);
        assert_eq!(found(&children(50)), NOTHING);
        assert_eq!(found(&(children(10) + "2 delete /t/a")), NOTHING);
        let operations: Vec<_> = (0..20).map(|it| format!("delete /t/{it}")).collect();
        assert_eq!(
            found(&format!("1 multi [{}, delete /t]", operations.join(", "))),
            NOTHING
        );
    }
}
