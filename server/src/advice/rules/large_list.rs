//! A watched list that is fetched whole after each change of one child.

use super::{AdviceRule, ClientStep, Finder, Scene};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "large-list",
    title: "watched list of a znode with 1000 children or more",
    why: "each change of one child makes every watcher fetch the whole list, which must fit into a reply of 1 MB",
    remedy: "spread the children over several parents, or use one recursive watch (addWatch) and read what changed",
    occurrences_min: 1,
};

#[derive(Debug, Default)]
pub(super) struct LargeList;

impl Finder for LargeList {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        let ClientStep::Request(request) = step else {
            return;
        };
        let (session, path) = (scene.at.session, request.path);
        let children = scene.facts.path(path).children;
        if request.is_list() && request.watch && request.error.is_none() && children >= CHILDREN_MIN
        {
            let text = format!(
                "session {session} watches the list of {path}, which has {children} children or more"
            );
            scene.report(path, children, 1, &[], text);
        }
    }
}

/// The number of children of a large list.
const CHILDREN_MIN: u64 = 1_000;

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, found, repeated};

    #[test]
    fn large_list_needs_a_watch_and_1000_children() {
        let children = |count| repeated(0..count, "1 create /a/# PERSISTENT");
        let listed = |count, list: &str| found(&(children(count) + list));
        assert_eq!(listed(1_000, "2 getChildren2 /a watch"), ["large-list"]);
        assert_eq!(listed(999, "2 getChildren2 /a watch"), NOTHING);
        assert_eq!(listed(1_000, "2 getChildren2 /a"), NOTHING);
        let fewer = children(1_000) + "1 delete /a/7\n2 getChildren /a watch";
        assert_eq!(found(&fewer), NOTHING);
        // What was left out may have deleted them.
        assert_eq!(
            found(&(children(1_000) + "0 omitted\n2 getChildren /a watch")),
            NOTHING
        );
    }
}
