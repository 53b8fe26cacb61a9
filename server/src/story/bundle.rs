//! A story as JSON and as a page, and the files of both.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    admin::version::VERSION,
    page::bundle,
    story::Story,
    views::{advice, faults, journal, locks, sessions},
};

/// The maximum length of [`Story::file_name`]. Unit: bytes.
const NAME_BYTES_MAX: usize = 100;

impl Story {
    /// Returns everything as JSON: the fields of the verbs `locks`, `sessions`, `faults`, `journal` and
    /// `advise`, with `title`, `failure`, `server` and `now_ms`.
    #[must_use]
    pub fn to_json(&self) -> String {
        json(self).to_string()
    }

    /// Returns a page with everything, for browsers. It contains its scripts and styles and loads
    /// nothing.
    #[must_use]
    pub fn to_html(&self) -> String {
        bundle::html(&json(self))
    }

    /// Returns the title as the name of a file, without an extension: at most 100 bytes of ASCII
    /// letters, digits, `.`, `_` and `-`.
    ///
    /// If a title has other characters, or is longer, a number is appended, so that similar titles
    /// have different names.
    #[must_use]
    pub fn file_name(&self) -> String {
        let mut name = String::new();
        let mut is_exact = true;
        for letter in self.title.replace("::", ".").chars() {
            let is_safe = letter.is_ascii_alphanumeric() || "._-".contains(letter);
            is_exact &= is_safe || letter == '/';
            // A name that begins with a dot is hidden, or leads elsewhere.
            match if is_safe { letter } else { '-' } {
                '.' | '-' if name.is_empty() => {}
                '-' if name.ends_with('-') => {}
                letter => name.push(letter),
            }
        }
        let name = name.trim_end_matches(['-', '.']);
        if name.is_empty() {
            return "story".to_owned();
        }
        let most = NAME_BYTES_MAX - "-01234567".len();
        if is_exact && name.len() <= NAME_BYTES_MAX {
            return name.to_owned();
        }
        let hash = self.title.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        format!("{}-{hash:08x}", &name[..name.len().min(most)])
    }

    /// Writes the page and the JSON into a folder, which is created if it does not exist. Replaces the
    /// files of an earlier story with the same title. Returns the path of the page.
    ///
    /// # Errors
    /// When the folder or a file cannot be written.
    pub fn save(&self, folder: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let name = self.file_name();
        let page = folder.join(format!("{name}.html"));
        fs::write(&page, self.to_html())?;
        fs::write(folder.join(format!("{name}.json")), self.to_json())?;
        Ok(page)
    }
}

fn json(story: &Story) -> Value {
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let wall = (story.at.wall).duration_since(std::time::UNIX_EPOCH);
    let list = |values: &mut dyn Iterator<Item = Value>| values.collect::<Vec<_>>();
    json!({
        "title": story.title,
        "failure": story.failure,
        "server": {"version": VERSION, "address": story.server},
        "now_ms": millis(story.at.elapsed),
        "wall_ms": wall.map_or(0, millis),
        "is_frozen": story.at.is_frozen,
        "locks": locks::locks(&story.locks),
        "sessions": list(&mut story.sessions.iter().map(sessions::session)),
        "faults": list(&mut story.faults.iter().map(faults::fault)),
        "findings": advice::findings(&story.advice()),
        "entries": list(&mut story.entries.iter().map(journal::entry)),
        "oldest": story.oldest,
        "next": story.next,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(title: &str) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let server = crate::Server::builder().start().await.unwrap();
            server.story().with_title(title).file_name()
        })
    }

    #[test]
    fn file_names_are_safe_bounded_and_distinct() {
        assert_eq!(name("it::locks::queue"), "it.locks.queue");
        assert_eq!(name("tests/test_a.py::test_b"), "tests-test_a.py.test_b");
        for title in ["", "..", "../..", "/", "\0", "-"] {
            assert_eq!(name(title), "story", "{title:?}");
        }
        assert!(name("../../etc/passwd").starts_with("etc-passwd"));
        assert_ne!(name("test[a/b]"), name("test[a b]"));
        let long = name(&"ä/x".repeat(1_000));
        assert!(long.len() <= NAME_BYTES_MAX && long.is_ascii(), "{long}");
        assert_ne!(name(&"x".repeat(199)), name(&"x".repeat(200)));
    }
}
