//! Decides from the list of contenders which of them holds the lock. Pure functions.
//!
//! Source: `docs/curator-recipes.md` sections 1.5, 4.2, 5.1 and 5.7; proofs in 14.5 and 14.7.

use crate::queue::naming;

/// The kind of access that a contender wants, which decides for which contenders it waits.
///
/// # Examples
/// ```
/// use minikeeper_recipes::order::{Claim, Look, ahead};
///
/// let queue = ["__READ__0000000001", "__READ__0000000002"];
/// let look = Look::Nearest(1);
/// // A reader does not wait for a reader ahead; a writer does.
/// let reader = ahead(Claim::Read, queue, queue[1], look);
/// assert!(reader.is_some_and(|ahead| ahead.is_empty()));
/// let writer = ahead(Claim::Write, queue, queue[1], look);
/// assert!(writer.is_some_and(|ahead| ahead.seen == [queue[0]]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// Exclusive access among contenders of this kind: waits for every contender ahead.
    Mutex,
    /// Shared access: waits for writers ahead.
    Read,
    /// Exclusive access among readers and writers: waits for every contender ahead.
    Write,
    /// Leadership: waits for every contender ahead.
    Latch,
}

impl Claim {
    /// Returns the name that follows the protection prefix.
    #[must_use]
    pub const fn lock_name(self) -> &'static str {
        match self {
            Self::Mutex => naming::lock_name::MUTEX,
            Self::Read => naming::lock_name::READ,
            Self::Write => naming::lock_name::WRITE,
            Self::Latch => naming::lock_name::LATCH,
        }
    }

    /// Returns the part of a name that orders it in the queue.
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

    /// Returns whether a contender whose znode is gone may have put another znode in its place. The
    /// holder of a write lock does so when it turns into a reader (section 5.3).
    #[must_use]
    pub fn may_be_replaced(self, name: &str) -> bool {
        self == Self::Write && naming::is_writer(name)
    }
}

/// Selects which of the contenders ahead [`ahead`] returns by name.
///
/// # Examples
/// ```
/// use minikeeper_recipes::order::{Claim, Look, ahead};
///
/// let queue = ["lock-0000000003", "lock-0000000001", "lock-0000000002"];
/// let seen = |look| ahead(Claim::Mutex, queue, queue[0], look).map(|ahead| ahead.seen);
/// assert_eq!(seen(Look::Nearest(1)), Some(vec!["lock-0000000002".to_owned()]));
/// assert_eq!(seen(Look::First), Some(vec!["lock-0000000001".to_owned()]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// The nearest N.
    Nearest(usize),
    /// The first in the queue, which Curator's readers watch.
    First,
}

/// The contenders that a contender waits for. If there is none, it holds the lock.
///
/// # Examples
/// ```
/// use minikeeper_recipes::order::{Claim, Look, ahead};
///
/// let queue = ["lock-0000000003", "lock-0000000001", "lock-0000000002"];
/// let ahead = ahead(Claim::Mutex, queue, queue[0], Look::Nearest(1)).expect("it is listed");
/// assert_eq!((ahead.seen.len(), ahead.others), (1, 1));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ahead {
    /// The contenders that [`Look`] selects, the nearest first.
    pub seen: Vec<String>,
    /// The number of all others.
    pub others: usize,
}

impl Ahead {
    /// Returns whether there is no contender to wait for.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.seen.is_empty() && self.others == 0
    }
}

