//! Imports a ZooKeeper data directory and exports one; copies the state.

use std::path::Path;

use minikeeper_core::data::{self, DataDirError, DataSource, ExportError, SavedState};
use minikeeper_protocol::Zxid;

use crate::universe::Universe;

impl Universe {
    /// Replaces the state by that of a ZooKeeper data directory, which is only read.
    ///
    /// Closes every connection. A client that reconnects finds its session expired, unless the
    /// directory has that session; each session in it starts with its full timeout. The zxid does
    /// not go back. Reads on the calling thread, while clients are served.
    ///
    /// # Errors
    /// When the directory cannot be read or is damaged; the state is then unchanged.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = std::env::temp_dir().join(format!("minikeeper-doc-import-{}", std::process::id()));
    /// # let _ = std::fs::remove_dir_all(&dir);
    /// let production = minikeeper::Server::builder().start().await?;
    /// production.export_data(&dir)?;
    /// let test = minikeeper::Server::builder().start().await?;
    /// test.import_data(&dir)?;
    /// assert_eq!(test.children("/"), production.children("/"));
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok(()) }
    /// ```
    pub fn import_data(&self, source: impl Into<DataSource>) -> Result<(), DataDirError> {
        let shared = &self.shared;
        let mut settings = shared.config.engine_settings(shared.turns.clock());
        settings.zxid = Zxid(0);
        let imported = source.into().load(settings)?;
        shared.replace_state(|turns, replacement| {
            turns.renew(|engine, now, recorder| {
                engine.replace(imported, now);
                if let Some(recorder) = recorder {
                    recorder.state(now, engine);
                }
                replacement.save(engine);
            });
        });
        Ok(())
    }

    /// Writes the state as a data directory that ZooKeeper 3.8 or 3.9 can start from: a snapshot
    /// with znodes, access lists and sessions. The directory must be empty or not exist.
    ///
    /// Copies the state in pieces, and writes the copy on the calling thread; clients are served
    /// meanwhile. Returns the zxid of the newest change in it.
    ///
    /// # Errors
    /// When the directory is not empty, or cannot be written.
    pub fn export_data(&self, dir: impl AsRef<Path>) -> Result<Zxid, ExportError> {
        let turns = &self.shared.turns;
        if turns.is_broken() {
            return Err(ExportError::Broken);
        }
        // One at a time, since the copy takes as much memory as the state.
        let ((zxid, copy), _only) = turns.view_alone(|engine| (engine.zxid(), data::copy(engine)));
        data::export(dir.as_ref(), zxid, &copy)
    }

    /// Copies the state, so that another server can start with it: [`crate::Builder::state`].
    #[must_use]
    pub fn state(&self) -> SavedState {
        self.shared.turns.view(SavedState::of)
    }
}
