//! Who holds a lock, by the list of its contenders: the decision, without any I/O.
//!
//! Source: curator-recipes reference sections 1.5, 4.2, 5.1 and 5.7; proofs in 14.5 and 14.7.

use crate::naming;

/// What a contender wants, and so, what stands in its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// All for itself, among contenders of one kind: whatever is ahead is in the way.
    Mutex,
    /// To read: writers ahead are in the way.
    Read,
    /// To write: whatever is ahead is in the way.
    Write,
    /// To lead, among contenders of one kind: whatever is ahead is in the way.
    Latch,
}

impl Claim {
    /// The name behind the protection prefix.
    #[must_use]
    pub const fn lock_name(self) -> &'static str {
        match self {
            Self::Mutex => naming::lock_name::MUTEX,
            Self::Read => naming::lock_name::READ,
            Self::Write => naming::lock_name::WRITE,
            Self::Latch => naming::lock_name::LATCH,
        }
    }

    /// What children are ordered by.
    #[must_use]
    pub fn key(self, name: &str) -> &str {
        match self {
            Self::Mutex => naming::key(name, naming::lock_name::MUTEX),
            Self::Read | Self::Write => naming::read_write_key(name),
            Self::Latch => naming::key(name, naming::lock_name::LATCH),
        }
    }

    fn is_in_the_way(self, name: &str) -> bool {
        self != Self::Read || naming::is_writer(name)
    }

    /// Whether a contender that could be seen to go may have put another in its place: the holder
    /// of a write lock that reads on does (section 5.3).
    #[must_use]
    pub fn may_be_replaced(self, name: &str) -> bool {
        self == Self::Write && naming::is_writer(name)
    }
}

/// What stands between a contender and its lock, first the one that came first.
///
/// `None` if the own name is not in the list. Nothing in the way is a grant.
///
/// Every child takes part, whatever its name: that is what Java contenders do (hazard H12). Equal
/// keys keep the order of the list, as a stable sort would.
#[must_use]
pub fn in_the_way(claim: Claim, children: &[&str], own: &str) -> Option<Vec<String>> {
    let own_at = children.iter().position(|child| *child == own)?;
    let own_key = claim.key(own);
    let mut ahead: Vec<_> = children
        .iter()
        .enumerate()
        .filter(|(at, child)| (claim.key(child), *at) < (own_key, own_at))
        .map(|(at, child)| (claim.key(child), at, *child))
        .filter(|(_, _, child)| claim.is_in_the_way(child))
        .collect();
    ahead.sort_unstable();
    Some(
        ahead
            .into_iter()
            .map(|(_, _, child)| child.to_owned())
            .collect(),
    )
}

/// Which of those in the way Curator watches: the one directly ahead, or, as a reader, the first
/// writer.
#[must_use]
pub fn watched_by_curator(claim: Claim, in_the_way: &[String]) -> Option<&String> {
    match claim {
        Claim::Read => in_the_way.first(),
        Claim::Mutex | Claim::Write | Claim::Latch => in_the_way.last(),
    }
}

/// Every contender in the order of the queue: for lists of participants.
#[must_use]
pub fn sorted(claim: Claim, children: Vec<String>) -> Vec<String> {
    let mut children = children;
    children.sort_by(|a, b| claim.key(a).cmp(claim.key(b)));
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_of_a_list_gives_the_same_decision() {
        // All permutations of four contenders with random-looking prefixes.
        let names = [
            "_c_9-lock-0000000003",
            "_c_1-lock-0000000004",
            "_c_5-lock-0000000007",
            "_c_0-lock-0000000011",
        ];
        for permutation in permutations(&names) {
            for (place, own) in names.iter().enumerate() {
                let way = in_the_way(Claim::Mutex, &permutation, own).unwrap();
                assert_eq!(way, names[..place]);
            }
        }
    }

    #[test]
    fn readers_and_writers_by_enumeration() {
        // Every mix of readers and writers in a queue of five, each place in turn.
        for mix in 0..32_u32 {
            let name = |at: u32| {
                let kind = if mix >> at & 1 == 1 {
                    "__WRIT__"
                } else {
                    "__READ__"
                };
                format!("_c_{}-{kind}{at:010}", 9 - at)
            };
            let names: Vec<_> = (0..5).map(name).collect();
            let list: Vec<_> = names.iter().rev().map(String::as_str).collect();
            for (place, own) in names.iter().enumerate() {
                let writers = names[..place].iter().filter(|name| naming::is_writer(name));
                let read = in_the_way(Claim::Read, &list, own).unwrap();
                assert_eq!(read, writers.cloned().collect::<Vec<_>>());
                let write = in_the_way(Claim::Write, &list, own).unwrap();
                assert_eq!(write, names[..place]);
                // The first writer is watched by readers, the one directly ahead by writers.
                assert_eq!(watched_by_curator(Claim::Read, &read), read.first());
                assert_eq!(watched_by_curator(Claim::Write, &write), write.last());
            }
        }
    }

    #[test]
    fn own_name_that_is_missing_is_no_grant() {
        // Hazard H25.
        assert_eq!(in_the_way(Claim::Read, &[], "a"), None);
        assert_eq!(in_the_way(Claim::Mutex, &["b"], "a"), None);
    }

    #[test]
    fn foreign_children_count() {
        // Hazard H12: a stray znode that sorts before digits blocks, as it does in Java.
        let list = ["_c_1-lock-0000000001", "!stray", "zz"];
        let way = in_the_way(Claim::Mutex, &list, list[0]).unwrap();
        assert_eq!(way, ["!stray"]);
    }

    #[test]
    fn equal_keys_keep_the_order_of_the_list() {
        let (a, b) = ("_c_1-lock-2147483647", "_c_2-lock-2147483647");
        assert_eq!(in_the_way(Claim::Mutex, &[b, a], a).unwrap(), [b]);
        assert_eq!(in_the_way(Claim::Mutex, &[a, b], a).unwrap(), [""; 0]);
    }

    fn permutations<'a>(names: &[&'a str]) -> Vec<Vec<&'a str>> {
        if names.is_empty() {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for at in 0..names.len() {
            let mut rest = names.to_vec();
            let first = rest.remove(at);
            for mut tail in permutations(&rest) {
                tail.insert(0, first);
                all.push(tail);
            }
        }
        all
    }
}
