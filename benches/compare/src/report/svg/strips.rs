//! One strip a contestant over a common axis: a table whose second column is the picture.

use super::{
    axis::Axis,
    canvas::{Canvas, Look},
};
use crate::report::markup::{element, escape, text_element};

/// How high a strip is, in pixels.
const HEIGHT: f64 = 26.0;

/// How high the line with the axis' labels is.
const LABELS_HEIGHT: f64 = 22.0;

/// How far lines of the grid reach into what is around a strip: a name of two lines is higher than
/// its strip, and the grid should have no gaps there.
const BEYOND: f64 = 6.0;

/// With more contestants the axis is labelled above as well.
const LABELLED_ONCE_MAX: usize = 7;

/// A table with a picture in it.
#[derive(Debug)]
pub struct Strips<'a> {
    /// What the picture shows, over its column: `p50, whisker to p99 (log scale)`.
    pub title: &'a str,
    /// Headings of the columns right of the picture.
    pub columns: &'a [&'a str],
    /// The axis of all strips.
    pub axis: Option<Axis>,
    /// A value to compare with: a dashed line.
    pub reference: Option<f64>,
    /// The strips.
    pub rows: Vec<Strip>,
}

/// One line of it.
#[derive(Debug)]
pub struct Strip {
    /// The contestant.
    pub name: String,
    /// What must be known before its figures are read, in a word, and the class of its badge.
    pub warning: Option<(&'static str, &'static str)>,
    /// How it looks.
    pub look: Look,
    /// What is drawn.
    pub marks: Marks,
    /// The cells right of the picture.
    pub cells: Vec<String>,
}

/// What is drawn on a strip.
#[derive(Debug)]
pub enum Marks {
    /// A dot with a line from one value to another.
    Dot {
        /// The dot.
        at: Option<f64>,
        /// The ends of the line.
        whisker: Option<(f64, f64)>,
    },
    /// Bars one behind the other, from zero; each with what it is.
    Bars(Vec<(f64, &'static str)>),
}

impl Strips<'_> {
    /// The table.
    #[must_use]
    pub fn html(&self) -> String {
        let is_labelled_twice = self.rows.len() > LABELLED_ONCE_MAX;
        let head = {
            let title = text_element("span", &[("class", "plot-title")], self.title);
            let axis = if is_labelled_twice {
                self.labels()
            } else {
                String::new()
            };
            let mut head = text_element("th", &[("scope", "col")], "contestant");
            head += &element(
                "th",
                &[("scope", "col"), ("class", "plot")],
                &(title + &axis),
            );
            for column in self.columns {
                head += &text_element("th", &[("scope", "col"), ("class", "n")], column);
            }
            element("thead", &[], &element("tr", &[], &head))
        };
        let body: String = self.rows.iter().map(|strip| self.row(strip)).collect();
        let foot = {
            let mut foot = element("td", &[], "");
            foot += &element("td", &[("class", "plot")], &self.labels());
            foot += &element("td", &[], "").repeat(self.columns.len());
            element(
                "tfoot",
                &[("aria-hidden", "true")],
                &element("tr", &[], &foot),
            )
        };
        let body = element("tbody", &[], &body);
        element("table", &[("class", "strips")], &(head + &body + &foot))
    }

    fn labels(&self) -> String {
        let mut canvas = Canvas::new(LABELS_HEIGHT);
        if let Some(axis) = &self.axis {
            canvas.tick_labels(axis, 17.0);
        }
        canvas.finish("")
    }

    fn row(&self, strip: &Strip) -> String {
        let class = if strip.look.is_ours { "ours" } else { "" };
        let mut name = escape(&strip.name);
        if let Some((text, badge)) = strip.warning {
            let class = format!("badge {badge}");
            name += &(" ".to_owned() + &text_element("span", &[("class", &class)], text));
        }
        let mut row = element("th", &[("scope", "row"), ("class", class)], &name);
        row += &element("td", &[("class", "plot")], &self.picture(strip));
        for (cell, column) in strip.cells.iter().zip(self.columns) {
            row += &text_element("td", &[("class", "n"), ("data-of", column)], cell);
        }
        element("tr", &[], &row)
    }

    fn picture(&self, strip: &Strip) -> String {
        let mut canvas = Canvas::new(HEIGHT);
        let Some(axis) = &self.axis else {
            return canvas.finish("");
        };
        canvas.grid(axis, BEYOND);
        let middle = HEIGHT / 2.0;
        if let Some(x) = self.reference.and_then(|at| axis.percent(at)) {
            canvas.line((x, -BEYOND), (x, HEIGHT + BEYOND), "fair", "4 3");
        }
        let said: Vec<_> = self.columns.iter().zip(&strip.cells).collect();
        let said: Vec<_> = said
            .iter()
            .map(|(of, cell)| format!("{of} {cell}"))
            .collect();
        let title = format!("{}: {}", strip.name, said.join(", "));
        match &strip.marks {
            Marks::Dot { at, whisker } => {
                let class = if strip.look.is_ours {
                    "whisker ours"
                } else {
                    "whisker"
                };
                if let Some((from, to)) = whisker
                    && let (Some(from), Some(to)) = (axis.percent(*from), axis.percent(*to))
                {
                    canvas.line((from, middle), (to, middle), class, "");
                    canvas.line((to, middle - 4.0), (to, middle + 4.0), class, "");
                }
                if let Some(x) = at.and_then(|at| axis.percent(at)) {
                    canvas.mark((x, middle), strip.look, &title);
                }
            }
            Marks::Bars(bars) => {
                let mut sum = 0.0;
                for (value, what) in bars {
                    let (from, to) = (axis.percent(sum), axis.percent(sum + value));
                    if let (Some(from), Some(to)) = (from, to) {
                        let class = if strip.look.is_ours {
                            "bar ours "
                        } else {
                            "bar "
                        };
                        let class = format!("{class}{what}");
                        canvas.bar((from, to), (6.0, HEIGHT - 12.0), &class, &title);
                        sum += value;
                    }
                }
            }
        }
        canvas.finish("")
    }
}
