//! Decides when to save the state: on shutdown, on request, at intervals, when the log is long, and
//! after changes that a log cannot express.

use std::sync::Arc;

use minikeeper_engine::Engine;
use minikeeper_protocol::{SessionId, Zxid};
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    config::{Config, TxnLog},
    data::{self, BeginError, DataDir, LoadError, LogSettings, LogWriter, SaveError},
    race::first_of,
    state::UniverseState,
    turn::turns::Turns,
};

/// How often the server checks that the data directory still exists. Unit: milliseconds.
const LOOK_INTERVAL_MS: u64 = 1_000;

/// Saves a state that a log cannot express, before the next turn.
pub struct Replacement<'a> {
    /// Held if there is a log.
    dir: Option<MutexGuard<'a, Option<DataDir>>>,
    failure: Option<SaveError>,
}

impl Replacement<'_> {
    /// Saves the current state, if there is a log that continues from it.
    pub fn save(&mut self, engine: &Engine) {
        let Some(dir) = self.dir.as_mut().and_then(|dir| dir.as_mut()) else {
            return;
        };
        let saved = dir.save(engine.zxid(), |out| data::write(engine.image(), out));
        self.failure = saved.err();
    }
}

impl UniverseState {
    /// Starts to save to this directory, and begins the log if the settings ask for one.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub async fn begin_saving(self: &Arc<Self>, dir: Option<DataDir>) -> Result<(), LoadError> {
        let Some(mut dir) = dir else {
            return Ok(());
        };
        let shared = Arc::clone(self);
        let begin = move || {
            let path = shared.config.data_dir.clone().unwrap_or_default();
            let begun = shared.turns.inspect(|engine| dir.begin(engine));
            begun.map_err(|error| match error {
                BeginError::Dir(source) => LoadError::DataDir { dir: path, source },
                BeginError::Save(error) => LoadError::Save(error),
            })?;
            *shared.server.saving.dir.lock() = Some(dir);
            Ok(())
        };
        tokio::task::spawn_blocking(begin)
            .await
            .expect("writing a note does not panic, and the runtime is alive")?;
        if self.config.txn_log != TxnLog::Off {
            // A log continues from the saved state.
            self.save().await.map_err(LoadError::Save)?;
        }
        let zxid = self.turns.inspect(Engine::zxid);
        if let Some(log) = self.server.saving.log(zxid, &self.config) {
            self.turns.log_to(log);
        }
        Ok(())
    }

    /// Starts the tasks that save automatically and check that the directory exists.
    pub fn saving_tasks(self: &Arc<Self>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let has_interval = !self.config.save_interval.is_zero();
        if has_interval || self.config.txn_log != TxnLog::Off {
            tasks.spawn(Arc::clone(self).save_automatically());
        }
        // Saves at intervals check the directory themselves.
        if self.config.data_dir.is_some() && !has_interval {
            tasks.spawn(Arc::clone(self).check_dir_at_intervals());
        }
        tasks
    }

    /// Saves on request.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub async fn save(self: &Arc<Self>) -> Result<(), SaveError> {
        self.save_on_a_thread(Self::save_now).await
    }

    /// Saves for the last time and releases the directory.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub async fn finish_saving(self: &Arc<Self>) -> Result<(), SaveError> {
        self.save_on_a_thread(|shared| {
            let saved = shared.save_now();
            let Some(dir) = shared.server.saving.dir.lock().take() else {
                return saved;
            };
            saved.and_then(|()| dir.note_saved())
        })
        .await
    }

    /// Makes a change that a log cannot express, and lets `change` save the result before any client
    /// sees it. Stops the server if that fails.
    pub fn replace_state<T>(&self, change: impl FnOnce(&Turns, &mut Replacement<'_>) -> T) -> T {
        let is_logged = self.turns.prefix().is_empty() && self.config.txn_log != TxnLog::Off;
        let mut replacement = Replacement {
            dir: is_logged.then(|| self.server.saving.dir.lock()),
            failure: None,
        };
        let result = change(&self.turns, &mut replacement);
        if let Some(error) = replacement.failure {
            self.turns.stop_unsaved(error);
        }
        result
    }

    /// Saves at intervals of the server's clock, and whenever the log is long, until dropped.
    async fn save_automatically(self: Arc<Self>) {
        let mut has_failed = false;
        loop {
            let is_log_long = self.server.saving.is_log_long.notified();
            first_of(is_log_long, self.interval()).await;
            match self.save().await {
                Ok(()) => has_failed = false,
                Err(error) => {
                    tracing::error!(err = %error, "cannot save; tries again when the next save is due");
                    // Reports the first failure only, not every retry.
                    if !std::mem::replace(&mut has_failed, true) {
                        *self.server.saving.failure.lock() = Some(error);
                        self.server.saving.failed.notify_one();
                    }
                }
            }
        }
    }

    /// Checks the directory at intervals of the server's clock, until dropped. Reports once that it was
    /// deleted or replaced, so that the operator can act while the state is still in memory.
    async fn check_dir_at_intervals(self: Arc<Self>) {
        let mut is_reported = false;
        loop {
            let clock = self.turns.clock();
            let next_ms = clock.elapsed_ms().saturating_add(LOOK_INTERVAL_MS);
            clock.wait_until(next_ms).await;
            // If a save is running, it checks the directory itself.
            let checked = match self.server.saving.dir.try_lock() {
                Some(dir) => dir.as_ref().map_or(Ok(()), DataDir::check_place),
                None => continue,
            };
            match checked {
                Ok(()) => is_reported = false,
                Err(error) => {
                    if !std::mem::replace(&mut is_reported, true) {
                        tracing::error!(err = %error, "continues to serve");
                        *self.server.saving.failure.lock() = Some(error);
                        self.server.saving.failed.notify_one();
                    }
                }
            }
        }
    }

    /// Waits until the next save at an interval is due; forever if there are none.
    async fn interval(&self) {
        let interval = self.config.save_interval;
        if interval.is_zero() {
            return std::future::pending().await;
        }
        let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        let clock = self.turns.clock();
        let next_ms = clock.elapsed_ms().saturating_add(interval_ms.max(1));
        clock.wait_until(next_ms).await;
    }

    /// Saves on another thread, so that clients are served while the disk writes.
    async fn save_on_a_thread(
        self: &Arc<Self>,
        save: impl FnOnce(&Self) -> Result<(), SaveError> + Send + 'static,
    ) -> Result<(), SaveError> {
        if self.config.data_dir.is_none() {
            return Ok(());
        }
        let shared = Arc::clone(self);
        match tokio::task::spawn_blocking(move || save(&shared)).await {
            Ok(saved) => saved,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(SaveError::NoRuntime),
            },
        }
    }

    /// Saves the state, unless it has not changed since the last save.
    ///
    /// Copies the state of a serving engine in pieces, so that clients are served meanwhile. Writes a
    /// stopped one directly to the file, without a copy.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn save_now(&self) -> Result<(), SaveError> {
        let mut dir = self.server.saving.dir.lock();
        let Some(dir) = &mut *dir else {
            return Ok(());
        };
        let turns = &self.turns;
        if turns.is_broken() {
            return Err(SaveError::Broken);
        }
        // Every change of the saved state has its own zxid.
        if Some(turns.inspect(Engine::zxid)) == dir.saved() {
            return Ok(());
        }
        let now_ms = || turns.clock().elapsed_ms();
        let start_ms = now_ms();
        let (zxid, copy_ms, bytes) = if turns.is_stopped() {
            turns.inspect(|engine| {
                let zxid = engine.zxid();
                let saved = dir.save(zxid, |out| data::write(engine.image(), out));
                saved.map(|bytes| (zxid, now_ms().saturating_sub(start_ms), bytes))
            })?
        } else {
            // The log goes on from the state that the copy shows.
            let (copy, zxid) = turns.copied(|core| {
                core.note_replaced();
                core.engine.zxid()
            });
            let copy = copy.finish(SessionId(1));
            let copy_ms = now_ms().saturating_sub(start_ms);
            let bytes = dir.save(zxid, |out| data::write(copy.image(), out))?;
            (zxid, copy_ms, bytes)
        };
        let elapsed_ms = now_ms().saturating_sub(start_ms);
        tracing::info!(%zxid, bytes, copy_ms, elapsed_ms, "saved");
        Ok(())
    }
}

