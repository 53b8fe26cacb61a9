//! When a server reports the story of a failed test.

#[cfg(feature = "control")]
use std::path::PathBuf;

/// What a [`Server`](../minikeeper/struct.Server.html), or a [`UniverseGuard`](../minikeeper/struct.UniverseGuard.html), does when a panic
/// drops it, as the failed assertion of a test does.
///
/// The title of the [`Story`](../minikeeper/struct.Story.html) is the name of the thread, which is that of the test. A
/// universe tells its story once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Stories {
    /// Prints the story to stderr, where the test harness captures it. With the feature `control`,
    /// also saves the page and the JSON: in the folder that the environment variable
    /// `MINIKEEPER_STORIES` names, else in `minikeeper-stories` of cargo's target folder if the
    /// program is there. If the variable is empty or `off`, saves nothing.
    #[default]
    Default,
    /// Prints the story, and saves the page and the JSON in this folder.
    #[cfg(feature = "control")]
    SaveIn(PathBuf),
    /// Prints the story and saves nothing.
    Print,
    /// Does nothing: for tests that expect a panic.
    Off,
}
