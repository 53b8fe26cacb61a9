//! Deletes, in the background, znodes whose creator has stopped waiting.
//!
//! A ticket names a znode, or says where to look for one whose creation got no reply. The client
//! sends requests for it until the server confirms the deletion or the session is over, which
//! deletes ephemeral znodes anyway.
//!
//! To look for a znode the client lists the children of its parent. If that list is too long for
//! the client, or cannot be read, its reply ends the connection (hazard H36). From then on the
//! session lists no parent: the client asks for its own ephemeral znodes below the prefix instead,
//! which the server selects, and deletes the znode that has the prefix as its whole name.
//!
//! Source: `docs/curator-recipes.md` sections 2.3, 2.5 and 2.9; hazards H11, H20 to H24.

use std::{collections::BTreeMap, time::Duration};

use minikeeper_protocol::{ErrorCode, Reply, Request, Ustring};

use super::{
    backoff::{Chance, Pauses},
    outcome::{Cause, Epoch, Time},
    schedule::Schedule,
};

/// The waits before a failed ticket is retried.
const PAUSES: Pauses = Pauses {
    min: Duration::from_millis(20),
    max: Duration::from_secs(5),
};

/// The wait after a request of a ticket has ended the connection: longer than a connection lives
/// that does not count as lasting, so that the other requests get their replies first.
const PAUSE_AFTER_END: Duration = Duration::from_secs(2);

/// How often the deletion of a znode that has children is tried again.
const NOT_EMPTY_MAX: u32 = 10;

/// The znode to delete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// The znode with this path.
    Named(Ustring),
    /// The znode with this path, or what [`Target::Prefixed`] finds if there is none: the reply to
    /// its creation has told the path.
    Created {
        path: Ustring,
        parent: Ustring,
        prefix: Ustring,
    },
    /// Any child of `parent` whose name begins with `prefix`: its creation got no reply.
    Prefixed { parent: Ustring, prefix: Ustring },
}

/// The ticket and the step to which a request belongs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct CleanupRequest {
    ticket: u32,
    step: Step,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Step {
    Sync,
    /// Lists the children of the parent.
    List,
    /// Lists the ephemeral znodes of the session.
    Ephemerals,
    Delete,
}

#[derive(Debug)]
struct Ticket {
    target: Target,
    epoch: Epoch,
    /// The number of failures.
    attempts: u32,
    /// Whether one of its requests has ended a connection, so that a new connection is no reason
    /// to retry earlier.
    is_slow: bool,
    /// Pending deletions of found children.
    deleting: u32,
}

/// All tickets that are not done.
#[derive(Debug)]
pub(crate) struct Cleanups {
    tickets: BTreeMap<u32, Ticket>,
    /// When tickets are tried next. A ticket with pending requests is absent.
    due: Schedule<u32>,
    next: u32,
    /// Tickets given up because the server does not permit the deletion.
    forbidden: u64,
    /// How the sessions of this epoch look for znodes.
    search: (Epoch, Search),
    chance: Chance,
}

/// How to look for znodes whose creation got no reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Search {
    /// By a list of the parent's children, which every server knows.
    Children,
    /// By the session's ephemeral znodes, after a list of children has ended a connection.
    Ephemerals,
    /// Not in this session: a list of children ended a connection, and the server has no list of
    /// ephemeral znodes (before 3.6). The end of the session deletes them.
    Nothing,
}

