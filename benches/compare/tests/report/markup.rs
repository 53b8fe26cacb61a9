//! Reads a page as XML: every tag closed in order, attributes quoted and unique, entities known.

use std::collections::BTreeSet;

/// Returns the text of a page with entities resolved; or what is wrong with it, and where.
pub(crate) fn text(page: &str) -> Result<String, String> {
    let mut rest = page.strip_prefix("<!DOCTYPE html>").ok_or("no doctype")?;
    let (mut open, mut ids, mut text) = (Vec::new(), BTreeSet::new(), String::new());
    while let Some(at) = rest.find('<') {
        text += &resolved(&rest[..at])?;
        let end = tag_end(&rest[at..]).ok_or_else(|| format!("no end: {}", near(&rest[at..])))?;
        let tag = &rest[at + 1..at + end];
        rest = &rest[at + end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let opened: Option<&str> = open.pop();
            if opened != Some(name) {
                return Err(format!("</{name}> closes {opened:?}; then: {}", near(rest)));
            }
            continue;
        }
        let (tag, is_empty) = tag
            .strip_suffix('/')
            .map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if name.is_empty() || !name.chars().all(|char| char.is_ascii_alphanumeric()) {
            return Err(format!("no name of a tag: <{}", near(tag)));
        }
        check(attributes, &mut ids).map_err(|fault| format!("<{tag}>: {fault}"))?;
        if !is_empty {
            open.push(name);
        }
    }
    if open.is_empty() && rest.trim().is_empty() {
        Ok(text)
    } else {
        Err(format!(
            "at the end {open:?} are open, and left is {}",
            near(rest)
        ))
    }
}

/// The end of the tag at the beginning; a `>` in an attribute does not end it.
fn tag_end(text: &str) -> Option<usize> {
    let mut is_quoted = false;
    text.bytes().position(|byte| {
        is_quoted ^= byte == b'"';
        byte == b'>' && !is_quoted
    })
}

/// Checks that values are in double quotes, no name comes twice, and ids are unique in the page.
fn check(mut attributes: &str, ids: &mut BTreeSet<String>) -> Result<(), String> {
    let mut names = BTreeSet::new();
    while !attributes.trim().is_empty() {
        let (name, rest) = attributes
            .trim_start()
            .split_once("=\"")
            .ok_or("no quoted value")?;
        let (value, rest) = rest.split_once('"').ok_or("an open quote")?;
        if value.contains('<') {
            return Err(format!("< in {name}"));
        }
        let value = resolved(value)?;
        if !names.insert(name) || name == "id" && !ids.insert(value.clone()) {
            return Err(format!("{name} {value:?} twice"));
        }
        attributes = rest;
    }
    Ok(())
}

fn resolved(text: &str) -> Result<String, String> {
    const ENTITIES: [(&str, char); 6] = [
        ("amp;", '&'),
        ("lt;", '<'),
        ("gt;", '>'),
        ("quot;", '"'),
        ("#x27;", '\''),
        ("#x2f;", '/'),
    ];
    let mut parts = text.split('&');
    let mut resolved = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let entity = ENTITIES.iter().find(|(entity, _)| part.starts_with(entity));
        let (entity, char) = entity.ok_or_else(|| format!("&{}", near(part)))?;
        resolved.push(*char);
        resolved += &part[entity.len()..];
    }
    Ok(resolved)
}

fn near(text: &str) -> String {
    text.chars().take(80).collect()
}

#[test]
fn checker_finds_what_is_wrong() {
    for (fault, page) in [
        ("no doctype", "<p></p>"),
        ("closes", "<!DOCTYPE html><p><b></p></b>"),
        ("are open", "<!DOCTYPE html><p>"),
        ("quoted", "<!DOCTYPE html><p class=a></p>"),
        ("twice", "<!DOCTYPE html><p id=\"a\"/><p id=\"a\"/>"),
        ("&", "<!DOCTYPE html><p>a & b</p>"),
        ("name of a tag", "<!DOCTYPE html><p>1 < 2 ></p>"),
    ] {
        let found = text(page).expect_err(page);
        assert!(found.contains(fault), "{page}: {found}");
    }
    assert_eq!(
        text("<!DOCTYPE html><p title=\"1 > 0\">&lt;</p>\n").unwrap(),
        "<"
    );
}
