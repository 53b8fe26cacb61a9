//! The verbs of the packages for Python, Java and Node, generated from the table of verbs.
//!
//! The tests fail when a generated file does not match the table. To generate the files again:
//! `UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings`.
//!
//! Anything that needs more than a request and its answer is written by hand: the program, fixtures,
//! the class `Fault`, which a scope removes, and `Universe`, which extends the generated verbs.

mod java;
mod node;
mod python;

use std::fmt::Write as _;

use expect_test::expect_file;
use minikeeper::control::{self, Field, FieldKind, Parameter, ParameterKind, Part, Verb};

#[test]
fn python_verbs_match_the_table() {
    expect_file!["../../bindings/python/src/minikeeper/_verbs.py"].assert_eq(&python::verbs());
}

#[test]
fn node_verbs_match_the_table() {
    expect_file!["../../bindings/node/verbs.js"].assert_eq(&node::verbs());
    expect_file!["../../bindings/node/verbs.d.ts"].assert_eq(&node::types());
}

/// They are written by hand, because TypeScript tells more about words than the table does.
#[test]
fn node_answers_have_the_fields_of_the_table() {
    let text = include_str!("../../bindings/node/answers.d.ts");
    for Part { name, fields, .. } in parts() {
        let (_, rest) = text
            .split_once(&format!("export interface {name} {{\n"))
            .unwrap_or_else(|| panic!("no interface {name}"));
        let (body, _) = rest.split_once("\n}\n").expect("an end");
        let mut found: Vec<_> = body
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split_once(": "))
            .map(|(field, _)| field.trim_end_matches('?'))
            .filter(|field| !field.contains([' ', '*']) && *field != "data_base64")
            .map(camel)
            .collect();
        let mut wanted: Vec<_> = fields.iter().map(|field| camel(field.name)).collect();
        found.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{name}");
    }
}

#[test]
fn java_verbs_match_the_table() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/bindings/java/src/main/java/io/github/minikeeper"
    );
    for (class, text) in java::classes() {
        expect_file![format!("{folder}/{class}.java")].assert_eq(&text);
    }
}

/// The top of every generated file.
const HEADER: [&str; 2] = [
    "Generated from the table of verbs, server/src/control/verbs. To generate it again:",
    "UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings",
];

/// Returns the verbs with a single answer; the packages have the others by hand.
fn verbs() -> impl Iterator<Item = &'static Verb> {
    control::verbs().filter(|verb| !verb.is_stream())
}

