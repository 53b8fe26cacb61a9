//! Paths of one tree seen from a root somewhere above or below: what clients do with a chroot, done
//! by a server.

use crate::{Create, MultiOp, MultiReadOp, Request, Ustring};

impl Request {
    /// Takes a prefix, such as `/tests/a`, off every path of the request.
    ///
    /// False if one of them does not lie at or below it; the request is of no use then.
    ///
    /// # Examples
    /// ```
    /// use minikeeper_protocol::Request;
    /// let mut request = Request::Sync { path: Some("/tests/a/b".into()) };
    /// assert!(request.strip_prefix("/tests/a"));
    /// assert_eq!(request, Request::Sync { path: Some("/b".into()) });
    /// assert!(!request.strip_prefix("/tests"));
    /// ```
    pub fn strip_prefix(&mut self, prefix: &str) -> bool {
        let one = |path: &mut Option<Ustring>| path.as_mut().is_none_or(|path| strip(path, prefix));
        let all = |paths: &mut [Ustring]| paths.iter_mut().all(|path| strip(path, prefix));
        match self {
            Self::Create(Create { path, .. })
            | Self::Delete { path, .. }
            | Self::DeleteContainer { path }
            | Self::Exists { path, .. }
            | Self::GetData { path, .. }
            | Self::SetData { path, .. }
            | Self::GetAcl { path }
            | Self::SetAcl { path, .. }
            | Self::GetChildren { path, .. }
            | Self::GetChildren2 { path, .. }
            | Self::Sync { path }
            | Self::CheckWatches { path, .. }
            | Self::RemoveWatches { path, .. }
            | Self::GetEphemerals { prefix: path }
            | Self::GetAllChildrenNumber { path }
            | Self::AddWatch { path, .. }
            | Self::Check { path, .. } => one(path),
            Self::Multi(ops) | Self::MultiReadOfChanges(ops) => ops.iter_mut().all(|op| match op {
                MultiOp::Create(Create { path, .. })
                | MultiOp::Delete { path, .. }
                | MultiOp::SetData { path, .. }
                | MultiOp::Check { path, .. } => one(path),
            }),
            Self::MultiRead(ops) => ops.iter_mut().all(|op| match op {
                MultiReadOp::GetData { path, .. } | MultiReadOp::GetChildren { path, .. } => {
                    one(path)
                }
            }),
            Self::SetWatches {
                data, exist, child, ..
            } => all(data) && all(exist) && all(child),
            Self::SetWatches2 {
                data,
                exist,
                child,
                persistent,
                persistent_recursive,
                ..
            } => [data, exist, child, persistent, persistent_recursive]
                .into_iter()
                .all(|paths| all(paths)),
            Self::Ping
            | Self::Reconfig { .. }
            | Self::Auth { .. }
            | Self::Sasl { .. }
            | Self::WhoAmI
            | Self::CreateSession
            | Self::CloseSession => true,
        }
    }

    /// Any path of the request, be it one of several.
    #[must_use]
    pub fn first_path(&self) -> Option<&Ustring> {
        match self {
            Self::Multi(ops) | Self::MultiReadOfChanges(ops) => {
                ops.iter().find_map(|op| match op {
                    MultiOp::Create(Create { path, .. })
                    | MultiOp::Delete { path, .. }
                    | MultiOp::SetData { path, .. }
                    | MultiOp::Check { path, .. } => path.as_ref(),
                })
            }
            Self::MultiRead(ops) => ops.iter().find_map(|op| match op {
                MultiReadOp::GetData { path, .. } | MultiReadOp::GetChildren { path, .. } => {
                    path.as_ref()
                }
            }),
            Self::SetWatches {
                data, exist, child, ..
            } => [data, exist, child].into_iter().flatten().next(),
            Self::SetWatches2 {
                data,
                exist,
                child,
                persistent,
                persistent_recursive,
                ..
            } => [data, exist, child, persistent, persistent_recursive]
                .into_iter()
                .flatten()
                .next(),
            other => other.path(),
        }
    }
}

fn strip(path: &mut Ustring, prefix: &str) -> bool {
    let Some(below) = path.as_bytes().strip_prefix(prefix.as_bytes()) else {
        return false;
    };
    match below.first() {
        None => *path = Ustring::from_static("/"),
        Some(b'/') => *path = path.tail(prefix.len()),
        Some(_) => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Zxid;

    #[test]
    fn path_at_the_prefix_is_the_root_and_beside_it_is_none() {
        for (path, stripped) in [
            ("/u", Some("/")),
            ("/u/", Some("/")),
            ("/u/a/b", Some("/a/b")),
            ("/ua", None),
            ("/", None),
            ("", None),
        ] {
            let mut request = Request::Sync {
                path: Some(path.into()),
            };
            let is_below = request.strip_prefix("/u");
            let found = request.path().filter(|_| is_below);
            assert_eq!(found, stripped.map(Ustring::from).as_ref(), "{path}");
        }
        assert!(Request::Sync { path: None }.strip_prefix("/u"));
        assert!(Request::Ping.strip_prefix("/u"));
    }

    #[test]
    fn every_path_of_a_list_counts() {
        let check = |path: &str| MultiOp::Check {
            path: Some(path.into()),
            version: -1,
        };
        let mut multi = Request::Multi(vec![check("/u/a"), check("/u/b")]);
        assert!(multi.strip_prefix("/u"));
        assert_eq!(multi, Request::Multi(vec![check("/a"), check("/b")]));
        assert_eq!(multi.first_path(), Some(&"/a".into()));
        assert!(!Request::Multi(vec![check("/u/a"), check("/b")]).strip_prefix("/u"));
        let mut watches = Request::SetWatches {
            relative_zxid: Zxid(1),
            data: Vec::new(),
            exist: vec!["/u/a".into()],
            child: vec!["/v".into()],
        };
        assert_eq!(watches.first_path(), Some(&"/u/a".into()));
        assert!(!watches.strip_prefix("/u"));
    }
}
