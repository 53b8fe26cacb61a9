//! The report of a sweep as a page.

use serde_json::{Value, json};

use crate::{
    orders::fault::SweepFault,
    page::bundle,
    story::cut,
    sweep::{
        map::{MapRow, PointState},
        point::FaultPoint,
        report::{MESSAGE_CHARS_MAX, SweepFailure, SweepReport, text_of},
        rule::RuleUse,
        timeline::SweepTimeline,
    },
};

/// The maximum lengths of what the page lists, besides the timelines, of which a report has a limited
/// number. Unit: bytes of JSON.
const FAILURES_BYTES_MAX: usize = 1 << 20;
const MAP_BYTES_MAX: usize = 1 << 20;
const UNREACHED_BYTES_MAX: usize = 128 << 10;
const RULES_BYTES_MAX: usize = 64 << 10;
const COVERAGE_BYTES_MAX: usize = 128 << 10;

/// The longest title. Unit: characters.
const TITLE_CHARS_MAX: usize = 300;

impl SweepReport {
    /// Returns the report as a page for browsers, which loads nothing. `repeat` makes the command that
    /// does a failed run again.
    pub(crate) fn to_html(&self, title: &str, repeat: &dyn Fn(&SweepFailure) -> String) -> String {
        bundle::html(&json!({"sweep": self.to_json(title, repeat)}))
    }

    fn to_json(&self, title: &str, repeat: &dyn Fn(&SweepFailure) -> String) -> Value {
        let mut failures_max = FAILURES_BYTES_MAX;
        let mut failures_left = 0;
        let mut groups = Vec::new();
        for mut group in self.groups() {
            // One of them has a timeline.
            minikeeper_core::order::sort_by_key(&mut group, |failure| failure.timeline.is_none());
            let mut shown = Vec::new();
            for failure in &group {
                let failure = shown_failure(failure, repeat);
                // The timelines have a limit of their own.
                let timeline = failure["timeline"].to_string().len();
                if fits(&failure, &mut failures_max, timeline) {
                    shown.push(failure);
                } else {
                    failures_left += 1;
                }
            }
            if !shown.is_empty() {
                groups.push(json!({
                    "is_hang": group[0].is_hang,
                    "place": group[0].place,
                    "message": group[0].message,
                    "failures": shown,
                }));
            }
        }
        let mut unreached_max = UNREACHED_BYTES_MAX;
        let unreached = self.unreached.iter().map(
            |points| json!({"point": text_of(points), "sentence": FaultPoint::sentences(points)}),
        );
        let unreached = unreached.filter(|points| fits(points, &mut unreached_max, 0));
        let unreached: Vec<_> = unreached.collect();
        let message = |text: &Option<String>| text.as_ref().map(|it| cut(it, MESSAGE_CHARS_MAX));
        json!({
            "title": cut(title, TITLE_CHARS_MAX),
            "state": self.state().name(),
            "reasons": self.reasons(),
            "orders": self.orders.as_ref().map(|orders| json!({
                "clients": orders.clients,
                "phrase": orders.phrase(),
            })),
            "difference": message(&self.nondeterminism),
            "without_faults": self.without_faults,
            "story": self.story.as_deref().map(file_name),
            "numbers": {
                "points": self.points,
                "tried": self.tried,
                "passed": self.passed,
                "allowed_to_fail": self.allowed,
                "left_out_by_rules": self.left_out.iter().map(|rule| rule.points).sum::<u64>(),
                "failed": self.failed,
                "hung": self.hung,
                "not_reached": self.not_reached,
                "untried": self.left,
                "passed_earlier": self.earlier,
                "left_out_as_equivalent": self.equivalent,
                "did_not_fail_again": self.flaky,
                "runs": self.runs,
                "took_ms": u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX),
                "seed": self.seed,
            },
            "groups": groups,
            "failures_left": failures_left,
            "unreached": unreached,
            "unreached_left": self.unreached.len() - unreached.len(),
            "map": self.map_json(),
            "coverage": self.coverage_json(),
            "rules": self.rules_json(),
            "goals": self.goals.iter().map(|(goal, is_reached)| json!({
                "goal": goal,
                "is_reached": is_reached,
            })).collect::<Vec<_>>(),
        })
    }

    fn rules_json(&self) -> Vec<Value> {
        let shown = |kind: &'static str| move |it: &RuleUse| json!({"kind": kind, "text": it.rule.to_string(), "points": it.points});
        let left_out = self.left_out.iter().map(shown("Left out"));
        let mut bytes_max = RULES_BYTES_MAX;
        let rules = self.allowances.iter().map(shown("Allowed")).chain(left_out);
        rules.filter(|rule| fits(rule, &mut bytes_max, 0)).collect()
    }

    fn coverage_json(&self) -> Vec<Value> {
        let mut bytes_max = COVERAGE_BYTES_MAX;
        let coverage = self
            .coverage()
            .into_iter()
            .map(|it| json!({"by": it.by, "name": it.name, "tried": it.tried, "known": it.known}));
        coverage.filter(|it| fits(it, &mut bytes_max, 0)).collect()
    }

    fn map_json(&self) -> Value {
        let map = &self.map;
        let mut bytes_max = MAP_BYTES_MAX;
        let mut points_left = map.points_beyond;
        let mut rows = Vec::new();
        for row in &map.rows {
            let shown = shown_row(row);
            if fits(&shown, &mut bytes_max, 0) {
                rows.push(shown);
            } else {
                points_left += row.states.len() as u64;
            }
        }
        let pairs = map.pair_states.iter();
        let pairs: Vec<_> = pairs
            .map(|(state, count)| json!({"state": state.name(), "count": count}))
            .collect();
        json!({
            "faults": SweepFault::NAMES,
            "states": PointState::ALL.map(PointState::name),
            "rows": rows,
            "points_left": points_left,
            "pairs": map.pairs,
            "pair_states": pairs,
        })
    }
}

