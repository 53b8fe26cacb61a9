//! The holds in a history: which contender had the lock, and from when to when.

use std::collections::VecDeque;

use crate::{
    history::{Event, History, What},
    peers::Access,
};

/// One period in which a contender had the lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hold {
    /// The contender.
    pub contender: u32,
    /// What it asked for.
    pub access: Access,
    /// When the request was due, in an open loop; otherwise when it was made.
    pub due_ns: u64,
    /// When it called acquire.
    pub asked_ns: u64,
    /// When acquire returned.
    pub granted_ns: u64,
    /// When it stopped using the lock: it called release, learned of the loss, or died. The end of
    /// the history if none of these happened.
    pub end_ns: u64,
    /// When release returned, if it succeeded.
    pub released_ns: Option<u64>,
    /// The fencing token.
    pub token: Option<u64>,
    /// When it wrote, and whether that was accepted.
    pub writes: Vec<(u64, bool)>,
}

/// A history that is impossible, so it was recorded wrongly.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("contender {contender}, {before}, at {at_ns} ns: {what:?}")]
pub struct Nonsense {
    contender: u32,
    before: &'static str,
    at_ns: u64,
    what: What,
}

/// All holds in the order of their grants.
///
/// # Errors
/// If the history is impossible, for example if a contender is granted a lock it did not ask for.
pub fn holds(history: &History) -> Result<Vec<Hold>, Nonsense> {
    let mut contenders = vec![Contender::default(); history.sessions.len()];
    let end_ns = history.events.last().map_or(0, |event| event.at_ns);
    let mut holds = Vec::new();
    for event in &history.events {
        let contender = usize::try_from(event.contender)
            .ok()
            .and_then(|at| contenders.get_mut(at));
        let Some(contender) = contender else {
            return Err(nonsense(event, "which has no session"));
        };
        contender.step(event, end_ns, &mut holds)?;
    }
    holds.sort_by_key(|hold: &Hold| hold.granted_ns);
    Ok(holds)
}

/// The state of a contender.
#[derive(Clone, Debug, Default)]
enum Stage {
    #[default]
    Idle,
    /// What it asked for, when, and when the request was due.
    Asking(Access, u64, u64),
    /// The hold at this index of the list.
    Holding(usize),
    Releasing(usize),
    /// It knows that the lock is lost, and may still call release.
    Lost,
}

#[derive(Clone, Debug, Default)]
struct Contender {
    stage: Stage,
    /// Due times of requests that have not been made yet.
    due_ns: VecDeque<u64>,
}

impl Contender {
    fn step(&mut self, event: &Event, end_ns: u64, holds: &mut Vec<Hold>) -> Result<(), Nonsense> {
        let at_ns = event.at_ns;
        self.stage = match (&self.stage, event.what) {
            (_, What::Due) => {
                self.due_ns.push_back(at_ns);
                return Ok(());
            }
            (Stage::Idle, What::Asked(access)) => {
                Stage::Asking(access, at_ns, self.due_ns.pop_front().unwrap_or(at_ns))
            }
            (Stage::Asking(access, asked_ns, due_ns), What::Granted { token }) => {
                holds.push(Hold {
                    contender: event.contender,
                    access: *access,
                    due_ns: *due_ns,
                    asked_ns: *asked_ns,
                    granted_ns: at_ns,
                    end_ns,
                    released_ns: None,
                    token,
                    writes: Vec::new(),
                });
                Stage::Holding(holds.len() - 1)
            }
            (
                Stage::Asking(..),
                What::Refused | What::GaveUp | What::AcquireUnknown | What::Died,
            ) => Stage::Idle,
            (Stage::Holding(at), What::Wrote { is_accepted, .. }) => {
                holds[*at].writes.push((at_ns, is_accepted));
                Stage::Holding(*at)
            }
            (Stage::Holding(at), What::Releasing) => {
                holds[*at].end_ns = at_ns;
                Stage::Releasing(*at)
            }
            (Stage::Holding(at), What::Died) => {
                holds[*at].end_ns = at_ns;
                Stage::Idle
            }
            (Stage::Holding(at), What::Lost) => {
                holds[*at].end_ns = at_ns;
                Stage::Lost
            }
            (Stage::Lost, What::Releasing) => Stage::Lost,
            (Stage::Releasing(at), What::Released) => {
                holds[*at].released_ns = Some(at_ns);
                Stage::Idle
            }
            (Stage::Releasing(_), What::ReleaseRefused | What::ReleaseUnknown | What::Died) => {
                Stage::Idle
            }
            (
                Stage::Lost,
                What::Released | What::ReleaseRefused | What::ReleaseUnknown | What::Died,
            ) => Stage::Idle,
            (stage, _) => return Err(nonsense(event, stage.text())),
        };
        Ok(())
    }
}

impl Stage {
    const fn text(&self) -> &'static str {
        match self {
            Self::Idle => "which is idle",
            Self::Asking(..) => "which waits for the lock",
            Self::Holding(_) => "which has the lock",
            Self::Releasing(_) => "which releases the lock",
            Self::Lost => "which knows that the lock is lost",
        }
    }
}

const fn nonsense(event: &Event, before: &'static str) -> Nonsense {
    Nonsense {
        contender: event.contender,
        before,
        at_ns: event.at_ns,
        what: event.what,
    }
}
