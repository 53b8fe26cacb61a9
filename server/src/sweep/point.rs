//! Fault points: the places of a run where something can go wrong, and what goes wrong there.
//!
//! A place is named by what the next run has in common with this one: the client's number, the
//! operation, the path without what is random in it, and an ordinal.

use std::{fmt, str::FromStr};

use minikeeper_core::faults::{fault::Fault, op::FaultOp};

use crate::{
    orders::fault::{FaultExtent, SHORT_DELAY, SweepFault},
    sweep::{SweepError, acts::EVENT},
};

impl FromStr for SweepFault {
    type Err = SweepError;

    fn from_str(name: &str) -> Result<Self, SweepError> {
        Self::named(name).ok_or_else(|| {
            SweepError(format!(
                "fault {name:?}: unknown; one of {}",
                Self::NAMES.join(", ")
            ))
        })
    }
}

/// A place where something goes wrong, and what.
///
/// Its text names it on the command line: fault, client, operation, ordinal and path, with colons
/// between them, such as `reply-lost:1:create:2:/locks/*`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub struct FaultPoint {
    /// What goes wrong.
    pub fault: SweepFault,
    /// The number of the client: clients are numbered from 1 by what they do first, in the order of
    /// the names of their requests. 0 for any client, which handshakes have.
    pub client: u32,
    /// The operation by its name in the protocol, `connect` for a handshake, or `event`.
    pub op: String,
    /// The ordinal, from 1, among what matches the other fields.
    ///
    /// A sweep finds the place again by what the client does before it; if the client does something
    /// else, by this ordinal.
    pub nth: u64,
    /// A pattern for the path; empty if there is no path.
    pub path: String,
}

impl FaultPoint {
    /// Parses the points of one run, with `+` between them: at most two.
    ///
    /// # Errors
    /// When one is no point.
    #[doc(hidden)]
    pub fn parse_run(text: &str) -> Result<Vec<Self>, SweepError> {
        // A path may contain the sign, too: a point begins with the name of a fault.
        let mut points: Vec<String> = Vec::new();
        for part in text.split('+') {
            let fault = part.split(':').next().unwrap_or_default();
            match points.last_mut() {
                Some(last) if fault.parse::<SweepFault>().is_err() => {
                    last.push('+');
                    last.push_str(part);
                }
                _ => points.push(part.to_owned()),
            }
        }
        if points.len() > 2 {
            return Err(SweepError(format!(
                "points {text:?}: {} points, a run has at most 2",
                points.len()
            )));
        }
        points.iter().map(|point| point.parse()).collect()
    }

    /// Returns the fault to inject, without what happens once it has acted.
    pub(crate) fn to_fault(&self, extent: FaultExtent) -> Result<Fault, SweepError> {
        let mut fault = self.fault.to_fault(extent);
        if self.op != EVENT {
            let op: FaultOp = (self.op.parse())
                .map_err(|error| SweepError(format!("point \"{self}\": {error}")))?;
            fault = fault.on(op);
        }
        if !self.path.is_empty() {
            fault = fault.at(self.path.as_str());
        }
        Ok(fault.nth(self.nth).optional())
    }
}

impl fmt::Display for FaultPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            fault,
            client,
            op,
            nth,
            path,
        } = self;
        write!(f, "{}:{client}:{op}:{nth}:{path}", fault.name())
    }
}

impl FromStr for FaultPoint {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, SweepError> {
        let wrong = |why: &str| {
            SweepError(format!(
                "point {text:?}: {why}; a point is FAULT:CLIENT:OPERATION:ORDINAL:PATH, such as \
                 reply-lost:1:create:2:/locks/*"
            ))
        };
        let mut parts = text.splitn(5, ':');
        let mut part = |name| parts.next().ok_or_else(|| wrong(&format!("no {name}")));
        let fault = part("fault")?.parse();
        let fault: SweepFault = fault.map_err(|error: SweepError| wrong(&error.to_string()))?;
        let client = part("client")?.parse();
        let client = client.map_err(|_| wrong("the client is no number"))?;
        let op = part("operation")?.to_owned();
        let nth = part("ordinal")?.parse().ok().filter(|nth| *nth > 0);
        let nth = nth.ok_or_else(|| wrong("the ordinal is no number from 1 on"))?;
        let path = part("path")?.to_owned();
        if (op == EVENT) != (fault == SweepFault::EventLate) {
            return Err(wrong("event-late and the operation event go together"));
        }
        let point = Self {
            fault,
            client,
            op,
            nth,
            path,
        };
        // Says what is wrong with the operation or the path now, not in the middle of a run.
        minikeeper_core::faults::rule::Rule::new(0, point.to_fault(FaultExtent::new(SHORT_DELAY))?)
            .map_err(|error| wrong(&error.to_string()))?;
        Ok(point)
    }
}