/// The data directory of a server, if it has one.
#[derive(Debug, Default)]
pub struct Saving {
    /// `None` if there is none, and once the server has stopped.
    pub(crate) dir: Mutex<Option<DataDir>>,
    /// Why the last automatic save failed, until a caller takes the error.
    pub(crate) failure: Mutex<Option<SaveError>>,
    pub(crate) failed: Notify,
    /// Notified when the log is long.
    pub(crate) is_log_long: Arc<Notify>,
}

impl Saving {
    /// Returns a log for the changes after the saved state; `None` if the settings ask for none.
    fn log(&self, from: Zxid, config: &Config) -> Option<LogWriter> {
        let settings = LogSettings {
            syncs: config.txn_log == TxnLog::Sync,
            changes_max: config.snap_count,
        };
        let dir = self.dir.lock();
        let dir = dir.as_ref().filter(|_| config.txn_log != TxnLog::Off)?;
        Some(dir.log(from, settings, Arc::clone(&self.is_log_long)))
    }

    /// Releases the directory without saving. If a save is running, the directory is released when the
    /// last reference to it is dropped.
    pub fn abandon(&self) {
        if let Some(mut dir) = self.dir.try_lock() {
            dir.take();
        }
    }

    /// Waits until an automatic save fails.
    pub async fn failed(&self) -> SaveError {
        loop {
            self.failed.notified().await;
            if let Some(error) = self.failure.lock().take() {
                return error;
            }
        }
    }
}
