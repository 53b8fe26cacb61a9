//! The machine: what callers want, what happens to the connection, what is sent.

use bytes::Bytes;
use minikeeper_protocol::{ConnectResponse, Reader, Reply, Request, Ustring, Xid, Zxid, frame};

use super::{
    cleanup::{CleanupRequest, Cleanups, Target},
    hosts::Hosts,
    input::{Settings, Submission},
    outcome::{Cause, Change, Effects, Epoch, Fault, LostReason, Outcome, Time},
    requests::{Entry, IfAbandoned, Registering, Requests, Token},
    session::{self, Session},
    watches::{WatchKind, WatchToken, Watches},
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    /// The next server is tried then.
    Down {
        retry_at: Time,
    },
    Connecting {
        host: usize,
        give_up_at: Time,
    },
    Handshaking {
        asked_at: Time,
        give_up_at: Time,
    },
    Up,
    /// There will be none any more.
    Stopped,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Core {
    pub(super) settings: Settings,
    pub(super) hosts: Hosts,
    pub(super) link: Link,
    pub(super) session: Option<Session>,
    pub(super) epoch: Epoch,
    /// How many handshakes have succeeded.
    pub(super) connections: u64,
    /// The newest change that a reply has told of. Everything that was watched then has been told
    /// up to there, which says nothing of events: those of one transaction come one by one, and the
    /// connection may end between them. `ClientCnxn.SendThread.readResponse` does the same.
    pub(super) last_zxid: Zxid,
    /// Messages that register watches again and are not answered yet. Until they are, no reply says
    /// that all watches were told of anything.
    pub(super) registering_again: usize,
    pub(super) next_xid: i32,
    pub(super) requests: Requests,
    pub(super) watches: Watches,
    pub(super) cleanups: Cleanups,
    /// Said again on every connection.
    pub(super) identities: Vec<(Ustring, Bytes)>,
    /// When the connection was last up, and whether its server takes no changes.
    pub(super) up_at: Time,
    pub(super) is_read_only: bool,
    /// When something was last sent, and last received.
    pub(super) sent_at: Time,
    pub(super) heard_at: Time,
    /// When closing is given up; `None` while the client is open.
    pub(super) closing: Option<Time>,
    /// Whether closeSession was sent.
    pub(super) close_sent: bool,
}

impl Core {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            hosts: Hosts::new(settings.hosts, settings.seed),
            cleanups: Cleanups::new(settings.seed),
            settings,
            link: Link::Down {
                retry_at: Time::ZERO,
            },
            session: None,
            epoch: Epoch(0),
            connections: 0,
            last_zxid: Zxid(0),
            registering_again: 0,
            next_xid: 1,
            requests: Requests::default(),
            watches: Watches::default(),
            identities: Vec::new(),
            up_at: Time::ZERO,
            is_read_only: false,
            sent_at: Time::ZERO,
            heard_at: Time::ZERO,
            closing: None,
            close_sent: false,
        }
    }

    // What is known.

    pub(crate) const fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) const fn connections(&self) -> u64 {
        self.connections
    }

    pub(crate) fn random(&mut self) -> u128 {
        self.hosts.random()
    }

    /// The session, until closing begins.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.session.as_ref().filter(|_| self.closing.is_none())
    }

    /// Until when no server can have ended the session: `None` if there is none that holds
    /// anything, and once closing has begun.
    pub(crate) fn safe_until(&self) -> Option<Time> {
        let session = self.session().filter(|session| session.is_lasting);
        session.map(Session::safe_until)
    }

    /// The server to connect to now.
    pub(crate) const fn connecting(&self) -> Option<usize> {
        match self.link {
            Link::Connecting { host, .. } => Some(host),
            _ => None,
        }
    }

    /// Whether the connection is (still) of use.
    pub(crate) const fn is_linked(&self) -> bool {
        matches!(self.link, Link::Handshaking { .. } | Link::Up)
    }

    pub(crate) const fn is_stopped(&self) -> bool {
        matches!(self.link, Link::Stopped)
    }

    pub(crate) fn clean_ups_pending(&self) -> usize {
        self.cleanups.len()
    }

    pub(crate) const fn clean_ups_forbidden(&self) -> u64 {
        self.cleanups.forbidden()
    }

    pub(crate) fn has_output(&self) -> bool {
        self.is_linked() && !self.requests.out.is_empty()
    }

    pub(crate) fn take_output(&mut self, empty: Vec<u8>) -> Vec<u8> {
        self.requests.take_output(empty)
    }

    /// When [`Core::handle_timeout`] is due.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let link = match (self.link, &self.session) {
            (Link::Stopped, _) => return None,
            (Link::Down { retry_at }, _) => Some(retry_at),
            (Link::Connecting { give_up_at, .. } | Link::Handshaking { give_up_at, .. }, _) => {
                Some(give_up_at)
            }
            (Link::Up, Some(session)) => Some(self.ping_at(session).min(self.silent_at(session))),
            (Link::Up, None) => None,
        };
        let session = self
            .session
            .as_ref()
            .filter(|session| self.is_fading(session));
        // Behind `closeSession` nothing is sent any more: the session's end cleans up.
        let cleans_up = self.link == Link::Up && !self.close_sent;
        let clean_up = self.cleanups.next_due().filter(|_| cleans_up);
        let removal = self.watches.next_removal().filter(|_| cleans_up);
        let overflow = self.has_too_many_clean_ups().then_some(Time::ZERO);
        let candidates = [
            overflow,
            link,
            session.map(Session::safe_until),
            clean_up,
            removal,
            self.requests.next_deadline(),
            self.closing,
        ];
        candidates.into_iter().flatten().min()
    }

    /// Whether nothing keeps this session alive, so that it will have to be presumed lost.
    fn is_fading(&self, session: &Session) -> bool {
        session.is_lasting && (self.link != Link::Up || self.is_read_only)
    }

    fn ping_at(&self, session: &Session) -> Time {
        self.sent_at + session.timeout / 3
    }

    fn silent_at(&self, session: &Session) -> Time {
        self.heard_at + session.timeout * 2 / 3
    }

    // What callers want.

    /// Sends a request, or keeps it until it can be sent.
    pub(crate) fn submit(
        &mut self,
        now: Time,
        request: &Request,
        submission: Submission,
        effects: &mut impl Effects,
    ) {
        let cause = if self.closing.is_some() || self.is_stopped() {
            Some(Cause::Closed)
        } else {
            let is_over =
                |epoch| epoch < self.epoch || epoch == self.epoch && self.session.is_none();
            let is_over = submission.epoch.is_some_and(is_over);
            is_over.then_some(Cause::SessionLost).or_else(|| {
                let bytes = self.requests.pending_bytes();
                let bytes_max = self.settings.pending_bytes_max;
                (bytes.saturating_add(Requests::estimate(submission.payload_bytes)) > bytes_max)
                    .then_some(Cause::TooManyPending { bytes, bytes_max })
            })
        };
        if let Some(cause) = cause {
            if let Some(caller) = submission.caller {
                effects.completed(caller, Outcome::NotSent(cause));
            }
            return;
        }
        let registering = submission.watch.map(|(kind, token)| {
            let path = request.path().cloned().unwrap_or_default();
            self.watches.announce(kind, &path);
            Box::new(Registering {
                kind,
                path,
                token: Some(token),
            })
        });
        let entry = Entry {
            xid: self.take_xid(),
            op: request.op(),
            token: submission.caller.map(Token::Caller),
            epoch: submission.epoch,
            deadline: submission.deadline,
            registering,
            if_abandoned: submission.if_abandoned,
        };
        self.send_or_keep(now, entry, request);
    }

    /// Says who this client is, from the first connection on.
    pub(crate) fn know_identity(&mut self, scheme: Ustring, data: Bytes) {
        self.identities.push((scheme, data));
    }

    /// Says who this client is, now and after every reconnect.
    pub(crate) fn add_identity(
        &mut self,
        now: Time,
        scheme: Ustring,
        data: Bytes,
        caller: u32,
        effects: &mut impl Effects,
    ) {
        if self.closing.is_some() || self.is_stopped() {
            return effects.completed(caller, Outcome::NotSent(Cause::Closed));
        }
        self.identities.push((scheme.clone(), data.clone()));
        if self.link == Link::Up {
            self.send_identity(now, &scheme, &data, Some(Token::Caller(caller)));
        } else {
            // It goes out with the next handshake; nobody has to wait for that.
            effects.completed(
                caller,
                Outcome::Answered {
                    result: Ok(Reply::Empty),
                    zxid: self.last_zxid,
                    epoch: self.epoch,
                },
            );
        }
    }

    /// Nobody waits for this request any more.
    pub(crate) fn abandon(&mut self, now: Time, caller: u32) {
        if let Some(entry) = self.requests.abandon(caller) {
            // It was not sent: only a deletion is still wanted.
            self.unregistered(now, &entry);
            if let Some(IfAbandoned::DeleteStill(path)) = entry.if_abandoned.as_deref() {
                self.clean_up(now, self.epoch, Target::Named(path.clone()));
            }
        }
    }

    /// Nobody waits for this watch any more. Its registration is answered, or its call was
    /// abandoned before.
    pub(crate) fn abandon_watch(
        &mut self,
        now: Time,
        kind: WatchKind,
        path: &Ustring,
        token: WatchToken,
    ) {
        if self.watches.leave(kind, path, token) {
            self.remove_watch(now, kind, path);
        }
    }

    /// Sees to it that a znode goes, whoever is still there to wait for it.
    pub(crate) fn clean_up(&mut self, now: Time, epoch: Epoch, target: Target) {
        if self.is_stopped() {
            return;
        }
        self.cleanups.add(now, epoch, target);
        self.work_off(now);
    }

    /// Ends the session politely, or at least the client.
    pub(crate) fn close(&mut self, now: Time, effects: &mut impl Effects) {
        if self.closing.is_none() && !self.is_stopped() {
            // Told before anything is sent that lets others have what this session holds.
            effects.changed(Change::Closed);
            self.closing = Some(now + self.settings.close_wait);
            self.cleanups.hurry(now);
            self.work_off(now);
            self.go_on_closing(now, effects);
        }
    }

    // What happens.

    /// The server is connected to.
    pub(crate) fn handle_connected(&mut self, now: Time) {
        let Link::Connecting { give_up_at, .. } = self.link else {
            return;
        };
        self.link = Link::Handshaking {
            asked_at: now,
            give_up_at,
        };
        let Settings {
            session_timeout,
            read_only,
            ..
        } = self.settings;
        session::hello(
            self.session.as_ref(),
            session_timeout,
            self.last_zxid,
            read_only,
        )
        .encode(&mut self.requests.out);
    }

    /// The server could not be connected to, or the connection is gone.
    pub(crate) fn handle_disconnected(&mut self, now: Time, effects: &mut impl Effects) {
        if matches!(self.link, Link::Down { .. } | Link::Stopped) {
            return;
        }
        let was_up = self.link == Link::Up;
        let lived = if was_up { now - self.up_at } else { Time::ZERO };
        self.link = Link::Down {
            retry_at: self.hosts.failed(now, lived),
        };
        self.registering_again = 0;
        for entry in self.requests.disconnected() {
            self.lost(now, entry, Cause::ConnectionLost, effects);
        }
        if self.close_sent {
            return self.stop(now, effects);
        }
        if was_up && let Some(session) = &self.session {
            if !session.is_lasting {
                return self.lose(now, LostReason::ReadOnly, effects);
            }
            let change = Change::Suspended {
                epoch: self.epoch,
                until: session.safe_until(),
            };
            self.tell(change, effects);
        }
    }

    /// Bytes have come; says how many of them are done with.
    ///
    /// # Errors
    /// When they make no sense: the connection must end.
    pub(crate) fn handle_read(
        &mut self,
        now: Time,
        batch: &Bytes,
        effects: &mut impl Effects,
    ) -> Result<usize, Fault> {
        let mut done = 0;
        self.heard_at = now;
        while self.is_linked() {
            let rest = &batch[done..];
            let next = frame::next(rest, self.settings.frame_bytes_max);
            let next = next.map_err(|error| self.unreadable(now, rest, error, effects));
            let Some(body) = next? else { break };
            let window = done + body.start..done + body.end;
            done = window.end;
            match self.link {
                Link::Handshaking { asked_at, .. } => {
                    let response = ConnectResponse::decode(&mut Reader::window(batch, window))
                        .map_err(Fault::Message)?;
                    self.welcomed(now, asked_at, response, effects);
                }
                _ => self.message(now, batch, window, effects)?,
            }
        }
        Ok(done)
    }

    fn has_too_many_clean_ups(&self) -> bool {
        self.cleanups.len() > self.settings.clean_ups_max
    }

    /// Time has passed.
    pub(crate) fn handle_timeout(&mut self, now: Time, effects: &mut impl Effects) {
        if self.has_too_many_clean_ups() {
            // The end of the session does what they would have done.
            self.cleanups.clear();
            self.handle_disconnected(now, effects);
            self.lose(now, LostReason::TooManyCleanUps, effects);
        }
        self.end_overdue(now, effects);
        if self.link == Link::Up
            && let Some(session) = &self.session
        {
            if now >= self.silent_at(session) {
                self.handle_disconnected(now, effects);
            } else if now >= self.ping_at(session) {
                self.send_own(now, Xid::PING, &Request::Ping, None);
            }
        }
        if let Link::Connecting { give_up_at, .. } | Link::Handshaking { give_up_at, .. } =
            self.link
            && now >= give_up_at
        {
            self.handle_disconnected(now, effects);
        }
        if let Some(session) = &self.session
            && self.is_fading(session)
            && now >= session.safe_until()
        {
            // There may be a connection, to a server that does not keep it alive.
            if self.link == Link::Up {
                self.handle_disconnected(now, effects);
            }
            self.lose(now, LostReason::Presumed, effects);
        }
        self.work_off(now);
        self.go_on_closing(now, effects);
        if let Link::Down { retry_at } = self.link
            && now >= retry_at
        {
            let share = u32::try_from(self.hosts.len()).unwrap_or(u32::MAX);
            let asked = self.settings.session_timeout;
            let session_timeout = self
                .session
                .as_ref()
                .map_or(asked, |session| session.timeout);
            let whole = session_timeout.min(self.settings.connection_timeout);
            let limit = self.settings.connect_timeout.unwrap_or(whole / share);
            self.link = Link::Connecting {
                host: self.hosts.take(),
                give_up_at: now + limit,
            };
        }
    }

    // What is sent.

    pub(super) const fn take_xid(&mut self) -> Xid {
        let xid = Xid(self.next_xid);
        self.next_xid = match self.next_xid.checked_add(1) {
            Some(next) => next,
            None => 1,
        };
        xid
    }

    fn send_or_keep(&mut self, now: Time, entry: Entry, request: &Request) {
        let xid = entry.xid;
        if self.link == Link::Up {
            self.sent_at = now;
            self.requests
                .send(now, entry, |out| request.encode(xid, out));
        } else {
            self.requests.keep(entry, |out| request.encode(xid, out));
        }
    }

    /// A request of the client's own, on a connection that is there.
    pub(super) fn send_own(
        &mut self,
        now: Time,
        xid: Xid,
        request: &Request,
        token: Option<Token>,
    ) {
        self.sent_at = now;
        let entry = Entry {
            xid,
            op: request.op(),
            token,
            epoch: Some(self.epoch),
            deadline: None,
            registering: None,
            if_abandoned: None,
        };
        self.requests
            .send(now, entry, |out| request.encode(xid, out));
    }

    pub(super) fn send_identity(
        &mut self,
        now: Time,
        scheme: &Ustring,
        data: &Bytes,
        token: Option<Token>,
    ) {
        let request = Request::Auth {
            kind: 0,
            scheme: Some(scheme.clone()),
            data: Some(data.clone()),
        };
        self.send_own(now, Xid::AUTH, &request, token);
    }

    pub(super) fn send_cleanup(&mut self, now: Time, step: CleanupRequest, request: &Request) {
        let xid = self.take_xid();
        self.send_own(now, xid, request, Some(Token::Cleanup(step)));
    }

    /// Ends the registration of a watch by a request that leaves none.
    pub(super) fn unregistered(&mut self, now: Time, entry: &Entry) {
        if let Some(registering) = &entry.registering {
            let Registering { kind, path, .. } = &**registering;
            if self.watches.settle(*kind, path, None) {
                self.remove_watch(now, *kind, path);
            }
        }
    }

    pub(super) fn remove_watch(&mut self, now: Time, kind: WatchKind, path: &Ustring) {
        // With the connection or the session the watch goes too.
        if self.link != Link::Up || self.close_sent {
            return;
        }
        self.sent_at = now;
        let request = Request::RemoveWatches {
            path: Some(path.clone()),
            kind: kind.watcher_type().code(),
        };
        let xid = self.take_xid();
        let entry = Entry {
            xid,
            op: request.op(),
            token: None,
            epoch: Some(self.epoch),
            deadline: None,
            registering: None,
            if_abandoned: Some(Box::new(IfAbandoned::RemoveWatchStill(kind, path.clone()))),
        };
        self.requests
            .send(now, entry, |out| request.encode(xid, out));
    }

    pub(super) fn work_off(&mut self, now: Time) {
        if self.link != Link::Up || self.close_sent {
            return;
        }
        for (kind, path) in self.watches.due_removals(now) {
            self.remove_watch(now, kind, &path);
        }
        for (step, request) in self.cleanups.requests(now, self.epoch) {
            self.send_cleanup(now, step, &request);
        }
    }
}
