//! Requests on their way: those that wait for a connection, and those that wait for a reply.
//!
//! Source: reference sections 1.1 and 7.2: replies come in the order of their requests, auth and
//! sasl excepted, which the server answers beside its queue.

use std::collections::VecDeque;

use minikeeper_protocol::{OpCode, Ustring, Xid};

use super::{
    janitor::Errand,
    outcome::{Epoch, Time},
    watches::{WatchKind, WatchToken},
};

/// Who waits for a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    /// The shell knows whom by this number.
    Caller(u32),
    Janitor(Errand),
}

/// A watch that a request will leave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Registering {
    pub(crate) kind: WatchKind,
    pub(crate) path: Ustring,
    /// `None` once nobody waits for it any more.
    pub(crate) token: Option<WatchToken>,
}

/// What has to be done about a request whose caller is gone before the reply came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum IfAbandoned {
    /// A create: delete what was created. If the reply never comes, find it by its prefix.
    DeleteCreated { parent: Ustring, prefix: Ustring },
    /// A delete: see to it that it happens.
    DeleteStill(Ustring),
}

/// A request and what becomes of its reply.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) xid: Xid,
    pub(crate) op: OpCode,
    /// Who waits for the reply; `None` if nobody does (any more).
    pub(crate) token: Option<Token>,
    /// The only session it may be sent in, if there is one.
    pub(crate) epoch: Option<Epoch>,
    /// When waiting for it ends.
    pub(crate) deadline: Option<Time>,
    pub(crate) registering: Option<Box<Registering>>,
    pub(crate) if_abandoned: Option<Box<IfAbandoned>>,
}

/// An entry that was sent, or lies in the output.
#[derive(Debug)]
struct Sent {
    entry: Entry,
    /// When it was put into the output.
    at: Time,
    /// Where its frame begins, in bytes since the connection was made.
    start: u64,
}

/// An entry that could not be sent yet.
#[derive(Debug)]
struct Unsent {
    entry: Entry,
    frame: Vec<u8>,
}

/// Both queues, in order.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    sent: VecDeque<Sent>,
    unsent: VecDeque<Unsent>,
    /// What is to be written next.
    pub(crate) out: Vec<u8>,
    /// How much was taken from the output since the connection was made, in bytes.
    taken: u64,
    /// No entry has an earlier deadline.
    earliest_deadline: Option<Time>,
}

impl Requests {
    /// Puts a request into the output.
    pub(crate) fn send(&mut self, now: Time, entry: Entry, encode: impl FnOnce(&mut Vec<u8>)) {
        self.note_deadline(&entry);
        let start = self.taken + self.out.len() as u64;
        encode(&mut self.out);
        self.sent.push_back(Sent {
            entry,
            at: now,
            start,
        });
    }

    /// Keeps a request until there is a connection.
    pub(crate) fn keep(&mut self, entry: Entry, encode: impl FnOnce(&mut Vec<u8>)) {
        self.note_deadline(&entry);
        let mut frame = Vec::new();
        encode(&mut frame);
        self.unsent.push_back(Unsent { entry, frame });
    }

    /// Puts everything that was kept into the output, in order; gives back what must not be sent
    /// in this session.
    pub(crate) fn send_kept(&mut self, now: Time, epoch: Epoch) -> Vec<Entry> {
        let mut refused = Vec::new();
        for Unsent { entry, frame } in std::mem::take(&mut self.unsent) {
            if entry.epoch.is_some_and(|only| only != epoch) {
                refused.push(entry);
            } else {
                self.send(now, entry, |out| out.extend_from_slice(&frame));
            }
        }
        refused
    }

    /// Hands over what is to be written, in exchange for an empty buffer. From here on it counts
    /// as sent: nobody can say how much of it will arrive.
    pub(crate) fn take_output(&mut self, empty: Vec<u8>) -> Vec<u8> {
        debug_assert!(empty.is_empty(), "what is exchanged is not lost");
        self.taken += self.out.len() as u64;
        std::mem::replace(&mut self.out, empty)
    }

