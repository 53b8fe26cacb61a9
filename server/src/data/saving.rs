//! Where a server's state is saved, and what went wrong with that.

use std::sync::Arc;

use minikeeper_protocol::Zxid;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    config::{Config, TxnLog},
    data::{DataDir, LogSettings, LogWriter, SaveError},
};

/// The data directory of a server, if it has one.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    /// `None` without one, and once the server has stopped.
    pub(crate) dir: Mutex<Option<DataDir>>,
    /// What went wrong with the last save that nobody asked for, until somebody takes it.
    pub(crate) failure: Mutex<Option<SaveError>>,
    pub(crate) failed: Notify,
    /// Told when the log is long.
    pub(crate) is_log_long: Arc<Notify>,
}

impl Saving {
    /// Into this directory from here on.
    pub(crate) fn save_to(&self, dir: DataDir) {
        *self.dir.lock() = Some(dir);
    }

    /// A log of what changes behind the state that has been saved; `None` if none is wanted.
    pub(crate) fn log(&self, from: Zxid, config: &Config) -> Option<LogWriter> {
        let settings = LogSettings {
            syncs: config.txn_log == TxnLog::Sync,
            changes_max: config.snap_count,
            #[cfg(feature = "planted")]
            is_late: config.planted == Some(crate::planted::Planted::ToldBeforeLogged),
        };
        let dir = self.dir.lock();
        let dir = dir.as_ref().filter(|_| config.txn_log != TxnLog::Off)?;
        Some(dir.log(from, settings, Arc::clone(&self.is_log_long)))
    }

    /// Lets go of the directory without saving, unless a save is being written right now: then
    /// with the last who knows of it.
    pub(crate) fn abandon(&self) {
        if let Some(mut dir) = self.dir.try_lock() {
            dir.take();
        }
    }

    /// Waits until a save that nobody asked for has failed.
    pub(crate) async fn failed(&self) -> SaveError {
        loop {
            self.failed.notified().await;
            if let Some(error) = self.failure.lock().take() {
                return error;
            }
        }
    }
}
