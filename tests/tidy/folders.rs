//! The folders of the server import each other downwards only, in the order of `ARCHITECTURE.md`.

use std::collections::{BTreeMap, BTreeSet};

use super::{assert_none, joined_code, paths_below, read, sources};

/// The line of `ARCHITECTURE.md` behind which the order stands, in a block of code.
const HEADING: &str = "## The order of the server's folders";

const SERVER: &str = "server/src";

/// Files that belong to the folder of another name.
const ALIASES: [(&str, &str); 1] = [("no_data", "data")];

/// Returns the rank of each folder, counted from the bottom. Folders of one line have the same rank.
fn order(architecture: &str) -> BTreeMap<String, usize> {
    let (_, section) = architecture.split_once(HEADING).expect(HEADING);
    let mut lines = section.lines().skip_while(|line| !line.starts_with("```"));
    lines.next();
    let lines: Vec<_> = lines.take_while(|line| !line.starts_with("```")).collect();
    let mut ranks = BTreeMap::new();
    for (rank, line) in lines.iter().rev().enumerate() {
        // What the folders are for stands behind two blanks.
        let names = line.trim().split("  ").next().unwrap_or_default();
        for name in names.split(' ') {
            let former = ranks.insert(name.to_owned(), rank);
            assert!(former.is_none(), "{name} is in the order twice");
        }
    }
    ranks
}

/// Returns the folder, or the file, below `server/src` that a source is part of.
fn folder_of(path: &str) -> String {
    let path = path.trim_start_matches(SERVER).trim_start_matches('/');
    let first = path.split('/').next().unwrap_or_default();
    let name = first.trim_end_matches(".rs");
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, name)| name).to_owned()
}

/// Returns whether code leaves its folder by `super::`, or imports all that the crate exports.
fn escapes(path: &str, code: &str) -> bool {
    let path = path.trim_start_matches(SERVER).trim_start_matches('/');
    // A `mod.rs` is as deep as its folder.
    let depth = path.trim_end_matches("/mod.rs").split('/').count();
    let leaving = "super::".repeat(depth);
    code.contains(&leaving) || code.contains("crate::*") || code.contains("crate::{*")
}

/// Returns the imports of a folder's code that do not lead downwards. Methods that a higher folder adds
/// to a type of a lower one are not seen.
fn upward(folder: &str, code: &str, ranks: &BTreeMap<String, usize>) -> BTreeSet<String> {
    let rank = ranks[folder];
    let imports = paths_below("crate::", code);
    let imports = imports.iter().filter(|import| {
        let to = import.split("::").next().unwrap_or_default();
        // What is exported at the top may be from any folder.
        to != folder && ranks.get(to).is_none_or(|to| *to >= rank)
    });
    imports.cloned().collect()
}

#[test]
fn folders_of_the_server_import_only_those_below() {
    let ranks = order(&read("ARCHITECTURE.md"));
    let mut found = Vec::new();
    let mut folders = BTreeSet::new();
    for source in sources(SERVER, &["rs"]) {
        let folder = folder_of(&source.path);
        let is_test = source.path.contains("/tests/") || source.path.ends_with("/tests.rs");
        // The program is a crate of its own, and the library's root exports what users need.
        if is_test || folder == "cli" || folder == "lib" {
            continue;
        }
        folders.insert(folder.clone());
        if !ranks.contains_key(&folder) {
            found.push(format!("{folder} is not in the order"));
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
        "{HEADING}\n\nText.\n\n```text\ntop   what it is for\nleft right\n  bottom\n```\n"
    ));
    assert_eq!(ranks["top"], 2);
    assert_eq!((ranks["left"], ranks["right"]), (1, 1));
    let code = "use crate::{bottom::A, right::{B, C}};\nfn f() { crate::top::f(crate::left::G) }\n";
    let found = upward("left", code, &ranks);
    let found: Vec<_> = found.iter().map(String::as_str).collect();
    assert_eq!(found, ["right::B", "right::C", "top::f"]);
    assert_eq!(upward("top", code, &ranks).len(), 0);
    assert!(escapes("server/src/clock.rs", "super::top::f()"));
    assert!(escapes("server/src/left/mod.rs", "super::top::f()"));
    assert!(escapes("server/src/left/a.rs", "super::super::top::f()"));
    assert!(!escapes("server/src/left/a.rs", "super::b::f()"));
    assert!(escapes("server/src/left/a.rs", "use crate::*;"));
    // A name that the crate exports hides from where it is.
    assert_eq!(upward("top", "use crate::Server;", &ranks).len(), 1);
}
