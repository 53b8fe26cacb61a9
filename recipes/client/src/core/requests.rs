//! Pending requests: those that wait for a connection, and those that wait for a reply.
//!
//! Source: `docs/zookeeper-protocol.md` sections 1.1 and 7.2: replies come in the order of their
//! requests, auth and sasl excepted, which the server answers beside its queue.

use std::collections::{BTreeSet, VecDeque};

use minikeeper_protocol::{OpCode, Ustring, Xid};

use super::{
    cleanup::CleanupRequest,
    outcome::{Epoch, Time},
    watches::{WatchKind, WatchToken},
};

/// The owner of a request, who gets its reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    /// A caller, by its slot.
    Caller(u32),
    Cleanup(CleanupRequest),
}

/// A watch that a request will leave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Registering {
    pub(crate) kind: WatchKind,
    pub(crate) path: Ustring,
    /// `None` once the caller no longer waits for it.
    pub(crate) token: Option<WatchToken>,
}

/// What has to be done about a request whose caller is gone before the reply came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum IfAbandoned {
    /// A create: delete what was created. If the reply never comes, find it by its prefix.
    DeleteCreated { parent: Ustring, prefix: Ustring },
    /// A delete: see to it that it happens.
    DeleteStill(Ustring),
    /// A removal of a watch by the client itself: send it again if the server refuses it.
    RemoveWatchStill(WatchKind, Ustring),
}

/// A request and what becomes of its reply.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) xid: Xid,
    pub(crate) op: OpCode,
    /// The caller that waits for the reply, if there is one.
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

/// A queue whose items are found by the number they got when they joined it.
#[derive(Debug)]
struct Queue<T> {
    /// `None` where an item was taken out of the middle; never in front.
    items: VecDeque<Option<T>>,
    /// The number of the item in front. It only grows.
    first: u64,
    /// How many items there are.
    len: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let items = VecDeque::new();
        let (first, len) = (0, 0);
        Self { items, first, len }
    }
}

impl<T> Queue<T> {
    fn push(&mut self, item: T) -> u64 {
        self.items.push_back(Some(item));
        self.len += 1;
        self.first + self.items.len() as u64 - 1
    }

    fn front(&self) -> Option<&T> {
        self.items.front()?.as_ref()
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.items.get_mut(at)?.as_mut()
    }

    fn remove(&mut self, number: u64) -> Option<T> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let item = self.items.get_mut(at)?.take()?;
        self.len -= 1;
        while let Some(None) = self.items.front() {
            self.items.pop_front();
            self.first += 1;
        }
        Some(item)
    }

    /// Everything, in order; the queue is empty then.
    fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.first += self.items.len() as u64;
        self.len = 0;
        std::mem::take(&mut self.items).into_iter().flatten()
    }

    /// Whether most of what it holds are gaps.
    fn is_sparse(&self) -> bool {
        self.items.len() > 2 * self.len + 64
    }
}

/// Where the newest request of a caller is, if it is still there.
#[derive(Clone, Copy, Debug)]
enum QueuePosition {
    Sent(u64),
    Unsent(u64),
}

/// What a request takes beside its frame, about. Unit: bytes.
const ENTRY_BYTES: usize = 256;

/// Both queues, in order.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    sent: Queue<Sent>,
    unsent: Queue<Unsent>,
    /// By caller, so that giving up a call does not depend on how many there are.
    positions: Vec<QueuePosition>,
    /// What the frames take that were not sent. Unit: bytes.
    unsent_bytes: usize,
    /// What is to be written next.
    pub(crate) out: Vec<u8>,
    /// How much was taken from the output since the connection was made, in bytes.
    taken: u64,
    /// The deadlines of the calls that a caller waits for.
    deadlines: BTreeSet<(Time, u32)>,
}

