//! Serving while faults are set: one request a turn, each judged first.

use std::task::Waker;

use bytes::Bytes;
use minikeeper_engine::Input;
use minikeeper_protocol::{ConnectRequest, Reader, frame::PREFIX_BYTES};

use super::{Connection, Fault, Flow, decode};
use crate::{
    fault_turn::{self, Request},
    faults::{Verdict, action::FaultAction, delayed::Delayed},
    limits::{self, Held},
    scratch::{READ_BYTES, Scratch},
};

impl Connection {
    /// As [`Connection::serve`], with faults.
    ///
    /// A function of its own, so that the usual way stays as short as it is.
    #[cold]
    pub(super) fn serve_with_faults(
        &mut self,
        batch: &Bytes,
        mut served: usize,
        read_ms: Option<u64>,
        scratch: &mut Scratch,
    ) -> (Flow, usize) {
        let mut arrived_ms = None;
        loop {
            if scratch.out.len() > self.shared.config.write_backlog_bytes_max {
                return (Flow::Full, served);
            }
            let end = match self.take_frame(batch, served, scratch) {
                Ok(Some(end)) => end,
                Ok(None) => return (Flow::Continue, served),
                Err(why) => return (Flow::Close(why), served),
            };
            if self.is_unbound() && self.bind(&mut scratch.inputs) {
                scratch.inputs.clear();
                continue;
            }
            self.rebase(&mut scratch.inputs);
            let mut input = scratch.inputs.pop().expect("a frame is an input");
            let mut verdict = fault_turn::judge(&self.shared, self.id, &input, 0);
            while let Some(Verdict {
                rule,
                action: FaultAction::Delay(by),
                hits,
            }) = &verdict
            {
                let frame = &batch[served..end];
                match self.delay(&input, frame, *rule, *by, scratch) {
                    Ok(true) => {
                        hits.hit();
                        return (Flow::Delayed, end);
                    }
                    // Removed this very moment.
                    Ok(false) => {}
                    Err(why) => return (Flow::Close(why), end),
                }
                verdict = fault_turn::judge(&self.shared, self.id, &input, *rule);
            }
            if verdict.is_none() && self.is_too_late(read_ms) {
                limits::throttle(std::slice::from_mut(&mut input));
                self.count_throttled(std::slice::from_ref(&input));
            }
            let request = Request {
                conn: self.id,
                input,
                length: end - served,
                arrived_ms,
                late: None,
            };
            let Scratch { out, wakes, .. } = scratch;
            let leftover = fault_turn::serve(&self.shared, verdict, request, out, wakes);
            served = end;
            arrived_ms.get_or_insert(leftover.began_ms);
            if let Some(why) = leftover.close {
                return (Flow::Close(Fault::Told(why)), served);
            }
        }
    }

    /// Has a request served later; whether it will be.
    ///
    /// It is decoded once more, from a copy: slices of the batch would keep all of that in memory.
    fn delay(
        &self,
        input: &Input,
        frame: &[u8],
        rule: u64,
        by: std::time::Duration,
        scratch: &mut Scratch,
    ) -> Result<bool, Fault> {
        let mut held = Held::default();
        let config = &self.shared.config;
        let held_in = self
            .shared
            .limits
            .hold(config, &mut held, frame.len(), frame);
        held_in.map_err(Fault::Limit)?;
        let body = Bytes::copy_from_slice(&frame[PREFIX_BYTES..]);
        let mut reader = Reader::new(&body);
        let input = if matches!(input, Input::Connect { .. }) {
            let hello = ConnectRequest::decode(&mut reader).map_err(Fault::Message)?;
            let conn = self.id;
            Input::Connect { conn, hello }
        } else {
            decode(self.id, &mut reader, &mut scratch.inputs).map_err(Fault::Message)?;
            self.rebase(&mut scratch.inputs);
            scratch.inputs.pop().expect("a request is an input")
        };
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
        match fault_turn::delay(&self.shared, by, delayed) {
            Ok(()) => Ok(true),
            Err(mut delayed) => {
                self.shared.limits.release(&mut delayed.held);
                Ok(false)
            }
        }
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
