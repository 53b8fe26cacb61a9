//! Sorts and sorted collections that are small rather than fast, for what no request waits for.
//!
//! The standard library compiles a sort of 5 to 10 kB for each type and order. These share one, or do without.

use std::cmp::Ordering;

/// Sorts a list; items that are equal keep their order.
pub fn sort_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut sources = sorted_places(items.len(), &mut |one, other| {
        compare(&items[one], &items[other])
    });
    // Follows each cycle of places once: what belongs at `place` is at `sources[place]`.
    for start in 0..items.len() {
        let mut place = start;
        while sources[place] != start {
            let source = std::mem::replace(&mut sources[place], place);
            items.swap(place, source);
            place = source;
        }
        sources[place] = place;
    }
}

/// Sorts a list by a key; items with equal keys keep their order.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(items, |one, other| key(one).cmp(&key(other)));
}

/// Collects items in a set or a map, one after the other.
///
/// The standard library's `collect` sorts them first, with one more sort for each type.
pub fn collect<C: Default + Extend<T>, T>(items: impl IntoIterator<Item = T>) -> C {
    let mut collection = C::default();
    collection.extend(items);
    collection
}

/// Returns the places of a list in the order of what is there.
fn sorted_places(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..len).collect();
    places.sort_by(|one, other| compare(*one, *other));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every list of up to six items with three keys; the second part tells equal items apart.
    #[test]
    fn order_is_that_of_the_standard_library() {
        for len in 0..=6 {
            for list in 0..3_usize.pow(len) {
                let key = |place| list / 3_usize.pow(place) % 3;
                let mut items: Vec<_> = (0..len).map(|place| (key(place), place)).collect();
                let mut expected = items.clone();
                expected.sort_by_key(|(key, _)| *key);
                sort_by_key(&mut items, |(key, _)| *key);
                assert_eq!(items, expected);
            }
        }
    }
}