    /// The request that a reply with this xid answers, and when it was sent.
    ///
    /// `None` if the reply is out of order.
    pub(crate) fn answered(&mut self, xid: Xid) -> Option<(Entry, Time)> {
        let at = if self.sent.front()?.entry.xid == xid {
            0
        } else if xid == Xid::AUTH {
            self.sent.iter().position(|sent| sent.entry.xid == xid)?
        } else {
            return None;
        };
        self.sent.remove(at).map(|sent| (sent.entry, sent.at))
    }

    /// The connection is gone: gives back what was sent. What lies in the output still waits for
    /// the next connection, apart from what the client says of its own accord.
    pub(crate) fn disconnected(&mut self) -> Vec<Entry> {
        let mut lost = Vec::new();
        let mut kept = VecDeque::new();
        let (taken, out) = (self.taken, std::mem::take(&mut self.out));
        let mut sent = std::mem::take(&mut self.sent).into_iter().peekable();
        while let Some(Sent { entry, start, .. }) = sent.next() {
            if start < taken || entry.xid.0 < 0 {
                lost.push(entry);
                continue;
            }
            let offset = |at: u64| usize::try_from(at - taken).expect("offsets lie in the output");
            let end = sent.peek().map_or(out.len(), |next| offset(next.start));
            let frame = out[offset(start)..end].to_vec();
            kept.push_back(Unsent { entry, frame });
        }
        kept.append(&mut self.unsent);
        self.unsent = kept;
        self.taken = 0;
        lost
    }

    /// Nobody waits for this request any more.
    ///
    /// Gives it back if it was not sent; otherwise it stays, without a token, for its reply.
    pub(crate) fn abandon(&mut self, token: Token) -> Option<Entry> {
        let is_it = |entry: &Entry| entry.token == Some(token);
        if let Some(at) = self.unsent.iter().position(|it| is_it(&it.entry)) {
            return self.unsent.remove(at).map(|unsent| unsent.entry);
        }
        // The newest is given up most often: a race was lost, or a task ended.
        if let Some(sent) = self.sent.iter_mut().rev().find(|it| is_it(&it.entry)) {
            sent.entry.token = None;
            if let Some(registering) = &mut sent.entry.registering {
                registering.token = None;
            }
        }
        None
    }

    /// Nobody waits for this watch any more, whose registration may be on its way.
    pub(crate) fn abandon_watch(&mut self, token: WatchToken) {
        let sent = self.sent.iter_mut().map(|sent| &mut sent.entry);
        let unsent = self.unsent.iter_mut().map(|unsent| &mut unsent.entry);
        for registering in sent
            .chain(unsent)
            .filter_map(|entry| entry.registering.as_mut())
        {
            if registering.token == Some(token) {
                registering.token = None;
            }
        }
    }

    /// Gives back what was not sent, if it may only be sent in this session.
    pub(crate) fn take_kept_of(&mut self, epoch: Epoch) -> Vec<Entry> {
        let (of_it, rest) = std::mem::take(&mut self.unsent)
            .into_iter()
            .partition(|unsent| unsent.entry.epoch == Some(epoch));
        self.unsent = rest;
        let of_it: VecDeque<Unsent> = of_it;
        of_it.into_iter().map(|unsent| unsent.entry).collect()
    }

    /// Gives back everything that was not sent.
    pub(crate) fn take_kept(&mut self) -> Vec<Entry> {
        let unsent = std::mem::take(&mut self.unsent);
        unsent.into_iter().map(|unsent| unsent.entry).collect()
    }

    /// What nobody has to wait for any longer: first what was not sent, then the tokens of what
    /// was.
    pub(crate) fn overdue(&mut self, now: Time) -> (Vec<Entry>, Vec<(Token, OpCode)>) {
        let is_over = |entry: &Entry| entry.deadline.is_some_and(|deadline| deadline <= now);
        if self.earliest_deadline.is_none_or(|earliest| earliest > now) {
            return (Vec::new(), Vec::new());
        }
        let (over, rest): (VecDeque<Unsent>, _) = std::mem::take(&mut self.unsent)
            .into_iter()
            .partition(|unsent| is_over(&unsent.entry));
        self.unsent = rest;
        let mut unanswered = Vec::new();
        for Sent { entry, .. } in &mut self.sent {
            if is_over(entry) {
                entry.deadline = None;
                unanswered.extend(entry.token.map(|token| (token, entry.op)));
            }
        }
        let sent = self.sent.iter().map(|sent| sent.entry.deadline);
        let unsent = self.unsent.iter().map(|unsent| unsent.entry.deadline);
        self.earliest_deadline = sent.chain(unsent).flatten().min();
        (
            over.into_iter().map(|unsent| unsent.entry).collect(),
            unanswered,
        )
    }

