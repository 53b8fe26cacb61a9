//! The machine: calls, events from the driver, sending, and how requests, sessions and the client
//! end.
//!
//! Source: `docs/curator-recipes.md` sections 2.7 to 2.9; `docs/client.md` section 6.

use std::{borrow::Cow, sync::Arc, time::Duration};

use bytes::Bytes;
use minikeeper_protocol::{
    ConnectResponse, ErrorCode, FrameError, OpCode, Reader, Reply, Request, Ustring, Xid, Zxid,
    frame,
};

use super::{
    cleanup::{CleanupRequest, Cleanups, Target},
    hosts::Hosts,
    outcome::{
        Cause, Change, CloseCause, Effects, Epoch, LostReason, Outcome, Time, Verdict, WatchEnd,
    },
    requests::{Entry, IfAbandoned, Registering, Requests, Token, paths_in_reply},
    sasl::{Sasl, SaslMechanism},
    session::{self, Session},
    watches::{WatchKind, WatchToken, Watches},
};

/// The settings of a client that the machine needs.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) session_timeout: Duration,
    /// The servers; at least one.
    pub(crate) hosts: Vec<String>,
    /// How long one server may take to reply; by default its share of the session timeout or of
    /// `connection_timeout`, whichever is shorter.
    pub(crate) connect_timeout: Option<Duration>,
    /// The time within which the client should be connected.
    pub(crate) connection_timeout: Duration,
    pub(crate) close_wait: Duration,
    pub(crate) read_only: bool,
    pub(crate) frame_bytes_max: usize,
    /// How much memory pending requests may take. Unit: bytes.
    pub(crate) pending_bytes_max: usize,
    /// How many clean-ups may be pending.
    pub(crate) clean_ups_max: usize,
    /// The seed of the order of servers and the jitter of waits.
    pub(crate) seed: u64,
}

/// The properties of a request that [`Core::submit`] needs.
#[derive(Debug, Default)]
pub(crate) struct Submission {
    pub(crate) caller: Option<u32>,
    /// The size of its paths and data. Unit: bytes.
    pub(crate) payload_bytes: usize,
    /// The only session in which it may be sent.
    pub(crate) epoch: Option<Epoch>,
    pub(crate) deadline: Option<Time>,
    pub(crate) watch: Option<(WatchKind, WatchToken)>,
    pub(crate) if_abandoned: Option<Box<IfAbandoned>>,
}

/// The state of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    /// The next attempt to connect is due at `retry_at`.
    Down {
        retry_at: Time,
    },
    Connecting {
        give_up_at: Time,
    },
    Handshaking {
        asked_at: Time,
        give_up_at: Time,
    },
    /// The handshake has succeeded, and SASL is not complete: nothing else may be sent.
    Authenticating {
        give_up_at: Time,
    },
    Up,
    /// The client has ended.
    Stopped,
}

/// The shortest requested session timeout that limits the time for one server.
const ASKED_MIN: Duration = Duration::from_secs(1);

/// Returns whether the state of the server decides how long the reply to this operation is.
const fn can_be_long(op: OpCode) -> bool {
    matches!(
        op,
        OpCode::GetData
            | OpCode::GetAcl
            | OpCode::GetChildren
            | OpCode::GetChildren2
            | OpCode::GetEphemerals
            | OpCode::Multi
            | OpCode::MultiRead
            | OpCode::Reconfig
            | OpCode::WhoAmI
    )
}

/// How long a client whose session needs another server stays at a read-only one.
const READ_ONLY_STAY: Duration = Duration::from_secs(1);

/// What a server that expects TLS sends: an alert of TLS 1.0 to 1.3.
const TLS_ALERT: &[u8] = &[0x15, 0x03];

/// An attempt to connect to a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Attempt {
    number: u64,
    /// The server, as `host:port`.
    pub(crate) host: Arc<str>,
}

