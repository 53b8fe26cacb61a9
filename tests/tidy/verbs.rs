//! Tests `tests/verbs.md`, the table of the tests that use each verb, from each side.

use super::{assert_none, read};

/// A column of the table.
struct Side {
    name: &'static str,
    /// Where the files are that its cells name.
    folder: &'static str,
    language: Language,
    /// What a package offers; a verb that is not in this file may be left out.
    offers: Option<&'static str>,
}

/// What a test looks like, and a verb in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Language {
    Rust,
    /// Requests in Rust, by the helpers of `tests/it/http.rs`.
    Http,
    /// Arguments in Rust, in a slice whose first one is the verb.
    Cli,
    Python,
    Java,
    Node,
}

/// In the order of the columns.
const SIDES: [Side; 6] = [
    Side::new("Rust", "tests/it", Language::Rust),
    Side::new("HTTP", "tests/it", Language::Http),
    Side::new("CLI", "server/tests/cli", Language::Cli),
    Side::new("Python", "server/bindings/python/tests", Language::Python),
    Side::new(
        "Java",
        "server/bindings/java/src/test/java/suite",
        Language::Java,
    )
    .offers("server/bindings/java/src/main/java/io/github/minikeeper/Universe.java"),
    Side::new("Node", "server/bindings/node/test", Language::Node)
        .offers("server/bindings/node/index.d.ts"),
];

impl Side {
    const fn new(name: &'static str, folder: &'static str, language: Language) -> Self {
        Self {
            name,
            folder,
            language,
            offers: None,
        }
    }

    const fn offers(mut self, path: &'static str) -> Self {
        self.offers = Some(path);
        self
    }

    /// What is wrong with a cell, if something is.
    fn fault(&self, verb: &str, cell: &str) -> Option<String> {
        if cell == "-" {
            let method = format!(" {}(", camel_case(verb));
            let is_offered = self.offers.is_none_or(|path| read(path).contains(&method));
            return is_offered.then(|| "no test".to_owned());
        }
        let Some(cell) = Cell::parse(cell) else {
            return Some(format!("{cell} names no test"));
        };
        let path = format!("{}/{}", self.folder, cell.file);
        if !super::root().join(&path).is_file() {
            return Some(format!("there is no {path}"));
        }
        let text = read(&path);
        let Some(mut body) = self.language.test(&text, cell.test) else {
            return Some(format!("there is no test \"{}\" in {path}", cell.test));
        };
        if let Some(helper) = cell.helper {
            if !body.contains(&format!("{helper}(")) {
                return Some(format!("\"{}\" does not call {helper}", cell.test));
            }
            body = match self.language.function(&text, helper) {
                Some(body) => body,
                None => return Some(format!("there is no {helper} in {path}")),
            };
        }
        let is_there = match cell.spelled {
            Some(spelled) => body.contains(&squeezed(spelled)),
            None => self.language.has_verb(&body, verb),
        };
        (!is_there).then(|| format!("\"{}\" does not use it", cell.test))
    }
}

/// What stands in the table, as "`file.rs::test` by `helper` as `spelled`".
struct Cell<'a> {
    file: &'a str,
    test: &'a str,
    /// The function of the same file that the test calls to use the verb.
    helper: Option<&'a str>,
    /// How the verb is written there, if not by its name.
    spelled: Option<&'a str>,
}

impl<'a> Cell<'a> {
    fn parse(cell: &'a str) -> Option<Self> {
        let parts: Vec<_> = cell.split('`').collect();
        let ["", test, rest @ .., ""] = &parts[..] else {
            return None;
        };
        let (file, test) = test.split_once("::").or_else(|| test.split_once(": "))?;
        let (helper, spelled) = match rest {
            [] => (None, None),
            [" by ", helper] => (Some(*helper), None),
            [" as ", spelled] => (None, Some(*spelled)),
            [" by ", helper, " as ", spelled] => (Some(*helper), Some(*spelled)),
            _ => return None,
        };
        Some(Self {
            file,
            test,
            helper,
            spelled,
        })
    }
}

impl Language {
    /// The body of a test, squeezed, if there is one of this name.
    fn test(self, text: &str, name: &str) -> Option<String> {
        let makes_a_test = |line: &str| match self {
            Self::Rust | Self::Http | Self::Cli => {
                line.starts_with("#[test") || line.starts_with("#[tokio::test")
            }
            Self::Java => line.starts_with("@Test"),
            Self::Python | Self::Node => false,
        };
        let at = self.start(text, name)?;
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        let is_marked = lines[..at]
            .iter()
            .rev()
            .take_while(|line| line.starts_with(['#', '@', '/', '*']))
            .any(|line| makes_a_test(line));
        let is_test = match self {
            Self::Python => name.starts_with("test_"),
            // Its title stands in the call that makes it a test.
            Self::Node => true,
            _ => is_marked,
        };
        is_test.then(|| self.body(text, at))
    }

    /// The same for any function.
    fn function(self, text: &str, name: &str) -> Option<String> {
        Some(self.body(text, self.start(text, name)?))
    }

    /// The line that a test or function of this name begins in, counted from 0.
    fn start(self, text: &str, name: &str) -> Option<usize> {
        let heads = match self {
            Self::Rust | Self::Http | Self::Cli => vec![format!("fn {name}(")],
            Self::Python => vec![format!("def {name}(")],
            Self::Java => vec![format!("void {name}(")],
            Self::Node => vec![format!("test('{name}',"), format!("withServer('{name}',")],
        };
        text.lines()
            .position(|line| heads.iter().any(|head| line.contains(head)))
    }

