//! Tests that scripts and programs name no registry and no path of one machine.

use std::fs;

use super::{assert_none, root, sources};

/// Scripts download only through package managers and their settings, and work in a checkout at any
/// path.
#[test]
fn scripts_name_no_registry_and_no_machine_path() {
    // Split so that this file does not contain them.
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

/// Returns the files of the tree that are not ignored, committed or not.
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
    // An unpacked archive has no index: take the files with the usual extensions.
    let extensions = ["rs", "sh", "py", "js", "java", "toml", "yml", "txt"];
    sources("", &extensions)
        .into_iter()
        .map(|source| source.path)
        .collect()
}
