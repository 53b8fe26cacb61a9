//! Tests `tests/rules.md`, the table of where each rule of the protocol reference is held.
//!
//! The reference is not in the repository; `SECTIONS` is what this test knows of it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Every section of the reference, with a colon and the number of its rules where they have one.
const SECTIONS: &str = "
    1:6
    2.1 2.2:5
    3.1 3.2 3.3 3.4 3.5 3.6 3.7
    4
    5.1 5.2 5.3 5.4 5.5 5.6
    6.1:4 6.2:4 6.3:3 6.4:5 6.5 6.6 6.7 6.8
    7.1:3 7.2 7.3 7.4 7.5 7.6
    8.1:6 8.2
    9.1 9.2 9.3:5 9.4 9.5:4 9.6 9.7 9.8 9.9 9.10 9.11 9.12
    10.1:11 10.2 10.3:3 10.4 10.5 10.6 10.7 10.8 10.9 10.10 10.11 10.12 10.13 10.14
    10.15 10.16 10.17 10.18 10.19 10.20 10.21 10.22 10.23 10.24 10.25 10.26 10.27
    11:6
    12.1 12.2:5 12.3:9 12.4:4 12.5 12.6 12.7 12.8:6 12.9 12.10
    13.1 13.2:5 13.3 13.4
    14.1 14.2 14.3 14.4 14.5 14.6:4 14.7 14.8
    15:9
    16:7
    17.1 17.2
    18.1:5 18.2 18.3 18.4 18.5 18.6 18.7 18.8
    19:6
    20.1 20.2:7
    21
    22.1:8 22.2 22.3
    23
    24:60
    25
    26:7
    27
";

/// The rows of the table of decisions in section 6.2, besides its numbered rules.
const CHECKS_IN_6_2: usize = 6;

/// What stands in the place of a file that there is not, with the reason behind it.
const WITHOUT_FILE: [&str; 2] = ["not served: ", "not observable: "];

/// One row of the table.
#[derive(Debug)]
struct Row {
    line: usize,
    /// `12.3.4`, `6.2 check 2`, `24.1`; those of a range one by one.
    sections: Vec<String>,
    /// The sections whose rule it is: those in brackets, or its own.
    held: Vec<String>,
    /// From the root of the tree; none for what is not served.
    file: Option<String>,
    /// `path.rs::function`, `scenarios/file.txt: title`, or a program.
    tests: Vec<String>,
}

/// A case of a scenario file.
struct Case {
    file: String,
    title: String,
    /// What the comment above it names.
    sections: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ is not the root")
        .to_owned()
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(root().join(path)).ok()
}

#[track_caller]
fn assert_none(found: &[String], what: &str) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// The sections and rules that must have a row.
fn known() -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for entry in SECTIONS.split_whitespace() {
        let (section, rules) = entry.split_once(':').unwrap_or((entry, "0"));
        // The rows of these are their rules.
        if !matches!(section, "24" | "26") {
            known.insert(section.to_owned());
        }
        let rules: usize = rules.parse().expect("a number of rules");
        known.extend((1..=rules).map(|rule| format!("{section}.{rule}")));
    }
    known.extend((1..=CHECKS_IN_6_2).map(|row| format!("6.2 check {row}")));
    known
}

fn rows() -> Vec<Row> {
    let text = read("tests/rules.md").expect("tests/rules.md");
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| {
            line.strip_prefix("| ")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
        .map(|(line, text)| row(line, text))
        .collect()
}

fn row(line: usize, text: &str) -> Row {
    let cells: Vec<_> = text.trim_matches('|').split(" | ").map(str::trim).collect();
    let [section, _, file, tests @ ..] = &cells[..] else {
        panic!("rules.md:{line}: fewer than three cells");
    };
    let (section, brackets) = match section.split_once(" (") {
        Some((section, rest)) => (section, Some(rest.trim_end_matches(')'))),
        None => (*section, None),
    };
    let sections = match section.split_once(" to ") {
        Some((first, last)) => [vec![first.to_owned()], between(first, last)].concat(),
        None => vec![section.to_owned()],
    };
    let number = section.split(' ').next().expect("a section");
    let held = brackets.unwrap_or(number).split(", ").map(str::to_owned);
    let is_without = WITHOUT_FILE.iter().any(|reason| file.starts_with(reason));
    Row {
        line,
        sections,
        held: held.collect(),
        file: (!is_without).then(|| file.trim_matches('`').to_owned()),
        tests: tests
            .concat()
            .split('`')
            .filter(|part| !part.trim_matches([',', ' ', '|']).is_empty())
            .map(str::to_owned)
            .collect(),
    }
}

/// Every section named behind the word "reference": `reference sections 10.1 to 10.3, 11 and 12.`
fn named(text: &str) -> Vec<String> {
    // A list may go on in the next line of a comment.
    let words: Vec<_> = text
        .split_whitespace()
        .filter(|word| !matches!(*word, "//" | "///" | "//!" | "#"))
        .collect();
    let mut named = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let word = word.trim_start_matches('(');
        if word.eq_ignore_ascii_case("reference") {
            let list = words[at + 1..]
                .iter()
                .skip_while(|word| matches!(**word, "section" | "sections"));
            add_list(list, &mut named);
        }
    }
    named
}

