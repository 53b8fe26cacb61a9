//! Imports a ZooKeeper data directory and exports one; copies the state.

use std::path::Path;

use minikeeper_protocol::Zxid;

use crate::{
    data::{self, DataDirError, DataSource, ExportError, SavedState, data_source},
    start,
    universe::Universe,
};

impl Universe {
    /// Replaces the state by that of a ZooKeeper data directory, which is only read.
    ///
    /// Closes every connection. Clients that reconnect find their sessions expired, unless these
    /// are among those in the directory, which each have their whole timeout again. The zxid does
    /// not go back. Reads on the calling thread; clients are served at the same time.
    ///
    /// # Errors
    /// When the directory cannot be read, or what is in it makes no sense; nothing has changed
    /// then.
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
        let mut settings = start::settings(&shared.config, shared.turns.clock());
        settings.zxid = Zxid(0);
        let imported = source.into().load(settings)?;
        shared.anew(|turns, anew| {
            turns.renew(|engine, now| {
                engine.replace(imported, now);
                anew.save(engine);
            });
        });
        Ok(())
    }

    /// Writes the state as a data directory that ZooKeeper 3.8 or 3.9 can start from: a snapshot
    /// with znodes, access lists and sessions. The directory must be empty or not exist.
    ///
    /// While the state is copied, no client is served. While it is written, on the calling thread,
    /// all are. Returns the zxid of the newest change in it.
    ///
    /// # Errors
    /// When there is something in the directory, or the system refuses.
    pub fn export_data(&self, dir: impl AsRef<Path>) -> Result<Zxid, ExportError> {
        let turns = &self.shared.turns;
        if turns.is_broken() {
            return Err(ExportError::Broken);
        }
        let (zxid, copy) = turns.inspect(|engine| (engine.zxid(), data::copy(engine)));
        data_source::export(dir.as_ref(), zxid, &copy)
    }

    /// Copies the state, for another server to start with: [`crate::Builder::state`].
    #[must_use]
    pub fn state(&self) -> SavedState {
        self.shared.turns.inspect(SavedState::of)
    }
}
