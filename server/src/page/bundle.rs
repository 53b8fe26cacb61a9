//! The story of a failed test, or the report of a sweep, as one page, which needs no server and no network.

use std::{
    fmt::Write as _,
    hash::{BuildHasher, RandomState},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use minikeeper_core::order;
use serde_json::{Value, json};

use super::ASSETS;

/// The modules of the page. Each imports only others of them.
const MODULES: [&str; 7] = [
    "preact.js",
    "advice.js",
    "journal.js",
    "locks.js",
    "timeline.js",
    "sweep.js",
    "story.js",
];

/// Returns a page that shows a story, as the verb `story` returns it, or the report of a sweep, in the field `sweep`.
///
/// Styles, modules and the content are all in the page, so that a browser opens it from a file. Nothing else may run or
/// load: the policy allows only elements with the page's nonce. Texts of the content are never markup: they are JSON without
/// `<`, which the modules show as text.
pub(crate) fn html(content: &Value) -> String {
    let nonce = nonce();
    let imports = MODULES.iter().map(|name| {
        // A module from a `data:` URL cannot import relative names; the import map resolves bare ones.
        let module = asset(name).replace("from \"./", "from \"");
        let url = format!("data:text/javascript;base64,{}", STANDARD.encode(module));
        ((*name).to_owned(), url.into())
    });
    let imports: serde_json::Map<_, _> = order::collect(imports);
    let imports = in_script(&json!({"imports": imports}));
    let content = in_script(content);
    let (base, styles) = (asset("app.css"), asset("story.css"));
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>minikeeper</title>
<style nonce="{nonce}">
{base}{styles}</style>
<script type="importmap" nonce="{nonce}">{imports}</script>
</head>
<body>
<div id="page"><noscript>This page needs JavaScript. Without it, read a story's JSON, or the text that a sweep prints.</noscript></div>
<script type="application/json" id="content">{content}</script>
<script type="module" nonce="{nonce}">import {{ show }} from "story.js"; show(document);</script>
</body>
</html>
"#
    )
}

fn asset(name: &str) -> &'static str {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    asset.expect("a file of the page").text
}

/// Returns JSON that ends no script element and that any parser of JavaScript accepts.
fn in_script(value: &Value) -> String {
    let text = value.to_string();
    text.replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Returns a number that nobody can guess who wrote a text of the content.
fn nonce() -> String {
    let mut nonce = String::new();
    for word in 0..2 {
        let _ = write!(nonce, "{:016x}", RandomState::new().hash_one(word));
    }
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
        let (_, behind) = text.split_once(start).expect(start);
        behind.split_once(end).expect(end).0
    }

    const CONTENT: (&str, &str) = (
        r#"<script type="application/json" id="content">"#,
        "</script>",
    );

    #[test]
    fn hostile_texts_stay_in_the_json() {
        let hostile = "</script><script>alert(1)</script><!-- \u{2028}\u{2029} ]]> javascript:alert(1) \" ' & \u{0}";
        let story = json!({
            "title": hostile,
            "failure": hostile,
            "server": {hostile: hostile},
            "entries": [{"number": 1, "path": hostile, hostile: hostile}],
        });
        let page = html(&story);
        let clean = html(&json!({"title": "", "failure": "", "server": {}, "entries": []}));
        for markup in ["<script", "</script", "<!--", "<style"] {
            let count = |page: &str| page.matches(markup).count();
            assert_eq!(count(&page), count(&clean), "{markup}");
        }
        assert!(!page.contains(['\u{2028}', '\u{2029}', '\u{0}']));
        let json = between(&page, CONTENT.0, CONTENT.1);
        assert_eq!(serde_json::from_str::<Value>(json).unwrap(), story);
    }

    #[test]
    fn every_import_resolves_within_the_page() {
        let page = html(&json!({}));
        let map = between(&page, "<script type=\"importmap\" nonce=\"", "</script>");
        let (_, map) = map.split_once("\">").unwrap();
        let map: Value = serde_json::from_str(map).unwrap();
        let modules = map["imports"].as_object().unwrap();
        assert_eq!(modules.len(), MODULES.len());
        for (name, url) in modules {
            let (_, code) = url.as_str().unwrap().split_once("base64,").unwrap();
            let code = String::from_utf8(STANDARD.decode(code).unwrap()).unwrap();
            assert!(!code.contains("import("), "{name}");
            let imports = code.lines().filter(|line| line.starts_with("import "));
            for line in imports.filter(|_| name != "preact.js") {
                let (_, from) = line.rsplit_once(" from \"").expect(line);
                let from = from.strip_suffix("\";").expect(line);
                assert!(modules.contains_key(from), "{name}: {line}");
            }
        }
    }

    #[test]
    fn only_what_is_inlined_may_run_or_load() {
        let page = html(&json!({}));
        let nonce = between(&page, "script-src 'nonce-", "'");
        assert_eq!(nonce.len(), 32);
        assert!(!html(&json!({})).contains(nonce));
        assert!(page.contains("default-src 'none'"));
        for word in [" src=", " href=", "http://", "https://", "url(", "@import"] {
            let (head, _) = page.split_once("<script type=\"importmap\"").unwrap();
            let (_, body) = page.split_once("</head>").unwrap();
            assert!(!head.contains(word) && !body.contains(word), "{word}");
        }
        for element in page
            .split('<')
            .filter(|it| it.starts_with("script") || it.starts_with("style"))
        {
            let is_data = element.starts_with("script type=\"application/json\"");
            assert!(is_data || element.contains(&format!("nonce=\"{nonce}\"")));
        }
    }

    #[test]
    fn page_adds_a_limited_number_of_bytes_to_its_story() {
        let bytes = html(&json!({})).len();
        assert!(bytes < 160_000, "{bytes}");
    }
}
