//! Converts between the client's paths and the servers'.

use minikeeper_protocol::{PathError, Ustring, ZnodePath, path::validate};

/// Returns the path as the servers know it, with the chroot.
///
/// # Errors
/// The first rule that the path breaks. A sequential name is validated with a number after it.
pub(crate) fn full(
    chroot: Option<&ZnodePath>,
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
    Ok(match chroot {
        None => Ustring::from(path),
        Some(chroot) if path == "/" => chroot.as_ustring().clone(),
        Some(chroot) => Ustring::from(format!("{}{path}", chroot.as_str())),
    })
}

/// Returns the path as the client knows it, without the chroot.
pub(crate) fn shown(path: &Ustring, chroot_bytes: usize) -> String {
    let text = path.to_str_lossy();
    match text.get(chroot_bytes..) {
        Some("") | None => "/".to_owned(),
        Some(below) => below.to_owned(),
    }
}

/// Like [`shown`], for a path that may be outside of the chroot: that one is returned unchanged.
pub(crate) fn shown_if_below(path: &Ustring, chroot: Option<&ZnodePath>) -> String {
    let chroot = chroot.map_or(&b""[..], |chroot| chroot.as_ustring().as_bytes());
    let below = path.as_bytes().strip_prefix(chroot);
    let is_below = below.is_some_and(|below| below.is_empty() || below[0] == b'/');
    shown(path, if is_below { chroot.len() } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chroot_is_added_and_removed() {
        let chroot = ZnodePath::new("/app").unwrap();
        for (path, there) in [("/", "/app"), ("/a/b", "/app/a/b")] {
            let full = full(Some(&chroot), path, false).unwrap();
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
            assert_eq!(shown_if_below(&path.into(), Some(&chroot)), expected);
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
