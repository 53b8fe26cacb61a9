//! The page at `/`: a view of the server for a browser, as static files that are part of the program.
//!
//! `assets/` has the page itself, its styles and one ES module per view. The browser loads the modules as they are: there is
//! no build step. Each module imports only `"./NAME.js"`, so that they can also be joined into one file. The page has no
//! access of its own: it calls the verbs of the control API, and each call is checked like any other. `tests/interop/page`
//! tests it in a browser. [`bundle`] makes one file of the page for a story or the report of a sweep.

pub(crate) mod bundle;

use bytes::Bytes;
use hyper::{
    Method, Response, StatusCode,
    header::{self, HeaderValue},
};

/// A file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Its name in `assets/`.
    pub(crate) name: &'static str,
    content_type: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! assets {
    ($($name:literal: $content_type:literal,)*) => {
        &[$(Asset {
            name: $name,
            content_type: $content_type,
            text: include_str!(concat!("assets/", $name)),
        },)*]
    };
}

/// Every file of the page; the first is the page itself.
pub(crate) const ASSETS: &[Asset] = assets! {
    "index.html": "text/html; charset=utf-8",
    "app.css": "text/css; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "advice.js": "text/javascript; charset=utf-8",
    "api.js": "text/javascript; charset=utf-8",
    "clock.js": "text/javascript; charset=utf-8",
    "faults.js": "text/javascript; charset=utf-8",
    "journal.js": "text/javascript; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "locks.js": "text/javascript; charset=utf-8",
    "parts.js": "text/javascript; charset=utf-8",
    "preact.js": "text/javascript; charset=utf-8",
    "servers.js": "text/javascript; charset=utf-8",
    "sessions.js": "text/javascript; charset=utf-8",
    "snapshots.js": "text/javascript; charset=utf-8",
    "story.css": "text/css; charset=utf-8",
    "story.js": "text/javascript; charset=utf-8",
    "sweep.js": "text/javascript; charset=utf-8",
    "timeline.js": "text/javascript; charset=utf-8",
    "tree.js": "text/javascript; charset=utf-8",
    "transfer.js": "text/javascript; charset=utf-8",
    "universes.js": "text/javascript; charset=utf-8",
    "values.js": "text/javascript; charset=utf-8",
    "znode.js": "text/javascript; charset=utf-8",
    "LICENCES.txt": "text/plain; charset=utf-8",
};

/// What the page may do in a browser: run its own scripts and call its own server. So even markup that reached the document
/// could load nothing, run nothing and send nothing elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

impl Asset {
    /// Resolves a path: `/` is the page, `/page/NAME` one of its files.
    pub(crate) fn at(path: &str) -> Option<&'static Self> {
        let name = match path {
            "/" => "index.html",
            path => path.strip_prefix("/page/")?,
        };
        ASSETS.iter().find(|asset| asset.name == name)
    }

    /// Answers a request.
    pub(crate) fn answer(&self, method: &Method) -> Response<Bytes> {
        let is_read = [Method::GET, Method::HEAD].contains(method);
        let (status, text) = match is_read {
            true => (StatusCode::OK, self.text),
            false => (
                StatusCode::METHOD_NOT_ALLOWED,
                "{\"error\":\"the page takes GET, HEAD\"}\n",
            ),
        };
        let mut response = Response::new(Bytes::from(text));
        *response.status_mut() = status;
        let content_type = if is_read {
            self.content_type
        } else {
            "application/json"
        };
        let headers = response.headers_mut();
        for (name, value) in [
            (header::CONTENT_TYPE, content_type),
            // Another version of the program may answer at the same address next.
            (header::CACHE_CONTROL, "no-cache"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if !is_read {
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::control::ParameterKind;

    /// Unit: bytes.
    const COMPRESSED_BYTES_MAX: usize = 150_000;

    #[test]
    fn assets_are_below_their_limit_when_compressed() {
        let compressed: usize = ASSETS
            .iter()
            .map(|asset| {
                let level = flate2::Compression::best();
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(asset.text.as_bytes()).unwrap();
                encoder.finish().unwrap().len()
            })
            .sum();
        println!("{compressed} bytes compressed");
        assert!(compressed < COMPRESSED_BYTES_MAX, "{compressed}");
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/page/assets");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let mut served: Vec<_> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
        files.sort();
        served.sort();
        assert_eq!(files, served);
    }

    /// The journal's bundles join the modules by this form.
    #[test]
    fn modules_import_only_files_beside_them() {
        for asset in ASSETS.iter().filter(|asset| asset.name.ends_with(".js")) {
            for (number, line) in asset.text.lines().enumerate() {
                let place = format!("{}:{}", asset.name, number + 1);
                let is_import = line.starts_with("import") || line.contains(" from \"");
                assert!(!line.contains("import("), "{place}");
                if !is_import || asset.name == "preact.js" {
                    continue;
                }
                let (_, from) = line.rsplit_once(" from ").expect(&place);
                let name = from
                    .strip_prefix("\"./")
                    .and_then(|name| name.strip_suffix("\";"));
                let name = name.unwrap_or_else(|| panic!("{place}: {line}"));
                assert!(
                    Asset::at(&format!("/page/{name}")).is_some(),
                    "{place}: {line}"
                );
            }
        }
    }

    /// Each call shows its command: the arguments that the page knows are those of the verbs.
    #[test]
    fn commands_are_those_of_the_verbs() {
        let api = Asset::at("/page/api.js").unwrap().text;
        let (_, table) = api.split_once("const ARGUMENTS = ").unwrap();
        let (table, _) = table.split_once(";\n").unwrap();
        let table: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(table).unwrap();
        for (name, arguments) in table {
            let mut verbs = crate::control::verbs();
            let verb = verbs.find(|verb| verb.name == name).expect(&name);
            let known = verb.parameters.iter().map(|parameter| {
                let is_by_place =
                    matches!(parameter.kind, ParameterKind::Path | ParameterKind::Data);
                let dashes = if parameter.is_required || is_by_place {
                    ""
                } else {
                    "--"
                };
                format!("{dashes}{}", parameter.name)
            });
            assert_eq!(
                arguments,
                serde_json::json!(known.collect::<Vec<_>>()),
                "{name}"
            );
        }
    }

    /// The page waited for entries of the kind `missed`, which the server calls `omitted`, so that it never
    /// said that it had lost some.
    #[test]
    fn kinds_of_entries_are_those_of_the_journal() {
        let mut found = 0;
        for asset in ASSETS.iter().filter(|asset| asset.name != "preact.js") {
            for text in asset.text.split("entry.kind").skip(1) {
                let compared = ["===", "!=="];
                let operator = compared
                    .iter()
                    .find_map(|it| text.trim_start().strip_prefix(it));
                let Some(kind) = operator.and_then(|text| text.split('"').nth(1)) else {
                    continue;
                };
                let kinds = minikeeper_core::journal::entry::JournalEntry::KINDS;
                assert!(kinds.contains(&kind), "{}: {kind}", asset.name);
                found += 1;
            }
        }
        assert!(found >= 5, "{found}");
    }

    /// Data of znodes is text: no module has a way to make it markup or code.
    #[test]
    fn modules_make_no_markup_and_no_code_of_text() {
        const FORBIDDEN: [&str; 9] = [
            "innerHTML",
            "InnerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "DOMParser",
            "srcdoc",
        ];
        for asset in ASSETS.iter().filter(|asset| asset.name != "preact.js") {
            for word in FORBIDDEN {
                assert!(!asset.text.contains(word), "{}: {word}", asset.name);
            }
        }
    }
}
