//! Alters the output of a turn for a fault.

use std::{sync::Arc, task::Waker};

use minikeeper_protocol::{Xid, frame};

use crate::outbox::{Close, Outbox};

/// The fate of a turn's output, decided before the turn and carried out at its end, under the
/// engine lock. Such a turn serves one request.
#[derive(Debug)]
pub(crate) struct Aftermath {
    pub(crate) reply: ReplyFate,
    /// Whether the connection closes once everything is sent.
    pub(crate) cuts: bool,
    /// The outbox for the output of a delayed request, because its connection's task takes no part
    /// in the turn.
    pub(crate) late: Option<Arc<Outbox>>,
}

/// The fate of the reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReplyFate {
    Sent,
    Lost,
    /// Half of its frame is sent, and nothing after it.
    Half,
}

impl Aftermath {
    /// Returns whether it belongs to another connection, one that has closed since.
    pub(crate) fn is_of_another(&self, outbox: Option<&Arc<Outbox>>) -> bool {
        self.late
            .as_ref()
            .is_some_and(|late| outbox.is_none_or(|outbox| !Arc::ptr_eq(late, outbox)))
    }

    /// Alters the turn's own output, which begins at `own_from`. Returns the task to wake.
    pub(crate) fn carry_out(&self, out: &mut Vec<u8>, own_from: usize) -> Option<Waker> {
        match (self.reply, last_reply(out, own_from)) {
            (ReplyFate::Sent, _) | (_, None) => {}
            // Nothing follows the only reply.
            (ReplyFate::Lost, Some(start)) => out.truncate(start),
            (ReplyFate::Half, Some(start)) => out.truncate(start + (out.len() - start) / 2),
        }
        let outbox = self.late.as_ref()?;
        let waker = outbox.put_back(out);
        // Under the same lock, so that no event follows half a frame.
        let closing = self.cuts.then(|| outbox.close(Close::Injected)).flatten();
        waker.or(closing)
    }
}

/// Finds the last frame that is not an event.
pub(crate) fn last_reply(out: &[u8], from: usize) -> Option<usize> {
    let (mut at, mut found) = (from, None);
    while let Ok(Some(body)) = frame::next(&out[at..], usize::MAX) {
        let message = &out[at + body.start..at + body.end];
        if message.first_chunk() != Some(&Xid::EVENT.0.to_be_bytes()) {
            found = Some(at);
        }
        at += body.end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(messages: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for message in messages {
            frame::put(&mut out, |out| out.extend_from_slice(message));
        }
        out
    }

    fn after(reply: ReplyFate, own_from: usize) -> Vec<u8> {
        let mut out = framed(&[&[0, 0, 0, 1, 9, 9], &[255; 5], &[0, 0, 0, 2, 7, 7]]);
        let aftermath = Aftermath {
            reply,
            cuts: false,
            late: None,
        };
        assert!(aftermath.carry_out(&mut out, own_from).is_none());
        out
    }

    #[test]
    fn lost_reply_is_removed_and_events_and_earlier_replies_stay() {
        let whole = framed(&[&[0, 0, 0, 1, 9, 9], &[255; 5], &[0, 0, 0, 2, 7, 7]]);
        assert_eq!(after(ReplyFate::Sent, 0), whole);
        assert_eq!(after(ReplyFate::Lost, 0), whole[..19]);
        assert_eq!(after(ReplyFate::Half, 0), whole[..24]);
        // This turn has no reply to remove.
        assert_eq!(after(ReplyFate::Lost, whole.len()), whole);
    }
}
