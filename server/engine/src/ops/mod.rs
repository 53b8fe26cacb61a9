//! The operations, one file per family. Each one checks, changes the state, sends events and
//! replies.
//!
//! [`serve`] takes every input. [`serve_request`] dispatches decoded requests:
//!
//! | file | operations |
//! | --- | --- |
//! | [`read`] | exists, getData, getChildren, getACL, sync, getEphemerals, getAllChildrenNumber |
//! | [`create`], [`delete`], [`set`] | create and its variants; delete; setData, setACL |
//! | [`multi`] | multi, multiRead |
//! | [`watch`] | setWatches, addWatch, checkWatches, removeWatches |
//! | [`session`] | the handshake, closeSession, expiry |
//! | [`auth`], `sasl` | auth, sasl, whoAmI |
//! | [`cleanup`] | deletion of containers and of znodes whose TTL has passed |
//! | [`administer`] | changes made by the administrator instead of a client |
//!
//! They share [`events`], which sends events to watchers, and [`pending_reply`].
//!
//! Source: `docs/zookeeper-protocol.md` section 1.3.

pub(crate) mod administer;
pub(crate) mod auth;
pub(crate) mod cleanup;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod events;
pub(crate) mod multi;
pub(crate) mod pending_reply;
pub(crate) mod read;
#[cfg(feature = "sasl")]
mod sasl;
pub(crate) mod session;
pub(crate) mod set;
pub(crate) mod watch;

use minikeeper_protocol::{ErrorCode, ReplyRef, Request, Xid, Zxid};

use crate::{
    effects::{CloseReason, Effects},
    input::{ConnId, Input, Now},
    ops::{pending_reply::PendingReply, watch::WatchLists},
    state::{Caller, State, conns::Conn},
};

/// Serves one input.
#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
pub(crate) fn serve(state: &mut State, now: Now, input: &Input, effects: &mut impl Effects) {
    let Input::Request { conn, xid, request } = input else {
        return serve_rare(state, now, input, effects);
    };
    let Some(caller) = admit(state, *conn, now) else {
        return;
    };
    if matches!(request, Request::Auth { .. } | Request::Sasl { .. }) {
        let reply = PendingReply::to(*conn, *xid, effects);
        return auth::serve(state, caller, request, reply);
    }
    if !enter(state, caller, *xid, effects) {
        return;
    }
    serve_request(
        state,
        caller,
        request,
        PendingReply::to(*conn, *xid, effects),
    );
    if let Some(limit) = state.limit_hit.take() {
        effects.limit_hit(limit, state.settings.max_of(limit));
    }
}

/// Serves an input that is not a decoded request.
#[inline(never)]
fn serve_rare(state: &mut State, now: Now, input: &Input, effects: &mut impl Effects) {
    match input {
        Input::Request { .. } => {}
        Input::Open { conn, peer } => state.open(*conn, *peer),
        Input::Identify { conn, subject } => auth::identify(state, *conn, subject, effects),
        Input::Connect {
            conn,
            hello,
            is_read_only,
        } => {
            session::connect(state, *conn, now, (hello, *is_read_only), effects);
        }
        Input::Undecodable {
            conn,
            xid,
            consumes_zxid,
        } => {
            if let Some(caller) = admit(state, *conn, now)
                && enter(state, caller, *xid, effects)
            {
                let zxid = if *consumes_zxid {
                    state.next_zxid()
                } else {
                    state.zxid
                };
                PendingReply::to(*conn, *xid, effects).refuse(zxid, ErrorCode::MarshallingError);
            }
        }
        Input::UnknownOp { conn, xid } => {
            if let Some(caller) = admit(state, *conn, now)
                && enter(state, caller, *xid, effects)
            {
                refuse_unknown(state, PendingReply::to(*conn, *xid, effects));
            }
        }
        // It renews the session like any request: `docs/zookeeper-protocol.md` section 17.2.
        Input::Refused {
            conn, xid, error, ..
        } => {
            if let Some(caller) = admit(state, *conn, now)
                && enter(state, caller, *xid, effects)
            {
                PendingReply::to(*conn, *xid, effects).refuse(state.zxid, *error);
            }
        }
        Input::Disconnect { conn } => state.detach(*conn),
        Input::Tick => {
            session::expire_due(state, now, effects);
            cleanup::run_if_due(state, now, effects);
            state.clean_watches();
            state.shed_undo();
        }
        Input::Expire { session } => {
            if let Some(session) = state.sessions.find(*session) {
                session::expire(state, session, now, effects);
            }
        }
    }
}

/// Returns the caller of a request; `None` if its connection has no session.
#[inline]
fn admit(state: &State, conn: ConnId, now: Now) -> Option<Caller> {
    let Conn {
        session,
        identities,
    } = state.conns.get(conn)?;
    Some(Caller {
        conn,
        session,
        identities,
        now,
    })
}

