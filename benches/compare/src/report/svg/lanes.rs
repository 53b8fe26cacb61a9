//! Who held it when: one lane a contender, a thin line while it waits, a thick one while it holds.

use std::collections::BTreeSet;

use super::{
    axis::{Axis, time},
    canvas::{Canvas, Look},
};
use crate::{
    report::{
        Hold,
        markup::{element, text_element},
    },
    stats::as_f64,
    table::duration_ns,
};

/// How many holds are shown.
pub const HOLDS_MAX: usize = 60;

/// How high a lane is, in pixels.
const LANE: f64 = 13.0;

/// With more contenders only those who held it have a lane.
const LANES_OF_ALL_MAX: u32 = 24;

/// One contestant's holds; `None` if there are none.
#[must_use]
pub fn lanes(name: &str, look: Look, timeline: &[Hold], contenders: u32) -> Option<String> {
    let mut holds = timeline.to_vec();
    holds.sort_by_key(|hold| hold.granted_ns);
    let later = holds.split_off(holds.len().min(HOLDS_MAX));
    let begin = holds.first()?.granted_ns;
    let ends = holds
        .iter()
        .map(|hold| hold.released_ns.max(hold.granted_ns));
    let end = ends.max()?;
    let axis = Axis::until(as_f64(end.saturating_sub(begin)).max(1.0), time);
    let mut contenders: BTreeSet<u32> = match contenders {
        few @ ..=LANES_OF_ALL_MAX => (0..few).collect(),
        _ => BTreeSet::new(),
    };
    contenders.extend(holds.iter().map(|hold| hold.contender));
    let contenders: Vec<u32> = contenders.into_iter().collect();
    let height = LANE * as_f64(contenders.len() as u64);
    let mut numbers = Canvas::new(height + 18.0);
    let mut plot = Canvas::new(height + 18.0);
    for tick in &axis.ticks {
        if let Some(x) = axis.percent(tick.value) {
            plot.line((x, 0.0), (x, height), "grid", "");
        }
    }
    let x = |ns: u64| {
        axis.percent(as_f64(ns.saturating_sub(begin)))
            .unwrap_or(0.0)
    };
    let class = if look.is_ours { "hold ours" } else { "hold" };
    for (lane, contender) in (0u64..).zip(&contenders) {
        let middle = LANE * (as_f64(lane) + 0.5);
        numbers.label((88.0, middle + 3.5), "end", &contender.to_string());
        let waiting = later.iter().find(|hold| hold.contender == *contender);
        if let Some(hold) = waiting.filter(|hold| hold.asked_ns < end) {
            plot.line((x(hold.asked_ns), middle), (x(end), middle), "wait", "");
        }
        for hold in holds.iter().filter(|hold| hold.contender == *contender) {
            let (from, to) = (
                x(hold.granted_ns),
                x(hold.releasing_ns.max(hold.granted_ns)),
            );
            plot.line((x(hold.asked_ns), middle), (from, middle), "wait", "");
            // Wide enough to be seen, though it be short.
            let to = to.max(from + 0.4);
            let title = format!(
                "contender {contender} waited {} and held {}",
                duration_ns(as_f64(hold.granted_ns.saturating_sub(hold.asked_ns))),
                duration_ns(as_f64(hold.releasing_ns.saturating_sub(hold.granted_ns))),
            );
            plot.bar((from, to), (middle - 3.5, 7.0), class, &title);
        }
    }
    labels(&mut plot, &axis, height + 14.0);
    let label = format!(
        "{} holds of {} contenders: {name}",
        holds.len(),
        contenders.len()
    );
    let class = if look.is_ours { "ours" } else { "" };
    let caption = element(
        "figcaption",
        &[],
        &text_element("b", &[("class", class)], name),
    );
    let picture = element("div", &[("class", "numbers")], &numbers.finish(""))
        + &element("div", &[], &plot.finish(&label));
    let picture = element("div", &[("class", "lanes")], &picture);
    Some(element("figure", &[], &(caption + &picture)))
}

/// Every other label where there are many: the picture is narrow.
fn labels(plot: &mut Canvas, axis: &Axis, y: f64) {
    let every = axis.ticks.len().div_ceil(5).max(1);
    for tick in axis.ticks.iter().step_by(every) {
        if let (Some(x), Some(label)) = (axis.percent(tick.value), &tick.label) {
            plot.label((x, y), "middle", label);
        }
    }
}
