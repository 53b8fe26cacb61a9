//! multi and multiRead.
//!
//! Source: `docs/zookeeper-protocol.md` sections 7.6, 10.15 and 13.

use bytes::Bytes;
use minikeeper_protocol::{
    Create, CreateMode, CreateOp, ErrorCode, MultiOp, MultiReadOp, MultiReadResults, MultiResult,
    Perms, ReplyRef, Ustring, Zxid,
};

use crate::{
    effects::{Effects, Limit},
    ops::{create, delete, events, pending_reply::PendingReply, set},
    persist::change,
    state::{
        Caller, State,
        keys::{AclId, ZnodeId},
    },
};

/// An event that is sent only once the whole multi has succeeded.
struct PendingEvent {
    change: ChangeKind,
    path: Vec<u8>,
    /// The access lists of the znode and of its parent at the time of the change.
    acls: (AclId, AclId),
}

enum ChangeKind {
    Created,
    Deleted,
    DataChanged,
}

pub(crate) fn multi(
    state: &mut State,
    caller: Caller,
    ops: &[MultiOp],
    mut reply: PendingReply<'_, impl Effects>,
) {
    if let Err(error) = check_count(state, ops.len()) {
        // As for any other malformed multi.
        let zxid = state.next_zxid();
        return reply.refuse(zxid, error);
    }
    let ops = match ops
        .iter()
        .map(as_decoded_by_zookeeper)
        .collect::<Result<Vec<_>, _>>()
    {
        Ok(ops) => ops,
        Err(NotDecodable::NullAcl) => {
            return reply.refuse(state.zxid, ErrorCode::MarshallingError);
        }
        Err(NotDecodable::Other) => {
            let zxid = state.next_zxid();
            return reply.refuse(zxid, ErrorCode::MarshallingError);
        }
    };
    let zxid = state.next_zxid();
    state.begin();
    let mut results = Vec::with_capacity(ops.len());
    let mut pending_events = Vec::new();
    for op in &ops {
        match apply(state, caller, zxid, op, &mut pending_events, reply.effects) {
            Ok(result) => results.push(result),
            Err(error) => {
                state.roll_back();
                reply.effects.taken_back(zxid);
                // In ZooKeeper an internal error ends the request, not just the operation.
                if error == ErrorCode::MarshallingError {
                    return reply.refuse(zxid, error);
                }
                let results = failed(ops.len(), results.len(), error);
                // The header says success: clients see the failure in the results.
                return reply.send(zxid, ReplyRef::Multi(&results));
            }
        }
    }
    for PendingEvent { change, path, acls } in &pending_events {
        let (acl, parent_acl) = *acls;
        let effects = &mut *reply.effects;
        match change {
            ChangeKind::Created => events::created(state, path, acl, parent_acl, zxid, effects),
            ChangeKind::Deleted => events::deleted(state, path, acl, parent_acl, zxid, effects),
            ChangeKind::DataChanged => events::data_changed(state, path, acl, zxid, effects),
        }
    }
    // Only now, because the undo list keeps the access lists of deleted znodes, which the events
    // need.
    state.commit();
    reply.send(zxid, ReplyRef::Multi(&results));
}

