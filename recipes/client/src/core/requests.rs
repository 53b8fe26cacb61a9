//! Pending requests: those that wait for a connection, and those that wait for a reply.
//!
//! Source: `docs/zookeeper-protocol.md` sections 1.1 and 7.2: replies come in the order of their
//! requests, except those to auth and sasl, which the server answers outside its queue.

use std::collections::{BTreeSet, VecDeque};

use minikeeper_protocol::{Create, MultiOp, MultiResult, OpCode, Reply, Request, Ustring, Xid};

use super::{
    cleanup::CleanupRequest,
    outcome::{Epoch, Time},
    watches::{WatchKind, WatchToken},
};

/// The recipient of the reply to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    /// A caller, by its slot.
    Caller(u32),
    Cleanup(CleanupRequest),
}

/// A watch that a request registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Registering {
    pub(crate) kind: WatchKind,
    pub(crate) path: Ustring,
    /// `None` once the caller no longer waits for it.
    pub(crate) token: Option<WatchToken>,
}

/// The action for a request whose caller is gone before the reply comes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum IfAbandoned {
    /// A create: delete the znode. If the reply never comes, find it by its prefix.
    DeleteCreated { parent: Ustring, prefix: Ustring },
    /// A delete: make sure that it happens.
    DeleteStill(Ustring),
    /// A removal of a watch by the client itself: send it again if the server refuses it.
    RemoveWatchStill(WatchKind, Ustring),
}

/// Returns whether a creation with the requested path can have created the other one: the same, or
/// with the number of a sequential znode, which has ten digits.
fn can_be_created(requested: &Ustring, created: &Ustring) -> bool {
    let number = created.as_bytes().strip_prefix(requested.as_bytes());
    number.is_some_and(|number| match number {
        [] => true,
        [first, digits @ ..] => {
            digits.len() >= 9
                && (first.is_ascii_digit() || *first == b'-')
                && digits.iter().all(u8::is_ascii_digit)
        }
    })
}

/// Returns the paths of a multi's operations.
pub(crate) fn multi_paths(ops: &[MultiOp]) -> impl Iterator<Item = Ustring> {
    let path = |op: &MultiOp| match op {
        MultiOp::Create(Create { path, .. })
        | MultiOp::Delete { path, .. }
        | MultiOp::SetData { path, .. }
        | MultiOp::Check { path, .. } => path.clone().unwrap_or_default(),
    };
    ops.iter().map(path)
}

/// Returns [`Entry::paths`] of a request.
pub(crate) fn paths_in_reply(request: &Request) -> Box<[Ustring]> {
    match request {
        Request::Create(create) => create.path.iter().cloned().collect(),
        Request::Multi(ops) => multi_paths(ops).collect(),
        _ => Box::default(),
    }
}

/// A request, and how to handle its reply.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) xid: Xid,
    pub(crate) op: OpCode,
    /// The path of a creation, or those of a multi's operations, which the reply must fit.
    pub(crate) paths: Box<[Ustring]>,
    /// The caller that waits for the reply, if there is one.
    pub(crate) token: Option<Token>,
    /// The only session in which it may be sent; `None` for any.
    pub(crate) epoch: Option<Epoch>,
    /// When the caller stops waiting.
    pub(crate) deadline: Option<Time>,
    pub(crate) registering: Option<Box<Registering>>,
    pub(crate) if_abandoned: Option<Box<IfAbandoned>>,
}

impl Entry {
    /// Returns whether this can be the reply to the request: a znode that the request cannot have
    /// created shows that the reply was damaged.
    pub(crate) fn fits(&self, reply: &Reply) -> bool {
        match reply {
            Reply::PathStat(path, _) => {
                let mut requested = self.paths.iter();
                requested.all(|requested| can_be_created(requested, path))
            }
            Reply::Multi(results) if self.op == OpCode::Multi => {
                let mut both = results.iter().zip(&self.paths);
                results.len() == self.paths.len()
                    && both.all(|(result, requested)| match result {
                        MultiResult::Create { path } | MultiResult::Create2 { path, .. } => {
                            can_be_created(requested, path)
                        }
                        _ => true,
                    })
            }
            _ => true,
        }
    }
}

/// An entry that was sent, or is in the output.
#[derive(Debug)]
struct Sent {
    entry: Entry,
    /// When it was added to the output.
    at: Time,
    /// Where its frame begins, in bytes since the start of the connection.
    start: u64,
}

/// An entry that could not be sent yet.
#[derive(Debug)]
struct Unsent {
    entry: Entry,
    frame: Vec<u8>,
}

/// A queue whose items are found by the numbers that they got when they were added.
#[derive(Debug)]
struct Queue<T> {
    /// `None` where an item was removed from the middle; never at the front.
    items: VecDeque<Option<T>>,
    /// The number of the item at the front. It only grows.
    first: u64,
    /// The number of items.
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

