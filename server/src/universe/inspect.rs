//! Reads znodes, children, the dump and the state without a client.

use minikeeper_engine::{Broken, Engine};
use minikeeper_protocol::Stat;

use crate::{tree::dump, universe::Universe};

impl Universe {
    /// Reads the data and stat of a znode; null data reads as `None`.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<(Option<Vec<u8>>, Stat)> {
        self.shared.turns.inspect(|engine| {
            engine
                .get(path)
                .map(|(data, stat)| (data.map(<[u8]>::to_vec), stat))
        })
    }

    /// Lists the names of a znode's children, oldest first.
    #[must_use]
    pub fn children(&self, path: &str) -> Option<Vec<String>> {
        self.shared.turns.inspect(|engine| engine.children(path))
    }

    /// Prints znodes, sessions and watches as text; equal trees give equal text.
    ///
    /// There is one line for each: znodes by path, then sessions, then watches. Text is quoted,
    /// other bytes are printed as `bytes "\x00\xff"`. The dump omits everything that depends on the
    /// time and order of changes: zxids, times, versions and session ids; sessions are numbered in
    /// the order of their ids. It also omits `/zookeeper` except quotas, and access lists that are
    /// open to all clients. [`dump_exact`](Universe::dump_exact) prints everything.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use minikeeper::{Server, Znode, tree};
    /// let server = Server::builder().start().await?;
    /// server.seed(&tree! {
    ///     "/b" => Znode::from("x").acl(["world:anyone:r"]),
    ///     "/b/raw" => b"\x00\xff",
    ///     "/a" => null,
    /// })?;
    /// let dump = r#"znode / ""
    /// znode /a null
    /// znode /b "x" acl world:anyone:r
    /// znode /b/raw bytes "\x00\xff"
    /// "#;
    /// assert_eq!(server.dump(), dump);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn dump(&self) -> String {
        self.shared.turns.inspect(dump::dump)
    }

    /// Prints the whole state as text, with zxids, times and versions; equal states give equal
    /// text. For tests of determinism; the format may change.
    #[must_use]
    pub fn dump_exact(&self) -> String {
        self.shared.turns.inspect(Engine::dump)
    }

    /// Verifies every invariant of the state.
    ///
    /// # Errors
    /// The first invariant that does not hold, which is a bug in the server.
    pub fn check(&self) -> Result<(), Broken> {
        self.shared.turns.inspect(Engine::check)
    }
}
