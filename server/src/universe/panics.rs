//! Tells the story of a server that is dropped during a panic: that of a failed test.

#[cfg(feature = "control")]
use std::{env, path::PathBuf};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::Ordering,
    thread,
    time::Duration,
};

use minikeeper_core::config::stories::Stories;

use crate::universe::Universe;

/// How long to wait for the engine lock: should another thread hold it for ever, the test ends
/// nevertheless.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum number of universes whose stories a server tells.
const UNIVERSES_MAX: usize = 8;

/// The folder for stories below cargo's target folder.
#[cfg(feature = "control")]
const FOLDER: &str = "minikeeper-stories";

/// Returns the folder in which to save a story.
#[cfg(feature = "control")]
fn folder(stories: &Stories) -> Option<PathBuf> {
    match stories {
        Stories::SaveIn(folder) => Some(folder.clone()),
        Stories::Default => match env::var_os("MINIKEEPER_STORIES") {
            Some(folder) if folder.is_empty() || folder == "off" => None,
            Some(folder) => Some(folder.into()),
            None => {
                let program = env::current_exe().ok()?;
                // Cargo puts this file into every target folder.
                let is_target = |folder: &&std::path::Path| folder.join("CACHEDIR.TAG").is_file();
                let target = program.ancestors().skip(1).find(is_target)?;
                Some(target.join(FOLDER))
            }
        },
        _ => None,
    }
}

/// Tells the story of a universe if a panic unwinds this thread.
pub(crate) fn tell(universe: &Universe) {
    if is_wanted(universe) {
        guarded(|| tell_of(universe));
    }
}

/// Tells the story of a server's own universe, and those of the others, if a panic unwinds this
/// thread. If clients use other universes only, the server's own has none.
pub(crate) fn tell_all(own: &Universe) {
    if !is_wanted(own) {
        return;
    }
    guarded(|| {
        let names = own.universes();
        let others = names.iter().filter_map(|name| own.universe_named(name));
        others.take(UNIVERSES_MAX).for_each(|other| tell_of(&other));
        let has_others = own.shared.server.universes.is_used();
        if !has_others || own.story().is_used() {
            tell_of(own);
        }
    });
}

fn is_wanted(universe: &Universe) -> bool {
    thread::panicking() && universe.shared.config.stories != Stories::Off
}

/// Calls this, and stops a panic in it: a second panic on the way out would abort the process.
fn guarded(tell: impl FnOnce()) {
    // The panic hook has printed the message.
    let _ = catch_unwind(AssertUnwindSafe(tell));
}

#[expect(
    clippy::print_stderr,
    reason = "the test harness captures what a test prints"
)]
fn tell_of(universe: &Universe) {
    let state = &universe.shared;
    if state.is_story_told.swap(true, Ordering::Relaxed) {
        return;
    }
    if state.turns.is_broken() || !state.turns.is_free_within(PATIENCE) {
        eprintln!("minikeeper: no story: the server has failed, or does not answer");
        return;
    }
    let thread = thread::current();
    let test = thread.name().unwrap_or_default();
    let title = match universe.name() {
        name if name.is_empty() => test.to_owned(),
        name => format!("{test} {name}"),
    };
    let story = universe.story().with_title(title.trim());
    // One call, so that the stories of parallel tests do not mix.
    #[cfg(not(feature = "control"))]
    eprintln!("\n{story}");
    #[cfg(feature = "control")]
    {
        let saved = match folder(&state.config.stories).map(|folder| story.save(&folder)) {
            None => String::new(),
            Some(Ok(page)) => format!("saved in {}\n", page.display()),
            Some(Err(error)) => format!("not saved: {error}\n"),
        };
        eprintln!("\n{story}\n{saved}");
    }
}

/// Tells the story of a universe when a panic drops this guard: see [`Universe::story_on_panic`].
#[derive(Debug)]
#[must_use = "it tells the story when it is dropped"]
pub struct StoryGuard(pub(crate) Universe);

impl Drop for StoryGuard {
    fn drop(&mut self) {
        tell(&self.0);
    }
}
