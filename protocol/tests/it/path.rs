//! The path rules of `docs/zookeeper-protocol.md` section 8.1, and splitting and joining paths.

use minikeeper_protocol::{
    PathError, Ustring, ZnodePath,
    path::{self, PathFault},
};

#[test]
fn path_within_the_rules_is_accepted() {
    for text in [
        "/",
        "/a",
        "/a/b",
        "/zookeeper/config",
        "/...",
        "/.a",
        "/a.",
        "/a..",
        "/..a",
        "/a/...",
        "/.../b",
        "/ ",
        "/a b",
        "/é",
        "/\u{f900}",
        "/日本/語",
        "/a\\b",
        "/~!@#$%^&*()",
    ] {
        assert_eq!(path::validate(text.as_bytes()), Ok(()), "{text:?}");
        assert!(path::is_valid(text.as_bytes()), "{text:?}");
        assert_eq!(ZnodePath::new(text).unwrap().as_str(), text);
    }
}

#[test]
fn empty_path_is_refused() {
    assert_fault("", PathFault::Empty, 0);
}

#[test]
fn path_without_leading_slash_is_refused() {
    for text in ["a", "a/b", ".", " /a", "é/a", "\0"] {
        assert_fault(text, PathFault::NotAbsolute, 0);
    }
}

#[test]
fn path_with_trailing_slash_is_refused_at_that_slash() {
    assert_fault("/a/", PathFault::TrailingSlash, 2);
    assert_fault("/a/b/", PathFault::TrailingSlash, 4);
    assert_fault("/é/", PathFault::TrailingSlash, 3);
}

#[test]
fn path_with_empty_component_is_refused_at_the_second_slash() {
    assert_fault("//", PathFault::EmptyComponent, 1);
    assert_fault("//a", PathFault::EmptyComponent, 1);
    assert_fault("/a//b", PathFault::EmptyComponent, 3);
    assert_fault("/a//", PathFault::EmptyComponent, 3);
    assert_fault("///", PathFault::EmptyComponent, 1);
    assert_fault("/é//b", PathFault::EmptyComponent, 4);
}

#[test]
fn path_with_relative_component_is_refused_where_it_starts() {
    assert_fault("/.", PathFault::Relative, 1);
    assert_fault("/..", PathFault::Relative, 1);
    assert_fault("/./a", PathFault::Relative, 1);
    assert_fault("/../a", PathFault::Relative, 1);
    assert_fault("/a/.", PathFault::Relative, 3);
    assert_fault("/a/..", PathFault::Relative, 3);
    assert_fault("/a/./b", PathFault::Relative, 3);
    assert_fault("/a/../b", PathFault::Relative, 3);
    assert_fault("/é/..", PathFault::Relative, 4);
}

#[test]
fn forbidden_ranges_of_characters_have_exactly_the_documented_ends() {
    let allowed = |c: char| {
        let text = format!("/a{c}b");
        assert_eq!(
            path::validate(text.as_bytes()),
            Ok(()),
            "U+{:04X}",
            u32::from(c)
        );
    };
    let refused = |c: char| assert_fault(&format!("/a{c}b"), PathFault::ForbiddenCharacter(c), 2);

    for (first, last) in [
        ('\0', '\u{1f}'),
        ('\u{7f}', '\u{9f}'),
        ('\u{e000}', '\u{f8ff}'),
        ('\u{fff0}', '\u{ffff}'),
        ('\u{10000}', char::MAX),
    ] {
        refused(first);
        refused(last);
    }
    for c in [' ', '~', '\u{a0}', '\u{d7ff}', '\u{f900}', '\u{ffef}'] {
        allowed(c);
    }
    refused('😀');
    refused('\u{fffd}');
}

#[test]
fn every_character_is_accepted_or_refused_as_documented() {
    for c in '\0'..=char::MAX {
        let forbidden = c <= '\u{1f}'
            || ('\u{7f}'..='\u{9f}').contains(&c)
            || ('\u{e000}'..='\u{f8ff}').contains(&c)
            || ('\u{fff0}'..='\u{ffff}').contains(&c)
            || c > '\u{ffff}';
        // Slashes and dots have their own rules.
        if !matches!(c, '/' | '.') {
            let mut buffer = [b'/', 0, 0, 0, 0];
            let length = 1 + c.encode_utf8(&mut buffer[1..]).len();
            let is_valid = path::is_valid(&buffer[..length]);
            assert_eq!(is_valid, !forbidden, "U+{:04X}", u32::from(c));
        }
    }
}

#[test]
fn malformed_utf8_is_refused_where_it_starts() {
    for (bytes, at) in [
        (&b"/\xff"[..], 1),
        (b"/a\xc3(", 2),
        (b"/ok/\xc3", 4),
        // Surrogates and overlong forms are not UTF-8: U+D800, U+DFFF, NUL in two bytes.
        (b"/\xed\xa0\x80", 1),
        (b"/\xed\xbf\xbf", 1),
        (b"/\xc0\x80", 1),
        // U+1F600 as two surrogates, ZooKeeper's own output form.
        (b"/\xed\xa0\xbd\xed\xb8\x80", 1),
        (b"/\xf4\x90\x80\x80", 1),
    ] {
        let error = path::validate(bytes).unwrap_err();
        assert_eq!(
            (error.fault, error.at),
            (PathFault::Malformed, at),
            "{bytes:x?}"
        );
        assert!(!path::is_valid(bytes));
        assert_eq!(error.path, String::from_utf8_lossy(bytes));
    }
}