impl Cleanups {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            tickets: BTreeMap::new(),
            due: Schedule::default(),
            next: 0,
            forbidden: 0,
            search: (Epoch(0), Search::Children),
            chance: Chance::new(seed),
        }
    }

    /// Forgets every ticket.
    pub(crate) fn clear(&mut self) {
        self.tickets.clear();
        self.due.clear();
    }

    /// Adds a ticket that is due at once.
    pub(crate) fn add(&mut self, now: Time, epoch: Epoch, target: Target) {
        self.tickets.insert(
            self.next,
            Ticket {
                target,
                epoch,
                attempts: 0,
                is_slow: false,
                deleting: 0,
            },
        );
        self.due.set(self.next, now);
        self.next = self.next.wrapping_add(1);
    }

    pub(crate) fn len(&self) -> usize {
        self.tickets.len()
    }

    pub(crate) const fn forbidden(&self) -> u64 {
        self.forbidden
    }

    /// Returns the source of the jitter of pauses.
    pub(crate) const fn chance(&mut self) -> &mut Chance {
        &mut self.chance
    }

    pub(crate) fn next_due(&self) -> Option<Time> {
        self.due.next()
    }

    fn remove(&mut self, ticket: u32) {
        self.tickets.remove(&ticket);
        self.due.remove(&ticket);
    }

    /// Returns how to look for znodes in a session of this epoch.
    const fn search(&self, epoch: Epoch) -> Search {
        match self.search {
            (of, search) if of.0 == epoch.0 => search,
            _ => Search::Children,
        }
    }

    /// Returns the requests to send now, in a session of this epoch.
    ///
    /// The server deletes a znode of an earlier session with that session. One deletion shortens
    /// the wait of other contenders; then the ticket is dropped.
    pub(crate) fn requests(&mut self, now: Time, epoch: Epoch) -> Vec<(CleanupRequest, Request)> {
        let mut requests = Vec::new();
        if self.due.next().is_none_or(|due| due > now) {
            return requests;
        }
        let search = self.search(epoch);
        for number in self.due.take_due(now) {
            let Some(ticket) = self.tickets.get_mut(&number) else {
                continue;
            };
            let mut push = |step, request| {
                let ticket = number;
                requests.push((CleanupRequest { ticket, step }, request));
            };
            match &ticket.target {
                Target::Named(path) | Target::Created { path, .. } => {
                    push(Step::Delete, delete(path.clone()));
                }
                Target::Prefixed { .. } if ticket.epoch != epoch => {
                    self.tickets.remove(&number);
                }
                Target::Prefixed { parent, prefix } => {
                    // Changes that another server has not applied yet are visible only after a sync
                    // (`docs/curator-recipes.md` section 14.6).
                    let sync = Request::Sync {
                        path: Some(parent.clone()),
                    };
                    match search {
                        Search::Children => {
                            push(Step::Sync, sync);
                            let path = Some(parent.clone());
                            push(Step::List, Request::GetChildren { path, watch: false });
                        }
                        Search::Ephemerals => {
                            push(Step::Sync, sync);
                            let prefix = Some(join(parent, prefix));
                            push(Step::Ephemerals, Request::GetEphemerals { prefix });
                        }
                        Search::Nothing => self.due.set(number, now + PAUSES.max),
                    }
                }
            }
        }
        requests
    }

    /// Handles the reply to a clean-up request; returns the requests to send next.
    pub(crate) fn answered(
        &mut self,
        now: Time,
        epoch: Epoch,
        step: CleanupRequest,
        answer: Result<Reply, ErrorCode>,
    ) -> Vec<(CleanupRequest, Request)> {
        let Some(ticket) = self.tickets.get_mut(&step.ticket) else {
            return Vec::new();
        };
        match (step.step, answer) {
            (Step::Sync, _) => {}
            (Step::List | Step::Ephemerals, Ok(reply)) => {
                let Target::Prefixed { parent, prefix } = &ticket.target else {
                    return Vec::new();
                };
                let paths = match reply {
                    Reply::Children(names) => names
                        .iter()
                        .filter(|name| name.as_bytes().starts_with(prefix.as_bytes()))
                        .map(|name| join(parent, name))
                        .collect(),
                    Reply::Ephemerals(mut paths) => {
                        // The znode may be persistent, and have no number.
                        let whole = join(parent, prefix);
                        let is_child = |path: &Ustring| {
                            let name = path.as_bytes().strip_prefix(whole.as_bytes());
                            name.is_some_and(|name| !name.contains(&b'/'))
                        };
                        paths.retain(|path| is_child(path) && *path != whole);
                        if !prefix.as_bytes().is_empty() {
                            paths.push(whole);
                        }
                        paths
                    }
                    _ => Vec::new(),
                };
                let of_delete = CleanupRequest {
                    step: Step::Delete,
                    ..step
                };
                if paths.is_empty() {
                    self.remove(step.ticket);
                } else {
                    ticket.deleting = u32::try_from(paths.len()).unwrap_or(u32::MAX);
                }
                return paths
                    .into_iter()
                    .map(|path| (of_delete, delete(path)))
                    .collect();
            }
            (Step::List, Err(ErrorCode::NoNode)) => self.remove(step.ticket),
            (Step::Ephemerals, Err(ErrorCode::Unimplemented)) => {
                self.search = (epoch, Search::Nothing);
                self.retry(now, step.ticket);
            }
            (Step::Delete, Ok(_)) => self.deleted(step.ticket),
            (Step::Delete, Err(ErrorCode::NoNode)) => {
                // An earlier attempt may have deleted it.
                let is_first = ticket.attempts == 0 && ticket.epoch == epoch;
                if let Target::Created { parent, prefix, .. } = &ticket.target
                    && is_first
                {
                    // Somebody else has deleted it, or the path was damaged on its way to here.
                    let (parent, prefix) = (parent.clone(), prefix.clone());
                    ticket.target = Target::Prefixed { parent, prefix };
                    self.due.set(step.ticket, now);
                    return self.requests(now, epoch);
                }
                self.deleted(step.ticket);
            }
            (_, Err(ErrorCode::NoAuth)) => {
                self.forbidden += 1;
                self.remove(step.ticket);
            }
            (Step::Delete, Err(ErrorCode::NotEmpty)) if ticket.attempts >= NOT_EMPTY_MAX => {
                self.forbidden += 1;
                self.remove(step.ticket);
            }
            _ if ticket.epoch != epoch => self.remove(step.ticket),
            _ => self.retry(now, step.ticket),
        }
        Vec::new()
    }

    /// Handles the confirmed deletion of one znode of a ticket. If that of another one has failed,
    /// the ticket is tried again.
    fn deleted(&mut self, number: u32) {
        if self.due.contains(&number) {
            return;
        }
        if let Some(ticket) = self.tickets.get_mut(&number) {
            ticket.deleting = ticket.deleting.saturating_sub(1);
            if ticket.deleting == 0 {
                self.remove(number);
            }
        }
    }

    /// Handles a clean-up request that will get no reply.
    pub(crate) fn failed(&mut self, now: Time, step: CleanupRequest, cause: Cause) {
        let is_too_large = matches!(cause, Cause::ReplyTooLarge { .. });
        if let Some(ticket) = self.tickets.get_mut(&step.ticket)
            && (is_too_large || cause == Cause::ReplyUnreadable)
        {
            ticket.is_slow = true;
            match step.step {
                Step::List => self.search = (ticket.epoch, Search::Ephemerals),
                Step::Ephemerals if is_too_large => {
                    self.search = (ticket.epoch, Search::Nothing);
                }
                _ => {}
            }
        }
        self.retry(now, step.ticket);
    }

    /// Tries a ticket again after a pause, unless that is planned already.
    fn retry(&mut self, now: Time, number: u32) {
        if self.due.contains(&number) {
            return;
        }
        if let Some(ticket) = self.tickets.get_mut(&number) {
            let pause = PAUSES.after(ticket.attempts, &mut self.chance);
            let min = match ticket.is_slow {
                true => PAUSE_AFTER_END,
                false => Duration::ZERO,
            };
            self.due.set(number, now.saturating_add(pause.max(min)));
            ticket.attempts = ticket.attempts.saturating_add(1);
            ticket.deleting = 0;
        }
    }

    /// Makes all pauses end now, because there is a new connection.
    pub(crate) fn hurry(&mut self, now: Time) {
        let is_hurried = |number: &u32| self.tickets.get(number).is_some_and(|it| !it.is_slow);
        let waiting: Vec<_> = self.due.keys().copied().filter(is_hurried).collect();
        for number in waiting {
            self.due.set(number, now);
        }
    }
}