impl FaultPoint {
    /// Says in a sentence what happens, as in "the reply to the 2nd create of /locks/* by client 1
    /// was lost".
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut what = format!("the {} {}", ordinal(self.nth), self.op);
        if !self.path.is_empty() {
            let of = if self.op == EVENT { "for" } else { "of" };
            what += &format!(" {of} {}", self.path.escape_debug());
        }
        if self.client > 0 && self.op != EVENT {
            what += &format!(" by client {}", self.client);
        }
        match self.fault {
            SweepFault::ReplyLost => format!("the reply to {what} was lost"),
            SweepFault::RequestLost => format!("{what} was lost with its connection"),
            SweepFault::ConnectionCut => format!("the connection was closed after {what}"),
            SweepFault::SessionExpired => format!("the session expired after {what}"),
            SweepFault::ReplyLate => {
                format!("the reply to {what} was later than the session's timeout")
            }
            SweepFault::ServerRestarted => format!("the server restarted while it served {what}"),
            SweepFault::EventLate => {
                let client = self.client;
                format!(
                    "{what} came after the reply to the next request of its watcher, client {client}"
                )
            }
            SweepFault::RequestLate => format!("{what} came 100 ms late"),
            SweepFault::ClientPaused => format!(
                "the client stood still for longer than its session's timeout before it got the reply to {what}"
            ),
            SweepFault::Outage => format!("the server was out of reach from {what} on"),
            SweepFault::ClientOutage => {
                format!("the server was out of reach of this client from {what} on")
            }
            SweepFault::ClientCrash => {
                format!("the program was killed after {what}, and started again")
            }
            SweepFault::Rollback => format!("the server came back older after {what}"),
        }
    }
}

impl FaultPoint {
    /// Says in a sentence what happens in a run with these points.
    pub(crate) fn sentences(points: &[Self]) -> String {
        let sentences: Vec<_> = points.iter().map(Self::sentence).collect();
        sentences.join(", and then ")
    }
}

fn ordinal(number: u64) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_have_a_text_that_comes_back() {
        for text in [
            "reply-lost:1:create:2:/locks/*",
            "event-late:3:event:1:/a:b",
            "request-lost:0:connect:1:",
            "server-restarted:2:multi:11:",
        ] {
            assert_eq!(text.parse::<FaultPoint>().unwrap().to_string(), text);
        }
        let point: FaultPoint = "reply-lost:1:create:2:/locks/*".parse().unwrap();
        assert_eq!(
            point.sentence(),
            "the reply to the 2nd create of /locks/* by client 1 was lost"
        );
        for (text, wrong) in [
            ("", "unknown; one of"),
            ("reply-lost", "no client"),
            ("reply-lost:x:create:1:/a", "the client is no number"),
            ("reply-lost:1:create:0:/a", "the ordinal is no number"),
            ("reply-lost:1:creat:1:/a", "unknown; one of"),
            ("reply-lost:1:create:1:a", "must begin with"),
            ("reply-lost:1:event:1:/a", "go together"),
        ] {
            let error = text.parse::<FaultPoint>().unwrap_err().to_string();
            assert!(error.contains(wrong), "{text}: {error}");
        }
    }

    #[test]
    fn faults_have_the_names_that_parse() {
        for fault in SweepFault::ALL {
            assert_eq!(fault.name().parse(), Ok(fault));
        }
    }

    #[test]
    fn ordinals_end_as_in_english() {
        let texts = [1, 2, 3, 4, 11, 12, 13, 21, 112, 123].map(ordinal);
        let wanted = "1st 2nd 3rd 4th 11th 12th 13th 21st 112th 123rd";
        assert_eq!(texts.join(" "), wanted);
    }
}