    /// Removes and returns all items, in order.
    fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.first += self.items.len() as u64;
        self.len = 0;
        std::mem::take(&mut self.items).into_iter().flatten()
    }

    /// Returns whether it consists mostly of gaps.
    fn is_sparse(&self) -> bool {
        self.items.len() > 2 * self.len + 64
    }
}

/// The position of a caller's latest request, if it is still in a queue.
#[derive(Clone, Copy, Debug)]
enum QueuePosition {
    Sent(u64),
    Unsent(u64),
}

/// The approximate size of a request without its frame. Unit: bytes.
const ENTRY_BYTES: usize = 256;

/// The pending requests, in order.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    sent: Queue<Sent>,
    unsent: Queue<Unsent>,
    /// Indexed by caller, so that the cost of giving up a call does not depend on the number of
    /// calls.
    positions: Vec<QueuePosition>,
    /// The size of the frames that were not sent. Unit: bytes.
    unsent_bytes: usize,
    /// The bytes to write next.
    pub(crate) out: Vec<u8>,
    /// How much was taken from the output since the start of the connection, in bytes.
    taken: u64,
    /// The deadlines of calls whose callers wait.
    deadlines: BTreeSet<(Time, u32)>,
}

impl Requests {
    /// Returns the size of the requests that wait for a connection, to be written, or for a reply.
    /// Unit: bytes, estimated.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.out.len() + self.unsent_bytes + (self.sent.len + self.unsent.len) * ENTRY_BYTES
    }

    /// Returns what a request with this payload will add to [`Requests::pending_bytes`].
    pub(crate) const fn estimate(payload_bytes: usize) -> usize {
        payload_bytes.saturating_add(ENTRY_BYTES)
    }

    /// Adds a request to the output.
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

    /// Adds all kept requests to the output, in order; returns those that must not be sent in this
    /// session.
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

    /// Returns the output in exchange for an empty buffer. From now on it counts as sent, because
    /// it is unknown how much of it will arrive.
    pub(crate) fn take_output(&mut self, empty: Vec<u8>) -> Vec<u8> {
        debug_assert!(empty.is_empty(), "the new buffer must be empty");
        self.taken += self.out.len() as u64;
        std::mem::replace(&mut self.out, empty)
    }

    /// Returns the request to which a reply with this xid belongs, and when it was sent.
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

    /// Handles the loss of the connection: returns the requests that were sent. Those still in the
    /// output wait for the next connection, except those that belong to this one.
    pub(crate) fn disconnected(&mut self) -> Vec<Entry> {
        let mut lost = Vec::new();
        let (taken, out) = (self.taken, std::mem::take(&mut self.out));
        let later: Vec<_> = self.take_unsent().collect();
        let mut sent = self.sent.take().peekable();
        while let Some(Sent { entry, start, .. }) = sent.next() {
            if start < taken || entry.xid.0 < 0 || entry.op == OpCode::Sasl {
                self.leave(&entry);
                lost.push(entry);
                continue;
            }
            let offset =
                |at: u64| usize::try_from(at - taken).expect("offsets are within the output");
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

    /// Handles a caller that no longer waits for its request.
    ///
    /// Returns the request if it was not sent; otherwise it stays, without a token, for its reply.
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

    /// Removes and returns the unsent requests that may only be sent in this session.
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

    /// Removes and returns all unsent requests.
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

    /// Registers the deadline of a request that joins a queue; returns its caller.
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

    /// Removes the deadline of a request that has left its queue.
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
            paths: Box::default(),
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
    fn output_that_was_not_taken_is_sent_on_the_next_connection() {
        let mut requests = Requests::default();
        send(&mut requests, 1);
        assert_eq!(requests.take_output(Vec::new()), [1; 3]);
        for xid in [2, -2, 3] {
            send(&mut requests, xid);
        }
        let lost = requests.disconnected();
        let xids = |entries: &[Entry]| entries.iter().map(|it| it.xid.0).collect::<Vec<_>>();
        // The ping was in the output too, but belongs to the lost connection.
        assert_eq!(xids(&lost), [1, -2]);
        assert!(requests.send_kept(Time::ZERO, Epoch(1)).is_empty());
        assert_eq!(requests.take_output(Vec::new()), [2, 2, 2, 3, 3, 3]);
        assert_eq!(requests.answered(Xid(2)).unwrap().0.xid, Xid(2));
    }

    #[test]
    fn replies_out_of_order_are_refused_except_for_auth() {
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
    fn deadline_ends_the_wait_before_and_after_sending() {
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
    fn cost_of_giving_up_a_call_does_not_depend_on_the_number_of_calls() {
        // Each call searched for its request among all others: a task that was aborted with 100,000
        // pending calls blocked the client for half a minute.
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
            // Give up calls from both ends, then by their deadlines.
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
    fn reused_slot_is_not_mistaken_for_its_previous_caller() {
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
    fn pending_bytes_count_a_request_until_its_reply() {
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