fn apply(
    state: &mut State,
    caller: Caller,
    zxid: Zxid,
    op: &MultiOp,
    pending_events: &mut Vec<PendingEvent>,
    effects: &mut impl Effects,
) -> Result<MultiResult, ErrorCode> {
    let mut note = |state: &State, change, id| {
        if !state.watches.is_empty() {
            pending_events.push(PendingEvent {
                change,
                path: state.tree[id].path().to_vec(),
                acls: state.acls_at(id),
            });
        }
    };
    Ok(match op {
        MultiOp::Create(request) => {
            let id = create::change(state, caller, zxid, request)?;
            note(state, ChangeKind::Created, id);
            change::created(state, caller, zxid, id, effects);
            let znode = &state.tree[id];
            let path = Ustring::from(Bytes::copy_from_slice(znode.path()));
            match request.op {
                CreateOp::Create => MultiResult::Create { path },
                _ => MultiResult::Create2 {
                    path,
                    stat: create::stat(state, id, request),
                },
            }
        }
        MultiOp::Delete { path, version } => {
            let id = delete::find(state, caller, path.as_ref(), *version)?;
            note(state, ChangeKind::Deleted, id);
            change::deleting(state, caller, zxid, id, effects);
            state.delete(id, zxid);
            MultiResult::Delete
        }
        MultiOp::SetData {
            path,
            data,
            version,
        } => {
            let (_, id) =
                set::change_data(state, caller, zxid, path.as_ref(), data.as_ref(), *version)?;
            note(state, ChangeKind::DataChanged, id);
            change::data_set(state, caller, zxid, id, effects);
            let stat = state.tree[id].stat();
            MultiResult::SetData { stat }
        }
        MultiOp::Check { path, version } => {
            set::check(state, caller, path.as_ref(), *version)?;
            MultiResult::Check
        }
    })
}

/// Returns the results of a failed multi: success before the failed operation, its error, and
/// RUNTIMEINCONSISTENCY for those after it, which were not tried.
fn failed(count: usize, failed: usize, error: ErrorCode) -> Vec<MultiResult> {
    (0..count)
        .map(|index| {
            MultiResult::Error(match index.cmp(&failed) {
                std::cmp::Ordering::Less => None,
                std::cmp::Ordering::Equal => Some(error),
                std::cmp::Ordering::Greater => Some(ErrorCode::RuntimeInconsistency),
            })
        })
        .collect()
}

enum NotDecodable {
    /// Refused before a zxid is taken.
    NullAcl,
    Other,
}

/// Converts an operation as ZooKeeper's decoder does: it turns creates inside a multi into other
/// ones, or refuses the whole request because of them. Source: `docs/zookeeper-protocol.md` section
/// 13.1.
fn as_decoded_by_zookeeper(op: &MultiOp) -> Result<MultiOp, NotDecodable> {
    let (MultiOp::Create(Create { path, .. })
    | MultiOp::Delete { path, .. }
    | MultiOp::SetData { path, .. }
    | MultiOp::Check { path, .. }) = op;
    let MultiOp::Create(create) = op else {
        return if path.is_none() {
            Err(NotDecodable::Other)
        } else {
            Ok(op.clone())
        };
    };
    // createTTL takes another path through ZooKeeper's decoder: faults in its flags or its access
    // list are found later, as that operation's error.
    let is_ttl = create.op == CreateOp::Ttl;
    if create.acl.is_null() && !is_ttl {
        return Err(NotDecodable::NullAcl);
    }
    let mode = match CreateMode::from_flags(create.flags) {
        Some(mode) => mode,
        None if is_ttl => CreateMode::Persistent,
        None => return Err(NotDecodable::Other),
    };
    if path.is_none() || (mode.has_ttl() && !is_ttl) {
        return Err(NotDecodable::Other);
    }
    let op = match (create.op, mode) {
        (CreateOp::Ttl, mode) if mode.has_ttl() => CreateOp::Ttl,
        (_, CreateMode::Container) | (CreateOp::Container, _) => CreateOp::Container,
        (CreateOp::Ttl | CreateOp::Create, _) => CreateOp::Create,
        (CreateOp::Create2, _) => CreateOp::Create2,
    };
    Ok(MultiOp::Create(Create {
        op,
        ..create.clone()
    }))
}

/// Refuses a multiRead of changes. ZooKeeper refuses it when it serves the first operation, with a
/// body that says that nothing was read; or when it decodes the request, without a body. Source:
/// `docs/zookeeper-protocol.md` section 13.4.
pub(crate) fn multi_read_of_changes(
    state: &State,
    ops: &[MultiOp],
    mut reply: PendingReply<'_, impl Effects>,
) {
    let is_decodable = ops.iter().all(|op| as_decoded_by_zookeeper(op).is_ok());
    let body = if is_decodable {
        ReplyRef::Multi(&[])
    } else {
        ReplyRef::Empty
    };
    reply.refuse_with(state.zxid, ErrorCode::MarshallingError, body);
}

