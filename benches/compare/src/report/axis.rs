//! Axes: positions of values, with ticks at round numbers.

/// The low end of an axis in hundredths of the width: marks and labels need space beyond.
pub const PERCENT_MIN: f64 = 4.0;
/// The high end of an axis.
pub const PERCENT_MAX: f64 = 96.0;

/// The limits of a logarithmic axis; values beyond them are placed at its end.
const LOG_BOUNDS: (f64, f64) = (1e-3, 1e18);

/// The upper limit of a linear axis, so that its steps can be summed.
const LINEAR_MAX: f64 = 1e300;

/// With more decades than this, only some are labelled.
const DECADES_LABELLED: i32 = 7;

/// Maps values to positions.
#[derive(Clone, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
    /// From low to high.
    pub ticks: Vec<Tick>,
}

/// A line across the chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Tick {
    /// Its value on the axis.
    pub value: f64,
    /// Its label, if any.
    pub label: Option<String>,
}

impl Axis {
    /// A logarithmic axis around these values, without those that have no logarithm. `None` if none
    /// has one.
    #[must_use]
    pub fn log(values: impl IntoIterator<Item = f64>, label: fn(f64) -> String) -> Option<Self> {
        let values = values.into_iter();
        let (low, high) = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .map(|value| value.clamp(LOG_BOUNDS.0, LOG_BOUNDS.1))
            .fold(None, |range: Option<(f64, f64)>, value| {
                let (low, high) = range.unwrap_or((value, value));
                Some((low.min(value), high.max(value)))
            })?;
        // Slightly inwards, so that a round value is its own bound despite rounding errors.
        let (low, high) = (
            round_log(low * 1.000_001, false),
            round_log(high * 0.999_999, true),
        );
        let high = if high > low { high } else { low * 10.0 };
        Some(Self {
            low,
            high,
            is_log: true,
            ticks: log_ticks(low, high, label),
        })
    }

    /// A logarithmic axis from the first to the last of these values, with a tick at each. They
    /// must be positive and rising; `None` if there are fewer than two.
    #[must_use]
    pub fn log_at(values: &[f64], label: fn(f64) -> String) -> Option<Self> {
        let (&low, &high) = (values.first()?, values.last()?);
        let ticks = values.iter().map(|&value| Tick {
            value,
            label: Some(label(value)),
        });
        (high > low && low > 0.0).then(|| Self {
            low,
            high,
            is_log: true,
            ticks: ticks.collect(),
        })
    }

    /// A linear axis from zero to a round number above all values.
    #[must_use]
    pub fn linear(values: impl IntoIterator<Item = f64>, label: fn(f64) -> String) -> Self {
        let high = largest(values);
        let step = round_step(high / 4.0);
        let axis = Self::until((high / step).ceil() * step, label);
        debug_assert!(axis.high >= high * 0.999_999, "{} >= {high}", axis.high);
        axis
    }

    /// A linear axis from zero to this value, round or not.
    #[must_use]
    pub fn until(high: f64, label: fn(f64) -> String) -> Self {
        let high = largest([high]);
        let step = round_step(high / 4.0);
        let ticks = (0..=8)
            .map(|at| step * f64::from(at))
            .filter(|&value| value <= high * 1.000_001);
        Self {
            low: 0.0,
            high,
            is_log: false,
            ticks: ticks
                .map(|value| Tick {
                    value,
                    label: Some(label(value)),
                })
                .collect(),
        }
    }

