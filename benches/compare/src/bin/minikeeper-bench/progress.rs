//! The progress of the run, on standard error.

use std::io::{IsTerminal as _, Write as _};

use minikeeper_bench::clock::now_ns;

/// A line with the current step.
pub(crate) struct Progress {
    steps: usize,
    done: usize,
    began_ns: u64,
    shown_ns: u64,
    is_terminal: bool,
}

impl Progress {
    pub(crate) fn new(steps: usize) -> Self {
        Self {
            steps: steps.max(1),
            done: 0,
            began_ns: now_ns(),
            shown_ns: 0,
            is_terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Begins the next step.
    pub(crate) fn step(&mut self, what: &str) {
        let now = now_ns();
        let percent = 100 * self.done / self.steps;
        let seconds = (now - self.began_ns) / 1_000_000_000;
        self.done += 1;
        // A log file needs only few lines.
        let pause_ns = if self.is_terminal {
            100_000_000
        } else {
            10_000_000_000
        };
        if self.shown_ns != 0 && now - self.shown_ns < pause_ns {
            return;
        }
        self.shown_ns = now;
        let line = format!("{percent:>3} % {seconds:>4} s  {what}");
        let mut stderr = std::io::stderr();
        // Progress that cannot be shown is no reason to stop.
        let _ = if self.is_terminal {
            write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush())
        } else {
            writeln!(stderr, "{line}")
        };
    }

    pub(crate) fn end(&self) {
        if self.is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
