//! Converts between the client's paths and the servers'.

use minikeeper_protocol::{PathError, Ustring, ZnodePath, path::validate};

/// Parses a namespace, which is a path without its first slash; an empty one means none.
pub(crate) fn namespace(text: &str) -> Result<Option<ZnodePath>, PathError> {
    let is_some = !text.is_empty();
    is_some
        .then(|| ZnodePath::new(format!("/{text}")))
        .transpose()
}

/// Returns the znode that is `/` for a client with this chroot and namespace.
pub(crate) fn root(chroot: Option<&ZnodePath>, namespace: Option<&ZnodePath>) -> Option<ZnodePath> {
    let (Some(chroot), Some(namespace)) = (chroot, namespace) else {
        return chroot.or(namespace).cloned();
    };
    let path = format!("{}{}", chroot.as_str(), namespace.as_str());
    Some(ZnodePath::new(path).expect("two valid paths make a valid one"))
}

/// Returns the length of the root, which is a prefix of every path on the wire.
pub(crate) fn bytes_of(root: Option<&ZnodePath>) -> usize {
    root.map_or(0, |root| root.as_ustring().as_bytes().len())
}

/// Returns the path as the servers know it, with the client's root.
///
/// # Errors
/// The first rule that the path breaks. A sequential name is validated with a number after it.
pub(crate) fn full(
    root: Option<&ZnodePath>,
    path: &str,
    is_sequential: bool,
) -> Result<Ustring, PathError> {
    // A valid path stays valid with a number after it.
    if let Err(fault) = validate(path.as_bytes()) {
        if !is_sequential {
            return Err(fault);
        }
        validate(format!("{path}0").as_bytes())?;
    }
    Ok(match root {
        None => Ustring::from(path),
        Some(root) if path == "/" => root.as_ustring().clone(),
        Some(root) => Ustring::from(format!("{}{path}", root.as_str())),
    })
}

/// Returns the path as the client knows it, without the client's root.
pub(crate) fn shown(path: &Ustring, root_bytes: usize) -> String {
    let text = path.to_str_lossy();
    match text.get(root_bytes..) {
        Some("") | None => "/".to_owned(),
        Some(below) => below.to_owned(),
    }
}

/// Like [`shown`], for a path that may be outside of the root: that one is returned unchanged.
pub(crate) fn shown_if_below(path: &Ustring, root: Option<&ZnodePath>) -> String {
    let root = root.map_or(&b""[..], |root| root.as_ustring().as_bytes());
    let below = path.as_bytes().strip_prefix(root);
    let is_below = below.is_some_and(|below| below.is_empty() || below[0] == b'/');
    shown(path, if is_below { root.len() } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_added_and_removed() {
        let root = ZnodePath::new("/app").unwrap();
        for (path, there) in [("/", "/app"), ("/a/b", "/app/a/b")] {
            let full = full(Some(&root), path, false).unwrap();
            assert_eq!(full, there);
            assert_eq!(shown(&full, 4), path);
        }
        assert_eq!(full(None, "/", false).unwrap(), "/");
        assert_eq!(shown(&"/".into(), 0), "/");
        for (path, expected) in [
            ("/app/a", "/a"),
            ("/app", "/"),
            ("/apple", "/apple"),
            ("/b", "/b"),
        ] {
            assert_eq!(shown_if_below(&path.into(), Some(&root)), expected);
        }
        assert_eq!(shown_if_below(&"/a".into(), None), "/a");
    }

    #[test]
    fn sequential_name_may_be_empty() {
        assert!(full(None, "/a/", true).is_ok());
        assert!(full(None, "/a/..", true).is_ok());
        assert!(full(None, "/a/b", true).is_ok());
        assert!(full(None, "", true).is_err());
        assert!(full(None, "/a/", false).is_err());
        assert!(full(None, "a", true).is_err());
    }
}
