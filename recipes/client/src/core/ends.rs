//! How things end: requests without a reply, sessions, the client.
//!
//! Source: `docs/curator-recipes.md` sections 2.7 to 2.9; `docs/client.md` section 6.

use minikeeper_protocol::{ErrorCode, FrameError, Reply, Request, Xid, Zxid, frame};

use super::{
    cleanup::Target,
    machine::{Core, Link},
    outcome::{Cause, Change, Effects, Fault, LostReason, Outcome, Time, Verdict, WatchEnd},
    requests::{Entry, IfAbandoned, Token},
};

impl Core {
    /// Tells of a change, unless closing has begun: that was told, and is the last.
    pub(super) fn tell(&self, change: Change, effects: &mut impl Effects) {
        if self.closing.is_none() {
            effects.changed(change);
        }
    }

    /// The session is over. There is no connection, or none of it.
    pub(super) fn lose(&mut self, now: Time, reason: LostReason, effects: &mut impl Effects) {
        if self.session.take().is_none() {
            return;
        }
        let over = self.epoch;
        self.last_zxid = Zxid(0);
        let change = Change::Lost {
            epoch: over,
            reason,
        };
        self.tell(change, effects);
        for watch in self.watches.end() {
            effects.watch_ended(watch, WatchEnd::EpochOver);
        }
        for entry in self.requests.take_kept_of(over) {
            self.not_sent(now, entry, Cause::SessionLost, effects);
        }
        // A handshake that asks to go on with it is of no use any more.
        if reason == LostReason::Presumed && matches!(self.link, Link::Handshaking { .. }) {
            self.link = Link::Down {
                retry_at: self.hosts.failed(now, Time::ZERO),
            };
            self.requests.out.clear();
        }
    }

    pub(super) fn lost(
        &mut self,
        now: Time,
        entry: Entry,
        cause: Cause,
        effects: &mut impl Effects,
    ) {
        self.unregistered(now, &entry);
        match entry.token {
            Some(Token::Caller(caller)) => effects.completed(caller, Outcome::Unknown(cause)),
            Some(Token::Cleanup(step)) => self.cleanups.failed(now, step),
            None => {
                let target = match entry.if_abandoned.map(|it| *it) {
                    Some(IfAbandoned::DeleteCreated { parent, prefix }) => {
                        Target::Prefixed { parent, prefix }
                    }
                    Some(IfAbandoned::DeleteStill(path)) => Target::Named(path),
                    // The watch goes with the connection.
                    Some(IfAbandoned::RemoveWatchStill(..)) | None => return,
                };
                self.cleanups.add(now, self.epoch, target);
            }
        }
    }

    /// What comes next cannot be read, and the connection has to end. Whoever asked for a reply that
    /// is too long is told: asking again would end the next connection too (hazard H36).
    pub(super) fn unreadable(
        &mut self,
        now: Time,
        frame: &[u8],
        error: FrameError,
        effects: &mut impl Effects,
    ) -> Fault {
        if let FrameError::TooLong { length, bytes_max } = error
            && self.link == Link::Up
            && let Some(xid) = frame[frame::PREFIX_BYTES..].first_chunk()
            && let Some((entry, _)) = self.requests.answered(Xid(i32::from_be_bytes(*xid)))
        {
            let bytes = length;
            let cause = Cause::ReplyTooLarge { bytes, bytes_max };
            self.lost(now, entry, cause, effects);
        }
        Fault::Frame(error)
    }

    /// Does what is to be done about the outcome of a request that nobody looks at.
    pub(crate) fn unseen(&mut self, now: Time, if_abandoned: IfAbandoned, outcome: Outcome) {
        let target = match (if_abandoned, outcome) {
            (IfAbandoned::RemoveWatchStill(kind, path), Outcome::Answered { result, .. }) => {
                let passes = |code: ErrorCode| Verdict::of(code) != Verdict::Refused;
                let is_refused = result.is_err_and(passes);
                let chance = self.cleanups.chance();
                self.watches
                    .removal_answered(now, kind, &path, is_refused, chance);
                return;
            }
            (
                IfAbandoned::DeleteCreated { .. },
                Outcome::Answered {
                    result: Ok(Reply::Path(Some(path)) | Reply::PathStat(path, _)),
                    epoch,
                    ..
                },
            ) => return self.clean_up(now, epoch, Target::Named(path)),
            (IfAbandoned::DeleteCreated { parent, prefix }, Outcome::Unknown(_)) => {
                Target::Prefixed { parent, prefix }
            }
            (
                IfAbandoned::DeleteStill(path),
                Outcome::Answered {
                    result: Err(code), ..
                },
            ) if code != ErrorCode::NoNode => Target::Named(path),
            (IfAbandoned::DeleteStill(path), Outcome::Unknown(_) | Outcome::NotSent(_)) => {
                Target::Named(path)
            }
            _ => return,
        };
        self.clean_up(now, self.epoch, target);
    }

    pub(super) fn not_sent(
        &mut self,
        now: Time,
        entry: Entry,
        cause: Cause,
        effects: &mut impl Effects,
    ) {
        self.unregistered(now, &entry);
        match entry.token {
            Some(Token::Caller(caller)) => effects.completed(caller, Outcome::NotSent(cause)),
            Some(Token::Cleanup(step)) => self.cleanups.failed(now, step),
            None => {}
        }
    }

    pub(super) fn end_overdue(&mut self, now: Time, effects: &mut impl Effects) {
        let (unsent, unanswered) = self.requests.overdue(now);
        for entry in unsent {
            self.not_sent(now, entry, Cause::DeadlinePassed, effects);
        }
        for caller in unanswered {
            effects.completed(caller, Outcome::Unknown(Cause::DeadlinePassed));
        }
    }

    pub(super) fn go_on_closing(&mut self, now: Time, effects: &mut impl Effects) {
        let Some(give_up_at) = self.closing.filter(|_| !self.is_stopped()) else {
            return;
        };
        if self.session.is_none() || now >= give_up_at {
            return self.stop(now, effects);
        }
        if self.link == Link::Up && !self.close_sent && self.cleanups.len() == 0 {
            self.close_sent = true;
            let xid = self.take_xid();
            self.send_own(now, xid, &Request::CloseSession, None);
        }
    }

    /// Nothing more will happen.
    pub(crate) fn stop(&mut self, now: Time, effects: &mut impl Effects) {
        if self.is_stopped() {
            return;
        }
        for entry in self.requests.disconnected() {
            self.lost(now, entry, Cause::Closed, effects);
        }
        for entry in self.requests.take_kept() {
            self.not_sent(now, entry, Cause::Closed, effects);
        }
        for watch in self.watches.end() {
            effects.watch_ended(watch, WatchEnd::EpochOver);
        }
        self.session = None;
        self.link = Link::Stopped;
        self.tell(Change::Closed, effects);
        self.closing.get_or_insert(now);
        effects.stopped();
    }
}
