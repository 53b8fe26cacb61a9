//! Writes the Rust code that pages show as modules of `tests/pages.rs`, which runs it as it stands.
//!
//! Each block has a file with the name and the line numbers of its page. `<!-- shown only -->` above
//! the fence marks a block that is no test. `.ci/docs.py blocks` does the same for other languages.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("..");
    let mut pages = Vec::new();
    collect(&root.join("docs"), &mut pages)?;
    pages.sort();
    println!("cargo::rerun-if-changed={}", root.join("docs").display());
    let (mut modules, mut run, mut shown) = (String::new(), 0, 0);
    for page in pages {
        let name = page.strip_prefix(&root)?.with_extension("");
        let name = name
            .to_string_lossy()
            .replace(|c: char| !c.is_alphanumeric(), "_");
        for block in blocks(&fs::read_to_string(&page)?) {
            let place = format!("{}:{}", page.display(), block.line);
            if block.is_shown_only {
                shown += 1;
                continue;
            }
            if !["test]\n", "test(start_paused = true)]\n"]
                .iter()
                .any(|end| block.code.contains(end))
            {
                return Err(format!("{place}: no test; mark it <!-- shown only -->").into());
            }
            run += 1;
            let file = out.join(format!("{name}_{}.rs", block.line));
            fs::write(&file, "\n".repeat(block.line) + &block.code)?;
            writeln!(modules, "#[path = {file:?}]\nmod {name}_{};", block.line)?;
        }
    }
    writeln!(
        modules,
        "const RUN: usize = {run};\nconst SHOWN_ONLY: usize = {shown};"
    )?;
    fs::write(out.join("pages.rs"), modules)?;
    Ok(())
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

struct Block {
    /// The line of the opening fence, from 1.
    line: usize,
    is_shown_only: bool,
    code: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let (mut above, mut lines) = ("", page.lines().zip(1..));
    while let Some((text, line)) = lines.next() {
        if text == "```rust" || text.starts_with("```rust ") {
            let code = lines.by_ref().map(|(text, _)| text);
            let code = code.take_while(|text| *text != "```");
            found.push(Block {
                line,
                is_shown_only: above == "<!-- shown only -->",
                code: code.map(|text| format!("{text}\n")).collect(),
            });
        }
        above = text;
    }
    found
}