const fn delete(path: Ustring) -> Request {
    Request::Delete {
        path: Some(path),
        version: -1,
    }
}

fn join(parent: &Ustring, name: &Ustring) -> Ustring {
    let mut path = parent.as_bytes().to_vec();
    if path != b"/" {
        path.push(b'/');
    }
    path.extend_from_slice(name.as_bytes());
    Ustring::from(bytes::Bytes::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Duration::from_secs(1);
    const EPOCH: Epoch = Epoch(1);

    fn named() -> Cleanups {
        let mut cleanups = Cleanups::new(1);
        cleanups.add(NOW, EPOCH, Target::Named("/l/a".into()));
        cleanups
    }

    #[test]
    fn deletion_of_a_named_znode_is_retried_until_the_server_confirms_it() {
        let mut cleanups = named();
        let requests = cleanups.requests(NOW, EPOCH);
        let [(step, request)] = &requests[..] else {
            panic!("{requests:?}");
        };
        assert_eq!(*request, delete("/l/a".into()));
        assert!(
            cleanups.requests(NOW, EPOCH).is_empty(),
            "already requested"
        );
        cleanups.failed(NOW, *step, Cause::ConnectionLost);
        let due = cleanups.next_due().unwrap();
        assert!(due > NOW);
        let (step, _) = cleanups.requests(due, EPOCH).remove(0);
        cleanups.answered(due, EPOCH, step, Err(ErrorCode::NoNode));
        assert_eq!(cleanups.len(), 0);
    }

    #[test]
    fn pauses_between_retries_are_bounded() {
        let mut cleanups = named();
        let mut now = NOW;
        for _ in 0..40 {
            let (step, _) = cleanups.requests(now, EPOCH).remove(0);
            cleanups.failed(now, step, Cause::ConnectionLost);
            let pause = cleanups.next_due().unwrap() - now;
            assert!((PAUSES.min / 2..=PAUSES.max).contains(&pause));
            now += pause;
        }
    }

    #[test]
    fn unanswered_creation_is_looked_for_after_a_sync() {
        let mut cleanups = Cleanups::new(1);
        let target = Target::Prefixed {
            parent: "/".into(),
            prefix: "_c_1-".into(),
        };
        cleanups.add(NOW, EPOCH, target);
        let requests = cleanups.requests(NOW, EPOCH);
        assert!(matches!(requests[0].1, Request::Sync { .. }));
        assert!(matches!(requests[1].1, Request::GetChildren { .. }));
        let names = vec!["_c_1-lock-3".into(), "_c_2-lock-4".into()];
        let list = requests[1].0;
        cleanups.answered(NOW, EPOCH, requests[0].0, Ok(Reply::Path(None)));
        let deletes = cleanups.answered(NOW, EPOCH, list, Ok(Reply::Children(names)));
        assert_eq!(deletes.len(), 1);
        assert_eq!(deletes[0].1, delete("/_c_1-lock-3".into()));
        assert_eq!(cleanups.len(), 1);
        cleanups.answered(NOW, EPOCH, deletes[0].0, Ok(Reply::Empty));
        assert_eq!(cleanups.len(), 0);
    }

    #[test]
    fn later_session_deletes_named_znodes_and_drops_other_tickets() {
        let mut cleanups = named();
        let target = Target::Prefixed {
            parent: "/l".into(),
            prefix: "x".into(),
        };
        cleanups.add(NOW, EPOCH, target);
        let requests = cleanups.requests(NOW, Epoch(2));
        assert_eq!(requests.len(), 1);
        let refused = Err(ErrorCode::NotEmpty);
        cleanups.answered(NOW, Epoch(2), requests[0].0, refused);
        assert_eq!(cleanups.len(), 0);
    }

    #[test]
    fn forbidden_deletion_is_counted_and_given_up() {
        let mut cleanups = named();
        let (step, _) = cleanups.requests(NOW, EPOCH).remove(0);
        cleanups.answered(NOW, EPOCH, step, Err(ErrorCode::NoAuth));
        assert_eq!((cleanups.len(), cleanups.forbidden()), (0, 1));
    }
}
