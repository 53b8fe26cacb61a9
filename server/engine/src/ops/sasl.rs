//! sasl: serves one step of an exchange.
//!
//! Source: `docs/zookeeper-protocol.md` sections 1.2, 9.10 and 10.23.

use minikeeper_protocol::{ErrorCode, ReplyRef};

use crate::{
    auth::sasl::{self, SaslError, Step},
    effects::{CloseReason, Effects},
    ops::{
        auth::{BESIDE_THE_QUEUE, identity, is_within_limits},
        pending_reply::PendingReply,
    },
    state::{Caller, State, identities::Scheme},
};

/// Handles one token from a client, if the server has SASL users.
pub(super) fn step(
    state: &mut State,
    caller: Caller,
    token: &[u8],
    mut reply: PendingReply<'_, impl Effects>,
) {
    let Some(settings) = &state.settings.sasl else {
        return;
    };
    let counter = &mut state.nonces;
    let nonce = || {
        *counter += 1;
        sasl::nonce(&settings.nonce_seed, *counter)
    };
    let password = |name: &str| {
        let mut users = settings.users.iter();
        users
            .find(|(user, _)| user == name)
            .map(|(_, password)| &**password)
    };
    let exchange = state.exchanges.entry(caller.conn).or_default();
    let step = exchange.step(token, nonce, password);
    match step {
        Ok(Step::Challenge(token)) => {
            reply.send(BESIDE_THE_QUEUE, ReplyRef::Token(Some(&token)));
        }
        Ok(Step::Done { user, proof }) => {
            let mut proven = vec![identity(Scheme::Sasl, &user)];
            if settings.super_users.contains(&user) {
                proven.push(identity(Scheme::Super, ""));
            }
            let added = state.prove(caller.conn, proven);
            if !is_within_limits(state, added, reply.effects) {
                let error = ErrorCode::AuthFailed;
                reply.refuse_with(BESIDE_THE_QUEUE, error, ReplyRef::Token(None));
                return reply.close(state, CloseReason::AuthFailed);
            }
            reply.send(BESIDE_THE_QUEUE, ReplyRef::Token(Some(&proof)));
        }
        Err(SaslError::Unanswered(_)) => reply.close(state, CloseReason::SaslUnanswered),
        Err(SaslError::Refused(_)) => {
            let required = &state.settings.enforce_auth_schemes;
            let is_required = required.iter().any(|scheme| scheme == Scheme::Sasl.name());
            if settings.allow_failed && !is_required {
                return reply.send(BESIDE_THE_QUEUE, ReplyRef::Token(None));
            }
            let error = if is_required {
                ErrorCode::SessionClosedRequireSaslAuth
            } else {
                ErrorCode::AuthFailed
            };
            reply.refuse_with(BESIDE_THE_QUEUE, error, ReplyRef::Token(None));
            reply.close(state, CloseReason::AuthFailed);
        }
    }
}
