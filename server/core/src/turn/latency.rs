//! Request latency: minimum, average and maximum, without keeping every value.

/// Values below this have a bucket each.
const EXACT: u32 = 16;

/// Above that, each doubling has four buckets, up to 57 s; longer latencies are in the last.
const BUCKETS: u32 = 64;

/// Latencies in whole milliseconds.
///
/// Count, sum, minimum and maximum are exact. A quantile is the upper end of its bucket: exact
/// below 16 ms, and at most a quarter too high above. ZooKeeper samples 4,096 values instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Latency {
    pub count: u64,
    pub sum_ms: u64,
    max_ms: u32,
    min_ms: u32,
    buckets: [u64; BUCKETS as usize],
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            count: 0,
            sum_ms: 0,
            max_ms: 0,
            min_ms: u32::MAX,
            buckets: [0; BUCKETS as usize],
        }
    }
}

const fn bucket(ms: u32) -> u32 {
    if ms < EXACT {
        return ms;
    }
    let log = ms.ilog2();
    let quarter = (ms >> (log - 2)) & 3;
    let index = EXACT + (log - 4) * 4 + quarter;
    if index < BUCKETS { index } else { BUCKETS - 1 }
}

/// Returns the largest value of a bucket.
const fn upper_ms(bucket: u32) -> u32 {
    if bucket < EXACT {
        return bucket;
    }
    if bucket == BUCKETS - 1 {
        return u32::MAX;
    }
    let above = bucket - EXACT;
    let (log, quarter) = (above / 4 + 4, above % 4);
    (1 << log) + ((quarter + 1) << (log - 2)) - 1
}

impl Latency {
    /// Counts requests that all took `ms`.
    pub fn add(&mut self, ms: u32, requests: u64) {
        if requests == 0 {
            return;
        }
        self.count += requests;
        self.sum_ms += u64::from(ms) * requests;
        self.max_ms = self.max_ms.max(ms);
        self.min_ms = self.min_ms.min(ms);
        self.buckets[bucket(ms) as usize] += requests;
    }

    /// Merges two sets of measurements.
    pub(crate) fn with(mut self, other: &Self) -> Self {
        self.count += other.count;
        self.sum_ms += other.sum_ms;
        self.max_ms = self.max_ms.max(other.max_ms);
        self.min_ms = self.min_ms.min(other.min_ms);
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets) {
            *mine += theirs;
        }
        self
    }

    /// Returns the minimum; 0 before the first request.
    pub const fn min_ms(&self) -> u32 {
        if self.count == 0 { 0 } else { self.min_ms }
    }

    pub const fn max_ms(&self) -> u32 {
        self.max_ms
    }

    /// Returns the average, rounded to four decimals like ZooKeeper's; 0 before the first request.
    #[expect(
        clippy::cast_precision_loss,
        reason = "ZooKeeper divides in the same precision"
    )]
    pub fn avg_ms(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        (self.sum_ms as f64 / self.count as f64 * 1e4).round() / 1e4
    }

    /// Returns the latency that this share of the requests, in thousandths, did not exceed; 0
    /// before the first request.
    pub fn quantile_ms(&self, thousandths: u64) -> u32 {
        let rank = (self.count * thousandths).div_ceil(1_000);
        let mut seen = 0;
        for (index, requests) in (0..).zip(self.buckets) {
            seen += requests;
            if seen >= rank && seen > 0 {
                return upper_ms(index).min(self.max_ms);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_end_of_a_bucket_exceeds_its_values_by_at_most_a_quarter() {
        for ms in (0..70_000).chain([100_000, u32::MAX]) {
            let (index, upper) = (bucket(ms), upper_ms(bucket(ms)));
            assert!(upper >= ms, "{ms} ms in bucket {index}, up to {upper}");
            assert!(index == 0 || upper_ms(index - 1) < ms, "{ms} ms in {index}");
            assert!(
                index == BUCKETS - 1 || upper - ms <= ms / 4,
                "{ms} ms: {upper}"
            );
        }
    }

    #[test]
    fn average_has_four_decimals_and_quantiles_follow_the_ranks() {
        let mut latency = Latency::default();
        assert_eq!((latency.min_ms(), latency.quantile_ms(500)), (0, 0));
        latency.add(0, 10);
        latency.add(5, 4);
        latency.add(78, 1);
        assert_eq!((latency.min_ms(), latency.max_ms()), (0, 78));
        assert_eq!(latency.avg_ms(), 6.5333);
        assert_eq!(latency.quantile_ms(500), 0);
        assert_eq!(latency.quantile_ms(900), 5);
        assert_eq!(latency.quantile_ms(999), 78);
        let twice = latency.clone().with(&latency);
        assert_eq!((twice.count, twice.sum_ms), (30, 2 * latency.sum_ms));
    }
}
