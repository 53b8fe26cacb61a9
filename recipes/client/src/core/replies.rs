//! What a server says: the answer to the handshake, replies, events.
//!
//! Source: `docs/zookeeper-protocol.md` sections 1.4, 6.4, 7.2, 12.4 and 12.8.

use bytes::Bytes;
use minikeeper_protocol::{
    ConnectResponse, ErrorCode, OpCode, Reader, Reply, ReplyHeader, SessionId, WatcherEvent, Xid,
    Zxid,
};

use super::{
    machine::{Core, Link},
    outcome::{Cause, Change, Effects, Fault, LostReason, Outcome, Time, Verdict, WatchEnd},
    requests::{Entry, Registering, Token},
    session::Session,
    watches::{self, WatchKind},
};

impl Core {
    pub(super) fn welcomed(
        &mut self,
        now: Time,
        asked_at: Time,
        response: ConnectResponse,
        effects: &mut impl Effects,
    ) {
        if response.timeout_ms <= 0 || response.session_id == SessionId::NONE {
            if let Some(session) = &self.session {
                // The server lives: the next session is asked for at once, unless sessions end as
                // soon as they begin.
                let lived = now - session.granted_at;
                self.link = Link::Down {
                    retry_at: self.hosts.failed(now, lived),
                };
                return self.lose(now, LostReason::Expired, effects);
            }
            return self.handle_disconnected(now, effects);
        }
        let read_only = response.read_only == Some(true);
        let resumed = match &mut self.session {
            Some(session) if session.id == response.session_id => {
                session.resumed(&response, asked_at);
                true
            }
            Some(_) => {
                self.lose(now, LostReason::Replaced, effects);
                false
            }
            None => false,
        };
        if !resumed {
            self.epoch.0 += 1;
            self.session = Some(Session::granted(response, asked_at, now));
        }
        self.link = Link::Up;
        self.up_at = now;
        self.is_read_only = read_only;
        self.connections += 1;
        self.sent_at = now;
        self.greet(now);
        let Some(session) = &self.session else {
            return;
        };
        let change = Change::Connected {
            epoch: self.epoch,
            session: session.id,
            resumed,
            read_only,
        };
        self.tell(change, effects);
        for entry in self.requests.send_kept(now, self.epoch) {
            self.not_sent(now, entry, Cause::SessionLost, effects);
        }
        self.cleanups.hurry(now);
        self.work_off(now);
        self.go_on_closing(now, effects);
    }

    /// What a server has to know before any request: who this is, and what it watches.
    pub(super) fn greet(&mut self, now: Time) {
        for (scheme, data) in self.identities.clone() {
            self.send_identity(now, &scheme, &data, None);
        }
        self.watches.reconnected();
        for request in watches::register_again(&self.watches, self.last_zxid) {
            self.registering_again += 1;
            self.send_own(now, Xid::SET_WATCHES, &request, None);
        }
    }

    // Replies and events.

    pub(super) fn message(
        &mut self,
        now: Time,
        batch: &Bytes,
        window: std::ops::Range<usize>,
        effects: &mut impl Effects,
    ) -> Result<(), Fault> {
        let mut reader = Reader::window(batch, window.clone());
        let header = ReplyHeader::decode(&mut reader).map_err(Fault::Message)?;
        if header.xid == Xid::EVENT {
            let event = WatcherEvent::decode(&mut reader).map_err(Fault::Message)?;
            self.event(&event, header.zxid, effects);
            return Ok(());
        }
        let (entry, sent_at) = self
            .requests
            .answered(header.xid)
            .ok_or(Fault::OutOfOrder(header.xid))?;
        if let Some(session) = &mut self.session
            && !self.is_read_only
            && header.error.is_none_or(Verdict::proves_contact)
        {
            session.heard(sent_at);
        }
        if header.xid == Xid::SET_WATCHES {
            self.registering_again = self.registering_again.saturating_sub(1);
            if header.error.is_some() {
                // Without its watches the connection is of no use: nobody would hear of anything.
                self.handle_disconnected(now, effects);
                return Ok(());
            }
        }
        if self.registering_again == 0 && !matches!(header.xid, Xid::PING | Xid::AUTH) {
            self.last_zxid = self.last_zxid.max(header.zxid);
        }
        let result = match header.error {
            Some(code) => Err(code),
            // What is taken out of a reply must not keep a whole read alive.
            None if owns_bytes(entry.op) => {
                let own =
                    Bytes::copy_from_slice(&batch[window.start + ReplyHeader::BYTES..window.end]);
                Ok(Reply::decode(entry.op, &mut Reader::new(&own)).map_err(Fault::Message)?)
            }
            None => Ok(Reply::decode(entry.op, &mut reader).map_err(Fault::Message)?),
        };
        self.answered(now, entry, result, header.zxid, effects);
        Ok(())
    }

