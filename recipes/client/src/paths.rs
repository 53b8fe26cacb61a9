//! Paths below the client's root.

use minikeeper_protocol::{PathError, Ustring, ZnodePath, path::validate};

/// The path as the servers know it.
///
/// # Errors
/// The first rule the path breaks. A sequential name is judged with a number behind it.
pub(crate) fn full(
    chroot: Option<&ZnodePath>,
    path: &str,
    is_sequential: bool,
) -> Result<Ustring, PathError> {
    // What is valid stays so with a number behind it.
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

/// The path as the client knows it.
pub(crate) fn shown(path: &Ustring, chroot_bytes: usize) -> String {
    let text = path.to_str_lossy();
    match text.get(chroot_bytes..) {
        Some("") | None => "/".to_owned(),
        Some(below) => below.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_below_the_root_and_come_back() {
        let chroot = ZnodePath::new("/app").unwrap();
        for (path, there) in [("/", "/app"), ("/a/b", "/app/a/b")] {
            let full = full(Some(&chroot), path, false).unwrap();
            assert_eq!(full, there);
            assert_eq!(shown(&full, 4), path);
        }
        assert_eq!(full(None, "/", false).unwrap(), "/");
        assert_eq!(shown(&"/".into(), 0), "/");
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