/// Numbers joined by commas, "and" and "to", up to the first word that is neither.
fn add_list<'a>(words: impl Iterator<Item = &'a &'a str>, named: &mut Vec<String>) {
    let mut is_range = false;
    for word in words {
        if matches!(*word, "and" | "to") {
            is_range = *word == "to";
            continue;
        }
        let number = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        let is_number = number.starts_with(|c: char| c.is_ascii_digit())
            && number.chars().all(|c| c.is_ascii_digit() || c == '.');
        if !is_number {
            return;
        }
        match named.last() {
            Some(first) if is_range => named.extend(between(first, number)),
            _ => named.push(number.to_owned()),
        }
        is_range = false;
        if !matches!(&word[number.len()..], "" | ",") {
            return;
        }
    }
}

/// What follows `first` up to and with `last`, which differ in their last number.
fn between(first: &str, last: &str) -> Vec<String> {
    let last_number = |section: &str| -> usize {
        let number = section.rsplit('.').next().unwrap_or_default();
        number.parse().expect("a number")
    };
    let above = last.rsplit_once('.').map_or("", |(above, _)| above);
    let dot = if above.is_empty() { "" } else { "." };
    (last_number(first) + 1..=last_number(last))
        .map(|number| format!("{above}{dot}{number}"))
        .collect()
}

/// Whether a section is another one or lies in it.
fn is_within(section: &str, other: &str) -> bool {
    section
        .strip_prefix(other)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn cases() -> Vec<Case> {
    let mut files: Vec<_> = fs::read_dir(root().join("tests/scenarios"))
        .expect("the scenarios")
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = read(&format!("tests/scenarios/{file}")).expect("a scenario file");
        let mut comment = String::new();
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("case ") {
                cases.push(Case {
                    file: format!("scenarios/{file}"),
                    title: title.to_owned(),
                    sections: named(&comment),
                });
            } else if line.starts_with('#') {
                comment.push_str(line);
                comment.push('\n');
            } else {
                comment.clear();
            }
        }
    }
    cases
}

/// Whether `fn name` stands below an attribute that makes it a test.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let head = format!("fn {name}(");
    lines.iter().enumerate().any(|(at, line)| {
        line.contains(&head)
            && lines[..at]
                .iter()
                .rev()
                .take_while(|line| line.starts_with('#') || line.starts_with("//"))
                .any(|line| line.starts_with("#[test") || line.starts_with("#[tokio::test"))
    })
}

#[test]
fn every_section_has_a_row_and_every_row_a_section() {
    let known = known();
    let rows = rows();
    let mut found: Vec<_> = known
        .iter()
        .filter(|section| rows.iter().all(|row| !row.sections.contains(section)))
        .map(|section| format!("{section} has no row"))
        .collect();
    for row in &rows {
        for section in row.held.iter().chain(&row.sections) {
            let exists = known.iter().any(|known| is_within(known, section));
            if !exists {
                found.push(format!("rules.md:{}: there is no {section}", row.line));
            }
        }
    }
    assert_none(&found, "table and reference disagree");
}

#[test]
fn every_file_says_which_sections_it_follows() {
    let mut found = Vec::new();
    for row in rows() {
        let Some(file) = &row.file else { continue };
        let Some(text) = read(file) else {
            found.push(format!("rules.md:{}: there is no {file}", row.line));
            continue;
        };
        let named = named(&text);
        for section in &row.held {
            if !named.iter().any(|named| is_within(section, named)) {
                found.push(format!("{file} does not name reference section {section}"));
            }
        }
    }
    found.dedup();
    assert_none(&found, "files without their source");
}

#[test]
fn every_test_exists() {
    let cases = cases();
    let mut found = Vec::new();
    for row in rows() {
        if row.file.is_some() && row.tests.is_empty() {
            found.push(format!("rules.md:{}: no test", row.line));
        }
        for test in &row.tests {
            let exists = if let Some((file, title)) = test.split_once(": ") {
                cases
                    .iter()
                    .any(|case| case.file == file && case.title == title)
            } else if let Some((file, name)) = test.split_once("::") {
                read(file).is_some_and(|text| has_test(&text, name))
            } else {
                root().join(test).is_file()
            };
            if !exists {
                found.push(format!("rules.md:{}: there is no {test}", row.line));
            }
        }
    }
    assert_none(&found, "tests that are not there");
}

#[test]
fn every_case_belongs_to_a_row() {
    let known = known();
    let rows = rows();
    let mut found = Vec::new();
    for Case {
        file,
        title,
        sections,
    } in cases()
    {
        for section in &sections {
            if !known.iter().any(|known| is_within(known, section)) {
                found.push(format!("{file}: {title}: there is no section {section}"));
                continue;
            }
            let has_row = rows.iter().any(|row| {
                let is_of_section = row
                    .held
                    .iter()
                    .any(|held| is_within(held, section) || is_within(section, held));
                is_of_section && row.tests.iter().any(|test| test.starts_with(&file))
            });
            if !has_row {
                found.push(format!("{file}: {title}: no row of {section} names {file}"));
            }
        }
    }
    assert_none(&found, "cases that hold nothing in the table");
}

#[test]
fn lists_of_sections_are_read_whole() {
    for (text, sections) in [
        ("Source: reference section 2.1.", &["2.1"][..]),
        (
            "# reference 12.8.1 and 12.8.3: list by list",
            &["12.8.1", "12.8.3"],
        ),
        (
            "reference sections 10.1 to 10.3, 11\n//! and 13.",
            &["10.1", "10.2", "10.3", "11", "13"],
        ),
        ("as there (reference section 26). 4 of them", &["26"]),
        ("the reference says 3", &[]),
    ] {
        assert_eq!(named(text), sections, "{text}");
    }
}
