//! Deletes, in the background, znodes whose creator has stopped waiting.
//!
//! A ticket names a znode, or says where to look for one whose creation got no reply. The client
//! sends requests for it until the server confirms the deletion or the session is over, which
//! deletes ephemeral znodes anyway.
//!
//! Source: `docs/curator-recipes.md` sections 2.3, 2.5 and 2.9; hazards H11, H20 to H24.

use std::{collections::BTreeMap, time::Duration};

use minikeeper_protocol::{ErrorCode, Reply, Request, Ustring};

use super::{
    backoff::{Chance, Pauses},
    outcome::{Epoch, Time},
};

/// The waits before a failed ticket is retried.
const PAUSES: Pauses = Pauses {
    min: Duration::from_millis(20),
    max: Duration::from_secs(5),
};

/// The znode to delete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// The znode with this path.
    Named(Ustring),
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
    List,
    Delete,
}

#[derive(Debug)]
struct Ticket {
    target: Target,
    epoch: Epoch,
    /// The number of failures.
    attempts: u32,
    /// When it is tried next; `None` while requests for it are pending.
    due: Option<Time>,
    /// Pending deletions of found children.
    deleting: u32,
}

/// All tickets that are not done.
#[derive(Debug)]
pub(crate) struct Cleanups {
    tickets: BTreeMap<u32, Ticket>,
    next: u32,
    /// Tickets given up because the server does not permit the deletion.
    forbidden: u64,
    chance: Chance,
}

impl Cleanups {
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            tickets: BTreeMap::new(),
            next: 0,
            forbidden: 0,
            chance: Chance::new(seed),
        }
    }

    /// Forgets every ticket.
    pub(crate) fn clear(&mut self) {
        self.tickets.clear();
    }

    /// Adds a ticket that is due at once.
    pub(crate) fn add(&mut self, now: Time, epoch: Epoch, target: Target) {
        self.tickets.insert(
            self.next,
            Ticket {
                target,
                epoch,
                attempts: 0,
                due: Some(now),
                deleting: 0,
            },
        );
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
        self.tickets.values().filter_map(|ticket| ticket.due).min()
    }

    /// Returns the requests to send now, in a session of this epoch.
    ///
    /// The server deletes a znode of an earlier session with that session. One deletion shortens
    /// the wait of other contenders; then the ticket is dropped.
    pub(crate) fn requests(&mut self, now: Time, epoch: Epoch) -> Vec<(CleanupRequest, Request)> {
        let mut requests = Vec::new();
        self.tickets
            .retain(|_, ticket| ticket.epoch == epoch || matches!(ticket.target, Target::Named(_)));
        for (number, ticket) in &mut self.tickets {
            if ticket.due.is_none_or(|due| due > now) {
                continue;
            }
            ticket.due = None;
            let step = |step| CleanupRequest {
                ticket: *number,
                step,
            };
            match &ticket.target {
                Target::Named(path) => requests.push((step(Step::Delete), delete(path.clone()))),
                Target::Prefixed { parent, .. } => {
                    // Changes that another server has not applied yet are visible only after a sync
                    // (`docs/curator-recipes.md` section 14.6).
                    let sync = Request::Sync {
                        path: Some(parent.clone()),
                    };
                    let list = Request::GetChildren {
                        path: Some(parent.clone()),
                        watch: false,
                    };
                    requests.push((step(Step::Sync), sync));
                    requests.push((step(Step::List), list));
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
            (Step::List, Ok(Reply::Children(names))) => {
                let Target::Prefixed { parent, prefix } = &ticket.target else {
                    return Vec::new();
                };
                let found = names
                    .iter()
                    .filter(|name| name.as_bytes().starts_with(prefix.as_bytes()));
                let requests: Vec<_> = found
                    .map(|name| {
                        let step = CleanupRequest {
                            step: Step::Delete,
                            ..step
                        };
                        (step, delete(join(parent, name)))
                    })
                    .collect();
                if requests.is_empty() {
                    self.tickets.remove(&step.ticket);
                } else {
                    ticket.deleting = u32::try_from(requests.len()).unwrap_or(u32::MAX);
                }
                return requests;
            }
            (Step::List, Err(ErrorCode::NoNode)) => {
                self.tickets.remove(&step.ticket);
            }
            (Step::Delete, Ok(_) | Err(ErrorCode::NoNode)) => {
                ticket.deleting = ticket.deleting.saturating_sub(1);
                if ticket.deleting == 0 {
                    self.tickets.remove(&step.ticket);
                }
            }
            (_, Err(ErrorCode::NoAuth)) => {
                self.forbidden += 1;
                self.tickets.remove(&step.ticket);
            }
            _ if ticket.epoch != epoch => {
                self.tickets.remove(&step.ticket);
            }
            _ => self.failed(now, step),
        }
        Vec::new()
    }

    /// Handles a clean-up request that will get no reply.
    pub(crate) fn failed(&mut self, now: Time, step: CleanupRequest) {
        if let Some(ticket) = self.tickets.get_mut(&step.ticket)
            && ticket.due.is_none()
        {
            ticket.due = Some(now + PAUSES.after(ticket.attempts, &mut self.chance));
            ticket.attempts = ticket.attempts.saturating_add(1);
            ticket.deleting = 0;
        }
    }

    /// Makes all pauses end now, because there is a new connection.
    pub(crate) fn hurry(&mut self, now: Time) {
        for ticket in self.tickets.values_mut() {
            if let Some(due) = &mut ticket.due {
                *due = now;
            }
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
        cleanups.failed(NOW, *step);
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
            cleanups.failed(now, step);
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
