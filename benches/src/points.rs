//! The comparisons, each with its floor and its goal.

use serde_json::Value;

/// The figure of a load's result that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// The median latency, in nanoseconds.
    P50,
    /// Requests a second.
    Rate,
    /// CPU time of the server for one request, in nanoseconds.
    ServerCpu,
}

impl Metric {
    /// Returns the value in a result of `load`; `None` if it was not measured.
    #[must_use]
    pub fn of(self, result: &Value) -> Option<f64> {
        match self {
            Self::P50 => result["latency_ns"]["p50"].as_f64(),
            Self::Rate => result["ops_per_s"].as_f64(),
            Self::ServerCpu => result["server_cpu_ns_per_op"].as_f64(),
        }
    }
}

/// The floor by which a point is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Floor {
    /// One bare round trip, E: a frame of a getData reply's size to `echo --raw` and back.
    RoundTrip,
    /// The same load on `echo`.
    Echo,
}

/// The side of a limit on which a ratio should be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Goal {
    /// The ratio should not be above.
    AtMost(f64),
    /// The ratio should not be below.
    AtLeast(f64),
}

impl Goal {
    /// Returns whether a ratio meets the goal.
    #[must_use]
    pub fn holds(self, ratio: f64) -> bool {
        match self {
            Self::AtMost(limit) => ratio <= limit,
            Self::AtLeast(limit) => ratio >= limit,
        }
    }

    /// Returns the text for tables.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::AtMost(limit) => format!("<= {limit}"),
            Self::AtLeast(limit) => format!(">= {limit}"),
        }
    }
}

/// One comparison.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The name for `--only`.
    pub name: &'static str,
    /// The operation, as `load --mix` reads it.
    pub mix: &'static str,
    /// Connections.
    pub connections: u16,
    /// Requests outstanding on each.
    pub depth: u16,
    /// The figure that counts.
    pub metric: Metric,
    /// The floor.
    pub floor: Floor,
    /// The goal for the ratio.
    pub goal: Goal,
}

const fn latency(name: &'static str, mix: &'static str, limit: f64) -> Point {
    Point {
        name,
        mix,
        connections: 1,
        depth: 1,
        metric: Metric::P50,
        floor: Floor::RoundTrip,
        goal: Goal::AtMost(limit),
    }
}

const fn rate(
    name: &'static str,
    mix: &'static str,
    (connections, depth): (u16, u16),
    limit: f64,
) -> Point {
    Point {
        name,
        mix,
        connections,
        depth,
        metric: Metric::Rate,
        floor: Floor::Echo,
        goal: Goal::AtLeast(limit),
    }
}

const fn cpu(name: &'static str, mix: &'static str) -> Point {
    Point {
        name,
        mix,
        connections: 1,
        depth: 1,
        metric: Metric::ServerCpu,
        floor: Floor::Echo,
        goal: Goal::AtMost(1.3),
    }
}

/// Every comparison, in the order of the report.
pub const POINTS: &[Point] = &[
    latency("latency-get", "get", 1.1),
    latency("latency-set", "set", 1.15),
    latency("new-session", "connect", 2.0),
    rate("get-64x1", "get", (64, 1), 0.9),
    rate("get-8x16", "get", (8, 16), 0.8),
    rate("get-64x16", "get", (64, 16), 0.8),
    rate("get-8x128", "get", (8, 128), 0.5),
    rate("set-8x16", "set", (8, 16), 0.6),
    rate("create-8x16", "create", (8, 16), 0.45),
    rate("delete-8x16", "delete", (8, 16), 0.45),
    cpu("cpu-get", "get"),
    cpu("cpu-set", "set"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_mixes_parse() {
        for (at, point) in POINTS.iter().enumerate() {
            crate::mix::Mix::parse(point.mix).unwrap();
            assert!(
                POINTS[at + 1..]
                    .iter()
                    .all(|other| other.name != point.name)
            );
        }
    }
}
