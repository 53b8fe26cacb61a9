//! What contenders in Java are to do.

use std::{fmt::Write as _, net::SocketAddr, time::Duration};

use crate::{Error, peers::Kind};

/// So many contenders take a lock again and again.
///
/// They start together. The first holder of a mutex waits until the others stand in the queue.
/// There are exactly as many grants as wanted, unless the limit passes first; towards the end there
/// are fewer than all left in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// The lock's name, below `/bench`; without spaces.
    pub resource: String,
    /// Which recipe.
    pub kind: Kind,
    /// How many.
    pub contenders: u32,
    /// How many of 100 asks are only to read.
    pub readers: u32,
    /// Whether who gave the lock back asks again only when another has it.
    pub in_turn: bool,
    /// How long each holds it. Below 100 us it waits awake, above asleep.
    pub hold: Duration,
    /// How many grants there are, altogether.
    pub grants: u32,
    /// In an open loop: when asks are due, in nanoseconds after the start, as many as grants. Who
    /// is free asks. Empty: who is free asks at once.
    pub due_ns: Vec<u64>,
    /// The time after which contenders neither ask nor wait; in whole milliseconds.
    pub limit: Duration,
    /// Where to reach the server, with other sessions, if not where it is.
    pub via: Option<SocketAddr>,
}

impl Order {
    /// The most events that its history can have.
    pub(super) fn events_max(&self) -> i64 {
        // Five a grant, and three more of each who asked in vain.
        5 * i64::from(self.grants) + 3 * i64::from(self.contenders)
    }

    /// As Java reads it.
    pub(super) fn line(&self) -> Result<String, Error> {
        if self.contenders == 0 {
            return Err(Error::Setup(
                "contest of 0 contenders: it takes one at least".into(),
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

/// Where this lock is; orders are split at spaces.
pub(super) fn path(resource: &str) -> Result<String, Error> {
    if resource.is_empty() || resource.contains(char::is_whitespace) {
        return Err(Error::Setup(format!(
            "name {resource:?} of a lock: it must have letters and no spaces"
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
    fn order_has_an_option_for_each_thing_that_is_not_usual() {
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
