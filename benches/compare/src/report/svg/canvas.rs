//! One picture: marks at places.
//!
//! Across, places are hundredths of the width, so that a picture is as wide as its page and its
//! letters keep their size; down, they are pixels.

use super::axis::Axis;
use crate::report::markup::{element, empty, text_element};

/// A picture that is being drawn.
#[derive(Debug)]
pub struct Canvas {
    height: f64,
    body: String,
}

/// What distinguishes contestants, not by colour alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// Of its marks.
    pub shape: Shape,
    /// Of its lines: `stroke-dasharray`.
    pub dash: &'static str,
    /// In the accent colour.
    pub is_ours: bool,
}

/// The shape of a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A filled circle.
    Circle,
    /// A filled square.
    Square,
    /// A filled diamond.
    Diamond,
    /// A filled triangle, point up.
    Up,
    /// A filled triangle, point down.
    Down,
    /// A cross.
    Cross,
    /// A plus.
    Plus,
}

impl Shape {
    /// All of them, the plainest first.
    pub const ALL: [Self; 7] = [
        Self::Circle,
        Self::Square,
        Self::Up,
        Self::Diamond,
        Self::Down,
        Self::Cross,
        Self::Plus,
    ];

    const fn path(self) -> &'static str {
        match self {
            Self::Circle => "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
            Self::Square => "M-4-4h8v8h-8z",
            Self::Diamond => "M0-5.5L5.5 0L0 5.5L-5.5 0z",
            Self::Up => "M0-5L5 4h-10z",
            Self::Down => "M0 5L5-4h-10z",
            Self::Cross => "M-4-4L4 4M-4 4L4-4",
            Self::Plus => "M-5 0h10M0-5v10",
        }
    }
}

impl Look {
    /// The classes of what is drawn for it.
    const fn class(self) -> &'static str {
        match (self.is_ours, self.shape) {
            (true, Shape::Cross | Shape::Plus) => "ours stroke",
            (true, _) => "ours",
            (false, Shape::Cross | Shape::Plus) => "stroke",
            (false, _) => "other",
        }
    }
}

impl Canvas {
    /// A picture so many pixels high.
    #[must_use]
    pub const fn new(height: f64) -> Self {
        Self {
            height,
            body: String::new(),
        }
    }

    /// A line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str, dash: &str) {
        let (x1, x2) = (percent(from.0), percent(to.0));
        let (y1, y2) = (pixels(from.1), pixels(to.1));
        let mut attributes = vec![
            ("x1", &*x1),
            ("y1", &*y1),
            ("x2", &*x2),
            ("y2", &*y2),
            ("class", class),
        ];
        if !dash.is_empty() {
            attributes.push(("stroke-dasharray", dash));
        }
        self.body.push_str(&empty("line", &attributes));
    }

    /// A box between two places across, `top` and `height` down.
    pub fn bar(&mut self, x: (f64, f64), (top, height): (f64, f64), class: &str, title: &str) {
        let attributes = [
            ("x", &*percent(x.0)),
            ("width", &*percent((x.1 - x.0).max(0.0))),
            ("y", &*pixels(top)),
            ("height", &*pixels(height)),
            ("class", class),
        ];
        self.body.push_str(&if title.is_empty() {
            empty("rect", &attributes)
        } else {
            element("rect", &attributes, &text_element("title", &[], title))
        });
    }

    /// A contestant's mark.
    pub fn mark(&mut self, (x, y): (f64, f64), look: Look, title: &str) {
        let path = empty("path", &[("d", look.shape.path()), ("class", look.class())]);
        // Only an inner picture can be put at a share of the width.
        let attributes = [
            ("x", &*percent(x)),
            ("y", &*pixels(y)),
            ("overflow", "visible"),
        ];
        let title = text_element("title", &[], title);
        self.body
            .push_str(&element("svg", &attributes, &(title + &path)));
    }

    /// A few words; `anchor` is `start`, `middle` or `end`.
    pub fn label(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let (x, y) = (percent(x), pixels(y));
        let attributes = [("x", &*x), ("y", &*y), ("text-anchor", anchor)];
        self.body.push_str(&text_element("text", &attributes, text));
    }

    /// Lines at the ticks of the axis across, from top to bottom and so many pixels beyond.
    pub fn grid(&mut self, axis: &Axis, beyond: f64) {
        for tick in &axis.ticks {
            let Some(x) = axis.percent(tick.value) else {
                continue;
            };
            let class = if tick.label.is_some() {
                "grid"
            } else {
                "grid faint"
            };
            self.line((x, -beyond), (x, self.height + beyond), class, "");
        }
    }

    /// What is written at the ticks of the axis across.
    pub fn tick_labels(&mut self, axis: &Axis, y: f64) {
        for tick in &axis.ticks {
            if let (Some(x), Some(label)) = (axis.percent(tick.value), &tick.label) {
                self.label((x, y), "middle", label);
            }
        }
    }

    /// What is drawn from here to the end of `draw` belongs together.
    pub fn group(&mut self, class: &str, title: &str, draw: impl FnOnce(&mut Self)) {
        let before = std::mem::take(&mut self.body);
        draw(self);
        let title = text_element("title", &[], title);
        let group = element("g", &[("class", class)], &(title + &self.body));
        self.body = before + &group;
    }

    /// The picture as markup, with what it shows for those who do not see it. Nothing to say: it is
    /// hidden from them.
    #[must_use]
    pub fn finish(self, label: &str) -> String {
        let height = pixels(self.height);
        let mut attributes = vec![("class", "pic"), ("width", "100%"), ("height", &*height)];
        if label.is_empty() {
            attributes.push(("aria-hidden", "true"));
        } else {
            attributes.extend([("role", "img"), ("aria-label", label)]);
        }
        element("svg", &attributes, &self.body)
    }
}

fn percent(value: f64) -> String {
    format!("{}%", short(value))
}

fn pixels(value: f64) -> String {
    short(value)
}

/// Two digits behind the point, if they are not zero.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
