//! Links from the documentation of `minikeeper-core` to items of `minikeeper`, whose pages users read.
//!
//! A lower crate cannot name them, so they are addresses of pages, which the compiler does not check.

use super::{assert_none, sources};

const START: &str = "](../minikeeper/";

/// Returns the item and the method of a link such as `struct.Universe.html#method.seed`.
fn parts(link: &str) -> Option<(String, Option<&str>)> {
    let (page, anchor) = link
        .split_once('#')
        .map_or((link, None), |(page, anchor)| (page, Some(anchor)));
    let file = page.rsplit('/').next()?;
    let [kind, name, "html"] = file.split('.').collect::<Vec<_>>()[..] else {
        return None;
    };
    let keyword = if kind == "macro" {
        "macro_rules!"
    } else {
        kind
    };
    let method = match anchor {
        Some(anchor) => Some(anchor.strip_prefix("method.")?),
        None => None,
    };
    Some((format!("{keyword} {name}"), method))
}

#[test]
fn links_to_the_upper_crate_name_what_it_has() {
    let upper: String = sources("server/src", &["rs"])
        .into_iter()
        .map(|it| it.text)
        .collect();
    let mut found = Vec::new();
    let mut count = 0;
    for source in sources("server/core/src", &["rs"]) {
        for (_, rest) in source
            .text
            .match_indices(START)
            .map(|(at, it)| (at, &source.text[at + it.len()..]))
        {
            let link = rest.split(')').next().unwrap_or_default();
            let is_there = parts(link).is_some_and(|(item, method)| {
                upper.contains(&item)
                    && method.is_none_or(|it| upper.contains(&format!("fn {it}(")))
            });
            count += 1;
            if !is_there {
                found.push(format!("{}: {link}", source.path));
            }
        }
    }
    assert!(count > 0, "no link found");
    assert_none(&found, "links to items that minikeeper does not have");
}

#[test]
fn parts_of_a_link() {
    let method = parts("struct.Universe.html#method.seed");
    assert_eq!(method, Some(("struct Universe".to_owned(), Some("seed"))));
    let item = parts("blocking/struct.Server.html");
    assert_eq!(item, Some(("struct Server".to_owned(), None)));
    assert_eq!(parts("Universe"), None);
}
