//! Replays changes from a transaction log on a restored snapshot.
//!
//! A snapshot taken while changes were made contains some of those in the log. ZooKeeper's rules
//! still make the outcome exact, as long as the log is complete.
//!
//! Source: `docs/zookeeper-protocol.md` sections 22.1 and 22.3; ZooKeeper's `DataTree.processTxn`
//! and `FileTxnSnapLog.processTransaction`.

use minikeeper_protocol::{AclList, SessionId, Zxid, path};

use crate::{
    persist::{
        change::{Change, ChangeHead, Life},
        image::SessionImage,
        restore::{ImageError, Restoration, has_nulls},
    },
    state::{
        keys::{AclId, ZnodeId},
        tree::ZNODE_BYTES,
        znode::{Owner, TTL_MS_MAX, Znode},
    },
};

impl Restoration {
    /// Replays a change. Skips the parts that need a missing znode or are already in the state.
    ///
    /// # Errors
    /// When a path, a list, a zxid or a time to live is invalid, or a limit is reached.
    pub fn replay(&mut self, head: ChangeHead, change: &Change<'_>) -> Result<(), ImageError> {
        self.see(head.zxid)?;
        match *change {
            Change::Nothing => Ok(()),
            Change::OpenSession { timeout_ms } => {
                if let Some(known) = self.state.sessions.find(head.session) {
                    self.state.sessions.close(known);
                }
                let id = head.session;
                self.session(SessionImage { id, timeout_ms })
            }
            Change::CloseSession { paths } => self.close_session(head, paths),
            Change::Create {
                path,
                data,
                acl,
                life,
                created_children,
            } => {
                let owner = owner(path, life)?;
                let acl = self.list(acl)?;
                let created = self.create(head, path, data, acl, owner, created_children);
                if !matches!(created, Ok(true)) {
                    self.state.acls.release(acl);
                }
                created.map(|_| ())
            }
            Change::Delete { path } => self.delete(head.zxid, path),
            Change::SetData {
                path,
                data,
                version,
            } => self.set_data(head, path, data, version),
            Change::SetAcl {
                path,
                acl,
                aversion,
            } => {
                path::validate(path).map_err(ImageError::Path)?;
                let acl = self.list(acl)?;
                match self.state.tree.find(path) {
                    Some(id) => {
                        self.state.tree[id].aversion = aversion;
                        self.set_list(id, acl);
                    }
                    None => self.state.acls.release(acl),
                }
                Ok(())
            }
        }
    }

    /// Deletes the ephemerals that the change names, and any others the session owns.
    fn close_session(&mut self, head: ChangeHead, paths: &[&[u8]]) -> Result<(), ImageError> {
        if let Some(known) = self.state.sessions.find(head.session) {
            self.state.sessions.close(known);
        }
        for path in paths {
            self.delete(head.zxid, path)?;
        }
        // One by one, because removing a znode also removes its descendants.
        while let Some(id) = self.an_ephemeral_of(head.session) {
            let parent = self.state.tree[id].parent;
            self.raise_pzxid(parent, head.zxid);
            self.remove(id);
        }
        Ok(())
    }

    fn an_ephemeral_of(&self, session: SessionId) -> Option<ZnodeId> {
        self.ephemerals.get(&session)?.first().copied()
    }

    /// Creates a znode. Returns whether the znode now uses the access list.
    fn create(
        &mut self,
        head: ChangeHead,
        path: &[u8],
        data: Option<&[u8]>,
        acl: AclId,
        owner: Owner,
        created_children: Option<i32>,
    ) -> Result<bool, ImageError> {
        path::validate(path).map_err(ImageError::Path)?;
        let Some(parent) = self.parent_at(path) else {
            return Ok(false);
        };
        let known = self.state.tree.find(path);
        if known.is_none() {
            self.make_room(path.len() + data.map_or(0, <[u8]>::len) + ZNODE_BYTES)?;
        }
        let family = self.state.tree[parent].family_mut();
        let created = created_children.unwrap_or_else(|| family.created_children.wrapping_add(1));
        // Children deleted since are in no snapshot, but their numbers must not be reused.
        if created > family.created_children {
            family.created_children = created;
            family.pzxid = head.zxid;
        }
        if let Some(id) = known {
            self.set_list(id, acl);
            return Ok(true);
        }
        let znode = Znode::new(path, data, owner, acl, head.zxid, head.wall_ms);
        let id = self.state.tree.insert(znode, parent);
        self.note_owner(id, owner);
        Ok(true)
    }

