//! Handles the messages of a server: the reply to the handshake, replies to requests, events.
//!
//! Source: `docs/zookeeper-protocol.md` sections 1.4, 6.4, 7.2, 12.4 and 12.8.

use bytes::Bytes;
use minikeeper_protocol::{
    ConnectResponse, DecodeError, ErrorCode, OpCode, Reader, Reply, ReplyHeader, SessionId,
    WatcherEvent, Xid, Zxid,
};

use super::{
    machine::{Core, Link},
    outcome::{Cause, Change, CloseCause, Effects, LostReason, Outcome, Time, Verdict, WatchEnd},
    requests::{Entry, Registering, Token},
    sasl::{SaslError, SaslStart, SaslStep},
    session::Session,
    watches::{self, WatchKind},
};

impl Core {
    pub(super) fn handle_handshake(
        &mut self,
        now: Time,
        (asked_at, give_up_at): (Time, Time),
        response: ConnectResponse,
        effects: &mut impl Effects,
    ) {
        if response.timeout_ms <= 0 || response.session_id == SessionId::NONE {
            self.ended_for = Some("the server no longer knows the session".into());
            if let Some(session) = &self.session {
                // The server lives: request the next session at once, unless sessions end as soon
                // as they begin.
                let lived = now - session.granted_at;
                self.link = Link::Down {
                    retry_at: self.hosts.failed(now, lived),
                };
                return self.end_session(now, LostReason::Expired, effects);
            }
            return self.handle_disconnected(now, effects);
        }
        self.hosts.connected();
        let read_only = response.read_only == Some(true);
        match &mut self.session {
            Some(session) if session.id == response.session_id => {
                session.resumed(&response, asked_at, self.settings.session_timeout);
            }
            _ => {
                self.end_session(now, LostReason::Replaced, effects);
                self.epoch.0 += 1;
                let asked = self.settings.session_timeout;
                self.session = Some(Session::granted(response, asked_at, now, asked));
            }
        }
        self.is_read_only = read_only;
        self.sent_at = now;
        let Some(sasl) = &mut self.sasl else {
            return self.come_up(now, effects);
        };
        self.link = Link::Authenticating { give_up_at };
        let server = self.hosts.current();
        let start = SaslStart {
            server: &server,
            random: self.hosts.random(),
        };
        match sasl.0.start(start) {
            Ok(token) => self.send_sasl(now, token),
            Err(error) => self.fail_sasl(now, error, effects),
        }
    }

    /// Handles the reply to a SASL token.
    fn handle_sasl(
        &mut self,
        now: Time,
        result: Result<Reply, ErrorCode>,
        effects: &mut impl Effects,
    ) {
        let (Link::Authenticating { .. }, Some(sasl)) = (self.link, &mut self.sasl) else {
            return;
        };
        let step = match result {
            Ok(Reply::Token(token)) => sasl.0.respond(&token.unwrap_or_default()),
            Ok(_) => Err(SaslError::Challenge("no token")),
            Err(code) if Verdict::of(code) == Verdict::Refused => Err(SaslError::Refused(code)),
            // This error does not concern the token.
            Err(code) => {
                self.ended_for = Some(format!("SASL: the server answered: {code}").into());
                return self.handle_disconnected(now, effects);
            }
        };
        match step {
            Ok(SaslStep::Reply(token)) => self.send_sasl(now, token),
            Ok(SaslStep::Done) => self.come_up(now, effects),
            Err(error) => self.fail_sasl(now, error, effects),
        }
    }

    fn fail_sasl(&mut self, now: Time, error: SaslError, effects: &mut impl Effects) {
        self.ended_for = Some(error.to_string().into());
        match error {
            SaslError::NotReady(_) => self.handle_disconnected(now, effects),
            _ => self.fail_authentication(now, LostReason::Sasl(error), effects),
        }
    }

    /// Begins to send requests on a new connection.
    fn come_up(&mut self, now: Time, effects: &mut impl Effects) {
        self.link = Link::Up;
        self.up_at = now;
        self.connections += 1;
        self.register_again(now, effects);
        let Some(session) = &self.session else {
            return;
        };
        let resumed = std::mem::replace(&mut self.reported, self.epoch) == self.epoch;
        let change = Change::Connected {
            epoch: self.epoch,
            session: session.id,
            resumed,
            read_only: self.is_read_only,
        };
        self.report(change, effects);
        for entry in self.requests.send_kept(now, self.epoch) {
            self.complete_not_sent(now, entry, Cause::SessionLost, effects);
        }
        self.cleanups.hurry(now);
        self.send_due(now);
        self.continue_closing(now, effects);
    }

    /// Sends what the server needs before any request: identities and watches.
    pub(super) fn register_again(&mut self, now: Time, effects: &mut impl Effects) {
        for (scheme, data) in self.identities.clone() {
            self.send_identity(now, &scheme, &data, None);
        }
        self.watches.reconnected();
        for request in watches::register_again(&self.watches, self.last_zxid) {
            self.registering_again += 1;
            self.send_own(now, Xid::SET_WATCHES, &request, None);
        }
        for watch in self.watches.lasting() {
            effects.watch_interrupted(watch);
        }
    }

