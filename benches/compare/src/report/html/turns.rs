//! Who gets it: grants by contender, fairness in numbers, and who held it when.

use super::{
    name, number,
    questions::{of, shown_contenders},
    section,
};
use crate::report::{
    Figures, Report, Row, Workload,
    markup::{element, text_element},
    svg::{
        Looks,
        grants::{Grants, grants},
        lanes::{HOLDS_MAX, lanes},
    },
};
use crate::{stats::as_f64, table::grouped};

/// The section.
pub(super) fn turns(report: &Report, looks: &Looks) -> String {
    let groups = of(report, |workload| matches!(workload, Workload::HandOver(_)));
    let shown = shown_contenders(&groups);
    let mut body = String::new();
    if let Some((workload, rows)) = groups.iter().find(|(of, _)| Some(*of) == shown) {
        body += &shares(*workload, rows, looks);
    }
    body += &numbers(&groups);
    if let Some((workload, rows)) = groups.iter().find(|(of, _)| Some(*of) == shown) {
        body += &timelines(*workload, rows, looks);
    }
    let aid = "A lock that serves in order gives each contender as much as the others, lets nobody \
               overtake, and gives nobody two turns in a row while others wait.";
    section("turns", "Who gets it?", aid, &body)
}

fn shares(workload: Workload, rows: &[&Row], looks: &Looks) -> String {
    let all: Vec<_> = rows
        .iter()
        .map(|row| Grants {
            name: &row.contestant,
            look: looks.look(&row.contestant),
            grants: &row.grants,
            caption: caption(row),
        })
        .collect();
    let Some(pictures) = grants(&all) else {
        return String::new();
    };
    let aid = "One bar a contender, who got most first; the dashed line is the fair share, and all \
               pictures have the same scale.";
    let title = format!("Grants by contender: {}", workload.title());
    text_element("h3", &[], &title) + &text_element("p", &[("class", "aid")], aid) + &pictures
}

/// Evenness, and the least and the most that anybody got.
fn caption(row: &Row) -> String {
    let jain = number(row.median(|round| round.jain));
    let least = row.grants.iter().min().copied().unwrap_or(0);
    let most = row.grants.iter().max().copied().unwrap_or(0);
    let [least, most] = [least, most].map(|count| grouped(as_f64(count)));
    format!("Jain {jain}; from {least} to {most} grants")
}

/// The three figures of fairness, by number of contenders.
fn numbers(groups: &[(Workload, Vec<&Row>)]) -> String {
    type Pick = fn(&Figures) -> Option<f64>;
    let figures: [(&str, Pick); 3] = [
        ("Jain's index", |round| round.jain),
        ("overtaken, a grant", |round| round.inversions),
        ("regrabbed, a grant", |round| round.regrabs),
    ];
    let mut contestants: Vec<&str> = Vec::new();
    for row in groups.iter().flat_map(|(_, rows)| rows) {
        if !contestants.contains(&&*row.contestant) {
            contestants.push(&row.contestant);
        }
    }
    if contestants.is_empty() {
        return String::new();
    }
    let mut top = text_element("th", &[("rowspan", "2"), ("scope", "col")], "contestant");
    let mut second = String::new();
    let columns = groups.len().to_string();
    for (title, _) in figures {
        let attributes = [
            ("colspan", &*columns),
            ("scope", "colgroup"),
            ("class", "group"),
        ];
        top += &text_element("th", &attributes, title);
        for (at, (workload, _)) in groups.iter().enumerate() {
            let Workload::HandOver(contenders) = workload else {
                continue;
            };
            let class = if at == 0 { "n group" } else { "n" };
            let attributes = [("scope", "col"), ("class", class)];
            second += &text_element("th", &attributes, &grouped((*contenders).into()));
        }
    }
    let head = element("tr", &[], &top) + &element("tr", &[], &second);
    let body = contestants.into_iter().map(|contestant| {
        let mut cells = element("th", &[("scope", "row")], &name(contestant));
        for (_, figure) in figures {
            for (at, (_, rows)) in groups.iter().enumerate() {
                let row = rows.iter().find(|row| row.contestant == contestant);
                let class = if at == 0 { "n group" } else { "n" };
                let value = number(row.and_then(|row| row.median(figure)));
                cells += &text_element("td", &[("class", class)], &value);
            }
        }
        element("tr", &[], &cells)
    });
    let body: String = body.collect();
    let table = element("thead", &[], &head) + &element("tbody", &[], &body);
    let table = element("table", &[], &table);
    let aid = "By number of contenders. Jain's index is 1 if all got as many, and 1 over their \
               number if one got all.";
    text_element("h3", &[], "Fairness in numbers")
        + &text_element("p", &[("class", "aid")], aid)
        + &element("div", &[("class", "scroll")], &table)
}

fn timelines(workload: Workload, rows: &[&Row], looks: &Looks) -> String {
    let Workload::HandOver(contenders) = workload else {
        return String::new();
    };
    let pictures: String = rows
        .iter()
        .filter_map(|row| {
            let look = looks.look(&row.contestant);
            lanes(&row.contestant, look, &row.timeline, contenders)
        })
        .collect();
    if pictures.is_empty() {
        return pictures;
    }
    let title = format!("Who held it when: {}", workload.title());
    let aid = format!(
        "One lane a contender, thin while it waits, thick while it holds; the first {HOLDS_MAX} \
         holds of a part of one round. Each picture has a time of its own."
    );
    text_element("h3", &[], &title)
        + &text_element("p", &[("class", "aid")], &aid)
        + &element("div", &[("class", "multiples wide")], &pictures)
}
