//! The counts of a run.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use minikeeper_protocol::{ErrorCode, Xid, frame};

use crate::{Error, client::REPLY_BYTES_MAX, frames::Kind, stats};

/// A request without a reply.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When it was sent; in an open loop, when it was due. Unit: nanoseconds.
    pub at_ns: u64,
    /// The xid that its reply must have.
    pub xid: Xid,
    /// Its operation.
    pub kind: Kind,
}

impl Sent {
    /// Records a request. Servers reply to a ping with a special xid.
    #[must_use]
    pub fn new(at_ns: u64, xid: Xid, kind: Kind) -> Self {
        let xid = if kind == Kind::Ping { Xid::PING } else { xid };
        Self { at_ns, xid, kind }
    }
}

/// Counts replies, latencies, errors and events.
#[derive(Debug)]
pub struct Recorder {
    by_kind: Vec<Option<Histogram<u64>>>,
    errors: BTreeMap<i32, u64>,
    tolerated: Vec<ErrorCode>,
    /// Replies read later than this are checked, but neither counted nor timed. Unit: nanoseconds.
    pub cutoff_ns: u64,
    /// Replies read in time, including errors.
    pub replies: u64,
    /// Watch events seen.
    pub events: u64,
    /// When the last event was read, in nanoseconds.
    pub last_event_ns: u64,
    /// When the last reply was read, in nanoseconds.
    pub last_reply_ns: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            by_kind: vec![None; Kind::ALL.len()],
            errors: BTreeMap::new(),
            tolerated: Vec::new(),
            cutoff_ns: u64::MAX,
            replies: 0,
            events: 0,
            last_event_ns: 0,
            last_reply_ns: 0,
        }
    }
}

impl Recorder {
    /// Returns a recorder that does not count these errors as errors.
    #[must_use]
    pub fn tolerating(tolerated: &[ErrorCode]) -> Self {
        Self {
            tolerated: tolerated.to_vec(),
            ..Self::default()
        }
    }

    /// Records the reply to `sent`.
    ///
    /// # Errors
    /// The message has another xid: the order is broken.
    pub fn reply(&mut self, sent: Sent, message: Message, now_ns: u64) -> Result<(), Error> {
        if message.xid != sent.xid {
            return Err(Error::Unexpected(format!(
                "reply to {} has xid {}, expected {}",
                sent.kind.name(),
                message.xid,
                sent.xid
            )));
        }
        self.last_reply_ns = now_ns;
        if now_ns > self.cutoff_ns {
            return Ok(());
        }
        self.replies += 1;
        self.by_kind[sent.kind as usize]
            .get_or_insert_with(stats::latencies)
            .saturating_record(now_ns.saturating_sub(sent.at_ns).max(1));
        if message.error != 0
            && !self
                .tolerated
                .contains(&ErrorCode::from_code(message.error))
        {
            *self.errors.entry(message.error).or_insert(0) += 1;
        }
        Ok(())
    }

    /// Records an event.
    pub fn event(&mut self, now_ns: u64) {
        self.events += 1;
        self.last_event_ns = now_ns;
    }

    /// Returns the number of unexpected errors.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Returns the errors by code, as in `12 x NONODE, ...`; empty if there are none.
    #[must_use]
    pub fn errors_text(&self) -> String {
        let each = self
            .errors
            .iter()
            .map(|(code, count)| format!("{count} x {}", ErrorCode::from_code(*code).name()));
        each.collect::<Vec<_>>().join(", ")
    }

    /// Fails after unexpected errors.
    ///
    /// # Errors
    /// There was an unexpected error during `what`.
    pub fn expect_no_errors(&self, what: &str) -> Result<(), Error> {
        if self.errors() == 0 {
            return Ok(());
        }
        Err(Error::Unexpected(format!(
            "{what}: unexpected errors: {}",
            self.errors_text()
        )))
    }

    /// Returns the latencies by kind of request, for kinds that were sent.
    pub fn by_kind(&self) -> impl Iterator<Item = (Kind, &Histogram<u64>)> {
        Kind::ALL
            .iter()
            .filter_map(|kind| Some((*kind, self.by_kind[*kind as usize].as_ref()?)))
    }

    /// Returns the latencies of all kinds together.
    #[must_use]
    pub fn total(&self) -> Histogram<u64> {
        let mut total = stats::latencies();
        for (_, histogram) in self.by_kind() {
            total
                .add(histogram)
                .expect("all histograms have the same bounds");
        }
        total
    }
}

/// The numbers at the front of a reply or event, which are all that a load generator reads.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The request's xid; [`Xid::EVENT`] for an event.
    pub xid: Xid,
    /// The error code; zero is success.
    pub error: i32,
    /// The length of the whole frame, including the prefix.
    pub bytes: usize,
}

impl Message {
    /// The smallest message: a length and a reply header.
    const BYTES_MIN: usize = frame::PREFIX_BYTES + 16;

    /// Reads the front of `buffer`; `None` while the message is incomplete.
    ///
    /// # Errors
    /// The length is invalid, or shorter than a reply's header.
    pub fn peek(buffer: &[u8]) -> Result<Option<Self>, Error> {
        let Some(range) = frame::next(buffer, REPLY_BYTES_MAX)? else {
            return Ok(None);
        };
        if range.end < Self::BYTES_MIN {
            return Err(Error::Unexpected(format!(
                "reply of {} bytes is shorter than its header of 16 bytes",
                range.len()
            )));
        }
        let int = |at: usize| {
            let bytes = buffer[at..]
                .first_chunk()
                .expect("the length was just checked");
            i32::from_be_bytes(*bytes)
        };
        Ok(Some(Self {
            xid: Xid(int(4)),
            error: int(16),
            bytes: range.end,
        }))
    }
}