    pub(super) fn event(&mut self, event: &WatcherEvent, zxid: Zxid, effects: &mut impl Effects) {
        let fired = self.watches.fire(event.kind, &event.path);
        for watch in fired.going_on {
            effects.watch_fired(watch, event.kind, &event.path, zxid);
        }
        let kind = event.kind;
        for watch in fired.ended {
            effects.watch_ended(watch, WatchEnd::Fired { kind, zxid });
        }
    }

    pub(super) fn answered(
        &mut self,
        now: Time,
        entry: Entry,
        result: Result<Reply, ErrorCode>,
        zxid: Zxid,
        effects: &mut impl Effects,
    ) {
        if let Some(registering) = &entry.registering {
            self.registered(now, registering, entry.op, result.as_ref().err());
        }
        match (entry.op, &result) {
            (OpCode::CloseSession, _) => return self.stop(now, effects),
            // Not about the identity: it is told again on the next connection.
            (OpCode::Auth, Err(code)) if Verdict::of(*code) != Verdict::Refused => {
                self.finish(now, entry, result, zxid, effects);
                return self.handle_disconnected(now, effects);
            }
            (OpCode::Auth, Err(_)) => return self.auth_failed(now, entry, result, zxid, effects),
            (_, Err(ErrorCode::SessionExpired)) => {
                self.finish(now, entry, result, zxid, effects);
                self.handle_disconnected(now, effects);
                return self.lose(now, LostReason::Expired, effects);
            }
            (_, Err(ErrorCode::SessionMoved)) => {
                self.finish(now, entry, result, zxid, effects);
                return self.handle_disconnected(now, effects);
            }
            _ => {}
        }
        self.finish(now, entry, result, zxid, effects);
        if self.closing.is_some() {
            self.go_on_closing(now, effects);
        }
    }

    pub(super) fn registered(
        &mut self,
        now: Time,
        registering: &Registering,
        op: OpCode,
        error: Option<&ErrorCode>,
    ) {
        let kind = match (op, error) {
            (_, None) => Some(registering.kind),
            // Only exists leaves its watch on a znode that is not there.
            (OpCode::Exists, Some(ErrorCode::NoNode)) => Some(WatchKind::Exist),
            _ => None,
        };
        let left = kind.map(|kind| (kind, registering.token));
        let path = &registering.path;
        if self.watches.settle(registering.kind, path, left) {
            self.remove_watch(now, registering.kind, path);
        }
    }

    /// Hands the result to whoever waits for it, or does what is to be done if nobody does.
    pub(super) fn finish(
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
                for (step, request) in self.cleanups.answered(now, epoch, step, result) {
                    self.send_cleanup(now, step, &request);
                }
            }
            None => {
                if let Some(if_abandoned) = entry.if_abandoned {
                    let outcome = Outcome::Answered {
                        result,
                        zxid,
                        epoch,
                    };
                    self.unseen(now, *if_abandoned, outcome);
                }
            }
        }
    }

    pub(super) fn auth_failed(
        &mut self,
        now: Time,
        entry: Entry,
        result: Result<Reply, ErrorCode>,
        zxid: Zxid,
        effects: &mut impl Effects,
    ) {
        self.finish(now, entry, result, zxid, effects);
        self.handle_disconnected(now, effects);
        self.lose(now, LostReason::AuthFailed, effects);
        // Every further connection would end the same way.
        self.stop(now, effects);
    }
}

/// Whether a reply to this operation holds text or data.
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
