//! Tests rules of the source tree that no compiler checks.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

#[path = "tidy/citations.rs"]
mod citations;
#[path = "tidy/folders.rs"]
mod folders;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/scripts.rs"]
mod scripts;
#[path = "tidy/version.rs"]
mod version;

/// One source file.
struct Source {
    /// The path from the root of the tree, with slashes.
    path: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ is not the root")
        .to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the files below a folder of the tree that have one of these extensions, without build
/// output.
fn sources(folder: &str, extensions: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).expect("a folder of the tree");
        for entry in entries {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                if !matches!(&*name, "target" | "node_modules" | ".git" | "__pycache__") {
                    folders.push(path);
                }
                continue;
            }
            let extension = path.extension().unwrap_or_default().to_string_lossy();
            if extensions.contains(&&*extension) {
                let text = fs::read_to_string(&path).expect("text");
                let path = path.strip_prefix(root()).expect("below the root");
                let path = path.to_string_lossy().replace('\\', "/");
                found.push(Source { path, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!found.is_empty(), "nothing found in {folder}");
    found
}

/// Returns the numbered lines that are compiled into the product, without comments and items marked
/// `#[cfg(test)]`.
fn code(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut is_test = false;
    // The depth of braces inside an item marked `#[cfg(test)]`; `None` until its first brace.
    let mut depth: Option<i32> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split("//").next().unwrap_or_default();
        if line.trim() == "#[cfg(test)]" || line.trim().starts_with("#[cfg(all(test,") {
            is_test = true;
            continue;
        }
        if !is_test {
            lines.push((number, line.to_owned()));
            continue;
        }
        let count = |brace| i32::try_from(line.matches(brace).count()).expect("a short line");
        let change = count('{') - count('}');
        if line.contains('{') || depth.is_some() {
            depth = Some(depth.unwrap_or(0) + change);
        }
        // The end of a block, or of an item without a block such as `mod tests;`.
        if depth.is_some_and(|depth| depth <= 0) || depth.is_none() && line.contains(';') {
            (is_test, depth) = (false, None);
        }
    }
    lines
}

fn joined_code(text: &str) -> String {
    code(text)
        .into_iter()
        .map(|(_, line)| line + "\n")
        .collect()
}

#[track_caller]
fn assert_none(found: &[String], what: &str) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// Returns the lines of code with one of these words, unless `is_allowed` allows the word in the
/// file.
fn lines_with(
    sources: &[Source],
    words: &[&str],
    is_allowed: impl Fn(&str, &str) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        for (number, line) in code(&source.text) {
            for word in words {
                if line.contains(word) && !is_allowed(&source.path, word) {
                    found.push(format!("{}:{number}: {}", source.path, line.trim()));
                }
            }
        }
    }
    found
}

/// The engine is a function of its inputs: `ARCHITECTURE.md`, "Time and determinism". The standard
/// library's hash tables iterate in a different order in every process.
#[test]
fn engine_uses_no_runtime_clock_thread_environment_or_randomness() {
    const FORBIDDEN_STD: [&str; 9] = [
        "time",
        "thread",
        "env",
        "fs",
        "net",
        "process",
        "collections::HashMap",
        "collections::HashSet",
        "collections::hash_map",
    ];
    let mut sources = sources("server/engine/src", &["rs"]);
    // Tests take their seed from the environment.
    sources.retain(|source| !source.path.starts_with("server/engine/src/tests/"));
    let crates = ["tokio", "parking_lot::", "rand::", "getrandom"];
    let mut found = lines_with(&sources, &crates, |_, _| false);
    // Every table hashes with the seed of the settings; clients could predict any other one.
    let hashers = ["foldhash", "HashMap", "HashSet", "DefaultHasher"];
    found.extend(lines_with(&sources, &hashers, |path, _| {
        path.ends_with("/hashing.rs")
    }));
    for source in &sources {
        for path in paths_below("std::", &joined_code(&source.text)) {
            let is_forbidden = FORBIDDEN_STD.iter().any(|forbidden| {
                path.strip_prefix(forbidden)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            });
            if is_forbidden {
                found.push(format!("{}: std::{path}", source.path));
            }
        }
    }
    assert_none(&found, "the engine must not use");
    let manifest = read("server/engine/Cargo.toml");
    let dependencies = manifest
        .split("[dependencies]")
        .nth(1)
        .and_then(|rest| rest.split("\n[").next())
        .expect("the engine has dependencies");
    for forbidden in ["tokio", "parking_lot", "rand", "tracing", "getrandom"] {
        assert!(
            !dependencies.contains(forbidden),
            "the engine depends on {forbidden}"
        );
    }
}

