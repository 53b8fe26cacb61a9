//! The handshake, closeSession and expiry.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6.2 to 6.5, 6.8, 10.24, 12.9 and 14.

use bytes::Bytes;
use minikeeper_protocol::{ConnectRequest, ConnectResponse, ReplyRef, SessionId, Zxid};

use crate::{
    effects::{CloseReason, Effects, Limit, Removal},
    input::{ConnId, Now},
    ops::{delete, pending_reply::PendingReply},
    persist::change::{self, ChangeHead},
    state::{Caller, State, keys::SessionKey, sessions},
    work,
};

/// Handles a connection's first message: opens a session, or resumes one.
pub(crate) fn connect(
    state: &mut State,
    conn: ConnId,
    now: Now,
    (hello, is_read_only): (&ConnectRequest, bool),
    effects: &mut impl Effects,
) {
    if hello.last_zxid_seen > state.zxid {
        return effects.close(conn, CloseReason::ZxidAhead);
    }
    let timeout_ms = negotiate(state, hello.timeout_ms);
    let session = if hello.session_id == SessionId::NONE {
        if state.sessions.len() >= state.settings.sessions_max {
            effects.limit_hit(Limit::Sessions, state.settings.sessions_max);
            return effects.close(conn, CloseReason::SessionsMax);
        }
        let zxid = state.next_zxid();
        let session = state.open_session(conn, timeout_ms, now);
        let head = head(state, session, zxid, now);
        change::session_opened(head, timeout_ms, effects);
        session
    } else {
        let found = state.sessions.find(hello.session_id);
        // The session's current connection is closed first, even before the password is checked.
        if let Some(old) = found.and_then(|key| state.sessions[key].conn) {
            state.detach(old);
            effects.close(old, CloseReason::SessionMoved);
        }
        let Some(session) = found.filter(|_| may_resume(hello)) else {
            if found.is_none() {
                effects.session_refused(hello.session_id);
            }
            effects.connected(
                conn,
                &ConnectResponse::refused(hello.read_only.map(|_| false)),
            );
            return effects.close(conn, CloseReason::SessionRefused);
        };
        state.sessions.resume(session, now, timeout_ms);
        session
    };
    state.attach(conn, session);
    let id = state.sessions[session].id;
    effects.session_opened(id, timeout_ms);
    let response = ConnectResponse {
        protocol_version: 0,
        timeout_ms: timeout_ms.cast_signed(),
        session_id: id,
        password: Some(Bytes::copy_from_slice(&sessions::password(id))),
        read_only: hello.read_only.map(|_| is_read_only),
    };
    effects.connected(conn, &response);
}

fn may_resume(hello: &ConnectRequest) -> bool {
    hello.password.as_deref() == Some(&sessions::password(hello.session_id)[..])
}

/// Clamps the requested timeout to the limits; zero and negative timeouts become the minimum.
fn negotiate(state: &State, wish_ms: i32) -> u32 {
    let settings = &state.settings;
    u32::try_from(wish_ms).unwrap_or(0).clamp(
        settings.session_timeout_min_ms,
        settings.session_timeout_max_ms,
    )
}

/// Serves closeSession: deletes the ephemerals, replies, and closes the connection.
pub(crate) fn close_session(
    state: &mut State,
    caller: Caller,
    mut reply: PendingReply<'_, impl Effects>,
) {
    let zxid = state.next_zxid();
    end(
        state,
        caller.session,
        zxid,
        caller.now,
        false,
        reply.effects,
    );
    reply.send(zxid, ReplyRef::Empty);
    reply.effects.close(caller.conn, CloseReason::SessionClosed);
}

/// Expires every session whose deadline has passed, each with its own zxid.
pub(crate) fn expire_due(state: &mut State, now: Now, effects: &mut impl Effects) {
    while let Some(session) = state.sessions.first_due(now) {
        expire(state, session, now, effects);
    }
}

/// Ends a session without a request of its client.
pub(crate) fn expire(state: &mut State, session: SessionKey, now: Now, effects: &mut impl Effects) {
    let zxid = state.next_zxid();
    let conn = state.sessions[session].conn;
    end(state, session, zxid, now, true, effects);
    if let Some(conn) = conn {
        effects.close(conn, CloseReason::SessionExpired);
    }
}

/// Returns the head of a change that opens or closes a session.
fn head(state: &State, session: SessionKey, zxid: Zxid, now: Now) -> ChangeHead {
    ChangeHead {
        session: state.sessions[session].id,
        zxid,
        wall_ms: now.wall_ms,
    }
}

/// Deletes the session's ephemerals under one zxid, then its watches and the session itself.
///
/// Events come before that, so that the session's own watches on its own ephemerals still fire.
fn end(
    state: &mut State,
    session: SessionKey,
    zxid: Zxid,
    now: Now,
    expired: bool,
    effects: &mut impl Effects,
) {
    change::session_ending(state, head(state, session, zxid, now), session, effects);
    let why = Removal::SessionEnded {
        session: state.sessions[session].id,
        expired,
    };
    let ephemerals = std::mem::take(&mut state.sessions[session].ephemerals);
    for (_, id) in ephemerals {
        work::visit();
        effects.removed(state.tree[id].path(), zxid, why);
        delete::delete_and_notify(state, id, zxid, effects);
    }
    if let Some(conn) = state.sessions[session].conn {
        state.detach(conn);
    }
    let id = state.close_session(session);
    effects.session_ended(id, expired);
}
