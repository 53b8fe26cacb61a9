//! Serving while faults are set: one request a turn, each judged first.

use std::{ops::Range, task::Waker, time::Duration};

use bytes::Bytes;
use minikeeper_engine::Input;

use super::{Connection, Fault, Flow};
use crate::{
    faults::{Verdict, action::FaultAction, delayed::Delayed},
    net::{
        limits::{self, Held},
        scratch::{READ_BYTES, Scratch},
    },
    turn::fault_turn::{self, Request},
    universe::state::Shared,
};

impl Connection {
    /// Serves the one request that was taken, from this frame, as faults will have it.
    ///
    /// Out of the way of [`Connection::serve`], which stays as short as it is.
    #[cold]
    #[inline(never)]
    pub(super) fn serve_with_faults(
        &mut self,
        batch: &Bytes,
        frame: Range<usize>,
        read_ms: Option<u64>,
        arrived_ms: &mut Option<u64>,
        scratch: &mut Scratch,
    ) -> Flow {
        let mut input = scratch.inputs.pop().expect("a frame is an input");
        let mut verdict = fault_turn::judge(&self.shared, self.id, &input, 0);
        while let Some(Verdict {
            rule,
            action: FaultAction::Delay(by),
            hits,
        }) = verdict
        {
            match self.delay(input, batch, frame.clone(), rule, by) {
                Ok(None) => {
                    hits.hit();
                    return Flow::Delayed;
                }
                // Removed this very moment.
                Ok(Some(back)) => input = back,
                Err(why) => return Flow::Close(why),
            }
            verdict = fault_turn::judge(&self.shared, self.id, &input, rule);
        }
        if verdict.is_none() && self.is_too_late(read_ms) {
            limits::throttle(std::slice::from_mut(&mut input));
            let Shared { limits, config, .. } = &*self.shared;
            limits.throttled(config, std::slice::from_ref(&input));
        }
        let request = Request {
            conn: self.id,
            input,
            length: frame.len(),
            arrived_ms: *arrived_ms,
            late: None,
        };
        let Scratch { out, wakes, .. } = scratch;
        let leftover = fault_turn::serve(&self.shared, verdict, request, out, wakes);
        arrived_ms.get_or_insert(leftover.began_ms);
        match leftover.close {
            Some(why) => Flow::Close(Fault::Told(why)),
            None if out.len() > self.shared.config.write_backlog_bytes_max => Flow::Full,
            None => Flow::Continue,
        }
    }

    /// Has a request served later; gives it back if it will not be.
    ///
    /// Its slices keep all that came with the same read in memory, which is counted.
    fn delay(
        &self,
        input: Input,
        batch: &Bytes,
        frame: Range<usize>,
        rule: u64,
        by: Duration,
    ) -> Result<Option<Input>, Fault> {
        let mut held = Held::default();
        let Shared { limits, config, .. } = &*self.shared;
        let memory_bytes = batch.len().max(READ_BYTES);
        limits
            .hold(config, &mut held, memory_bytes, &batch[frame.clone()])
            .map_err(Fault::Limit)?;
        let delayed = Delayed {
            conn: self.id,
            outbox: self.outbox.clone(),
            input,
            length: frame.len(),
            rule,
            held,
            kept: None,
            writer: None,
        };
        Ok(match fault_turn::delay(&self.shared, by, delayed) {
            Ok(()) => None,
            Err(mut delayed) => {
                limits.release(&mut delayed.held);
                Some(delayed.input)
            }
        })
    }

    /// Whether nothing is read or served until a request has been.
    pub(crate) fn is_delayed(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.is_delayed) && self.outbox.is_delayed()
    }

    /// Whether it has been served since that was looked at.
    pub(crate) fn is_delay_over(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.is_delayed) && !self.outbox.is_delayed()
    }

    /// Whether a client inside the process has to wait before it writes more: as much waits
    /// behind a delayed request as one read would take. It is woken when that is served.
    #[cold]
    pub(crate) fn is_write_delayed(&self, waker: &Waker) -> bool {
        let waiting = self.rest.as_ref().map_or(0, |rest| rest.bytes.len());
        self.is_delayed()
            && waiting >= READ_BYTES
            && self.shared.turns.faults.wait_to_write(&self.outbox, waker)
    }

    /// The client is gone; what it has sent and what is delayed is still served.
    pub(crate) fn finish(self) {
        if self.is_delayed() {
            let (shared, outbox) = (self.shared.clone(), self.outbox.clone());
            drop(shared.turns.faults.keep_until_served(&outbox, self));
        }
    }
}
