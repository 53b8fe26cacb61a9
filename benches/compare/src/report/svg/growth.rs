//! Lines over the number of contenders, both axes logarithmic, each line with its name at its end.

use super::{
    axis::{Axis, count, time},
    canvas::{Canvas, Look},
};
use crate::report::markup::{element, text_element};

/// The least height of the picture, in pixels.
const HEIGHT_MIN: f64 = 340.0;

/// Above and below the lines.
const MARGIN: f64 = 10.0;

/// From one name to the next, at least.
const NAME_HEIGHT: f64 = 17.0;

/// A letter of a name, at most, on average.
const LETTER_WIDTH: f64 = 7.8;

/// Longer names are cut.
const LETTERS_MAX: usize = 50;

/// One line.
#[derive(Debug)]
pub struct Series {
    /// The contestant.
    pub name: String,
    /// How it looks.
    pub look: Look,
    /// Number of contenders and latency in nanoseconds, by number.
    pub points: Vec<(f64, f64)>,
}

/// The picture; `None` if there are no two numbers of contenders to draw a line between.
#[must_use]
pub fn growth(series: &[Series]) -> Option<String> {
    let points = || series.iter().flat_map(|series| &series.points).copied();
    let across = contenders_axis(points().map(|(x, _)| x))?;
    let down = Axis::log(points().map(|(_, y)| y), time)?;
    let names = NAME_HEIGHT * crate::stats::as_f64(series.len() as u64);
    let height = HEIGHT_MIN.max(names + 2.0 * MARGIN);
    let y = |value| {
        let share = down.share(value)?;
        Some((1.0 - share).mul_add(height - 2.0 * MARGIN, MARGIN))
    };
    let mut scale = Canvas::new(height);
    let mut plot = Canvas::new(height + 40.0);
    for tick in &down.ticks {
        let Some(at) = y(tick.value) else { continue };
        let class = if tick.label.is_some() {
            "grid"
        } else {
            "grid faint"
        };
        plot.line((0.0, at), (100.0, at), class, "");
        if let Some(label) = &tick.label {
            scale.label((96.0, at + 4.0), "end", label);
        }
    }
    plot.tick_labels(&across, height + 16.0);
    plot.label((50.0, height + 34.0), "middle", "contenders");
    let mut ends = Vec::new();
    for series in series {
        let places = series.points.iter();
        let places =
            places.filter_map(|&(at, value)| Some((across.percent(at)?, y(value)?, at, value)));
        let places: Vec<_> = places.collect();
        if let Some(&(x, y, ..)) = places.last() {
            ends.push(((x, y), series));
        }
        plot.group("series", &series.name, |plot| draw(plot, series, &places));
    }
    ends.sort_by(|((_, a), _), ((_, b), _)| a.total_cmp(b));
    let wanted: Vec<_> = ends.iter().map(|((_, y), _)| *y).collect();
    let mut leaders = Canvas::new(height);
    let mut labels = String::new();
    for (((x, from), series), to) in ends.iter().zip(apart(&wanted, height)) {
        plot.line((*x, *from), (100.0, *from), "leader", "");
        leaders.line((0.0, *from), (100.0, to), "leader", "");
        labels += &name(series, to);
    }
    let label = format!("p50 by number of contenders, {} lines", series.len());
    let inner = [
        element("div", &[("class", "scale")], &scale.finish("")),
        element("div", &[("class", "plot")], &plot.finish(&label)),
        element("div", &[("class", "leaders")], &leaders.finish("")),
        element(
            "div",
            &[
                ("class", "names"),
                ("style", &format!("height:{height:.0}px")),
            ],
            &labels,
        ),
    ];
    let style = format!("--names:{:.0}px", names_width(series));
    let attributes = [("class", "growth"), ("style", &*style)];
    Some(element("div", &attributes, &inner.concat()))
}

/// About as wide as the longest name and its piece of line, so that the lines have the rest.
fn names_width(series: &[Series]) -> f64 {
    let letters = series.iter().map(|series| series.name.chars().count());
    let letters = letters.max().unwrap_or(0).min(LETTERS_MAX);
    LETTER_WIDTH.mul_add(crate::stats::as_f64(letters as u64), 48.0)
}

/// An axis with a tick at each number that was measured.
fn contenders_axis(values: impl Iterator<Item = f64>) -> Option<Axis> {
    let mut values: Vec<f64> = values.filter(|value| *value >= 1.0).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    if values.len() < 2 {
        return None;
    }
    Axis::log_at(&values, count)
}

fn draw(plot: &mut Canvas, series: &Series, places: &[(f64, f64, f64, f64)]) {
    let class = if series.look.is_ours {
        "path ours"
    } else {
        "path"
    };
    for pair in places.windows(2) {
        let [(x1, y1, ..), (x2, y2, ..)] = pair else {
            continue;
        };
        plot.line((*x1, *y1), (*x2, *y2), class, series.look.dash);
    }
    for &(x, y, at, value) in places {
        let value = crate::table::duration_ns(value);
        let title = format!("{}: {value} with {at} contenders", series.name);
        plot.mark((x, y), series.look, &title);
    }
}

/// The name of a line, with a piece of the line.
fn name(series: &Series, y: f64) -> String {
    let mut sample = Canvas::new(14.0);
    let class = if series.look.is_ours {
        "path ours"
    } else {
        "path"
    };
    sample.line((0.0, 7.0), (100.0, 7.0), class, series.look.dash);
    sample.mark((50.0, 7.0), series.look, &series.name);
    let sample = element("span", &[("class", "sample")], &sample.finish(""));
    let class = if series.look.is_ours {
        "name ours"
    } else {
        "name"
    };
    let style = format!("top:{:.0}px", y - NAME_HEIGHT / 2.0);
    let inner = sample + &text_element("span", &[], &series.name);
    element(
        "div",
        &[("class", class), ("style", &style), ("title", &series.name)],
        &inner,
    )
}

/// Places near the wanted ones, none nearer to the one before than the height of a name.
fn apart(wanted: &[f64], height: f64) -> Vec<f64> {
    let mut places: Vec<f64> = wanted.to_vec();
    // Down from the top, then up from the bottom: what hangs over the end moves back.
    let mut least = NAME_HEIGHT / 2.0;
    for place in &mut places {
        *place = place.max(least);
        least = *place + NAME_HEIGHT;
    }
    let mut most = height - NAME_HEIGHT / 2.0;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - NAME_HEIGHT;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_apart_and_inside() {
        let places = apart(&[100.0, 101.0, 102.0, 199.0, 200.0], 200.0);
        assert!(
            places
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= NAME_HEIGHT)
        );
        assert!(places.iter().all(|place| (0.0..200.0).contains(place)));
        assert_eq!(apart(&[50.0, 150.0], 200.0), [50.0, 150.0]);
    }
}