/// The outcome of one operation of a multiRead, from which the reply is encoded.
type Found = Result<ZnodeId, ErrorCode>;

/// Serves a multiRead. Encodes the results from the tree straight into the reply, whose length is
/// known before anything is copied: a short request can read the same large znode many thousand
/// times. If the reply would be too long, refuses the whole request.
pub(crate) fn multi_read(
    state: &mut State,
    caller: Caller,
    ops: &[MultiReadOp],
    mut reply: PendingReply<'_, impl Effects>,
) {
    if let Err(error) = check_count(state, ops.len()) {
        return reply.refuse(state.zxid, error);
    }
    let mut found = Vec::with_capacity(ops.len());
    let mut bytes = MultiReadResults::END_BYTES;
    let mut error = None;
    for op in ops {
        let (MultiReadOp::GetData { path, .. } | MultiReadOp::GetChildren { path, .. }) = op;
        // A null path is an internal error in ZooKeeper, which ends the request at once: the header
        // has the error, the body the results so far (observed on a live 3.9.5).
        let Some(path) = path else {
            error = Some(ErrorCode::MarshallingError);
            break;
        };
        let result = find(state, caller, path);
        bytes = bytes.saturating_add(result_bytes(state, op, result));
        if let Err(error) = state.check_reply_bytes(bytes) {
            return reply.refuse(state.zxid, error);
        }
        found.push(result);
    }
    let results = |results: &mut MultiReadResults<'_, '_>| {
        for (op, found) in ops.iter().zip(&found) {
            put_result(state, op, *found, results);
        }
    };
    let body = ReplyRef::MultiRead(&results);
    match error {
        Some(error) => reply.refuse_with(state.zxid, error, body),
        None => reply.send(state.zxid, body),
    }
}

/// Finds a znode to read. Ignores the watch flag, as ZooKeeper does.
fn find(state: &State, caller: Caller, path: &Ustring) -> Found {
    let id = state
        .tree
        .find_for_read(path.as_bytes())
        .ok_or(ErrorCode::NoNode)?;
    state.allow(caller, id, Perms::READ)?;
    Ok(id)
}

/// Returns the size of a result in the reply. Unit: bytes.
fn result_bytes(state: &State, op: &MultiReadOp, found: Found) -> usize {
    match (op, found) {
        (_, Err(_)) => MultiReadResults::ERROR_BYTES,
        (MultiReadOp::GetData { .. }, Ok(id)) => {
            MultiReadResults::data_bytes(state.tree[id].data_bytes())
        }
        (MultiReadOp::GetChildren { .. }, Ok(id)) => {
            let znode = &state.tree[id];
            MultiReadResults::children_bytes(znode.num_children() as usize, znode.names_bytes())
        }
    }
}

fn put_result(
    state: &State,
    op: &MultiReadOp,
    found: Found,
    results: &mut MultiReadResults<'_, '_>,
) {
    let tree = &state.tree;
    match (op, found) {
        (_, Err(error)) => results.error(error),
        (MultiReadOp::GetData { .. }, Ok(id)) => {
            results.data(tree[id].data(), &tree[id].stat());
        }
        (MultiReadOp::GetChildren { .. }, Ok(id)) => {
            results.children(&mut tree.listing(id).map(|child| tree[child].name()));
        }
    }
}

/// Checks the number of operations in one request against its limit.
///
/// # Errors
/// MARSHALLINGERROR, as for a request that cannot be decoded.
fn check_count(state: &mut State, ops: usize) -> Result<(), ErrorCode> {
    if ops > state.settings.multi_operations_max {
        state.limit_hit = Some(Limit::MultiOperations);
        return Err(ErrorCode::MarshallingError);
    }
    Ok(())
}
