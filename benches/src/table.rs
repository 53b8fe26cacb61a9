//! Readable output: aligned tables, and numbers with suitable precision.

use std::io::{self, Write};

/// A table with a heading. The first column is aligned left, the others right unless set by
/// [`Table::left`].
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
    left: Vec<usize>,
}

impl Table {
    /// Creates a table with these column headings.
    #[must_use]
    pub fn new(heading: &[&str]) -> Self {
        Self {
            rows: vec![heading.iter().map(ToString::to_string).collect()],
            left: vec![0],
        }
    }

    /// Aligns a column left, counted from zero.
    #[must_use]
    pub fn left(mut self, column: usize) -> Self {
        self.left.push(column);
        self
    }

    /// Adds a row; cells beyond the heading are kept.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Returns the table as text.
    #[must_use]
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for (at, row) in self.rows.iter().enumerate() {
            let line = self.line(row, &widths);
            text.push_str(line.trim_end());
            text.push('\n');
            if at == 0 {
                text.push_str(&"-".repeat(widths.iter().sum::<usize>() + 2 * (columns.max(1) - 1)));
                text.push('\n');
            }
        }
        text
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            if column > 0 {
                line.push_str("  ");
            }
            line.push_str(&if self.left.contains(&column) {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            });
        }
        line
    }
}

/// Writes text to standard output. A closed pipe is not an error.
///
/// # Errors
/// When standard output fails in any other way.
pub fn say(text: impl AsRef<str>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out
        .write_all(text.as_ref().as_bytes())
        .and_then(|()| out.flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Formats three significant digits or the whole part, whichever is longer.
#[must_use]
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => grouped(value),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        0.0 => "0".into(),
        _ => format!("{value:.3}"),
    }
}

/// Formats the whole part, with a comma after every three digits.
#[must_use]
pub fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 {
        text.insert(0, '-');
    }
    text
}

/// Formats nanoseconds in a suitable unit.
#[must_use]
pub fn duration_ns(ns: f64) -> String {
    match ns {
        ns if ns >= 1e9 => format!("{} s", number(ns / 1e9)),
        ns if ns >= 1e6 => format!("{} ms", number(ns / 1e6)),
        ns if ns >= 1e3 => format!("{} us", number(ns / 1e3)),
        ns => format!("{} ns", number(ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_rounded() {
        assert_eq!(grouped(1_234_567.4), "1,234,567");
        assert_eq!(number(0.98765), "0.988");
        assert_eq!(number(12.345), "12.3");
        assert_eq!(duration_ns(12_345.0), "12.3 us");
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["op", "n"]);
        table.row(vec!["get".into(), "12".into()]);
        assert_eq!(table.text(), "op    n\n-------\nget  12\n");
    }
}
