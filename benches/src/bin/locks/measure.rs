//! What one block of operations took.

use minikeeper_benches::{Error, clock::now_ns, process, stats};

/// One block of one point.
#[derive(Clone, Copy, Default)]
pub(crate) struct Measure {
    pub(crate) p50_ns: f64,
    /// CPU time of this process for one operation; 0 where it is not taken.
    pub(crate) cpu_ns: f64,
}

/// Times operations, and what of this process's time they take.
pub(crate) struct Timer {
    histogram: hdrhistogram::Histogram<u64>,
    began_ns: u64,
    cpu_before_ns: u64,
    operations: u32,
}

impl Timer {
    pub(crate) fn start(operations: u32) -> Result<Self, Error> {
        Ok(Self {
            histogram: stats::latencies(),
            began_ns: 0,
            cpu_before_ns: process::cpu_ns(std::process::id())?,
            operations,
        })
    }

    pub(crate) fn begin(&mut self) {
        self.began_ns = now_ns();
    }

    pub(crate) fn end(&mut self) {
        self.end_of(1);
    }

    pub(crate) fn end_of(&mut self, share: u64) {
        let time = (now_ns() - self.began_ns) / share;
        self.histogram.saturating_record(time.max(1));
    }

    pub(crate) fn measure(self) -> Result<Measure, Error> {
        let cpu_ns = process::cpu_ns(std::process::id())? - self.cpu_before_ns;
        Ok(Measure {
            p50_ns: stats::interpolated(&self.histogram, 0.5),
            cpu_ns: stats::as_f64(cpu_ns) / f64::from(self.operations),
        })
    }
}
