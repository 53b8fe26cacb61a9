//! Tests the guide: its code is that of the files it names.

use super::{assert_none, read};

/// The files named above a block of code, as in "[`path`](link):", with the block.
fn named_blocks(text: &str) -> Vec<(String, String)> {
    let mut lines = text.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let Some((path, _)) = line
            .strip_prefix("[`")
            .filter(|_| line.ends_with("):"))
            .and_then(|rest| rest.split_once("`]("))
        else {
            continue;
        };
        let mut block = lines.by_ref().skip_while(|line| !line.starts_with("```"));
        let opening = block.next().unwrap_or_default();
        let fence = opening.trim_start_matches('`');
        let fence = &opening[..opening.len() - fence.len()];
        let code: Vec<_> = block.take_while(|line| *line != fence).collect();
        found.push((path.to_owned(), code.join("\n") + "\n"));
    }
    found
}

/// What a reader copies is what CI has run.
#[test]
fn code_of_the_guide_is_that_of_the_files() {
    let blocks = named_blocks(&read("server/GUIDE.md"));
    assert_eq!(
        blocks.len(),
        12,
        "five recipes, in Rust and in Python, one of them in Java and for Node too"
    );
    let differing: Vec<_> = blocks
        .into_iter()
        .filter(|(path, code)| read(path) != *code)
        .map(|(path, _)| path)
        .collect();
    assert_none(
        &differing,
        "server/GUIDE.md does not show these as they are",
    );
}
