//! The time of one block of operations.

use minikeeper_benches::{Error, clock::now_ns, process, stats};

use crate::text;

/// The number of outstanding requests in a pipeline.
pub(crate) const DEPTH: u32 = 64;

/// The timed part of a lock's use.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// Until the lock is acquired.
    Acquire,
    /// Until the server has confirmed the release.
    Cycle,
}

/// Makes one request of a client after the other.
pub(crate) async fn one_by_one<T, E, F>(count: u32, ask: impl Fn() -> F) -> Result<Measure, Error>
where
    E: std::error::Error,
    F: Future<Output = Result<T, E>>,
{
    let mut timer = Timer::start(count)?;
    for _ in 0..count {
        timer.begin();
        ask().await.map_err(text)?;
        timer.end();
    }
    timer.measure()
}

/// Makes many requests of a client at a time. The measured time is one request's share.
pub(crate) async fn pipelined<T, E, F>(count: u32, ask: impl Fn() -> F) -> Result<Measure, Error>
where
    E: std::error::Error,
    F: Future<Output = Result<T, E>>,
{
    let mut timer = Timer::start(count * DEPTH)?;
    for _ in 0..count {
        timer.begin();
        let calls: Vec<_> = (0..DEPTH).map(|_| ask()).collect();
        for call in calls {
            call.await.map_err(text)?;
        }
        timer.end_of(u64::from(DEPTH));
    }
    timer.measure()
}

/// The result of one block of one point.
#[derive(Clone, Copy, Default)]
pub(crate) struct Measure {
    pub(crate) p50_ns: f64,
    /// CPU time of this process per operation; 0 if it is not measured.
    pub(crate) cpu_ns: f64,
}

/// Times operations, and measures their CPU time in this process.
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
