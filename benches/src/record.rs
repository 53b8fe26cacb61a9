//! What a run counted.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use minikeeper_protocol::{ErrorCode, Xid, frame};

use crate::{Error, client::REPLY_BYTES_MAX, frames::Kind, stats};

/// A request that was sent and not answered yet.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When it was sent; in an open loop, when it was meant to be sent. Unit: nanoseconds.
    pub at_ns: u64,
    /// The xid its reply must carry.
    pub xid: Xid,
    /// What it asked.
    pub kind: Kind,
}

impl Sent {
    /// Notes a request. Servers answer a ping with a number of its own.
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
    /// Replies read at a later time are checked, but neither counted nor timed.
    pub cutoff_ns: u64,
    /// Replies counted in time, errors included.
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
    /// A recorder that does not count these errors as such.
    #[must_use]
    pub fn tolerating(tolerated: &[ErrorCode]) -> Self {
        Self {
            tolerated: tolerated.to_vec(),
            ..Self::default()
        }
    }

    /// Takes the message that answers `sent`.
    ///
    /// # Errors
    /// When it is not a reply, or carries another xid: order is lost.
    pub fn reply(&mut self, sent: Sent, message: Message, now_ns: u64) -> Result<(), Error> {
        if message.xid != sent.xid {
            return Err(Error::Unexpected(format!(
                "reply to {} carries xid {} where {} is next",
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

    /// Takes an event.
    pub fn event(&mut self, now_ns: u64) {
        self.events += 1;
        self.last_event_ns = now_ns;
    }

    /// Errors that were not expected.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The errors by code: `12 x NONODE, ...`; empty when there are none.
    #[must_use]
    pub fn errors_text(&self) -> String {
        let each = self
            .errors
            .iter()
            .map(|(code, count)| format!("{count} x {}", ErrorCode::from_code(*code).name()));
        each.collect::<Vec<_>>().join(", ")
    }

    /// Refuses to go on after unexpected errors.
    ///
    /// # Errors
    /// When there was an unexpected error during `what`.
    pub fn expect_no_errors(&self, what: &str) -> Result<(), Error> {
        if self.errors() == 0 {
            return Ok(());
        }
        Err(Error::Unexpected(format!(
            "{what}: unexpected errors: {}",
            self.errors_text()
        )))
    }

    /// The latencies by kind of request, only of kinds that were sent.
    pub fn by_kind(&self) -> impl Iterator<Item = (Kind, &Histogram<u64>)> {
        Kind::ALL
            .iter()
            .filter_map(|kind| Some((*kind, self.by_kind[*kind as usize].as_ref()?)))
    }

    /// The latencies of all kinds together.
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

/// The numbers in front of a reply or event, which is all a load generator looks at.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The request's number, [`Xid::EVENT`] for an event.
    pub xid: Xid,
    /// The error code; zero is success.
    pub error: i32,
    /// The whole frame's length, prefix included.
    pub bytes: usize,
}

impl Message {
    /// The smallest message: a reply header behind its length.
    const BYTES_MIN: usize = frame::PREFIX_BYTES + 16;

    /// Looks at the front of `buffer`; `None` while the message has not arrived whole.
    ///
    /// # Errors
    /// When the length cannot be followed or is shorter than a reply's header.
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
