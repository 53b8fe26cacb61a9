//! The report as one page: no script, nothing from elsewhere, readable without colour.
//!
//! | module | part |
//! | --- | --- |
//! | `questions` | latency, growth, kinds of locks, recovery, herd, CPU: strips and lines |
//! | `turns` | who gets it: grants, fairness, lanes |
//! | `tables` | headline, about, goals, pauses, promises |
//! | `findings` | the judge's, what was refused, what was not run |

mod findings;
mod questions;
mod tables;
mod turns;

use super::{
    Report,
    markup::{element, empty, text_element},
    summary::{duration, figure},
    svg::Looks,
};
use crate::stats::Spread;

/// What stands where nothing was measured.
const NONE: &str = "–";

/// The whole page.
#[must_use]
pub fn html(report: &Report) -> String {
    let looks = Looks::of(report);
    let sections = [
        tables::headline(report),
        tables::about(report),
        tables::goals(report),
        questions::cycle(report, &looks),
        questions::hand_over(report, &looks),
        turns::turns(report, &looks),
        questions::read_write(report, &looks),
        questions::semaphore(report, &looks),
        questions::open_loop(report, &looks),
        questions::recovery(report, &looks),
        questions::herd(report, &looks),
        questions::cpu(report, &looks),
        tables::pauses(report),
        tables::promises(report),
        findings::findings(report),
        findings::refused(report),
        findings::not_run(report),
    ];
    let title = format!("Locks compared, {}", report.about.date);
    let viewport = "width=device-width, initial-scale=1";
    let head = [
        empty("meta", &[("charset", "utf-8")]),
        empty("meta", &[("name", "viewport"), ("content", viewport)]),
        text_element("title", &[], &title),
        element("style", &[], include_str!("html/style.css")),
    ];
    let body = text_element("h1", &[], "Locks compared") + &sections.concat();
    let page =
        element("head", &[], &head.concat()) + &element("body", &[], &element("main", &[], &body));
    format!(
        "<!DOCTYPE html>\n{}\n",
        element("html", &[("lang", "en")], &page)
    )
}

/// A part of the page with a heading, a sentence on how to read it, and markup; without markup it
/// says that nothing was measured.
fn section(id: &str, heading: &str, aid: &str, body: &str) -> String {
    let mut inner = text_element("h2", &[], heading);
    if body.is_empty() {
        inner += &text_element("p", &[("class", "muted")], "Not measured in this run.");
    } else {
        inner += &text_element("p", &[("class", "aid")], aid);
        inner += body;
    }
    element("section", &[("id", id)], &inner)
}

/// Headings, and the cells below them as markup. It may be wider than the page and then scrolls.
fn grid(headings: &[(&str, &str)], rows: &[Vec<String>]) -> String {
    let cells = headings.iter();
    let head: String = cells
        .map(|(heading, class)| text_element("th", &[("scope", "col"), ("class", class)], heading))
        .collect();
    let body: String = rows
        .iter()
        .map(|row| {
            let cells = row.iter().zip(headings);
            let cells = cells.map(|(cell, (_, class))| element("td", &[("class", class)], cell));
            element("tr", &[], &cells.collect::<String>())
        })
        .collect();
    let head = element("thead", &[], &element("tr", &[], &head));
    let table = element("table", &[], &(head + &element("tbody", &[], &body)));
    element("div", &[("class", "scroll")], &table)
}

/// A contestant's name, marked if it is ours.
fn name(contestant: &str) -> String {
    let is_ours = super::summary::is_ours(contestant);
    let class = if is_ours { "ours" } else { "" };
    text_element("span", &[("class", class)], contestant)
}

/// Words with a colour that says the same.
fn badge(state: &str, text: &str) -> String {
    let class = format!("badge {state}");
    text_element("span", &[("class", &class)], text)
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.into(), figure)
}

fn time(ns: Option<f64>) -> String {
    let text = ns.map_or_else(|| NONE.into(), duration);
    text.replace(" us", " µs")
}

/// `2.31 × (2.20–2.45)`.
fn multiple(spread: Option<Spread>) -> String {
    spread.map_or_else(
        || NONE.into(),
        |Spread { median, min, max }| {
            let [median, min, max] = [median, min, max].map(figure);
            format!("{median} × ({min}–{max})")
        },
    )
}
