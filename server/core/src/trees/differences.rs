//! Compares the expected tree with the actual one; prints the differences.

use std::{collections::BTreeSet, fmt};

use crate::{
    order,
    trees::{Lifetime, Tree, Znode},
};

/// The maximum number of differences printed; a last line gives the number of the others.
const SHOWN_MAX: usize = 50;

/// The maximum length of data printed. Unit: characters; bytes if it is not text.
const DATA_SHOWN_MAX: usize = 200;

/// The differences from a [`Tree`]. Displays as lines: `-` is expected, `+` is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeDiff {
    differences: Vec<Difference>,
}

/// One znode that differs from the expected one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Difference {
    /// Its path.
    pub path: String,
    /// The expected value; `None` if the znode should not exist.
    pub expected: Option<Znode>,
    /// The actual value; `None` if the znode does not exist.
    pub found: Option<Znode>,
}

impl TreeDiff {
    /// Returns the differences, ordered by path; there is at least one.
    #[must_use]
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// Compares two trees. Returns `None` if `found` is as expected.
    pub fn of(expected: &Tree, found: &Tree) -> Option<Self> {
        let implied = ancestors(expected);
        let mut differences = Vec::new();
        let paths = [expected, found].into_iter().flat_map(Tree::iter);
        let paths: BTreeSet<_> = order::collect(paths.map(|(path, _)| path));
        for path in paths {
            let (wanted, there) = (expected.get(path), found.get(path));
            let is_right = match (wanted, there) {
                (Some(wanted), Some(there)) => fits(wanted, there),
                (Some(_), None) => false,
                // The root and implied parents match unless they are named.
                (None, _) => path == "/" || expected.is_partial() || implied.contains(path),
            };
            if !is_right {
                differences.push(Difference {
                    path: path.to_owned(),
                    expected: wanted.cloned(),
                    found: there.cloned(),
                });
            }
        }
        (!differences.is_empty()).then_some(Self { differences })
    }
}

/// Returns whether a znode has all the properties that the expected one specifies.
fn fits(wanted: &Znode, there: &Znode) -> bool {
    wanted.data().is_none_or(|data| there.data() == Some(data))
        && wanted
            .lifetime()
            .is_none_or(|lifetime| there.lifetime() == Some(lifetime))
        && wanted
            .access()
            .is_none_or(|access| there.access() == Some(access))
}

/// Returns the paths of all ancestors of the named znodes, except the root.
fn ancestors(tree: &Tree) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for (mut path, _) in tree.iter() {
        while let Some((parent, _)) = path.rsplit_once('/')
            && !parent.is_empty()
            && found.insert(parent)
        {
            path = parent;
        }
    }
    found
}

impl fmt::Display for TreeDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the tree is not as expected (- expected, + found):")?;
        for Difference {
            path,
            expected,
            found,
        } in self.differences.iter().take(SHOWN_MAX)
        {
            let shows_access = expected
                .as_ref()
                .is_some_and(|znode| znode.access().is_some());
            let shows_lifetime = expected
                .as_ref()
                .is_some_and(|znode| znode.lifetime().is_some());
            if let Some(znode) = expected {
                write!(f, "\n- {path}")?;
                write_znode(f, znode, true, true)?;
            }
            if let Some(znode) = found {
                write!(f, "\n+ {path}")?;
                let is_plain = znode.lifetime() == Some(Lifetime::Persistent);
                write_znode(f, znode, shows_lifetime || !is_plain, shows_access)?;
            }
        }
        let more = self.differences.len().saturating_sub(SHOWN_MAX);
        if more > 0 {
            write!(f, "\nand {more} more")?;
        }
        Ok(())
    }
}

fn write_znode(
    f: &mut fmt::Formatter<'_>,
    znode: &Znode,
    with_lifetime: bool,
    with_access: bool,
) -> fmt::Result {
    if let Some(data) = znode.data() {
        f.write_str(" = ")?;
        write_data(f, data)?;
    }
    if let Some(lifetime) = znode.lifetime().filter(|_| with_lifetime) {
        write!(f, " ({lifetime})")?;
    }
    if let Some(access) = znode.access().filter(|_| with_access) {
        write!(f, " [{}]", access.join(", "))?;
    }
    Ok(())
}

