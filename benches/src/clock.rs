//! The only module that reads the clock; and deadlines whose errors name the event.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use crate::Error;

static START: OnceLock<Instant> = OnceLock::new();

#[allow(
    clippy::disallowed_methods,
    reason = "the only module of the benches that reads the clock"
)]
fn instant() -> Instant {
    Instant::now()
}

/// Returns the nanoseconds since the first call. Never decreases.
#[must_use]
pub fn now_ns() -> u64 {
    let start = START.get_or_init(instant);
    nanos(instant().saturating_duration_since(*start))
}

/// Returns the current time for timers of the runtime.
#[allow(
    clippy::disallowed_methods,
    reason = "the only module of the benches that reads the clock"
)]
#[must_use]
pub fn tokio_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// Returns the date in UTC, as in `2026-11-22`.
#[allow(
    clippy::disallowed_methods,
    reason = "the only module of the benches that reads the clock"
)]
#[must_use]
pub fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    date(since.map_or(0, |since| since.as_secs() / 86_400))
}

/// Returns the date N days after 1970-01-01, by the Gregorian calendar.
fn date(days: u64) -> String {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for days in [
        31,
        28 + u64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ] {
        if left < days {
            break;
        }
        left -= days;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", left + 1)
}

/// Converts a duration to whole nanoseconds, at most 584 years.
#[must_use]
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A deadline whose error names the event that did not come in time.
#[derive(Debug)]
pub struct Deadline {
    what: String,
    limit: Duration,
    end_ns: u64,
}

impl Deadline {
    /// Starts a wait of at most `limit` for `what`.
    #[must_use]
    pub fn new(limit: Duration, what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            limit,
            end_ns: now_ns().saturating_add(nanos(limit)),
        }
    }

    /// Checks that there is time left.
    ///
    /// # Errors
    /// When the time is over.
    pub fn check(&self) -> Result<(), Error> {
        if now_ns() < self.end_ns {
            return Ok(());
        }
        Err(self.error())
    }

    /// Returns the time that is left.
    #[must_use]
    pub fn left(&self) -> Duration {
        Duration::from_nanos(self.end_ns.saturating_sub(now_ns()))
    }

    /// Returns the error of a wait that timed out.
    #[must_use]
    pub fn error(&self) -> Error {
        Error::Timeout {
            what: self.what.clone(),
            limit_ms: self.limit.as_millis(),
        }
    }

    /// Calls `ready` every `pause` until it returns a value.
    ///
    /// # Errors
    /// The error of `ready`, or when the time is over.
    pub fn poll<T>(
        &self,
        pause: Duration,
        mut ready: impl FnMut() -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        loop {
            if let Some(value) = ready()? {
                return Ok(value);
            }
            self.check()?;
            std::thread::sleep(pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(59), "1970-03-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(20_779), "2026-11-22");
        assert_eq!(date(20_818), "2026-12-31");
    }
}