    pub(crate) const fn next_deadline(&self) -> Option<Time> {
        self.earliest_deadline
    }

    /// Whether nothing waits for anything.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.unsent.is_empty()
    }

    fn note_deadline(&mut self, entry: &Entry) {
        if let Some(deadline) = entry.deadline {
            let earliest = self.earliest_deadline.get_or_insert(deadline);
            *earliest = deadline.min(*earliest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn entry(xid: i32) -> Entry {
        Entry {
            xid: Xid(xid),
            op: OpCode::Sync,
            token: Some(Token::Caller(xid.unsigned_abs())),
            epoch: None,
            deadline: None,
            registering: None,
            if_abandoned: None,
        }
    }

    fn send(requests: &mut Requests, xid: i32) {
        requests.send(Time::ZERO, entry(xid), |out| {
            out.extend([xid.to_be_bytes()[3]; 3]);
        });
    }

    #[test]
    fn what_was_not_taken_is_sent_again() {
        let mut requests = Requests::default();
        send(&mut requests, 1);
        assert_eq!(requests.take_output(Vec::new()), [1; 3]);
        for xid in [2, -2, 3] {
            send(&mut requests, xid);
        }
        let lost = requests.disconnected();
        let xids = |entries: &[Entry]| entries.iter().map(|it| it.xid.0).collect::<Vec<_>>();
        // The ping lay in the output too, but belongs to the connection that is gone.
        assert_eq!(xids(&lost), [1, -2]);
        assert!(requests.send_kept(Time::ZERO, Epoch(1)).is_empty());
        assert_eq!(requests.take_output(Vec::new()), [2, 2, 2, 3, 3, 3]);
        assert_eq!(requests.answered(Xid(2)).unwrap().0.xid, Xid(2));
    }

    #[test]
    fn replies_are_in_order_but_for_logins() {
        let mut requests = Requests::default();
        for xid in [1, -4, 2] {
            send(&mut requests, xid);
        }
        assert!(requests.answered(Xid(2)).is_none());
        assert!(requests.answered(Xid::AUTH).is_some());
        assert!(requests.answered(Xid(1)).is_some());
        assert!(requests.answered(Xid(2)).is_some());
        assert!(requests.answered(Xid(3)).is_none());
    }

    #[test]
    fn abandoned_request_is_withdrawn_only_if_it_was_not_sent() {
        let mut requests = Requests::default();
        send(&mut requests, 1);
        requests.keep(entry(2), |_| {});
        assert!(requests.abandon(Token::Caller(1)).is_none());
        assert_eq!(requests.answered(Xid(1)).unwrap().0.token, None);
        assert_eq!(requests.abandon(Token::Caller(2)).unwrap().xid, Xid(2));
        assert!(requests.is_empty());
    }

    #[test]
    fn deadline_ends_waiting_before_and_after_sending() {
        let mut requests = Requests::default();
        let at = |s| Some(Duration::from_secs(s));
        let with = |xid, deadline| Entry {
            deadline,
            ..entry(xid)
        };
        requests.send(Time::ZERO, with(1, at(5)), |_| {});
        requests.keep(with(2, at(3)), |_| {});
        requests.keep(with(3, None), |_| {});
        assert_eq!(requests.next_deadline(), at(3));
        let (unsent, unanswered) = requests.overdue(Duration::from_secs(3));
        assert_eq!((unsent.len(), unanswered.len()), (1, 0));
        assert_eq!(requests.next_deadline(), at(5));
        let (unsent, unanswered) = requests.overdue(Duration::from_secs(6));
        assert!(unsent.is_empty());
        assert_eq!(unanswered, [(Token::Caller(1), OpCode::Sync)]);
        assert_eq!(requests.next_deadline(), None);
    }
}
