//! Tests `catalogue.md`, the table of where each test of the catalogue and each hazard of the
//! register of the curator-recipes reference (sections 15 and 11) is held.
//!
//! The reference is not in the repository; `CATALOGUE` is what this test knows of it.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are not tests to the lint; the counts are for people"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Every name of the catalogue behind its section. One that ends in dots stands for all that begin
/// so; what stands before a dot says whose test it is, where names are used twice.
const CATALOGUE: [(&str, &str); 9] = [
    (
        "15.1",
        "testLocker testWaitingProcessKilledServer testKilledSession testContainerCleanup \
         testWithNamespace testReentrantSingleLock testReentrant2Threads testReentrant test2Clients",
    ),
    (
        "15.2",
        "testWithSchema testRevoking testPersistentLock testInterruptedDuringAcquire",
    ),
    ("15.3", "testSomeReleasesFail testSomeLocksFailToLock"),
    (
        "15.4",
        "testGetParticipantNodes testThatUpgradingIsDisallowed testThatDowngradingRespectsThreads \
         testDowngrading testContendingDowngrading testBasic testSetNodeData testLockPath",
    ),
    (
        "15.5",
        "testAcquireAfterLostServer testThreadedLeaseIncrease testClientClose testMaxPerSession \
         testRelease1AtATime testReleaseInChunks testThreads testSimple testSimple2 \
         testGetParticipantNodes testNoOrphanedNodes testInterruptAcquire \
         testKilledServerWithEnsembleProvider testCluster",
    ),
    (
        "15.6",
        "testNodeDeletedCleanlyWithFaults testAttemptLockFailedException testLockACLs \
         testACLsCreatingParents",
    ),
    (
        "15.7",
        "testMissedResponseOnESCreate testMissedResponseOnBackgroundESCreate \
         testProtectedCreateNodeDeletion testProtectionWithKilledSession \
         testPathsFromProtectingInBackground FailedDelete.testBasic FailedDelete.testLostSession \
         FailedDelete.testWithNamespaceAndLostSession... \
         FailedDelete.testGuaranteedDeleteOnNonExistentNodeInForeground \
         FailedDelete.testGuaranteedDeleteOnNonExistentNodeInBackground WatcherRemoval.testBasic \
         WatcherRemoval.testBasicNamespace1 WatcherRemoval.testBasicNamespace2 \
         WatcherRemoval.testBasicNamespace3 WatcherRemoval.testSameWatcher... \
         WatcherRemoval.testMissingNode... WatcherRemoval.testTriggered \
         WatcherRemoval.testWithRetry... WatcherRemoval.testResetFromWatcher CleanState \
         testSessionConnectionStateErrorPolicyWithExpirationPercent30 \
         testConnectionStateRecoversFromUnexpectedExpiredConnection testValidateConnectionEventRaces \
         RetryLoop.testRetry RetryLoop.testRetryForever RetryLoop.testExponentialBackoffRetryLimit \
         ZKPaths.testMakePath ZKPaths.testSplit",
    ),
    (
        "15.8",
        "testMultiClients testSimple testSimpleVersioned testMultiClientVersioned \
         testMultiClientDifferentSeed testDisconnectEventOnWatcherDoesNotRetry \
         testDisconnectReconnectEventDoesNotFireValueWatcher \
         testDisconnectReconnectWithMultipleClients",
    ),
    ("15.9", "1 2 3 4 5 6 7 8 9 10"),
];

/// The register's hazards are H1 to this.
const HAZARDS: usize = 46;

/// What stands in the place of tests that there are not, with the reason behind it.
const NOT_APPLICABLE: &str = "n/a: ";

#[derive(Debug)]
struct Row {
    line: usize,
    /// `15.1` or `11`.
    section: String,
    name: String,
    /// `path.rs::function`, or a program; none if it does not apply.
    tests: Vec<String>,
    /// Why there is none.
    reason: Option<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("recipes/ is not the root")
        .to_owned()
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("recipes/tests/catalogue.md")).unwrap();
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| {
            line.strip_prefix("| ")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
        .map(|(line, text)| {
            let cells: Vec<_> = text.trim_matches('|').split(" | ").map(str::trim).collect();
            let [section, name, _, held] = cells[..] else {
                panic!("catalogue.md:{line}: {} cells instead of 4", cells.len());
            };
            let reason = held.strip_prefix(NOT_APPLICABLE).map(str::to_owned);
            let tests = if reason.is_some() { "" } else { held };
            let tests = tests.split('`').skip(1).step_by(2).map(str::to_owned);
            Row {
                line,
                section: section.to_owned(),
                name: name.to_owned(),
                tests: tests.collect(),
                reason,
            }
        })
        .collect()
}

fn known() -> BTreeSet<(String, String)> {
    let mut known = BTreeSet::new();
    for (section, names) in CATALOGUE {
        let pairs = names
            .split_whitespace()
            .map(|name| (section.to_owned(), name.to_owned()));
        known.extend(pairs);
    }
    known.extend((1..=HAZARDS).map(|number| ("11".to_owned(), format!("H{number}"))));
    known
}

