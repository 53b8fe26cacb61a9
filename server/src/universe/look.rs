//! A look inside, without a client.

use minikeeper_engine::{Broken, Engine};
use minikeeper_protocol::Stat;

use crate::{snapshot::State, universe::Universe};

impl Universe {
    /// The data and stat of a znode; null data reads as `None`.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<(Option<Vec<u8>>, Stat)> {
        self.shared.turns.inspect(|engine| {
            engine
                .get(path)
                .map(|(data, stat)| (data.map(<[u8]>::to_vec), stat))
        })
    }

    /// The names of a znode's children, oldest first.
    #[must_use]
    pub fn children(&self, path: &str) -> Option<Vec<String>> {
        self.shared.turns.inspect(|engine| engine.children(path))
    }

    /// The whole state as text; the same state gives the same text.
    #[must_use]
    pub fn dump(&self) -> String {
        self.shared.turns.inspect(Engine::dump)
    }

    /// A copy of the state, to start another server with: [`crate::Builder::state`].
    #[must_use]
    pub fn state(&self) -> State {
        self.shared.turns.inspect(State::of)
    }

    /// Verifies every invariant of the whole state.
    ///
    /// # Errors
    /// The first one that does not hold: a bug of the server.
    pub fn check(&self) -> Result<(), Broken> {
        self.shared.turns.inspect(Engine::check)
    }
}
