//! auth, sasl, whoAmI; and the check for a required scheme.
//!
//! Source: `docs/zookeeper-protocol.md` sections 1.2, 9.7, 9.8, 9.10 to 9.12, 10.16 and 10.23.

use bytes::Bytes;
use minikeeper_protocol::{ClientInfo, ErrorCode, ReplyRef, Request, Ustring, Xid, Zxid};

use crate::{
    auth::{self, digest, ip},
    effects::{CloseReason, Effects, Limit},
    input::ConnId,
    ops::pending_reply::PendingReply,
    state::{
        Caller, State,
        identities::{IDS_BYTES_MAX, Identity, Scheme},
    },
};

/// The zxid in replies that ZooKeeper sends without queueing the request.
pub(super) const BESIDE_THE_QUEUE: Zxid = Zxid(0);

/// Serves auth and sasl, which bypass the queue in ZooKeeper. Does not renew the session.
pub(crate) fn serve(
    state: &mut State,
    caller: Caller,
    request: &Request,
    mut reply: PendingReply<'_, impl Effects>,
) {
    match request {
        Request::Auth { scheme, data, .. } => {
            auth(state, caller, scheme.as_ref(), data.as_ref(), reply);
        }
        #[cfg(feature = "sasl")]
        Request::Sasl { token } if state.settings.sasl.is_some() => {
            let token = token.as_deref().unwrap_or_default();
            crate::ops::sasl::step(state, caller, token, reply);
        }
        // ZooKeeper's reply without a SASL login: success without an identity.
        Request::Sasl { .. } => reply.send(BESIDE_THE_QUEUE, ReplyRef::Token(None)),
        _ => {}
    }
}

fn auth(
    state: &mut State,
    caller: Caller,
    scheme: Option<&Ustring>,
    data: Option<&Bytes>,
    mut reply: PendingReply<'_, impl Effects>,
) {
    let has_succeeded = match (scheme.map(Ustring::as_bytes), data) {
        // The address is already an identity.
        (Some(b"ip"), _) => true,
        (Some(b"digest"), Some(data)) if state.settings.digest_enabled => {
            let added = add_digest(state, caller, data);
            is_within_limits(state, added, reply.effects)
        }
        // Succeeds if the client presented a certificate in the TLS handshake.
        (Some(b"x509"), _) if state.settings.x509 => state
            .identities
            .get(caller.identities)
            .has_scheme(Scheme::X509),
        (Some(b"ensemble"), data) if is_of_our_ensemble(state, data) => true,
        // No reply: a client that gets an error gives up, but this one should try another server.
        (Some(b"ensemble"), _) if state.settings.ensemble_names.is_some() => {
            return reply.close(state, CloseReason::EnsembleRefused);
        }
        (Some(b"key"), Some(data)) if state.settings.key_scheme => {
            // The identity does not depend on the number.
            meets_key(state, data) && {
                let added = state.prove(caller.conn, vec![identity(Scheme::Key, "")]);
                is_within_limits(state, added, reply.effects)
            }
        }
        _ => false,
    };
    if has_succeeded {
        reply.send(BESIDE_THE_QUEUE, ReplyRef::Empty);
    } else {
        let (error, why) = (ErrorCode::AuthFailed, CloseReason::AuthFailed);
        reply.refuse_and_close(state, BESIDE_THE_QUEUE, error, why);
    }
}

/// Returns whether the scheme `ensemble` exists and the client names one of the server's ensembles.
fn is_of_our_ensemble(state: &State, data: Option<&Bytes>) -> bool {
    let names = state.settings.ensemble_names.as_ref();
    let data = data.map(|data| &**data).unwrap_or_default();
    names.is_some_and(|names| auth::is_of_ensemble(names, data))
}

/// Returns whether the client's data is a multiple of the number in `/key`. Any data will do while
/// there is no number, so that a client can write it.
fn meets_key(state: &State, data: &[u8]) -> bool {
    let key = state.tree.find(b"/key").map(|id| &state.tree[id]);
    key.and_then(|znode| znode.data())
        .is_none_or(|key| auth::is_multiple_of_key(key, data))
}