    /// What belongs to the line: all that is indented deeper behind it, without comments and
    /// without white space.
    fn body(self, text: &str, at: usize) -> String {
        let indent = |line: &str| line.len() - line.trim_start().len();
        let mut lines = text.lines().skip(at);
        let head = lines.next().unwrap_or_default();
        let is_inside = |line: &&str| {
            let is_end = indent(line) <= indent(head) && !line.trim_start().starts_with(')');
            line.trim().is_empty() || !is_end
        };
        let comment = match self {
            Self::Python => "# ",
            _ => "// ",
        };
        let code = |line: &str| line.split(comment).next().map(squeezed);
        lines.take_while(is_inside).filter_map(code).collect()
    }

    /// Whether a body uses a verb, spelled as it is in this language.
    fn has_verb(self, body: &str, verb: &str) -> bool {
        match self {
            Self::Rust | Self::Python => body.contains(&format!(".{verb}(")),
            Self::Java | Self::Node => body.contains(&format!(".{}(", camel_case(verb))),
            Self::Cli => body.contains(&format!("[\"{}\"", verb.replace('_', "-"))),
            Self::Http => body
                .match_indices(verb)
                .any(|(at, _)| is_requested(&body[..at], &body[at + verb.len()..])),
        }
    }
}

/// Whether a verb with this around it is the path of a request, below `/v1/`: an argument that
/// begins with it or, behind the name of a universe, ends with it.
fn is_requested(before: &str, behind: &str) -> bool {
    let Some((call, path)) = before.rsplit_once('"') else {
        return false;
    };
    let is_begun = path.is_empty() || path.starts_with("universes/") && path.ends_with('/');
    call.ends_with(['(', ','])
        && is_begun
        && ["\",", "\")", "?"]
            .iter()
            .any(|end| behind.starts_with(end))
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// `until_hit` as `untilHit`.
fn camel_case(verb: &str) -> String {
    let mut words = verb.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(1);
        name += &first.to_uppercase();
        name += rest;
    }
    name
}

/// The rows, by verb: what stands in the columns of [`SIDES`].
fn rows(table: &str) -> Vec<(&str, Vec<&str>)> {
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells = line.trim_matches('|').split('|').map(str::trim);
        let mut cells = cells.collect::<Vec<_>>().into_iter();
        let verb = cells.next().expect("a row has a cell").trim_matches('`');
        (verb, cells.collect())
    })
    .collect()
}

#[test]
fn every_verb_has_a_row_and_every_row_a_verb() {
    let table = read("tests/verbs.md");
    let head = SIDES.map(|side| side.name).join(" | ");
    assert!(table.contains(&format!("\n| verb | {head} |\n")), "{head}");
    let rows: Vec<_> = rows(&table).into_iter().map(|(verb, _)| verb).collect();
    let verbs: Vec<_> = minikeeper::control::verbs().map(|verb| verb.name).collect();
    assert_eq!(rows, verbs, "in the order of the table of verbs");
}

#[test]
fn every_verb_is_used_by_the_tests_in_its_row() {
    let table = read("tests/verbs.md");
    let mut found = Vec::new();
    for (verb, cells) in rows(&table) {
        assert_eq!(cells.len(), SIDES.len(), "{verb}");
        for (side, cell) in SIDES.iter().zip(cells) {
            let fault = side.fault(verb, cell);
            found.extend(fault.map(|fault| format!("{verb}, {}: {fault}", side.name)));
        }
    }
    assert_none(&found, "tests/verbs.md tells what is not so");
}

/// Folders are told to people too.
#[test]
fn table_says_where_its_files_are() {
    let table = read("tests/verbs.md");
    let missing: Vec<_> = SIDES
        .iter()
        .filter(|side| !table.contains(&format!("| {} | `{}/` |", side.name, side.folder)))
        .map(|side| format!("| {} | `{}/` |", side.name, side.folder))
        .collect();
    assert_none(&missing, "no row in the table of folders");
}

#[test]
fn verbs_are_found_in_what_is_run_and_nowhere_else() {
    let rust = "#[test]\nfn a() {\n    // s.seed(\n    s.seed_all();\n    post(x,\n        \"get?y\");\n}\n\nfn b() {\n    s\n        .seed(1);\n}\n";
    let body = Language::Rust.test(rust, "a").unwrap();
    assert!(!Language::Rust.has_verb(&body, "seed"));
    assert!(Language::Http.has_verb(&body, "get"));
    assert_eq!(Language::Rust.test(rust, "b"), None, "it is no test");
    let body = Language::Rust.function(rust, "b").unwrap();
    assert!(Language::Rust.has_verb(&body, "seed"));
    for (body, is_used) in [
        ("post(a,\"fork\",&b)", true),
        ("get(a,\"universes/one/fork\")", true),
        ("call(\"fork\")", true),
        ("a[\"fork\"]", false),
        ("json!({\"a\":1,\"fork\":2})", false),
        ("post(a,\"unfork\",&b)", false),
        ("post(a,\"forks\",&b)", false),
    ] {
        assert_eq!(Language::Http.has_verb(body, "fork"), is_used, "{body}");
    }
    let python =
        "def test_a(\n    x,\n):\n    # u.now()\n    pass\n\n\ndef test_b():\n    u.now()\n";
    let body = Language::Python.test(python, "test_a").unwrap();
    assert_eq!(body, "x,):pass");
    let node = "withServer('it goes', [], async (s) => {\n  await s.goDown();\n});\n";
    let body = Language::Node.test(node, "it goes").unwrap();
    assert!(Language::Node.has_verb(&body, "go_down"));
    let java = "  /** A. */\n  @Test\n  void a() throws B {\n    u.goDown();\n  }\n";
    let body = Language::Java.test(java, "a").unwrap();
    assert!(Language::Java.has_verb(&body, "go_down"));
    assert!(Language::Cli.has_verb("ask(&[\"go-down\"])", "go_down"));
}
