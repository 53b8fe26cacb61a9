//! delete.
//!
//! Source: reference section 10.4.

use minikeeper_protocol::{ErrorCode, Ustring, Zxid};

use crate::{answer::Answer, effects::Effects, state::State, tell, tree::SPECIAL};

pub(crate) fn delete(
    state: &mut State,
    path: Option<&Ustring>,
    version: i32,
    mut answer: Answer<'_, impl Effects>,
) {
    let zxid = state.next_zxid();
    let outcome = change(state, zxid, path, version)
        .map(|path| tell::deleted(state, path, zxid, answer.effects));
    answer.done(zxid, outcome);
}

/// Checks in the original's order, then deletes; gives the path back, to be told.
///
/// # Errors
/// The first check that fails; nothing has changed then.
pub(crate) fn change<'a>(
    state: &mut State,
    zxid: Zxid,
    path: Option<&'a Ustring>,
    version: i32,
) -> Result<&'a [u8], ErrorCode> {
    let path = path.ok_or(ErrorCode::MarshallingError)?.as_bytes();
    if path.contains(&0) || SPECIAL.contains(&path) {
        return Err(ErrorCode::BadArguments);
    }
    if !path.contains(&b'/') {
        return Err(ErrorCode::BadArguments);
    }
    // The original looks at the parent first; a missing parent is a missing znode too.
    let id = state.tree.find(path).ok_or(ErrorCode::NoNode)?;
    let znode = &state.tree[id];
    if version != -1 && version != znode.version {
        return Err(ErrorCode::BadVersion);
    }
    if znode.num_children() > 0 {
        return Err(ErrorCode::NotEmpty);
    }
    state.delete(id, zxid);
    Ok(path)
}
