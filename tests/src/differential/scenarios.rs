//! Runs the scenario files on both servers.

use std::{fs, path::Path};

use super::{
    known::{KnownDifferences, Version},
    server::Server,
    socket::OnSocket,
};
use crate::scenario::{Case, Script};

/// The outcome of the cases.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// The number of cases that passed on both servers.
    pub passed: usize,
    /// The number of cases in which minikeeper differs on purpose.
    pub deviating: usize,
    /// Cases that only later versions of ZooKeeper pass, with their reasons.
    pub later: Vec<String>,
    /// Failed cases, each with the name of the server.
    pub faults: Vec<String>,
}

/// Reads every scenario file of a folder.
///
/// # Errors
/// When a file cannot be read or parsed.
pub fn read(folder: &Path) -> Result<Vec<Script>, String> {
    let fault = |error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            files.push(path);
        }
    }
    files.sort();
    let script = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        Script::parse(&name, &text).map_err(|fault| fault.to_string())
    };
    files.iter().map(script).collect()
}

/// Runs every case on minikeeper and on ZooKeeper.
///
/// # Errors
/// When a server does not start.
pub fn run(
    scripts: &[Script],
    own: &mut dyn Server,
    original: &mut dyn Server,
    version: Version,
    known: KnownDifferences,
) -> Result<Summary, String> {
    let mut summary = Summary::default();
    for script in scripts {
        for case in &script.cases {
            let is_fine = run_case(script, case, own, KnownDifferences::default(), &mut summary)?;
            let is_later = case.since.as_ref().is_some_and(|(since, _)| {
                Version::parse(since).is_some_and(|since| version < since)
            });
            if case.deviates || is_later {
                // The case must fail here, or the mark is out of date.
                let mut unmarked = Summary::default();
                if run_case(script, case, original, known, &mut unmarked)? {
                    let (name, title) = (original.name(), &case.title);
                    summary.faults.push(format!(
                        "{name} passes \"{title}\", which is marked as different"
                    ));
                }
                match &case.since {
                    Some((since, reason)) if is_later => {
                        let title = &case.title;
                        summary.later.push(format!("{title} ({since}: {reason})"));
                    }
                    _ => summary.deviating += 1,
                }
                continue;
            }
            if run_case(script, case, original, known, &mut summary)? && is_fine {
                summary.passed += 1;
            }
        }
    }
    Ok(summary)
}

fn run_case(
    script: &Script,
    case: &Case,
    server: &mut dyn Server,
    known: KnownDifferences,
    summary: &mut Summary,
) -> Result<bool, String> {
    let name = server.name();
    let mut target = OnSocket::new(server, known)?;
    match script.run_case(case, &mut target) {
        Ok(()) => Ok(true),
        Err(fault) => {
            summary.faults.push(format!("{name}: {fault}"));
            Ok(false)
        }
    }
}
