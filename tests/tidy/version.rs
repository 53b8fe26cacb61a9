//! Tests that the version stands in one place: `[workspace.package]` of the root `Cargo.toml`.
//!
//! Cargo needs it again where a crate depends on another one, and in other workspaces; `.ci/version` writes
//! those. The packages for other languages are built with it.

use super::{assert_none, read, sources};

#[test]
fn manifests_have_the_version_of_the_workspace_or_none() {
    let version = read("Cargo.toml");
    let (_, after) = version
        .split_once("[workspace.package]\nversion = \"")
        .expect("the version");
    let (version, _) = after.split_once('"').expect("its end");
    let mut found = Vec::new();
    for source in sources("", &["toml"]) {
        if !source.path.ends_with("Cargo.toml") {
            continue;
        }
        for line in source.text.lines() {
            let is_package = line.starts_with("version = \"");
            let is_dependency = line.starts_with("minikeeper") && line.contains("version = \"");
            let is_right = line.contains(&format!("version = \"{version}\""))
                || (is_package && line == "version = \"0.0.0\"");
            if (is_package || is_dependency) && !is_right {
                found.push(format!("{}: {line}", source.path));
            }
        }
    }
    for source in sources("server/bindings", &["toml", "json"]) {
        for line in source.text.lines().map(str::trim) {
            let is_version = line.starts_with("version = ") || line.starts_with("\"version\":");
            if is_version && !line.contains(&format!("\"{version}\"")) {
                found.push(format!("{}: {line}", source.path));
            }
        }
    }
    assert_none(&found, "versions other than that of the workspace");
}