    fn delete(&mut self, zxid: Zxid, path: &[u8]) -> Result<(), ImageError> {
        path::validate(path).map_err(ImageError::Path)?;
        let Some(parent) = self.parent_at(path) else {
            return Ok(());
        };
        let known = self.state.tree.find(path);
        self.raise_pzxid(parent, zxid);
        if let Some(id) = known {
            self.remove(id);
        }
        Ok(())
    }

    /// Returns the parent, if it exists; the root has none.
    fn parent_at(&self, path: &[u8]) -> Option<ZnodeId> {
        if path == b"/" {
            return None;
        }
        self.state.tree.find(path::parent_of(path)?)
    }

    fn raise_pzxid(&mut self, parent: ZnodeId, zxid: Zxid) {
        let family = self.state.tree[parent].family_mut();
        family.pzxid = family.pzxid.max(zxid);
    }

    /// Removes a znode and its descendants: those were created later, and the log creates them
    /// again.
    fn remove(&mut self, id: ZnodeId) {
        let mut all = vec![id];
        let mut next = 0;
        while let Some(&id) = all.get(next) {
            all.extend(self.state.tree.children(id));
            next += 1;
        }
        for id in all.into_iter().rev() {
            let znode = self.state.tree.remove(id);
            let owner = SessionId(znode.owner.0);
            if let Some(ids) = self.ephemerals.get_mut(&owner) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.ephemerals.remove(&owner);
                }
            }
            self.without_list.remove(&id);
            self.state.acls.release(znode.acl);
        }
    }

    fn set_data(
        &mut self,
        head: ChangeHead,
        path: &[u8],
        data: Option<&[u8]>,
        version: i32,
    ) -> Result<(), ImageError> {
        path::validate(path).map_err(ImageError::Path)?;
        let Some(id) = self.state.tree.find(path) else {
            return Ok(());
        };
        let before = self.state.tree[id].data().map_or(0, <[u8]>::len);
        self.make_room(data.map_or(0, <[u8]>::len).saturating_sub(before))?;
        let znode = self.state.tree.set_data(id, data);
        znode.version = version;
        znode.mzxid = head.zxid;
        znode.mtime_ms = head.wall_ms;
        Ok(())
    }

    /// Returns the id of an access list, and counts a use of it.
    fn list(&mut self, list: &AclList) -> Result<AclId, ImageError> {
        if list.is_null() {
            return Ok(AclId::WORLD_ALL);
        }
        if has_nulls(list) {
            return Err(ImageError::IncompleteAccessList { id: 0 });
        }
        self.make_room(self.state.acls.cost(list))?;
        Ok(self.state.acls.acquire(list))
    }

    fn set_list(&mut self, id: ZnodeId, acl: AclId) {
        self.without_list.remove(&id);
        let before = std::mem::replace(&mut self.state.tree[id].acl, acl);
        self.state.acls.release(before);
    }
}

fn owner(path: &[u8], life: Life) -> Result<Owner, ImageError> {
    Ok(match life {
        Life::Persistent => Owner::PERSISTENT,
        Life::Session(id) if Owner::session(id).is_ephemeral() => Owner::session(id),
        Life::Session(id) => return Err(ImageError::NoSessionId { id }),
        Life::Container => Owner::CONTAINER,
        Life::Ttl { ms } if (1..=TTL_MS_MAX).contains(&ms) => Owner::ttl(ms),
        Life::Ttl { ms: ttl_ms } => {
            let path = String::from_utf8_lossy(path).into_owned();
            return Err(ImageError::TtlOutOfRange { path, ttl_ms });
        }
    })
}
