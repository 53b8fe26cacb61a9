//! The pictures of the page: lines and marks of our own, no library.
//!
//! | module | picture |
//! | --- | --- |
//! | [`axis`] | from values to places; round ticks, linear and logarithmic |
//! | [`canvas`] | what is drawn on |
//! | [`strips`] | one strip a contestant over a common axis: dots with whiskers, bars |
//! | [`growth`] | lines over the number of contenders |
//! | [`histograms`] | latencies, one small picture a contestant |
//! | [`grants`] | who got it how often |
//! | [`lanes`] | who held it when |
//!
//! A logarithmic axis carries dots, never bars: a bar would have to begin at zero.

pub mod axis;
pub mod canvas;
pub mod grants;
pub mod growth;
pub mod histograms;
pub mod lanes;
pub mod strips;

use canvas::{Look, Shape};

use super::{Report, summary::is_ours};

/// How each contestant looks, the same in all pictures of a page.
#[derive(Debug)]
pub struct Looks(Vec<String>);

/// One for each time the shapes have been used up.
const DASHES: [&str; 4] = ["", "6 3", "2 3", "9 3 2 3"];

impl Looks {
    /// Looks for all contestants of a report.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let mut names: Vec<String> = Vec::new();
        for row in &report.rows {
            if !names.contains(&row.contestant) {
                names.push(row.contestant.clone());
            }
        }
        Self(names)
    }

    /// How a contestant looks.
    #[must_use]
    pub fn look(&self, contestant: &str) -> Look {
        let at = self.0.iter().position(|name| name == contestant);
        let at = at.unwrap_or(self.0.len());
        Look {
            shape: Shape::ALL[at % Shape::ALL.len()],
            dash: DASHES[at / Shape::ALL.len() % DASHES.len()],
            is_ours: is_ours(contestant),
        }
    }
}
