//! The folders of the server import each other downwards only, in the order of `ARCHITECTURE.md`.

use std::collections::{BTreeMap, BTreeSet};

use super::{assert_none, joined_code, paths_below, read, sources};

/// The line of `ARCHITECTURE.md` behind which the order stands, in a block of code.
const HEADING: &str = "## The order of the server's folders";

/// The crates that have these folders, the upper one first. A blank line parts their folders in the order.
const CRATES: [&str; 2] = ["server/src", "server/core/src"];

/// Files that belong to the folder of another name.
const ALIASES: [(&str, &str); 1] = [("no_data", "data")];

/// The rank of each folder, counted from the bottom, and its crate. Folders of one line have the same rank.
type Ranks = BTreeMap<String, (usize, &'static str)>;

fn order(architecture: &str) -> Ranks {
    let (_, section) = architecture.split_once(HEADING).expect(HEADING);
    let mut lines = section.lines().skip_while(|line| !line.starts_with("```"));
    lines.next();
    let lines: Vec<_> = lines.take_while(|line| !line.starts_with("```")).collect();
    let mut ranks = BTreeMap::new();
    let mut crates = CRATES.iter().rev();
    let mut at = crates.next().expect("a crate");
    for (rank, line) in lines.iter().rev().enumerate() {
        // What the folders are for stands behind two blanks.
        let names = line.trim().split("  ").next().unwrap_or_default();
        if names.is_empty() {
            at = crates.next().expect("a blank line for each crate but one");
            continue;
        }
        for name in names.split(' ') {
            let former = ranks.insert(name.to_owned(), (rank, *at));
            assert!(former.is_none(), "{name} is in the order twice");
        }
    }
    ranks
}

/// Returns the path below its crate's folder.
fn below_crate(path: &str) -> &str {
    let crates = CRATES.iter().find_map(|at| path.strip_prefix(at));
    crates.unwrap_or(path).trim_start_matches('/')
}

/// Returns the folder, or the file, that a source is part of.
fn folder_of(path: &str) -> String {
    let path = below_crate(path);
    let first = path.split('/').next().unwrap_or_default();
    let name = first.trim_end_matches(".rs");
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, name)| name).to_owned()
}

/// Returns whether code leaves its folder by `super::`, or imports all that the crate exports.
fn escapes(path: &str, code: &str) -> bool {
    let path = below_crate(path);
    // A `mod.rs` is as deep as its folder.
    let depth = path.trim_end_matches("/mod.rs").split('/').count();
    let leaving = "super::".repeat(depth);
    code.contains(&leaving) || code.contains("crate::*") || code.contains("crate::{*")
}

/// Returns the imports of a folder's code that do not lead downwards. Methods that a higher folder adds
/// to a type of a lower one are not seen.
fn upward(folder: &str, code: &str, ranks: &Ranks) -> BTreeSet<String> {
    let (rank, _) = ranks[folder];
    let imports = [
        paths_below("crate::", code),
        paths_below("minikeeper_core::", code),
    ]
    .concat();
    let imports = imports.iter().filter(|import| {
        let to = import.split("::").next().unwrap_or_default();
        // What is exported at the top may be from any folder.
        to != folder && ranks.get(to).is_none_or(|(to, _)| *to >= rank)
    });
    imports.cloned().collect()
}

#[test]
fn folders_of_the_server_import_only_those_below() {
    let ranks = order(&read("ARCHITECTURE.md"));
    let mut found = Vec::new();
    let mut folders = BTreeSet::new();
    let all = CRATES.map(|at| sources(at, &["rs"]).into_iter().map(move |it| (at, it)));
    for (at, source) in all.into_iter().flatten() {
        let folder = folder_of(&source.path);
        let is_test = source.path.contains("/tests/") || source.path.ends_with("/tests.rs");
        // The program is a crate of its own, and the library's root exports what users need.
        if is_test || folder == "cli" || folder == "lib" {
            continue;
        }
        folders.insert(folder.clone());
        let wanted = ranks.get(&folder).map(|(_, wanted)| *wanted);
        if wanted != Some(at) {
            found.push(format!(
                "{folder} is in {at}, the order has it in {wanted:?}"
            ));
            continue;
        }
        let code = joined_code(&source.text);
        if escapes(&source.path, &code) {
            found.push(format!("{}: leaves its folder by super or *", source.path));
        }
        let upward = upward(&folder, &code, &ranks);
        found.extend(upward.iter().map(|to| format!("{}: {to}", source.path)));
    }
    let missing = ranks.keys().filter(|name| !folders.contains(*name));
    found.extend(missing.map(|name| format!("{name} is in the order, and nowhere else")));
    assert_none(
        &found,
        "imports against the order of folders in ARCHITECTURE.md",
    );
}

#[test]
fn upward_imports_are_found() {
    let ranks = order(&format!(
        "{HEADING}\n\nText.\n\n```text\ntop   what it is for\nleft right\n\n  bottom\n```\n"
    ));
    assert_eq!(ranks["top"], (3, "server/src"));
    assert_eq!(ranks["left"], ranks["right"]);
    assert_eq!(ranks["bottom"], (0, "server/core/src"));
    let code = "use minikeeper_core::bottom::A;\nuse crate::right::{B, C};\nfn f() { crate::top::f(crate::left::G) }\n";
    let found = upward("left", code, &ranks);
    let found: Vec<_> = found.iter().map(String::as_str).collect();
    assert_eq!(found, ["right::B", "right::C", "top::f"]);
    assert_eq!(upward("top", code, &ranks).len(), 0);
    let code = "use minikeeper_core::top::A;";
    assert_eq!(upward("left", code, &ranks).len(), 1);
    assert!(escapes("server/src/clock.rs", "super::top::f()"));
    assert!(escapes("server/core/src/left/mod.rs", "super::top::f()"));
    assert!(escapes("server/src/left/a.rs", "super::super::top::f()"));
    assert!(!escapes("server/src/left/a.rs", "super::b::f()"));
    assert!(escapes("server/src/left/a.rs", "use crate::*;"));
    // A name that the crate exports hides from where it is.
    assert_eq!(upward("top", "use crate::Server;", &ranks).len(), 1);
}