fn add_digest(state: &mut State, caller: Caller, data: &[u8]) -> Result<(), Limit> {
    // The user is part of the id, so longer data is refused unhashed.
    if data.len() > IDS_BYTES_MAX {
        return Err(Limit::Identities);
    }
    let id = digest::digest_identity(data, state.settings.digest_algorithm);
    let mut proven = Vec::new();
    if state.settings.super_digest.as_deref() == Some(&id) {
        proven.push(identity(Scheme::Super, ""));
    }
    proven.push(identity(Scheme::Digest, &id));
    state.prove(caller.conn, proven)
}

/// Adds the subject of a connection's client certificate as an identity.
pub(crate) fn identify(state: &mut State, conn: ConnId, subject: &str, effects: &mut impl Effects) {
    let mut proven = Vec::new();
    if state.settings.x509_super_user.as_deref() == Some(subject) {
        proven.push(identity(Scheme::Super, subject));
    }
    proven.push(identity(Scheme::X509, subject));
    let added = state.prove(conn, proven);
    if !is_within_limits(state, added, effects) {
        state.detach(conn);
        effects.close(conn, CloseReason::AuthFailed);
    }
}

/// Returns whether the identities were added. If not, reports the limit.
pub(super) fn is_within_limits(
    state: &State,
    added: Result<(), Limit>,
    effects: &mut impl Effects,
) -> bool {
    added
        .inspect_err(|limit| effects.limit_hit(*limit, state.settings.max_of(*limit)))
        .is_ok()
}

pub(super) fn identity(scheme: Scheme, id: &str) -> Identity {
    let id = Ustring::from(id);
    let id = Bytes::copy_from_slice(&id.as_echoed()).into();
    Identity { scheme, id }
}

/// Returns whether the connection has an identity of a required scheme. If not, replies to the
/// request and closes the connection.
#[inline]
pub(crate) fn has_required_scheme<E: Effects>(
    state: &mut State,
    caller: Caller,
    xid: Xid,
    effects: &mut E,
) -> bool {
    state.settings.enforce_auth_schemes.is_empty()
        || check_required_scheme(state, caller, xid, effects)
}

#[inline(never)]
fn check_required_scheme<E: Effects>(
    state: &mut State,
    caller: Caller,
    xid: Xid,
    effects: &mut E,
) -> bool {
    let demanded = &state.settings.enforce_auth_schemes;
    let who = state.identities.get(caller.identities);
    let schemes = [
        Scheme::Ip,
        Scheme::Digest,
        Scheme::Sasl,
        Scheme::X509,
        Scheme::Key,
        Scheme::Super,
    ];
    let is_allowed = schemes.iter().any(|scheme| {
        who.has_scheme(*scheme) && demanded.iter().any(|demanded| demanded == scheme.name())
    });
    if !is_allowed {
        let reply = PendingReply::to(caller.conn, xid, effects);
        let error = ErrorCode::SessionClosedRequireSaslAuth;
        reply.refuse_and_close(state, BESIDE_THE_QUEUE, error, CloseReason::AuthRequired);
    }
    is_allowed
}

/// Lists the identities of the connection, without their secrets.
pub(crate) fn who_am_i(
    state: &mut State,
    caller: Caller,
    mut reply: PendingReply<'_, impl Effects>,
) {
    let who = state.identities.get(caller.identities);
    let mut infos = vec![ClientInfo {
        scheme: Scheme::Ip.name().into(),
        user: ip::ip_identity(who.address).into(),
    }];
    infos.extend(who.added().iter().map(|identity| ClientInfo {
        scheme: identity.scheme.name().into(),
        user: match identity.scheme {
            Scheme::Digest => before_colon(&identity.id),
            // ZooKeeper never shows a user for this scheme.
            Scheme::Super => "".into(),
            _ => identity.id.clone(),
        },
    }));
    let bytes_of =
        |info: &ClientInfo| 8 + info.scheme.as_bytes().len() + info.user.as_bytes().len();
    match state.check_reply_bytes(4 + infos.iter().map(bytes_of).sum::<usize>()) {
        Ok(()) => reply.send(state.zxid, ReplyRef::ClientInfos(&infos)),
        Err(error) => reply.refuse(state.zxid, error),
    }
}

fn before_colon(id: &Ustring) -> Ustring {
    let bytes = id.as_bytes();
    let end = bytes.iter().position(|&byte| byte == b':');
    Bytes::copy_from_slice(&bytes[..end.unwrap_or(bytes.len())]).into()
}
