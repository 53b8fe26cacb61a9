//! Orders to contenders in Java.

use std::{fmt::Write as _, net::SocketAddr, time::Duration};

use crate::{Error, peers::Kind};

/// A contest: contenders acquire a lock again and again.
///
/// They start together. The first holder of a mutex waits until the others are in the queue. There
/// are exactly `grants` grants, unless the limit passes first; towards the end fewer contenders are
/// in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// The lock's name, below `/bench`; without spaces.
    pub resource: String,
    /// The kind of recipe.
    pub kind: Kind,
    /// The number of contenders.
    pub contenders: u32,
    /// The percentage of requests that only read.
    pub readers: u32,
    /// Whether a contender asks again only when another one has the lock.
    pub in_turn: bool,
    /// How long each contender holds the lock. Below 100 us it spins, above it sleeps.
    pub hold: Duration,
    /// The number of grants of all contenders together.
    pub grants: u32,
    /// In an open loop: the due times of requests, in nanoseconds after the start, one per grant. A
    /// free contender takes the next request. Empty in a closed loop: a free contender asks at
    /// once.
    pub due_ns: Vec<u64>,
    /// The time after which contenders neither ask nor wait; in whole milliseconds.
    pub limit: Duration,
    /// Another address of the server, for which other sessions are used.
    pub via: Option<SocketAddr>,
}

impl Order {
    /// The largest possible number of events in its history.
    pub(super) fn events_max(&self) -> i64 {
        // Five per grant, and three more for each contender that asked in vain.
        5 * i64::from(self.grants) + 3 * i64::from(self.contenders)
    }

    /// The line for Java.
    pub(super) fn line(&self) -> Result<String, Error> {
        if self.contenders == 0 {
            return Err(Error::Setup(
                "contest of 0 contenders: at least one is needed".into(),
            ));
        }
        let mut line = format!(
            "contest path={} contenders={} hold_ns={} grants={} limit_ms={}",
            path(&self.resource)?,
            self.contenders,
            self.hold.as_nanos(),
            self.grants,
            self.limit.as_millis(),
        );
        if self.in_turn && self.contenders > 1 {
            line += " order=turn";
        }
        // Writing to a string cannot fail.
        let _ = match self.kind {
            Kind::Mutex => Ok(()),
            Kind::ReadWrite => write!(line, " readers={}", self.readers),
            Kind::Semaphore(leases) => write!(line, " leases={leases}"),
        };
        if let Some(addr) = self.via {
            let _ = write!(line, " address={addr}");
        }
        let mut before = " due_ns=";
        for due_ns in &self.due_ns {
            let _ = write!(line, "{before}{due_ns}");
            before = ",";
        }
        Ok(line)
    }
}

/// The path of this lock, without spaces, at which orders are split.
pub(super) fn path(resource: &str) -> Result<String, Error> {
    if resource.is_empty() || resource.contains(char::is_whitespace) {
        return Err(Error::Setup(format!(
            "name {resource:?} of a lock: it must not be empty or have spaces"
        )));
    }
    Ok(format!("/bench/{resource}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_would_break_an_order_is_refused() {
        assert_eq!(path("lock-1").unwrap(), "/bench/lock-1");
        for name in ["", "a lock", "lock\nrelease"] {
            assert!(path(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn order_has_an_option_for_each_unusual_setting() {
        let mut order = Order {
            resource: "a".into(),
            kind: Kind::Mutex,
            contenders: 2,
            readers: 90,
            in_turn: true,
            hold: Duration::from_micros(200),
            grants: 3,
            due_ns: Vec::new(),
            limit: Duration::from_secs(1),
            via: None,
        };
        let usual = "contest path=/bench/a contenders=2 hold_ns=200000 grants=3 limit_ms=1000";
        assert_eq!(order.line().unwrap(), format!("{usual} order=turn"));
        order.in_turn = false;
        assert_eq!(order.line().unwrap(), usual);
        order.kind = Kind::ReadWrite;
        order.due_ns = vec![5, 70, 900];
        order.via = Some(([127, 0, 0, 1], 2181).into());
        assert_eq!(
            order.line().unwrap(),
            format!("{usual} readers=90 address=127.0.0.1:2181 due_ns=5,70,900")
        );
        order.contenders = 0;
        assert!(order.line().is_err());
    }
}
