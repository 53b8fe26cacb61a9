//! Tests what scripts and programs name: nothing outside, no place on one machine.

use std::fs;

use super::{assert_none, root, sources};

/// What a script needs from outside comes through the ordinary clients and their settings, and a
/// checkout may lie anywhere.
#[test]
fn scripts_name_no_registry_and_no_place_on_one_machine() {
    // Taken apart so that this file does not name them either.
    let forbidden = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("index.crates", ".io"),
        concat!("static.crates", ".io"),
        concat!("//crates", ".io"),
        concat!("pypi", ".org"),
        concat!("registry.npm", "js.org"),
        concat!("deb.debian", ".org"),
        concat!("repo.maven", ".apache.org"),
        concat!("proxy.gol", "ang.org"),
    ];
    let mut found = Vec::new();
    for path in tracked_files() {
        let Ok(text) = fs::read_to_string(root().join(&path)) else {
            continue;
        };
        let is_script = text.starts_with("#!")
            || [
                ".sh", ".py", ".js", ".yml", ".yaml", ".toml", ".java", ".rs",
            ]
            .iter()
            .any(|extension| path.ends_with(extension))
            || path.ends_with("requirements.txt");
        // cargo writes the registry's name into its lock files itself.
        if !is_script {
            continue;
        }
        for (number, line) in (1..).zip(text.lines()) {
            if forbidden.iter().any(|word| line.contains(word)) {
                found.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    assert_none(&found, "hosts of registries or absolute paths");
}

/// Everything in the tree that is not ignored, whether or not it has been committed yet.
fn tracked_files() -> Vec<String> {
    let output = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    if let Ok(output) = output
        && output.status.success()
    {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        return text.lines().map(str::to_owned).collect();
    }
    // An unpacked archive has no index; look at what tests and programs are made of.
    let extensions = ["rs", "sh", "py", "js", "java", "toml", "yml", "txt"];
    sources("", &extensions)
        .into_iter()
        .map(|source| source.path)
        .collect()
}
