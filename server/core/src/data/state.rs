//! Passes a state from one server to another in memory.

use std::{fmt, path::Path, sync::Arc};

use minikeeper_engine::{Engine, Settings};
use minikeeper_protocol::Zxid;

use crate::data::{
    self, data_source,
    error::{ExportError, SnapshotFault},
    snapshot_file,
};

/// A copy in memory of everything that a server saves. Made by
/// [`Universe::state`](../minikeeper/struct.Universe.html#method.state) and [`DataSource::read`](crate::data::DataSource::read).
///
/// Cheap to clone.
///
/// # Examples
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use minikeeper::Server;
/// let server = Server::builder().start().await?;
/// let state = server.state();
/// server.shutdown().await?;
/// // To clients, the server was down for a while and still knows their sessions.
/// let server = Server::builder().state(state).start().await?;
/// # drop(server);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SavedState {
    zxid: Zxid,
    snapshot: Arc<[u8]>,
}

impl SavedState {
    /// Copies the state of an engine.
    pub fn of(engine: &Engine) -> Self {
        Self {
            zxid: engine.zxid(),
            snapshot: data::copy(engine).into(),
        }
    }

    /// Returns the zxid of the newest change in the state.
    #[must_use]
    pub const fn zxid(&self) -> Zxid {
        self.zxid
    }

    /// Writes the state as a data directory that ZooKeeper can start from, see
    /// [`Universe::export_data`](../minikeeper/struct.Universe.html#method.export_data).
    ///
    /// # Errors
    /// When the directory is not empty, or cannot be written.
    pub fn export_data(&self, dir: impl AsRef<Path>) -> Result<Zxid, ExportError> {
        data_source::export(dir.as_ref(), self.zxid, &self.snapshot)
    }

    pub(crate) fn load(&self, settings: Settings) -> Result<Engine, SnapshotFault> {
        let engine = snapshot_file::decode(&*self.snapshot, settings, self.zxid);
        engine.map_err(|damage| damage.fault)
    }
}

impl fmt::Debug for SavedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedState")
            .field("zxid", &self.zxid)
            .field("bytes", &self.snapshot.len())
            .finish()
    }
}
