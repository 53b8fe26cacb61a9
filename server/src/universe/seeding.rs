//! The tree as a whole: put there, taken out, compared.

use crate::{
    tree::{Tree, TreeDiff},
    universe::{
        Universe,
        seed_plan::{self, SeedError},
    },
};

/// What [`Universe::seed`] has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Seeded {
    /// How many znodes were created.
    pub created: usize,
    /// How often data or an access list was set.
    pub changed: usize,
}

impl Universe {
    /// Puts a tree there: creates what is missing, parents too, and sets what differs. What is
    /// not named stays.
    ///
    /// All of it happens in one turn, so clients see it whole; each change has a zxid of its own,
    /// and watchers are told of it, as if a client had made it. Access lists are in nobody's way.
    ///
    /// # Errors
    /// What is wrong with the tree, or why it does not fit the one that is there, with the path.
    /// Nothing has been changed then, save for [`SeedError::Refused`].
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use minikeeper::{Server, assert_tree, tree};
    /// let server = Server::builder().start().await?;
    /// server.seed(&tree! { "/services/web/1" => "127.0.0.1:80", "/locks" => null })?;
    /// assert_tree!(server, {
    ///     "/locks" => null,
    ///     "/services/web" => "",
    ///     "/services/web/1" => "127.0.0.1:80",
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn seed(&self, tree: &Tree) -> Result<Seeded, SeedError> {
        seed_plan::check(tree, self.shared.config.frame_bytes_max)?;
        let seed = self.shared.turns.alter(|engine, now, effects| {
            let mut seeded = Seeded::default();
            for (path, change) in seed_plan::plan(engine, tree)? {
                let is_create = matches!(change, minikeeper_protocol::Request::Create(_));
                let outcome = engine.administer(now, &change, effects);
                outcome.map_err(|error| SeedError::Refused { path, error })?;
                if is_create {
                    seeded.created += 1;
                } else {
                    seeded.changed += 1;
                }
            }
            Ok(seeded)
        });
        seed.unwrap_or(Err(SeedError::Stopped))
    }

    /// The tree as it is, with lifetimes and access lists, to [seed](Universe::seed) another
    /// server with. Ephemerals, which go with their sessions, and the server's own `/zookeeper`
    /// are not among it.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use minikeeper::{Server, tree};
    /// let server = Server::builder().start().await?;
    /// server.seed(&tree! { "/a" => "x" })?;
    /// let other = Server::builder().seed(server.export_tree()).start().await?;
    /// assert_eq!(other.export_tree(), server.export_tree());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn export_tree(&self) -> Tree {
        let turns = &self.shared.turns;
        turns.inspect(|engine| seed_plan::export(engine, false))
    }

    /// What is not as this tree says, ephemerals looked at too; `None` if everything is.
    ///
    /// Znodes that it does not name should not be there, unless it is
    /// [partial](Tree::partial). `/zookeeper` is not looked at, and the root only if it is named.
    /// [`assert_tree!`](crate::assert_tree!) is this with a panic.
    #[must_use]
    pub fn diff_tree(&self, expected: &Tree) -> Option<TreeDiff> {
        let found = self
            .shared
            .turns
            .inspect(|engine| seed_plan::export(engine, true));
        TreeDiff::of(expected, &found)
    }

    /// The paths of all ephemerals, for whoever is told of the tree without them.
    #[cfg(feature = "control")]
    pub(crate) fn ephemerals(&self) -> Vec<String> {
        self.shared.turns.inspect(seed_plan::ephemerals)
    }
}

/// Panics unless a server's tree is this one: every znode, ephemerals too, `/zookeeper` aside.
///
/// The tree is written as in [`tree!`](crate::tree!) or given as a [`Tree`]. With a
/// last `..` there may be more znodes than are named. The panic shows what differs, `-` what
/// should be and `+` what is.
///
/// # Examples
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use minikeeper::{Server, Znode, assert_tree, tree};
/// let server = Server::builder().start().await?;
/// server.seed(&tree! { "/a" => "x", "/a/b" => null })?;
/// assert_tree!(server, { "/a" => "x", "/a/b" => null });
/// assert_tree!(server, { "/a/b" => Znode::any(), .. });
/// let before = server.export_tree();
/// assert_tree!(server, before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[macro_export]
macro_rules! assert_tree {
    ($server:expr, { $($znodes:tt)* } $(,)?) => {
        $crate::assert_tree!($server, $crate::tree! { $($znodes)* })
    };
    ($server:expr, $tree:expr $(,)?) => {
        if let ::core::option::Option::Some(differences) = $server.diff_tree(&$tree) {
            ::core::panic!("{differences}");
        }
    };
}