    // Replies and events.

    pub(super) fn handle_message(
        &mut self,
        now: Time,
        batch: &Bytes,
        window: std::ops::Range<usize>,
        effects: &mut impl Effects,
    ) -> Result<(), CloseCause> {
        let mut reader = Reader::window(batch, window.clone());
        let header = ReplyHeader::decode(&mut reader).map_err(CloseCause::Message)?;
        if header.xid == Xid::EVENT {
            let event = WatcherEvent::decode(&mut reader).map_err(CloseCause::Message)?;
            return self.handle_event(now, &event, header.zxid, effects);
        }
        let Some((entry, sent_at)) = self.requests.answered(header.xid) else {
            return match header.xid {
                // A server that holds a request back says that it is there. It proves nothing.
                Xid::PING => Ok(()),
                xid => Err(CloseCause::OutOfOrder(xid)),
            };
        };
        let own;
        // Slices of the reply must not keep the whole read buffer alive.
        if header.error.is_none() && owns_bytes(entry.op) {
            own = Bytes::copy_from_slice(&batch[window.start + ReplyHeader::BYTES..window.end]);
            reader = Reader::new(&own);
        }
        let result = match decode(entry.op, &header, reader) {
            Ok(Ok(reply)) if !entry.fits(&reply) => Err(CloseCause::UnfitReply(entry.op)),
            Ok(result) => Ok(result),
            Err(error) => Err(CloseCause::Message(error)),
        };
        let result = match result {
            Ok(result) => result,
            Err(cause) => {
                self.complete_unknown(now, entry, Cause::ReplyUnreadable, effects);
                return Err(cause);
            }
        };
        if let Some(session) = &mut self.session
            && !self.is_read_only
            && !matches!(entry.op, OpCode::Auth | OpCode::Sasl)
            && header.error.is_none_or(Verdict::proves_contact)
        {
            session.heard(sent_at, now);
        }
        if header.xid == Xid::SET_WATCHES {
            self.registering_again = self.registering_again.saturating_sub(1);
            if header.error.is_some() {
                // Without its watches the connection is useless: no caller would get an event.
                self.handle_disconnected(now, effects);
                return Ok(());
            }
        }
        if self.registering_again == 0
            && !matches!(entry.op, OpCode::Ping | OpCode::Auth | OpCode::Sasl)
        {
            self.last_zxid = self.last_zxid.max(header.zxid);
        }
        self.handle_reply(now, entry, result, header.zxid, effects);
        Ok(())
    }

    pub(super) fn handle_event(
        &mut self,
        now: Time,
        event: &WatcherEvent,
        zxid: Zxid,
        effects: &mut impl Effects,
    ) -> Result<(), CloseCause> {
        let fired = self.watches.fire(event.kind, &event.path, zxid);
        for table in fired.kept {
            self.remove_watch(now, table, &event.path);
        }
        if fired.lasting.is_empty() && fired.ended.is_empty() {
            // The watch was dropped, and the server still has it; or the event was damaged, and was
            // that of another watch, which the server no longer has. On the next connection the
            // server fires it again. A server that sends such events by itself keeps that one.
            //
            // Events without a zxid are those of setWatches, which come twice for a path in both
            // tables, and all of a server before 3.9, which may refuse to remove a watch.
            let has_zxid = zxid.0 > 0;
            let is_expected = !has_zxid
                || self.closing.is_some()
                || self.watches.expects(event.kind, &event.path)
                || self
                    .unexpected_in
                    .is_some_and(|it| it + 1 >= self.connections);
            if is_expected {
                return Ok(());
            }
            self.unexpected_in = Some(self.connections);
            return Err(CloseCause::UnexpectedEvent(event.path.clone()));
        }
        effects.event(event.kind, &event.path, zxid);
        for watch in fired.lasting {
            effects.watch_fired(watch, event.kind, &event.path, zxid);
        }
        let kind = event.kind;
        for watch in fired.ended {
            effects.watch_ended(watch, WatchEnd::Fired { kind, zxid });
        }
        Ok(())
    }

    pub(super) fn handle_reply(
        &mut self,
        now: Time,
        entry: Entry,
        result: Result<Reply, ErrorCode>,
        zxid: Zxid,
        effects: &mut impl Effects,
    ) {
        if let Some(registering) = &entry.registering {
            self.handle_registration(now, registering, entry.op, result.as_ref().err(), zxid);
        }
        match (entry.op, &result) {
            (OpCode::CloseSession, _) => return self.stop(now, effects),
            (OpCode::Sasl, _) => return self.handle_sasl(now, result, effects),
            // This error does not concern the identity, which is sent again on the next connection.
            (OpCode::Auth, Err(code)) if Verdict::of(*code) != Verdict::Refused => {
                self.complete(now, entry, result, zxid, effects);
                return self.handle_disconnected(now, effects);
            }
            (OpCode::Auth, Err(_)) => {
                self.ended_for = Some("the server did not accept an identity".into());
                return self.handle_auth_failure(now, entry, result, zxid, effects);
            }
            (_, Err(ErrorCode::SessionExpired)) => {
                self.complete(now, entry, result, zxid, effects);
                self.handle_disconnected(now, effects);
                return self.end_session(now, LostReason::Expired, effects);
            }
            (_, Err(ErrorCode::SessionMoved)) => {
                self.complete(now, entry, result, zxid, effects);
                return self.handle_disconnected(now, effects);
            }
            _ => {}
        }
        self.complete(now, entry, result, zxid, effects);
        if self.closing.is_some() {
            self.continue_closing(now, effects);
        }
    }

