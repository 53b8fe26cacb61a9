//! The compiled Java program.

use std::{path::Path, process::Command};

use crate::{
    Error, IoContext as _,
    servers::{ScratchFolder, program, zookeeper},
};

/// The jars that Curator needs; the manifest of `zookeeper.jar` names the rest. Without a logger
/// the logging prints warnings.
const JARS: [&str; 8] = [
    "curator-recipes",
    "curator-framework",
    "curator-client",
    "zookeeper",
    "zookeeper-jute",
    "guava",
    "slf4j-api",
    "slf4j-nop",
];

/// The folder of the sources.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/java/curator");

/// Classes in a folder that is removed with this.
#[derive(Debug)]
pub struct Program {
    /// The class path for Java: the classes, and Curator.
    pub(super) class_path: String,
    _classes: ScratchFolder,
}

impl Program {
    /// Compiles it against the jars of Debian's Curator, or against this class path.
    ///
    /// # Errors
    /// If a part of the class path does not exist, or there is no compiler; the text says how to
    /// install it. If it does not compile; the text has the compiler's output.
    pub fn compile(class_path: Option<&str>) -> Result<Self, Error> {
        let jars = class_path_of(class_path)?;
        let classes = ScratchFolder::new("curator")?;
        let sources = std::fs::read_dir(SOURCES)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .context(|| format!("cannot list the sources in {SOURCES:?}"))?;
        let mut javac = Command::new(program("javac")?);
        javac
            .args(["-proc:none", "-nowarn", "-cp", &jars, "-d"])
            .arg(classes.path())
            .args(sources.iter().map(std::fs::DirEntry::path));
        let compiled = javac.output().context(|| "cannot start javac".into())?;
        if !compiled.status.success() {
            let output = String::from_utf8_lossy(&compiled.stderr);
            return Err(Error::Setup(format!(
                "the contest for Curator does not compile with class path {jars:?}; javac's output:\n\
                 {output}"
            )));
        }
        Ok(Self {
            class_path: format!("{}:{jars}", classes.path().display()),
            _classes: classes,
        })
    }
}

fn class_path_of(given: Option<&str>) -> Result<String, Error> {
    let Some(given) = given else {
        return zookeeper::class_path(Path::new(zookeeper::JARS), &JARS);
    };
    for part in given.split(':') {
        let place = part.strip_suffix("/*").unwrap_or(part);
        if !Path::new(place).exists() {
            return Err(Error::Setup(format!(
                "class path: {place:?} does not exist; name the jars of Curator and of what they \
                 need, or leave the class path out and install Debian's with: \
                 benches/compare/install-peers"
            )));
        }
    }
    Ok(given.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_class_path_is_named_with_what_installs_one() {
        let error = Program::compile(Some("/nowhere/jars/*")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("\"/nowhere/jars\""), "{text}");
        assert!(text.contains("benches/compare/install-peers"), "{text}");
    }
}