/// The state machine of one client: its connection, session, requests, watches and clean-ups.
#[derive(Debug)]
pub(crate) struct Core {
    pub(super) settings: Settings,
    pub(super) hosts: Hosts,
    pub(super) link: Link,
    pub(super) session: Option<Session>,
    pub(super) epoch: Epoch,
    /// The latest session that was reported as connected.
    pub(super) reported: Epoch,
    /// How many attempts to connect there were.
    pub(super) attempts: u64,
    /// How many connections could be used.
    pub(super) connections: u64,
    /// The zxid of the latest reply. Every watch that existed then has received its events up to
    /// this zxid. The zxids of events do not count: the events of one transaction arrive one by
    /// one, and the connection may end between them. `ClientCnxn.SendThread.readResponse` does the
    /// same.
    pub(super) last_zxid: Zxid,
    /// How many messages that register watches again have no reply yet. While there are any, a
    /// reply does not mean that all watches have their events.
    pub(super) registering_again: usize,
    pub(super) next_xid: i32,
    pub(super) requests: Requests,
    pub(super) watches: Watches,
    pub(super) cleanups: Cleanups,
    /// The mechanism that authenticates every connection.
    pub(super) sasl: Option<Sasl>,
    /// Why the client has ended, if a server did not accept its identity.
    pub(super) auth_failure: Option<LostReason>,
    /// Identities to send on every connection.
    pub(super) identities: Vec<(Ustring, Bytes)>,
    /// The number of the connection that an unexpected event has ended last.
    pub(super) unexpected_in: Option<u64>,
    /// When the current or last connection came up.
    pub(super) up_at: Time,
    /// Whether its server is read-only.
    pub(super) is_read_only: bool,
    /// Why the machine itself has ended the last connection.
    pub(super) ended_for: Option<Cow<'static, str>>,
    /// When the client last sent something.
    pub(super) sent_at: Time,
    /// When the client last received something.
    pub(super) heard_at: Time,
    /// When the client stops waiting for the session to end; `None` while the client is open.
    pub(super) closing: Option<Time>,
    /// When closing no longer waits for clean-ups: half of the wait is left for the server's reply
    /// to closeSession.
    pub(super) clean_until: Time,
    /// Whether closeSession was sent.
    pub(super) close_sent: bool,
    /// Why requests are no longer sent, once the client is closed.
    pub(super) closed_for: Cause,
}

