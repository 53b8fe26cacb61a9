//! Tests the forms of the lock bench's report, with made-up results.
//!
//! | module | content |
//! | --- | --- |
//! | [`markup`] | reads a page as XML and reports errors |
//! | [`odd`] | reports with values that no run should have |
//! | [`page`] | draws a page |

mod markup;
mod odd;
mod page;

use minikeeper_bench::{
    judge::{Finding, Verdict},
    report::{
        GoalRow, Report, Workload,
        json::{html, json},
        summary::{Findings, Word},
        text::text,
    },
    stats::Spread,
};
use page::{drawn, value};
use serde_json::{Value, json as values};

fn not_checked() -> Finding {
    Finding::NotChecked("no grants".into())
}

fn holds() -> Finding {
    Finding::Holds { checked: 7 }
}

fn violated() -> Finding {
    Finding::Violated {
        times: 2,
        counterexample: "a <b> & c\nd".into(),
    }
}

fn verdict(exclusion: Finding, fencing: Finding) -> Verdict {
    Verdict {
        exclusion,
        fencing,
        unknown: 0,
        refusal: None,
    }
}

/// The part of the page with this id.
#[track_caller]
fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let start = page.find(&format!("<section id=\"{id}\">"));
    let start = start.unwrap_or_else(|| panic!("no section {id}"));
    let rest = &page[start..];
    &rest[..rest.find("</section>").expect("the page is well formed")]
}

#[test]
fn page_with_odd_values_is_well_formed_and_escaped() {
    let page = html(&odd::report());
    assert!(!page.contains(odd::NAME), "the name is escaped in JSON");
    let page = drawn(&page);
    let shown = markup::text(&page).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(shown.contains(odd::NAME), "the name is shown as it is");
    assert!(!page.contains(odd::NAME), "the name is escaped");
}

