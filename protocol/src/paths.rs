//! The paths of a request: finds the first, and strips a universe's prefix from all.
//!
//! The table in `request.rs` declares which fields are paths.

use crate::{MultiOp, MultiReadOp, Request, Ustring};

impl Request {
    /// Returns the path of the request; `None` for requests with several.
    #[must_use]
    pub fn path(&self) -> Option<&Ustring> {
        match self {
            Self::Multi(_)
            | Self::MultiRead(_)
            | Self::MultiReadOfChanges(_)
            | Self::SetWatches { .. }
            | Self::SetWatches2 { .. } => None,
            _ => self.first_path(),
        }
    }

    /// Returns the first path of the request, even if it has several.
    #[must_use]
    pub fn first_path(&self) -> Option<&Ustring> {
        let mut first = None;
        self.any_path(|path| {
            first = Some(path);
            true
        });
        first
    }

    /// Strips a prefix, such as `/tests/a`, from every path of the request.
    ///
    /// Returns false if a path is neither the prefix nor below it. Then the request must not be
    /// used: some of its paths may be changed.
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
        self.change_paths(|path| strip(path, prefix))
    }
}

impl MultiOp {
    /// Returns the path of the operation.
    #[must_use]
    pub const fn path(&self) -> Option<&Ustring> {
        match self {
            Self::Create(create) => create.path.as_ref(),
            Self::Delete { path, .. } | Self::SetData { path, .. } | Self::Check { path, .. } => {
                path.as_ref()
            }
        }
    }

    pub(crate) const fn path_mut(&mut self) -> Option<&mut Ustring> {
        match self {
            Self::Create(create) => create.path.as_mut(),
            Self::Delete { path, .. } | Self::SetData { path, .. } | Self::Check { path, .. } => {
                path.as_mut()
            }
        }
    }
}

impl MultiReadOp {
    /// Returns the path of the operation.
    #[must_use]
    pub const fn path(&self) -> Option<&Ustring> {
        match self {
            Self::GetData { path, .. } | Self::GetChildren { path, .. } => path.as_ref(),
        }
    }

    pub(crate) const fn path_mut(&mut self) -> Option<&mut Ustring> {
        match self {
            Self::GetData { path, .. } | Self::GetChildren { path, .. } => path.as_mut(),
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
    fn strip_prefix_makes_the_prefix_the_root_and_refuses_paths_outside() {
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
    fn strip_prefix_changes_every_path_and_refuses_any_outside() {
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