/// Returns the contenders that one contender waits for. `None` if its own name is not in the list.
///
/// Every child takes part, whatever its name, as in Java (hazard H12). Equal keys keep the order of
/// the list, as in a stable sort.
///
/// This makes one pass, sorts nothing and copies only the selected names (S8), because a list is as
/// long as the queue, and every contender reads it twice.
///
/// # Examples
/// ```
/// use minikeeper_recipes::order::{Claim, Look, ahead};
///
/// let queue = ["_c_b-lock-0000000002", "_c_z-lock-0000000001"];
/// let of = |own| ahead(Claim::Mutex, queue, own, Look::Nearest(2));
/// // The second of the list came first.
/// assert!(of(queue[1]).is_some_and(|ahead| ahead.is_empty()));
/// assert!(of(queue[0]).is_some_and(|ahead| ahead.seen == [queue[1]]));
/// // Its znode is gone.
/// assert_eq!(of("_c_a-lock-0000000009"), None);
/// ```
#[must_use]
pub fn ahead<'a, N: AsRef<str> + 'a>(
    claim: Claim,
    children: impl IntoIterator<Item = N>,
    own: &str,
    look: Look,
) -> Option<Ahead> {
    let own_key = claim.key(own);
    let mut is_listed = false;
    let mut count = 0;
    // The selected ones, in the order of `seen`; of equal keys the later one is nearer.
    let mut kept: Vec<N> = Vec::new();
    for child in children {
        let name = child.as_ref();
        if name == own {
            is_listed = true;
            continue;
        }
        let key = claim.key(name);
        let is_ahead = key < own_key || key == own_key && !is_listed;
        if !is_ahead || !claim.is_in_the_way(name) {
            continue;
        }
        count += 1;
        let (at, max) = match look {
            Look::Nearest(max) => {
                let is_nearer = |other: &N| claim.key(other.as_ref()) > key;
                (
                    kept.iter().take_while(|other| is_nearer(other)).count(),
                    max,
                )
            }
            Look::First => {
                let is_first = kept
                    .first()
                    .is_none_or(|other| key < claim.key(other.as_ref()));
                (usize::from(!is_first), 1)
            }
        };
        if at < max {
            kept.insert(at, child);
            kept.truncate(max);
        }
    }
    is_listed.then(|| Ahead {
        others: count - kept.len(),
        seen: kept.iter().map(|name| name.as_ref().to_owned()).collect(),
    })
}

/// Sorts all contenders in the order of the queue.
///
/// # Examples
/// ```
/// use minikeeper_recipes::order::{Claim, sorted};
///
/// let list = ["_c_b-lock-0000000002".to_owned(), "_c_z-lock-0000000001".to_owned()];
/// assert_eq!(sorted(Claim::Mutex, list.to_vec()), [&*list[1], &*list[0]]);
/// ```
#[must_use]
pub fn sorted(claim: Claim, children: Vec<String>) -> Vec<String> {
    let mut children = children;
    children.sort_by(|a, b| claim.key(a).cmp(claim.key(b)));
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all contenders ahead, in order of the queue, found by sorting.
    fn by_sorting(claim: Claim, children: &[&str], own: &str) -> Vec<String> {
        let own_at = children.iter().position(|child| *child == own).unwrap();
        let mut ahead: Vec<_> = children
            .iter()
            .enumerate()
            .map(|(at, child)| (claim.key(child), at, *child))
            .filter(|(key, at, _)| (*key, *at) < (claim.key(own), own_at))
            .filter(|(_, _, child)| claim.is_in_the_way(child))
            .collect();
        ahead.sort_unstable();
        ahead
            .into_iter()
            .map(|(_, _, child)| child.to_owned())
            .collect()
    }

    /// Compares every [`Look`] with the result of sorting.
    fn check(claim: Claim, children: &[&str], own: &str) -> Vec<String> {
        let all = by_sorting(claim, children, own);
        for max in 0..=all.len() + 1 {
            let seen: Vec<_> = all.iter().rev().take(max).cloned().collect();
            let others = all.len() - seen.len();
            let found = ahead(claim, children, own, Look::Nearest(max)).unwrap();
            assert_eq!(found, Ahead { seen, others });
        }
        let first = ahead(claim, children, own, Look::First).unwrap();
        assert_eq!(first.seen.first(), all.first());
        assert_eq!(first.others, all.len().saturating_sub(1));
        all
    }

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
                assert_eq!(check(Claim::Mutex, &permutation, own), names[..place]);
            }
        }
    }

    #[test]
    fn every_mix_of_readers_and_writers_waits_for_the_right_ones() {
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
                let read = check(Claim::Read, &list, own);
                assert_eq!(read, writers.cloned().collect::<Vec<_>>());
                assert_eq!(check(Claim::Write, &list, own), names[..place]);
            }
        }
    }

    #[test]
    fn list_without_the_own_name_is_no_grant() {
        // Hazard H25.
        let none: [&str; 0] = [];
        assert_eq!(ahead(Claim::Read, none, "a", Look::Nearest(2)), None);
        assert_eq!(ahead(Claim::Mutex, ["b"], "a", Look::First), None);
    }

    #[test]
    fn children_with_foreign_names_take_part() {
        // Hazard H12: a stray znode that sorts before digits blocks, as it does in Java.
        let list = ["_c_1-lock-0000000001", "!stray", "zz"];
        assert_eq!(check(Claim::Mutex, &list, list[0]), ["!stray"]);
    }

    #[test]
    fn equal_keys_keep_the_order_of_the_list() {
        let (a, b) = ("_c_1-lock-2147483647", "_c_2-lock-2147483647");
        assert_eq!(check(Claim::Mutex, &[b, a], a), [b]);
        assert_eq!(check(Claim::Mutex, &[a, b], a), [""; 0]);
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