/// All other code takes `now` from the caller.
#[test]
fn only_clock_files_read_time() {
    let all: Vec<_> = ["protocol", "server", "recipes", "benches", "tests"]
        .iter()
        .flat_map(|folder| sources(folder, &["rs"]))
        .filter(|source| source.path != "tests/tidy.rs")
        // Packages outside the workspace that act as clients of other projects.
        .filter(|source| !source.path.starts_with("tests/interop/"))
        .collect();
    let read_time = ["Instant::now", "SystemTime::now"];
    let found = lines_with(&all, &read_time, |path, _| path.ends_with("/clock.rs"));
    assert_none(&found, "the clock is read outside clock.rs");
}

/// A name that stands for two types has to be looked up each time.
#[test]
fn no_two_types_of_one_crate_share_a_name() {
    const CRATES: [&str; 7] = [
        "protocol/src",
        "server/engine/src",
        "server/core/src",
        "server/src",
        "server/shell/src",
        "recipes/client/src",
        "recipes/src",
    ];
    // Each takes the place of another file in a build without a feature; the types
    // of `blocking` are those of the crate without async; the program is a crate of its own.
    const APART: [&str; 8] = [
        "server/core/src/no_data.rs",
        "server/core/src/state/no_saving.rs",
        "server/engine/src/auth/no_sasl.rs",
        "server/src/blocking.rs",
        "recipes/src/blocking/",
        "recipes/src/observe/unmetered.rs",
        "server/src/cli/",
        "server/core/src/data/tests/",
    ];
    let mut found = Vec::new();
    for folder in CRATES {
        let mut named = BTreeMap::<String, String>::new();
        for source in sources(folder, &["rs"]) {
            if APART.iter().any(|apart| source.path.starts_with(apart)) {
                continue;
            }
            // Types of traits and of test modules are indented.
            for (_, line) in code(&source.text) {
                let item = match line.split_once(") ") {
                    Some((visibility, item)) if visibility.starts_with("pub(") => item,
                    _ => line.strip_prefix("pub ").unwrap_or(&line),
                };
                let kinds = ["struct ", "enum ", "trait ", "type "];
                let Some(rest) = kinds.iter().find_map(|kind| item.strip_prefix(kind)) else {
                    continue;
                };
                let is_end = |character: char| !character.is_alphanumeric();
                let name = rest.split(is_end).next().unwrap_or_default();
                if let Some(other) = named.insert(name.to_owned(), source.path.clone()) {
                    found.push(format!("{name}: {other} and {}", source.path));
                }
            }
        }
    }
    assert_none(&found, "types of one crate share a name");
}

/// Locks are taken in the order of `ARCHITECTURE.md`, "Locks, bounds, panics".
#[test]
fn only_turn_names_the_engine_lock() {
    let all = ["server/src", "server/core/src"].map(|at| sources(at, &["rs"]));
    let sources: Vec<_> = all.into_iter().flatten().collect();
    let words = ["Mutex<Core>", "core.lock()", "engine.lock"];
    let found = lines_with(&sources, &words, |path, _| {
        path == "server/core/src/turn/turns.rs"
    });
    assert_none(&found, "the engine's lock is named outside turn/turns.rs");
    let text = read("server/core/src/turn/turns.rs");
    assert!(
        text.contains("Mutex<Core>"),
        "turn/turns.rs no longer has Mutex<Core>; update this test"
    );
}

/// Returns the paths that start with `start` in `use` items and inline, with braces expanded.
fn paths_below(start: &str, code: &str) -> Vec<String> {
    let (root, mut found) = (start, Vec::new());
    for (start, _) in code.match_indices(root) {
        // `$crate::` and longer names do not count.
        if code[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        expand("", &code[start + root.len()..], &mut found);
    }
    found
}

/// Appends each path of a use tree. Returns the length of the tree in bytes.
fn expand(prefix: &str, tree: &str, found: &mut Vec<String>) -> usize {
    let mut path = prefix.to_owned();
    let mut at = 0;
    while let Some(next) = tree[at..].chars().next() {
        match next {
            '{' => {
                at += 1;
                loop {
                    at += tree[at..].len() - tree[at..].trim_start().len();
                    match tree[at..].chars().next() {
                        None => return at,
                        Some('}') => return at + 1,
                        Some(',') => at += 1,
                        Some(_) => {
                            let taken = expand(&path, &tree[at..], found);
                            at += taken.max(1);
                        }
                    }
                }
            }
            c if c.is_alphanumeric() || c == '_' || c == ':' => {
                path.push(c);
                at += c.len_utf8();
            }
            _ => break,
        }
    }
    if !path.is_empty() {
        found.push(path);
    }
    at
}

#[test]
fn use_trees_are_expanded_and_test_code_is_left_out() {
    let paths = paths_below(
        "crate::",
        "use crate::{a, b::{C, d::E}};\nlet x = crate::f::g();",
    );
    assert_eq!(paths, ["a", "b::C", "b::d::E", "f::g"]);
    let left: Vec<_> = code("a\n#[cfg(test)]\nmod tests {\n  use crate::x;\n}\nb\n")
        .into_iter()
        .map(|(_, line)| line)
        .collect();
    assert_eq!(left, ["a", "b"]);
}
