//! Headline, how it was taken, goals, pauses, promises.

use super::{NONE, badge, grid, name, number, section, time};
use crate::report::{
    Report, Row, Workload,
    markup::{element, escape, text_element},
    summary::{Findings, Word, holds_text, own_violations},
};

/// How many contenders the headline's hand-over has.
const HEADLINE_CONTENDERS: u32 = 8;

/// Our recipe in two figures, and what the judge says of all.
pub(super) fn headline(report: &Report) -> String {
    let hand_over = Workload::HandOver(HEADLINE_CONTENDERS);
    let cards = [
        figure(report, Workload::Cycle, "acquire and release, free lock"),
        figure(report, hand_over, "hand-over, 8 contenders"),
        judge(report),
    ];
    element("div", &[("class", "cards")], &cards.concat())
}

/// Our row of a workload: on minikeeper if there is one.
fn ours(report: &Report, workload: Workload) -> Option<&Row> {
    let rows = || report.rows.iter();
    let ours = || rows().filter(move |row| row.workload == workload && row.is_ours());
    let mut at_home = ours().filter(|row| row.contestant.ends_with("on minikeeper"));
    at_home.next().or_else(|| ours().next())
}

fn figure(report: &Report, workload: Workload, what: &str) -> String {
    let row = ours(report, workload);
    let multiple = row.and_then(Row::over_echo);
    let (large, small) = match (row, multiple) {
        (Some(row), Some(multiple)) => (
            format!("{} ×", number(Some(multiple.median))),
            format!(
                "the round trip to an echo; p50 {}; {}",
                time(row.latency(|round| round.p50_ns)),
                row.contestant
            ),
        ),
        _ => (NONE.into(), "not measured in this run".into()),
    };
    card(
        what,
        &text_element("b", &[("class", "large")], &large),
        &small,
    )
}

fn judge(report: &Report) -> String {
    let findings = Findings::of(report);
    let tally: usize = findings.tally.iter().map(|(_, count)| count).sum();
    let holds = findings.tally.iter().find(|(word, _)| *word == Word::Holds);
    let holds = holds.map_or(0, |(_, count)| *count);
    let violated = findings
        .tally
        .iter()
        .find(|(word, _)| *word == Word::Violated);
    let large = match violated {
        Some((_, count)) => {
            text_element("b", &[("class", "large no")], &format!("{count} VIOLATED"))
        }
        None => text_element("b", &[("class", "large")], &format!("{holds} of {tally}")),
    };
    let small = if violated.is_some() {
        let own = match own_violations(report) {
            0 => "none".to_owned(),
            count => count.to_string(),
        };
        format!("{own} by this project's recipes; {}", findings.text())
    } else {
        format!("hold in exclusion and fencing: {}", findings.text())
    };
    card("the judge, over all runs", &large, &small)
}

fn card(what: &str, large: &str, small: &str) -> String {
    let inner = text_element("span", &[("class", "what")], what)
        + large
        + &text_element("span", &[("class", "muted")], small);
    element("div", &[("class", "card")], &inner)
}

/// How it was taken.
pub(super) fn about(report: &Report) -> String {
    let about = &report.about;
    let servers = about.servers.iter();
    let servers: Vec<_> = servers
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let echo_ns = Some(about.echo_ns).filter(|ns| ns.is_finite());
    let items = [
        ("date", about.date.clone()),
        ("command", about.command.clone()),
        ("machine", about.machine.clone()),
        ("placement", about.placement.clone()),
        ("servers", servers.join(", ")),
        (
            "rounds",
            format!("{}; figures are medians of them", about.rounds),
        ),
        (
            "echo",
            format!(
                "{}, the median round trip to a server that does nothing; multiples are of this",
                time(echo_ns)
            ),
        ),
    ];
    let items = items.map(|(term, text)| {
        text_element("dt", &[], term) + &text_element("dd", &[("class", term)], &text)
    });
    let list = element("dl", &[], &items.concat());
    let aid = "Ratios taken side by side travel further than times: those belong to a machine and \
               an hour. This project's own recipes are in colour.";
    section("about", "How it was taken", aid, &list)
}

