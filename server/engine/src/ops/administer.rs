//! Changes made by the administrator instead of a client.

use core::net::Ipv4Addr;

use minikeeper_protocol::{CreateMode, ErrorCode, Request};

use crate::{
    ConnId, Effects, Engine, Now,
    ops::{create, delete, events, set},
    persist::change,
    state::{
        Caller, State,
        identities::{Identities, Identity, Scheme},
        keys::SessionKey,
    },
};

impl Engine {
    /// Makes one change without a session: a create, delete, setData or setACL. Ignores access
    /// lists. Like a client's change, it has its own zxid, and watchers get events. It cannot
    /// create ephemerals, because no session would own them. Returns the path of the znode, with the
    /// suffix of a sequential one.
    ///
    /// # Errors
    /// Those of the same request from a client, which also take a zxid; UNIMPLEMENTED for any other
    /// request; BADARGUMENTS for an ephemeral.
    pub fn administer(
        &mut self,
        now: Now,
        change: &Request,
        effects: &mut impl Effects,
    ) -> Result<String, ErrorCode> {
        self.elapsed_ms = self.elapsed_ms.max(now.elapsed_ms);
        if let Some(digests) = &mut self.digests {
            digests.note(self.state.zxid, &self.state.tree);
        }
        let state = &mut self.state;
        let everything = Identity {
            scheme: Scheme::Super,
            id: "".into(),
        };
        let mut who = Identities::of(Ipv4Addr::LOCALHOST.into());
        who.add(everything);
        let identities = state.identities.acquire(who);
        let caller = Caller {
            conn: ConnId(u32::MAX),
            session: SessionKey::NONE,
            identities,
            now,
        };
        let outcome = serve(state, caller, change, effects);
        self.state.identities.release(identities);
        outcome
    }
}

fn serve(
    state: &mut State,
    caller: Caller,
    change: &Request,
    effects: &mut impl Effects,
) -> Result<String, ErrorCode> {
    let path = match change {
        Request::Create(request) => {
            let mode = CreateMode::from_flags(request.flags);
            if mode.is_none_or(CreateMode::is_ephemeral) {
                return Err(ErrorCode::BadArguments);
            }
            let zxid = state.next_zxid();
            let id = create::change(state, caller, zxid, request)?;
            change::created(state, caller, zxid, id, effects);
            let path = state.tree[id].path().to_vec();
            let (acl, parent_acl) = state.acls_at(id);
            events::created(state, &path, acl, parent_acl, zxid, effects);
            return Ok(String::from_utf8_lossy(&path).into_owned());
        }
        Request::SetData {
            path,
            data,
            version,
        } => {
            let zxid = state.next_zxid();
            let (changed, id) =
                set::change_data(state, caller, zxid, path.as_ref(), data.as_ref(), *version)?;
            change::data_set(state, caller, zxid, id, effects);
            let acl = state.tree[id].acl;
            events::data_changed(state, changed, acl, zxid, effects);
            path
        }
        Request::SetAcl { path, acl, version } => {
            let zxid = state.next_zxid();
            let id = set::change_acl(state, caller, path.as_ref(), acl, *version)?;
            change::acl_set(state, caller, zxid, id, effects);
            path
        }
        Request::Delete { path, version } => {
            let zxid = state.next_zxid();
            let id = delete::find(state, caller, path.as_ref(), *version)?;
            change::deleting(state, caller, zxid, id, effects);
            delete::delete_and_notify(state, id, zxid, effects);
            path
        }
        _ => return Err(ErrorCode::Unimplemented),
    };
    let path = path.as_ref().map(|path| path.to_str_lossy().into_owned());
    Ok(path.unwrap_or_default())
}
