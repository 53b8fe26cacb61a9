//! What the judge found, what was refused, what was not run.

use super::section;
use crate::report::{
    Report,
    markup::{element, text_element},
    summary::Findings,
};

/// All that is no pass.
pub(super) fn findings(report: &Report) -> String {
    let findings = Findings::of(report);
    let mut body = text_element("p", &[("class", "tally")], &findings.text());
    for violation in &findings.violations {
        let title = format!(
            "{}: {}, {}",
            violation.subject,
            violation.question,
            violation.text()
        );
        body += &text_element("h3", &[("class", "no")], &title);
        body += &text_element("pre", &[], violation.counterexample);
    }
    for unchecked in &findings.unchecked {
        let title = format!("{} not checked: {}", unchecked.question, unchecked.why);
        body += &text_element("h3", &[("class", "open")], &title);
        let subjects = unchecked.subjects.iter();
        body += &list(
            subjects
                .map(|(contestant, workloads)| format!("{contestant}: {}", workloads.join("; "))),
        );
    }
    if !findings.unknown.is_empty() {
        body += &text_element("h3", &[], "Outcomes nobody knows");
        let unknown = findings.unknown.iter();
        body += &list(unknown.map(|(subject, count)| format!("{subject}: {count}")));
    }
    let aid = "The judge looks at the history of each run only. What was not checked is no pass.";
    section("judge", "What the judge found", aid, &body)
}

/// Rounds and runs whose figures are not published.
pub(super) fn refused(report: &Report) -> String {
    let rounds = report.rows.iter().flat_map(|row| {
        let subject = format!("{}: {}", row.workload.title(), row.contestant);
        let refused = row.refused.iter();
        refused.map(move |why| format!("{subject}: {why}"))
    });
    let refusals = Findings::of(report).refusals;
    let runs = refusals.into_iter();
    let runs = runs.map(|(subject, why)| format!("{subject}: {why}"));
    items("refused", "Refused", rounds.chain(runs).collect())
}

/// What was asked for and not run.
pub(super) fn not_run(report: &Report) -> String {
    let all = report.not_run.iter();
    let all = all.map(|not_run| format!("{}: {}", not_run.what, not_run.why));
    items("not-run", "Not run", all.collect())
}

/// A section that says so if there is nothing.
fn items(id: &str, heading: &str, items: Vec<String>) -> String {
    let body = if items.is_empty() {
        text_element("p", &[("class", "muted")], "Nothing.")
    } else {
        list(items.into_iter())
    };
    let inner = text_element("h2", &[], heading) + &body;
    element("section", &[("id", id)], &inner)
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| text_element("li", &[], &item)).collect();
    element("ul", &[], &items)
}
