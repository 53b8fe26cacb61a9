//! Counts how often a fault has acted, and on what last; waits for a count.

use std::{fmt, pin::pin, time::Duration};

use minikeeper_engine::Input;
use minikeeper_protocol::{OpCode, SessionId};
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

/// What a fault has acted on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FaultHit {
    /// The session of the client; `None` for a connection that is refused, and for a handshake that
    /// was not carried out and resumes no session.
    pub session: Option<SessionId>,
    /// The operation by its name in the protocol, `createSession` for a handshake; for an event its
    /// kind, such as `NodeDeleted`; `connect` for a connection.
    pub op: &'static str,
    /// The path: the first, if there are several.
    pub path: Option<String>,
    /// The client's number for the request; `None` for handshakes, connections and events.
    pub xid: Option<i32>,
}

impl FaultHit {
    /// The longest path that is kept. Unit: bytes.
    const PATH_BYTES_MAX: usize = 1_024;

    /// Describes a client's message.
    pub(crate) fn of(input: &Input, session: SessionId) -> Self {
        let mut hit = Self {
            session: (session != SessionId::NONE).then_some(session),
            op: "unknown",
            ..Self::default()
        };
        match input {
            Input::Connect { .. } => hit.op = OpCode::CreateSession.name(),
            Input::Request { xid, request, .. } => {
                hit.op = request.op().name();
                hit.xid = Some(xid.0);
                request.any_path(|path| {
                    hit.path = Some(Self::kept(path.as_bytes()));
                    true
                });
            }
            Input::UnknownOp { xid, .. } | Input::Undecodable { xid, .. } => hit.xid = Some(xid.0),
            _ => {}
        }
        hit
    }

    /// Describes an event for this session.
    pub(crate) fn of_event(kind: &'static str, path: &[u8], session: SessionId) -> Self {
        Self {
            session: Some(session),
            op: kind,
            path: Some(Self::kept(path)),
            xid: None,
        }
    }

    fn kept(path: &[u8]) -> String {
        let kept = &path[..path.len().min(Self::PATH_BYTES_MAX)];
        String::from_utf8_lossy(kept).into_owned()
    }
}

impl fmt::Display for FaultHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.op)?;
        if let Some(path) = &self.path {
            write!(f, " {}", path.escape_debug())?;
        }
        if let Some(session) = self.session {
            write!(f, " of session {session}")?;
        }
        if let Some(xid) = self.xid {
            write!(f, ", xid {xid}")?;
        }
        Ok(())
    }
}

/// The counters of one fault, shared with the callers that wait for it.
#[derive(Debug, Default)]
pub struct Hits {
    seen: Mutex<Seen>,
    last: Mutex<Option<FaultHit>>,
    /// Both are notified of every change: threads wait on the first, tasks on the second.
    changed: Condvar,
    notify: Notify,
}

/// The observed effects of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// The number of messages that it matched.
    pub matches: u64,
    /// The number of times it has acted.
    pub hits: u64,
    /// Whether it was removed.
    pub is_removed: bool,
}

impl Hits {
    /// Returns the counts.
    pub fn seen(&self) -> Seen {
        *self.seen.lock()
    }

    pub(crate) fn matched(&self) {
        self.seen.lock().matches += 1;
    }

    /// Returns what it acted on last.
    pub fn last(&self) -> Option<FaultHit> {
        self.last.lock().clone()
    }

    /// Counts an action that is done, or that has begun if it takes time.
    pub(crate) fn hit(&self, what: FaultHit) {
        // Before the count: a caller that sees the count finds what was hit.
        *self.last.lock() = Some(what);
        self.change(|seen| seen.hits += 1);
    }

    pub(crate) fn remove(&self) {
        self.change(|seen| seen.is_removed = true);
    }

    fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock());
        self.changed.notify_all();
        self.notify.notify_waiters();
    }

    /// Waits until the fault has acted `hits` times, or is removed.
    pub async fn until(&self, hits: u64) -> Seen {
        loop {
            let mut changed = pin!(self.notify.notified());
            // Registered before reading the counts, so that no change in between is missed.
            changed.as_mut().enable();
            let seen = self.seen();
            if seen.hits >= hits || seen.is_removed {
                return seen;
            }
            changed.await;
        }
    }

    /// Does the same as [`Hits::until`], blocking the thread for at most `within`.
    pub fn until_blocking(&self, hits: u64, within: Duration) -> Seen {
        let mut seen = self.seen.lock();
        let waits = |seen: &mut Seen| seen.hits < hits && !seen.is_removed;
        self.changed.wait_while_for(&mut seen, waits, within);
        *seen
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn changes_wake_waiting_threads_and_tasks() {
        let hits = Arc::new(Hits::default());
        let counting = Arc::clone(&hits);
        let thread = std::thread::spawn(move || {
            for _ in 0..3 {
                counting.hit(FaultHit::default());
            }
        });
        let seen = hits.until_blocking(3, Duration::from_secs(10));
        assert_eq!(seen.hits, 3);
        thread.join().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let seen = runtime.block_on(async {
            let waiting = Arc::clone(&hits);
            let waiting = tokio::spawn(async move { waiting.until(4).await });
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            hits.remove();
            waiting.await.unwrap()
        });
        assert!(seen.is_removed);
    }
}
