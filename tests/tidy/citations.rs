//! Every citation of a document of `docs/` resolves: the document, the section and the hazard
//! exist.
//!
//! A citation is the path of a document, then "section" or "sections" and numbers joined by commas,
//! "and" and "to". A number may end with that of a rule, as in 12.3.4. Sections without a document
//! belong to the last document that the file names before them. Hazards are cited as "hazard" or
//! "hazards" and numbers with the prefix H.

use std::{collections::BTreeSet, fs};

use super::{assert_none, root, sources};

/// The valid targets: `zookeeper-protocol.md 12.3`, `zookeeper-protocol.md 12.3.4` and `H5`.
struct Documents(BTreeSet<String>);

impl Documents {
    fn read() -> Self {
        let mut found = BTreeSet::new();
        for document in fs::read_dir(root().join("docs")).expect("the documents") {
            let path = document.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.extension().is_some_and(|extension| extension == "md") {
                Self::add(&name, &fs::read_to_string(&path).expect("text"), &mut found);
            }
        }
        Self(found)
    }

    fn add(name: &str, text: &str, found: &mut BTreeSet<String>) {
        let mut section = String::new();
        for line in text.lines() {
            let first = line.split(' ').nth(1).unwrap_or_default();
            if line.starts_with('#') && is_hazard(first) {
                found.insert(first.to_owned());
            } else if line.starts_with('#') && first.starts_with(|c: char| c.is_ascii_digit()) {
                section = format!("{name} {}", first.trim_end_matches('.'));
                found.insert(section.clone());
            } else if let Some((number, _)) = line.split_once(". ")
                && number.parse::<u8>().is_ok()
            {
                found.insert(format!("{section}.{number}"));
            }
        }
    }

    /// Returns the citations in a text that do not resolve.
    fn dangling(&self, text: &str) -> Vec<String> {
        // Citations may continue on the next line of a comment.
        let words: Vec<_> = text
            .split_whitespace()
            .filter(|word| !matches!(*word, "//" | "///" | "//!" | "#" | "*"))
            .collect();
        let mut found = Vec::new();
        let mut document = None;
        for (at, word) in words.iter().enumerate() {
            if let Some((_, name)) = word.split_once("docs/")
                && let Some((name, _)) = name.split_once(".md")
            {
                let name = format!("{name}.md");
                if !root().join("docs").join(&name).is_file() {
                    found.push(format!("docs/{name}"));
                }
                document = Some(name);
                continue;
            }
            let rest = &words[at + 1..];
            match word.trim_start_matches('(').to_ascii_lowercase().as_str() {
                "section" | "sections" if !is_of_an_rfc(&words[..at]) => {
                    for number in list(rest, is_section) {
                        match &document {
                            Some(name) if self.0.contains(&format!("{name} {number}")) => {}
                            Some(name) => found.push(format!("docs/{name} section {number}")),
                            None => found.push(format!("section {number} of no document")),
                        }
                    }
                }
                "hazard" | "hazards" => found.extend(
                    list(rest, is_hazard)
                        .into_iter()
                        .filter(|hazard| !self.0.contains(hazard))
                        .map(|hazard| format!("hazard {hazard}")),
                ),
                _ => {}
            }
        }
        found
    }
}

fn is_section(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn is_hazard(word: &str) -> bool {
    word.strip_prefix('H')
        .is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Returns whether the section after these words is that of an RFC.
fn is_of_an_rfc(before: &[&str]) -> bool {
    before.len() > 1 && before[before.len() - 2] == "RFC"
}

/// Returns the numbers at the beginning of the words, joined by commas, "and" and "to". For a range
/// these are the first and the last.
fn list(words: &[&str], is_number: impl Fn(&str) -> bool) -> Vec<String> {
    let mut numbers = Vec::new();
    for word in words {
        if matches!(*word, "and" | "to") {
            continue;
        }
        let number = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        if !is_number(number) {
            break;
        }
        numbers.push(number.to_owned());
        if !matches!(&word[number.len()..], "" | ",") {
            break;
        }
    }
    numbers
}

#[test]
fn every_citation_resolves() {
    let documents = Documents::read();
    let extensions = ["rs", "txt", "py", "java", "js", "ts"];
    let mut found = Vec::new();
    for source in sources("", &extensions) {
        // The samples below.
        if source.path == "tests/tidy/citations.rs" {
            continue;
        }
        let dangling = documents.dangling(&source.text).into_iter();
        found.extend(dangling.map(|citation| format!("{}: {citation}", source.path)));
    }
    assert_none(&found, "citations that do not resolve");
}

#[test]
fn dangling_citation_is_found() {
    let documents = Documents::read();
    for (text, dangling) in [
        ("`docs/zookeeper-protocol.md` section 6.1.", &[][..]),
        ("(`docs/zookeeper-protocol.md` section 12.3.4)", &[]),
        (
            "`docs/zookeeper-protocol.md` section 12.3.10",
            &["docs/zookeeper-protocol.md section 12.3.10"],
        ),
        (
            "//! `docs/curator-recipes.md` sections 4.2 to 4.4, 99.1\n//! and 10.",
            &["docs/curator-recipes.md section 99.1"],
        ),
        (
            "`docs/client.md` section 3; section 77",
            &["docs/client.md section 77"],
        ),
        (
            "`docs/nonsense.md` section 1",
            &["docs/nonsense.md", "docs/nonsense.md section 1"],
        ),
        ("reference section 6.1", &["section 6.1 of no document"]),
        ("RFC 1950, section 9", &[]),
        ("hazards H5, H20 to H24 and H999", &["hazard H999"]),
        ("a section of a hazard's register", &[]),
    ] {
        assert_eq!(documents.dangling(text), dangling, "{text}");
    }
}
