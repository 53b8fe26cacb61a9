//! Access control of the model. Source: `docs/zookeeper-protocol.md` section 9.

use minikeeper_protocol::{Acl, AclList, ClientInfo, ErrorCode, Reply, Ustring, Xid};
use minikeeper_test_kit::requests::LOGINS;

use super::{Model, Sent};
use minikeeper_engine::CloseReason;

pub(super) const READ: i32 = 1;
pub(super) const WRITE: i32 = 2;
pub(super) const CREATE: i32 = 4;
pub(super) const DELETE: i32 = 8;
pub(super) const ADMIN: i32 = 16;

fn text(text: Option<&Ustring>) -> Option<String> {
    text.map(|text| text.to_str_lossy().into_owned())
}

/// Whether an id of the scheme `ip` matches 127.0.0.1. Knows only the forms that traces use.
fn is_local(id: &str) -> bool {
    matches!(id, "127.0.0.1" | "127.0.0.0/8")
}

impl Model {
    fn logins(&self, conn: u32) -> &[String] {
        self.logins.get(&conn).map_or(&[], Vec::as_slice)
    }

    /// `docs/zookeeper-protocol.md` section 9.3.
    pub(super) fn may(&self, conn: u32, acl: &AclList, perms: i32) -> bool {
        let mine = self.logins(conn);
        let is_super = mine
            .iter()
            .any(|login| Some(login.as_str()) == self.settings.super_digest.as_deref());
        is_super
            || acl.entries().any(|entry| {
                let id = text(entry.id.as_ref()).unwrap_or_default();
                entry.perms.0 & perms != 0
                    && match text(entry.scheme.as_ref()).as_deref() {
                        Some("world") => id == "anyone",
                        Some("digest") => mine.contains(&id),
                        Some("ip") => is_local(&id),
                        _ => false,
                    }
            })
    }

    pub(super) fn allow(&self, conn: u32, path: &str, perms: i32) -> Result<(), ErrorCode> {
        if self.may(conn, &self.nodes[path].acl, perms) {
            Ok(())
        } else {
            Err(ErrorCode::NoAuth)
        }
    }

    /// `docs/zookeeper-protocol.md` section 9.5.
    pub(super) fn fix_up(&self, conn: u32, list: &AclList) -> Result<AclList, ErrorCode> {
        let mut kept: Vec<Acl> = Vec::new();
        for entry in list.entries() {
            if !kept.contains(&entry) {
                kept.push(entry);
            }
        }
        if kept.is_empty() {
            return Err(ErrorCode::InvalidAcl);
        }
        let mut fixed = Vec::new();
        for entry in kept {
            let (scheme, id) = (text(entry.scheme.as_ref()), text(entry.id.as_ref()));
            let is_good = match (scheme.as_deref(), id.as_deref()) {
                (Some("world" | "digest" | "ip"), None) => return Err(ErrorCode::MarshallingError),
                (Some("world"), Some(id)) => id == "anyone",
                (Some("digest"), Some(id)) => id.trim_end_matches(':').matches(':').count() == 1,
                (Some("ip"), Some(id)) => is_local(id),
                (Some("auth"), _) => {
                    fixed.extend(self.logins(conn).iter().map(|login| Acl {
                        perms: entry.perms,
                        scheme: Some("digest".into()),
                        id: Some(login.as_str().into()),
                    }));
                    if self.logins(conn).is_empty() {
                        return Err(ErrorCode::InvalidAcl);
                    }
                    continue;
                }
                _ => false,
            };
            if !is_good {
                return Err(ErrorCode::InvalidAcl);
            }
            fixed.push(entry);
        }
        Ok(AclList::new(&fixed))
    }

    /// `docs/zookeeper-protocol.md` section 9.8.
    pub(super) fn auth(
        &mut self,
        conn: u32,
        xid: Xid,
        scheme: Option<&Ustring>,
        data: Option<&[u8]>,
    ) {
        let login = LOGINS
            .iter()
            .find(|(login, _)| data == Some(login.as_bytes()))
            .map(|(_, identity)| (*identity).to_owned());
        let is_good = match text(scheme).as_deref() {
            Some("ip") => true,
            Some("digest") => {
                let mine = self.logins.entry(conn).or_default();
                let is_known = login.is_some();
                mine.extend(login.filter(|login| !mine.contains(login)));
                is_known
            }
            _ => false,
        };
        let zxid = std::mem::replace(&mut self.zxid, 0);
        let outcome = if is_good {
            Ok(Reply::Empty)
        } else {
            Err(ErrorCode::AuthFailed)
        };
        self.reply(conn, xid, outcome);
        self.zxid = zxid;
        if !is_good {
            self.detach(conn);
            self.output
                .push((conn, Sent::Close(CloseReason::AuthFailed)));
        }
    }

    /// `docs/zookeeper-protocol.md` section 10.23.
    pub(super) fn who_am_i(&self, conn: u32) -> Reply {
        let info = |scheme: &str, user: &str| ClientInfo {
            scheme: scheme.into(),
            user: user.into(),
        };
        let mut infos = vec![info("ip", "127.0.0.1")];
        for login in self.logins(conn) {
            if Some(login.as_str()) == self.settings.super_digest.as_deref() {
                infos.push(info("super", ""));
            }
            infos.push(info("digest", login.split(':').next().unwrap_or_default()));
        }
        Reply::ClientInfos(infos)
    }

    /// `docs/zookeeper-protocol.md` section 9.9.
    pub(super) fn shown(&self, conn: u32, path: &str) -> AclList {
        let acl = &self.nodes[path].acl;
        if self.may(conn, acl, ADMIN) {
            return acl.clone();
        }
        let masked = acl.entries().map(|entry| {
            let id = text(entry.id.as_ref()).unwrap_or_default();
            let id = match id.split_once(':') {
                Some((name, _)) if entry.scheme.as_ref().is_some_and(|s| s == "digest") => {
                    format!("{name}:x")
                }
                _ => id,
            };
            Acl {
                id: Some(id.into()),
                ..entry
            }
        });
        AclList::new(&masked.collect::<Vec<_>>())
    }
}