/// Whether `fn name` stands below an attribute that makes it a test.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let head = format!("fn {name}(");
    lines.iter().enumerate().any(|(at, line)| {
        line.contains(&head)
            && lines[..at]
                .iter()
                .rev()
                .take_while(|line| line.starts_with('#') || line.starts_with("//"))
                .any(|line| line.starts_with("#[test") || line.starts_with("#[tokio::test"))
    })
}

/// What is left of a name when nobody counts its humps.
fn plain(name: &str) -> String {
    name.replace('_', "").to_ascii_lowercase()
}

/// Whether a function is named as the row demands.
fn is_named(row: &Row, test: &str) -> bool {
    let function = test.rsplit("::").next().unwrap_or_default();
    if row.section == "11" {
        let number = row.name.trim_start_matches('H');
        return function.starts_with(&format!("h{number}_"));
    }
    let name = row
        .name
        .rsplit_once("..")
        .map_or(&*row.name, |(name, _)| name);
    let name = name.trim_end_matches('.');
    let name = plain(name.split_once('.').map_or(name, |(_, name)| name));
    // A hazard's number may stand in front.
    let function = match function.split_once('_') {
        Some((number, rest)) if number.starts_with('h') && number.len() <= 3 => rest,
        _ => function,
    };
    let function = plain(function);
    if row.name.ends_with("...") {
        function.starts_with(&name)
    } else {
        function == name
    }
}

#[track_caller]
fn assert_none(found: &[String], what: &str) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

#[test]
fn every_name_of_the_catalogue_and_every_hazard_has_one_row() {
    let known = known();
    let mut lines: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    let rows = rows();
    for row in &rows {
        let key = (row.section.clone(), row.name.clone());
        lines.entry(key).or_default().push(row.line);
    }
    let mut found = Vec::new();
    for key in &known {
        match lines.remove(key).as_deref() {
            Some([_]) => {}
            other => found.push(format!("{key:?} stands in lines {other:?}")),
        }
    }
    found.extend(lines.into_keys().map(|key| format!("there is no {key:?}")));
    assert_none(&found, "table and reference disagree");
    let hazards = rows.iter().filter(|row| row.section == "11").count();
    let count = |rows: &mut dyn Iterator<Item = &Row>| rows.count();
    let tests: BTreeSet<_> = rows.iter().flat_map(|row| &row.tests).collect();
    println!(
        "{} rows: {} of the catalogue ({} n/a), {hazards} hazards ({} n/a); {} tests",
        rows.len(),
        rows.len() - hazards,
        count(
            &mut rows
                .iter()
                .filter(|row| row.section != "11" && row.reason.is_some())
        ),
        count(
            &mut rows
                .iter()
                .filter(|row| row.section == "11" && row.reason.is_some())
        ),
        tests.len(),
    );
}

#[test]
fn every_test_exists_and_is_named_as_there() {
    let mut found = Vec::new();
    for row in rows() {
        let here = format!("catalogue.md:{}: {} {}", row.line, row.section, row.name);
        if row.tests.is_empty() && row.reason.is_none() {
            found.push(format!("{here}: no test and no reason"));
        }
        for test in &row.tests {
            let exists = match test.split_once("::") {
                Some((file, name)) => {
                    fs::read_to_string(root().join(file)).is_ok_and(|text| has_test(&text, name))
                }
                None => root().join(test).is_file(),
            };
            if !exists {
                found.push(format!("{here}: there is no {test}"));
            }
        }
        let is_free = row.section == "15.9" || row.name == "CleanState" || row.reason.is_some();
        if !is_free && !row.tests.iter().any(|test| is_named(&row, test)) {
            found.push(format!("{here}: no test is named so"));
        }
    }
    assert_none(&found, "rows that are not held");
}

/// Whoever writes `h17_` says that hazard 17 is tested there.
#[test]
fn every_test_of_a_hazard_has_its_row() {
    let rows = rows();
    let mut found = Vec::new();
    for folder in ["recipes/tests/it", "recipes/client/tests/it", "recipes/src"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let Ok(text) = fs::read_to_string(&path) else {
                continue;
            };
            let file = path.file_name().unwrap().to_string_lossy().into_owned();
            let names = text.split("fn h").skip(1);
            for rest in names {
                let Some((number, _)) = rest.split_once('_') else {
                    continue;
                };
                let Ok(number) = number.parse::<usize>() else {
                    continue;
                };
                let name: String = rest.chars().take_while(|c| *c != '(').collect();
                let test = format!("{folder}/{file}::h{name}");
                let has_row = rows
                    .iter()
                    .any(|row| row.name == format!("H{number}") && row.tests.contains(&test));
                if !has_row {
                    found.push(format!("H{number}: {test}"));
                }
            }
        }
    }
    assert_none(&found, "tests of hazards that no row names");
}
