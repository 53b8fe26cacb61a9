//! Tests the documentation: what users can name has an example.

use super::{assert_none, sources};

/// What users can name in these crates: `unreachable_pub` sees to it that nothing else is `pub`.
/// Gives the line of each such function and type, and of each method of a public trait, and the
/// documentation above it.
fn public_items(text: &str) -> Vec<(usize, &str, String)> {
    let (mut found, mut doc) = (Vec::new(), String::new());
    let (mut is_trait, mut is_macro_attribute) = (false, false);
    for (number, line) in (1..).zip(text.lines()) {
        let item = line.trim_start();
        if let Some(text) = item.strip_prefix("///") {
            doc += text.trim();
            doc.push('\n');
            continue;
        }
        // Attributes stand between the documentation and the item, some on several lines.
        if item.starts_with("#[") || is_macro_attribute {
            is_macro_attribute = !item.ends_with(']');
            continue;
        }
        let words: Vec<_> = item.split_whitespace().collect();
        let kind = words
            .iter()
            .find(|word| !matches!(**word, "pub" | "const" | "async"));
        let is_public = words.first() == Some(&"pub");
        if line == "}" {
            is_trait = false;
        }
        let is_item = match kind {
            Some(&"fn") => is_public || is_trait && line.starts_with("    fn "),
            Some(&("struct" | "enum" | "trait" | "type")) => is_public,
            _ => false,
        };
        if is_item {
            found.push((number, item, std::mem::take(&mut doc)));
        }
        is_trait |= is_public && kind == Some(&"trait");
        doc.clear();
    }
    found
}

/// Whether a documentation has an example, and one that runs.
fn has_running_example(doc: &str) -> bool {
    let fences: Vec<_> = doc.lines().filter(|line| line.starts_with("```")).collect();
    fences.contains(&"```") && fences.iter().all(|fence| *fence == "```")
}

/// Every public function and type of the client and the recipes has an example that runs: a doc
/// test. No lint of a stable compiler says that. Left out are aliases of boxes, and the bugs that
/// only tests can switch on.
#[test]
fn public_items_of_client_and_recipes_have_examples() {
    let (mut found, mut seen) = (Vec::new(), 0);
    for folder in ["recipes/src", "recipes/client/src"] {
        for source in sources(folder, &["rs"]) {
            if source.path == "recipes/src/planted.rs" {
                continue;
            }
            let items = public_items(&source.text);
            seen += items.len();
            found.extend(
                items
                    .iter()
                    .filter(|(_, item, doc)| {
                        !has_running_example(doc) && !item.starts_with("pub type ")
                    })
                    .map(|(line, item, _)| format!("{}:{line}: {item}", source.path)),
            );
        }
    }
    assert!(seen > 250, "{seen} public items are suspiciously few");
    assert_none(&found, "no example that runs");
}

#[test]
fn examples_are_missed_where_there_is_none() {
    let text = "/// A.\n/// ```\n/// a();\n/// ```\n#[must_use]\npub fn a() {}\n\n\
                /// B.\n/// ```no_run\n/// b();\n/// ```\npub const fn b() {}\n\n\
                pub(crate) fn c() {}\n/// D.\npub trait D {\n    fn e();\n}\nfn f() {}\n";
    let items = public_items(text);
    let names: Vec<_> = items.iter().map(|(_, item, _)| *item).collect();
    assert_eq!(
        names,
        [
            "pub fn a() {}",
            "pub const fn b() {}",
            "pub trait D {",
            "fn e();"
        ]
    );
    let with_example: Vec<_> = items
        .iter()
        .filter(|(_, _, doc)| has_running_example(doc))
        .map(|(_, item, _)| *item)
        .collect();
    assert_eq!(with_example, ["pub fn a() {}"]);
}