#[test]
fn page_omits_unmeasured_sections() {
    let page = drawn(&html(&odd::empty()));
    markup::text(&page).unwrap_or_else(|fault| panic!("{fault}"));
    for id in [
        "goals",
        "cycle",
        "hand-over",
        "turns",
        "recovery",
        "herd",
        "cpu",
        "pauses",
        "not-run",
    ] {
        assert!(!page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert!(section(&page, "judge").contains("nothing was judged"));
}

#[test]
fn page_is_self_contained_and_has_its_data() {
    let page = html(&odd::report());
    let foreign = [
        "http:", "https:", "//", "<link", "<img", "src=", "url(", "@import",
    ];
    let drawn = drawn(&page);
    for foreign in foreign {
        assert!(!page.contains(foreign), "{foreign}");
        assert!(!drawn.contains(foreign), "{foreign}");
    }
    let data = "<script type=\"application/json\" id=\"results\">";
    assert_eq!(page.matches("<script").count(), 2, "the data and the code");
    let (_, data) = page.split_once(data).expect("the results as JSON");
    let (data, _) = data.split_once("</script>").expect("their end");
    let read: Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(read, json(&odd::report()));
}

/// Odd values must not become words or positions: `NaN` in an attribute hides a chart without an error.
#[test]
fn no_form_has_nan_or_infinity() {
    let report = odd::report();
    let page = drawn(&html(&report));
    for form in [page, text(&report), json(&report).to_string()] {
        let mut words = form.split(|char: char| !char.is_alphanumeric());
        let odd = words.find(|word| matches!(*word, "NaN" | "inf" | "Infinity" | "undefined"));
        assert_eq!(odd, None);
        assert!(!form.contains("=\"%\""), "a position is missing");
    }
}

#[test]
fn log_axis_ends_at_round_values_around_the_data() {
    let of = |of| {
        value(&format!(
            "[logAxis([130e3, 700e3, 0, null], timeLabel)].map((axis) => {of})[0]"
        ))
    };
    let labels = ["100 µs", "200 µs", "500 µs", "1 ms"];
    assert_eq!(of("axis.ticks.map(({ label }) => label)"), values!(labels));
    assert_eq!(
        of("[100e3, 1e6, 0].map((ns) => axis.share(ns))"),
        values!([0, 1, null])
    );
    assert_eq!(value("logAxis([0, -1, 1 / 0], timeLabel)"), Value::Null);
}

#[test]
fn log_axis_of_one_round_value_or_of_a_huge_range_is_bounded() {
    let of = |of| {
        value(&format!(
            "[logAxis([1e3], timeLabel)].map((axis) => {of})[0]"
        ))
    };
    assert_eq!(of("[axis.low, axis.high]"), values!([1_000, 10_000]));
    let huge =
        "logAxis([Number.MIN_VALUE, Number.MAX_VALUE], timeLabel).ticks.map(({ label }) => label)";
    let huge = value(huge);
    let ticks = huge.as_array().unwrap();
    assert!(ticks.len() < 40, "{huge}");
    assert!(
        ticks.iter().filter(|label| label.is_string()).count() < 12,
        "{huge}"
    );
}

#[test]
fn linear_axis_begins_at_zero() {
    for (data, labels) in [
        ("[3.7]", values!(["0", "1", "2", "3", "4"])),
        ("[]", values!(["0", "0.5", "1"])),
        ("[0.3]", values!(["0", "0.1", "0.2", "0.3"])),
    ] {
        let axis = format!("linearAxis({data}, countLabel)");
        assert_eq!(
            value(&format!("{axis}.ticks.map(({{ label }}) => label)")),
            labels
        );
    }
    assert_eq!(value("linearAxis([3.7], countLabel).share(2)"), 0.5);
}

#[test]
fn shares_of_grants_are_sorted_and_bounded_in_number() {
    assert_eq!(value("fairShares([1, 3])"), values!([1.5, 0.5]));
    assert_eq!(value("[[0, 0], []].map(fairShares)"), values!([[], []]));
    assert_eq!(
        value("fairShares(Array.from({ length: 1000 }, (_, at) => at)).length"),
        100
    );
}

#[test]
fn names_keep_apart_and_inside() {
    let places = value("apart([100, 101, 102, 199, 200], 200)");
    let places: Vec<f64> = places
        .as_array()
        .unwrap()
        .iter()
        .map(|place| place.as_f64().unwrap())
        .collect();
    assert!(
        places.windows(2).all(|pair| pair[1] - pair[0] >= 17.0),
        "{places:?}"
    );
    assert!(
        places.iter().all(|place| (0.0..200.0).contains(place)),
        "{places:?}"
    );
    assert_eq!(value("apart([50, 150], 200)"), values!([50, 150]));
}

/// With many contenders, several share a bar, and not all have lanes.
#[test]
fn page_with_a_thousand_contenders_stays_small() {
    let page = html(&odd::thousand());
    assert!(page.len() < 200_000, "{} bytes", page.len());
    let page = drawn(&page);
    markup::text(&page).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(page.len() < 200_000, "{} bytes", page.len());
    assert!(section(&page, "turns").contains("from 0 to 999 grants"));
}

#[test]
fn word_is_a_pass_only_if_everything_was_checked_and_holds() {
    let all = [holds, violated, not_checked];
    for (exclusion, fencing) in all.iter().flat_map(|a| all.iter().map(move |b| (a(), b()))) {
        let is_pass = exclusion == holds() && fencing == holds();
        let verdict = verdict(exclusion, fencing);
        assert_eq!(verdict.word() == Word::Holds, is_pass, "{verdict:?}");
        assert_eq!(verdict.text().contains("holds"), is_pass, "{verdict:?}");
    }
    let refused = Verdict {
        refusal: Some("contenders shared a session".into()),
        ..verdict(holds(), holds())
    };
    assert_eq!(refused.word(), Word::Refused);
}

#[test]
fn not_checked_is_never_shown_as_a_pass() {
    let mut report = odd::plain();
    for row in &mut report.rows {
        row.verdict = verdict(not_checked(), not_checked());
    }
    report.pauses[0].verdict = verdict(not_checked(), not_checked());
    report.pauses[0].late_write_accepted = Some(true);
    let page = drawn(&html(&report));
    assert!(!section(&page, "pauses").contains("badge yes"));
    assert!(section(&page, "judge").contains("exclusion not checked: no grants"));
    assert!(section(&page, "cycle").contains("not checked"));
    assert!(page.contains("0 of 4"), "the headline counts no pass");
    let text = text(&report);
    assert!(text.contains("Judge: 4 not checked\n"), "{text}");
    assert!(
        text.contains("  not checked: fencing: no grants\n"),
        "{text}"
    );
    assert!(!text.contains("holds\n"), "{text}");
}

#[test]
fn violation_is_shown_with_its_counterexample() {
    let mut report = odd::plain();
    report.rows[1].verdict = verdict(violated(), holds());
    let page = drawn(&html(&report));
    assert!(page.contains("1 VIOLATED"), "the headline has it");
    assert!(section(&page, "judge").contains("<pre>a &lt;b&gt; &amp; c\nd</pre>"));
    assert!(
        section(&page, "cycle").contains("VIOLATED"),
        "next to its figures"
    );
    let text = text(&report);
    let expected = "  VIOLATED 2 times: exclusion: cycle, no other contender: Curator on minikeeper\n    \
                a <b> & c\n    d\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn goals_show_whether_they_hold() {
    let mut report = odd::empty();
    report.goals = [true, false]
        .into_iter()
        .map(|holds| GoalRow {
            figure: "cycle p50 / echo".into(),
            goal: "<= 2".into(),
            value: Spread::of(&[1.0, 2.0, 4.0]).unwrap(),
            holds,
        })
        .collect();
    let page = drawn(&html(&report));
    let goals = section(&page, "goals");
    for badge in [
        "<span class=\"badge yes\">yes</span>",
        "<span class=\"badge no\">NO</span>",
    ] {
        assert_eq!(goals.matches(badge).count(), 1, "{badge}");
    }
    let text = text(&report);
    assert!(
        text.contains("cycle p50 / echo  <= 2  2.00 (1.00-4.00)  NO\n"),
        "{text}"
    );
}

/// Ratios are taken within a round: the ratio of the medians would be 200 / 20 here.
#[test]
fn multiple_of_the_echo_is_the_median_of_the_rounds_ratios() {
    let report = odd::plain();
    let row = &report.rows[0];
    assert_eq!(row.latency(|round| round.p50_ns), Some(200.0));
    assert_eq!(Spread::of(&[4.0, 5.0, 20.0]), row.over_echo());
}

#[test]
fn text_has_a_table_for_each_workload() {
    let text = text(&odd::plain());
    let cycle = text.find("cycle, no other contender\ncontestant ").unwrap();
    let recovery = text.find("recovery after the holder's death\n").unwrap();
    assert!(cycle < recovery);
    let line = text
        .lines()
        .find(|line| line.starts_with("recipes on minikeeper"))
        .unwrap();
    let cells: Vec<_> = line
        .split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect();
    assert_eq!(
        cells,
        [
            "recipes on minikeeper",
            "200 ns",
            "0 ns",
            "2.00 us",
            "0 ns",
            "0 ns",
            "5.00 (4.00-20.0)",
            "0",
            "-",
            "-",
            "-",
            "1.50 us",
            "-",
            "holds",
        ]
    );
}

#[test]
fn refused_and_not_run_are_listed_with_their_reasons() {
    let report = odd::report();
    let (page, text) = (drawn(&html(&report)), text(&report));
    for (id, reason) in [
        ("refused", "round 2: the generator was busy"),
        ("refused", "contenders shared a session"),
        ("not-run", "no etcd; install etcd-server"),
    ] {
        assert!(section(&page, id).contains(reason), "{reason}");
        assert!(text.contains(reason), "{reason}");
    }
}

#[test]
fn headline_is_our_recipe_on_minikeeper() {
    let mut report = odd::plain();
    report.rows[0].contestant = "recipes on ZooKeeper 3.8".into();
    report.rows[1].contestant = "recipes on minikeeper".into();
    let page = drawn(&html(&report));
    let cards = &page[..page.find("<section").unwrap()];
    assert!(cards.contains("recipes on minikeeper"), "{cards}");
    assert!(!cards.contains("recipes on ZooKeeper"), "{cards}");
    assert!(!cards.contains("hand-over"), "it was not measured");
}

#[test]
fn findings_name_a_reason_once_for_all_workloads() {
    let mut report = odd::plain();
    for row in &mut report.rows {
        row.contestant = "one".into();
        row.verdict = verdict(holds(), not_checked());
    }
    let findings = Findings::of(&report);
    let [unchecked] = &findings.unchecked[..] else {
        panic!("{findings:?}");
    };
    let [("one", workloads)] = &unchecked.subjects[..] else {
        panic!("{unchecked:?}");
    };
    assert_eq!(workloads.len(), report.rows.len());
}

#[test]
fn json_has_everything_and_can_be_read_back() {
    let report: Report = odd::report();
    let read: Value = serde_json::from_str(&json(&report).to_string()).unwrap();
    let at = |path: &str| read.pointer(path).unwrap_or_else(|| panic!("no {path}"));
    assert_eq!(at("/format"), 1);
    assert_eq!(at("/about/servers/0/version"), "0.1.0");
    assert_eq!(at("/rows").as_array().unwrap().len(), report.rows.len());
    let row = report
        .rows
        .iter()
        .position(|row| row.workload == Workload::HandOver(8))
        .unwrap();
    let at = |path: &str| at(&format!("/rows/{row}{path}"));
    assert_eq!(at("/contestant"), odd::NAME);
    assert_eq!(at("/workload/kind"), "hand-over");
    assert_eq!(at("/workload/contenders"), 8);
    assert_eq!(at("/rounds/0/p50_ns"), 0.0);
    assert_eq!(at("/rounds/1/p50_ns"), &Value::Null, "not a number");
    assert_eq!(at("/rounds/0/jain"), &Value::Null, "not measured");
    assert_eq!(at("/latency_buckets_ns_count/0"), &values!([1, 1]));
    assert_eq!(at("/timeline/0/releasing_ns"), 30);
    assert_eq!(at("/grants/0"), u64::MAX);
    assert_eq!(at("/verdict/exclusion/finding"), "violated");
    assert_eq!(at("/verdict/exclusion/counterexample"), "a <b> & c\nd");
    assert_eq!(at("/verdict/fencing/finding"), "not-checked");
    assert_eq!(at("/verdict/refusal"), "contenders shared a session");
}