fn write_data(f: &mut fmt::Formatter<'_>, data: Option<&[u8]>) -> fmt::Result {
    let Some(data) = data else {
        return f.write_str("null");
    };
    let Ok(text) = std::str::from_utf8(data) else {
        let shown = &data[..data.len().min(DATA_SHOWN_MAX)];
        f.write_str("0x")?;
        for byte in shown {
            write!(f, "{byte:02x}")?;
        }
        return write_rest(f, data.len() - shown.len());
    };
    let end = text
        .char_indices()
        .nth(DATA_SHOWN_MAX)
        .map_or(text.len(), |(at, _)| at);
    write!(f, "{:?}", &text[..end])?;
    write_rest(f, text.len() - end)
}

fn write_rest(f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
    if bytes > 0 {
        write!(f, "... and {bytes} more bytes")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{tree, trees::Znode};

    use super::*;

    /// Specifies all properties, as an exported tree does.
    fn found(tree: Tree) -> Tree {
        tree.iter()
            .map(|(path, znode)| {
                let lifetime = znode.lifetime().unwrap_or(Lifetime::Persistent);
                let access = znode
                    .access()
                    .map_or_else(|| vec!["world:anyone:cdrwa".to_owned()], <[_]>::to_vec);
                (path, znode.clone().lives(lifetime).acl(access))
            })
            .collect()
    }

    #[track_caller]
    fn assert_lines(expected: &Tree, there: Tree, lines: &[&str]) {
        let diff = TreeDiff::of(expected, &found(there)).map(|diff| diff.to_string());
        let text = diff.unwrap_or_default();
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), lines);
    }

    #[test]
    fn differences_are_listed_by_path() {
        let expected = tree! { "/a" => "x", "/a/b" => null, "/d" => Znode::any().container() };
        let there = tree! {
            "/a" => "x", "/a/b" => "", "/c" => Znode::from(b"\xff\x00").ephemeral(), "/d" => "1"
        };
        assert_lines(
            &expected,
            there,
            &[
                "- /a/b = null",
                "+ /a/b = \"\"",
                "+ /c = 0xff00 (ephemeral)",
                "- /d (container)",
                "+ /d = \"1\" (persistent)",
            ],
        );
    }

    #[test]
    fn unnamed_parents_root_and_znodes_of_a_partial_tree_may_be_anything() {
        assert_lines(
            &tree! { "/a/b" => "x" },
            tree! { "/" => "r", "/a" => "y", "/a/b" => "x" },
            &[],
        );
        assert_lines(
            &tree! { "/a" => "x", .. },
            tree! { "/a" => "x", "/b" => null },
            &[],
        );
        assert_lines(
            &tree! { "/a" => "x", .. },
            tree! { "/b" => null },
            &["- /a = \"x\""],
        );
        assert_lines(
            &tree! { "/" => "x" },
            tree! { "/" => "" },
            &["- / = \"x\"", "+ / = \"\""],
        );
    }

    #[test]
    fn access_list_is_shown_if_the_expected_one_is_specified() {
        let expected = tree! { "/a" => Znode::from("x").acl(["world:anyone:r"]) };
        assert_lines(
            &expected,
            tree! { "/a" => "x" },
            &[
                "- /a = \"x\" [world:anyone:r]",
                "+ /a = \"x\" [world:anyone:cdrwa]",
            ],
        );
    }

    #[test]
    fn long_lists_and_long_data_are_cut_short() {
        let there: Tree = (0..60)
            .map(|number| (format!("/{number:02}"), ""))
            .collect();
        let diff = TreeDiff::of(&Tree::new(), &found(there)).unwrap();
        let text = diff.to_string();
        assert_eq!(text.lines().count(), 52);
        assert!(text.ends_with("+ /49 = \"\"\nand 10 more"), "{text}");
        let there = tree! { "/a" => "ä".repeat(300), "/b" => vec![255; 300] };
        let text = TreeDiff::of(&Tree::new(), &found(there))
            .unwrap()
            .to_string();
        let ends: Vec<_> = text
            .lines()
            .skip(1)
            .map(|line| line.rsplit("...").next().unwrap())
            .collect();
        assert_eq!(ends, [" and 200 more bytes", " and 100 more bytes"]);
    }
}