impl Core {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            hosts: Hosts::new(&settings.hosts, settings.seed),
            cleanups: Cleanups::new(settings.seed),
            settings,
            link: Link::Down {
                retry_at: Time::ZERO,
            },
            session: None,
            epoch: Epoch(0),
            reported: Epoch(0),
            attempts: 0,
            connections: 0,
            last_zxid: Zxid(0),
            registering_again: 0,
            next_xid: 1,
            requests: Requests::default(),
            watches: Watches::default(),
            sasl: None,
            auth_failure: None,
            identities: Vec::new(),
            unexpected_in: None,
            up_at: Time::ZERO,
            is_read_only: false,
            ended_for: None,
            sent_at: Time::ZERO,
            heard_at: Time::ZERO,
            closing: None,
            clean_until: Time::ZERO,
            close_sent: false,
            closed_for: Cause::Closed,
        }
    }

    // Queries.

    pub(crate) const fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) const fn connections(&self) -> u64 {
        self.connections
    }

    pub(crate) fn random(&mut self) -> u128 {
        self.hosts.random()
    }

    /// Returns the session; `None` once closing has begun.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.session.as_ref().filter(|_| self.closing.is_none())
    }

    /// Returns the servers, with commas between them.
    pub(crate) fn servers(&self) -> &str {
        self.hosts.text()
    }

    /// Returns the time until which no server can have ended the session. `None` if there is no
    /// session that can hold a lock, and once closing has begun.
    pub(crate) fn safe_until(&self) -> Option<Time> {
        let session = self.session().filter(|session| session.is_lasting);
        session.map(Session::safe_until)
    }

    /// Returns the server to connect to now.
    pub(crate) fn connecting(&self) -> Option<Attempt> {
        matches!(self.link, Link::Connecting { .. }).then(|| Attempt {
            number: self.attempts,
            host: self.hosts.current(),
        })
    }

    /// Returns whether this attempt, or the connection that came of it, is still the latest, and is
    /// not over.
    pub(crate) const fn is_current(&self, attempt: &Attempt) -> bool {
        attempt.number == self.attempts && !matches!(self.link, Link::Down { .. } | Link::Stopped)
    }

    /// Returns why the machine itself has ended the connection.
    pub(crate) fn ended_for(&self) -> &str {
        self.ended_for.as_deref().unwrap_or("ended by the client")
    }

    /// Returns what the connection has not completed, as part of a message.
    pub(crate) const fn phase(&self) -> &'static str {
        match self.link {
            Link::Handshaking { .. } => " during the handshake",
            Link::Authenticating { .. } => " during SASL",
            _ => "",
        }
    }

    /// Returns whether there is a usable connection.
    pub(crate) const fn is_linked(&self) -> bool {
        matches!(
            self.link,
            Link::Handshaking { .. } | Link::Authenticating { .. } | Link::Up
        )
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
        (self.is_linked() || self.is_stopped()) && !self.requests.out.is_empty()
    }

    pub(crate) fn take_output(&mut self, empty: Vec<u8>) -> Vec<u8> {
        self.requests.take_output(empty)
    }

    /// Returns when [`Core::handle_timeout`] is due.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let link = match (self.link, &self.session) {
            (Link::Stopped, _) => return None,
            (Link::Down { retry_at }, _) => Some(retry_at),
            (
                Link::Connecting { give_up_at }
                | Link::Handshaking { give_up_at, .. }
                | Link::Authenticating { give_up_at },
                _,
            ) => Some(give_up_at),
            (Link::Up, Some(session)) => {
                let next = self.ping_at(session).min(self.silent_at(session));
                Some(self.leave_at(session).map_or(next, |at| at.min(next)))
            }
            (Link::Up, None) => None,
        };
        let session = self.session.as_ref().filter(|session| session.is_lasting);
        // Nothing is sent after `closeSession`: the end of the session cleans up.
        let cleans_up = self.link == Link::Up && !self.close_sent;
        let clean_up = self.cleanups.next_due().filter(|_| cleans_up);
        let removal = self.watches.next_removal().filter(|_| cleans_up);
        let ends_cleaning = self.closing.is_some() && cleans_up;
        let is_overfull = self.has_too_many_clean_ups() || self.has_too_many_removals();
        let overflow = is_overfull.then_some(Time::ZERO);
        let candidates = [
            overflow,
            link,
            session.map(|session| self.presumed_lost_at(session)),
            clean_up,
            removal,
            self.requests.next_deadline(),
            ends_cleaning.then_some(self.clean_until),
            self.closing,
        ];
        candidates.into_iter().flatten().min()
    }

    fn presumed_lost_at(&self, session: &Session) -> Time {
        if self.link == Link::Up && !self.is_read_only {
            session.presumed_lost_at()
        } else {
            session.safe_until()
        }
    }

    fn ping_at(&self, session: &Session) -> Time {
        self.sent_at + session.timeout / 3
    }

    /// Returns when the client leaves a read-only server to look for one that keeps its session alive.
    fn leave_at(&self, session: &Session) -> Option<Time> {
        let is_in_danger = self.is_read_only && session.is_lasting && self.hosts.len() > 1;
        is_in_danger.then(|| self.up_at + READ_ONLY_STAY)
    }

    fn silent_at(&self, session: &Session) -> Time {
        self.heard_at + session.timeout * 2 / 3
    }

    // Calls.

    /// Sends a request, or keeps it until it can be sent.
    pub(crate) fn submit(
        &mut self,
        now: Time,
        request: &Request,
        submission: Submission,
        effects: &mut impl Effects,
    ) {
        let cause = if self.closing.is_some() || self.is_stopped() {
            Some(self.closed_for)
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
            paths: paths_in_reply(request),
            token: submission.caller.map(Token::Caller),
            epoch: submission.epoch,
            deadline: submission.deadline,
            registering,
            if_abandoned: submission.if_abandoned,
        };
        self.send_or_keep(now, entry, request);
    }

    /// Sets the mechanism that authenticates every connection.
    pub(crate) fn know_sasl(&mut self, mechanism: Box<dyn SaslMechanism>) {
        self.sasl = Some(Sasl(mechanism));
    }

    /// Returns the server and the reason, if the client has ended because a server did not accept its
    /// identity.
    pub(crate) fn auth_failure(&self) -> Option<(Arc<str>, LostReason)> {
        self.auth_failure
            .map(|reason| (self.hosts.current(), reason))
    }

    /// Adds an identity to send on every connection.
    pub(crate) fn register_identity(&mut self, scheme: Ustring, data: Bytes) {
        let identity = (scheme, data);
        if !self.identities.contains(&identity) {
            self.identities.push(identity);
        }
    }

    /// Sends an identity now and on every later connection.
    pub(crate) fn add_identity(
        &mut self,
        now: Time,
        scheme: Ustring,
        data: Bytes,
        caller: u32,
        effects: &mut impl Effects,
    ) {
        if self.closing.is_some() || self.is_stopped() {
            return effects.completed(caller, Outcome::NotSent(self.closed_for));
        }
        self.register_identity(scheme.clone(), data.clone());
        if self.link == Link::Up {
            self.send_identity(now, &scheme, &data, Some(Token::Caller(caller)));
        } else {
            // It is sent after the next handshake; the caller need not wait for that.
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

    /// Replaces the list of servers, which must not be empty. The session stays; the connection ends
    /// if the client must move to another server.
    pub(crate) fn update_servers(
        &mut self,
        now: Time,
        servers: &[String],
        effects: &mut impl Effects,
    ) {
        if self.is_stopped() || !self.hosts.update(servers) || self.close_sent {
            return;
        }
        self.ended_for = Some("the list of servers has changed".into());
        self.handle_disconnected(now, effects);
        if let Link::Down { retry_at } = &mut self.link {
            *retry_at = now;
        }
    }

    /// Handles a call that its caller has dropped.
    pub(crate) fn abandon(&mut self, now: Time, caller: u32) {
        if let Some(entry) = self.requests.abandon(caller) {
            // The request was not sent: only a deletion must still be carried out.
            self.withdraw_registration(now, &entry);
            if let Some(IfAbandoned::DeleteStill(path)) = entry.if_abandoned.as_deref() {
                self.clean_up(now, self.epoch, Target::Named(path.clone()));
            }
        }
    }

    /// Handles a watch that its caller has dropped. Its registration has a reply, or its call was
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

    /// Deletes a znode in the background.
    pub(crate) fn clean_up(&mut self, now: Time, epoch: Epoch, target: Target) {
        if self.is_stopped() {
            return;
        }
        self.cleanups.add(now, epoch, target);
        self.send_due(now);
    }

    pub(crate) const fn connection_timeout(&self) -> Duration {
        self.settings.connection_timeout
    }

    pub(crate) const fn close_wait(&self) -> Duration {
        self.settings.close_wait
    }

    /// Closes the session, then the client.
    pub(crate) fn close(&mut self, now: Time, effects: &mut impl Effects) {
        if self.closing.is_none() && !self.is_stopped() {
            // Report this before sending anything that lets other contenders get the locks of this
            // session.
            effects.changed(Change::Closed);
            let wait = self.settings.close_wait;
            self.closing = Some(now.saturating_add(wait));
            self.clean_until = now.saturating_add(wait / 2);
            self.cleanups.hurry(now);
            self.send_due(now);
            self.continue_closing(now, effects);
        }
    }

    // Events from the driver.

    /// Handles an established connection: sends the handshake.
    pub(crate) fn handle_connected(&mut self, now: Time) {
        let Link::Connecting { give_up_at } = self.link else {
            return;
        };
        self.ended_for = None;
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

    /// Handles a failed attempt to connect, or the end of the connection.
    pub(crate) fn handle_disconnected(&mut self, now: Time, effects: &mut impl Effects) {
        if matches!(self.link, Link::Down { .. } | Link::Stopped) {
            return;
        }
        if let (Link::Handshaking { .. }, Some(session)) = (self.link, &mut self.session) {
            session.lost_attempt();
        }
        let was_up = self.link == Link::Up;
        let was_granted = was_up || matches!(self.link, Link::Authenticating { .. });
        let lived = if was_up { now - self.up_at } else { Time::ZERO };
        self.link = Link::Down {
            retry_at: self.hosts.failed(now, lived),
        };
        self.registering_again = 0;
        for entry in self.requests.disconnected() {
            self.complete_unknown(now, entry, Cause::ConnectionLost, effects);
        }
        if self.close_sent {
            return self.stop(now, effects);
        }
        if was_granted && let Some(session) = &mut self.session {
            session.suspended(now);
            if !session.is_lasting {
                return self.end_session(now, LostReason::ReadOnly, effects);
            }
            if !was_up {
                return;
            }
            let change = Change::Suspended {
                epoch: self.epoch,
                until: session.safe_until(),
            };
            self.report(change, effects);
        }
    }

    /// Handles bytes from the server. Returns the number of bytes that it has consumed.
    ///
    /// # Errors
    /// The bytes cannot be decoded; the connection must end.
    pub(crate) fn handle_read(
        &mut self,
        now: Time,
        batch: &Bytes,
        effects: &mut impl Effects,
    ) -> Result<usize, CloseCause> {
        let mut done = 0;
        while self.is_linked() {
            let rest = &batch[done..];
            let next = frame::next(rest, self.settings.frame_bytes_max);
            let next = next.map_err(|error| self.reject_frame(now, rest, error, effects));
            let Some(body) = next? else { break };
            let window = done + body.start..done + body.end;
            done = window.end;
            // Only a whole message shows that the server lives: the bytes of a message without an
            // end would keep a dead connection.
            self.heard_at = now;
            match self.link {
                Link::Handshaking {
                    asked_at,
                    give_up_at,
                } => {
                    let response = ConnectResponse::decode(&mut Reader::window(batch, window))
                        .map_err(CloseCause::Message)?;
                    self.handle_handshake(now, (asked_at, give_up_at), response, effects);
                }
                _ => self.handle_message(now, batch, window, effects)?,
            }
        }
        Ok(done)
    }

    fn has_too_many_removals(&self) -> bool {
        self.link == Link::Up && self.watches.removals_refused() > self.settings.clean_ups_max
    }

    fn has_too_many_clean_ups(&self) -> bool {
        self.cleanups.len() > self.settings.clean_ups_max
    }

    /// Handles everything that is due by now.
    pub(crate) fn handle_timeout(&mut self, now: Time, effects: &mut impl Effects) {
        if self.has_too_many_clean_ups() {
            // The end of the session deletes the same znodes.
            self.cleanups.clear();
            self.handle_disconnected(now, effects);
            self.end_session(now, LostReason::TooManyCleanUps, effects);
        }
        if self.has_too_many_removals() {
            // The server forgets the watches with the connection.
            self.handle_disconnected(now, effects);
        }
        self.expire_requests(now, effects);
        if self.link == Link::Up
            && let Some(session) = &self.session
        {
            if now >= self.silent_at(session) {
                self.ended_for = Some("no reply for two thirds of the session timeout".into());
                self.handle_disconnected(now, effects);
            } else if self.leave_at(session).is_some_and(|at| now >= at) {
                self.ended_for = Some("the server is read-only; looking for another one".into());
                self.handle_disconnected(now, effects);
            } else if now >= self.ping_at(session) {
                self.send_own(now, Xid::PING, &Request::Ping, None);
            }
        }
        if let Link::Connecting { give_up_at }
        | Link::Handshaking { give_up_at, .. }
        | Link::Authenticating { give_up_at } = self.link
            && now >= give_up_at
        {
            let what = match self.link {
                Link::Authenticating { .. } => "SASL",
                _ => "the handshake",
            };
            self.ended_for = Some(format!("no reply to {what} in time").into());
            self.handle_disconnected(now, effects);
        }
        if let Some(session) = &self.session
            && session.is_lasting
            && now >= self.presumed_lost_at(session)
        {
            // There may be a connection to a server that does not keep the session alive, or that
            // sends events and no replies.
            if matches!(self.link, Link::Up | Link::Authenticating { .. }) {
                self.ended_for = Some("no reply within the session timeout".into());
                self.handle_disconnected(now, effects);
            }
            self.end_session(now, LostReason::Presumed, effects);
        }
        self.send_due(now);
        self.continue_closing(now, effects);
        if let Link::Down { retry_at } = self.link
            && now >= retry_at
        {
            let share = u32::try_from(self.hosts.len()).unwrap_or(u32::MAX);
            // The server grants more than it is asked for if that is too short.
            let asked = self.settings.session_timeout.max(ASKED_MIN);
            let session_timeout = self
                .session
                .as_ref()
                .map_or(asked, |session| session.timeout);
            let whole = session_timeout.min(self.settings.connection_timeout);
            let limit = self.settings.connect_timeout.unwrap_or(whole / share);
            self.hosts.take();
            self.attempts += 1;
            self.link = Link::Connecting {
                give_up_at: now.saturating_add(limit),
            };
        }
    }

    // Sending.

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

    /// Sends a request that the client makes for itself.
    pub(super) fn send_own(
        &mut self,
        now: Time,
        xid: Xid,
        request: &Request,
        token: Option<Token>,
    ) {
        // These two do not keep the session alive: a ping is due as if they had not been sent.
        if !matches!(request.op(), OpCode::Auth | OpCode::Sasl) {
            self.sent_at = now;
        }
        let entry = Entry {
            xid,
            op: request.op(),
            paths: Box::default(),
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

    pub(super) fn send_sasl(&mut self, now: Time, token: Vec<u8>) {
        let xid = self.take_xid();
        let token = Some(Bytes::from(token));
        self.send_own(now, xid, &Request::Sasl { token }, None);
    }

    pub(super) fn send_cleanup(&mut self, now: Time, step: CleanupRequest, request: &Request) {
        let xid = self.take_xid();
        self.send_own(now, xid, request, Some(Token::Cleanup(step)));
    }

    /// Ends the registration of a watch whose request leaves no watch.
    pub(super) fn withdraw_registration(&mut self, now: Time, entry: &Entry) {
        if let Some(registering) = &entry.registering {
            let Registering { kind, path, .. } = &**registering;
            if self.watches.settle(*kind, path, None) {
                self.remove_watch(now, *kind, path);
            }
        }
    }

    pub(super) fn remove_watch(&mut self, now: Time, kind: WatchKind, path: &Ustring) {
        // The watch ends with the connection or the session.
        if self.link != Link::Up || self.close_sent {
            return;
        }
        self.sent_at = now;
        self.watches.removal_sent(kind, path);
        let request = Request::RemoveWatches {
            path: Some(path.clone()),
            kind: kind.watcher_type().code(),
        };
        let xid = self.take_xid();
        let entry = Entry {
            xid,
            op: request.op(),
            paths: Box::default(),
            token: None,
            epoch: Some(self.epoch),
            deadline: None,
            registering: None,
            if_abandoned: Some(Box::new(IfAbandoned::RemoveWatchStill(kind, path.clone()))),
        };
        self.requests
            .send(now, entry, |out| request.encode(xid, out));
    }

    pub(super) fn send_due(&mut self, now: Time) {
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

    // How requests, sessions and the client end.

    /// Reports a change, unless closing has begun, which was the last change.
    pub(super) fn report(&self, change: Change, effects: &mut impl Effects) {
        if self.closing.is_none() {
            effects.changed(change);
        }
    }

    /// Ends the session, which no longer has a connection.
    pub(super) fn end_session(
        &mut self,
        now: Time,
        reason: LostReason,
        effects: &mut impl Effects,
    ) {
        if self.session.take().is_none() {
            return;
        }
        let over = self.epoch;
        self.last_zxid = Zxid(0);
        let change = Change::Lost {
            epoch: over,
            reason,
        };
        self.report(change, effects);
        for watch in self.watches.end() {
            effects.watch_ended(watch, WatchEnd::EpochOver);
        }
        for entry in self.requests.take_kept_of(over) {
            self.complete_not_sent(now, entry, Cause::SessionLost, effects);
        }
        // A handshake that asks to resume it is now useless.
        if reason == LostReason::Presumed && matches!(self.link, Link::Handshaking { .. }) {
            self.link = Link::Down {
                retry_at: self.hosts.failed(now, Time::ZERO),
            };
            self.requests.out.clear();
        }
    }

    pub(super) fn complete_unknown(
        &mut self,
        now: Time,
        entry: Entry,
        cause: Cause,
        effects: &mut impl Effects,
    ) {
        self.withdraw_registration(now, &entry);
        match entry.token {
            Some(Token::Caller(caller)) => effects.completed(caller, Outcome::Unknown(cause)),
            Some(Token::Cleanup(step)) => self.cleanups.failed(now, step, cause),
            None => {
                let target = match entry.if_abandoned.map(|it| *it) {
                    Some(IfAbandoned::DeleteCreated { parent, prefix }) => {
                        Target::Prefixed { parent, prefix }
                    }
                    Some(IfAbandoned::DeleteStill(path)) => Target::Named(path),
                    // The watch ends with the connection.
                    Some(IfAbandoned::RemoveWatchStill(..)) | None => return,
                };
                self.cleanups.add(now, self.epoch, target);
            }
        }
    }

    /// Handles a frame that cannot be read, so that the connection must end. If a reply is too
    /// long, its caller gets an error that says so: a retry would end the next connection too
    /// (hazard H36).
    pub(super) fn reject_frame(
        &mut self,
        now: Time,
        frame: &[u8],
        error: FrameError,
        effects: &mut impl Effects,
    ) -> CloseCause {
        if let FrameError::TooLong { length, bytes_max } = error
            && self.link == Link::Up
            && let Some(xid) = frame[frame::PREFIX_BYTES..].first_chunk()
            && let Some((entry, _)) = self.requests.answered(Xid(i32::from_be_bytes(*xid)))
        {
            let bytes = length;
            let cause = match can_be_long(entry.op) {
                true => Cause::ReplyTooLarge { bytes, bytes_max },
                // The length was damaged: a retry may help.
                false => Cause::ReplyUnreadable,
            };
            self.complete_unknown(now, entry, cause, effects);
        }
        if matches!(self.link, Link::Handshaking { .. }) && frame.starts_with(TLS_ALERT) {
            return CloseCause::SpeaksTls;
        }
        CloseCause::Frame(error)
    }

    /// Handles the outcome of a request whose caller has dropped the call.
    pub(crate) fn handle_unseen(&mut self, now: Time, if_abandoned: IfAbandoned, outcome: Outcome) {
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
                IfAbandoned::DeleteCreated { parent, prefix },
                Outcome::Answered {
                    result: Ok(Reply::PathStat(path, _)),
                    epoch,
                    ..
                },
            ) => {
                let target = Target::Created {
                    path,
                    parent,
                    prefix,
                };
                return self.clean_up(now, epoch, target);
            }
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

    pub(super) fn complete_not_sent(
        &mut self,
        now: Time,
        entry: Entry,
        cause: Cause,
        effects: &mut impl Effects,
    ) {
        self.withdraw_registration(now, &entry);
        match entry.token {
            Some(Token::Caller(caller)) => effects.completed(caller, Outcome::NotSent(cause)),
            Some(Token::Cleanup(step)) => self.cleanups.failed(now, step, cause),
            None => {}
        }
    }

    pub(super) fn expire_requests(&mut self, now: Time, effects: &mut impl Effects) {
        let (unsent, unanswered) = self.requests.overdue(now);
        for entry in unsent {
            self.complete_not_sent(now, entry, Cause::DeadlinePassed, effects);
        }
        for caller in unanswered {
            effects.completed(caller, Outcome::Unknown(Cause::DeadlinePassed));
        }
    }

    pub(super) fn continue_closing(&mut self, now: Time, effects: &mut impl Effects) {
        let Some(give_up_at) = self.closing.filter(|_| !self.is_stopped()) else {
            return;
        };
        let is_clean = self.cleanups.len() == 0 || now >= self.clean_until;
        if self.link == Link::Up && !self.close_sent && is_clean {
            self.close_sent = true;
            let xid = self.take_xid();
            self.send_own(now, xid, &Request::CloseSession, None);
        }
        if self.session.is_none() || now >= give_up_at {
            self.stop(now, effects);
        }
    }

    /// Stops the client: no later event has an effect.
    pub(crate) fn stop(&mut self, now: Time, effects: &mut impl Effects) {
        self.stop_for(now, Cause::Closed, effects);
    }

    /// Stops the client, for a reason that its calls report.
    pub(crate) fn stop_for(&mut self, now: Time, cause: Cause, effects: &mut impl Effects) {
        if self.is_stopped() {
            return;
        }
        self.closed_for = cause;
        // closeSession is still written, if there is a connection.
        let is_last_word = self.link == Link::Up && self.close_sent;
        let last_word = is_last_word.then(|| self.requests.out.clone());
        for entry in self.requests.disconnected() {
            self.complete_unknown(now, entry, cause, effects);
        }
        for entry in self.requests.take_kept() {
            self.complete_not_sent(now, entry, cause, effects);
        }
        self.requests.out = last_word.unwrap_or_default();
        for watch in self.watches.end() {
            effects.watch_ended(watch, WatchEnd::EpochOver);
        }
        self.session = None;
        self.link = Link::Stopped;
        self.report(Change::Closed, effects);
        self.closing.get_or_insert(now);
        effects.stopped();
    }
}
