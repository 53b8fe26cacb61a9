//! Tests that the version and the address of the repository stand in one place: `[workspace.package]` of
//! the root `Cargo.toml`.
//!
//! Cargo needs them again in other workspaces, and the version where a crate depends on another one;
//! `.ci/version` writes those. The packages for other languages are built with them.

use super::{assert_none, read, sources};

#[test]
fn manifests_have_version_and_address_of_the_workspace_or_none() {
    let root = read("Cargo.toml");
    let (_, after) = root
        .split_once("[workspace.package]\nversion = \"")
        .expect("the version");
    let (version, after) = after.split_once('"').expect("its end");
    let (_, after) = after.split_once("\nrepository = ").expect("the address");
    let address = after.lines().next().unwrap_or_default();
    let mut found = Vec::new();
    for source in sources("", &["toml"]) {
        if !source.path.ends_with("Cargo.toml") {
            continue;
        }
        for line in source.text.lines() {
            if let Some(other) = line.strip_prefix("repository = ")
                && other != address
            {
                found.push(format!("{}: {line}", source.path));
            }
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
    let site = read("zensical.toml");
    if !site.contains(&format!("\nsite_name = \"minikeeper {version}\"\n")) {
        found.push("zensical.toml: site_name".into());
    }
    assert_none(
        &found,
        "versions or addresses other than those of the workspace",
    );
}