    pub(super) fn handle_registration(
        &mut self,
        now: Time,
        registering: &Registering,
        op: OpCode,
        error: Option<&ErrorCode>,
        zxid: Zxid,
    ) {
        let kind = match (op, error) {
            (_, None) => Some(registering.kind),
            // Only `exists` leaves a watch on a missing znode.
            (OpCode::Exists, Some(ErrorCode::NoNode)) => Some(WatchKind::Exist),
            _ => None,
        };
        let left = kind.map(|kind| (kind, registering.token, zxid));
        let path = &registering.path;
        if self.watches.settle(registering.kind, path, left) {
            self.remove_watch(now, registering.kind, path);
        }
    }

    /// Passes the result to its caller, or handles it here if the caller has dropped the call.
    pub(super) fn complete(
        &mut self,
        now: Time,
        entry: Entry,
        result: Result<Reply, ErrorCode>,
        zxid: Zxid,
        effects: &mut impl Effects,
    ) {
        let epoch = self.epoch;
        match entry.token {
            Some(Token::Caller(caller)) => effects.completed(
                caller,
                Outcome::Answered {
                    result,
                    zxid,
                    epoch,
                },
            ),
            Some(Token::Cleanup(step)) => {
                let next = self.cleanups.answered(now, epoch, step, result);
                if !self.close_sent {
                    for (step, request) in next {
                        self.send_cleanup(now, step, &request);
                    }
                }
            }
            None => {
                if let Some(if_abandoned) = entry.if_abandoned {
                    let outcome = Outcome::Answered {
                        result,
                        zxid,
                        epoch,
                    };
                    self.handle_unseen(now, *if_abandoned, outcome);
                }
            }
        }
    }

    pub(super) fn handle_auth_failure(
        &mut self,
        now: Time,
        entry: Entry,
        result: Result<Reply, ErrorCode>,
        zxid: Zxid,
        effects: &mut impl Effects,
    ) {
        self.complete(now, entry, result, zxid, effects);
        self.fail_authentication(now, LostReason::AuthFailed, effects);
    }

    /// Ends the client, since every further connection would end the same way.
    fn fail_authentication(&mut self, now: Time, reason: LostReason, effects: &mut impl Effects) {
        self.auth_failure = Some(reason);
        self.handle_disconnected(now, effects);
        self.end_session(now, reason, effects);
        self.stop(now, effects);
    }
}

/// Reads what follows the header of a reply.
///
/// Refuses some messages that no server sends, because they show that the reply was damaged: the
/// success of a creation must not pass for a refusal, nor one znode for another.
fn decode(
    op: OpCode,
    header: &ReplyHeader,
    mut reader: Reader<'_>,
) -> Result<Result<Reply, ErrorCode>, DecodeError> {
    let value = |field, value| Err(DecodeError::Value { field, value });
    if let Some(code) = header.error {
        // The reply to a refused SASL token has a body.
        let has_body = reader.remaining() > 0 && op != OpCode::Sasl;
        if has_body || code.code() > 0 {
            return value("error code", code.code().into());
        }
        return Ok(Err(code));
    }
    let reply = Reply::decode(op, &mut reader)?;
    if let Reply::PathStat(_, stat) = &reply
        && stat.czxid > header.zxid
    {
        return value("czxid", stat.czxid.0);
    }
    // A count that is too small leaves bytes, and would hide a znode.
    let is_whole = matches!(
        reply,
        Reply::PathStat(..)
            | Reply::Multi(_)
            | Reply::Children(_)
            | Reply::Children2(..)
            | Reply::Ephemerals(_)
    );
    if is_whole && reader.remaining() > 0 {
        let bytes = i64::try_from(reader.remaining()).unwrap_or(i64::MAX);
        return value("number of bytes behind the reply", bytes);
    }
    Ok(Ok(reply))
}

/// Returns whether a reply to this operation contains text or data.
const fn owns_bytes(op: OpCode) -> bool {
    !matches!(
        op,
        OpCode::Delete
            | OpCode::Exists
            | OpCode::SetData
            | OpCode::SetAcl
            | OpCode::Ping
            | OpCode::CheckWatches
            | OpCode::RemoveWatches
            | OpCode::SetWatches
            | OpCode::SetWatches2
            | OpCode::AddWatch
            | OpCode::Auth
            | OpCode::GetAllChildrenNumber
            | OpCode::CloseSession
    )
}