/// The goals.
pub(super) fn goals(report: &Report) -> String {
    let headings = [
        ("figure", ""),
        ("goal", "n"),
        ("median", "n"),
        ("rounds", "n"),
        ("holds", ""),
    ];
    let rows: Vec<_> = report
        .goals
        .iter()
        .map(|goal| {
            let state = match goal.holds {
                Some(true) => "yes",
                Some(false) => "no",
                None => "open",
            };
            let rounds = goal.value.map_or_else(
                || NONE.into(),
                |value| format!("{}–{}", number(Some(value.min)), number(Some(value.max))),
            );
            vec![
                escape(&goal.figure),
                escape(&goal.goal),
                number(goal.value.map(|value| value.median)),
                rounds,
                badge(state, holds_text(goal.holds)),
            ]
        })
        .collect();
    let aid = "A goal holds if the median of the rounds holds it; the rounds say how sure that is.";
    let body = if rows.is_empty() {
        String::new()
    } else {
        grid(&headings, &rows)
    };
    section("goals", "Goals", aid, &body)
}

/// What a sleeping holder did.
pub(super) fn pauses(report: &Report) -> String {
    let headings = [
        ("contestant", ""),
        ("away", ""),
        ("timeout", "n"),
        ("next grant after", "n"),
        ("its client says", ""),
        ("late write", ""),
        ("judge", ""),
    ];
    let pauses = report.pauses.iter();
    let rows: Vec<_> = pauses
        .map(|pause| {
            let granted = pause.granted_after_ms;
            let late_write = match pause.late_write_accepted {
                Some(true) => badge("no", "TAKEN"),
                Some(false) => badge("yes", "refused"),
                None => badge("yes", "none: it was told"),
            };
            vec![
                name(&pause.contestant),
                pause.outage.name().into(),
                escape(&format!("{} ms", pause.timeout_ms)),
                granted.map_or_else(|| "never".into(), |ms| format!("{ms} ms")),
                pause.belief.text().into(),
                late_write,
                verdict(&pause.verdict),
            ]
        })
        .collect();
    let aid = "Nothing of the holder reaches the server for longer than its session or lease, and \
               another one gets the lock. Cut off, the holder goes on and asks its client: one that \
               knows its time-out tells it in time. Paused, it does not run, and writes as soon as \
               it does: then two believe that they have the lock, whatever the lock, and only a \
               resource that compares tokens refuses the late write.";
    let body = if rows.is_empty() {
        String::new()
    } else {
        grid(&headings, &rows)
    };
    section("pauses", "What if the holder sleeps?", aid, &body)
}

/// A verdict with its colour.
pub(super) fn verdict(verdict: &crate::judge::Verdict) -> String {
    let state = match verdict.word() {
        Word::Holds => "yes",
        Word::Violated => "no",
        _ => "open",
    };
    badge(state, &verdict.text())
}

/// What each promises.
pub(super) fn promises(report: &Report) -> String {
    let headings = [
        ("contestant", ""),
        ("order", ""),
        ("after a crash of the server", ""),
        ("a dead holder's lock is free after", ""),
        ("fencing token", ""),
    ];
    let mut seen: Vec<&str> = Vec::new();
    let mut rows = Vec::new();
    for row in &report.rows {
        if seen.contains(&&*row.contestant) {
            continue;
        }
        seen.push(&row.contestant);
        let promises = row.promises;
        rows.push(vec![
            name(&row.contestant),
            promises.fairness.text().into(),
            escape(promises.durability),
            escape(promises.death),
            if promises.has_token { "yes" } else { "no" }.into(),
        ]);
    }
    let aid = "From the documentation of each, not measured: compare speed only among those that \
               promise as much.";
    let body = if rows.is_empty() {
        String::new()
    } else {
        grid(&headings, &rows)
    };
    section("promises", "What each promises", aid, &body)
}