/// The return value of a verb.
enum Returns {
    Nothing,
    Value(&'static Field),
    /// Several values, in a type of this name.
    Record(String, &'static [Field]),
}

fn returns(verb: &Verb) -> Returns {
    let plain = |field: &&Field| verb.plain == Some(field.name);
    match (verb.answer.iter().find(plain), verb.answer) {
        (_, []) => Returns::Nothing,
        // Fixtures need what the command line does not print.
        (_, fields) if verb.name == "story" => Returns::Record(record_name(verb), fields),
        (Some(field), _) | (None, [field]) => Returns::Value(field),
        (None, fields) => Returns::Record(record_name(verb), fields),
    }
}

fn record_name(verb: &Verb) -> String {
    match verb.name {
        "advise" => "Advice".to_owned(),
        "get" => "Znode".to_owned(),
        "seed" => "Seeded".to_owned(),
        "tree" => "TreeListing".to_owned(),
        name => pascal(name),
    }
}

/// Returns the verbs that return several values.
fn records() -> impl Iterator<Item = (&'static Verb, String, &'static [Field])> {
    verbs().filter_map(|verb| match returns(verb) {
        Returns::Record(name, fields) => Some((verb, name, fields)),
        _ => None,
    })
}

/// Returns the objects in the answers, each before those in it.
fn parts() -> Vec<&'static Part> {
    fn add(fields: &[Field], found: &mut Vec<&'static Part>) {
        for field in fields {
            if let FieldKind::Part(part) | FieldKind::Parts(part) = field.kind
                && !found.contains(&part)
            {
                found.push(part);
                add(part.fields, found);
            }
        }
    }
    let mut found = Vec::new();
    for verb in verbs() {
        add(verb.answer, &mut found);
    }
    found
}

/// Returns whether a result has the field `text`, the same for people: then it is printed as that.
fn is_printed_as_text(fields: &[Field]) -> bool {
    fields.iter().any(|field| field.name == "text")
}

/// Returns the name of the type for the words of a parameter.
fn words_name(parameter: &Parameter) -> String {
    match parameter.name {
        "format" => "TreeFormat".to_owned(),
        "action" => "FaultAction".to_owned(),
        name => pascal(name),
    }
}

/// Returns the parameters that take one of several words; of those with the same name, the first.
fn words() -> Vec<(&'static Parameter, &'static [&'static str])> {
    let mut found: Vec<(&Parameter, &[&str])> = Vec::new();
    for parameter in verbs().flat_map(|verb| verb.parameters) {
        if let ParameterKind::OneOf(words) = parameter.kind
            && found.iter().all(|(other, _)| other.name != parameter.name)
        {
            found.push((parameter, words));
        }
    }
    found
}

/// Returns whether a parameter is positional, in a language with positional and named arguments.
/// Positional are those that say which and how many, named are those that say how.
fn is_by_place(parameter: &Parameter) -> bool {
    match parameter.kind {
        ParameterKind::Flag
        | ParameterKind::Version
        | ParameterKind::OneOf(_)
        | ParameterKind::DurationMs
        | ParameterKind::DurationMsOrNull => false,
        _ => parameter.is_required || parameter.default.is_some(),
    }
}

/// Returns whether a parameter may be omitted and has no default.
fn is_optional(parameter: &Parameter) -> bool {
    !parameter.is_required && parameter.default.is_none()
}

/// Returns whether the JSON schema of a kind is that of a number.
fn is_number(schema: fn() -> serde_json::Value) -> bool {
    schema()["type"] == "number"
}

/// Returns whether the JSON schema of a kind is that of a list of texts.
fn is_texts(schema: fn() -> serde_json::Value) -> bool {
    let schema = schema();
    schema["type"] == "array" && schema["items"]["type"] == "string"
}

/// Returns the paragraphs of a verb's documentation, with names in the style of the language.
fn paragraphs(verb: &Verb, name_of: fn(&str) -> String) -> Vec<String> {
    let mut paragraphs = vec![format!("{}.", verb.summary())];
    if !verb.details().is_empty() {
        paragraphs.push(verb.details().to_owned());
    }
    if verb.is_of_the_server() {
        paragraphs
            .push("Applies to the whole server: a created universe refuses it (400).".to_owned());
    }
    let translated = paragraphs.iter().map(|text| translated(text, name_of));
    translated.collect()
}

/// Returns the help of a parameter, with its unit and default.
fn help(parameter: &Parameter) -> String {
    let mut help = parameter.help.to_owned();
    if matches!(
        parameter.kind,
        ParameterKind::DurationMs | ParameterKind::DurationMsOrNull
    ) {
        let end = help.find(';').unwrap_or(help.len());
        help.insert_str(end, ", in milliseconds");
    }
    if let Some(default) = parameter.default
        && !matches!(parameter.kind, ParameterKind::Flag | ParameterKind::Data)
    {
        write!(help, "; by default {default}").expect("writing to a string");
    }
    help
}

/// Converts the names of verbs, parameters and answers in backquotes to the style of the language.
fn translated(text: &str, name_of: fn(&str) -> String) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(number, part)| match number % 2 {
        0 => part.to_owned(),
        _ if is_name(part) => name_of(part),
        _ => format!("`{part}`"),
    });
    parts.collect()
}

fn is_name(text: &str) -> bool {
    verbs().any(|verb| {
        verb.name == text
            || verb
                .parameters
                .iter()
                .any(|parameter| parameter.name == text)
            || verb.answer.iter().any(|field| field.name == text)
    })
}

/// Wraps a text into lines of at most this width.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("never empty");
        if !line.is_empty() && line.len() + 1 + word.len() > width {
            lines.push(word.to_owned());
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

/// Converts `until_hit` to `untilHit`.
fn camel(name: &str) -> String {
    let pascal = pascal(name);
    let mut letters = pascal.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// Converts `until_hit` to `UntilHit`.
fn pascal(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect()
}