impl Requests {
    /// What waits for a connection, for being written, or for an answer. Unit: bytes, estimated.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.out.len() + self.unsent_bytes + (self.sent.len + self.unsent.len) * ENTRY_BYTES
    }

    /// What a request with such a payload will add to that.
    pub(crate) const fn estimate(payload_bytes: usize) -> usize {
        payload_bytes.saturating_add(ENTRY_BYTES)
    }

    /// Puts a request into the output.
    pub(crate) fn send(&mut self, now: Time, entry: Entry, encode: impl FnOnce(&mut Vec<u8>)) {
        let caller = self.enter(&entry);
        let start = self.taken + self.out.len() as u64;
        encode(&mut self.out);
        let at = now;
        let number = self.sent.push(Sent { entry, at, start });
        self.put(caller, QueuePosition::Sent(number));
    }

    /// Keeps a request until there is a connection.
    pub(crate) fn keep(&mut self, entry: Entry, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut frame = Vec::new();
        encode(&mut frame);
        self.keep_frame(Unsent { entry, frame });
    }

    fn keep_frame(&mut self, unsent: Unsent) {
        let caller = self.enter(&unsent.entry);
        self.unsent_bytes += unsent.frame.len();
        let number = self.unsent.push(unsent);
        self.put(caller, QueuePosition::Unsent(number));
    }

    /// Puts everything that was kept into the output, in order; gives back what must not be sent
    /// in this session.
    pub(crate) fn send_kept(&mut self, now: Time, epoch: Epoch) -> Vec<Entry> {
        let mut refused = Vec::new();
        for Unsent { entry, frame } in self.take_unsent() {
            if entry.epoch.is_some_and(|only| only != epoch) {
                self.leave(&entry);
                refused.push(entry);
            } else {
                self.send(now, entry, |out| out.extend_from_slice(&frame));
            }
        }
        refused
    }

    fn take_unsent(&mut self) -> impl Iterator<Item = Unsent> + use<> {
        self.unsent_bytes = 0;
        self.unsent.take()
    }

    /// Hands over the output in exchange for an empty buffer. From here on it counts as sent,
    /// because it is unknown how much of it will arrive.
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
            let is_it = |sent: &Option<Sent>| sent.as_ref().is_some_and(|it| it.entry.xid == xid);
            self.sent.items.iter().position(is_it)?
        } else {
            return None;
        };
        let Sent { entry, at, .. } = self.sent.remove(self.sent.first + at as u64)?;
        self.leave(&entry);
        Some((entry, at))
    }

    /// The connection is gone: gives back what was sent. What lies in the output still waits for
    /// the next connection, apart from what the client says of its own accord.
    pub(crate) fn disconnected(&mut self) -> Vec<Entry> {
        let mut lost = Vec::new();
        let (taken, out) = (self.taken, std::mem::take(&mut self.out));
        let later: Vec<_> = self.take_unsent().collect();
        let mut sent = self.sent.take().peekable();
        while let Some(Sent { entry, start, .. }) = sent.next() {
            if start < taken || entry.xid.0 < 0 {
                self.leave(&entry);
                lost.push(entry);
                continue;
            }
            let offset = |at: u64| usize::try_from(at - taken).expect("offsets lie in the output");
            let end = sent.peek().map_or(out.len(), |next| offset(next.start));
            let frame = out[offset(start)..end].to_vec();
            self.keep_frame(Unsent { entry, frame });
        }
        for unsent in later {
            self.keep_frame(unsent);
        }
        self.taken = 0;
        lost
    }

    /// The caller no longer waits for this request.
    ///
    /// Gives it back if it was not sent; otherwise it stays, without a token, for its reply.
    pub(crate) fn abandon(&mut self, caller: u32) -> Option<Entry> {
        let token = Some(Token::Caller(caller));
        match *self.positions.get(caller as usize)? {
            QueuePosition::Unsent(number) => {
                let is_it = |unsent: &&mut Unsent| unsent.entry.token == token;
                self.unsent.get_mut(number).filter(is_it)?;
                let Unsent { entry, frame } = self.unsent.remove(number)?;
                self.unsent_bytes -= frame.len();
                self.leave(&entry);
                if self.unsent.is_sparse() {
                    for unsent in self.take_unsent() {
                        self.keep_frame(unsent);
                    }
                }
                Some(entry)
            }
            QueuePosition::Sent(number) => {
                let entry = &mut self.sent.get_mut(number)?.entry;
                if entry.token == token {
                    if let Some(deadline) = entry.deadline.take() {
                        self.deadlines.remove(&(deadline, caller));
                    }
                    entry.token = None;
                    if let Some(registering) = &mut entry.registering {
                        registering.token = None;
                    }
                }
                None
            }
        }
    }

    /// Gives back what was not sent, if it may only be sent in this session.
    pub(crate) fn take_kept_of(&mut self, epoch: Epoch) -> Vec<Entry> {
        let mut of_it = Vec::new();
        for unsent in self.take_unsent() {
            if unsent.entry.epoch == Some(epoch) {
                self.leave(&unsent.entry);
                of_it.push(unsent.entry);
            } else {
                self.keep_frame(unsent);
            }
        }
        of_it
    }

    /// Gives back everything that was not sent.
    pub(crate) fn take_kept(&mut self) -> Vec<Entry> {
        let kept: Vec<_> = self.take_unsent().map(|unsent| unsent.entry).collect();
        for entry in &kept {
            self.leave(entry);
        }
        kept
    }

    /// Returns the requests whose deadline has passed: first those that were not sent, then those
    /// that were.
    pub(crate) fn overdue(&mut self, now: Time) -> (Vec<Entry>, Vec<u32>) {
        let (mut unsent, mut unanswered) = (Vec::new(), Vec::new());
        while let Some(&(deadline, caller)) = self.deadlines.first()
            && deadline <= now
        {
            self.deadlines.pop_first();
            match self.abandon(caller) {
                Some(mut entry) => {
                    entry.deadline = None;
                    unsent.push(entry);
                }
                None => unanswered.push(caller),
            }
        }
        (unsent, unanswered)
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Returns whether no request is pending.
    #[cfg(test)]
    pub(crate) const fn is_empty(&self) -> bool {
        self.sent.len == 0 && self.unsent.len == 0
    }

    /// A request joins one of the queues. Gives whose it is.
    fn enter(&mut self, entry: &Entry) -> Option<u32> {
        let Some(Token::Caller(caller)) = entry.token else {
            return None;
        };
        if let Some(deadline) = entry.deadline {
            self.deadlines.insert((deadline, caller));
        }
        Some(caller)
    }

    fn put(&mut self, caller: Option<u32>, place: QueuePosition) {
        let Some(caller) = caller.map(|caller| caller as usize) else {
            return;
        };
        if caller >= self.positions.len() {
            self.positions.resize(caller + 1, place);
        }
        self.positions[caller] = place;
    }

    /// A request is in neither queue any more.
    fn leave(&mut self, entry: &Entry) {
        if let (Some(deadline), Some(Token::Caller(caller))) = (entry.deadline, entry.token) {
            self.deadlines.remove(&(deadline, caller));
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
        assert!(requests.abandon(1).is_none());
        assert_eq!(requests.answered(Xid(1)).unwrap().0.token, None);
        assert_eq!(requests.abandon(2).unwrap().xid, Xid(2));
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
        assert_eq!(unanswered, [1]);
        assert_eq!(requests.next_deadline(), None);
    }

    #[test]
    fn giving_up_many_calls_costs_each_the_same() {
        // Each looked for its request among all others: a task that was ended with 100,000 calls
        // on their way held the client for half a minute.
        const COUNT: i32 = 40_000;
        let deadline = |xid: i32| Some(Duration::from_millis(u64::from(xid.unsigned_abs())));
        for is_sent in [true, false] {
            let mut requests = Requests::default();
            for xid in 1..=COUNT {
                let entry = Entry {
                    deadline: deadline(xid),
                    ..entry(xid)
                };
                if is_sent {
                    requests.send(Time::ZERO, entry, |_| {});
                } else {
                    requests.keep(entry, |_| {});
                }
            }
            // From both ends, by their callers or by their deadlines.
            for xid in 1..=COUNT / 4 {
                let given_back = [xid, COUNT + 1 - xid].map(|xid| {
                    let entry = requests.abandon(xid.unsigned_abs());
                    entry.is_some()
                });
                assert_eq!(given_back, [!is_sent; 2]);
            }
            for xid in COUNT / 4 + 1..=3 * (COUNT / 4) {
                let (unsent, unanswered) = requests.overdue(deadline(xid).unwrap());
                assert_eq!(unsent.len() + unanswered.len(), 1);
            }
            assert_eq!(requests.next_deadline(), None);
            assert_eq!(requests.is_empty(), !is_sent);
            assert!(requests.unsent.items.len() < 100, "gaps are closed");
        }
    }

    #[test]
    fn caller_that_comes_again_is_not_mistaken_for_the_one_before() {
        let mut requests = Requests::default();
        send(&mut requests, 1);
        assert!(requests.answered(Xid(1)).is_some());
        assert!(requests.abandon(1).is_none());
        requests.keep(entry(1), |_| {});
        send(&mut requests, 2);
        assert!(requests.abandon(2).is_none());
        assert_eq!(requests.abandon(1).unwrap().xid, Xid(1));
        assert!(requests.abandon(1).is_none());
        assert!(requests.abandon(77).is_none());
    }

    #[test]
    fn what_waits_is_counted_until_it_is_gone() {
        let mut requests = Requests::default();
        requests.keep(entry(1), |out| out.extend([0; 1000]));
        requests.keep(entry(2), |out| out.extend([0; 3000]));
        assert_eq!(requests.pending_bytes(), 4000 + 2 * ENTRY_BYTES);
        requests.abandon(1);
        assert_eq!(requests.pending_bytes(), 3000 + ENTRY_BYTES);
        requests.send_kept(Time::ZERO, Epoch(1));
        assert_eq!(requests.pending_bytes(), 3000 + ENTRY_BYTES);
        requests.take_output(Vec::new());
        assert!(requests.answered(Xid(2)).is_some());
        assert_eq!(requests.pending_bytes(), 0);
    }
}