fn shown_row(row: &MapRow) -> Value {
    let states = row.states.iter();
    let states = states.map(|(fault, state)| (fault.name().to_owned(), state.name().into()));
    json!({
        "test": row.test,
        "client": row.client,
        "op": row.op,
        "nth": row.nth,
        "path": row.path,
        "states": states.collect::<serde_json::Map<_, _>>(),
    })
}

fn shown_failure(failure: &SweepFailure, repeat: &dyn Fn(&SweepFailure) -> String) -> Value {
    let timeline = failure.timeline.as_ref();
    let timeline = timeline.map(
        |SweepTimeline {
             entries,
             fault,
             clients,
         }| {
            let clients = clients.iter();
            let clients = clients.map(|(session, number)| (session.to_string(), (*number).into()));
            json!({
                "entries": entries,
                "fault": fault,
                "clients": clients.collect::<serde_json::Map<_, _>>(),
            })
        },
    );
    json!({
        "test": failure.test,
        "point": failure.text(),
        "sentence": failure.sentence(),
        "command": repeat(failure),
        "message": failure.message,
        "is_hang": failure.is_hang,
        "is_flaky": failure.is_flaky,
        "story": failure.story.as_deref().map(file_name),
        "timeline": timeline,
        "order": failure.order_text(),
    })
}

/// Returns whether there is room for a value, whose first bytes do not count, and takes it.
fn fits(value: &Value, bytes_max: &mut usize, free: usize) -> bool {
    let bytes = value.to_string().len() - free;
    match bytes_max.checked_sub(bytes) {
        Some(left) => {
            *bytes_max = left;
            true
        }
        None => false,
    }
}

/// Returns the name of a story's page, which lies beside the report.
fn file_name(page: &str) -> &str {
    page.rsplit(['/', '\\']).next().unwrap_or(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "/</script><img src=x onerror=alert(1)>\u{2028}'\"&";

    fn report(failures: u64, path: &str) -> SweepReport {
        let mut report = SweepReport::default();
        for nth in 1..=failures {
            let point = FaultPoint {
                fault: SweepFault::ReplyLost,
                client: 1,
                op: "create".to_owned(),
                nth,
                path: path.to_owned(),
            };
            report.map.add((None, ""), &point, PointState::Failed);
            report.unreached.push(vec![point.clone()]);
            let story = Some(format!("folder/{}.html", nth));
            let message = format!("{path} is gone");
            let failure = SweepFailure::new(vec![point], message, false, &[], story);
            report.failures.push(failure);
        }
        report
    }

    #[test]
    fn hostile_names_stay_in_the_json_of_the_page() {
        let page = report(2, HOSTILE).to_html(HOSTILE, &SweepFailure::only);
        let clean = report(2, "/a").to_html("a", &SweepFailure::only);
        for markup in ["<script", "</script", "<img"] {
            assert_eq!(page.matches(markup).count(), clean.matches(markup).count());
        }
    }

    #[test]
    fn page_of_many_long_failures_has_a_limit_and_counts_what_it_leaves_out() {
        let report = report(1_000, &format!("/{}", "x".repeat(5_000)));
        let shown = report.to_json("a test", &SweepFailure::only);
        assert!(shown.to_string().len() < FAILURES_BYTES_MAX + MAP_BYTES_MAX + (1 << 20));
        let listed = shown["groups"][0]["failures"].as_array().unwrap().len();
        assert!(listed > 10);
        assert_eq!(shown["failures_left"], 1_000 - listed);
        let rows = shown["map"]["rows"].as_array().unwrap().len();
        assert_eq!(shown["map"]["points_left"], 1_000 - rows);
        let listed = shown["unreached"].as_array().unwrap().len();
        assert_eq!(shown["unreached_left"], 1_000 - listed);
    }
}
