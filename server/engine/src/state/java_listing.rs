//! The order in which ZooKeeper lists children: that of a `java.util.HashSet` of their names.
//!
//! Names are ordered by their bucket in the hash table; names in the same bucket are in order of
//! creation. The table doubles when it is three quarters full, and never shrinks. While it has less
//! than 64 buckets, it also doubles for the ninth name in a bucket. With 64 buckets or more, Java
//! turns a bucket with more than eight names into a tree; its order is not followed here, because
//! only names chosen for their hashes lead to it.
//!
//! Source: ZooKeeper's `DataNode.addChild`; OpenJDK 17's `HashMap`; compared with it in the tests.

use crate::state::{keys::ZnodeId, tree::Tree};

/// The size of the table of a parent with its first child, as an exponent of two.
pub(crate) const EMPTY_TABLE_BITS: u8 = 3;

/// Below this size, a bucket with too many names makes the table grow. An exponent of two.
const TREES_FROM_BITS: u8 = 6;

/// The maximum number of names in a bucket before that.
const NAMES_AT_ONE_PLACE_MAX: usize = 8;

/// Returns the bucket of a name in a table of this size.
fn place(name: &[u8], table_bits: u8) -> u32 {
    let hash = String::from_utf8_lossy(name)
        .encode_utf16()
        .fold(0_u32, |hash, unit| {
            hash.wrapping_mul(31).wrapping_add(unit.into())
        });
    (hash ^ (hash >> 16)) & ((1 << table_bits) - 1)
}

/// Returns the size of the parent's table after adding a child with this name, as an exponent of
/// two.
pub(crate) fn table_bits_with(tree: &Tree, parent: ZnodeId, name: &[u8]) -> u8 {
    let Some(family) = &tree[parent].family else {
        return EMPTY_TABLE_BITS;
    };
    let mut bits = family.table_bits;
    if bits < TREES_FROM_BITS {
        let place_of = |name| place(name, bits);
        let at_its_place = tree
            .children(parent)
            .filter(|child| place_of(tree[*child].name()) == place_of(name));
        bits += u8::from(at_its_place.count() >= NAMES_AT_ONE_PLACE_MAX);
    }
    let is_crowded = u64::from(family.count) + 1 > (3 << bits) / 4;
    bits + u8::from(is_crowded)
}

/// Returns the children in the order of a listing.
pub(crate) fn listed(tree: &Tree, parent: ZnodeId) -> Vec<ZnodeId> {
    let bits = tree[parent]
        .family
        .as_ref()
        .map_or(EMPTY_TABLE_BITS, |family| family.table_bits);
    let mut children: Vec<_> = tree
        .children(parent)
        .map(|child| (place(tree[child].name(), bits), child))
        .collect();
    // A stable sort: names in one bucket stay in order of creation.
    children.sort_by_key(|(place, _)| *place);
    children.into_iter().map(|(_, child)| child).collect()
}
