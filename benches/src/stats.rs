//! Medians, spreads, and summaries of histograms.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// The longest latency that a histogram distinguishes: one minute, in nanoseconds.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// The median of several runs, and their spread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// The middle value, or the mean of the two middle values.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of these values; `None` without a value.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self { median, min, max })
    }

    /// Divides each member by `unit`.
    #[must_use]
    pub fn scaled(self, unit: f64) -> Self {
        Self {
            median: self.median / unit,
            min: self.min / unit,
            max: self.max / unit,
        }
    }

    /// Returns the form for the JSON files.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({ "median": self.median, "min": self.min, "max": self.max })
    }
}

/// Returns the quartiles: the values below which a quarter, a half and three quarters are. `None`
/// without a value.
#[must_use]
pub fn quartiles(values: &[f64]) -> Option<[f64; 3]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some([1, 2, 3].map(|quarter| {
        let (low, rest) = (last * quarter / 4, last * quarter % 4);
        let high = (low + 1).min(last);
        let share = as_f64(rest as u64) / 4.0;
        sorted[low] + (sorted[high] - sorted[low]) * share
    }))
}

/// Returns an empty histogram for latencies in nanoseconds, with three significant digits.
#[must_use]
pub fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("the bounds of the histogram are valid")
}

/// The quantiles of every report, by name.
pub const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Returns a histogram in the form for the JSON files, in nanoseconds.
#[must_use]
pub fn latencies_json(histogram: &Histogram<u64>) -> Value {
    let mut value = json!({
        "count": histogram.len(),
        "mean": histogram.mean(),
        "max": histogram.max(),
    });
    for (name, quantile) in QUANTILES {
        value[name] = json!(interpolated(histogram, quantile));
    }
    value
}

/// Returns a quantile, with its position inside the bucket estimated.
///
/// A bucket of three digits is up to 0.1 % wide, which may be more than the difference of two
/// medians; the clock's resolution is far finer.
#[must_use]
pub fn interpolated(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    if histogram.is_empty() {
        return 0.0;
    }
    let value = histogram.value_at_quantile(quantile);
    let low = histogram.lowest_equivalent(value);
    let width = as_f64(histogram.highest_equivalent(value) - low + 1);
    let inside = as_f64(histogram.count_at(value)).max(1.0);
    let below = if low == 0 {
        0.0
    } else {
        as_f64(histogram.count_between(0, low - 1))
    };
    let rank = quantile * as_f64(histogram.len());
    as_f64(low) + width * ((rank - below) / inside).clamp(0.0, 1.0)
}

/// Converts a count to a float; exact up to 2^53.
#[must_use]
#[allow(
    clippy::cast_precision_loss,
    reason = "counts and nanoseconds of a run stay below 2^53"
)]
pub fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]).unwrap().median, 2.0);
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn quartiles_of_odd_and_even_counts() {
        assert_eq!(
            quartiles(&[5.0, 1.0, 3.0, 2.0, 4.0]).unwrap(),
            [2.0, 3.0, 4.0]
        );
        assert_eq!(quartiles(&[1.0, 2.0]).unwrap(), [1.25, 1.5, 1.75]);
        assert_eq!(quartiles(&[]), None);
    }

    #[test]
    fn interpolated_quantile_lies_in_the_bucket() {
        let mut histogram = latencies();
        for value in 10_000..20_000 {
            histogram.record(value).unwrap();
        }
        let p50 = interpolated(&histogram, 0.5);
        assert!((p50 - 15_000.0).abs() < 10.0, "p50 is {p50}");
    }
}