#[test]
fn error_texts_have_the_quoted_path_the_fault_and_its_position() {
    let text = |bytes: &[u8]| path::validate(bytes).unwrap_err().to_string();
    assert_eq!(text(b"/a//b"), r#"path "/a//b": empty component at byte 3"#);
    assert_eq!(text(b"/a/"), r#"path "/a/": ends with a slash at byte 2"#);
    assert_eq!(
        text(b"/a/.."),
        r#"path "/a/..": relative component at byte 3"#
    );
    assert_eq!(
        text(b"/a\n"),
        r#"path "/a\n": forbidden character U+000A at byte 2"#
    );
    assert_eq!(
        text("/😀".as_bytes()),
        "path \"/😀\": forbidden character U+1F600 at byte 1"
    );
    assert_eq!(
        text(b"/a\xff"),
        "path \"/a\u{fffd}\": malformed UTF-8 at byte 2"
    );
    assert_eq!(text(b"a"), r#"path "a": does not start with a slash"#);
    assert_eq!(text(b""), r#"path "": empty; a path starts with a slash"#);
}

#[test]
fn parent_and_name_split_off_the_last_component() {
    for (text, parent, name) in [
        ("/a", "/", "a"),
        ("/a/b", "/a", "b"),
        ("/a/b/c", "/a/b", "c"),
        ("/é/日本", "/é", "日本"),
    ] {
        let path = ZnodePath::new(text).unwrap();
        assert_eq!(path.name(), name);
        let parent = ZnodePath::new(parent).unwrap();
        assert_eq!(path.parent(), Some(parent));
    }
}

#[test]
fn root_has_no_parent_and_no_name() {
    assert_eq!(ZnodePath::root().parent(), None);
    assert_eq!(ZnodePath::root().name(), "");
    assert_eq!(ZnodePath::root().as_str(), "/");
    assert_eq!(ZnodePath::new("/").unwrap(), ZnodePath::root());
}

#[test]
fn raw_parent_and_name_work_on_unchecked_paths() {
    // Deletes and sequential creates split paths before validating them, or without.
    for (text, parent, name) in [
        ("/", Some("/"), ""),
        ("/a", Some("/"), "a"),
        ("/a/", Some("/a"), ""),
        ("//", Some("/"), ""),
        ("/a//b", Some("/a/"), "b"),
        ("a/b", Some("a"), "b"),
        ("a", None, "a"),
        ("", None, ""),
    ] {
        assert_eq!(
            path::parent_of(text.as_bytes()),
            parent.map(str::as_bytes),
            "{text:?}"
        );
        assert_eq!(path::name_of(text.as_bytes()), name.as_bytes(), "{text:?}");
    }
}

#[test]
fn join_of_one_component_is_the_child() {
    let root = ZnodePath::root();
    let child = root.join("a").unwrap();
    assert_eq!(child.as_str(), "/a");
    let grandchild = child.join("b 1").unwrap();
    assert_eq!(grandchild.as_str(), "/a/b 1");
    assert_eq!(grandchild.parent(), Some(child));
    assert_eq!(grandchild.name(), "b 1");
}

#[test]
fn join_of_an_invalid_component_is_refused() {
    let fault = |parent: &str, name: &str| {
        let error = ZnodePath::new(parent).unwrap().join(name).unwrap_err();
        (error.fault, error.at)
    };
    assert_eq!(fault("/a", ""), (PathFault::TrailingSlash, 2));
    assert_eq!(fault("/", ""), (PathFault::EmptyComponent, 1));
    for name in ["b/c", "b/", "b//c"] {
        assert_eq!(fault("/a", name), (PathFault::ForbiddenCharacter('/'), 4));
        assert_eq!(fault("/", name), (PathFault::ForbiddenCharacter('/'), 2));
    }
    assert_eq!(fault("/a", "/b"), (PathFault::ForbiddenCharacter('/'), 3));
    assert_eq!(fault("/a", "."), (PathFault::Relative, 3));
    assert_eq!(fault("/a", ".."), (PathFault::Relative, 3));
    assert_eq!(fault("/a", "b\0"), (PathFault::ForbiddenCharacter('\0'), 4));
}

#[test]
fn conversions_keep_the_text() {
    let path: ZnodePath = "/a/b".parse().unwrap();
    assert_eq!(path.to_string(), "/a/b");
    assert_eq!(format!("{path:?}"), r#""/a/b""#);
    assert_eq!(path.as_ustring(), &Ustring::from("/a/b"));
    assert_eq!(Ustring::from(path), Ustring::from("/a/b"));
    assert!("a".parse::<ZnodePath>().is_err());
}

#[track_caller]
fn assert_fault(text: &str, fault: PathFault, at: usize) {
    let error = PathError {
        path: text.to_owned(),
        fault,
        at,
    };
    assert_eq!(path::validate(text.as_bytes()), Err(error.clone()));
    assert!(!path::is_valid(text.as_bytes()), "{text:?}");
    assert_eq!(ZnodePath::new(text), Err(error));
}