/// Renews the session for a request that ZooKeeper would queue. Returns false if the server
/// requires another identity first; then the reply has been sent.
#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
fn enter(state: &mut State, caller: Caller, xid: Xid, effects: &mut impl Effects) -> bool {
    let may_enter = auth::has_required_scheme(state, caller, xid, effects);
    if may_enter {
        state.sessions.touch(caller.session, caller.now);
    }
    may_enter
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "five percent of a getData, measured")]
fn serve_request(
    state: &mut State,
    caller: Caller,
    request: &Request,
    mut reply: PendingReply<'_, impl Effects>,
) {
    match request {
        Request::GetData { path, watch } => {
            read::get_data(state, caller, path.as_ref(), *watch, reply);
        }
        Request::SetData {
            path,
            data,
            version,
        } => {
            set::set_data(state, caller, path.as_ref(), data.as_ref(), *version, reply);
        }
        Request::Create(create) => create::create(state, caller, create, reply),
        Request::Delete { path, version } => {
            delete::delete(state, caller, path.as_ref(), *version, reply);
        }
        Request::Exists { path, watch } => {
            read::exists(state, caller, path.as_ref(), *watch, reply);
        }
        Request::GetChildren { path, watch } => {
            read::get_children(state, caller, path.as_ref(), *watch, false, reply);
        }
        Request::GetChildren2 { path, watch } => {
            read::get_children(state, caller, path.as_ref(), *watch, true, reply);
        }
        Request::Ping => {
            reply.xid = Xid::PING;
            reply.send(state.zxid, ReplyRef::Empty);
        }
        Request::Multi(requests) => multi::multi(state, caller, requests, reply),
        Request::MultiRead(requests) => multi::multi_read(state, caller, requests, reply),
        Request::MultiReadOfChanges(requests) => {
            multi::multi_read_of_changes(state, requests, reply);
        }
        Request::GetAcl { path } => read::get_acl(state, caller, path.as_ref(), reply),
        Request::SetAcl { path, acl, version } => {
            set::set_acl(state, caller, path.as_ref(), acl, *version, reply);
        }
        Request::Sync { path } => read::sync(state, path.as_ref(), reply),
        Request::GetEphemerals { prefix } => {
            read::get_ephemerals(state, caller, prefix.as_ref(), reply);
        }
        Request::GetAllChildrenNumber { path } => {
            read::get_all_children_number(state, caller, path.as_ref(), reply);
        }
        Request::SetWatches {
            relative_zxid,
            data,
            exist,
            child,
        } => {
            let lists = WatchLists {
                relative_zxid: *relative_zxid,
                data,
                exist,
                child,
                persistent: &[],
                persistent_recursive: &[],
            };
            watch::set_watches(state, caller, &lists, reply);
        }
        Request::SetWatches2 {
            relative_zxid,
            data,
            exist,
            child,
            persistent,
            persistent_recursive,
        } => {
            let relative_zxid = *relative_zxid;
            let lists = WatchLists {
                relative_zxid,
                data,
                exist,
                child,
                persistent,
                persistent_recursive,
            };
            watch::set_watches(state, caller, &lists, reply);
        }
        Request::AddWatch { path, mode } => {
            watch::add_watch(state, caller, path.as_ref(), *mode, reply);
        }
        Request::CheckWatches { path, kind } => {
            watch::check_watches(state, caller, path.as_ref(), *kind, reply);
        }
        Request::RemoveWatches { path, kind } => {
            watch::remove_watches(state, caller, path.as_ref(), *kind, reply);
        }
        // A standalone server cannot do this. A failed write also takes a zxid.
        Request::Reconfig { .. } => {
            let error = if state.settings.reconfig_enabled {
                ErrorCode::Unimplemented
            } else {
                ErrorCode::ReconfigDisabled
            };
            let zxid = state.next_zxid();
            reply.refuse(zxid, error);
        }
        Request::CloseSession => session::close_session(state, caller, reply),
        Request::WhoAmI => auth::who_am_i(state, caller, reply),
        // Served by `auth::serve` instead.
        Request::Auth { .. } | Request::Sasl { .. } => {}
        // Outside of a multi, check is unknown since 3.9.3; the internal operations are not for
        // clients (`docs/zookeeper-protocol.md` section 26).
        Request::Check { .. } | Request::CreateSession | Request::DeleteContainer { .. } => {
            refuse_unknown(state, reply);
        }
    }
}

/// Replies to an unknown operation, and closes the connection.
fn refuse_unknown(state: &mut State, reply: PendingReply<'_, impl Effects>) {
    let why = CloseReason::UnknownOp;
    reply.refuse_and_close(state, Zxid::NONE, ErrorCode::Unimplemented, why);
}
