//! Latencies, one small picture a contestant, all over one logarithmic axis and equally high.

use hdrhistogram::Histogram;

use super::{
    axis::{Axis, time},
    canvas::{Canvas, Look},
};
use crate::{
    report::markup::{element, text_element},
    stats::{as_f64, interpolated},
    table::{duration_ns, number},
};

/// How many bars a picture has at most.
const BARS: usize = 56;

/// How high the bars of a picture are, in pixels.
const HEIGHT: f64 = 84.0;

/// One contestant's latencies.
#[derive(Debug)]
pub struct Latencies<'a> {
    /// The contestant.
    pub name: &'a str,
    /// How it looks.
    pub look: Look,
    /// In nanoseconds.
    pub histogram: &'a Histogram<u64>,
}

/// All the pictures; `None` if nothing was recorded.
#[must_use]
pub fn histograms(latencies: &[Latencies<'_>]) -> Option<String> {
    let recorded = || latencies.iter().filter(|one| !one.histogram.is_empty());
    let ends = recorded().flat_map(|one| {
        let bounds = [one.histogram.min(), one.histogram.max()];
        bounds.map(|value| as_f64(value.max(1)))
    });
    let axis = Axis::log(ends, time)?;
    let shares: Vec<_> = latencies
        .iter()
        .map(|one| shares(one.histogram, &axis))
        .collect();
    let peak = shares.iter().flatten().copied().fold(0.0, f64::max);
    let pictures = latencies.iter().zip(&shares);
    let pictures: String = pictures
        .map(|(one, shares)| picture(one, shares, peak, &axis))
        .collect();
    Some(element("div", &[("class", "multiples")], &pictures))
}

/// The share of all values in each part of the axis.
fn shares(histogram: &Histogram<u64>, axis: &Axis) -> [f64; BARS] {
    let mut shares = [0.0; BARS];
    let all = as_f64(histogram.len()).max(1.0);
    for bucket in histogram.iter_recorded() {
        let value = as_f64(bucket.value_iterated_to().max(1));
        let share = axis.share(value).unwrap_or(0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share lies between 0 and 1"
        )]
        let at = (share * as_f64(BARS as u64)) as usize;
        shares[at.min(BARS - 1)] += as_f64(bucket.count_at_value()) / all;
    }
    shares
}

fn picture(one: &Latencies<'_>, shares: &[f64; BARS], peak: f64, axis: &Axis) -> String {
    let mut canvas = Canvas::new(HEIGHT + 20.0);
    let class = if one.look.is_ours { "bar ours" } else { "bar" };
    let (low, high) = axis.bounds();
    let place = |at: usize| {
        let share = as_f64(at as u64) / as_f64(BARS as u64);
        axis.percent(low * (high / low).powf(share)).unwrap_or(0.0)
    };
    for tick in &axis.ticks {
        if let (Some(x), Some(_)) = (axis.percent(tick.value), &tick.label) {
            canvas.line((x, 0.0), (x, HEIGHT), "grid", "");
        }
    }
    for (at, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        // Not so low that it cannot be seen: the tail is what one looks for.
        let height = (share / peak * (HEIGHT - 4.0)).max(1.0);
        let title = format!("{} % of all", number(share * 100.0));
        canvas.bar(
            (place(at), place(at + 1)),
            (HEIGHT - height, height),
            class,
            &title,
        );
    }
    canvas.line((0.0, HEIGHT), (100.0, HEIGHT), "base", "");
    labels(&mut canvas, axis);
    let quantiles = if one.histogram.is_empty() {
        "nothing recorded".to_owned()
    } else {
        let [p50, p99] = [0.5, 0.99].map(|of| duration_ns(interpolated(one.histogram, of)));
        let text = format!("p50 {p50}, p99 {p99}");
        text.replace(" us", " µs")
    };
    let class = if one.look.is_ours { "ours" } else { "" };
    let caption = text_element("b", &[("class", class)], one.name)
        + &text_element("span", &[("class", "muted")], &quantiles);
    let label = format!("Histogram of latencies, {}: {quantiles}", one.name);
    let inner = element("figcaption", &[], &caption) + &canvas.finish(&label);
    element("figure", &[], &inner)
}

/// Every label of a wide axis does not fit below a small picture.
fn labels(canvas: &mut Canvas, axis: &Axis) {
    const LABELS_MAX: usize = 3;
    let labelled: Vec<_> = axis
        .ticks
        .iter()
        .filter(|tick| tick.label.is_some())
        .collect();
    let every = labelled.len().div_ceil(LABELS_MAX).max(1);
    for tick in labelled.into_iter().step_by(every) {
        if let (Some(x), Some(label)) = (axis.percent(tick.value), &tick.label) {
            canvas.label((x, HEIGHT + 15.0), "middle", label);
        }
    }
}