    /// The smallest and the largest value on it.
    #[must_use]
    pub const fn bounds(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// From 0 at the low end to 1 at the high one. `None` for a value without a position: zero on a
    /// logarithmic axis, or not a number.
    #[must_use]
    pub fn share(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || self.is_log && value <= 0.0 {
            return None;
        }
        let value = value.clamp(self.low, self.high);
        Some(if self.is_log {
            (value / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        })
    }

    /// The same in hundredths of the width of a chart, which has a margin.
    #[must_use]
    pub fn percent(&self, value: f64) -> Option<f64> {
        let share = self.share(value)?;
        Some(share.mul_add(PERCENT_MAX - PERCENT_MIN, PERCENT_MIN))
    }
}

/// The largest of the finite values above zero; 1 if there are none.
fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    let values = values.into_iter().filter(|value| value.is_finite());
    let largest = values.fold(0.0, f64::max);
    if largest > 0.0 {
        largest.min(LINEAR_MAX)
    } else {
        1.0
    }
}

/// The next number up that is 1, 2 or 5 times a power of ten.
fn round_step(value: f64) -> f64 {
    round_log(value, true)
}

/// The next number up or down that is 1, 2 or 5 times a power of ten.
fn round_log(value: f64, is_up: bool) -> f64 {
    let decade = decade(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    if is_up {
        let mut above = steps.into_iter().filter(|&step| step >= value);
        above.next().unwrap_or(steps[3])
    } else {
        let mut below = steps.into_iter().rev().filter(|&step| step <= value);
        below.next().unwrap_or(steps[0])
    }
}

/// A power of ten, exact as its decimal notation.
fn decade(exponent: f64) -> f64 {
    format!("1e{exponent:.0}").parse().unwrap_or(1.0)
}

fn log_ticks(low: f64, high: f64, label: fn(f64) -> String) -> Vec<Tick> {
    let span = (high / low).log10();
    let all_labelled = span <= 1.75;
    let (first, mut ticks) = (low.log10().floor(), Vec::new());
    let mut exponent = first;
    let every = (1..)
        .find(|every| span / f64::from(*every) <= f64::from(DECADES_LABELLED))
        .unwrap_or(1);
    let mut at = 0;
    while decade(exponent) <= high * 1.000_001 {
        for step in [1.0, 2.0, 5.0] {
            let value = step * decade(exponent);
            if value < low * 0.999_999 || value > high * 1.000_001 {
                continue;
            }
            let is_labelled = all_labelled || step == 1.0 && at % every == 0;
            if is_labelled || step == 1.0 || every == 1 && span <= 5.0 {
                ticks.push(Tick {
                    value,
                    label: is_labelled.then(|| label(value)),
                });
            }
        }
        at += 1;
        exponent += 1.0;
    }
    ticks
}

/// Formats a round time in nanoseconds for an axis: `200 µs`.
#[must_use]
pub fn time(ns: f64) -> String {
    match ns {
        0.0 => "0".into(),
        ns if ns >= 1e9 => format!("{} s", round(ns / 1e9)),
        ns if ns >= 1e6 => format!("{} ms", round(ns / 1e6)),
        ns if ns >= 1e3 => format!("{} µs", round(ns / 1e3)),
        ns => format!("{} ns", round(ns)),
    }
}

/// Formats a round number for an axis.
#[must_use]
pub fn count(value: f64) -> String {
    round(value)
}

/// Formats a round number of bytes for an axis.
#[must_use]
pub fn bytes(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{} MB", round(value / 1e6)),
        value if value >= 1e3 => format!("{} kB", round(value / 1e3)),
        value => format!("{} B", round(value)),
    }
}

/// Formats a number that is round except for rounding errors.
fn round(value: f64) -> String {
    if value >= 1e15 {
        return format!("{value:e}");
    }
    if value >= 1.0 && (value - value.round()).abs() < 1e-6 * value {
        return crate::table::grouped(value);
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks
            .iter()
            .filter_map(|tick| tick.label.as_deref())
            .collect()
    }

    #[test]
    fn log_axis_ends_at_round_values_around_the_data() {
        let axis = Axis::log([130e3, 700e3, 0.0, f64::NAN], time).unwrap();
        assert_eq!(labels(&axis), ["100 µs", "200 µs", "500 µs", "1 ms"]);
        assert_eq!(axis.share(100e3), Some(0.0));
        assert_eq!(axis.share(1e6), Some(1.0));
        assert_eq!(axis.share(0.0), None);
        assert!(Axis::log([0.0, -1.0, f64::INFINITY], time).is_none());
    }

    #[test]
    fn log_axis_of_one_round_value_or_of_a_huge_range_is_bounded() {
        assert_eq!(Axis::log([1e3], time).unwrap().bounds(), (1e3, 1e4));
        let huge = Axis::log([f64::MIN_POSITIVE, f64::MAX], time).unwrap();
        assert!(huge.ticks.len() < 40, "{} ticks", huge.ticks.len());
        assert!(labels(&huge).len() < 12, "{:?}", labels(&huge));
    }

    #[test]
    fn linear_axis_begins_at_zero() {
        let axis = Axis::linear([3.7], count);
        assert_eq!(labels(&axis), ["0", "1", "2", "3", "4"]);
        assert_eq!(axis.share(2.0), Some(0.5));
        assert_eq!(labels(&Axis::linear([], count)).first(), Some(&"0"));
        assert_eq!(
            labels(&Axis::linear([0.3], count)),
            ["0", "0.1", "0.2", "0.3"]
        );
    }
}
