//! The order in which ZooKeeper lists children: that of a `java.util.HashSet` of their names.
//!
//! By where the hash of the name falls in the table; names that fall to one place come in the order
//! of their creation. The table doubles when it is three quarters full, never shrinks, and while it
//! has less than 64 places also doubles for the ninth name at one of them. From 64 places on more
//! than eight names at one place become a tree in Java, whose order is not followed here: it takes
//! names chosen for their hashes.
//!
//! Source: ZooKeeper's `DataNode.addChild`; OpenJDK 17's `HashMap`; compared with it in the tests.

use crate::state::{keys::ZnodeId, tree::Tree};

/// The table of a parent that has just got its first child.
pub(crate) const EMPTY_TABLE_BITS: u8 = 3;

/// Below this size a place with too many names makes the table grow.
const TREES_FROM_BITS: u8 = 6;

/// How many names one place holds before.
const NAMES_AT_ONE_PLACE_MAX: usize = 8;

/// Where a name falls in a table of this size.
fn place(name: &[u8], table_bits: u8) -> u32 {
    let hash = String::from_utf8_lossy(name)
        .encode_utf16()
        .fold(0_u32, |hash, unit| {
            hash.wrapping_mul(31).wrapping_add(unit.into())
        });
    (hash ^ (hash >> 16)) & ((1 << table_bits) - 1)
}

/// How large the parent's table is once a child of this name was added.
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

/// The children in the order of a listing.
pub(crate) fn listed(tree: &Tree, parent: ZnodeId) -> Vec<ZnodeId> {
    let bits = tree[parent]
        .family
        .as_ref()
        .map_or(EMPTY_TABLE_BITS, |family| family.table_bits);
    let mut children: Vec<_> = tree
        .children(parent)
        .map(|child| (place(tree[child].name(), bits), child))
        .collect();
    // Stable: names at one place keep the order of their creation.
    children.sort_by_key(|(place, _)| *place);
    children.into_iter().map(|(_, child)| child).collect()
}
